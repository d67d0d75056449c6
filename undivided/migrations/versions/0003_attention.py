"""Items that merge, are put off, come back or are dropped, and turns that are set aside."""

from __future__ import annotations

from alembic import op

revision = "0003"
down_revision = "0002"

_UP = """
ALTER TABLE agents ADD COLUMN deferred INTEGER DEFAULT 0 NOT NULL;
ALTER TABLE agents ADD COLUMN merged INTEGER DEFAULT 0 NOT NULL;
ALTER TABLE agents ADD COLUMN dropped INTEGER DEFAULT 0 NOT NULL;
ALTER TABLE agents ADD COLUMN user_id TEXT;
ALTER TABLE agents ADD COLUMN remembers BOOLEAN DEFAULT false NOT NULL;
UPDATE agents a SET remembers = true
  WHERE EXISTS (SELECT 1 FROM events e WHERE e.tenant = a.tenant AND e.stream = 'agent:' || a.id
                   AND e.type = 'memory.noted');
ALTER TABLE memories ADD COLUMN by TEXT DEFAULT 'system' NOT NULL;
ALTER TABLE agents ADD COLUMN last_triage JSONB;
ALTER TABLE items ADD COLUMN merged INTEGER DEFAULT 0 NOT NULL;
ALTER TABLE items ADD COLUMN merge_key TEXT;
ALTER TABLE items ADD COLUMN weighed JSONB;
ALTER TABLE items ADD COLUMN merged_chars INTEGER DEFAULT 0 NOT NULL;
ALTER TABLE items ADD COLUMN merged_into TEXT;
ALTER TABLE sessions ADD COLUMN set_aside JSONB DEFAULT '[]' NOT NULL;

CREATE INDEX events_undecided ON events ((coalesce(data->>'item_id', data->>'turn_id')))
  WHERE type IN ('item.resurfaced','item.reprioritized','focus.answered','turn.stop_requested')
     OR (type = 'item.picked' AND data->'decision'->>'type' = 'triage');
CREATE INDEX items_joined ON items (tenant, merged_into) WHERE merged_into IS NOT NULL;
CREATE INDEX items_merging ON items (tenant, agent_id, merge_key)
  WHERE status = 'queued' AND merge_key IS NOT NULL;
CREATE INDEX items_deferred ON items (tenant, agent_id, priority, seq)
  WHERE status = 'deferred';

CREATE TABLE notifications (
  tenant TEXT DEFAULT 'default' NOT NULL,
  id TEXT NOT NULL,
  user_id TEXT NOT NULL,
  agent_id TEXT,
  kind TEXT NOT NULL,
  title TEXT NOT NULL,
  body TEXT NOT NULL,
  priority TEXT NOT NULL,
  action JSONB NOT NULL,
  approval_id TEXT,
  task_id TEXT,
  requirement_id TEXT,
  posted_at TIMESTAMPTZ NOT NULL,
  version BIGINT NOT NULL,
  changed_version BIGINT NOT NULL,
  read_at TIMESTAMPTZ,
  PRIMARY KEY (tenant, id)
);
INSERT INTO notifications (tenant, id, user_id, agent_id, kind, title, body, priority, action,
                           posted_at, version, changed_version)
  SELECT n.tenant, n.id, n.user_id, n.agent_id, 'system', 'An item was given up', n.text, 'high',
         '{}', n.posted_at, e.version, e.version
    FROM notices n
    JOIN events e ON e.tenant = n.tenant AND e.stream = 'user:' || n.user_id
     AND e.type = 'notice.posted' AND e.data->>'notice_id' = n.id;
CREATE INDEX notifications_of_user ON notifications (tenant, user_id, posted_at, id);
CREATE INDEX notifications_of_agent ON notifications (tenant, agent_id);
CREATE INDEX notifications_unread ON notifications (tenant, user_id) WHERE read_at IS NULL;
CREATE TABLE approvals (
  tenant TEXT DEFAULT 'default' NOT NULL,
  id TEXT NOT NULL,
  user_id TEXT NOT NULL,
  agent_id TEXT NOT NULL,
  turn_id TEXT NOT NULL,
  call_id TEXT NOT NULL,
  session_id TEXT NOT NULL,
  item_id TEXT NOT NULL,
  notification_id TEXT NOT NULL,
  title TEXT NOT NULL,
  description TEXT NOT NULL,
  options JSONB NOT NULL,
  allow_freeform BOOLEAN NOT NULL,
  priority TEXT NOT NULL,
  task_id TEXT,
  requested_at TIMESTAMPTZ NOT NULL,
  expires_at TIMESTAMPTZ,
  phase JSONB NOT NULL,
  version BIGINT NOT NULL,
  changed_version BIGINT NOT NULL,
  status TEXT NOT NULL,
  PRIMARY KEY (tenant, id)
);
CREATE INDEX approvals_by_time ON approvals (tenant, requested_at, id);
CREATE INDEX approvals_pending ON approvals (tenant, agent_id) WHERE status = 'pending';

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
DROP TABLE approvals;
DROP TABLE notifications;
DROP INDEX items_deferred;
DROP INDEX items_merging;
DROP INDEX items_joined;
DROP INDEX events_undecided;
ALTER TABLE sessions DROP COLUMN set_aside;
ALTER TABLE items DROP COLUMN merged_into;
ALTER TABLE items DROP COLUMN merged_chars;
ALTER TABLE items DROP COLUMN weighed;
ALTER TABLE items DROP COLUMN merge_key;
ALTER TABLE items DROP COLUMN merged;
ALTER TABLE agents DROP COLUMN last_triage;
ALTER TABLE memories DROP COLUMN by;
ALTER TABLE agents DROP COLUMN remembers;
ALTER TABLE agents DROP COLUMN user_id;
ALTER TABLE agents DROP COLUMN dropped;
ALTER TABLE agents DROP COLUMN merged;
ALTER TABLE agents DROP COLUMN deferred;
"""


def upgrade() -> None:
    """Make room for what attention records."""
    op.execute(_UP)


def downgrade() -> None:
    """Take it away again."""
    op.execute(_DOWN)
