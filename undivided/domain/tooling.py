"""How a tool is described and how its call can end, without running anything."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from undivided.domain.waits import Wait

Effect = Literal["pure", "idempotent", "once"]
"""What a re-run after a crash would do: `pure` is re-run, `idempotent` re-run with the same
key, `once` is never re-run but answered as interrupted."""

InterruptPolicy = Literal["never", "wake_only", "cancel_safe"]


class Act(Struct, frozen=True):
    """A command that an agent's own tool gives; each kind says what it holds."""


class Returned(Struct, frozen=True):
    """The tool is done; `content` goes to the model."""

    content: str


class Raised(Struct, frozen=True):
    """The tool failed in a way that the model should read and judge."""

    message: str


class Suspends(Struct, frozen=True):
    """The call is answered later; until then the turn waits and holds nothing."""

    wait: Wait


class Acts(Struct, frozen=True):
    """The tool changes what this system itself records: `act` is the command for it.

    It is decided and recorded together with the call's result, in one transaction: a call that
    a crash interrupts has done nothing yet, and is decided again.
    """

    act: Act


ToolOutcome = Returned | Raised | Suspends | Acts
