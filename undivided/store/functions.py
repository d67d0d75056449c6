"""The SQL functions of the hot path: append, view and sweep.

Round trips, not flushes, are the cost of an append, so that each of these is one statement:

- `log_fence` checks the epoch of a flight, and `log_advance` takes a stream's next versions;
  `log_guard` is all that a small append begins with, before its events and rows in the same
  message (`batch.py`).
- `log_write` does all of an append that is large. All of it or nothing.
- `log_take` waits for whoever may be fenced by an append that locked nothing beforehand.
  `log_edition` refuses what goes by rows that were made anew since; it comes when the stream's
  row is held, which a rebuild and a repair hold as well while they raise the edition, so that it
  sees what they committed.
- `agent_view` reads what a decision about an agent reads, and takes the stream's row lock
  first where the caller asks for it. Each statement in it has a snapshot of its own
  (READ COMMITTED), so that what is read after a wait for the lock is what the last holder
  committed. No variable has the type of a table: a call that waits for the lock would meet
  another table after a rebuild. A process that is frozen between the view and its append is cut
  off by Postgres: its open transaction would stop the agent, and every reader of the log.
- `sweep` renews a worker's lease and answers what nobody is looking after. Flights that lost
  their worker and waits that are over are found at once, however much there is; of the agents
  that want a worker each sweep looks at the next thousand, and so gets round. Chance decides who
  comes first where there are too many: agents that nothing can be done for at present (an item
  of a type that only a newer release knows) must not stand before all others for ever.

A transaction gets its id, and with it its place in the log, when it first locks a row, and may
then wait for another row while a transaction with a later id writes that one first. So whoever
waits in line waits before that, for advisory locks, which give no id: one a stream that
several write, in the order of their names (`lock_streams`), and then one a flight, exclusive
where the epoch may rise and shared where an append is fenced. Therefore the versions of a stream
stand in the log in their order, and no step stands behind the flight that fenced it.

They are written from `tables.py` and replaced whole by every `migrate`, after the migrations.
No NOTIFY and no global lock here: either would let one commit at a time through.
"""

from __future__ import annotations

from sqlalchemy import Table

from undivided.store.tables import PROJECTED, folded_columns

CONFLICT = "UV001"
STALE_FLIGHT = "UV002"
"""SQLSTATEs by which `log_advance` and `log_fence` refuse."""


def _write_rows(table: Table) -> str:
    folded = folded_columns(table)
    columns = ", ".join(f'"{name}"' for name in folded)
    values = ", ".join(folded.values())
    updates = ", ".join(f'"{name}" = excluded."{name}"' for name in folded if name != "id")
    return f"""
    IF p_batch->'rows' ? '{table.name}' THEN
      INSERT INTO {table.name} AS t (tenant, {columns})
      SELECT p_tenant, {values}
        FROM jsonb_populate_recordset(NULL::{table.name}, p_batch->'rows'->'{table.name}') r
      ON CONFLICT (tenant, id) DO UPDATE SET {updates};
    END IF;
    IF p_batch->'gone' ? '{table.name}' THEN
      DELETE FROM {table.name} WHERE tenant = p_tenant AND id IN
        (SELECT jsonb_array_elements_text(p_batch->'gone'->'{table.name}'));
    END IF;"""  # noqa: S608 -- names and columns are those of tables.py


_FENCE = """
CREATE OR REPLACE FUNCTION log_fence(p_tenant text, p_agent text, p_epoch bigint) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_advisory_xact_lock_shared(
    hashtextextended('flight ' || p_tenant || '/' || p_agent, 0));
  PERFORM 1 FROM flights f
    WHERE f.tenant = p_tenant AND f.id = p_agent AND f.epoch = p_epoch AND f.held
    FOR SHARE;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'stale flight' USING ERRCODE = 'UV002';
  END IF;
END $$;
"""

_TAKE = """
CREATE OR REPLACE FUNCTION log_take(p_tenant text, p_agent text) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_advisory_xact_lock(hashtextextended('flight ' || p_tenant || '/' || p_agent, 0));
END $$;
"""

_EDITION = """
CREATE OR REPLACE FUNCTION log_edition(p_edition bigint) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  v_actual bigint;
BEGIN
  SELECT b.edition INTO v_actual FROM log_base b;
  IF v_actual <> p_edition THEN
    RAISE EXCEPTION 'conflict' USING ERRCODE = 'UV001',
      DETAIL = jsonb_build_object('stream', 'edition', 'expected', p_edition,
                                  'actual', v_actual)::text;
  END IF;
END $$;
"""

