"""Asking people and telling them: the rules, and the names under which listeners hear of it."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given as example
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.support.events import BEGAN, events
from tests.support.spec import AGENT, SESSION, Situation, given, recorded, released
from tests.unit.test_attention import AT_WORK, STOP, TURN, due
from undivided.api.live import Frame, Heard, Listener, frames
from undivided.domain.approvals import (
    OPTIONS,
    YES_OR_NO,
    Answer,
    AskPerson,
    Late,
    Waiting,
    answered,
    chosen,
    late,
    options_of,
    wait_for,
    waiting_for,
)
from undivided.domain.attention import Rest, Wake
from undivided.domain.dialogue import AssistantSaid, UserSaid
from undivided.domain.errors import Invalid
from undivided.domain.events import flights as f
from undivided.domain.events import people as p
from undivided.domain.events.catalogue import CATALOGUE, Event
from undivided.domain.history import WROTE_FIRST, begun_by_agent, provider_history
from undivided.domain.notifications import (
    NOTIFICATION_TYPES,
    From,
    Related,
    Tell,
    addressee,
    checked_user,
    message_of,
    notification_of,
    notification_type,
    related_to,
)
from undivided.domain.state.people import ApprovalRow
from undivided.domain.transplant import names_for, renamed
from undivided.domain.waits import Approval
from undivided.domain.waking import patience_over, told_after_wait
from undivided.projections.people import reduce_approval

DAY = 24 * 3600
REQUEST = p.ApprovalRequested(
    approval_id="apr_1", user_id="owner", agent_id=AGENT, turn_id=TURN, call_id="call_1",
    session_id=SESSION, item_id="i1", notification_id="ntf_1", title="Deploy?", description="",
    options=YES_OR_NO, allow_freeform=True, priority="high",
)  # fmt: skip
THREE = tuple(p.ApprovalOption(name, name.upper()) for name in ("a", "b", "c"))


def row(*then: Event, **changed: Any) -> ApprovalRow:
    """The request as it was asked, but for what changed, and what came of it."""
    made: ApprovalRow | None = None
    for number, event in enumerate((replace(REQUEST, **changed), *then), start=1):
        made = reduce_approval(made, recorded(number, event))
    assert made is not None
    return made


def asking(seconds: float, expires: bool, *then: Event) -> Situation:
    """A turn waits for a person."""
    wait = Approval("apr_1", seconds, expires)
    waits = f.FocusSuspended(agent_id=AGENT, turn_id=TURN, epoch=1, wait=wait, wait_s=seconds)
    return given(*AT_WORK, waits, released(1, "suspended"), *then)


def answer_came(content: str = "{}") -> f.FocusAnswered:
    return f.FocusAnswered(agent_id=AGENT, turn_id=TURN, call_id="call_1", content=content)


class TestWaitingForAPerson:
    """A turn that asks waits for the answer and for nothing else."""

    def test_144_the_backstop_is_not_its_limit(self) -> None:
        """The normal backstop is 45 minutes; the policy's patience with people is 24 hours."""
        asking(DAY, False).after(DAY - 1).when(due).then(Rest())
        asking(DAY, False).after(DAY).when(due).then(Wake(TURN, SESSION, "waited"))

    def test_an_answer_ends_it(self) -> None:
        """With what the model reads."""
        asking(DAY, False, answer_came("yes")).when(due).then(
            Wake(TURN, SESSION, "answered", answer="yes")
        )

    def test_only_patience_ends_the_attempt(self) -> None:
        """Whoever named an expiry goes on without an answer."""
        over, wake = Wake(TURN, SESSION, "waited"), Wake(TURN, SESSION, "answered", answer="yes")
        assert patience_over(over, Approval("apr_1", DAY, expires=False))
        assert not patience_over(over, Approval("apr_1", 60, expires=True))
        assert not patience_over(wake, Approval("apr_1", DAY, expires=False))
        assert not patience_over(over, None)

    @pytest.mark.parametrize(("cause", "status"), [("waited", "expired"), ("stopped", "cancelled")])
    def test_without_an_answer_nothing_is_approved(self, cause: Any, status: str) -> None:
        told = json.loads(told_after_wait(Wake(TURN, SESSION, cause), Approval("apr_1", 1, True)))
        assert (told["status"], told["approved"]) == (status, False)

    def test_how_long_is_the_askers_word_or_else_the_policys(self) -> None:
        ask = AskPerson(title="x", description="y")
        assert wait_for(ask, "apr_1", DAY) == Approval("apr_1", DAY, expires=False)
        timed = replace(ask, expires_s=60.0)
        assert wait_for(timed, "apr_1", DAY) == Approval("apr_1", 60, expires=True)


