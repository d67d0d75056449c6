"""Every projected table, typed, in one place: each is folded from the log and can be rebuilt.

Rows have keys and, where two may not be the same, uniqueness: they are made by typed reducers,
`undivided check` compares them with the log, and a wrong row that Postgres refused would refuse
the event with it. Columns that are taken out of others are written with them, for Postgres reads
the text of each constraint and of each generated column anew for every statement: a third of the
time of an update.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Double,
    Index,
    Integer,
    PrimaryKeyConstraint,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

from undivided.store.log_tables import AT as _AT
from undivided.store.log_tables import METADATA as _LOG
from undivided.store.log_tables import tenant as _tenant

METADATA = _LOG
"""Of every table, those of the log included."""
_WANTS_WORKER = (
    "(r.attention->>'type') = 'focused' OR (r.attention->>'stop_by') IS NOT NULL"
    " OR (r.attention->>'answer') IS NOT NULL"
    " OR (r.waiting + r.deferred > 0 AND r.lifecycle = 'started')"
)

agents = Table(
    "agents",
    METADATA,
    _tenant(),
    Column("id", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("definition", Text),
    Column("model", Text, nullable=False),
    Column("instructions", Text, nullable=False),
    Column("tools", JSONB),
    Column("policy", JSONB, nullable=False),
    Column("policy_version", Integer, nullable=False),
    Column("team_id", Text),
    Column("heartbeat_interval_s", Double),
    Column("lifecycle", Text, nullable=False),
    Column("attention", JSONB, nullable=False),
    Column("attention_state", Text, nullable=False, info={"folded_as": "r.attention->>'type'"}),
    Column("wants_worker", Boolean, nullable=False, info={"folded_as": _WANTS_WORKER}),
    Column("waiting", Integer, nullable=False),
    Column("next_seq", BigInteger, nullable=False),
    Column("created_at", _AT, nullable=False),
    Column("changed_at", _AT, nullable=False),
    Column("deferred", Integer, nullable=False, server_default=text("0")),
    Column("merged", Integer, nullable=False, server_default=text("0")),
    Column("dropped", Integer, nullable=False, server_default=text("0")),
    Column("user_id", Text),
    Column("last_triage", JSONB),
    Column("remembers", Boolean, nullable=False, server_default=text("false")),
    PrimaryKeyConstraint("tenant", "id"),
    Index("agents_wanting", "id", postgresql_where=text("wants_worker")),
)  # fmt: skip

flights = Table(
    "flights",
    METADATA,
    _tenant(),
    Column("id", Text, nullable=False),
    Column("epoch", BigInteger, nullable=False),
    Column("worker", Text, nullable=False),
    Column("held", Boolean, nullable=False),
    Column("since", _AT, nullable=False),
    PrimaryKeyConstraint("tenant", "id"),
    Index("flights_held", "tenant", "id", postgresql_where=text("held")),
)  # fmt: skip

items = Table(
    "items",
    METADATA,
    _tenant(),
    Column("id", Text, nullable=False), Column("agent_id", Text, nullable=False),
    Column("source_type", Text, nullable=False),
    Column("category", Text, nullable=False),
    Column("priority", SmallInteger, nullable=False),
    Column("seq", BigInteger, nullable=False),
    Column("delivery", Text, nullable=False),
    Column("session_id", Text),
    Column("payload", JSONB, nullable=False),
    Column("sender", JSONB, nullable=False),
    Column("tries", JSONB, nullable=False),
    Column("phase", JSONB, nullable=False),
    Column("queued_at", _AT, nullable=False),
    Column("accepted_by", Text, nullable=False),
    Column("correlation", Text, nullable=False),
    Column("merged", Integer, nullable=False, server_default=text("0")),
    Column("merge_key", Text),
    Column("weighed", JSONB),
    Column("merged_chars", Integer, nullable=False, server_default=text("0")),
    Column("merged_into", Text, info={"folded_as": "r.phase->>'into'"}),
    Column("not_before", _AT,
           info={"folded_as": "coalesce(r.phase->>'not_before', r.phase->>'until')::timestamptz"}),
    Column("status", Text, nullable=False, info={"folded_as": "r.phase->>'status'"}),
    PrimaryKeyConstraint("tenant", "id"),
    UniqueConstraint("tenant", "agent_id", "seq", name="items_seq_once"),
    Index("items_lost", "tenant", "agent_id", "status",
          postgresql_where=text("status IN ('cancelled','dead_letter')")),
    Index("items_joined", "tenant", "merged_into",
          postgresql_where=text("merged_into IS NOT NULL")),
    Index("items_merging", "tenant", "agent_id", "merge_key",
          postgresql_where=text("status = 'queued' AND merge_key IS NOT NULL")),
    Index("items_deferred", "tenant", "agent_id", "priority", "seq",
          postgresql_where=text("status = 'deferred'")),
    Index("items_waiting", "tenant", "agent_id", "priority", "seq",
          postgresql_where=text("status = 'queued'")),
)  # fmt: skip

sessions = Table(
    "sessions",
    METADATA,
    _tenant(),
    Column("id", Text, nullable=False),
    Column("agent_id", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("binding", JSONB, nullable=False),
    Column("active_turn", Text),
    Column("turns", Integer, nullable=False),
    Column("responses", Integer, nullable=False),
    Column("usage", JSONB, nullable=False),
    Column("opened_at", _AT, nullable=False),
    Column("changed_at", _AT, nullable=False),
    Column("set_aside", JSONB, nullable=False, server_default=text("'[]'")),
    PrimaryKeyConstraint("tenant", "id"),
    Index("sessions_of_agent", "tenant", "agent_id", "opened_at"),
)

turns = Table(
    "turns",
    METADATA,
    _tenant(),
    Column("id", Text, nullable=False),
    Column("agent_id", Text, nullable=False),
    Column("session_id", Text, nullable=False),
    Column("item_ids", JSONB, nullable=False),
    Column("scenario", Text, nullable=False),
    Column("origin", Text, nullable=False),
    Column("index", Integer, nullable=False),
    Column("responses_before", Integer, nullable=False),
    Column("phase", JSONB, nullable=False),
    Column("flights", Integer, nullable=False),
    Column("orphaned", Integer, nullable=False),
    Column("usage", JSONB, nullable=False),
    Column("first_version", BigInteger, nullable=False),
    Column("last_version", BigInteger),
    Column("started_at", _AT, nullable=False),
    Column("wake_at", _AT, info={"folded_as": "(r.phase->>'until')::timestamptz"}),
    Column("status", Text, nullable=False, info={"folded_as": "r.phase->>'status'"}),
    PrimaryKeyConstraint("tenant", "id"),
    Index("turns_waiting", "wake_at", postgresql_where=text("wake_at IS NOT NULL")),
)  # fmt: skip

activities = Table(
    "activities",
    METADATA,
    _tenant(),
    Column("id", Text, nullable=False),
    Column("agent_id", Text, nullable=False),
    Column("item_id", Text, nullable=False),
    Column("session_id", Text, nullable=False),
    Column("type", Text, nullable=False),
    Column("summary", Text, nullable=False),
    Column("outcome", Text),
    Column("started_at", _AT, nullable=False),
    Column("ended_at", _AT),
    PrimaryKeyConstraint("tenant", "id"),
    Index("activities_of_agent", "tenant", "agent_id", "started_at", "id"),
    Index("activities_of_item", "tenant", "item_id"),
)

decisions = Table(
    "decisions",
    METADATA,
    _tenant(),
    Column("id", Text, nullable=False),
    Column("agent_id", Text, nullable=False),
    Column("type", Text, nullable=False),
    Column("rule", Text, nullable=False),
    Column("reasoning", Text, nullable=False),
    Column("item_id", Text, nullable=False),
    Column("turn_id", Text),
    Column("inputs", JSONB, nullable=False),
    Column("losers", JSONB, nullable=False),
    Column("policy_version", Integer, nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("made_at", _AT, nullable=False),
    PrimaryKeyConstraint("tenant", "id"),
    Index("decisions_of_agent", "tenant", "agent_id", "version"),
    Index("decisions_of_item", "tenant", "item_id"),
)

memories = Table(
    "memories",
    METADATA,
    _tenant(),
    Column("id", Text, nullable=False),
    Column("agent_id", Text, nullable=False),
    Column("key", Text, nullable=False),
    Column("content", Text, nullable=False),
    Column("noted_at", _AT, nullable=False),
    Column("by", Text, nullable=False, server_default=text("'system'")),
    PrimaryKeyConstraint("tenant", "id"),
    Index("memories_of_agent", "tenant", "agent_id", "noted_at"),
)

notices = Table(
    "notices",
    METADATA,
    _tenant(),
    Column("id", Text, nullable=False),
    Column("user_id", Text, nullable=False),
    Column("agent_id", Text, nullable=False),
    Column("item_id", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("posted_at", _AT, nullable=False),
    PrimaryKeyConstraint("tenant", "id"),
    UniqueConstraint("tenant", "item_id", "kind", name="notices_once"),
)

notifications = Table(
    "notifications",
    METADATA,
    _tenant(),
    Column("id", Text, nullable=False),
    Column("user_id", Text, nullable=False),
    Column("agent_id", Text),
    Column("kind", Text, nullable=False),
    Column("title", Text, nullable=False),
    Column("body", Text, nullable=False),
    Column("priority", Text, nullable=False),
    Column("action", JSONB, nullable=False),
    Column("approval_id", Text),
    Column("task_id", Text),
    Column("requirement_id", Text),
    Column("posted_at", _AT, nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("changed_version", BigInteger, nullable=False),
    Column("read_at", _AT),
    PrimaryKeyConstraint("tenant", "id"),
    Index("notifications_of_user", "tenant", "user_id", "posted_at", "id"),
    Index("notifications_of_agent", "tenant", "agent_id"),
    Index("notifications_unread", "tenant", "user_id", postgresql_where=text("read_at IS NULL")),
)

approvals = Table(
    "approvals",
    METADATA,
    _tenant(),
    Column("id", Text, nullable=False),
    Column("user_id", Text, nullable=False),
    Column("agent_id", Text, nullable=False),
    Column("turn_id", Text, nullable=False),
    Column("call_id", Text, nullable=False),
    Column("session_id", Text, nullable=False),
    Column("item_id", Text, nullable=False),
    Column("notification_id", Text, nullable=False),
    Column("title", Text, nullable=False),
    Column("description", Text, nullable=False),
    Column("options", JSONB, nullable=False),
    Column("allow_freeform", Boolean, nullable=False),
    Column("priority", Text, nullable=False),
    Column("task_id", Text),
    Column("requested_at", _AT, nullable=False),
    Column("expires_at", _AT),
    Column("phase", JSONB, nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("changed_version", BigInteger, nullable=False),
    Column("status", Text, nullable=False, info={"folded_as": "r.phase->>'status'"}),
    PrimaryKeyConstraint("tenant", "id"),
    Index("approvals_by_time", "tenant", "requested_at", "id"),
    Index("approvals_pending", "tenant", "agent_id", postgresql_where=text("status = 'pending'")),
)

callbacks = Table(
    "callbacks",
    METADATA,
    _tenant(),
    Column("id", Text, nullable=False),
    Column("agent_id", Text, nullable=False),
    Column("type", Text, nullable=False),
    Column("delivery", Text, nullable=False),
    Column("origin_session_id", Text, nullable=False),
    Column("turn_id", Text),
    Column("command", Text, nullable=False),
    Column("note", Text, nullable=False),
    Column("correlation_id", Text),
    Column("wake_at", _AT),
    Column("recurring_s", Double),
    Column("registered_at", _AT, nullable=False),
    Column("timeout_s", Double),
    Column("host", Text),
    Column("limit_s", Double),
    Column("misfire", Text, nullable=False),
    Column("phase", JSONB, nullable=False),
    Column("registered_by", Text, nullable=False),
    Column("correlation", Text, nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("changed_version", BigInteger, nullable=False),
    Column("status", Text, nullable=False, info={"folded_as": "r.phase->>'status'"}),
    PrimaryKeyConstraint("tenant", "id"),
    Index("callbacks_of_agent", "tenant", "agent_id", "status"),
    Index("callbacks_due", "wake_at", postgresql_where=text(
        "status = 'pending' AND wake_at IS NOT NULL")),
    Index("callbacks_running", "host", postgresql_where=text(
        "type = 'background_exec' AND status IN ('pending','timed_out')")),
)  # fmt: skip

_DUE_AT = (
    "CASE WHEN r.lifecycle = 'started' THEN"
    " least(CASE WHEN r.enabled THEN r.next_at END, r.report_at, r.consolidate_at) END"
)
heartbeats = Table(
    "heartbeats",
    METADATA,
    _tenant(),
    Column("id", Text, nullable=False),
    Column("lifecycle", Text, nullable=False),
    Column("interval_s", Double, nullable=False),
    Column("enabled", Boolean, nullable=False),
    Column("pace_s", Double, nullable=False),
    Column("next_at", _AT, nullable=False),
    Column("judged_at", _AT, nullable=False),
    Column("awake_at", _AT),
    Column("streak", Integer, nullable=False),
    Column("fingerprint", Text),
    Column("last_at", _AT),
    Column("item_id", Text),
    Column("put_off", Boolean, nullable=False),
    Column("report_time", Text, nullable=False),
    Column("report_zone", Text, nullable=False),
    Column("report_at", _AT),
    Column("report_placed", Boolean, nullable=False),
    Column("reported_day", Text),
    Column("report_item_id", Text),
    Column("consolidate_s", Double, nullable=False),
    Column("consolidate_at", _AT),
    Column("consolidated_seq", BigInteger, nullable=False),
    Column("consolidated_at", _AT),
    Column("consolidation_item_id", Text),
    Column("due_at", _AT, info={"folded_as": _DUE_AT}),
    PrimaryKeyConstraint("tenant", "id"),
    Index("heartbeats_due", "due_at", postgresql_where=text("due_at IS NOT NULL")),
    Index("heartbeats_asleep", "awake_at", postgresql_where=text("awake_at IS NOT NULL")),
)  # fmt: skip

knowledge = Table(
    "knowledge",
    METADATA,
    _tenant(),
    Column("id", Text, nullable=False),
    Column("agent_id", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("key", Text, nullable=False),
    Column("content", Text, nullable=False),
    Column("saved_at", _AT, nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("changed_version", BigInteger, nullable=False),
    PrimaryKeyConstraint("tenant", "id"),
    Index("knowledge_of_agent", "tenant", "agent_id", "kind", "saved_at"),
    Index("knowledge_words", text(
        "to_tsvector('simple'::regconfig, (key || ' '::text) || content)"), postgresql_using="gin"),
)  # fmt: skip

PROJECTED: tuple[Table, ...] = (
    agents, flights, items, sessions, turns, activities, decisions, memories, notices,
    notifications, approvals, callbacks, heartbeats, knowledge,
)  # fmt: skip
"""The tables that are folded from the log, in the order in which they are written."""


def folded_columns(table: Table) -> dict[str, str]:
    """The columns that a fold writes, each with the SQL that takes it from the row `r`."""
    return {
        c.name: c.info.get("folded_as", f'r."{c.name}"')
        for c in table.columns
        if c.name != "tenant"
    }
