"""The queue: order, picks, ends and ways back, as the rows tell them.

The numbers are those of the scenarios in the behaviour catalogue. Its blocking dequeue has no
counterpart (25): nobody waits in memory, an accepted item rings, and the sweep finds whoever was
missed (24 and 27 in tests/races/test_wake_ups.py). A payload is the only place of a task's id (20).
"""

from __future__ import annotations

from tests.support.spec import AGENT, SESSION, Situation, accepted, acquired, given
from undivided.domain.attention import Begin, Rest, Taken, choose, picked
from undivided.domain.decisions import Decision
from undivided.domain.events import items as i
from undivided.domain.events.catalogue import Event
from undivided.domain.mailbox import summary_of
from undivided.domain.outcomes import Completed
from undivided.domain.state.item import Deferred, Done, Dropped, Processing, Queued

TAKEN = Taken("trn_1", ("dec_1",), 1)
DECISION = Decision("dec_2", "complete", "normal", "", {}, 1)


def order(now: Situation) -> list[str]:
    """The ids in the order in which they would be picked, each look as the first."""
    waiting, found = list(now.view.queue), []
    while waiting:
        begin = choose(now.agent, tuple(waiting))
        assert isinstance(begin, Begin)
        found.append(begin.item.id)
        waiting.remove(begin.item)
    return found


def pick(*history: Event, item_id: str = "i1") -> tuple[Event, ...]:
    """The history, and that the item was picked then."""
    now = given(*history)
    return (*history, acquired(), *picked(now.agent, Begin(now.item(item_id), ()), SESSION, TAKEN))


def requeued(reason: i.RequeueReason) -> i.ItemRequeued:
    return i.ItemRequeued(
        agent_id=AGENT, item_id="i1", turn_id="trn_1", epoch=1, reason=reason, wait_s=0,
        decision=DECISION,
    )  # fmt: skip


def dropped(item_id: str) -> i.ItemDropped:
    return i.ItemDropped(agent_id=AGENT, item_id=item_id, reason="no use", decision=DECISION)


def test_001_the_better_priority_first() -> None:
    """Whatever the order of arrival; then nothing waits."""
    now = given(accepted("i1", "heartbeat", 3), accepted("i2"), accepted("i3", "a2a_message", 2))
    assert order(now) == ["i2", "i3", "i1"]


def test_003_the_older_first_among_equals() -> None:
    """Ruling 2."""
    now = given(*(accepted(f"i{n}", "a2a_message", 2) for n in (1, 2, 3)))
    assert order(now) == ["i1", "i2", "i3"]


def test_071_the_order_is_not_that_of_the_rows() -> None:
    """Priorities 3, 0, 2."""
    now = given(*(accepted(f"i{n}", "a2a_message", p) for n, p in enumerate((3, 0, 2), start=1)))
    assert order(now) == ["i2", "i3", "i1"]


def test_004_looking_takes_nothing() -> None:
    """Whoever looks twice sees the same."""
    now = given(accepted("i1"))
    assert order(now) == order(now) == ["i1"]
    assert now.agent.waiting == 1


def test_005_nothing_waits() -> None:
    """Then nothing is picked."""
    assert choose(given().agent, ()) == Rest()


def test_007_a_picked_item_is_in_processing() -> None:
    """With the moment at which it began."""
    now = given(*pick(accepted("i1")))
    assert now.item("i1").phase == Processing("trn_1", now.now)
    assert now.agent.waiting == 0


def test_008_a_completed_item_says_when() -> None:
    """Not before it began."""
    completed = i.ItemCompleted(
        agent_id=AGENT, item_id="i1", turn_id="trn_1", epoch=1, outcome=Completed("so"),
        decision=DECISION,
    )  # fmt: skip
    now = given(*pick(accepted("i1")), completed)
    phase = now.item("i1").phase
    assert isinstance(phase, Done)
    assert phase.completed_at >= phase.started_at
    assert now.agent.waiting == 0


def test_011_a_deferred_item_comes_back() -> None:
    """At its own place, with no time left on it."""
    deferred = i.ItemDeferred(
        agent_id=AGENT, item_id="i1", epoch=1, by="agent", decision=DECISION, wait_s=60
    )
    off = given(accepted("i1"), accepted("i2"), deferred)
    assert isinstance(off.item("i1").phase, Deferred)
    assert (order(off), off.agent.waiting, off.agent.deferred) == (["i2"], 1, 1)
    back = i.ItemResurfaced(agent_id=AGENT, item_id="i1", cause="due")
    now = given(accepted("i1"), accepted("i2"), deferred, back)
    assert (now.item("i1").phase, now.agent.waiting) == (Queued(since=now.now), 2)
    assert order(now) == ["i1", "i2"]


def test_012_a_dropped_item_is_over() -> None:
    """It says why, and nothing waits."""
    now = given(accepted("i1"), dropped("i1"))
    phase = now.item("i1").phase
    assert isinstance(phase, Dropped)
    assert (phase.reason, now.agent.waiting) == ("no use", 0)


def test_013_what_never_was_is_not_made_by_dropping_it() -> None:
    """The catalogue writes a ghost; a row here begins with its acceptance."""
    assert given(dropped("i9")).items == ()


def test_015_a_retry_is_counted() -> None:
    """It waits again at its own place, and has not begun."""
    now = given(*pick(accepted("i1"), accepted("i2")), requeued("failed"))
    item = now.item("i1")
    assert (item.phase, item.tries.failures, now.agent.waiting) == (Queued(since=now.now), 1, 2)
    assert order(now) == ["i1", "i2"]


def test_016_what_is_put_back_uses_up_no_retry() -> None:
    """It is the head again."""
    now = given(*pick(accepted("i1"), accepted("i2")), requeued("agent_stopped"))
    tries = now.item("i1").tries
    assert (tries.failures, tries.empty_replies, tries.timeouts) == (0, 0, 0)
    assert order(now) == ["i1", "i2"]


def test_017_any_item_can_be_picked() -> None:
    """The others wait on."""
    now = given(*pick(accepted("i1"), accepted("i2"), item_id="i2"))
    assert isinstance(now.item("i2").phase, Processing)
    assert (order(now), now.agent.waiting) == (["i1"], 1)


def test_029_a_summary_is_the_beginning() -> None:
    """The first hundred characters, where nobody wrote one."""
    assert summary_of(i.Payload("x" * 101)) == "x" * 100


def test_019_020_items_are_found_by_what_they_are_about() -> None:
    """A task is named in the payload and nowhere else; another id finds nothing."""
    now = given(
        accepted("i1", "task_comment", 2, payload=i.Payload("x", task_id="task_99")),
        accepted("i2", "requirement_comment", 2, payload=i.Payload("y", requirement_id="req_42")),
        accepted("i3", "task_status_update", 2, payload=i.Payload("z", task_id="task_99")),
    )
    about = {
        task: [one.id for one in now.items if one.payload.task_id == task]
        for task in ("task_99", "other")
    }
    assert about == {"task_99": ["i1", "i3"], "other": []}
    assert [one.id for one in now.items if one.payload.requirement_id == "req_42"] == ["i2"]
