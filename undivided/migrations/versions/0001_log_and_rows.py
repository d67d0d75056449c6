"""The log, the rows folded from it, and what a running service needs beside them."""

from __future__ import annotations

from alembic import op

revision = "0001"
down_revision = None

_UP = """
CREATE TABLE activities (
  tenant TEXT DEFAULT 'default' NOT NULL,
  id TEXT NOT NULL,
  agent_id TEXT NOT NULL,
  item_id TEXT NOT NULL,
  session_id TEXT NOT NULL,
  type TEXT NOT NULL,
  summary TEXT NOT NULL,
  outcome TEXT,
  started_at TIMESTAMP WITH TIME ZONE NOT NULL,
  ended_at TIMESTAMP WITH TIME ZONE,
  PRIMARY KEY (tenant, id)
);

CREATE INDEX activities_of_agent ON activities (tenant, agent_id, started_at, id);

CREATE INDEX activities_of_item ON activities (tenant, item_id);

CREATE TABLE agents (
  tenant TEXT DEFAULT 'default' NOT NULL,
  id TEXT NOT NULL,
  name TEXT NOT NULL,
  definition TEXT,
  model TEXT NOT NULL,
  instructions TEXT NOT NULL,
  tools JSONB,
  policy JSONB NOT NULL,
  policy_version INTEGER NOT NULL,
  team_id TEXT,
  heartbeat_interval_s DOUBLE PRECISION,
  lifecycle TEXT NOT NULL,
  attention JSONB NOT NULL,
  attention_state TEXT GENERATED ALWAYS AS (attention->>'type') STORED,
  waiting INTEGER NOT NULL,
  next_seq BIGINT NOT NULL,
  created_at TIMESTAMP WITH TIME ZONE NOT NULL,
  changed_at TIMESTAMP WITH TIME ZONE NOT NULL,
  PRIMARY KEY (tenant, id),
  CONSTRAINT agents_waiting_counted CHECK (waiting >= 0),
  CONSTRAINT agents_lifecycle_known CHECK (lifecycle IN ('started','paused','stopped','deleted'))
);

CREATE INDEX agents_eager ON agents (tenant, id) WHERE waiting > 0 AND attention_state <> 'focused' AND lifecycle = 'started';

CREATE INDEX agents_focused ON agents (tenant, id) WHERE attention_state = 'focused';

CREATE TABLE blobs (
  tenant TEXT DEFAULT 'default' NOT NULL,
  sha256 VARCHAR(64) NOT NULL,
  content BYTEA NOT NULL,
  stored_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
  PRIMARY KEY (tenant, sha256)
);

CREATE TABLE decisions (
  tenant TEXT DEFAULT 'default' NOT NULL,
  id TEXT NOT NULL,
  agent_id TEXT NOT NULL,
  type TEXT NOT NULL,
  rule TEXT NOT NULL,
  reasoning TEXT NOT NULL,
  item_id TEXT NOT NULL,
  turn_id TEXT,
  inputs JSONB NOT NULL,
  losers JSONB NOT NULL,
  policy_version INTEGER NOT NULL,
  version BIGINT NOT NULL,
  made_at TIMESTAMP WITH TIME ZONE NOT NULL,
  PRIMARY KEY (tenant, id)
);

CREATE INDEX decisions_of_agent ON decisions (tenant, agent_id, version);

CREATE INDEX decisions_of_item ON decisions (tenant, item_id);

CREATE TABLE events (
  txid BIGINT NOT NULL,
  position BIGINT GENERATED ALWAYS AS IDENTITY,
  id UUID NOT NULL,
  tenant TEXT DEFAULT 'default' NOT NULL,
  stream TEXT NOT NULL,
  version BIGINT NOT NULL,
  type TEXT NOT NULL,
  schema SMALLINT NOT NULL,
  data JSONB NOT NULL,
  meta JSONB NOT NULL,
  recorded_at TIMESTAMP WITH TIME ZONE NOT NULL,
  bytes INTEGER NOT NULL,
  PRIMARY KEY (txid, position),
  CONSTRAINT events_id_once UNIQUE (id),
  CONSTRAINT events_version_once UNIQUE (tenant, stream, version),
  CONSTRAINT events_version_positive CHECK (version >= 1),
  CONSTRAINT events_bounded CHECK (bytes <= 262144)
);

CREATE INDEX events_causation ON events ((meta->>'causation')) WHERE meta ? 'causation';

CREATE TABLE flights (
  tenant TEXT DEFAULT 'default' NOT NULL,
  id TEXT NOT NULL,
  epoch BIGINT NOT NULL,
  worker TEXT NOT NULL,
  held BOOLEAN NOT NULL,
  since TIMESTAMP WITH TIME ZONE NOT NULL,
  lock_key BIGINT GENERATED ALWAYS AS (hashtextextended(tenant || '/' || id, 0)) STORED,
  PRIMARY KEY (tenant, id)
);

CREATE INDEX flights_held ON flights (tenant, id) WHERE held;

CREATE TABLE idempotency (
  tenant TEXT DEFAULT 'default' NOT NULL,
  key TEXT NOT NULL,
  request VARCHAR(64) NOT NULL,
  status SMALLINT,
  answer BYTEA,
  kept_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
  PRIMARY KEY (tenant, key)
);

CREATE TABLE items (
  tenant TEXT DEFAULT 'default' NOT NULL,
  id TEXT NOT NULL,
  agent_id TEXT NOT NULL,
  source_type TEXT NOT NULL,
  category TEXT NOT NULL,
  priority SMALLINT NOT NULL,
  seq BIGINT NOT NULL,
  delivery TEXT NOT NULL,
  session_id TEXT,
  payload JSONB NOT NULL,
  sender JSONB NOT NULL,
  tries JSONB NOT NULL,
  phase JSONB NOT NULL,
  queued_at TIMESTAMP WITH TIME ZONE NOT NULL,
  accepted_by TEXT NOT NULL,
  correlation TEXT NOT NULL,
  not_before TIMESTAMP WITH TIME ZONE,
  status TEXT GENERATED ALWAYS AS (phase->>'status') STORED,
  PRIMARY KEY (tenant, id),
  CONSTRAINT items_seq_once UNIQUE (tenant, agent_id, seq),
  CONSTRAINT items_priority_known CHECK (priority BETWEEN 0 AND 4),
  CONSTRAINT items_status_known CHECK (phase->>'status' IN ('queued','processing','completed','cancelled','dead_letter'))
);

CREATE INDEX items_lost ON items (tenant, agent_id, status) WHERE status IN ('cancelled','dead_letter');

CREATE INDEX items_waiting ON items (tenant, agent_id, priority, seq) WHERE status = 'queued';

CREATE TABLE log_base (
  one BOOLEAN DEFAULT true NOT NULL,
  txid_base BIGINT NOT NULL,
  PRIMARY KEY (one),
  CONSTRAINT log_base_single CHECK (one)
);

CREATE TABLE memories (
  tenant TEXT DEFAULT 'default' NOT NULL,
  id TEXT NOT NULL,
  agent_id TEXT NOT NULL,
  key TEXT NOT NULL,
  content TEXT NOT NULL,
  noted_at TIMESTAMP WITH TIME ZONE NOT NULL,
  PRIMARY KEY (tenant, id)
);

CREATE INDEX memories_of_agent ON memories (tenant, agent_id, noted_at);

CREATE TABLE notices (
  tenant TEXT DEFAULT 'default' NOT NULL,
  id TEXT NOT NULL,
  user_id TEXT NOT NULL,
  agent_id TEXT NOT NULL,
  item_id TEXT NOT NULL,
  kind TEXT NOT NULL,
  text TEXT NOT NULL,
  posted_at TIMESTAMP WITH TIME ZONE NOT NULL,
  PRIMARY KEY (tenant, id),
  CONSTRAINT notices_once UNIQUE (tenant, item_id, kind)
);

CREATE TABLE sessions (
  tenant TEXT DEFAULT 'default' NOT NULL,
  id TEXT NOT NULL,
  agent_id TEXT NOT NULL,
  status TEXT NOT NULL,
  binding JSONB NOT NULL,
  active_turn TEXT,
  turns INTEGER NOT NULL,
  responses INTEGER NOT NULL,
  usage JSONB NOT NULL,
  opened_at TIMESTAMP WITH TIME ZONE NOT NULL,
  changed_at TIMESTAMP WITH TIME ZONE NOT NULL,
  PRIMARY KEY (tenant, id)
);

CREATE INDEX sessions_of_agent ON sessions (tenant, agent_id, opened_at);

CREATE TABLE snapshots (
  tenant TEXT DEFAULT 'default' NOT NULL,
  stream TEXT NOT NULL,
  reducer TEXT NOT NULL,
  version BIGINT NOT NULL,
  txid BIGINT NOT NULL,
  position BIGINT NOT NULL,
  state JSONB NOT NULL,
  PRIMARY KEY (tenant, stream, reducer, version)
);

CREATE TABLE streams (
  tenant TEXT DEFAULT 'default' NOT NULL,
  stream TEXT NOT NULL,
  version BIGINT NOT NULL,
  PRIMARY KEY (tenant, stream)
);

CREATE TABLE turns (
  tenant TEXT DEFAULT 'default' NOT NULL,
  id TEXT NOT NULL,
  agent_id TEXT NOT NULL,
  session_id TEXT NOT NULL,
  item_ids JSONB NOT NULL,
  scenario TEXT NOT NULL,
  origin TEXT NOT NULL,
  index INTEGER NOT NULL,
  responses_before INTEGER NOT NULL,
  phase JSONB NOT NULL,
  flights INTEGER NOT NULL,
  orphaned INTEGER NOT NULL,
  usage JSONB NOT NULL,
  first_version BIGINT NOT NULL,
  last_version BIGINT,
  started_at TIMESTAMP WITH TIME ZONE NOT NULL,
  wake_at TIMESTAMP WITH TIME ZONE,
  status TEXT GENERATED ALWAYS AS (phase->>'status') STORED,
  PRIMARY KEY (tenant, id),
  CONSTRAINT turns_status_known CHECK (phase->>'status' IN ('running','suspended','ended')),
  CONSTRAINT turns_end_recorded CHECK ((phase->>'status' = 'ended') = (last_version IS NOT NULL))
);

CREATE INDEX turns_waiting ON turns (wake_at) WHERE status = 'suspended';

CREATE TABLE workers (
  id TEXT NOT NULL,
  lock_pid INTEGER NOT NULL,
  lease_until TIMESTAMP WITH TIME ZONE NOT NULL,
  started_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
  PRIMARY KEY (id)
);

INSERT INTO log_base (txid_base) VALUES (0);

CREATE FUNCTION events_are_kept() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'events are append-only: % refused', TG_OP USING ERRCODE = 'UV003';
END $$;

CREATE TRIGGER events_append_only BEFORE UPDATE OR DELETE ON events
  FOR EACH ROW EXECUTE FUNCTION events_are_kept();
CREATE TRIGGER events_never_truncated BEFORE TRUNCATE ON events
  FOR EACH STATEMENT EXECUTE FUNCTION events_are_kept();

ALTER TABLE agents SET (fillfactor = 70);
ALTER TABLE streams SET (fillfactor = 70);
ALTER TABLE flights SET (fillfactor = 70);
"""

_TABLES = (
    "workers",
    "turns",
    "streams",
    "snapshots",
    "sessions",
    "notices",
    "memories",
    "log_base",
    "items",
    "idempotency",
    "flights",
    "events",
    "decisions",
    "blobs",
    "agents",
    "activities",
)


def upgrade() -> None:
    """Create everything of the first release."""
    op.execute(_UP)


def downgrade() -> None:
    """Remove it again, history included."""
    for name in _TABLES:
        op.execute(f'DROP TABLE "{name}" CASCADE')
    op.execute("DROP FUNCTION IF EXISTS events_are_kept() CASCADE")
