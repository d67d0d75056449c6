"""What agents know for good, found by its words.

Words are compared as they are written, in any language, by the configuration `simple`: agents
write in many, and a wrong stemmer finds less than none.
"""

from __future__ import annotations

from msgspec import Struct

from undivided.domain.events.agents import KnowledgeKind
from undivided.domain.memory import FOUND_AT_MOST
from undivided.domain.recorded import agent_stream
from undivided.domain.state.agent import KnowledgeRow, MemoryRow
from undivided.store.codec import escape_text, row_decoder, unescape_text
from undivided.store.database import TENANT, Connection
from undivided.store.history import past_of
from undivided.store.queries.reading import Reading
from undivided.store.queries.records import check_agent

_knowledge_of, _memory_of = row_decoder(KnowledgeRow), row_decoder(MemoryRow)
_ALL = """
SELECT to_jsonb(k)::text FROM knowledge k
 WHERE k.tenant = %s AND k.agent_id = %s AND k.kind = ANY(%s)
 ORDER BY k.saved_at DESC, k.id LIMIT %s OFFSET %s"""
_MATCHING = """
SELECT to_jsonb(k)::text FROM knowledge k, websearch_to_tsquery('simple', %s) q
 WHERE k.tenant = %s AND k.agent_id = %s AND k.kind = ANY(%s)
   AND to_tsvector('simple', k.key || ' ' || k.content) @@ q
 ORDER BY ts_rank(to_tsvector('simple', k.key || ' ' || k.content), q) DESC, k.saved_at DESC, k.id
 LIMIT %s OFFSET %s"""
_MATCHING_THEN = """
SELECT k.number FROM unnest(%(texts)s::text[]) WITH ORDINALITY k(text, number),
       websearch_to_tsquery('simple', %(words)s) q
 WHERE to_tsvector('simple', k.text) @@ q
 ORDER BY ts_rank(to_tsvector('simple', k.text), q) DESC, k.number"""
_LENGTHS = """
SELECT k.key, length(k.content) FROM knowledge k
 WHERE k.tenant = %s AND k.agent_id = %s AND k.kind = 'section'"""
_IN_MIND = """
SELECT coalesce((SELECT json_agg(to_jsonb(m) ORDER BY m.noted_at, m.id) FROM memories m
                  WHERE m.tenant = %(tenant)s AND m.agent_id = %(id)s), '[]')::text,
       coalesce((SELECT json_agg(to_jsonb(k) ORDER BY k.key) FROM knowledge k
                  WHERE k.tenant = %(tenant)s AND k.agent_id = %(id)s AND k.kind = 'section'),
                '[]')::text"""
_memories_of = row_decoder(tuple[MemoryRow, ...])
_sections_of = row_decoder(tuple[KnowledgeRow, ...])
KINDS: tuple[KnowledgeKind, ...] = ("note", "section")


class Sought(Struct, frozen=True):
    """What is looked for: kinds, words (none: what was saved last), and how many at most.

    `skip` so many of the best are passed over.
    """

    kinds: tuple[KnowledgeKind, ...]
    words: str = ""
    limit: int = FOUND_AT_MOST
    skip: int = 0


async def matching(
    connection: Connection, agent_id: str, sought: Sought
) -> tuple[KnowledgeRow, ...]:
    """What fits best of what an agent knows."""
    about = TENANT, agent_id, list(sought.kinds), sought.limit, sought.skip
    if sought.words.strip():
        cursor = await connection.execute(_MATCHING, (escape_text(sought.words), *about))
    else:
        cursor = await connection.execute(_ALL, about)
    return tuple(_knowledge_of(text) for (text,) in await cursor.fetchall())


async def section_lengths(connection: Connection, agent_id: str) -> dict[str, int]:
    """How many characters each section of an agent has."""
    cursor = await connection.execute(_LENGTHS, (TENANT, agent_id))
    return {unescape_text(key): length for key, length in await cursor.fetchall()}


async def in_mind(
    connection: Connection, agent_id: str
) -> tuple[tuple[MemoryRow, ...], tuple[KnowledgeRow, ...]]:
    """What every prompt of an agent shows: its working memory and the sections of what it knows."""
    cursor = await connection.execute(_IN_MIND, {"tenant": TENANT, "id": agent_id})
    row = await cursor.fetchone()
    if row is None:
        return (), ()
    return _memories_of(row[0]), _sections_of(row[1])


async def knowledge(reading: Reading, agent_id: str, sought: Sought) -> tuple[KnowledgeRow, ...]:
    """What an agent knows, or knew.

    Raises:
        NotFound: there never was such an agent, or was none at that moment.
    """
    await check_agent(reading, agent_id)
    if reading.at is None:
        async with reading.database.connection() as connection:
            return await matching(connection, agent_id, sought)
    past = await past_of(reading.database, agent_stream(agent_id), reading.at)
    known = () if past is None else tuple(past.knowledge.values())
    rows = sorted((row for row in known if row.kind in sought.kinds), key=lambda row: row.id)
    rows.sort(key=lambda row: row.saved_at, reverse=True)
    if sought.words.strip():
        texts = [escape_text(f"{row.key} {row.content}") for row in rows]
        found = await reading.rows(_MATCHING_THEN, texts=texts, words=escape_text(sought.words))
        rows = [rows[number - 1] for (number,) in found]
    return tuple(rows[sought.skip : sought.skip + sought.limit])