class TestAnswering:
    """An answer is taken while the turn waits for it, and once."""

    def test_while_the_turn_waits(self) -> None:
        now = asking(DAY, False)
        assert waiting_for(row(), now.agent, None, None) == Waiting()

    def test_not_once_it_has_an_answer_or_is_to_stop(self) -> None:
        for event in (answer_came(), STOP):
            assert waiting_for(row(), asking(DAY, False, event).agent, None, None) is None

    def test_not_where_it_waits_for_another(self) -> None:
        now = asking(DAY, False)
        assert waiting_for(row(approval_id="apr_2"), now.agent, None, None) is None

    def test_in_time(self) -> None:
        assert late(row(expires_s=60.0), Waiting(), BEGAN + timedelta(seconds=59)) is None

    def test_233_late_is_refused_by_the_rule_it_is_late_by(self) -> None:
        """What is not recorded yet is recorded with the refusal."""
        same = {"approval_id": "apr_1", "user_id": "owner", "agent_id": AGENT, "turn_id": TURN}
        expired, cancelled = p.ApprovalExpired(**same), p.ApprovalCancelled(**same)
        yes = answered(row(), Answer(True), "approve")
        assert late(row(yes), Waiting(), BEGAN) == Late("approval_answered")
        assert late(row(expires_s=60.0), Waiting(), BEGAN + timedelta(seconds=60)) == Late(
            "approval_expired", expired
        )
        assert late(row(), None, BEGAN) == Late("approval_cancelled", cancelled)
        assert late(row(expired), None, BEGAN) == Late("approval_expired")
        assert late(row(cancelled), None, BEGAN) == Late("approval_cancelled")

    def test_the_first_answer_stays(self) -> None:
        """Whatever history says after it."""
        yes, no = Answer(True), Answer(False)
        first = row(answered(row(), yes, "approve"))
        assert row(answered(row(), yes, "approve"), answered(row(), no, "reject")) == first

    def test_yes_and_no_need_no_option(self) -> None:
        assert chosen(row(), Answer(True)) == "approve"
        assert chosen(row(), Answer(False)) == "reject"
        assert chosen(row(), Answer(True, "approve")) == "approve"

    def test_one_of_many_is_named_or_described(self) -> None:
        """Or declined altogether."""
        many = row(options=THREE)
        assert chosen(many, Answer(True, "b")) == "b"
        assert chosen(many, Answer(True, comment="all three")) == ""
        assert chosen(many, Answer(False)) == ""

    @pytest.mark.parametrize(
        ("changed", "given_answer"),
        [
            ({}, Answer(True, "reject")),
            ({}, Answer(True, "perhaps")),
            ({"options": THREE}, Answer(True)),
            ({"options": THREE}, Answer(True, "d")),
            ({"allow_freeform": False}, Answer(True, comment="but")),
        ],
    )
    def test_what_does_not_fit_is_refused(
        self, changed: dict[str, Any], given_answer: Answer
    ) -> None:
        with pytest.raises(Invalid):
            chosen(row(**changed), given_answer)


