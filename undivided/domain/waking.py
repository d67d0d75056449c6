"""How a wait ends: what the call that waited is answered with, and whether the turn may go on."""

from __future__ import annotations

from typing import Literal

from undivided.domain.attention import Wake
from undivided.domain.waits import Approval, Wait, approval_result


def resolution_of(wake: Wake) -> Literal["waited", "woken", "skipped", "answered"]:
    """How the call that waited is resolved."""
    match wake.cause:
        case "waited":
            return "waited"
        case "woken":
            return "woken"
        case "answered":
            return "answered"
        case "stopped":
            return "skipped"


def told_after_wait(wake: Wake, wait: Wait | None = None) -> str:
    """What the model reads as the result; what woke it is named, its content is not."""
    asked = isinstance(wait, Approval)
    match wake.cause:
        case "waited":
            return approval_result("expired") if asked else "the wait is over"
        case "woken":
            return f"woken early by a new {wake.by}, which waits in the mailbox"
        case "answered":
            return wake.answer
        case "stopped" if asked:
            return approval_result("cancelled")
        case "stopped":
            return "not waited for: the turn was asked to stop"


def patience_over(wake: Wake, wait: Wait | None) -> bool:
    """Whether nobody answered within the policy's patience, which ends the attempt.

    Whoever said when their question expires goes on without an answer.
    """
    return wake.cause == "waited" and isinstance(wait, Approval) and not wait.expires
