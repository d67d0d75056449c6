"""The tables of the log itself, and the operational ones beside it.

`events` is the truth; the operational tables hold what is worth nothing after a restart (leases,
idempotency answers, snapshots). What is folded from the log is in `tables.py`. Every table
carries the tenant, and its key begins with it.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Identity,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    SmallInteger,
    String,
    Table,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB, TIMESTAMP, UUID

METADATA = MetaData()
AT = TIMESTAMP(timezone=True)


def tenant() -> Column[str]:
    """The first part of every key."""
    return Column("tenant", Text, nullable=False, server_default=text("'default'"))


events = Table(
    "events",
    METADATA,
    Column("txid", BigInteger, nullable=False),
    Column("position", BigInteger, Identity(always=True), nullable=False),
    Column("id", UUID(as_uuid=False), nullable=False),
    tenant(),
    Column("stream", Text, nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("type", Text, nullable=False),
    Column("schema", SmallInteger, nullable=False),
    Column("data", JSONB, nullable=False),
    Column("meta", JSONB, nullable=False),
    Column("recorded_at", AT, nullable=False),
    Column("bytes", Integer, nullable=False),
    PrimaryKeyConstraint("txid", "position"),
    UniqueConstraint("id", name="events_id_once"),
    UniqueConstraint("tenant", "stream", "version", name="events_version_once"),
    CheckConstraint("version >= 1", name="events_version_positive"),
    CheckConstraint("bytes <= 262144", name="events_bounded"),
    Index("events_causation", text("(meta->>'causation')"),
          postgresql_where=text("meta ? 'causation'")),
    # What is about an item or a turn and carries out no decision, by which it could be found.
    Index("events_undecided", text("(coalesce(data->>'item_id', data->>'turn_id'))"),
          postgresql_where=text(
              "type IN ('item.resurfaced','item.reprioritized','focus.answered',"
              "'turn.stop_requested')"
              " OR (type = 'item.picked' AND data->'decision'->>'type' = 'triage')")),
)  # fmt: skip

streams = Table(
    "streams",
    METADATA,
    tenant(),
    Column("stream", Text, nullable=False),
    Column("version", BigInteger, nullable=False),
    PrimaryKeyConstraint("tenant", "stream"),
)

log_base = Table(
    "log_base",
    METADATA,
    Column("one", Boolean, primary_key=True, server_default=text("true")),
    Column("txid_base", BigInteger, nullable=False),
    Column("edition", BigInteger, nullable=False, server_default=text("0")),
    CheckConstraint("one", name="log_base_single"),
)

blobs = Table(
    "blobs",
    METADATA,
    tenant(),
    Column("sha256", String(64), nullable=False),
    Column("content", LargeBinary, nullable=False),
    Column("stored_at", AT, nullable=False, server_default=text("now()")),
    PrimaryKeyConstraint("tenant", "sha256"),
)

snapshots = Table(
    "snapshots",
    METADATA,
    tenant(),
    Column("stream", Text, nullable=False),
    Column("reducer", Text, nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("txid", BigInteger, nullable=False),
    Column("position", BigInteger, nullable=False),
    Column("state", JSONB, nullable=False),
    PrimaryKeyConstraint("tenant", "stream", "reducer", "version"),
)

idempotency = Table(
    "idempotency",
    METADATA,
    tenant(),
    Column("key", Text, nullable=False),
    Column("request", String(64), nullable=False),
    Column("status", SmallInteger),
    Column("answer", LargeBinary),
    Column("kept_at", AT, nullable=False, server_default=text("now()")),
    PrimaryKeyConstraint("tenant", "key"),
)

workers = Table(
    "workers",
    METADATA,
    Column("id", Text, primary_key=True),
    Column("lock_pid", Integer, nullable=False),
    Column("lease_until", AT, nullable=False),
    Column("started_at", AT, nullable=False, server_default=text("now()")),
)

# One column for all that the sweep looks for, so that an index need not be written to while it
# stays true: a row that changes in no indexed column is written in place.
