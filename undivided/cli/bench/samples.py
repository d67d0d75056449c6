"""The events and agents that the benchmark works with: small, ordinary ones."""

from __future__ import annotations

from undivided.domain.dialogue import Usage
from undivided.domain.events.agents import AgentCreated
from undivided.domain.events.catalogue import Event
from undivided.domain.events.items import Payload, Sender, StimulusAccepted
from undivided.domain.events.sessions import ModelResponded
from undivided.domain.mailbox import Accept
from undivided.domain.policy import DEFAULT_POLICY
from undivided.domain.recorded import Meta, agent_stream
from undivided.domain.stimuli import HUMAN_CHAT
from undivided.store.codec import encode, encode_event, name_of
from undivided.store.commands.accepting import accept_stimuli
from undivided.store.commands.outlet import Outlet
from undivided.store.doorbell import Doorbell
from undivided.store.fresh import fresh_event_id, fresh_id
from undivided.store.hints import Hints
from undivided.store.log import Addition, Log

SAID = "Is the build of yesterday evening green again, and who has looked at it?"
ANSWERED = "It is green since 18:40; the cache was stale, and Ines has cleared it."
META = Meta(actor="user:bench", causation=fresh_event_id(), correlation=fresh_event_id())
_NOWHERE = "redis://127.0.0.1"
BATCH = 100
"""Agents made in one append."""
UNBOUNDED = 2_000_000
"""A mailbox capacity that no row of the benchmark reaches."""


def response(turn_id: str, step: int, epoch: int = 1) -> ModelResponded:
    """One model response, as a step of a turn."""
    return ModelResponded(
        turn_id=turn_id,
        step=step,
        text=ANSWERED,
        calls=(),
        usage=Usage(input_tokens=412, output_tokens=23, requests=1),
        model="script:bench",
        epoch=epoch,
    )


def stimulus(said: str = SAID) -> Accept:
    """One chat message for a mailbox."""
    return Accept(
        item_id=fresh_id("mbx"),
        source_type=HUMAN_CHAT,
        payload=Payload(said),
        sender=Sender("u-17", "Ines", "user"),
    )


def created(agent_id: str, model: str = "default") -> AgentCreated:
    """A new agent whose mailbox does not fill up."""
    policy = type(DEFAULT_POLICY)(mailbox_capacity=UNBOUNDED)
    return AgentCreated(
        agent_id=agent_id,
        name="Bench",
        definition=None,
        model=model,
        instructions="Answer in one sentence.",
        tools=None,
        policy=policy,
    )


def accepted(agent_id: str, said: str = SAID) -> StimulusAccepted:
    """What accepting the first stimulus of an agent leaves in the log."""
    command = stimulus(said)
    return StimulusAccepted(
        agent_id=agent_id,
        item_id=command.item_id,
        seq=1,
        source_type=command.source_type,
        priority=0,
        payload=command.payload,
        sender=command.sender,
        delivery=command.delivery,
    )


async def new_agent(log: Log, model: str = "default") -> str:
    """Create an agent; answers its id."""
    agent_id = fresh_id("agt")
    await log.append([Addition(agent_stream(agent_id), 0, (created(agent_id, model),))], META)
    return agent_id


async def new_agents(log: Log, count: int, said: str, model: str) -> list[str]:
    """Create agents that each have one message waiting; nobody is told."""
    agent_ids = [fresh_id("agt") for _ in range(count)]
    for first in range(0, count, BATCH):
        additions = [
            Addition(agent_stream(one), 0, (created(one, model), accepted(one, said)))
            for one in agent_ids[first : first + BATCH]
        ]
        await log.append(additions, META)
    return agent_ids


def deaf(log: Log) -> Outlet:
    """The way by which the API accepts, with nobody to tell: what is not started sends nothing."""
    return Outlet(log, Doorbell(_NOWHERE, "bench"), Hints(_NOWHERE, "bench"))


async def accept_one(outlet: Outlet, agent_id: str) -> None:
    """Accept one stimulus in process: decide, append, fold, commit."""
    await accept_stimuli(outlet, agent_id, [stimulus()], META)


def stored(event: Event) -> tuple[str, str, str]:
    """An event as its row holds it: name, data, meta."""
    data, _ = encode_event(event)
    return name_of(event)[0], data.decode(), encode(META).decode()