_GROW = """
CREATE OR REPLACE FUNCTION log_advance(p_tenant text, p_stream text, p_expected bigint,
                                    p_grown bigint) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  v_actual bigint;
BEGIN
  IF p_expected = 0 THEN
    INSERT INTO streams AS t (tenant, stream, version) VALUES (p_tenant, p_stream, p_grown)
      ON CONFLICT (tenant, stream) DO UPDATE SET version = p_grown WHERE t.version = 0;
  ELSE
    UPDATE streams t SET version = p_expected + p_grown
      WHERE t.tenant = p_tenant AND t.stream = p_stream AND t.version = p_expected;
  END IF;
  IF NOT FOUND THEN
    SELECT t.version INTO v_actual FROM streams t
      WHERE t.tenant = p_tenant AND t.stream = p_stream;
    RAISE EXCEPTION 'conflict' USING ERRCODE = 'UV001',
      DETAIL = jsonb_build_object('stream', p_stream, 'expected', p_expected,
                                  'actual', coalesce(v_actual, 0))::text;
  END IF;
END $$;
"""

_GUARD = """
CREATE OR REPLACE FUNCTION log_guard(p_tenant text, p_agent text, p_epoch bigint,
                                     p_edition bigint, p_streams text[], p_expected bigint[],
                                     p_grown bigint[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  IF p_epoch IS NOT NULL THEN
    PERFORM log_fence(p_tenant, p_agent, p_epoch);
  ELSIF p_agent <> '' THEN
    PERFORM log_take(p_tenant, p_agent);
  END IF;
  FOR n IN 1 .. coalesce(array_length(p_streams, 1), 0) LOOP
    -- What is most likely, without the call.
    UPDATE streams t SET version = p_expected[n] + p_grown[n]
      WHERE t.tenant = p_tenant AND t.stream = p_streams[n] AND t.version = p_expected[n];
    IF NOT FOUND THEN
      PERFORM log_advance(p_tenant, p_streams[n], p_expected[n], p_grown[n]);
    END IF;
  END LOOP;
  IF p_edition <> (SELECT b.edition FROM log_base b) THEN
    PERFORM log_edition(p_edition);
  END IF;
END $$;
"""

_APPEND_HEAD = """
CREATE OR REPLACE FUNCTION log_write(p_tenant text, p_batch jsonb)
RETURNS TABLE (o_txid bigint, o_position bigint, o_clock timestamptz)
LANGUAGE plpgsql AS $$
DECLARE
  v_txid bigint;
  v_position bigint;
BEGIN
  IF p_batch ? 'fence' THEN
    PERFORM log_fence(p_tenant, p_batch->'fence'->>'agent', (p_batch->'fence'->>'epoch')::bigint);
  END IF;
  PERFORM log_advance(p_tenant, x.stream, x.expected, x.grown)
    FROM jsonb_to_recordset(p_batch->'streams') AS x(stream text, expected bigint, grown bigint);

  SELECT pg_current_xact_id()::text::bigint + b.txid_base INTO v_txid FROM log_base b;
  WITH written AS (
    INSERT INTO events
      (txid, id, tenant, stream, version, type, schema, data, meta, recorded_at, bytes)
    SELECT v_txid, x.id, p_tenant, x.stream, x.version, x.type, x.schema, x.data,
           coalesce(x.meta, '{}'), (p_batch->>'at')::timestamptz, x.bytes
      FROM jsonb_to_recordset(p_batch->'events')
        AS x(id uuid, stream text, version bigint, type text, schema smallint, data jsonb,
             meta jsonb, bytes int)
    RETURNING events.position)
  SELECT max(written.position) INTO v_position FROM written;
"""

_APPEND_TAIL = """
  RETURN QUERY SELECT v_txid, v_position, clock_timestamp();
END $$;
"""

_LOCK_STREAMS = """
CREATE OR REPLACE FUNCTION lock_streams(p_tenant text, p_streams text[]) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  v_stream text;
BEGIN
  FOR v_stream IN SELECT x FROM unnest(p_streams) x ORDER BY x COLLATE "C" LOOP
    PERFORM pg_advisory_xact_lock(hashtextextended('stream ' || p_tenant || '/' || v_stream, 0));
  END LOOP;
END $$;
"""

