"""Agents: bring into being, look at, configure, start and stop, delete."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from fastapi import APIRouter, Request, Response
from msgspec import UNSET

from undivided.api.answers import answer, token_or
from undivided.api.asked import (
    cursor_for,
    cursor_of,
    limit_of,
    parsed,
    principal,
    raw_body,
    reading_of,
    restored,
)
from undivided.api.bodies import AgentChanges, NewAgent
from undivided.api.once import Claim, once
from undivided.api.parts import Parts, parts_of
from undivided.api.shapes.agents import AgentPage, agent_shape
from undivided.domain.agents import ConfigureAgent, CreateAgent
from undivided.domain.errors import Invalid, NotFound, Rejected
from undivided.domain.recorded import Meta
from undivided.store.commands import agents as commands
from undivided.store.commands.agents import Commanded
from undivided.store.commands.outlet import Outlet
from undivided.store.model_sources import UPLOADED, look_into
from undivided.store.queries import agents as queries
from undivided.store.queries.agents import AgentPlace
from undivided.store.queries.reading import Reading
from undivided.store.recordings import load_recording

router = APIRouter(prefix="/api/agents", tags=["agents"])
Command = Callable[[Outlet, str, Meta], Awaitable[Commanded]]


@router.post("", status_code=201)
async def create_agent(request: Request) -> Response:
    """Bring an agent into being; it is started."""
    parts, raw = parts_of(request), await raw_body(request)
    body, escaped = parsed(raw, NewAgent)
    await check_model(parts, body.model)
    instructions = restored(body.instructions) if escaped else body.instructions

    async def effect(claim: Claim) -> Response:
        command = CreateAgent(
            agent_id=body.id or claim.fresh_id("agt"),
            name=body.name,
            definition=body.definition,
            model=body.model,
            instructions=instructions,
            tools=None if body.tools is None else tuple(body.tools),
            policy=body.policy,
            team_id=body.team_id,
            heartbeat_interval_s=body.heartbeat_interval_s,
        )
        try:
            done = await commands.create(parts.outlet, parts.policy, command, claim.meta)
        except Rejected:
            if not await claim.took_effect():
                raise
            there = await queries.agent(Reading(parts.database), command.agent_id)
            return answer(agent_shape(there.agent, there.position), 201)
        return answer(agent_shape(done.agent, str(done.coordinate)), 201)

    return await once(request, raw, effect)


@router.get("")
async def list_agents(request: Request) -> Response:
    """Agents, oldest first."""
    reading = await reading_of(request, parts_of(request).database)
    after = cursor_of(request, AgentPlace)
    page, end = await queries.agents(reading, after, limit_of(request))
    return answer(
        AgentPage(
            items=[agent_shape(one.agent, one.position) for one in page],
            next_cursor=None if end is None else cursor_for(end),
            position=await reading.seen(),
        )
    )


@router.get("/{agent_id}")
async def get_agent(request: Request, agent_id: str) -> Response:
    """One agent, with the whole of its policy."""
    reading = await reading_of(request, parts_of(request).database)
    then = await queries.agent(reading, agent_id)
    return answer(agent_shape(then.agent, then.position))


@router.patch("/{agent_id}")
async def configure_agent(request: Request, agent_id: str) -> Response:
    """Change what the body names; what it leaves out stays."""
    parts, raw = parts_of(request), await raw_body(request)
    body, escaped = parsed(raw, AgentChanges)
    named = body.model_fields_set
    if "model" in named:
        await check_model(parts, body.model)
    instructions = restored(body.instructions) if escaped else body.instructions
    command = ConfigureAgent(
        name=body.name if "name" in named else UNSET,
        model=body.model if "model" in named else UNSET,
        instructions=instructions if "instructions" in named else UNSET,
        tools=(None if body.tools is None else tuple(body.tools)) if "tools" in named else UNSET,
        heartbeat_interval_s=(
            body.heartbeat_interval_s if "heartbeat_interval_s" in named else UNSET
        ),
        policy=body.policy if "policy" in named else UNSET,
    )
    await queries.agent(Reading(parts.database), agent_id)
    done = await commands.configure(parts.outlet, agent_id, command, Meta(actor=principal(request)))
    return await _told(parts, done)


@router.post("/{agent_id}/start")
async def start_agent(request: Request, agent_id: str) -> Response:
    """Let a stopped or paused agent pick up work."""
    return await _command(request, agent_id, commands.start)


@router.post("/{agent_id}/resume")
async def resume_agent(request: Request, agent_id: str) -> Response:
    """The same as start."""
    return await _command(request, agent_id, commands.start)


@router.post("/{agent_id}/pause")
async def pause_agent(request: Request, agent_id: str) -> Response:
    """Let the turn at work finish, and pick nothing after it."""
    return await _command(request, agent_id, commands.pause)


@router.post("/{agent_id}/stop")
async def stop_agent(request: Request, agent_id: str) -> Response:
    """Interrupt the turn at work and pick nothing more; what waits goes on waiting."""
    return await _command(request, agent_id, commands.stop)


@router.post("/{agent_id}/cancel-processing")
async def cancel_processing(request: Request, agent_id: str) -> Response:
    """Cancel the turn at work for good and go on with what waits; without a turn nothing happens.

    What the turn was about is not handled again.
    """
    return await _command(request, agent_id, commands.cancel_processing)


@router.delete("/{agent_id}")
async def delete_agent(request: Request, agent_id: str) -> Response:
    """End an agent for good; its history stays."""
    parts = parts_of(request)
    await queries.agent(Reading(parts.database), agent_id)
    done = await commands.delete(parts.outlet, agent_id, Meta(actor=principal(request)))
    return await _told(parts, done)


async def _command(request: Request, agent_id: str, command: Command) -> Response:
    parts, raw = parts_of(request), await raw_body(request)
    if raw.strip() not in {b"", b"{}"}:
        raise Invalid("this command takes no body", "body")
    await queries.agent(Reading(parts.database), agent_id)

    async def effect(claim: Claim) -> Response:
        return await _told(parts, await command(parts.outlet, agent_id, claim.meta))

    return await once(request, raw, effect)


async def _told(parts: Parts, done: Commanded) -> Response:
    seen = "" if done.coordinate else await Reading(parts.database).seen()
    return answer(agent_shape(done.agent, token_or(done.coordinate, seen)))


async def check_model(parts: Parts, model: str) -> None:
    """Refuse a model that is neither a profile of the config nor a provider's nor a good file.

    Raises:
        Invalid: with the profiles there are, or with the file's line and what is allowed there.
    """
    profiles = parts.settings.config.models
    kind, _, rest = model.partition(":")
    if model in profiles:
        return
    if not (kind and rest):
        raise Invalid(
            f"unknown model {model[:60]!r}; give a profile ({', '.join(profiles)}) "
            "or PROVIDER:NAME",
            "model",
        )
    try:
        await asyncio.to_thread(look_into, model)
        if kind == "rehearsal" and rest.startswith(UPLOADED):
            await load_recording(parts.database, rest.removeprefix(UPLOADED))
    except (Invalid, NotFound) as error:
        raise Invalid(str(error), "model") from error
