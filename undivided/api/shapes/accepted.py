"""What accepting a stimulus answers."""

from __future__ import annotations

from msgspec import UNSET, Struct, UnsetType


class AcceptedItem(Struct, frozen=True, rename="camel", kw_only=True):
    """A stimulus is in the mailbox; `mergedInto` where it joined one that waits."""

    item_id: str
    status: str
    position: str
    merged_into: str | UnsetType = UNSET


class AcceptedBatch(Struct, frozen=True, rename="camel", kw_only=True):
    """One result for each stimulus, in order."""

    items: list[AcceptedItem]
    position: str


class Recording(Struct, frozen=True, rename="camel", kw_only=True):
    """An uploaded recording: use it as the model `rehearsal:recording:<id>`."""

    id: str
    bytes: int
    position: str


class MessageAnswer(Struct, frozen=True, rename="camel", kw_only=True):
    """What an agent answered; without `outcome` it has not finished."""

    item_id: str
    session_id: str | None
    position: str
    reply: str | UnsetType | None = UNSET
    outcome: str | UnsetType = UNSET
    turn_id: str | UnsetType = UNSET
    status: str = "queued"
    merged_into: str | UnsetType = UNSET
