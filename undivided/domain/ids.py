"""Names of things: who is who, and what an id may look like."""

from __future__ import annotations

import re
from hashlib import sha256
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

ID_LIMIT = 128
_ID = re.compile(rf"[A-Za-z0-9._-]{{1,{ID_LIMIT}}}")


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
    """A readable session id made of `parts`.

    Where something had to be replaced or cut, a digest keeps apart what would look the same: two
    channels, or two agents, never share a conversation by the looks of their names.
    """
    whole = "_".join(parts)
    readable = re.sub(r"[^A-Za-z0-9._-]", "-", whole)
    if readable == whole and 0 < len(whole) <= ID_LIMIT:
        return SessionId(whole)
    mark = "-" + digest(parts)
    return SessionId(readable[: ID_LIMIT - len(mark)] + mark)


def digest(parts: tuple[str, ...]) -> str:
    """Sixteen characters that tell `parts` from any others."""
    whole = "\0".join(parts).encode("utf-8", "surrogatepass")
    return sha256(whole).hexdigest()[:16]
