"""Model requests as tests need them: everything ordinary but what the test is about."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from undivided.domain.dialogue import ModelRequest, UserSaid

ORDINARY = ModelRequest(
    agent_id="ada",
    definition="researcher",
    scenario="chat",
    profile="default",
    instructions="Be brief.",
    history=(UserSaid("hello"),),
    tools=(),
    turn_id="trn_1",
    session_id="ses_1",
    turn_index=0,
    step=0,
    newest_input="hello",
)


def request(**different: Any) -> ModelRequest:
    """An ordinary request but for `different`."""
    return replace(ORDINARY, **different)
