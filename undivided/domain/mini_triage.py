"""Mini triage: choosing by one question to a model, where a whole deliberation is too much.

The model may look things up a few times and answers with a JSON object. Its answer is checked
like a plan, only more kindly: what it gets wrong costs nothing but the choice, and then order
decides. The conversation is a state machine that a worker drives: `heard` says what is next.
"""

from __future__ import annotations

import json
import re
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from undivided.domain.deliberation_prompt import CONTENT_CUT, ITEMS_TOLD, age, level
from undivided.domain.dialogue import AssistantSaid
from undivided.domain.merging import summary_with
from undivided.domain.plans import Plan
from undivided.domain.state.agent import AgentRow
from undivided.domain.state.item import ItemRow
from undivided.domain.state.session import ActivityRow, DecisionRow
from undivided.domain.state.view import AgentView
from undivided.domain.turn import TurnState

ROUNDS = 6
MESSAGES_TOLD, MESSAGE_CUT = 20, 2000
ACTIVITIES_TOLD = DECISIONS_TOLD = 5
MAX_TOKENS, TEMPERATURE = 8192, 0.1

MINI_TOOLS = frozenset((
    "task_list", "task_get", "requirement_list", "requirement_get", "list_projects", "team_list",
    "team_status", "recall_activity", "memory_search", "memory_search_longterm", "check_mailbox",
))  # fmt: skip
"""What a mini triage may use: it only looks."""

MINI_TRIAGE = "mini_triage"
"""The origin of a turn that is one."""

ANSWER = (
    'I answer with one JSON object: {"processItemId": "...", "deferItemIds": [], '
    '"dropItemIds": [], "reasoning": "..."}. Every candidate is in one of the three.'
)


class Choice(Struct, frozen=True):
    """What the model answered; ids that were no candidates are left out."""

    process: str
    defer: tuple[str, ...]
    drop: tuple[str, ...]
    reasoning: str

    def orphans(self, candidates: tuple[str, ...]) -> tuple[str, ...]:
        """The candidates that it says nothing about."""
        named = {self.process, *self.defer, *self.drop}
        return tuple(one for one in candidates if one not in named)

    def plan(self) -> Plan:
        """The same as a plan; what is named twice is processed, else put off."""
        defer = tuple(one for one in self.defer if one != self.process)
        drop = tuple(one for one in self.drop if one not in (self.process, *defer))
        return Plan(process=(self.process,), defer=defer, drop=drop, reasoning=self.reasoning)


class MiniTriage(Struct, frozen=True):
    """How far it has come: rounds of look-ups, and a first answer that is being corrected."""

    candidates: tuple[str, ...]
    rounds: int = 0
    first: Choice | None = None

    @property
    def may_look(self) -> bool:
        """Whether the next request offers tools."""
        return self.rounds < ROUNDS and self.first is None


class Look(Struct, frozen=True):
    """Run the calls and ask again, with the results."""


class Correct(Struct, frozen=True):
    """Ask once more, without tools, with this said."""

    content: str


class Settled(Struct, frozen=True):
    """It is over; without a choice the head is picked."""

    choice: Choice | None


def heard(state: MiniTriage, text: str, calls: bool) -> tuple[MiniTriage, Look | Correct | Settled]:
    """What follows from a response; `calls` says whether it asked for tools."""
    if calls and state.may_look:
        return replace(state, rounds=state.rounds + 1), Look()
    choice = parsed(text, state.candidates)
    if state.first is not None:
        return state, Settled(_better(state.first, choice, state.candidates))
    if choice is None:
        return state, Settled(None)
    orphans = choice.orphans(state.candidates)
    if not orphans:
        return state, Settled(choice)
    return replace(state, first=choice), Correct(
        f"You did not say what becomes of {', '.join(orphans)}. Answer once more with the whole "
        "object; every item is in exactly one of processItemId, deferItemIds and dropItemIds."
    )


def of_turn(state: TurnState, candidates: tuple[str, ...]) -> MiniTriage:
    """How far a turn has come that is a mini triage."""
    rounds = sum(bool(one.calls) for one in state.said if isinstance(one, AssistantSaid))
    first = parsed(state.replies[0], candidates) if state.nudges and state.replies else None
    return MiniTriage(candidates, rounds, first)


