"""Deliberation, callbacks, hearts, and what agents know; keys of merging that name a session."""

from __future__ import annotations

from alembic import op

revision = "0004"
down_revision = "0003"

_UP = """
ALTER TABLE agents ADD COLUMN merged INTEGER DEFAULT 0 NOT NULL;
ALTER TABLE agents ADD COLUMN dropped INTEGER DEFAULT 0 NOT NULL;
UPDATE agents a SET
  merged = (SELECT count(*) FROM events e WHERE e.tenant = a.tenant
              AND e.stream = 'agent:' || a.id AND e.type = 'item.merged'),
  dropped = (SELECT count(*) FROM events e WHERE e.tenant = a.tenant
               AND e.stream = 'agent:' || a.id AND e.type = 'item.dropped');
ALTER TABLE agents ADD COLUMN remembers BOOLEAN DEFAULT false NOT NULL;
UPDATE agents a SET remembers = true
  WHERE EXISTS (SELECT 1 FROM events e WHERE e.tenant = a.tenant AND e.stream = 'agent:' || a.id
                   AND e.type = 'memory.noted');
ALTER TABLE memories ADD COLUMN by TEXT DEFAULT 'system' NOT NULL;
UPDATE memories m SET by = n.by
  FROM (SELECT DISTINCT ON (tenant, stream, data->>'key')
               tenant, stream, data->>'key' AS key, data->>'by' AS by
          FROM events WHERE type = 'memory.noted'
         ORDER BY tenant, stream, data->>'key', version DESC) n
 WHERE n.tenant = m.tenant AND n.stream = 'agent:' || m.agent_id AND n.key = m.key
   AND n.by IS NOT NULL;
ALTER TABLE agents ADD COLUMN last_triage JSONB;

UPDATE items SET merge_key = source_type || '/' || delivery || '/' || coalesce(session_id, '')
    || '/' || substr(merge_key, length(source_type) + 2)
  WHERE merge_key IS NOT NULL;
UPDATE items i SET merge_key = 'heartbeat/' || delivery || '/' || coalesce(session_id, '')
    || '/newest'
  WHERE source_type = 'heartbeat' AND NOT coalesce((payload->'extra'->'triggerExecution')
          NOT IN ('false', 'null', '0', '""', '[]', '{}'), false)
    AND NOT EXISTS (SELECT 1 FROM events e WHERE e.tenant = i.tenant
                      AND e.stream = 'agent:' || i.agent_id AND e.type = 'item.deferred'
                      AND e.data->>'item_id' = i.id AND e.data->>'turn_id' IS NOT NULL);
UPDATE items i SET phase = i.phase || jsonb_build_object('since', to_char(
    b.at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'))
  FROM (SELECT tenant, stream, data->>'item_id' AS id, max(recorded_at) AS at
          FROM events WHERE type IN ('item.resurfaced', 'item.requeued') GROUP BY 1, 2, 3) b
 WHERE i.status = 'queued' AND b.tenant = i.tenant AND b.stream = 'agent:' || i.agent_id
   AND b.id = i.id;

CREATE INDEX events_undecided ON events ((coalesce(data->>'item_id', data->>'turn_id')))
  WHERE type IN ('item.resurfaced','item.reprioritized','focus.answered','turn.stop_requested')
     OR (type = 'item.picked' AND data->'decision'->>'type' = 'triage');

CREATE TABLE callbacks (
  tenant TEXT DEFAULT 'default' NOT NULL,
  id TEXT NOT NULL,
  agent_id TEXT NOT NULL,
  type TEXT NOT NULL,
  delivery TEXT NOT NULL,
  origin_session_id TEXT NOT NULL,
  turn_id TEXT,
  command TEXT NOT NULL,
  note TEXT NOT NULL,
  correlation_id TEXT,
  wake_at TIMESTAMPTZ,
  recurring_s DOUBLE PRECISION,
  registered_at TIMESTAMPTZ NOT NULL,
  timeout_s DOUBLE PRECISION,
  host TEXT,
  limit_s DOUBLE PRECISION,
  misfire TEXT NOT NULL,
  phase JSONB NOT NULL,
  registered_by TEXT NOT NULL,
  correlation TEXT NOT NULL,
  version BIGINT NOT NULL,
  changed_version BIGINT NOT NULL,
  status TEXT NOT NULL,
  PRIMARY KEY (tenant, id)
);
CREATE INDEX callbacks_of_agent ON callbacks (tenant, agent_id, status);
CREATE INDEX callbacks_due ON callbacks (wake_at) WHERE status = 'pending' AND wake_at IS NOT NULL;
CREATE INDEX callbacks_running ON callbacks (host)
  WHERE type = 'background_exec' AND status IN ('pending','timed_out');

CREATE TABLE knowledge (
  tenant TEXT DEFAULT 'default' NOT NULL,
  id TEXT NOT NULL,
  agent_id TEXT NOT NULL,
  kind TEXT NOT NULL,
  key TEXT NOT NULL,
  content TEXT NOT NULL,
  saved_at TIMESTAMPTZ NOT NULL,
  version BIGINT NOT NULL,
  changed_version BIGINT NOT NULL,
  PRIMARY KEY (tenant, id)
);
CREATE INDEX knowledge_of_agent ON knowledge (tenant, agent_id, kind, saved_at);
CREATE INDEX knowledge_words ON knowledge USING gin (to_tsvector('simple', key || ' ' || content));

CREATE TABLE heartbeats (
  tenant TEXT DEFAULT 'default' NOT NULL,
  id TEXT NOT NULL,
  lifecycle TEXT NOT NULL,
  interval_s DOUBLE PRECISION NOT NULL,
  enabled BOOLEAN NOT NULL,
  pace_s DOUBLE PRECISION NOT NULL,
  next_at TIMESTAMPTZ NOT NULL,
  judged_at TIMESTAMPTZ NOT NULL,
  awake_at TIMESTAMPTZ,
  streak INTEGER NOT NULL,
  fingerprint TEXT,
  last_at TIMESTAMPTZ,
  item_id TEXT,
  put_off BOOLEAN NOT NULL,
  report_time TEXT NOT NULL,
  report_zone TEXT NOT NULL,
  report_at TIMESTAMPTZ,
  report_placed BOOLEAN NOT NULL,
  reported_day TEXT,
  report_item_id TEXT,
  consolidate_s DOUBLE PRECISION NOT NULL,
  consolidate_at TIMESTAMPTZ,
  consolidated_seq BIGINT NOT NULL,
  consolidated_at TIMESTAMPTZ,
  consolidation_item_id TEXT,
  due_at TIMESTAMPTZ,
  PRIMARY KEY (tenant, id)
);
INSERT INTO heartbeats (tenant, id, lifecycle, interval_s, enabled, pace_s, next_at, judged_at,
                        streak, put_off, report_time, report_zone, report_placed, consolidate_s,
                        consolidate_at, consolidated_seq, due_at)
  SELECT x.tenant, x.id, x.lifecycle, x.interval_s, true, x.interval_s, x.next_at, x.since, 0,
         false, '', 'UTC', false, 14400, x.consolidate_at, 1,
         CASE WHEN x.lifecycle = 'started' THEN least(x.next_at, x.consolidate_at) END
    FROM (
      SELECT a.tenant, a.id, a.lifecycle, s.interval_s, s.since,
             s.since + greatest(300, (('x' || left(encode(sha256(convert_to(a.id, 'UTF8')),
               'hex'), 8))::bit(32)::bigint & 4294967295) * floor(s.interval_s)::bigint
               / 4294967296) * interval '1 second' AS next_at,
             a.created_at + greatest(300, (('x' || left(encode(sha256(convert_to(
               a.id || '/memory', 'UTF8')), 'hex'), 8))::bit(32)::bigint & 4294967295) * 14400
               / 4294967296) * interval '1 second' AS consolidate_at
        FROM agents a
        JOIN (
          SELECT DISTINCT ON (tenant, stream) tenant, stream, interval_s, recorded_at AS since
            FROM (
              SELECT c.*, lag(c.interval_s) OVER (PARTITION BY c.tenant, c.stream
                                                  ORDER BY c.version) AS before
                FROM (
                  SELECT e.tenant, e.stream, e.version, e.recorded_at, round(greatest(
                           300, least(86400, coalesce((e.data->>'heartbeat_interval_s')::numeric,
                           21600))), 3)::double precision AS interval_s
                    FROM events e WHERE e.type IN ('agent.created', 'agent.configured')) c) b
           WHERE b.before IS NULL OR b.before <> b.interval_s
           ORDER BY tenant, stream, version DESC) s
          ON s.tenant = a.tenant AND s.stream = 'agent:' || a.id) x;
CREATE INDEX heartbeats_due ON heartbeats (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX heartbeats_asleep ON heartbeats (awake_at) WHERE awake_at IS NOT NULL;
"""

_DOWN = """
DROP TABLE heartbeats;
DROP TABLE knowledge;
DROP TABLE callbacks;
DROP INDEX events_undecided;
UPDATE items SET phase = phase - 'since' WHERE status = 'queued';
UPDATE items SET merge_key = CASE WHEN source_type <> 'heartbeat' THEN source_type || '/' || substr(
    merge_key, length(source_type || delivery || coalesce(session_id, '')) + 4) END
  WHERE merge_key IS NOT NULL;
ALTER TABLE agents DROP COLUMN last_triage;
ALTER TABLE memories DROP COLUMN by;
ALTER TABLE agents DROP COLUMN remembers;
ALTER TABLE agents DROP COLUMN dropped;
ALTER TABLE agents DROP COLUMN merged;
"""


def upgrade() -> None:
    """Make room for what a mind plans and waits for."""
    op.execute(_UP)


def downgrade() -> None:
    """Take it away again."""
    op.execute(_DOWN)
