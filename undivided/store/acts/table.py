"""The table of acts: each kind of command that a tool can give, and how it is decided."""

from __future__ import annotations

from undivided.domain.approvals import AskPerson
from undivided.domain.callbacks import CancelWakeup, RunInBackground, ScheduleWakeup, Unsent
from undivided.domain.interval import SetHeartbeatInterval
from undivided.domain.mailbox_tools import CheckMailbox, DeferItem, DropItem, PrioritizeItem
from undivided.domain.memory import (
    ClearMemory,
    NoteMemory,
    RemoveKnowledge,
    SaveKnowledge,
    SearchKnowledge,
)
from undivided.domain.notifications import Tell
from undivided.domain.planning import CompleteDeliberation
from undivided.domain.recall import ListActivities, ReadActivity, RecallContext
from undivided.domain.tooling import Act
from undivided.store.acts import callbacks, heartbeat, mailbox, memory, people, recall, triage
from undivided.store.acts.doing import Doing

ACTS: dict[type[Act], Doing] = {
    Tell: people.TELLING,
    AskPerson: people.ASKING,
    CheckMailbox: mailbox.CHECKING,
    DeferItem: mailbox.DEFERRING,
    DropItem: mailbox.DROPPING,
    PrioritizeItem: mailbox.PRIORITIZING,
    CompleteDeliberation: triage.COMPLETING,
    NoteMemory: memory.NOTING,
    ClearMemory: memory.CLEARING,
    SaveKnowledge: memory.SAVING,
    RemoveKnowledge: memory.REMOVING,
    SearchKnowledge: memory.SEARCHING,
    ListActivities: recall.LISTING,
    ReadActivity: recall.READING,
    RecallContext: recall.CONTEXT,
    ScheduleWakeup: callbacks.SCHEDULING,
    CancelWakeup: callbacks.CANCELLING,
    RunInBackground: callbacks.STARTING,
    Unsent: callbacks.UNSENT,
    SetHeartbeatInterval: heartbeat.SETTING_INTERVAL,
}