def nudged(state: TurnState, candidates: tuple[str, ...]) -> str | None:
    """What is asked once more after the turn's last reply; None if it is over."""
    if state.nudges or not state.replies:
        return None
    _, then = heard(MiniTriage(candidates), state.replies[-1], calls=False)
    return then.content if isinstance(then, Correct) else None


def plan_of(state: TurnState, candidates: tuple[str, ...]) -> Plan | None:
    """The plan in the replies of a turn that is over; the better of two."""
    choices = [parsed(text, candidates) for text in state.replies[:2]]
    if not choices or choices[0] is None:
        return None
    best = choices[0] if len(choices) == 1 else _better(choices[0], choices[1], candidates)
    return best.plan()


def _better(first: Choice, second: Choice | None, candidates: tuple[str, ...]) -> Choice:
    if second is None or len(second.orphans(candidates)) >= len(first.orphans(candidates)):
        return first
    return second


def parsed(text: str, candidates: tuple[str, ...]) -> Choice | None:
    """The choice in a response; None where there is no valid one."""
    plain = re.sub(r"<think>.*?</think>", "", text, flags=re.DOTALL)
    plain = re.sub(r"<think>.*", "", plain, flags=re.DOTALL)
    begin, end = plain.find("{"), plain.rfind("}")
    if begin < 0 or end < begin:
        return None
    try:
        said = json.loads(plain[begin : end + 1])
    except (ValueError, RecursionError):
        return None
    process, reasoning = said.get("processItemId"), said.get("reasoning")
    if not (isinstance(process, str) and isinstance(reasoning, str) and reasoning):
        return None
    if process not in candidates:
        return None
    defer, drop = _known(said, "deferItemIds", candidates), _known(said, "dropItemIds", candidates)
    return Choice(process, defer, drop, reasoning)


def _known(said: dict[str, Any], field: str, candidates: tuple[str, ...]) -> tuple[str, ...]:
    ids = said.get(field)
    if not isinstance(ids, list):
        return ()
    return tuple(one for one in candidates if one in ids)


class Surroundings(Struct, frozen=True):
    """What the agent knows of its situation: the newest come last."""

    messages: tuple[str, ...] = ()
    activities: tuple[ActivityRow, ...] = ()
    tasks: tuple[str, ...] = ()
    decisions: tuple[DecisionRow, ...] = ()


def mini_prompt(view: AgentView, items: tuple[ItemRow, ...], around: Surroundings) -> str:
    """The one question of a mini triage: the agent, its situation, and the candidates."""
    agent = view.agent
    return "\n\n".join((
        *_who(agent),
        _section("Recent messages", [m[:MESSAGE_CUT] for m in around.messages[-MESSAGES_TOLD:]]),
        _section("Recent activities", [a.summary for a in around.activities[-ACTIVITIES_TOLD:]]),
        _section("Active tasks", list(around.tasks)),
        _section("Recent decisions", [
            f"{d.type} ({d.rule}): {d.reasoning}" for d in around.decisions[-DECISIONS_TOLD:]
        ]),
        _section("Items per task", _per_task(items)),
        _section("Candidates", [_candidate(item, view) for item in items[:ITEMS_TOLD]]),
        *([f"{len(items) - ITEMS_TOLD} more wait."] if len(items) > ITEMS_TOLD else []),
        ANSWER,
    ))  # fmt: skip


def _who(agent: AgentRow | None) -> tuple[str, ...]:
    if agent is None:
        return ()
    return tuple(text for text in (f"I am {agent.name}.", agent.instructions) if text)


def _section(title: str, lines: list[str]) -> str:
    return "\n".join((f"## {title}", *(f"- {line}" for line in lines or ["none"])))


def _per_task(items: tuple[ItemRow, ...]) -> list[str]:
    tasks = [item.payload.task_id for item in items if item.payload.task_id]
    return [f"{task}: {tasks.count(task)}" for task in dict.fromkeys(tasks)]


def _candidate(item: ItemRow, view: AgentView) -> str:
    waited = age((view.now - item.queued_at).total_seconds())
    return (
        f"{item.id} ({item.source_type}, {level(item.priority)}, {waited}): "
        f"{summary_with(item)}\n{item.payload.content[:CONTENT_CUT]}"
    )
