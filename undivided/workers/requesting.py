"""What a model is asked: the conversation so far, what the agent has in mind, and its tools."""

from __future__ import annotations

from undivided.domain.context import InMind, instructions
from undivided.domain.dialogue import ModelRequest
from undivided.domain.history import begun_by_agent, provider_history
from undivided.domain.marker import instructed
from undivided.domain.scenarios import COMMENT_RESPONSE
from undivided.store.database import Database
from undivided.store.flights import Flight
from undivided.store.queries.comments import newest_comment
from undivided.store.queries.knowledge import in_mind
from undivided.store.steps import said_before
from undivided.workers.deliberating import sampling
from undivided.workers.tools.tool import Tool

FIRST_TURN = 2
"""The version of a turn's start in a session where nothing was said before."""


async def request(
    database: Database, flight: Flight, step: int, offered: tuple[Tool, ...]
) -> ModelRequest:
    """The request for response number `step` of a turn."""
    agent, turn, policy = flight.agent, flight.turn, flight.agent.policy
    said, mind, about = flight.state.said, InMind(), flight.item
    earlier = turn.first_version > FIRST_TURN
    several = turn.scenario == COMMENT_RESPONSE and about.merged > 0
    if earlier or agent.remembers or several:
        async with database.connection() as connection:
            if earlier:
                before = await said_before(
                    connection, turn.session_id, turn.first_version - 1,
                    policy.history_max_messages,
                )  # fmt: skip
                if len(before) < policy.history_max_messages:
                    before = begun_by_agent(before)
                said = (*before, *said)
            if agent.remembers:
                mind = InMind(*await in_mind(connection, agent.id))
            if several:
                about = await newest_comment(connection, about)
    told = instructions(agent, mind, about, turn.scenario, database.clock.now())
    return ModelRequest(
        agent_id=agent.id,
        definition=agent.definition,
        scenario=turn.scenario,
        profile=agent.model,
        instructions=instructed(told, turn.scenario),
        history=provider_history(said, policy.history_max_messages, policy.history_max_tokens),
        tools=tuple(tool.spec() for tool in offered),
        turn_id=turn.id,
        session_id=turn.session_id,
        turn_index=turn.index,
        step=step,
        newest_input=flight.state.newest_input,
        response_index=turn.responses_before + step,
        **sampling(flight),
    )