class TestOptions:
    """What may be asked."""

    def test_none_are_approve_and_reject(self) -> None:
        assert [one.id for one in options_of([])] == ["approve", "reject"]

    def test_they_are_told_apart(self) -> None:
        good = [{"id": "a", "label": "A", "description": "first"}, {"id": "b", "label": "B"}]
        assert options_of(good)[0] == p.ApprovalOption("a", "A", "first")
        for bad in (
            [good[0], good[0]],
            [{"id": "", "label": "A"}],
            [{"id": "a", "label": " "}],
            [{"id": str(n), "label": "x"} for n in range(OPTIONS + 1)],
        ):
            with pytest.raises(Invalid):
                options_of(bad)


class TestTelling:
    """What a notification leads to, and what stands in the chat."""

    def speaker(self) -> From:
        return From(given().agent, TURN, "ses_chat")

    def test_the_registry_is_the_documents(self) -> None:
        """Section 12.2: type, priority, action and category."""
        assert {
            name: (one.priority, one.action, one.category)
            for name, one in NOTIFICATION_TYPES.items()
        } == {
            "approval_request": ("high", "navigate", "approval"),
            "task_created": ("normal", "navigate", "task"),
            "task_completed": ("normal", "navigate", "task"),
            "task_review": ("normal", "navigate", "task"),
            "task_failed": ("high", "navigate", "task"),
            "requirement_created": ("high", "navigate", "task"),
            "requirement_decision": ("normal", "navigate", "task"),
            "agent_report": ("normal", "none", "agent"),
            "system": ("normal", "none", "system"),
        }
        with pytest.raises(Invalid, match="one of: approval_request"):
            notification_type("gossip")

    def test_it_leads_to_the_task_or_into_the_chat(self) -> None:
        tell = Tell(title="One", body="1")
        about = replace(tell, related=Related("tsk_1"))
        chat = p.Action("open_chat", agent_id=AGENT, session_id="ses_chat")
        assert notification_of(tell, self.speaker(), "ntf_1").action == chat
        assert notification_of(about, self.speaker(), "ntf_1").action == p.Action(
            "navigate", path="/work?task=tsk_1"
        )

    @pytest.mark.parametrize(
        ("more", "hidden"),
        [
            ({}, ""),
            ({"priority": "low"}, "priority=low"),
            ({"related": Related("tsk_1", "req_1")}, "task_id=tsk_1, requirement_id=req_1"),
            (
                {"related": Related(None, "req_1"), "priority": "high"},
                "requirement_id=req_1, priority=high",
            ),
        ],
    )
    def test_the_context_is_hidden_in_the_message(self, more: dict[str, Any], hidden: str) -> None:
        """Only where there is something to say, and a normal priority is nothing."""
        content = message_of(Tell(title="One", body="1", **more), self.speaker()).content
        behind = f"\n\n<!-- notify_context: {hidden} -->" if hidden else ""
        assert content == f"**One**\n\n1{behind}"

    def test_whom_it_is_for(self) -> None:
        """Whoever is named, else the person who wrote last, else the owner."""
        agent = given().agent
        assert addressee(agent, None) == "owner"
        assert addressee(replace(agent, user_id="Tom B"), None) == "Tom B"
        assert addressee(replace(agent, user_id="Tom B"), "eve") == "eve"

    def test_names_and_ids_that_cannot_be(self) -> None:
        for name in ("", "a\x00", "x" * 201, "a\nb"):
            with pytest.raises(Invalid):
                checked_user(name)
        with pytest.raises(Invalid):
            related_to("--> <b>", None)

    def test_a_conversation_that_the_agent_began_is_not_cut_off(self) -> None:
        said = (AssistantSaid("**One**\n\n1"), UserSaid("why?"))
        assert provider_history(begun_by_agent(said), 9, 999) == (UserSaid(WROTE_FIRST), *said)
        assert begun_by_agent((UserSaid("hi"), *said)) == (UserSaid("hi"), *said)
        assert begun_by_agent(()) == ()


