"""Merging at acceptance: what joins what, and how it reads afterwards.

The numbers are those of the scenarios in the behaviour catalogue.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given as any_of
from hypothesis import strategies as st

from tests.support.spec import AGENT, Situation, given
from undivided.domain.events.catalogue import Event
from undivided.domain.events.items import ItemMerged, Payload, Sender, StimulusAccepted
from undivided.domain.mailbox import Accept, accept
from undivided.domain.merging import JOINED_CHARACTERS, composed, merge_key, summary_with
from undivided.domain.state.item import ItemRow, Merged, Queued


def stimulus(item_id: str, kind: str, content: str = "text", **extra: Any) -> Accept:
    """One stimulus; `task`, `requirement` and `role` are its own, the rest is its `extra`."""
    return Accept(
        item_id=item_id, source_type=kind,
        payload=Payload(
            content, task_id=extra.pop("task", None), requirement_id=extra.pop("requirement", None),
            extra={k: v for k, v in extra.items() if k != "role"},
        ),
        sender=Sender(role=extra.get("role", "agent")),
    )  # fmt: skip


def accepted(*commands: Accept) -> Situation:
    """A mailbox after each of `commands` came by itself."""
    events: tuple[Event, ...] = ()
    for command in commands:
        now = given(*events)
        waiting = {
            item.merge_key: item
            for item in sorted(now.items, key=lambda one: (one.priority, one.seq), reverse=True)
            if item.merge_key is not None and isinstance(item.phase, Queued)
        }
        events = (*events, *accept(now.agent, (command,), waiting))
    return given(*events)


def family(now: Situation) -> tuple[ItemRow, tuple[ItemRow, ...]]:
    """The one item that waits, and what has joined it."""
    (survivor,) = (item for item in now.items if isinstance(item.phase, Queued))
    joined = tuple(item for item in now.items if isinstance(item.phase, Merged))
    return survivor, joined


def test_031_different_tasks() -> None:
    """Two items."""
    now = accepted(
        stimulus("a", "task_comment", task="t1"), stimulus("b", "task_comment", task="t2")
    )
    assert now.agent.waiting == 2


def test_032_one_requirement() -> None:
    """One item with both texts."""
    now = accepted(
        stimulus("a", "requirement_comment", "one", requirement="r"),
        stimulus("b", "requirement_comment", "two", requirement="r"),
    )
    survivor, joined = family(now)
    assert composed(survivor, joined).content == "one\n\n---\n\ntwo"
    assert summary_with(survivor) == "one (+1)"
    assert now.agent.waiting == 1


@pytest.mark.parametrize(
    ("kind", "extra"),
    [
        ("task_comment", {"task": "t", "triggerExecution": True}),
        ("task_status_update", {"task": "t"}),
        ("requirement_update", {"requirement": "r"}),
        ("task_comment", {}),
        ("mention", {"task": "t"}),
    ],
)
def test_033_035_036_what_stands_alone(kind: str, extra: dict[str, Any]) -> None:
    """Execution triggers, status updates, and what has no key."""
    assert accepted(stimulus("a", kind, **extra), stimulus("b", kind, **extra)).agent.waiting == 2


def test_037_types_do_not_mix() -> None:
    """Not at acceptance."""
    now = accepted(
        stimulus("a", "task_comment", task="t", requirement="r"),
        stimulus("b", "requirement_comment", requirement="r"),
    )
    assert now.agent.waiting == 2


def test_039_040_044_a_channel() -> None:
    """Each message names its sender, and is listed in the order of arrival."""
    now = accepted(
        stimulus("a", "a2a_message", "Hello everyone!", channelKey="group:dev", senderName="Alice"),
        stimulus("b", "a2a_message", "Hey there!", channelKey="group:dev", senderName="Bob"),
        stimulus("c", "a2a_message", "Hi", channelKey="group:dev"),
    )
    survivor, joined = family(now)
    whole = composed(survivor, joined)
    assert whole.content == "Hello everyone!\n\n---\n[Bob]: Hey there!\n\n---\n[unknown]: Hi"
    listed = whole.extra["messages"]
    assert [one["senderName"] for one in listed] == ["Alice", "Bob", "unknown"]
    assert listed[0]["content"] == "Hello everyone!"


def test_041_043_each_channel_by_itself() -> None:
    """Groups and direct talk alike."""
    direct = stimulus("a", "a2a_message", channelKey="dm:a2a:a:b")
    assert merge_key(direct) == "a2a_message/queue//dm:a2a:a:b"
    now = accepted(
        stimulus("a", "a2a_message", channelKey="one"),
        stimulus("b", "a2a_message", channelKey="two"),
    )
    assert now.agent.waiting == 2


def test_047_a_person_lifts_what_waits() -> None:
    """Ruling 5: the better priority wins."""
    now = accepted(
        stimulus("a", "task_comment", task="t"),
        stimulus("b", "task_comment", task="t", role="user"),
    )
    survivor, _ = family(now)
    assert (survivor.id, survivor.priority) == ("a", 0)


def test_223_who_says_it_makes_its_priority() -> None:
    """A person's comment is critical, an agent's is not."""
    by = [
        accepted(stimulus("a", "task_comment", task="t", role=role)).item("a").priority
        for role in ("user", "agent")
    ]
    assert by == [0, 2]


def test_marks_are_taken_over() -> None:
    """Ruling 6."""
    now = accepted(
        stimulus("a", "task_comment", task="t"),
        stimulus("b", "task_comment", task="t", directMention=True),
    )
    assert family(now)[0].payload.extra == {"directMention": True}


def test_an_item_takes_only_so_much() -> None:
    """What comes then stands for itself, and is joined from then on."""
    half = "x" * (JOINED_CHARACTERS // 2 + 1)
    comments = [stimulus(name, "task_comment", half, task="t") for name in "abcd"]
    events = accept(given().agent, tuple(comments))
    assert [event.into for event in events if isinstance(event, ItemMerged)] == ["a", "c"]


def test_it_is_held_for_others_to_join() -> None:
    """Ruling 15: for the window, if it can be joined at all."""
    held = {
        event.item_id: event.held_s
        for event in accept(
            given().agent,
            (stimulus("a", "task_comment", task="t"), stimulus("b", "heartbeat")),
        )
        if isinstance(event, StimulusAccepted)
    }
    assert held == {"a": 0.2, "b": 0.0}


@any_of(st.lists(st.tuples(st.sampled_from("tu"), st.text(max_size=5)), min_size=1, max_size=12))
def test_nothing_that_was_said_is_lost(said: list[tuple[str, str]]) -> None:
    """Whatever joins whatever: each text is in what is told of its task, in order."""
    now = accepted(
        *(stimulus(f"i{n}", "task_comment", text, task=t) for n, (t, text) in enumerate(said))
    )
    assert now.agent.waiting == len({task for task, _ in said})
    for task in {task for task, _ in said}:
        mine = [item for item in now.items if item.payload.task_id == task]
        survivor = next(item for item in mine if isinstance(item.phase, Queued))
        joined = tuple(item for item in mine if isinstance(item.phase, Merged))
        texts = [text for other, text in said if other == task]
        assert composed(survivor, joined).content == "\n\n---\n\n".join(texts)
        assert survivor.agent_id == AGENT


ARRIVALS = st.lists(
    st.tuples(
        st.sampled_from(["task_comment", "requirement_comment", "a2a_message", "heartbeat"]),
        st.sampled_from("xy"),
        st.sampled_from(["user", "agent"]),
        st.sampled_from(["Alice", "Bob", ""]),
    ),
    min_size=1,
    max_size=14,
)


@any_of(ARRIVALS, st.booleans())
def test_every_sender_and_word_has_one_place(arrivals: list[Any], at_once: bool) -> None:
    """In one append or in many: who waits, joined or was superseded is all that came."""
    commands = [
        stimulus(
            f"i{n}", kind, f"<{n}>", task=key, requirement=key, channelKey=key, role=role,
            senderName=sender,
        )
        for n, (kind, key, role, sender) in enumerate(arrivals)
    ]  # fmt: skip
    together = given(*accept(given().agent, tuple(commands)))
    now = together if at_once else accepted(*commands)
    assert [item.id for item in now.items] == [command.item_id for command in commands]
    waiting = [item for item in now.items if isinstance(item.phase, Queued)]
    joined = [item for item in now.items if isinstance(item.phase, Merged)]
    agent = now.agent
    assert (agent.waiting, agent.merged) == (len(waiting), len(joined))
    assert agent.waiting + agent.merged + agent.dropped == len(commands)
    assert len({item.merge_key for item in waiting}) == len(waiting)
    for survivor in waiting:
        mine = [item for item in joined if item.phase.into == survivor.id]  # type: ignore[union-attr]
        whole = composed(survivor, tuple(mine))
        assert survivor.merged == len(mine)
        assert all(item.payload.content in whole.content for item in (survivor, *mine))
        assert survivor.priority == min(command_priority(item) for item in (survivor, *mine))
        if survivor.source_type == "a2a_message" and mine:
            senders = [one["senderName"] for one in whole.extra["messages"]]
            assert senders == [item.payload.extra["senderName"] or "unknown"
                               for item in (survivor, *mine)]  # fmt: skip


def command_priority(item: ItemRow) -> int:
    """What an item came with: a person's comment is critical."""
    comment = item.source_type in ("task_comment", "requirement_comment")
    return (
        0 if comment and item.sender.role == "user" else {"heartbeat": 3}.get(item.source_type, 2)
    )
