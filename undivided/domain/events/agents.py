"""Events of an agent's life and configuration; stream `agent:<id>`."""

from __future__ import annotations

from typing import Literal

from undivided.domain.policy import Policy
from undivided.domain.value import Value


class AgentCreated(Value, frozen=True, kw_only=True):
    """An agent came into being, started. `tools` None means every tool its context allows."""

    agent_id: str
    name: str
    definition: str | None
    model: str
    instructions: str
    tools: tuple[str, ...] | None
    policy: Policy
    team_id: str | None = None
    heartbeat_interval_s: float | None = None


class AgentConfigured(Value, frozen=True, kw_only=True):
    """Its configuration from here on, whole."""

    agent_id: str
    name: str
    model: str
    instructions: str
    tools: tuple[str, ...] | None
    heartbeat_interval_s: float | None


class PolicyAdopted(Value, frozen=True, kw_only=True):
    """Its policy from here on; decisions name `version`."""

    agent_id: str
    policy: Policy
    version: int


class AgentStarted(Value, frozen=True, kw_only=True):
    """It picks up work again."""

    agent_id: str


class AgentStopped(Value, frozen=True, kw_only=True):
    """It picks nothing up; a turn at work is interrupted and its item waits again."""

    agent_id: str


class AgentPaused(Value, frozen=True, kw_only=True):
    """It finishes the turn at work and then picks nothing up."""

    agent_id: str


class AgentResumed(Value, frozen=True, kw_only=True):
    """A paused agent picks up work again."""

    agent_id: str


class AgentDeleted(Value, frozen=True, kw_only=True):
    """It takes no more stimuli; its history stays."""

    agent_id: str


NotedBy = Literal["system", "agent"]


class MemoryNoted(Value, frozen=True, kw_only=True):
    """A working-memory entry was written; `evicted` keys gave way to it."""

    agent_id: str
    key: str
    content: str
    turn_id: str | None
    evicted: tuple[str, ...] = ()
    by: NotedBy = "system"


class MemoryCleared(Value, frozen=True, kw_only=True):
    """Entries of working memory are there no more."""

    agent_id: str
    keys: tuple[str, ...]
    turn_id: str | None


KnowledgeKind = Literal["note", "section"]


class KnowledgeSaved(Value, frozen=True, kw_only=True):
    """The agent knows something from here on: a note, or a section of what it always has in mind.

    What stood under the same key is replaced.
    """

    agent_id: str
    kind: KnowledgeKind
    key: str
    content: str
    turn_id: str | None


class KnowledgeRemoved(Value, frozen=True, kw_only=True):
    """The agent no longer knows it."""

    agent_id: str
    kind: KnowledgeKind
    key: str
    turn_id: str | None
