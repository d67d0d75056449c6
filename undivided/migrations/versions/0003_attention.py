"""Items that merge, are put off, come back or are dropped, and turns that are set aside."""

from __future__ import annotations

from alembic import op

revision = "0003"
down_revision = "0002"

_UP = """
ALTER TABLE agents ADD COLUMN deferred INTEGER DEFAULT 0 NOT NULL;
ALTER TABLE agents ADD COLUMN user_id TEXT;
ALTER TABLE items ADD COLUMN merged INTEGER DEFAULT 0 NOT NULL;
ALTER TABLE items ADD COLUMN merge_key TEXT;
ALTER TABLE items ADD COLUMN weighed JSONB;
ALTER TABLE items ADD COLUMN merged_chars INTEGER DEFAULT 0 NOT NULL;
ALTER TABLE items ADD COLUMN merged_into TEXT;
ALTER TABLE sessions ADD COLUMN set_aside JSONB DEFAULT '[]' NOT NULL;

CREATE INDEX events_undecided ON events ((coalesce(data->>'item_id', data->>'turn_id')))
  WHERE type IN ('item.resurfaced','item.reprioritized','focus.answered','turn.stop_requested');
DROP INDEX items_lost;
CREATE INDEX items_lost ON items (tenant, agent_id, status)
  WHERE status IN ('cancelled','dead_letter','merged','dropped');
CREATE INDEX items_joined ON items (tenant, merged_into) WHERE merged_into IS NOT NULL;
CREATE INDEX items_merging ON items (tenant, agent_id, merge_key)
  WHERE status = 'queued' AND merge_key IS NOT NULL;
CREATE INDEX items_deferred ON items (tenant, agent_id, priority, seq)
  WHERE status = 'deferred';
"""

_DOWN = """
DROP INDEX items_deferred;
DROP INDEX items_merging;
DROP INDEX items_joined;
DROP INDEX items_lost;
CREATE INDEX items_lost ON items (tenant, agent_id, status)
  WHERE status IN ('cancelled','dead_letter');
DROP INDEX events_undecided;
ALTER TABLE sessions DROP COLUMN set_aside;
ALTER TABLE items DROP COLUMN merged_into;
ALTER TABLE items DROP COLUMN merged_chars;
ALTER TABLE items DROP COLUMN weighed;
ALTER TABLE items DROP COLUMN merge_key;
ALTER TABLE items DROP COLUMN merged;
ALTER TABLE agents DROP COLUMN user_id;
ALTER TABLE agents DROP COLUMN deferred;
"""


def upgrade() -> None:
    """Make room for what attention records."""
    op.execute(_UP)


def downgrade() -> None:
    """Take it away again."""
    op.execute(_DOWN)
