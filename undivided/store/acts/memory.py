"""Acts on what an agent keeps in mind and knows."""

from __future__ import annotations

from undivided.domain import memory
from undivided.domain.agents import note
from undivided.domain.memory import (
    ClearMemory,
    NoteMemory,
    RemoveKnowledge,
    SaveKnowledge,
    SearchKnowledge,
    told,
)
from undivided.domain.state.agent import KnowledgeRow
from undivided.projections.records import knowledge_id
from undivided.store.acts.doing import Doing, Done, refused
from undivided.store.flights import Flight
from undivided.store.log import AgentTx
from undivided.store.notes import memory_keys
from undivided.store.queries.knowledge import Sought, matching, section_lengths


async def _note(tx: AgentTx, flight: Flight, act: NoteMemory) -> Done:
    held = await memory_keys(tx, "agent")
    event = note(tx.agent, held, (act.key, act.content), flight.turn.id, "agent")
    evicted = list(event.evicted) or None
    return Done(content=told(status="ok", key=act.key, evicted=evicted), events=(event,))


async def _clear(tx: AgentTx, flight: Flight, act: ClearMemory) -> Done:
    own = await memory_keys(tx, "agent")
    event = memory.cleared(tx.agent.id, own, act.key, flight.turn.id)
    if event is None:
        return Done(content=told(status="ok", cleared=0))
    return Done(content=told(status="ok", cleared=len(event.keys)), events=(event,))


async def _save(tx: AgentTx, flight: Flight, act: SaveKnowledge) -> Done:
    held = await section_lengths(tx.connection, tx.agent.id) if act.kind == "section" else {}
    event = memory.saved(tx.agent.id, act, held, flight.turn.id)
    if isinstance(event, str):
        return refused(told(status="error", error=event))
    return Done(content=told(status="ok", key=act.key), events=(event,))


async def _remove(tx: AgentTx, flight: Flight, act: RemoveKnowledge) -> Done:
    row: KnowledgeRow | None = await tx.row(
        "knowledge", knowledge_id(tx.agent.id, act.kind, act.key)
    )
    if row is None:
        return Done(content=told(status="not_found", key=act.key))
    event = memory.removed(tx.agent.id, act, flight.turn.id)
    return Done(content=told(status="ok", key=act.key), events=(event,))


async def _search(tx: AgentTx, _flight: Flight, act: SearchKnowledge) -> Done:
    rows = await matching(tx.connection, tx.agent.id, Sought((act.kind,), act.words, act.limit))
    return Done(content=memory.found(rows))


NOTING = Doing(_note)
CLEARING = Doing(_clear)
SAVING = Doing(_save)
REMOVING = Doing(_remove)
SEARCHING = Doing(_search)
