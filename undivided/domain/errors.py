"""Errors in families by what the caller can do about them.

The text of an error says what was asked, what is true and what to do. Expected endings (a
cancelled turn, a tool that failed) are not errors but values that the caller must match.
"""

from __future__ import annotations

from typing import Literal


class Undivided(Exception):
    """The root of every error this product raises on purpose."""

    code = "error"


class NotFound(Undivided):
    """What was asked for does not exist; asking again will not help."""

    code = "not_found"


class Rejected(Undivided):
    """A rule refuses the command as things stand; `code` names the rule."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code


class Invalid(Undivided):
    """What was asked is malformed; `field` says where."""

    code = "invalid"

    def __init__(self, text: str, field: str = "") -> None:
        super().__init__(text)
        self.field = field


class TooLarge(Invalid):
    """The content is over its limit."""

    code = "too_large"


class Full(Undivided):
    """A bounded place has no room now; try again after `retry_after_s` seconds."""

    code = "mailbox_full"

    def __init__(self, text: str, retry_after_s: int = 1) -> None:
        super().__init__(text)
        self.retry_after_s = retry_after_s


class Conflict(Undivided):
    """Somebody else appended first: read again, decide again."""

    code = "conflict"

    def __init__(self, stream: str, expected: int, actual: int) -> None:
        super().__init__(
            f"stream {stream} was expected at version {expected} but is at {actual}; "
            "read it again and decide again"
        )
        self.stream, self.expected, self.actual = stream, expected, actual


class StaleFlight(Undivided):
    """The flight that wrote this has lost its agent to a newer epoch; its turn must stop."""

    code = "stale_flight"

    def __init__(self, agent_id: str, epoch: int) -> None:
        super().__init__(f"flight epoch {epoch} of agent {agent_id} is over; a newer one holds it")
        self.agent_id, self.epoch = agent_id, epoch


class Unavailable(Undivided):
    """A dependency is down; the same call may succeed later."""

    code = "unavailable"


class Corrupt(Undivided):
    """Stored data contradicts itself; an operator has to look."""

    code = "corrupt"


FailureKind = Literal["timeout", "rate_limited", "server_error", "refused", "malformed"]


class ModelFailed(Undivided):
    """A model did not answer; `kind` says how, `detail` what is known about it."""

    code = "model_failed"

    def __init__(self, kind: FailureKind, detail: str) -> None:
        super().__init__(f"{kind}: {detail}")
        self.kind: FailureKind = kind
        self.detail = detail
