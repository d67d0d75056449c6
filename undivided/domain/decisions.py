"""A decision: what attention chose, and the rule and inputs that chose it."""

from __future__ import annotations

from typing import Literal

from undivided.domain.value import Value

DecisionType = Literal[
    "pick", "continue", "preempt", "cancel", "defer", "merge", "delegate", "drop", "complete",
    "triage", "requeue", "dead_letter", "wake",
]  # fmt: skip
"""`delegate` is kept for a later use: a judge that says so is read as `continue`."""


class Decision(Value, frozen=True):
    """Part of the event that carries it out.

    `inputs` are the facts that the rule looked at, `losers` the items it passed over (the
    best ten at most), `policy_version` the version of the agent's policy it was made under.
    """

    id: str
    type: DecisionType
    rule: str
    reasoning: str
    inputs: dict[str, str | int | float | bool | None]
    policy_version: int
    losers: tuple[str, ...] = ()
