"""The table of acts: each kind of command that a tool can give, and how it is decided."""

from __future__ import annotations

from undivided.domain.approvals import AskPerson
from undivided.domain.interval import SetHeartbeatInterval
from undivided.domain.mailbox_tools import CheckMailbox, DeferItem, DropItem, PrioritizeItem
from undivided.domain.notifications import Tell
from undivided.domain.planning import CompleteDeliberation
from undivided.domain.tooling import Act
from undivided.store.acts import heartbeat, mailbox, people, triage
from undivided.store.acts.doing import Doing

ACTS: dict[type[Act], Doing] = {
    Tell: people.TELLING,
    AskPerson: people.ASKING,
    CheckMailbox: mailbox.CHECKING,
    DeferItem: mailbox.DEFERRING,
    DropItem: mailbox.DROPPING,
    PrioritizeItem: mailbox.PRIORITIZING,
    CompleteDeliberation: triage.COMPLETING,
    SetHeartbeatInterval: heartbeat.SETTING_INTERVAL,
}
