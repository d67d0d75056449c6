"""An item's story: which sentence each event is told in."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any, get_args

import pytest
from hypothesis import given as example
from msgspec.structs import replace

from tests.support.events import BEGAN, NAMES, events
from tests.support.spec import AGENT, SESSION, accepted, given
from undivided.domain.coordinates import Coordinate
from undivided.domain.decisions import Decision, DecisionType
from undivided.domain.dialogue import Usage
from undivided.domain.events import flights as f
from undivided.domain.events import heartbeats as h
from undivided.domain.events import items as i
from undivided.domain.events import people as p
from undivided.domain.events import sessions as s
from undivided.domain.events.catalogue import CATALOGUE, Event
from undivided.domain.interrupts import RULES
from undivided.domain.outcomes import Completed, Failed
from undivided.domain.placed import Placed
from undivided.domain.recorded import Meta, Recorded
from undivided.domain.state.item import ItemRow
from undivided.domain.waits import Sleep
from undivided.domain.why.line import Deeds
from undivided.domain.why.mail import MailEvent
from undivided.domain.why.story import TOLD_EACH, Sentence, Story, tell, tellable
from undivided.domain.why.turns import TurnEvent
from undivided.domain.why.words import RULE_SENTENCES

TURN = "trn_1"
BESIDE: set[type[Event]] = {
    i.NoticePosted,
    i.AgentIncomplete,
    p.ApprovalRequested,
    h.HeartbeatEnqueued,
    h.DailyReportEnqueued,
    h.MemoryConsolidationEnqueued,
    s.ActivityNoted,
}
"""Written in one append with what has a sentence that says what they say."""


def decided(kind: DecisionType, rule: str, losers: tuple[str, ...] = (), **inputs: Any) -> Decision:
    return Decision("dec_1", kind, rule, "Chat message is the best", inputs, 3, losers)


def row(item_id: str = "i1") -> ItemRow:
    return given(accepted(item_id, "task_comment", 2)).item(item_id)


def placed(number: int, event: Event) -> Placed:
    at = BEGAN + timedelta(seconds=number)
    recorded = Recorded(f"e{number}", f"agent:{AGENT}", number, event, Meta(), at)
    return Placed(Coordinate(number, number), recorded)


def story(*told: Event, item: ItemRow | None = None, **more: Any) -> tuple[Sentence, ...]:
    history = tuple(placed(n, event) for n, event in enumerate(told, start=1))
    return tell(Story(item=item or row(), events=history, **more))


def said(event: Event, **more: Any) -> tuple[str, str]:
    (one,) = story(event, **more)
    return one.kind, one.text


PICK = decided("pick", "priority_fifo", ("i2", "i3"), summary="hello", priority=0)
EACH: list[tuple[Event, str, str]] = [
    (
        accepted("i1", "task_comment", 2, held_s=0.2),
        "accepted",
        ('ada received a task comment from the system: "content of i1". It has priority 2 '
        "(normal), which is what a task comment has. It was held back for 0.2 s, so that others "
        "could join it."),
    ),
    (
        replace(accepted("i1", "task_comment", 0), sender=i.Sender("bob", "Bob", "user")),
        "accepted",
        ('ada received a task comment from Bob: "content of i1". It has priority 0 (critical), '
        "for a person wrote it; by itself its type has 2."),
    ),
    (
        replace(accepted("i1", "system_event", 4), delivery="steer"),
        "accepted",
        ('ada received a system event from the system: "content of i1". It has priority 4 '
        "(background), as its sender asked; by itself its type has 1. "
        "It was sent to steer the turn at work."),
    ),
    (
        i.ItemPicked(agent_id=AGENT, item_id="i1", turn_id=TURN, session_id=SESSION, epoch=1,
                     attempt=2, decision=PICK),
        "picked",
        ("ada turned to it, for the 2nd time, by rule priority_fifo: chat message is the best; "
        "i2, i3 had to wait."),
    ),
    (
        i.ItemPicked(agent_id=AGENT, item_id="i9", turn_id=TURN, session_id=SESSION, epoch=1,
                     attempt=1, decision=replace(PICK, losers=("i1",))),
        "passed_over",
        ('"hello" (i9), which has priority 0, was picked instead, by rule priority_fifo: '
        "chat message is the best."),
    ),
    (
        i.ItemResumed(agent_id=AGENT, item_id="i1", turn_id=TURN, session_id=SESSION, epoch=1,
                      decision=replace(PICK, losers=())),
        "resumed",
        "Its turn goes on from its last step, with no step done twice.",
    ),
    (
        i.ItemWeighed(agent_id=AGENT, item_id="i1", turn_id=TURN, epoch=1, merged=0,
                      decision=decided("continue", "R0b")),
        "weighed",
        ("It was weighed against the turn at work, and it was left waiting, by rule R0b: "
        "the same person writes in another conversation."),
    ),
    (
        i.ItemWeighed(agent_id=AGENT, item_id="i1", turn_id=TURN, epoch=1, merged=0,
                      decision=decided("preempt", "R1")),
        "weighed",
        ("It was weighed against the turn at work, and the turn was set aside for it, by rule R1: "
        "a person comes before any other work."),
    ),
    (
        i.ItemWeighed(agent_id=AGENT, item_id="i9", turn_id=TURN, epoch=1, merged=0,
                      decision=decided("continue", "otherwise", ("i1",))),
        "passed_over",
        "i9 was looked at before it, by rule otherwise: no rule says more than that it waits.",
    ),
    (
        i.ItemMerged(agent_id=AGENT, item_id="i1", into="i9", priority=0,
                     decision=decided("merge", "same_taskId")),
        "merged",
        ("It joined i9 and is handled together with it, by rule same_taskId: "
        "chat message is the best."),
    ),
    (
        i.ItemMerged(agent_id=AGENT, item_id="i1", into="i9", priority=0, turn_id=TURN,
                     decision=decided("merge", "R2")),
        "merged",
        "It went into the turn at work on i9, by rule R2: a comment on the task at work.",
    ),
    (
        i.ItemMerged(agent_id=AGENT, item_id="i9", into="i1", priority=0,
                     decision=decided("merge", "same_taskId")),
        "joined",
        "i9 joined it; its priority is 0 (critical) from here on.",
    ),
    (
        i.ItemDeferred(agent_id=AGENT, item_id="i1", epoch=1, by="preempted", behind="i9",
                       turn_id=TURN, session_id=SESSION, decision=decided("preempt", "R1")),
        "preempted",
        ("It was set aside for i9, by rule R1: a person comes before any other work. "
        "Its turn goes on from its last step once i9 is over."),
    ),
    (
        i.ItemDeferred(agent_id=AGENT, item_id="i1", epoch=1, by="preempted", waits=True,
                       turn_id=TURN, session_id=SESSION, wait_s=60,
                       decision=decided("preempt", "person_while_waiting", candidate="i9")),
        "preempted",
        ("It was set aside for i9, by rule person_while_waiting: a turn that waits for somebody "
        "lets every person pass. Its turn goes on from its last step when it has what it waits "
        "for."),
    ),
    (
        i.ItemDeferred(agent_id=AGENT, item_id="i9", epoch=1, by="preempted", behind="i1",
                       decision=decided("preempt", "R6", candidate="i1")),
        "preempts",
        ("i9, which was at work, was set aside for it, by rule R6: the better priority comes "
        "first."),
    ),
    (
        i.ItemDeferred(agent_id=AGENT, item_id="i1", epoch=1, by="judge",
                       decision=decided("defer", "judge")),
        "deferred",
        ("It was put off until its agent is idle by the judge, by rule judge: "
        "the judge read both."),
    ),
    (
        i.ItemResurfaced(agent_id=AGENT, item_id="i1", cause="due"),
        "resurfaced",
        "It waits again: its time had come.",
    ),
    (
        i.ItemReprioritized(agent_id=AGENT, item_id="i1", priority=1, by="ada"),
        "reprioritized",
        "ada gave it priority 1 (high).",
    ),
    (
        i.ItemDropped(agent_id=AGENT, item_id="i1", reason="stale",
                      decision=decided("drop", "stale")),
        "dropped",
        "It was discarded without having been handled: stale.",
    ),
    (
        i.ItemRequeued(agent_id=AGENT, item_id="i1", turn_id=TURN, epoch=1, reason="timed_out",
                       wait_s=600, decision=decided("requeue", "timed_out")),
        "requeued",
        "It waits again, for 10 min at least: the turn gave no answer in time.",
    ),
    (
        i.ItemCompleted(agent_id=AGENT, item_id="i1", turn_id=TURN, epoch=1,
                        outcome=Completed("so\nit is"), decision=decided("complete", "normal")),
        "completed",
        'It is over: it answered "so it is".',
    ),
    (
        i.ItemDeadLettered(agent_id=AGENT, item_id="i1", turn_id=TURN, epoch=1, reason="refused",
                           notice_id="ntf_1",
                           decision=decided("dead_letter", "max_delivery_attempts")),
        "dead_letter",
        ("It was given up, by rule max_delivery_attempts: chat message is the best. "
        "The last reason was: refused. People were told once, in ntf_1."),
    ),
    (
        i.ItemExpired(agent_id=AGENT, item_id="i1", notice_id="ntf_1",
                      decision=decided("dead_letter", "queued_ttl")),
        "dead_letter",
        ("Nobody got to it in time, and it was given up, by rule queued_ttl: chat message is the "
        "best. People were told once, in ntf_1."),
    ),
    (
        i.ItemCancelled(agent_id=AGENT, item_id="i1", turn_id=None, by="bob",
                        decision=decided("cancel", "stop_requested")),
        "cancelled",
        "It was cancelled by bob.",
    ),
    (
        f.FocusAnswered(agent_id=AGENT, turn_id=TURN, call_id="c", content="yes", item_id="i1"),
        "answered",
        "What its turn waited for has come.",
    ),
    (
        f.StopRequested(agent_id=AGENT, turn_id=TURN, by="bob"),
        "stop_requested",
        "bob asked its turn to stop.",
    ),
    (
        s.TurnStarted(turn_id=TURN, session_id=SESSION, agent_id=AGENT, item_ids=("i1", "i2"),
                      scenario="chat", origin="stimulus", index=0, responses_before=0, input="",
                      epoch=1, backstop_s=1),
        "turn_started",
        "Turn trn_1 (chat) began in session ses_ada, together with i2.",
    ),
    (
        s.TurnSuspended(turn_id=TURN, call_id="c", wait=Sleep(7200), wait_s=7200, epoch=1),
        "turn_suspended",
        "The turn waits for 2 h to pass, and holds no worker.",
    ),
    (
        s.TurnResumed(turn_id=TURN, cause="orphaned", epoch=2),
        "turn_resumed",
        "The turn went on from its last step: its worker was lost.",
    ),
    (
        s.TurnYielded(turn_id=TURN, epoch=1),
        "turn_yielded",
        "Its worker left; another goes on from the last step.",
    ),
    (
        s.TurnUpdated(turn_id=TURN, item_id="i9", content="more", epoch=1),
        "turn_updated",
        "The turn at work was told what i9 says as a live update.",
    ),
    (
        s.TurnNudged(turn_id=TURN, reason="marker_missing", content="go on", epoch=1),
        "turn_nudged",
        "The turn was asked once to go on: its reply did not say that it was finished.",
    ),
    (
        s.TurnEnded(turn_id=TURN, session_id=SESSION, agent_id=AGENT, item_ids=("i1",),
                    outcome=Failed("refused", "no", retryable=False), usage=Usage(), responses=2,
                    tool_calls=3, epoch=1),
        "turn_ended",
        ("Turn trn_1 ended after 2 responses and 3 tool calls (look, tell 2 times): "
        "it failed, refused: no."),
    ),
]  # fmt: skip
DEEDS = {TURN: Deeds(2, (("look", 1), ("tell", 2)))}


class TestEachEvent:
    """One event, one sentence."""

    @pytest.mark.parametrize(
        ("event", "kind", "text"), EACH, ids=[f"{type(e).__name__}-{kind}" for e, kind, _ in EACH]
    )
    def test_is_told_so(self, event: Event, kind: str, text: str) -> None:
        """In words that a person understands."""
        assert said(event, deeds=DEEDS) == (kind, text)

    def test_every_kind_is_in_the_table(self) -> None:
        """A new kind of event needs an example here."""
        shown = {type(event) for event, _, _ in EACH}
        assert shown == {*get_args(MailEvent), *get_args(TurnEvent)}

    def test_what_is_about_an_item_is_told(self) -> None:
        """Every event that names an item has a sentence, or stands beside one that has."""
        about = {kind for kind in CATALOGUE if "item_id" in kind.__struct_fields__}
        assert about - {*get_args(MailEvent), *get_args(TurnEvent)} == BESIDE

    def test_a_turn_that_comes_back_is_told_once(self) -> None:
        """Its item says so."""
        assert story(s.TurnResumed(turn_id=TURN, cause="preempted", epoch=2)) == ()

    @example(events(), NAMES)
    def test_any_event_is_told_in_one_line(self, event: Event, item_id: str) -> None:
        """Whatever people, agents and models wrote into it."""
        told = story(event, item=replace(row(), id=item_id), deeds=DEEDS)
        assert len(told) <= tellable(event)
        for one in told:
            assert one.text.endswith(".")
            assert "\n" not in one.text
            assert len(one.text) < 3_000


class TestRules:
    """Why a rule decided is said in its own words."""

    def test_every_interrupt_rule_has_a_sentence(self) -> None:
        """The first line of the function that it is."""
        assert all(RULE_SENTENCES[name] for name, _ in RULES)


class TestTheWhole:
    """Several events."""

    def test_decisions_are_told_with_the_sentence(self) -> None:
        """With the place of the event that carried them out."""
        event = EACH[3][0]
        one, *_ = story(event)
        assert (one.event_id, one.coordinate, one.decision) == ("e1", Coordinate(1, 1), PICK)

    def test_what_happens_often_is_counted(self) -> None:
        """The first of them are told, the rest is counted where it ends."""
        merged = decided("merge", "same_taskId")
        joined = [
            i.ItemMerged(
                agent_id=AGENT, item_id=f"j{n}", into="i1", priority=2, decision=merged
            )
            for n in range(TOLD_EACH + 7)
        ]  # fmt: skip
        told = story(accepted("i1"), *joined, i.ItemResurfaced(agent_id=AGENT, item_id="i1",
                                                               cause="due"))  # fmt: skip
        assert [one.kind for one in told].count("joined") == TOLD_EACH + 1
        assert told[-2].text == "And 7 more joined it by then."
        assert told[-2].event_id is None

    def test_picks_that_do_not_name_it_come_before_its_own(self) -> None:
        """They are known by number only."""
        told = story(accepted("i1"), EACH[3][0], unnamed=4)
        assert [one.kind for one in told] == ["accepted", "passed_over", "picked"]
        assert re.search("picked 4 times before it", told[1].text)

    def test_a_story_without_events_has_no_sentences(self) -> None:
        """Nothing is made up."""
        assert story(unnamed=4) == ()
