"""Policy: the frozen set of parameters by which one agent attends.

Every field is a public parameter (camelCase in JSON); an agent's policy is recorded as an
event with its version, and every decision names the version that it was made under.
"""

from __future__ import annotations

import re
from typing import Any, Literal

import msgspec

from undivided.domain.errors import Invalid
from undivided.domain.pace import SHORTEST_S
from undivided.domain.scenarios import HEARTBEAT
from undivided.domain.value import Value

JUDGE_OFF = "off"
_TIME_OF_DAY = re.compile(r"([01]\d|2[0-3]):[0-5]\d")


class Policy(Value, frozen=True, rename="camel", kw_only=True):
    """How one agent attends; defaults are those of the reference documents.

    `on_user_message` and `intake`: what a person's message does to a turn at work, and how
    waiting mail enters a turn. `coalesce_window_ms`: how long a mergeable head is held back.
    `processing_timeout_s`: backstop of one attempt, without the time spent suspended;
    `approval_wait_timeout_s`: the same while a person is asked. `item_max_retries`: attempts
    after an empty reply; `timeout_max_retries`: attempts after a backstop.
    `max_delivery_attempts`: attempts in all before the dead letter, spaced by
    `retry_backoff_s` (the last one repeats). `mailbox_capacity`: waiting items before 429.
    `max_tool_iterations`: model requests of one turn. `tool_timeout_s`: one tool call.
    `history_max_messages` and `history_max_tokens`: what of a session a model is shown.
    `stale_after_s`: what waits longer and has lost its point goes; `queued_ttl_s`: whatever waits
    longer is given up.
    `judge_model`: the profile of the interrupt judge; empty means the profile `judge` if there is
    one, else the agent's own, and `off` none.
    `triage`: how an agent that has several things to do chooses: in a deliberation of its own, by
    one short question to the model, or always by priority.
    `working_memory_entries`, `working_memory_chars`: the newest entries win; longer ones are
    cut.
    `heartbeat`: whether the agent's heart beats. `active_hours_start` and `active_hours_end`: the
    hours of the day, as `HH:MM` in `timezone`, in which it does; empty means at any hour.
    `heartbeat_max_tool_iterations`: model requests of such a turn, if others may have more.
    `daily_report_at`: the time of day at which the agent is asked for a report; empty means never.
    `memory_consolidation_s`: how often it goes over what it remembers, if anything came; 0 means
    never.
    """

    on_user_message: Literal["merge", "steer", "queue", "preempt", "abort"] = "merge"
    intake: Literal["focus", "drain"] = "focus"
    coalesce_window_ms: int = 200
    processing_timeout_s: float = 45 * 60
    approval_wait_timeout_s: float = 24 * 3600
    item_max_retries: int = 2
    timeout_max_retries: int = 2
    triage_backlog_threshold: int = 2
    max_user_turn_burst: int = 4
    max_inbox_wait_s: float = 30
    max_delivery_attempts: int = 8
    retry_backoff_s: tuple[float, ...] = (1, 5, 30, 120, 600)
    mailbox_capacity: int = 10_000
    max_tool_iterations: int = 200
    tool_timeout_s: float = 300
    history_max_messages: int = 80
    history_max_tokens: int = 24_000
    working_memory_entries: int = 64
    working_memory_chars: int = 6_000
    judge_model: str = ""
    stale_after_s: float = 4 * 3600
    queued_ttl_s: float = 3 * 24 * 3600
    triage: Literal["deliberation", "mini", "off"] = "deliberation"
    heartbeat: bool = True
    active_hours_start: str = ""
    active_hours_end: str = ""
    timezone: str = "UTC"
    daily_report_at: str = ""
    memory_consolidation_s: float = 4 * 3600
    heartbeat_max_tool_iterations: int = 30


DEFAULT_POLICY = Policy()


def iterations_of(policy: Policy, scenario: str) -> int:
    """How many model requests a turn may make; 0 means any number."""
    own = policy.heartbeat_max_tool_iterations if scenario == HEARTBEAT else 0
    return min((n for n in (policy.max_tool_iterations, own) if n), default=0)


LARGEST = 2_147_483_647
"""What no parameter exceeds; as seconds 68 years, to which a time can still be added."""


def adopt(base: Policy, wanted: dict[str, Any]) -> Policy:
    """`base` with the parameters in `wanted` (camelCase) put over it.

    Raises:
        Invalid: an unknown parameter, a wrong type or a value out of range.
    """
    known = msgspec.to_builtins(base)
    unknown = sorted(set(wanted) - set(known))
    if unknown:
        raise Invalid(f"policy: unknown {unknown[0]!r}; one of: {', '.join(known)}", "policy")
    merged = {**known, **wanted}
    try:
        policy = msgspec.convert(merged, Policy)
    except msgspec.ValidationError as error:
        raise Invalid(f"policy: {error}", "policy") from error
    _in_range(policy)
    _on_the_clock(policy)
    return policy


def _in_range(policy: Policy) -> None:
    names = zip(policy.__struct_fields__, policy.__struct_encode_fields__, strict=True)
    for field, public in names:
        value = getattr(policy, field)
        for number in value if isinstance(value, tuple) else (value,):
            if isinstance(number, (int, float)) and not 0 <= number <= LARGEST:
                raise Invalid(f"policy: {public} must be 0 to {LARGEST}, got {number}", "policy")
    if policy.mailbox_capacity < 1 or policy.max_delivery_attempts < 1:
        raise Invalid(
            "policy: mailboxCapacity and maxDeliveryAttempts must be at least 1", "policy"
        )
    if not policy.retry_backoff_s:
        raise Invalid("policy: retryBackoffS needs one or more waits", "policy")


def _on_the_clock(policy: Policy) -> None:
    times = {
        "activeHoursStart": policy.active_hours_start, "activeHoursEnd": policy.active_hours_end,
        "dailyReportAt": policy.daily_report_at,
    }  # fmt: skip
    for public, text in times.items():
        if text and not _TIME_OF_DAY.fullmatch(text):
            raise Invalid(f"policy: {public} must be HH:MM or empty, got {text[:20]!r}", "policy")
    if bool(policy.active_hours_start) != bool(policy.active_hours_end):
        raise Invalid("policy: activeHoursStart and activeHoursEnd come together", "policy")
    if 0 < policy.memory_consolidation_s < SHORTEST_S:
        raise Invalid(
            f"policy: memoryConsolidationS must be 0 or at least {SHORTEST_S:g}", "policy"
        )
