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
"""

_DOWN = """
DROP TABLE approvals;
DROP TABLE notifications;
DROP INDEX items_deferred;
DROP INDEX items_merging;
DROP INDEX items_joined;
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
