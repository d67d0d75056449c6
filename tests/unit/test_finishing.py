"""What a turn's last word amounts to, and who is asked for one at all."""

from __future__ import annotations

from functools import reduce
from typing import Any

import pytest
from msgspec.structs import replace

from tests.support.spec import accepted, given
from tests.unit.test_turn import STARTED, TURN, finished, responded
from undivided.domain import turn as t
from undivided.domain.demand import invokes_model
from undivided.domain.dialogue import ToolCall
from undivided.domain.events import sessions as s
from undivided.domain.events.items import Payload
from undivided.domain.finishing import Nudge, after_final, as_it_stands
from undivided.domain.outcomes import EMPTY_REPLY, MARKER_MISSING, Completed, Incomplete
from undivided.domain.scenarios import COMMENT_RESPONSE, DELIBERATION, REQUIREMENT_ACTION
from undivided.domain.stimuli import REGISTRY

MESSAGE, CHAT = REGISTRY["a2a_message"], REGISTRY["human_chat"]
COMMENT = ("task_get", "task_comment")
REQUIREMENT = ("requirement_list", "requirement_resubmit", "task_create")


def last(step: int, text: str, marked: bool = False) -> s.ModelResponded:
    return replace(responded(step, text), marked=marked)


def nudged(reason: s.NudgeReason = "marker_missing") -> s.TurnNudged:
    return s.TurnNudged(turn_id=TURN, reason=reason, content="go on", epoch=1)


def called(step: int, tool: str) -> tuple[s.ModelResponded, s.ToolCallFinished]:
    call = ToolCall(f"c{step}", tool, {})
    return responded(step, "", call), finished(call)


def turn(*steps: Any, scenario: str = "a2a") -> t.TurnState:
    state = reduce(t.evolve, steps, t.evolve(None, replace(STARTED, scenario=scenario)))
    assert state is not None
    return state


def then(*steps: Any, **of: Any) -> Completed | Incomplete | str:
    """What follows these steps: an end, or the reason for which the turn is asked to go on."""
    state = turn(*steps, scenario=of.get("scenario", "a2a"))
    followed = after_final(state, of.get("kind", MESSAGE), of.get("offered", ()))
    return followed.reason if isinstance(followed, Nudge) else followed


class TestMarker:
    """A reply ends with the marker, or it is not known to be whole."""

    def test_131_a_marked_reply_is_the_end(self) -> None:
        """As it is without the marker."""
        assert then(last(0, "done", marked=True)) == Completed("done")

    def test_203_without_it_the_turn_is_asked_to_go_on_once(self) -> None:
        """Both texts are the reply."""
        first = last(0, "half")
        assert then(first) == "marker_missing"
        assert then(first, nudged(), last(1, "whole", marked=True)) == Completed("half\n\nwhole")

    def test_136_still_missing_is_incomplete(self) -> None:
        """With everything that was said, and never a third time."""
        answer = then(last(0, "half"), nudged(), last(1, "more"))
        assert answer == Incomplete(MARKER_MISSING, "half\n\nmore")

    def test_a_person_who_chats_is_not_kept_waiting(self) -> None:
        """84: incomplete all the same, with what was said."""
        assert then(last(0, "hello"), kind=CHAT) == Incomplete(MARKER_MISSING, "hello")

    def test_135_137_an_empty_reply_is_not_asked_to_go_on(self) -> None:
        """It is tried again as a whole, or is over."""
        for kind in (MESSAGE, CHAT):
            assert then(last(0, " "), kind=kind) == Incomplete(EMPTY_REPLY)

    def test_a_marker_alone_completes(self) -> None:
        """There was nothing to say."""
        assert then(last(0, "", marked=True)) == Completed("")

    def test_nothing_more_said_leaves_the_first_reply(self) -> None:
        """Marked or not."""
        assert then(last(0, "half"), nudged(), last(1, "")) == Incomplete(MARKER_MISSING, "half")
        assert then(last(0, "half"), nudged(), last(1, "", marked=True)) == Completed("half")

    def test_a_turn_that_was_not_told_of_it_needs_none(self) -> None:
        """Deliberation answers in a form of its own."""
        assert then(last(0, "sorted"), scenario=DELIBERATION) == Completed("sorted")

    def test_a_marker_before_a_tool_is_not_the_last_word(self) -> None:
        """The model goes on when it calls something."""
        calling, answered = called(0, "look")
        assert then(replace(calling, marked=True), answered, last(1, "so")) == "marker_missing"

    def test_a_failure_while_going_on_leaves_the_first_reply(self) -> None:
        """It was said; another attempt would say it twice."""
        state = turn(last(0, "half"), nudged())
        assert as_it_stands(state) == Incomplete(MARKER_MISSING, "half")


