"""The table of acts: each kind of command that a tool can give, and how it is decided."""

from __future__ import annotations

from undivided.domain.approvals import AskPerson
from undivided.domain.callbacks import AwaitReply, CancelWakeup, RunInBackground, ScheduleWakeup
from undivided.domain.interval import SetHeartbeatInterval
from undivided.domain.mailbox_tools import CheckMailbox, DeferItem, DropItem, PrioritizeItem
from undivided.domain.notifications import Tell
from undivided.domain.planning import CompleteDeliberation
from undivided.domain.tooling import Act
from undivided.store.acts import callbacks, heartbeat, mailbox, people, triage
from undivided.store.acts.doing import Doing

ACTS: dict[type[Act], Doing] = {
    Tell: people.TELLING,
    AskPerson: people.ASKING,
    CheckMailbox: mailbox.CHECKING,
    DeferItem: mailbox.DEFERRING,
    DropItem: mailbox.DROPPING,
    PrioritizeItem: mailbox.PRIORITIZING,
    CompleteDeliberation: triage.COMPLETING,
    ScheduleWakeup: callbacks.SCHEDULING,
    CancelWakeup: callbacks.CANCELLING,
    RunInBackground: callbacks.STARTING,
    AwaitReply: callbacks.AWAITING,
    SetHeartbeatInterval: heartbeat.SETTING_INTERVAL,
}