_VIEW = """
CREATE OR REPLACE FUNCTION agent_view(p_tenant text, p_agent text, p_lock boolean, p_queue int)
RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  v_version bigint;
  v_agent jsonb;
  v_flight jsonb;
  v_queue jsonb := '[]';
  v_focus jsonb := '[]';
  v_deferred jsonb := '[]';
  v_now timestamptz;
  v_edition bigint;
BEGIN
  IF p_lock THEN
    PERFORM set_config('idle_in_transaction_session_timeout', '10s', true);
    -- What `lock_streams` does for one stream, without the call.
    PERFORM pg_advisory_xact_lock(
      hashtextextended('stream ' || p_tenant || '/agent:' || p_agent, 0));
    IF p_queue > 0 THEN
      PERFORM pg_advisory_xact_lock(hashtextextended('flight ' || p_tenant || '/' || p_agent, 0));
    END IF;
    SELECT s.version INTO v_version FROM streams s
      WHERE s.tenant = p_tenant AND s.stream = 'agent:' || p_agent FOR UPDATE;
  ELSE
    SELECT s.version INTO v_version FROM streams s
      WHERE s.tenant = p_tenant AND s.stream = 'agent:' || p_agent;
  END IF;
  v_now := clock_timestamp();
  SELECT b.edition INTO v_edition FROM log_base b;
  SELECT to_jsonb(a) INTO v_agent FROM agents a WHERE a.tenant = p_tenant AND a.id = p_agent;
  IF p_queue > 0 THEN
    SELECT to_jsonb(f) INTO v_flight FROM flights f
      WHERE f.tenant = p_tenant AND f.id = p_agent;
    SELECT coalesce(jsonb_agg(to_jsonb(q) ORDER BY q.priority, q.seq), '[]') INTO v_queue FROM (
      SELECT i.* FROM items i
        WHERE i.tenant = p_tenant AND i.agent_id = p_agent AND i.status = 'queued'
          AND (i.not_before IS NULL OR i.not_before <= v_now)
        ORDER BY i.priority, i.seq LIMIT p_queue) q;
    IF (v_agent->>'deferred')::int > 0 THEN
      SELECT coalesce(jsonb_agg(to_jsonb(q) ORDER BY q.priority, q.seq), '[]') INTO v_deferred
        FROM (SELECT i.* FROM items i
          WHERE i.tenant = p_tenant AND i.agent_id = p_agent AND i.status = 'deferred'
            AND (i.not_before IS NULL OR i.not_before <= v_now)
          ORDER BY i.priority, i.seq LIMIT p_queue) q;
    END IF;
    IF v_agent->'attention' ? 'item_ids' THEN
      -- One look into the key for each: without statistics a planner may read all items there are.
      SELECT coalesce(jsonb_agg(to_jsonb(f)), '[]') INTO v_focus
        FROM jsonb_array_elements_text(v_agent->'attention'->'item_ids') x(id),
             LATERAL (SELECT i.* FROM items i
                        WHERE i.tenant = p_tenant AND i.id = x.id OFFSET 0) f;
    END IF;
  END IF;
  RETURN jsonb_build_object('version', coalesce(v_version, 0), 'now', v_now,
    'edition', v_edition, 'agent', v_agent,
    'flight', v_flight, 'queue', v_queue, 'focus', v_focus,
    'deferred', v_deferred);
END $$;
"""

