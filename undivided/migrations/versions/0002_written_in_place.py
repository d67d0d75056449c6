"""Rows that are written in place while a turn runs, and the edition of the rows."""

from __future__ import annotations

from alembic import op

revision = "0002"
down_revision = "0001"

_UP = """
ALTER TABLE log_base ADD COLUMN edition BIGINT DEFAULT 0 NOT NULL;

DROP INDEX agents_eager;
DROP INDEX agents_focused;
DROP INDEX turns_waiting;

ALTER TABLE agents DROP CONSTRAINT agents_waiting_counted;
ALTER TABLE agents DROP CONSTRAINT agents_lifecycle_known;
ALTER TABLE items DROP CONSTRAINT items_priority_known;
ALTER TABLE items DROP CONSTRAINT items_status_known;
ALTER TABLE turns DROP CONSTRAINT turns_status_known;
ALTER TABLE turns DROP CONSTRAINT turns_end_recorded;

ALTER TABLE agents ALTER COLUMN attention_state DROP EXPRESSION;
ALTER TABLE items ALTER COLUMN status DROP EXPRESSION;
ALTER TABLE turns ALTER COLUMN status DROP EXPRESSION;
ALTER TABLE flights DROP COLUMN lock_key;

-- What the release before wrote with: it would leave the columns out that Postgres made for it.
DROP FUNCTION IF EXISTS sweep(text, double precision, int);
DROP FUNCTION IF EXISTS log_grow(text, text, bigint, bigint);
DROP FUNCTION IF EXISTS log_append(text, jsonb);

ALTER TABLE agents ADD COLUMN wants_worker BOOLEAN;
UPDATE agents SET wants_worker = (attention->>'type') = 'focused'
  OR (attention->>'stop_by') IS NOT NULL OR (waiting > 0 AND lifecycle = 'started');

ALTER TABLE agents ALTER COLUMN attention_state SET NOT NULL;
ALTER TABLE agents ALTER COLUMN wants_worker SET NOT NULL;
ALTER TABLE items ALTER COLUMN status SET NOT NULL;
ALTER TABLE turns ALTER COLUMN status SET NOT NULL;

CREATE INDEX agents_wanting ON agents (id) WHERE wants_worker;
CREATE INDEX turns_waiting ON turns (wake_at) WHERE wake_at IS NOT NULL;

ALTER TABLE items SET (fillfactor = 80);
ALTER TABLE turns SET (fillfactor = 80);
ALTER TABLE sessions SET (fillfactor = 80);
ALTER TABLE activities SET (fillfactor = 80);
"""

_DOWN = """
ALTER TABLE items RESET (fillfactor);
ALTER TABLE turns RESET (fillfactor);
ALTER TABLE sessions RESET (fillfactor);
ALTER TABLE activities RESET (fillfactor);

DROP INDEX turns_waiting;
DROP INDEX agents_wanting;
DROP INDEX items_lost;
DROP INDEX items_waiting;
ALTER TABLE agents DROP COLUMN wants_worker;

ALTER TABLE flights ADD COLUMN lock_key BIGINT
  GENERATED ALWAYS AS (hashtextextended(tenant || '/' || id, 0)) STORED;
ALTER TABLE turns DROP COLUMN status;
ALTER TABLE turns ADD COLUMN status TEXT GENERATED ALWAYS AS (phase->>'status') STORED;
ALTER TABLE items DROP COLUMN status;
ALTER TABLE items ADD COLUMN status TEXT GENERATED ALWAYS AS (phase->>'status') STORED;
ALTER TABLE agents DROP COLUMN attention_state;
ALTER TABLE agents ADD COLUMN attention_state TEXT
  GENERATED ALWAYS AS (attention->>'type') STORED;

ALTER TABLE turns ADD CONSTRAINT turns_end_recorded
  CHECK ((phase->>'status' = 'ended') = (last_version IS NOT NULL));
ALTER TABLE turns ADD CONSTRAINT turns_status_known
  CHECK (phase->>'status' IN ('running','suspended','ended'));
ALTER TABLE items ADD CONSTRAINT items_status_known
  CHECK (phase->>'status' IN ('queued','processing','completed','cancelled','dead_letter'));
ALTER TABLE items ADD CONSTRAINT items_priority_known CHECK (priority BETWEEN 0 AND 4);
ALTER TABLE agents ADD CONSTRAINT agents_lifecycle_known
  CHECK (lifecycle IN ('started','paused','stopped','deleted'));
ALTER TABLE agents ADD CONSTRAINT agents_waiting_counted CHECK (waiting >= 0);

CREATE INDEX items_lost ON items (tenant, agent_id, status)
  WHERE status IN ('cancelled','dead_letter');
CREATE INDEX items_waiting ON items (tenant, agent_id, priority, seq) WHERE status = 'queued';
CREATE INDEX turns_waiting ON turns (wake_at) WHERE status = 'suspended';
CREATE INDEX agents_focused ON agents (tenant, id) WHERE attention_state = 'focused';
CREATE INDEX agents_eager ON agents (tenant, id)
  WHERE waiting > 0 AND attention_state <> 'focused' AND lifecycle = 'started';

ALTER TABLE log_base DROP COLUMN edition;
DROP FUNCTION IF EXISTS sweep(text, double precision, int, text);
DROP FUNCTION IF EXISTS log_guard(text, text, bigint, bigint, text[], bigint[], bigint[]);
DROP FUNCTION IF EXISTS log_write(text, jsonb);
DROP FUNCTION IF EXISTS log_advance(text, text, bigint, bigint);
DROP FUNCTION IF EXISTS log_take(text, text);
DROP FUNCTION IF EXISTS log_edition(bigint);
"""


def upgrade() -> None:
    """Take out what made writing a row dear: constraints, generated columns, indexes on changes.

    Locks the tables of agents, items and turns while it runs, and writes every agent's row.
    """
    op.execute(_UP)


def downgrade() -> None:
    """Put constraints, generated columns and an index for each question back."""
    op.execute(_DOWN)
