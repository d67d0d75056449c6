"""Rows that are written in place while a turn runs, and the edition of the rows."""

from __future__ import annotations

from alembic import op

revision = "0002"
down_revision = "0001"

_UP = """
ALTER TABLE log_base ADD COLUMN edition BIGINT DEFAULT 0 NOT NULL;

DROP INDEX agents_eager;
DROP INDEX agents_focused;
DROP INDEX flights_held;
DROP INDEX turns_waiting;

ALTER TABLE agents ADD COLUMN wants_worker BOOLEAN GENERATED ALWAYS AS (
  (attention->>'type') = 'focused' OR (attention->>'stop_by') IS NOT NULL
  OR (waiting > 0 AND lifecycle = 'started')) STORED;

CREATE INDEX agents_wanting ON agents (tenant, id) WHERE wants_worker;
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
ALTER TABLE agents DROP COLUMN wants_worker;

CREATE INDEX turns_waiting ON turns (wake_at) WHERE status = 'suspended';
CREATE INDEX flights_held ON flights (tenant, id) WHERE held;
CREATE INDEX agents_focused ON agents (tenant, id) WHERE attention_state = 'focused';
CREATE INDEX agents_eager ON agents (tenant, id)
  WHERE waiting > 0 AND attention_state <> 'focused' AND lifecycle = 'started';

ALTER TABLE log_base DROP COLUMN edition;
"""


def upgrade() -> None:
    """Index what the sweep looks for once instead of three times."""
    op.execute(_UP)


def downgrade() -> None:
    """Go back to an index for each question."""
    op.execute(_DOWN)
