"""What a heartbeat says to the model: a checklist, the last beat, and what there is to do."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from undivided.domain.beats import Goal, Overdue, ThereIs
from undivided.domain.outcomes import Completed, Incomplete
from undivided.domain.state.item import Done, ItemRow

SHOWN = 1_000
"""Characters of the last beat's answer."""

CHECKLIST = """This is a heartbeat: nobody has written to you, and you look around by yourself.

## Checklist
- Is there something that you promised, or that waits for you?
- Is something stuck that you can move on, or that somebody should be told of?
- Do what is to be done now. If there is nothing, say so in one line."""
GOALS = """For each goal: look at the progress of its tasks, create the next ones where they are
missing, mark it as done where its criteria are met, and escalate or change your approach where
it is stuck."""


def prompt(there: ThereIs, last: ItemRow | None, last_at: datetime | None) -> str:
    """The content of a heartbeat; a section about nothing is left out."""
    return "\n\n".join([CHECKLIST, *_last(last, last_at), *_sections(there)])


def _last(last: ItemRow | None, last_at: datetime | None) -> Iterator[str]:
    if last is None or last_at is None or not isinstance(last.phase, Done):
        return
    outcome = last.phase.outcome
    said = outcome.reply if isinstance(outcome, Completed | Incomplete) else ""
    if said:
        yield f"## Last heartbeat, {_moment(last_at)}\n{said[:SHOWN]}"


def _sections(there: ThereIs) -> Iterator[str]:
    if there.mail:
        yield f"## Mailbox\n{there.mail} waiting"
    if there.overdue:
        lines = "\n".join(map(_overdue, there.overdue))
        yield (
            f"## Timed-Out Async Operations\n{lines}\n"
            "What should have come by now has not. Find out why, and put it right."
        )
    if there.goals:
        yield "## Active Goals\n" + "\n".join(map(_goal, there.goals)) + f"\n{GOALS}"
    if there.failed_tasks:
        lines = "\n".join(f"- {title} ({task_id})" for task_id, title in there.failed_tasks)
        yield f"## Failed Tasks\n{lines}"


def _overdue(one: Overdue) -> str:
    return f"- {one.label} (after {one.elapsed_s:.0f} s, session {one.session_id})"


def _goal(goal: Goal) -> str:
    done = f"iteration {goal.iteration}/{goal.iterations}"
    return f"- {goal.title}: {goal.status}, {done}; criteria: {goal.criteria or 'none'}"


def _moment(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")
