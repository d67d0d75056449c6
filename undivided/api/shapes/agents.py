"""An agent as the API shows it."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from undivided.api.answers import instant
from undivided.domain.policy import Policy
from undivided.domain.state.agent import AgentRow, Focused, Lifecycle

AttentionState = Literal["idle", "deciding", "focused", "suspended"]
"""`deciding`: a deliberation considers all that waits."""


class Agent(Struct, frozen=True, rename="camel", kw_only=True):
    """One agent. `policy` is the whole of it; `position` the last event about the agent."""

    id: str
    name: str
    definition: str | None
    model: str
    instructions: str
    tools: tuple[str, ...] | None
    policy: Policy
    policy_version: int
    team_id: str | None
    heartbeat_interval_s: float | None
    status: Lifecycle
    attention_state: AttentionState
    mailbox_depth: int
    created_at: str
    changed_at: str
    position: str


class AgentPage(Struct, frozen=True, rename="camel", kw_only=True):
    """Some agents, oldest first."""

    items: list[Agent]
    next_cursor: str | None
    position: str


def agent_shape(row: AgentRow, position: str) -> Agent:
    """How an agent's row is shown."""
    return Agent(
        id=row.id, name=row.name, definition=row.definition, model=row.model,
        instructions=row.instructions, tools=row.tools, policy=row.policy,
        policy_version=row.policy_version, team_id=row.team_id,
        heartbeat_interval_s=row.heartbeat_interval_s, status=row.lifecycle,
        attention_state=attention_state(row), mailbox_depth=row.waiting,
        created_at=instant(row.created_at), changed_at=instant(row.changed_at),
        position=position,
    )  # fmt: skip


def attention_state(row: AgentRow) -> AttentionState:
    """The literal by which an agent's attention is known."""
    if isinstance(row.attention, Focused) and row.attention.mode == "deliberating":
        return "deciding"
    state: AttentionState = row.attention.__struct_config__.tag  # type: ignore[assignment]
    return state
