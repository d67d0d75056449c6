"""Interrupt rules: what a waiting item does to the turn at work.

The first rule whose condition holds answers; the table is `RULES`. A rule never looks at
anything but the pair, so that the same pair always gets the same answer; what the words of a
message mean only the judge can say, and it is asked only where the rules say `continue`.

What a verdict may do depends on what is interrupted (`honoured`): nobody cuts a person off in
the middle of an answer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from msgspec import Struct

from undivided.domain.policy import Policy
from undivided.domain.protection import is_begun
from undivided.domain.state.item import ItemRow
from undivided.domain.stimuli import MENTION, StimulusType, stimulus_type

Verdict = Literal["continue", "preempt", "cancel", "merge", "defer"]
CHAT = "chat"
STREAMED = "stream"
"""The mark among a message's extras that somebody watches its reply being written."""


class Pair(Struct, frozen=True):
    """The focus and a waiting item, each with its type and the session its turn belongs to."""

    focus: ItemRow
    focus_kind: StimulusType
    focus_session: str
    new: ItemRow
    new_kind: StimulusType
    new_session: str
    policy: Policy

    @classmethod
    def of(cls, focus: tuple[ItemRow, str], new: tuple[ItemRow, str], policy: Policy) -> Pair:
        """A pair of (item, session)."""
        return cls(
            focus[0], stimulus_type(focus[0].source_type), focus[1],
            new[0], stimulus_type(new[0].source_type), new[1], policy,
        )  # fmt: skip

    @property
    def same_person(self) -> bool:
        """Whether the same known person sent both."""
        sender = self.new.sender.id
        return bool(sender) and sender == self.focus.sender.id

    @property
    def foreign_chat(self) -> bool:
        """Whether it is a person's message and the focus is not that person's own."""
        return self.new_kind.protected and not (self.focus_kind.protected and self.same_person)


class Ruling(Struct, frozen=True):
    """What a rule says about a pair, and which."""

    verdict: Verdict
    rule: str


Rule = Callable[[Pair], Verdict | None]


def steered(pair: Pair) -> Verdict | None:
    """An item that was sent to steer enters the turn of its session, or waits."""
    if pair.new.delivery != "steer":
        return None
    here = pair.new.session_id is None or pair.new_session == pair.focus_session
    return "merge" if here else "continue"


def on_user_message(pair: Pair) -> Verdict | None:
    """A person's message does what the policy says, if that is not `merge`."""
    if not pair.new_kind.protected:
        return None
    match pair.policy.on_user_message:
        case "merge":
            return None
        case "steer":
            return "continue" if pair.focus_kind.protected and not pair.same_person else "merge"
        case "queue":
            return "continue"
        case "preempt":
            return "preempt"
        case "abort":
            return "cancel"


def r0a(pair: Pair) -> Verdict | None:
    """The same person writes again in the same conversation."""
    return "merge" if _again(pair) and pair.new_session == pair.focus_session else None


def r0b(pair: Pair) -> Verdict | None:
    """The same person writes in another conversation."""
    return "continue" if _again(pair) else None


def _again(pair: Pair) -> bool:
    return pair.new_kind.protected and pair.focus_kind.protected and pair.same_person


def r1(pair: Pair) -> Verdict | None:
    """A person comes before any other work."""
    return "preempt" if pair.new_kind.protected and not pair.focus_kind.protected else None


def r1_5(pair: Pair) -> Verdict | None:
    """A peer's message comes before background work."""
    if not _of_peer(pair.new_kind) or pair.focus_kind.protected or _of_peer(pair.focus_kind):
        return None
    background = pair.focus_kind.category == "system" or pair.focus.priority >= pair.new.priority
    return "preempt" if background else None


def r2(pair: Pair) -> Verdict | None:
    """A comment on the task at work."""
    if pair.new_kind.merges_by != "taskId" or not pair.new.payload.task_id:
        return None
    return "merge" if pair.new.payload.task_id == pair.focus.payload.task_id else None


def r3(pair: Pair) -> Verdict | None:
    """News of the requirement at work."""
    kind, requirement = pair.new_kind, pair.new.payload.requirement_id
    about = kind.merges_by == "requirementId" or kind.scenario == "requirement_action"
    if not about or not requirement:
        return None
    return "merge" if requirement == pair.focus.payload.requirement_id else None


def r1_comment(pair: Pair) -> Verdict | None:
    """A person's comment comes before any work but a person's chat."""
    by_person = pair.new_kind.is_comment and pair.new.sender.role == "user"
    return "preempt" if by_person and not pair.focus_kind.protected else None


def r4(pair: Pair) -> Verdict | None:
    """What is critical comes before what is not."""
    return "preempt" if pair.new.priority <= 0 < pair.focus.priority else None


def r6(pair: Pair) -> Verdict | None:
    """The better priority comes first."""
    return "preempt" if pair.new.priority < pair.focus.priority else None


