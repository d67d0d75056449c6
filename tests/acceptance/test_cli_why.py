"""`undivided why`, against a running service."""

from __future__ import annotations

import json

import pytest

from tests.acceptance.test_cli import WAIT, run, told
from tests.support.stack import Stack

pytestmark = pytest.mark.process


async def test_an_item_tells_why(stack: Stack) -> None:
    """As sentences for people, as JSON for programs; an unknown item is a mistake of the call."""
    url = stack.url
    await run(url, "agents", "create", "Ada", "--id", "ada")
    done = json.loads(
        (await run(url, "send", "ada", "Is the kettle on?", "--wait", WAIT, "--json")).stdout
    )
    item = done["itemId"]
    said = (await run(url, "why", item)).stdout
    assert said.startswith(f"{item} of ada: completed")
    assert "Is the kettle on?" in said
    assert "by rule priority_fifo" in said
    story = await told(url, "why", item)
    assert (story["itemId"], story["outcome"]) == (item, "completed")
    assert [one["text"] for one in story["sentences"] if one["kind"] == "picked"]
    early = await told(url, "why", item, "--at", story["sentences"][0]["position"])
    assert [one["kind"] for one in early["sentences"]] == ["accepted"]
    await run(url, "why", "nobody", code=2)
