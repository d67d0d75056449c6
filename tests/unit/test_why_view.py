"""An item's story in a terminal."""

from __future__ import annotations

from typing import Any

from tests.unit.test_cli_views import shown
from undivided.cli.views.why import why_view


def story(**known: Any) -> dict[str, Any]:
    """A story as the API tells it."""
    sentences = [
        {"at": "2026-01-02T03:04:05.678Z", "text": "ada received it.", "kind": "accepted"},
        {"at": "2026-01-02T03:04:06.000Z", "text": "ada turned\nto it\u202e.", "kind": "picked"},
        {"at": "2026-01-03T00:00:00.000Z", "text": "It is over.", "kind": "completed"},
    ]
    return {
        "itemId": "mbx_1", "agentId": "ada", "status": "completed", "outcome": "completed",
        "sentences": sentences, "position": "1-1", **known,
    }  # fmt: skip


class TestWhy:
    """When, and what happened."""

    def test_a_sentence_a_line_and_the_day_once(self) -> None:
        """In the order of the answer, each day named where it begins."""
        lines = [line.rstrip() for line in shown(why_view(story())).splitlines()]
        assert lines == [
            "mbx_1 of ada: completed",
            "2026-01-02 03:04:05.678  ada received it.",
            "           03:04:06.000  ada turned to it\\u202e.",
            "2026-01-03 00:00:00.000  It is over.",
        ]

    def test_an_outcome_of_its_own_is_named(self) -> None:
        """A completed item can be incomplete."""
        said = shown(why_view(story(outcome="incomplete")))
        assert said.startswith("mbx_1 of ada: completed (incomplete)")