AGENTS_SEEN = 1_000
"""Agents that want a worker which one sweep looks at."""
_SWEEP = """
CREATE OR REPLACE FUNCTION sweep(p_worker text, p_lease_s double precision, p_limit int,
                                 p_after text)
RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  v_now timestamptz := clock_timestamp();
  v_alive boolean;
  v_frozen jsonb;
  v_agents jsonb;
  v_stops jsonb;
  v_after text;
BEGIN
  UPDATE workers SET lease_until = v_now + make_interval(secs => p_lease_s)
    WHERE id = p_worker AND lease_until >= v_now;
  v_alive := FOUND;

  -- A worker past its lease is frozen, and one without a lease has no business here: end the
  -- lock backend of either, so that its flights are free. A lease is there before the first lock.
  WITH late AS (
    SELECT w.id, w.lock_pid FROM workers w
      WHERE w.lease_until < v_now AND w.id <> p_worker FOR UPDATE SKIP LOCKED),
  ended AS (
    SELECT substr(s.application_name, 16) AS id, pg_terminate_backend(s.pid)
      FROM pg_stat_activity s
      WHERE starts_with(s.application_name, 'undivided-lock ')
        AND s.datname = current_database()
        AND (EXISTS (SELECT 1 FROM late WHERE late.lock_pid = s.pid
                       AND left('undivided-lock ' || late.id, 63) = s.application_name)
          OR (s.backend_start < v_now - interval '2 s'
            AND NOT EXISTS (SELECT 1 FROM workers w WHERE w.lock_pid = s.pid
                              AND left('undivided-lock ' || w.id, 63) = s.application_name)))),
  removed AS (
    DELETE FROM workers WHERE id IN (SELECT late.id FROM late)
      AND NOT EXISTS (SELECT 1 FROM ended WHERE ended.id = left(workers.id, 48)) RETURNING id)
  SELECT coalesce(jsonb_agg(ended.id), '[]') INTO v_frozen FROM ended;

  WITH held AS (
    SELECT (classid::bigint << 32) | objid::bigint AS lock_key FROM pg_locks
      WHERE locktype = 'advisory' AND objsubid = 1 AND granted
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())),
  orphaned AS (
    SELECT f.id FROM flights f
      WHERE f.held AND NOT EXISTS (SELECT 1 FROM held
        WHERE held.lock_key = hashtextextended(f.tenant || '/' || f.id, 0))
      ORDER BY random() LIMIT p_limit),
  due AS (
    SELECT t.agent_id AS id FROM turns t
      WHERE t.wake_at <= v_now ORDER BY random() LIMIT p_limit),
  seen AS MATERIALIZED (
    SELECT a.tenant, a.id, a.attention_state AS state, a.waiting, a.lifecycle,
           a.attention->>'stop_by' IS NOT NULL
             OR a.attention->>'answer' IS NOT NULL AS stopped, a.deferred,
           a.attention->>'turn_id' AS turn_id, a.attention->'wait'->>'kind' AS wait
      FROM agents a WHERE a.wants_worker AND a.id > p_after ORDER BY a.id LIMIT {seen}),
  alone AS (
    SELECT s.id, s.stopped OR s.state = 'focused' AS urgent FROM seen s
      WHERE CASE
        WHEN s.state = 'focused' THEN NOT EXISTS (SELECT 1 FROM held
          WHERE held.lock_key = hashtextextended(s.tenant || '/' || s.id, 0))
        WHEN s.state = 'suspended' AND s.stopped THEN true
        WHEN s.lifecycle <> 'started' THEN false
        ELSE (s.waiting > 0
          AND EXISTS (SELECT 1 FROM items i WHERE i.tenant = s.tenant AND i.agent_id = s.id
                        AND i.status = 'queued'
                        AND (i.not_before IS NULL OR i.not_before <= v_now)
                        AND (s.wait IS DISTINCT FROM 'approval' OR i.weighed IS NULL
                             OR i.weighed->>'turn_id' <> s.turn_id
                             OR (i.weighed->>'merged')::int <> i.merged)))
          OR (s.state = 'idle' AND s.deferred > 0
          AND EXISTS (SELECT 1 FROM items i WHERE i.tenant = s.tenant AND i.agent_id = s.id
                        AND i.status = 'deferred'
                        AND (i.not_before <= v_now OR (i.not_before IS NULL
                             AND i.phase->>'waits' IS DISTINCT FROM 'true')))) END
      ORDER BY random() LIMIT p_limit)
  SELECT coalesce((SELECT jsonb_agg(DISTINCT u.id)
             FROM (SELECT c.id FROM
                    (SELECT id, true AS urgent FROM orphaned UNION ALL SELECT id, true FROM due
                     UNION ALL SELECT id, urgent FROM alone) c
                   ORDER BY (c.urgent AND random() < 0.8) DESC, random() LIMIT p_limit) u), '[]'),
         (SELECT CASE count(*) WHEN {seen} THEN max(seen.id) ELSE '' END FROM seen)
    INTO v_agents, v_after;

  SELECT coalesce(jsonb_agg(a.attention->>'turn_id'), '[]') INTO v_stops
    FROM flights f JOIN agents a ON a.tenant = f.tenant AND a.id = f.id
    WHERE f.held AND f.worker = p_worker AND a.attention->>'stop_by' IS NOT NULL;

  RETURN jsonb_build_object('now', v_now, 'alive', v_alive, 'frozen', v_frozen,
                            'agents', v_agents, 'stops', v_stops, 'after', v_after);
END $$;
""".replace("{seen}", str(AGENTS_SEEN))


def function_statements() -> tuple[str, ...]:
    """Every CREATE FUNCTION of the store, in an order that Postgres takes."""
    append = _APPEND_HEAD + "".join(_write_rows(table) for table in PROJECTED) + _APPEND_TAIL
    return (_LOCK_STREAMS, _FENCE, _TAKE, _GROW, _EDITION, _GUARD, append, _VIEW, _SWEEP)
