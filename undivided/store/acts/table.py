"""The table of acts: each kind of command that a tool can give, and how it is decided."""

from __future__ import annotations

from undivided.domain.approvals import AskPerson
from undivided.domain.notifications import Tell
from undivided.domain.tooling import Act
from undivided.store.acts import people
from undivided.store.acts.doing import Doing

ACTS: dict[type[Act], Doing] = {
    Tell: people.TELLING,
    AskPerson: people.ASKING,
}