class TestAnotherName:
    """A history that is imported beside itself keeps its questions apart from the first's."""

    def test_a_request_its_wait_and_its_notification_go_together(self) -> None:
        speaker = From(given().agent, TURN, SESSION)
        told = notification_of(Tell(title="One", body="1"), speaker, "ntf_1")
        wait = Approval("apr_1", DAY, expires=False)
        waits = f.FocusSuspended(agent_id=AGENT, turn_id=TURN, epoch=1, wait=wait, wait_s=DAY)
        told_of: tuple[Event, ...] = (REQUEST, told, waits)
        history = [recorded(n, one) for n, one in enumerate(told_of, start=1)]
        names = names_for((AGENT, "eve"), history)
        request, bell, suspended = (renamed(one, names).event for one in history)
        assert isinstance(request, p.ApprovalRequested)
        assert isinstance(bell, p.NotificationPosted)
        assert isinstance(suspended, f.FocusSuspended)
        assert suspended.wait == replace(wait, approval_id=request.approval_id)
        assert request.approval_id != "apr_1"
        assert request.notification_id == bell.notification_id != "ntf_1"
        assert bell.action.agent_id == request.agent_id == "eve"
        assert [one.id for one in request.options] == ["approve", "reject"]


def heard(event: Event, actor: str = f"agent:{AGENT}") -> Heard:
    """An event as the tail tells it."""
    data = msgspec.to_builtins(event)
    return Heard(
        id="e1", type=CATALOGUE[type(event)][0], version=3, data=data, meta={"actor": actor},
        at=BEGAN,
    )  # fmt: skip


class TestFrames:
    """What listeners hear of an event."""

    @example(events())
    def test_every_event_can_be_told(self, event: Event) -> None:
        """Whatever it holds; and each frame says whose it is."""
        for frame in frames(heard(event), {}):
            assert frame.user_id is not None or frame.payload["agentId"] == frame.agent_id

    def test_a_pick_is_told_as_item_decision_attention_and_focus(self) -> None:
        told = {one.type: one.payload for one in frames(heard(AT_WORK[2]), {AGENT: 4})}
        assert set(told) == {"agent:mailbox", "agent:decision", "agent:attention", "agent:focus"}
        assert told["agent:mailbox"]["item"] == {
            "id": "i1", "status": "processing", "turnId": TURN,
        }  # fmt: skip
        assert told["agent:decision"]["decision"]["rule"] == "priority_fifo"
        assert told["agent:attention"]["state"] == "focused"
        assert told["agent:focus"]["mailboxDepth"] == 4

    def test_023_an_accepted_stimulus_is_told_with_its_summary(self) -> None:
        (frame,) = frames(heard(AT_WORK[0]), {})
        assert frame.type == "agent:mailbox"
        assert frame.payload["item"] == {
            "id": "i1", "status": "queued", "sourceType": "human_chat", "priority": 0,
            "summary": "content of i1", "queuedAt": "2026-01-01T00:00:00.000Z",
        }  # fmt: skip

    def test_events_that_a_newer_release_brings_are_told_by_their_name(self) -> None:
        for name, kind in (("triage.applied", "agent:triage"), ("agent.incomplete",
                                                                "agent:incomplete")):  # fmt: skip
            one = Heard(
                id="e", type=name, version=1, data={"agent_id": "ada", "x": 1}, meta={}, at=BEGAN
            )
            assert kind in [frame.type for frame in frames(one, {})]

    def test_listeners_hear_what_is_for_them(self) -> None:
        mine, theirs = Frame("x", {}, "ada"), Frame("notification", {}, user_id="bob")
        assert Listener("bob").wants(theirs)
        assert Listener("eve").wants(replace(theirs, user_id="all"))
        assert not Listener("eve").wants(theirs)
        assert Listener("eve").wants(mine)
        assert Listener("eve", {"ada"}).wants(mine)
        assert not Listener("eve", set()).wants(mine)

    @example(st.lists(st.sampled_from("abc")), st.lists(st.sampled_from("abc")))
    def test_subscriptions_add_up(self, more: list[str], fewer: list[str]) -> None:
        listener = Listener("eve")
        listener.change(more, fewer)
        assert listener.agents == set(more) - set(fewer)
