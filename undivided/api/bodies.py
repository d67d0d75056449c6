"""The bodies that commands take. Unknown fields are refused; names and ids are checked here."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from undivided.domain.errors import Invalid
from undivided.domain.ids import checked_id
from undivided.domain.policy import LARGEST
from undivided.store.codec import ESCAPE

BATCH = 1_000
TOOLS = 1_000


def _id(text: str) -> str:
    try:
        return checked_id(text, "id")
    except Invalid:
        raise ValueError("must be 1 to 128 letters, digits, '.', '_' or '-'") from None


def _name(text: str) -> str:
    if any(c in "\x00" + ESCAPE or "\ud800" <= c <= "\udfff" for c in text):
        raise ValueError("a name must not hold NUL or lone surrogates")
    return text


Id = Annotated[str, AfterValidator(_id)]
Name = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_name)]


class Body(BaseModel):
    """What every body has in common."""

    model_config = ConfigDict(
        extra="forbid", alias_generator=to_camel, allow_inf_nan=False, strict=True
    )


class NewAgent(Body):
    """A new agent; what is left out has its default."""

    id: Id | None = None
    name: Name
    definition: Id | None = None
    model: Name = "default"
    instructions: str = ""
    tools: Annotated[list[Name], Field(max_length=TOOLS)] | None = None
    policy: dict[str, Any] = {}
    team_id: Id | None = None
    heartbeat_interval_s: Annotated[float, Field(gt=0, le=LARGEST)] | None = None


class AgentChanges(Body):
    """What is to change about an agent; what is left out stays."""

    name: Name = ""
    model: Name = ""
    instructions: str = ""
    tools: Annotated[list[Name], Field(max_length=TOOLS)] | None = None
    policy: dict[str, Any] = {}
    heartbeat_interval_s: Annotated[float, Field(gt=0, le=LARGEST)] | None = None


class StimulusPayload(Body):
    """What a stimulus says; `extra` is the producer's own."""

    summary: Annotated[str, Field(max_length=2_000)] = ""
    content: str
    task_id: Id | None = None
    requirement_id: Id | None = None
    extra: dict[str, Any] = {}


class StimulusMetadata(Body):
    """Who sends a stimulus."""

    sender_id: Name | None = None
    sender_name: Name | None = None
    sender_role: Literal["user", "agent", "system"] | None = None


class NewStimulus(Body):
    """A stimulus for an agent's mailbox."""

    source_type: str
    payload: StimulusPayload
    metadata: StimulusMetadata = StimulusMetadata()
    priority: Annotated[int, Field(ge=0, le=4)] | None = None
    delivery: Literal["queue", "steer"] = "queue"
    session_id: Id | None = None


class Batch(Body):
    """Stimuli that are accepted together, in order, or not at all."""

    items: Annotated[list[NewStimulus], Field(min_length=1, max_length=BATCH)]


class NewMessage(Body):
    """What a person says to an agent."""

    text: str
    sender_id: Name | None = None
    sender_name: Name | None = None
    session_id: Id | None = None


class ApprovalAnswer(Body):
    """What a person says to a request for approval."""

    approved: bool
    selected_option: Annotated[str, Field(max_length=1_000)] | None = None
    comment: Annotated[str, Field(max_length=100_000)] | None = None
