"""What a suspended turn can wait for. A wait holds no worker, permit or connection."""

from __future__ import annotations

import json
from typing import Literal

from undivided.domain.value import Value


class Sleep(Value, frozen=True, tag="sleep", tag_field="kind"):
    """The turn asked to rest for `seconds`; a timer or a new stimulus ends it."""

    seconds: float


class Approval(Value, frozen=True, tag="approval", tag_field="kind"):
    """The turn asked a person; their answer ends it, or its expiry after `seconds`."""

    approval_id: str
    seconds: float
    expires: bool
    """Whether the one who asked said when it expires; else the policy's patience ends it."""


Wait = Sleep | Approval


def approval_result(
    status: Literal["ok", "expired", "cancelled"],
    approved: bool = False,
    selected_option: str = "",
    comment: str = "",
) -> str:
    """What the model that asked a person reads in the end; only an answer can approve."""
    told = {
        "status": status, "approved": approved, "selected_option": selected_option,
        "comment": comment,
    }  # fmt: skip
    return json.dumps(told, ensure_ascii=False)
