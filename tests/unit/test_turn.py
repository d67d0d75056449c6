"""A turn is a fold over its steps, and says what is next."""

from __future__ import annotations

from functools import reduce

from hypothesis import given as example
from hypothesis import strategies as st

from tests.support.events import events
from undivided.domain import turn as t
from undivided.domain.dialogue import ToolCall, Usage
from undivided.domain.events import sessions as s
from undivided.domain.events.catalogue import Event
from undivided.domain.tooling import Effect
from undivided.domain.waits import Sleep

TURN = "trn_1"
LOOK, REST = ToolCall("c1", "look", {"at": "x"}), ToolCall("c2", "rest", {})

STARTED = s.TurnStarted(
    turn_id=TURN, session_id="ses", agent_id="ada", item_ids=("i1",), scenario="chat",
    origin="human_chat", index=0, responses_before=0, input="hello", epoch=1, backstop_s=60,
)  # fmt: skip


def responded(step: int, text: str = "", *calls: ToolCall) -> s.ModelResponded:
    return s.ModelResponded(
        turn_id=TURN, step=step, text=text, calls=calls, usage=Usage(1, 1, 0, 1), model="m",
        epoch=1,
    )  # fmt: skip


def started(call: ToolCall, effect: Effect = "once") -> s.ToolCallStarted:
    return s.ToolCallStarted(
        turn_id=TURN, call_id=call.id, tool=call.tool, args=call.args, effect=effect,
        idempotency_key=t.idempotency_key(TURN, call.id), epoch=1,
    )  # fmt: skip


def finished(call: ToolCall) -> s.ToolCallFinished:
    return s.ToolCallFinished(
        turn_id=TURN, call_id=call.id, tool=call.tool, resolution="returned", content="", epoch=1
    )


def suspended(call: ToolCall) -> s.TurnSuspended:
    return s.TurnSuspended(turn_id=TURN, call_id=call.id, wait=Sleep(1), wait_s=1, epoch=1)


def after(*steps: Event) -> t.TurnState:
    state = reduce(t.evolve, steps, t.evolve(None, STARTED))
    assert state is not None
    return state


def follows(*steps: Event, at_most: int = 0) -> t.NextStep:
    return t.next_step(after(*steps), at_most)


class TestNextStep:
    """What is recorded decides it, and nothing else."""

    def test_a_new_turn_asks_the_model(self) -> None:
        """Steps count from 0."""
        assert follows() == t.AskModel(0)

    def test_a_last_word_is_the_end(self) -> None:
        """Also if it is an empty one."""
        assert follows(responded(0, "so")) == t.Finish("so")
        assert follows(responded(0, "")) == t.Finish("")

    def test_calls_run_one_after_the_other(self) -> None:
        """In the order in which they were asked for."""
        both = responded(0, "", LOOK, REST)
        assert follows(both) == t.RunTool(LOOK, again=False)
        assert follows(both, started(LOOK), finished(LOOK)) == t.RunTool(REST, again=False)

    def test_the_model_is_asked_on_once_all_are_answered(self) -> None:
        """It reads what came of them."""
        done = (responded(0, "", LOOK), started(LOOK), finished(LOOK))
        assert follows(*done) == t.AskModel(1)
        assert [type(one).__name__ for one in after(*done).said] == [
            "UserSaid", "AssistantSaid", "ToolAnswered",
        ]  # fmt: skip

    def test_requests_are_counted(self) -> None:
        """max_tool_iterations; 0 is no limit."""
        once = (responded(0, "", LOOK), started(LOOK), finished(LOOK))
        assert follows(*once, at_most=2) == t.AskModel(1)
        assert follows(*once, at_most=1) == t.Exhausted(1)
        assert follows(*once, at_most=0) == t.AskModel(1)
        assert follows(responded(0, "so"), at_most=1) == t.Finish("so")


class TestAfterACrash:
    """A started call without a result: its effect says what becomes of it."""

    def test_it_runs_again_where_that_is_harmless(self) -> None:
        """Pure, and idempotent with the same key."""
        effects: tuple[Effect, ...] = ("pure", "idempotent")
        for effect in effects:
            assert follows(responded(0, "", LOOK), started(LOOK, effect)) == t.RunTool(
                LOOK, again=True
            )

    def test_it_is_answered_where_it_is_not(self) -> None:
        """Whether it took effect is for the model to judge."""
        assert follows(responded(0, "", LOOK), started(LOOK)) == t.AnswerUnknown(LOOK)

    def test_a_wait_is_ended_by_whoever_resumes(self) -> None:
        """Also where that was forgotten."""
        waits = (responded(0, "", REST), started(REST, "pure"), suspended(REST))
        assert follows(*waits) == t.EndWait(REST)

    def test_the_key_is_the_same_in_every_run(self) -> None:
        """Made of turn and call."""
        assert t.idempotency_key(TURN, "c1") == "trn_1:c1"


class TestTheEnd:
    """Every call has one result, also where the turn is cut off."""

    def test_what_was_running_is_in_doubt_and_what_was_not_is_skipped(self) -> None:
        """A stop, a backstop or a failure in the middle of a batch."""
        left = t.left_open(after(responded(0, "", LOOK, REST), started(LOOK)), 2)
        assert [(one.call_id, one.resolution, one.epoch) for one in left] == [
            ("c1", "interrupted", 2),
            ("c2", "skipped", 2),
        ]

    def test_nothing_is_added_where_nothing_is_open(self) -> None:
        """The common case."""
        assert t.left_open(after(responded(0, "so")), 1) == ()


class TestTheFold:
    """Total, and the same however it is cut."""

    @example(st.lists(events(), max_size=25))
    def test_takes_any_history(self, history: list[Event]) -> None:
        """No history makes it raise, and a step always follows."""
        state = reduce(t.evolve, history, None)
        if state is not None:
            t.next_step(state, 3)
            t.left_open(state, 1)

    @example(st.lists(events(), max_size=25))
    def test_another_turns_events_change_nothing(self, history: list[Event]) -> None:
        """A session's stream holds all of its turns."""
        others = [one for one in history if not isinstance(one, s.TurnStarted)]
        state: t.TurnState | None = after(responded(0, "", LOOK))
        assert reduce(t.evolve, others, state) == state

    @example(st.data())
    def test_a_recorded_answer_is_never_asked_for_again(self, data: st.DataObject) -> None:
        """However often its worker died, at whatever point."""
        state, asked, ran = after(), 0, dict[str, int]()
        for _ in range(25):
            match t.next_step(state, 0):
                case t.AskModel(step=step):
                    assert step == asked
                    if data.draw(st.booleans()):  # else its worker died before the answer
                        wished = data.draw(st.integers(0, 2))
                        calls = [ToolCall(f"{step}.{n}", "look", {}) for n in range(wished)]
                        state = t.evolve(state, responded(step, "so", *calls)) or state
                        asked += 1
                case t.RunTool(call=call, again=again):
                    assert again is (call.id in ran)
                    ran[call.id] = ran.get(call.id, 0) + 1
                    if not again:
                        effect: Effect = data.draw(st.sampled_from(["pure", "once"]))
                        state = t.evolve(state, started(call, effect)) or state
                    if data.draw(st.booleans()):  # else its worker died while it ran
                        state = t.evolve(state, finished(call)) or state
                case t.AnswerUnknown(call=call):
                    assert ran[call.id] == 1
                    state = t.evolve(state, finished(call)) or state
                case _:
                    break
        answers = [one.call_id for one in state.said if hasattr(one, "call_id")]
        assert len(answers) == len(set(answers))
        assert state.usage.requests == state.responses == asked
