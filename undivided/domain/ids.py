"""Names of things: who is who, and what an id may look like."""

from __future__ import annotations

import re
from typing import NewType

from undivided.domain.errors import Invalid

AgentId = NewType("AgentId", str)
ItemId = NewType("ItemId", str)
TurnId = NewType("TurnId", str)
SessionId = NewType("SessionId", str)
DecisionId = NewType("DecisionId", str)
EventId = NewType("EventId", str)
Epoch = NewType("Epoch", int)
WorkerId = NewType("WorkerId", str)

_ID = re.compile(r"[A-Za-z0-9._-]{1,128}")


def checked_id(text: str, field: str) -> str:
    """The id itself, if it is one; `field` names the place in the refusal.

    Raises:
        Invalid: other characters than letters, digits, `.`, `_`, `-`, or not 1 to 128 of them.
    """
    if _ID.fullmatch(text):
        return text
    raise Invalid(
        f"{field} must be 1 to 128 letters, digits, '.', '_' or '-'; got {text[:40]!r}", field
    )


def session_id_of(parts: tuple[str, ...]) -> SessionId:
    """A readable session id made of `parts`, cut to the allowed length and characters."""
    return SessionId(re.sub(r"[^A-Za-z0-9._-]", "-", "_".join(parts))[:128])