def r8(pair: Pair) -> Verdict | None:
    """Background work gives way to its equals."""
    equal = pair.new.priority == pair.focus.priority
    return "preempt" if equal and pair.focus_kind.category == "system" else None


def r9(pair: Pair) -> Verdict | None:
    """Being named comes before ordinary work."""
    return "preempt" if pair.new.source_type == MENTION and pair.focus.priority >= 2 else None


def _of_peer(kind: StimulusType) -> bool:
    return kind.is_channel_message


RULES: tuple[tuple[str, Rule], ...] = (
    ("steered", steered),
    ("on_user_message", on_user_message),
    ("R0a", r0a),
    ("R0b", r0b),
    ("R1", r1),
    ("R1.5", r1_5),
    ("R2", r2),
    ("R3", r3),
    ("R1_comment", r1_comment),
    ("R4", r4),
    ("R6", r6),
    ("R8", r8),
    ("R9", r9),
)
"""Every rule with its name, in the order in which they are asked."""
OTHERWISE = Ruling("continue", "otherwise")
JUDGE = "judge"


def heuristic(pair: Pair) -> Ruling:
    """What the first rule that has something to say about a pair says."""
    for name, rule in RULES:
        verdict = rule(pair)
        if verdict is not None:
            return Ruling(_possible(pair, verdict), name)
    return OTHERWISE


def _possible(pair: Pair, verdict: Verdict) -> Verdict:
    """`verdict`, but that an item whose own turn was set aside waits for that to go on."""
    return "continue" if verdict == "merge" and is_begun(pair.new) else verdict


def judged(pair: Pair, verdict: Verdict) -> Ruling:
    """What a judge's word comes to: another person's message is never put off or merged away."""
    if verdict in ("merge", "defer") and pair.foreign_chat:
        return Ruling("continue", JUDGE)
    return Ruling(_possible(pair, verdict), JUDGE)


class Weighing(Struct, frozen=True):
    """The candidate that a yield point is about, what was ruled, and whom it was preferred to."""

    candidate: ItemRow
    ruling: Ruling
    others: tuple[ItemRow, ...]


def weigh(pairs: tuple[Pair, ...]) -> Weighing | None:
    """The best candidate of which a rule says more than `continue`; else the best of all.

    `pairs` are about items that were not weighed against this turn before, best first.
    """
    if not pairs:
        return None
    rulings = tuple(heuristic(pair) for pair in pairs)
    telling = (n for n, ruling in enumerate(rulings) if ruling.verdict != "continue")
    chosen = next(telling, 0)
    others = tuple(pair.new for n, pair in enumerate(pairs) if n != chosen)
    return Weighing(pairs[chosen].new, rulings[chosen], others)


def left_waiting(pairs: tuple[Pair, ...], has_judge: bool) -> tuple[Weighing, ...]:
    """All of `pairs`, if the turn simply goes on whatever of them is looked at.

    Then there is nothing to ask a judge about and nothing to do, and one append says so of all.
    """
    rulings = tuple(heuristic(pair) for pair in pairs)
    if any(one.verdict != "continue" or (has_judge and one == OTHERWISE) for one in rulings):
        return ()
    items = tuple(pair.new for pair in pairs)
    return tuple(
        Weighing(item, ruling, tuple(other for other in items if other is not item))
        for item, ruling in zip(items, rulings, strict=True)
    )


def honoured(scenario: str, streamed: bool, ruling: Ruling) -> bool:
    """Whether a turn of `scenario` does what was ruled, or goes on and leaves it for afterwards.

    A person who waits for an answer gets it: only a merge reaches a chat, and a cancel one that
    is streamed. What the agent's own policy asks for is done anyway.
    """
    if ruling.verdict not in ("preempt", "cancel") or scenario != CHAT:
        return True
    return ruling.rule == "on_user_message" or (streamed and ruling.verdict == "cancel")


def while_waiting(pairs: tuple[Pair, ...]) -> Weighing | None:
    """The best of `pairs` for which a turn that waits for a person is set aside, if any is.

    Such a turn may wait for days, so that it lets any person's message pass, whatever it is
    about, and all that would preempt it at work.
    """
    for n, pair in enumerate(pairs):
        ruling = heuristic(pair)
        if pair.new_kind.protected and ruling.verdict != "preempt":
            ruling = Ruling("preempt", "person_while_waiting")
        if ruling.verdict == "preempt":
            others = tuple(other.new for m, other in enumerate(pairs) if m != n)
            return Weighing(pair.new, ruling, others)
    return None


def live_update(item: ItemRow, content: str) -> str:
    """What a running turn is told about an item that was merged into it."""
    summary = item.payload.summary
    return f"{summary}\n\n{content}" if summary else content


def skips_rest(rulings: tuple[Pair, ...], scenario: str) -> bool:
    """Whether the calls of a batch that have not begun are skipped: only for a preemption."""
    weighing = weigh(rulings)
    if weighing is None or weighing.ruling.verdict != "preempt":
        return False
    return honoured(scenario, False, weighing.ruling)
