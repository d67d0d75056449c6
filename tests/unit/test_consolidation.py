"""Putting a mailbox in order before a pick: what joins what, what goes, what is given up.

The numbers are those of the scenarios in the behaviour catalogue. What it calls recovery does not
happen here: queued items are rows that outlive every process, and a turn that lost its worker
goes on where it stopped. So 63, 65, 67, 72, 73, 76 and 77, which drop or complete what was in
processing when a process began, have no counterpart; the rest of 63 to 77 holds at any time.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given as any_of
from hypothesis import strategies as st

from tests.support.spec import AGENT, Situation, accepted, given, recorded
from undivided.domain.consolidation import (
    consolidate,
    drop_status_updates,
    expired,
    purge,
    stale,
)
from undivided.domain.decisions import Decision
from undivided.domain.events.catalogue import Event
from undivided.domain.events.items import (
    ItemDeferred,
    ItemDropped,
    ItemExpired,
    ItemMerged,
    ItemResurfaced,
    Payload,
)
from undivided.domain.merging import composed, summary_with
from undivided.domain.state.item import DeadLetter, Dropped, ItemRow, Merged, Queued
from undivided.projections.table import fold

HOURS_4 = 4 * 3600
DAYS_3 = 3 * 24 * 3600


def stimulus(item_id: str, kind: str, priority: int, content: str = "", **about: Any) -> Event:
    """A stimulus in the mailbox; `task`, `requirement` and `session` are its own."""
    payload = Payload(
        content or f"content of {item_id}", task_id=about.pop("task", None),
        requirement_id=about.pop("requirement", None),
        extra={key: value for key, value in about.items() if key != "session"},
    )  # fmt: skip
    return accepted(item_id, kind, priority, payload=payload, session_id=about.get("session"))


def queue(now: Situation) -> tuple[ItemRow, ...]:
    return tuple(item for item in now.items if isinstance(item.phase, Queued))


def after(now: Situation, *events: Event) -> Situation:
    """The situation once `events` have happened."""
    rows = dict(now.rows)
    fold(rows, [recorded(900 + n, event, now.now) for n, event in enumerate(events)])
    return Situation(rows, now.now)


def consolidated(*history: Event) -> tuple[Situation, tuple[ItemMerged, ...]]:
    """A mailbox that was put in order, and what that led to."""
    now = given(*history)
    merges = consolidate(now.agent, queue(now), now.now)
    return after(now, *merges), merges


def one_item(now: Situation) -> tuple[ItemRow, str]:
    """The one item that still waits, and how it reads."""
    (survivor,) = queue(now)
    joined = tuple(item for item in now.items if isinstance(item.phase, Merged))
    return survivor, composed(survivor, joined).content


class TestConsolidation:
    """2.5, with rulings 3, 9 and 10."""

    def test_049_two_types_about_one_task(self) -> None:
        """News never swallows what needs an answer, so that the message survives (ruling 9)."""
        now, merges = consolidated(
            stimulus("i1", "task_status_update", 1, "assigned", task="t"),
            stimulus("i2", "a2a_message", 2, "please review", task="t"),
        )
        survivor, content = one_item(now)
        assert [(one.item_id, one.into) for one in merges] == [("i1", "i2")]
        assert (survivor.id, survivor.priority) == ("i2", 1)
        assert content == "[task_status_update] assigned\n\n---\n\nplease review"
        assert now.agent.waiting == 1

    def test_049_the_absorbed_names_its_type(self) -> None:
        """Where the message comes second, and something that is thought about is there already."""
        now, _ = consolidated(
            stimulus("i1", "review_request", 1, "review it", task="t"),
            stimulus("i2", "a2a_message", 2, "please review", task="t"),
        )
        survivor, content = one_item(now)
        assert survivor.id == "i1"
        assert content == "review it\n\n---\n\n[a2a_message] please review"

    def test_051_one_type_needs_no_name(self) -> None:
        """As at acceptance."""
        now, _ = consolidated(
            stimulus("i1", "review_request", 1, "one", task="t"),
            stimulus("i2", "review_request", 1, "two", task="t"),
        )
        assert one_item(now)[1] == "one\n\n---\n\ntwo"

    def test_052_three_items_on_one_task(self) -> None:
        """One number says how many have joined; each of those says where it went."""
        now, _ = consolidated(
            *(stimulus(f"i{n}", "review_request", 1, "text", task="t") for n in (1, 2, 3))
        )
        survivor, _content = one_item(now)
        assert summary_with(survivor) == "text (+2)"
        into = [one.phase.into for one in now.items if isinstance(one.phase, Merged)]
        assert into == ["i1", "i1"]

    def test_052_what_had_joined_counts_too(self) -> None:
        """An item that was joined before brings all of it."""
        had_joined = consolidated(
            *(stimulus(f"i{n}", "task_comment", 2, f"c{n}", task="t") for n in (1, 2, 3))
        )[0]
        more = after(had_joined, stimulus("i4", "review_request", 1, "review", task="t"))
        now = after(more, *consolidate(more.agent, queue(more), more.now))
        survivor, content = one_item(now)
        assert (survivor.id, survivor.merged) == ("i4", 3)
        assert all(f"c{n}" in content for n in (1, 2, 3))

    def test_053_the_best_priority_of_all(self) -> None:
        """Ruling 5, whichever survives."""
        now, _ = consolidated(
            stimulus("i1", "task_comment", 2, task="t"),
            stimulus("i2", "mention", 0, task="t"),
            stimulus("i3", "task_status_update", 1, task="t"),
        )
        assert one_item(now)[0].priority == 0

    @pytest.mark.parametrize(
        ("kind", "extra"),
        [
            ("human_chat", {}),
            ("session_reply", {}),
            ("callback_result", {}),
            ("task_status_update", {"triggerExecution": True}),
            ("from_tomorrow", {}),
        ],
    )
    def test_055_056_what_stands_alone(self, kind: str, extra: dict[str, Any]) -> None:
        """In neither role: persons, execution triggers, what one asker waits for, the unknown."""
        for first, second in ((kind, "task_comment"), ("task_comment", kind)):
            given_extra = {first: extra} if first == kind else {second: extra}
            history = [
                stimulus(f"i{n}", one, 1, task="t", **given_extra.get(one, {}))
                for n, one in enumerate((first, second), start=1)
            ]
            assert consolidated(*history)[1] == ()

    def test_057_each_channel_by_itself(self) -> None:
        """And the messages of one, together."""
        assert (
            consolidated(
                stimulus("i1", "a2a_message", 2, channelKey="one"),
                stimulus("i2", "a2a_message", 2, channelKey="two"),
            )[1]
            == ()
        )
        now, _ = consolidated(
            stimulus("i1", "a2a_message", 2, "hi", channelKey="one", senderName="Al"),
            stimulus("i2", "a2a_message", 2, "ho", channelKey="one", senderName="Bo"),
        )
        assert one_item(now)[1] == "hi\n\n---\n[Bo]: ho"

    def test_a_requirement_only_of_what_names_no_task(self) -> None:
        """The second pass."""
        now, merges = consolidated(
            stimulus("i1", "requirement_update", 1, requirement="r", actionRequired=True),
            stimulus("i2", "requirement_comment", 2, requirement="r"),
            stimulus("i3", "task_comment", 2, requirement="r", task="t"),
        )
        assert [(one.item_id, one.into, one.decision.rule) for one in merges] == [
            ("i2", "i1", "consolidate_requirement")
        ]
        assert now.agent.waiting == 2

    def test_what_asks_for_a_session_joins_only_its_like(self) -> None:
        """Else its words would end in another conversation."""
        assert (
            consolidated(
                stimulus("i1", "review_request", 1, task="t", session="s1"),
                stimulus("i2", "review_request", 1, task="t"),
            )[1]
            == ()
        )


class TestAge:
    """2.6 and the time to live."""

    @pytest.mark.parametrize(
        "kind", ["heartbeat", "daily_report", "memory_consolidation", "task_status_update"]
    )
    def test_059_075_what_loses_its_point_goes_after_four_hours(self, kind: str) -> None:
        """Not a second earlier, and long before three days."""
        now = given(stimulus("i1", kind, 3))
        assert purge(now.agent, queue(now), now.after(HOURS_4).now) == ()
        late = now.after(HOURS_4 + 1)
        (gone,) = purge(now.agent, queue(now), late.now)
        assert (gone.item_id, gone.reason, gone.decision.rule) == ("i1", "stale", "stale_info")
        done = after(late, gone)
        assert isinstance(done.item("i1").phase, Dropped)
        assert (done.agent.waiting, done.agent.dropped) == (0, 1)

    def test_059_a_result_never_goes_silently(self) -> None:
        """Ruling 37: it waits until the agent has read it."""
        now = given(stimulus("i1", "callback_result", 1)).after(HOURS_4 + 1)
        assert stale(now.agent, now.item("i1"), now.now) is None
        assert purge(now.agent, queue(now), now.now) == ()

    @pytest.mark.parametrize(
        "kind", ["human_chat", "a2a_message", "task_comment", "mention", "review_request"]
    )
    def test_060_what_somebody_said_is_kept(self, kind: str) -> None:
        """However old."""
        now = given(stimulus("i1", kind, 2)).after(HOURS_4 * 10)
        assert stale(now.agent, now.item("i1"), now.now) is None

    def test_061_what_starts_a_task_is_kept(self) -> None:
        """Although news of it would go."""
        now = given(stimulus("i1", "task_status_update", 1, task="t", triggerExecution=True))
        assert purge(now.agent, queue(now), now.after(HOURS_4 * 10).now) == ()

    def test_064_three_days_are_the_end(self) -> None:
        """It is given up, and people are told once (DESIGN 7; the catalogue drops it)."""
        now = given(stimulus("i1", "a2a_message", 2))
        names = ("dec_1", "ntf_1")
        assert expired(now.agent, now.item("i1"), now.after(DAYS_3).now, names) is None
        late = now.after(DAYS_3 + 1)
        given_up = expired(late.agent, late.item("i1"), late.now, names)
        assert given_up is not None
        assert (given_up.expired.notice_id, given_up.notice.notice_id) == ("ntf_1", "ntf_1")
        done = after(late, given_up.expired)
        assert isinstance(done.item("i1").phase, DeadLetter)
        assert done.agent.waiting == 0

    @pytest.mark.parametrize("kind", ["a2a_message", "heartbeat"])
    def test_what_comes_back_waits_anew(self, kind: str) -> None:
        """Put off for a week, it is not given up in the moment in which it is due."""
        decision = Decision("dec_0", "defer", "as_asked", "later", {}, 1)
        off = ItemDeferred(
            agent_id=AGENT, item_id="i1", epoch=1, by="agent", decision=decision,
            wait_s=DAYS_3 * 2,
        )  # fmt: skip
        due = after(given(stimulus("i1", kind, 2)), off).after(DAYS_3 * 2)
        now = after(due, ItemResurfaced(agent_id=AGENT, item_id="i1", cause="due"))
        assert purge(now.agent, queue(now), now.after(HOURS_4).now) == ()
        assert expired(now.agent, now.item("i1"), now.after(DAYS_3).now, ("d", "n")) is None
        late = now.after(DAYS_3 + 1)
        assert expired(late.agent, late.item("i1"), late.now, ("d", "n")) is not None

    def test_the_policy_says_how_long(self) -> None:
        """Both times are parameters."""
        now = given(stimulus("i1", "heartbeat", 3), staleAfterS=10, queuedTtlS=20).after(21)
        assert isinstance(stale(now.agent, now.item("i1"), now.now), ItemDropped)
        assert expired(now.agent, now.item("i1"), now.now, ("d", "n")) is not None


def test_021_a_task_that_is_begun_anew_drops_its_news() -> None:
    """Of that task, and only news: neither comments nor what starts it."""
    now = given(
        stimulus("i1", "task_status_update", 1, task="x"),
        stimulus("i2", "task_status_update", 1, task="x"),
        stimulus("i3", "task_status_update", 1, task="y"),
        stimulus("i4", "task_status_update", 1, task="x", triggerExecution=True),
        stimulus("i5", "task_comment", 2, task="x"),
    )
    dropped = drop_status_updates(now.agent, queue(now), "x")
    assert [one.item_id for one in dropped] == ["i1", "i2"]
    assert after(now, *dropped).agent.waiting == 3


STIMULI = st.lists(
    st.tuples(
        st.sampled_from(
            ["human_chat", "mention", "a2a_message", "task_comment", "requirement_comment",
             "task_status_update", "requirement_update", "review_request", "session_reply"]
        ),
        st.integers(0, 4),
        st.sampled_from([None, "t1", "t2"]),
        st.sampled_from([None, "r1"]),
        st.booleans(),
    ),
    max_size=12,
)  # fmt: skip


@any_of(STIMULI)
def test_consolidating_loses_nothing_and_is_done_after_once(stimuli: list[Any]) -> None:
    """Every text is where its item went; priorities only get better; again changes nothing."""
    history = [
        stimulus(
            f"i{n}", kind, priority, f"<{n}>", task=task, requirement=requirement,
            channelKey="c", **({"triggerExecution": True} if alone else {}),
        )
        for n, (kind, priority, task, requirement, alone) in enumerate(stimuli, start=1)
    ]  # fmt: skip
    now, merges = consolidated(*history)
    assert len({one.item_id for one in merges}) == len(merges)
    assert not {one.into for one in merges} & {one.item_id for one in merges}
    assert now.agent.waiting == len(queue(now)) == len(history) - len(merges)
    for survivor in queue(now):
        family = [
            item
            for item in now.items
            if isinstance(item.phase, Merged) and item.phase.into == survivor.id
        ]
        whole = composed(survivor, tuple(family)).content
        assert all(item.payload.content in whole for item in family)
        assert survivor.priority <= min(
            (item.priority for item in family), default=survivor.priority
        )
        assert survivor.merged == len(family)
    assert consolidate(now.agent, queue(now), now.now) == ()


@any_of(st.lists(st.tuples(st.integers(0, 5 * 24), st.booleans()), max_size=6))
def test_nothing_is_dropped_and_given_up_at_once(aged: list[tuple[int, bool]]) -> None:
    """Whatever waits has at most one end by its age, whenever it is looked at."""
    kinds = ["heartbeat" if news else "a2a_message" for _, news in aged]
    now = given(*(stimulus(f"i{n}", kind, 3) for n, kind in enumerate(kinds, start=1)))
    for (hours, _), item in zip(aged, now.items, strict=True):
        at = now.now + timedelta(hours=hours)
        verdict = stale(now.agent, item, at)
        given_up = expired(now.agent, item, at, ("d", "n"))
        assert item.agent_id == AGENT
        if verdict is not None and given_up is not None:
            assert hours > DAYS_3 / 3600
        if hours <= HOURS_4 / 3600:
            assert verdict is None
            assert given_up is None
        if given_up is not None:
            assert isinstance(given_up.expired, ItemExpired)
