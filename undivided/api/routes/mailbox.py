"""An agent's mailbox: put something in, look into it."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request, Response
from msgspec import UNSET

from undivided.api.answers import answer
from undivided.api.asked import MIB, check_tree, parsed, raw_body, restored
from undivided.api.bodies import Batch, NewStimulus
from undivided.api.once import Claim, once
from undivided.api.parts import parts_of
from undivided.api.shapes.accepted import AcceptedBatch, AcceptedItem
from undivided.api.shapes.items import times_of
from undivided.domain.errors import Invalid, NotFound
from undivided.domain.events.items import Payload, Sender
from undivided.domain.mailbox import Accept
from undivided.domain.state.item import ItemRow
from undivided.domain.stimuli import stimulus_type
from undivided.store.commands.accepting import Accepted, accept_stimuli
from undivided.store.queries.reading import is_id

router = APIRouter(prefix="/api/agents", tags=["mailbox"])
BATCH_LIMIT = 64 * MIB


@router.post("/{agent_id}/mailbox", status_code=202)
async def put_stimulus(request: Request, agent_id: str) -> Response:
    """Put one stimulus into the mailbox. It is accepted once it is committed, whoever works."""
    parts, raw = parts_of(request), await raw_body(request)
    body, escaped = parsed(raw, NewStimulus)

    async def effect(claim: Claim) -> Response:
        command = stimulus(body, claim.fresh_id("mbx"), escaped)
        done = await accept_stimuli(
            parts.outlet, known(agent_id), (command,), claim.meta, claim.earlier
        )
        return answer(_results(done)[0], 202)

    return await once(request, raw, effect)


@router.post("/{agent_id}/mailbox:batch", status_code=202)
async def put_stimuli(request: Request, agent_id: str) -> Response:
    """Put up to 1,000 stimuli into the mailbox in one transaction, in order, or none."""
    parts, raw = parts_of(request), await raw_body(request, BATCH_LIMIT)
    body, escaped = parsed(raw, Batch)

    async def effect(claim: Claim) -> Response:
        first = claim.fresh_id("mbx")
        commands = [_nth(body.items, n, first, escaped) for n in range(len(body.items))]
        done = await accept_stimuli(
            parts.outlet, known(agent_id), commands, claim.meta, claim.earlier
        )
        batch = AcceptedBatch(items=_results(done), position=str(done.coordinate))
        return answer(batch, 202)

    return await once(request, raw, effect)


def stimulus(body: NewStimulus, item_id: str, escaped: bool) -> Accept:
    """The command that a body asks for.

    Raises:
        Invalid: an unknown type, or content that cannot be kept.
    """
    kind = stimulus_type(body.source_type)
    payload, sender = body.payload, body.metadata
    if payload.extra:
        check_tree(payload.extra, "payload.extra")
    as_it_was = restored if escaped else _same
    return Accept(
        item_id=item_id,
        source_type=body.source_type,
        payload=Payload(
            content=as_it_was(payload.content),
            summary=as_it_was(payload.summary),
            task_id=payload.task_id,
            requirement_id=payload.requirement_id,
            extra=as_it_was(payload.extra),
        ),
        sender=Sender(sender.sender_id, sender.sender_name, sender.sender_role or kind.sender),
        priority=body.priority,
        delivery=body.delivery,
        session_id=body.session_id,
    )


def _nth(items: list[NewStimulus], number: int, first: str, escaped: bool) -> Accept:
    """One stimulus of a batch; a mistake says in which, counted from 0 as paths into JSON are."""
    try:
        return stimulus(items[number], f"{first}.{number + 1}", escaped)
    except Invalid as error:
        place = f"items.{number}"
        raise Invalid(f"{place}: {error}", f"{place}.{error.field}") from error


def known(agent_id: str) -> str:
    """The id, if an agent can be called so.

    Raises:
        NotFound: no agent can.
    """
    if not is_id(agent_id):
        raise NotFound(f"there is no agent {agent_id[:128]!r}")
    return agent_id


def _same(value: Any) -> Any:
    return value


def _results(done: Accepted) -> list[AcceptedItem]:
    position = str(done.coordinate)
    return [_shape(item, position) for item in done.items]


def _shape(item: ItemRow, position: str) -> AcceptedItem:
    times = times_of(item)
    return AcceptedItem(
        item_id=item.id, status=times.status, position=position,
        merged_into=times.merged_into or UNSET,
    )  # fmt: skip