class TestGoingOn:
    """What a nudge asks for goes on like any turn, but not as long."""

    def test_the_model_is_asked_again_after_a_crash(self) -> None:
        """The nudge is recorded with the response that it is about."""
        state = turn(last(0, "half"), nudged())
        assert t.next_step(state, 200) == t.AskModel(1)
        assert state.newest_input == "go on"

    @pytest.mark.parametrize(("limit", "more"), [(200, 24), (0, 24), (3, 3)])
    def test_it_has_so_many_requests(self, limit: int, more: int) -> None:
        """Counted from the nudge, whatever came before it."""
        before = [step for n in range(2) for step in called(n, "look")]
        after = [step for n in range(3, 3 + more) for step in called(n, "look")]
        state = turn(*before, last(2, "half"), nudged(), *after)
        assert t.next_step(state, limit) == t.Exhausted(3 + more)
        assert t.next_step(turn(*before, last(2, "half"), nudged(), *after[:-2]), limit) == (
            t.AskModel(2 + more)
        )


class TestReminders:
    """A turn that is there to do something is reminded of it, once."""

    def test_a_comment_that_was_not_answered(self) -> None:
        """What is only said is not seen by whoever commented."""
        of = {"scenario": COMMENT_RESPONSE, "offered": COMMENT}
        said = last(0, "I agree", marked=True)
        assert then(said, **of) == "no_comment"
        assert then(said, nudged("no_comment"), last(1, "still"), **of) == Completed(
            "I agree\n\nstill"
        )

    def test_a_comment_that_was_answered(self) -> None:
        """By the tool, on a task or a requirement."""
        for tool in ("task_comment", "requirement_comment"):
            steps = (*called(0, tool), last(1, "done", marked=True))
            assert then(*steps, scenario=COMMENT_RESPONSE, offered=COMMENT) == Completed("done")

    def test_an_answered_comment_is_never_an_empty_reply(self) -> None:
        """Trying again would answer it twice."""
        steps = (*called(0, "task_comment"), last(1, ""))
        of = {"scenario": COMMENT_RESPONSE, "offered": COMMENT}
        assert then(*steps, **of) == "marker_missing"
        assert then(*steps, nudged(), last(2, ""), **of) == Incomplete(MARKER_MISSING)

    @pytest.mark.parametrize("word", ["[NO_REPLY_NEEDED]", "thanks [no_reply_needed]"])
    def test_a_comment_that_needs_no_answer(self, word: str) -> None:
        """The model says so, in any case."""
        said = last(0, word, marked=True)
        assert then(said, scenario=COMMENT_RESPONSE, offered=COMMENT) == Completed(word)

    def test_no_tool_no_reminder(self) -> None:
        """Nobody is asked for what it cannot do."""
        said = last(0, "I agree", marked=True)
        assert then(said, scenario=COMMENT_RESPONSE, offered=("task_get",)) == Completed("I agree")
        assert then(said, scenario=REQUIREMENT_ACTION, offered=("task_create",)) == Completed(
            "I agree"
        )

    def test_a_requirement_that_was_not_acted_on(self) -> None:
        """Reading it is no action."""
        of = {"scenario": REQUIREMENT_ACTION, "offered": REQUIREMENT}
        looked = (*called(0, "requirement_list"), last(1, "hm", marked=True))
        assert then(*looked, **of) == "no_action"
        assert then(*looked, nudged("no_action"), last(2, ""), **of) == Completed("hm")
        for tool in ("requirement_resubmit", "task_create"):
            assert then(*called(0, tool), last(1, "so", marked=True), **of) == Completed("so")

    def test_each_reason_once(self) -> None:
        """First the duty, then the marker."""
        of = {"scenario": COMMENT_RESPONSE, "offered": COMMENT}
        steps: tuple[Any, ...] = (last(0, "a"),)
        assert then(*steps, **of) == "no_comment"
        steps = (*steps, nudged("no_comment"), last(1, "b"))
        assert then(*steps, **of) == "marker_missing"
        steps = (*steps, nudged(), last(2, "c"))
        assert then(*steps, **of) == Incomplete(MARKER_MISSING, "a\n\nb\n\nc")


class TestDemand:
    """Whether an item asks the model is a rule about the item."""

    @pytest.mark.parametrize(
        ("kind", "extra", "invokes"),
        [
            ("a2a_message", {}, True),
            ("task_comment", {}, True),
            ("requirement_comment", {}, True),
            ("requirement_update", {}, False),
            ("requirement_update", {"triggerExecution": True}, False),
            ("requirement_update", {"actionRequired": True}, True),
            ("task_status_update", {}, False),
            ("task_status_update", {"actionRequired": True}, False),
            ("task_status_update", {"triggerExecution": True}, True),
            ("task_notification", {"triggerExecution": True}, False),
        ],
    )
    def test_200_the_mark_that_its_type_names(
        self, kind: str, extra: dict[str, Any], invokes: bool
    ) -> None:
        """Or a comment, or a type that always does."""
        now = given(accepted("i1", kind, payload=Payload("x", extra=extra)))
        assert invokes_model(now.item("i1")) is invokes

    def test_everything_else_by_the_registry(self) -> None:
        """Without marks."""
        for name, kind in REGISTRY.items():
            wants = kind.invokes_model or kind.scenario == COMMENT_RESPONSE
            assert invokes_model(given(accepted("i1", name)).item("i1")) is wants
