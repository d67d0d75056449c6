"""What is said between an agent and its model: messages, tool calls, usage.

This is our own vocabulary; `workers/model.py` translates it to and from a provider's.
"""

from __future__ import annotations

from typing import Any

from undivided.domain.value import Value


class ToolCall(Value, frozen=True):
    """A model's wish to have one tool run; `id` is unique within its session."""

    id: str
    tool: str
    args: dict[str, Any]


class UserSaid(Value, frozen=True, tag="user"):
    """Something put to the agent: the focus of a turn, or a live update."""

    content: str


class AssistantSaid(Value, frozen=True, tag="assistant"):
    """One model response, with the tool calls it asked for."""

    content: str
    calls: tuple[ToolCall, ...] = ()


class ToolAnswered(Value, frozen=True, tag="tool"):
    """The one result of one tool call."""

    call_id: str
    tool: str
    content: str


Said = UserSaid | AssistantSaid | ToolAnswered


class Usage(Value, frozen=True):
    """What model requests consumed, in tokens; `cost` only where a price is configured."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_tokens: int = 0
    requests: int = 0
    cost: float | None = None

    def plus(self, other: Usage) -> Usage:
        """The sum of both; a cost is known as soon as one of them is."""
        known = [cost for cost in (self.cost, other.cost) if cost is not None]
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cache_tokens + other.cache_tokens,
            self.requests + other.requests,
            sum(known) if known else None,
        )


class ToolSpec(Value, frozen=True):
    """A tool as a model sees it; `parameters` is a JSON schema of an object."""

    name: str
    description: str
    parameters: dict[str, Any]


class ModelRequest(Value, frozen=True):
    """Everything a model may know when it is asked for one response.

    `step` counts the model requests of this turn from 0, `turn_index` the turns of this
    session from 0, `response_index` the model responses of this session from 0; all are
    folded from the log, so that they are the same after a crash. `temperature` and `max_tokens`
    hold where the model's profile says nothing of them.
    """

    agent_id: str
    definition: str | None
    scenario: str
    profile: str
    instructions: str
    history: tuple[Said, ...]
    tools: tuple[ToolSpec, ...]
    turn_id: str
    session_id: str
    turn_index: int
    step: int
    newest_input: str
    response_index: int = 0
    temperature: float | None = None
    max_tokens: int | None = None


class ModelReply(Value, frozen=True):
    """One model response: text, tool calls, or both."""

    text: str
    calls: tuple[ToolCall, ...] = ()
    usage: Usage = Usage()
    model: str = ""
