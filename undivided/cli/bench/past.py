"""An agent with a long life: made in bulk, for the rows that ask what history costs.

Each item of it has the five events of an ordinary one, and its row; the text is the same.
"""

from __future__ import annotations

import asyncio

import msgspec
import psycopg

from undivided.cli.bench import samples
from undivided.cli.bench.measuring import Bench
from undivided.domain.decisions import Decision
from undivided.domain.events import flights as f
from undivided.domain.events import items as i
from undivided.domain.events.catalogue import Event
from undivided.domain.outcomes import Completed
from undivided.domain.recorded import agent_stream
from undivided.domain.stimuli import HUMAN_CHAT
from undivided.store.codec import encode, encode_event, name_of

PER_ITEM = 5

_EVENTS = """
INSERT INTO events (txid, id, stream, version, type, schema, data, meta, recorded_at, bytes)
SELECT (SELECT pg_current_xact_id()::text::bigint + txid_base FROM log_base),
       gen_random_uuid(), %(stream)s, 1 + (n - 1) * 5 + k.ordinality, k.value->>'type', 1,
       k.value->'data' || jsonb_build_object(
         'item_id', CASE WHEN k.value->'data' ? 'item_id' THEN 'mbx_' || n || %(stream)s END,
         'turn_id', CASE WHEN k.value->'data' ? 'turn_id' THEN 'trn_' || n || %(stream)s END,
         'seq', n, 'epoch', n),
       %(meta)s::jsonb || jsonb_build_object('causation', gen_random_uuid()),
       now() - make_interval(secs => %(items)s - n), 400
  FROM generate_series(1, %(items)s::int) n,
       jsonb_array_elements(%(kinds)s::jsonb) WITH ORDINALITY k"""
_ITEMS = """
INSERT INTO items (id, agent_id, source_type, category, priority, seq, delivery, payload, sender,
                   tries, phase, status, queued_at, accepted_by, correlation)
SELECT 'mbx_' || n || %(stream)s, %(agent)s, %(type)s, 'interaction', 0, n, 'queue',
       %(payload)s::jsonb, '{"role": "user"}', '{"picked": 1}', %(phase)s::jsonb, 'completed',
       now(), gen_random_uuid(), gen_random_uuid()
  FROM generate_series(1, %(items)s::int) n"""


async def long_lived(bench: Bench, events: int) -> str:
    """An idle agent with as many events behind it; answers its id."""
    agent_id = await samples.new_agent(bench.log)
    await asyncio.to_thread(_fill, bench.servers.owner_url, agent_id, events // PER_ITEM)
    return agent_id


def _fill(owner_url: str, agent_id: str, items: int) -> None:
    stream = agent_stream(agent_id)
    done = {"status": "completed", "turn_id": "trn_1", "started_at": _AT, "completed_at": _AT,
            "outcome": msgspec.to_builtins(Completed(samples.ANSWERED))}  # fmt: skip
    values = {
        "stream": stream,
        "agent": agent_id,
        "type": HUMAN_CHAT,
        "items": items,
        "meta": encode(samples.META).decode(),
        "kinds": msgspec.json.encode([_stored(event) for event in _story(agent_id)]).decode(),
        "payload": encode(i.Payload(samples.SAID)).decode(),
        "phase": msgspec.json.encode(done).decode(),
    }
    with psycopg.connect(owner_url, autocommit=True) as connection:
        with connection.transaction():
            connection.execute(_EVENTS, values)
            connection.execute(_ITEMS, values)
            connection.execute(
                "UPDATE streams SET version = 1 + %s WHERE stream = %s", (items * PER_ITEM, stream)
            )
            connection.execute(
                "UPDATE agents SET next_seq = 1 + %s WHERE id = %s", (items, agent_id)
            )
        connection.execute("VACUUM (ANALYZE) events, items")
        connection.execute("CHECKPOINT")


_AT = "2026-01-01T00:00:00Z"


def _story(agent_id: str) -> tuple[Event, ...]:
    """What happens with one item."""
    accepted = samples.accepted(agent_id)
    decision = Decision(
        "dec_1", "pick", "priority_fifo", "Chat message is the best of 1 waiting",
        {"waiting": 1, "activity": "chat", "summary": samples.SAID[:100]}, 1,
    )  # fmt: skip
    item_id, turn_id = accepted.item_id, "trn_1"
    return (
        accepted,
        f.FlightAcquired(agent_id=agent_id, epoch=1, worker="wrk_bench"),
        i.ItemPicked(agent_id=agent_id, item_id=item_id, turn_id=turn_id, session_id="ses_bench",
                     epoch=1, attempt=1, decision=decision),
        i.ItemCompleted(agent_id=agent_id, item_id=item_id, turn_id=turn_id, epoch=1,
                        outcome=Completed(samples.ANSWERED), decision=decision),
        f.FlightReleased(agent_id=agent_id, epoch=1, reason="done"),
    )  # fmt: skip


def _stored(event: Event) -> dict[str, object]:
    data, _ = encode_event(event)
    return {"type": name_of(event)[0], "data": msgspec.Raw(data)}
