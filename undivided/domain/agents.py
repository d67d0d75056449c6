"""Deciding about an agent's life: create, configure, start, stop, pause, resume, delete."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import UNSET, Struct, UnsetType

from undivided.domain.decisions import Decision
from undivided.domain.errors import Invalid, Rejected
from undivided.domain.events import agents as a
from undivided.domain.events.catalogue import Event
from undivided.domain.events.flights import StopRequested
from undivided.domain.events.items import ItemCancelled, ItemResurfaced
from undivided.domain.pace import clamped
from undivided.domain.policy import Policy, adopt
from undivided.domain.state.agent import AgentRow, Focused, Idle, Suspended
from undivided.domain.state.item import Deferred, ItemRow, Queued

NAME_LIMIT = 200
INSTRUCTIONS_LIMIT = 100_000


class CreateAgent(Struct, frozen=True, kw_only=True):
    """Bring an agent into being; `policy` is what the caller wants different."""

    agent_id: str
    name: str
    definition: str | None = None
    model: str = "default"
    instructions: str = ""
    tools: tuple[str, ...] | None = None
    policy: Mapping[str, Any] = {}
    team_id: str | None = None
    heartbeat_interval_s: float | None = None


class ConfigureAgent(Struct, frozen=True, kw_only=True):
    """Change what is set; what is unset stays."""

    name: str | UnsetType = UNSET
    model: str | UnsetType = UNSET
    instructions: str | UnsetType = UNSET
    tools: tuple[str, ...] | UnsetType | None = UNSET
    heartbeat_interval_s: float | UnsetType | None = UNSET
    policy: Mapping[str, Any] | UnsetType = UNSET


def create(base: Policy, command: CreateAgent) -> tuple[Event, ...]:
    """The agent's first event.

    Raises:
        Invalid: a name, instructions or policy that cannot be.
    """
    _check_name(command.name)
    _check_instructions(command.instructions)
    return (
        a.AgentCreated(
            agent_id=command.agent_id,
            name=command.name,
            definition=command.definition,
            model=command.model,
            instructions=command.instructions,
            tools=command.tools,
            policy=adopt(base, dict(command.policy)),
            team_id=command.team_id,
            heartbeat_interval_s=_within(command.heartbeat_interval_s),
        ),
    )


def configure(agent: AgentRow, command: ConfigureAgent) -> tuple[Event, ...]:
    """What changes, as events; nothing where everything stays as it is."""
    _alive(agent)
    wanted = a.AgentConfigured(
        agent_id=agent.id,
        name=_or(command.name, agent.name),
        model=_or(command.model, agent.model),
        instructions=_or(command.instructions, agent.instructions),
        tools=_or(command.tools, agent.tools),
        heartbeat_interval_s=_within(_or(command.heartbeat_interval_s, agent.heartbeat_interval_s)),
    )
    _check_name(wanted.name)
    _check_instructions(wanted.instructions)
    events: list[Event] = [wanted] if wanted != _configured(agent) else []
    if not isinstance(command.policy, UnsetType):
        policy = adopt(agent.policy, dict(command.policy))
        if policy != agent.policy:
            version = agent.policy_version + 1
            events.append(a.PolicyAdopted(agent_id=agent.id, policy=policy, version=version))
    return tuple(events)


def start(agent: AgentRow) -> tuple[Event, ...]:
    """Let a stopped or paused agent work again."""
    _alive(agent)
    match agent.lifecycle:
        case "stopped":
            return (a.AgentStarted(agent_id=agent.id),)
        case "paused":
            return (a.AgentResumed(agent_id=agent.id),)
        case "started" | "deleted":
            return ()


def pause(agent: AgentRow) -> tuple[Event, ...]:
    """Let the turn at work finish, and pick nothing after it."""
    _alive(agent)
    return (a.AgentPaused(agent_id=agent.id),) if agent.lifecycle == "started" else ()


def stop(agent: AgentRow) -> tuple[Event, ...]:
    """Pick nothing more, and interrupt the turn at work; its item waits again."""
    _alive(agent)
    if agent.lifecycle == "stopped":
        return ()
    return (a.AgentStopped(agent_id=agent.id), *request_stop(agent, AGENT_STOPPED))


AGENT_STOPPED = "agent stop"
"""The `by` of a stop that comes from stopping the whole agent."""


def request_stop(agent: AgentRow, by: str) -> tuple[Event, ...]:
    """Ask the turn in focus, if there is one, to end at its next safe point."""
    match agent.attention:
        case Focused(turn_id=turn_id, stop_by=None) | Suspended(turn_id=turn_id, stop_by=None):
            return (StopRequested(agent_id=agent.id, turn_id=turn_id, by=by),)
        case Focused() | Suspended() | Idle():
            return ()


def stop_set_aside(agent: AgentRow, items: tuple[ItemRow, ...], by: str) -> tuple[Event, ...]:
    """Ask a turn that was set aside to end: it comes back for that, and its items with it."""
    aside = [one for one in items if isinstance(one.phase, Deferred | Queued)]
    turns = {one.phase.turn_id for one in aside if isinstance(one.phase, Deferred | Queued)}
    turn_id = next((turn for turn in turns if turn is not None), None)
    if turn_id is None:
        return ()
    back = tuple(
        ItemResurfaced(agent_id=agent.id, item_id=one.id, cause="person")
        for one in aside
        if isinstance(one.phase, Deferred)
    )
    asked = StopRequested(
        agent_id=agent.id, turn_id=turn_id, by=by, item_ids=tuple(one.id for one in aside)
    )
    return (asked, *back)


def delete(
    agent: AgentRow, waiting: tuple[ItemRow, ...], decision_ids: tuple[str, ...]
) -> tuple[Event, ...]:
    """End an agent for good: everything that waits or is put off is cancelled, one by one.

    Raises:
        Rejected: a turn is at work; stop the agent first.
    """
    if agent.lifecycle == "deleted":
        return ()
    if not isinstance(agent.attention, Idle):
        raise Rejected("agent_busy", f"agent {agent.id} has a turn at work; stop it first")
    back = tuple(
        ItemResurfaced(agent_id=agent.id, item_id=item.id, cause="person")
        for item in waiting
        if isinstance(item.phase, Deferred)
    )
    cancelled = tuple(
        ItemCancelled(
            agent_id=agent.id,
            item_id=item.id,
            turn_id=turn_set_aside(item),
            by=AGENT_DELETED,
            decision=Decision(
                decision_id, "cancel", "agent_deleted", "the agent was deleted",
                {"waiting": agent.waiting}, agent.policy_version,
            ),
        )
        for item, decision_id in zip(waiting, decision_ids, strict=True)
    )  # fmt: skip
    return (*back, *cancelled, a.AgentDeleted(agent_id=agent.id))


def turn_set_aside(item: ItemRow) -> str | None:
    """The turn that was set aside with a waiting item, if one was."""
    return item.phase.turn_id if isinstance(item.phase, Deferred | Queued) else None


AGENT_DELETED = "agent deletion"
"""The `by` of what ends because its agent does."""


def note(
    agent: AgentRow, held: tuple[str, ...], entry: tuple[str, str], turn_id: str | None
) -> a.MemoryNoted:
    """Write a working-memory entry; `held` are the keys there are, oldest first.

    A longer entry is cut, and the oldest keys give way where there would be too many.
    """
    key, content = entry
    others = tuple(k for k in held if k != key)
    excess = max(0, len(others) + 1 - agent.policy.working_memory_entries)
    return a.MemoryNoted(
        agent_id=agent.id,
        key=key,
        content=content[: agent.policy.working_memory_chars],
        turn_id=turn_id,
        evicted=others[:excess],
    )


def _or(wanted: Any, there: Any) -> Any:
    return there if isinstance(wanted, UnsetType) else wanted


def _within(interval_s: float | None) -> float | None:
    return None if interval_s is None else clamped(interval_s)


def _configured(agent: AgentRow) -> a.AgentConfigured:
    return a.AgentConfigured(
        agent_id=agent.id, name=agent.name, model=agent.model, instructions=agent.instructions,
        tools=agent.tools, heartbeat_interval_s=agent.heartbeat_interval_s,
    )  # fmt: skip


def _alive(agent: AgentRow) -> None:
    if agent.lifecycle == "deleted":
        raise Rejected("agent_deleted", f"agent {agent.id} was deleted; create another")


def _check_name(name: str) -> None:
    if not name.strip() or len(name) > NAME_LIMIT:
        raise Invalid(f"name must have 1 to {NAME_LIMIT} characters", "name")
    if any(c == "\x00" or "\ud800" <= c <= "\udfff" for c in name):
        raise Invalid("name must not hold NUL or lone surrogates", "name")


def _check_instructions(text: str) -> None:
    if len(text) > INSTRUCTIONS_LIMIT:
        raise Invalid(f"instructions are over {INSTRUCTIONS_LIMIT} characters", "instructions")
