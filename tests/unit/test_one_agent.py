"""One agent through anything that can happen to it: what must be true is true at every moment."""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.support.world import World
from undivided.domain import agents, turn
from undivided.domain.agents import AGENT_STOPPED
from undivided.domain.dialogue import ToolAnswered
from undivided.domain.endings import EMPTY_REPLY, stopped_outcome
from undivided.domain.events.sessions import ModelResponded
from undivided.domain.history import provider_history, said_of
from undivided.domain.invariants import HistoryCheck
from undivided.domain.outcomes import Completed, Failed, Incomplete, Outcome, TimedOut
from undivided.domain.state.agent import Focused, Idle
from undivided.domain.state.item import TERMINAL, Queued
from undivided.domain.tooling import Effect

KINDS = ("human_chat", "daily_report", "heartbeat", "task_notification", "agent_completion")
BUSY = Failed("rate_limited", "", retryable=True)
FINAL = Failed("refused", "", retryable=False)
EFFECTS: tuple[Effect, ...] = ("pure", "idempotent", "once")
FEW = 6
MOST_STEPS = 400
"""How many steps any agent needs at most to work off what a test can have given it."""


def flying(machine: Any) -> bool:
    return machine.world.epoch is not None


def quiet(machine: Any) -> bool:
    return machine.world.epoch is None


def asks(machine: Any) -> bool:
    return following(machine) is turn.AskModel


def runs(machine: Any) -> bool:
    return following(machine) is turn.RunTool


def ends(machine: Any) -> bool:
    return flying(machine) and not asks(machine) and not runs(machine)


def following(machine: Any) -> type[turn.NextStep] | None:
    """What a turn at work calls for that somebody has a choice in; None if it is over."""
    over = not flying(machine) or machine._over() is not None
    return None if over else type(machine._following())


class OneAgent(RuleBasedStateMachine):
    """Accept, pick, answer, call, wait, yield, stop, crash and come back, in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World(maxDeliveryAttempts=3, retryBackoffS=[1, 5], maxToolIterations=4)
        self.check = HistoryCheck()
        self.checked = 0
        self.answered: set[tuple[str, int]] = set()

    @initialize(kinds=st.lists(st.sampled_from(KINDS), min_size=1, max_size=3))
    def begin(self, kinds: list[str]) -> None:
        for kind in kinds:
            self.world.accept(kind, None)
        self.world.attend()

    @precondition(lambda machine: len(machine.world.items) < FEW)
    @rule(kind=st.sampled_from(KINDS), priority=st.none() | st.integers(0, 4))
    def accept(self, kind: str, priority: int | None) -> None:
        self.world.accept(kind, priority)

    @rule(seconds=st.sampled_from([1, 10, 1000]))
    def time_passes(self, seconds: int) -> None:
        self.world.pass_time(seconds)

    @precondition(quiet)
    @rule()
    def attend(self) -> None:
        self.world.attend()

    @precondition(flying)
    @rule()
    def die(self) -> None:
        self.world.die()

    @precondition(flying)
    @rule()
    def be_frozen_and_replaced(self) -> None:
        """Another worker takes over; whatever the first still writes is refused by the store."""
        self.world.attend()

    @precondition(flying)
    @rule()
    def leave(self) -> None:
        self.world.leave()

    @rule(by=st.sampled_from(["bob", AGENT_STOPPED]))
    def ask_to_stop(self, by: str) -> None:
        self.world.ask_to_stop(by)

    @rule(command=st.sampled_from([agents.start, agents.stop, agents.pause]))
    def command(self, command: Any) -> None:
        self.world.write(*command(self.world.agent))

    @precondition(asks)
    @rule(text=st.sampled_from(["so", ""]))
    def the_model_answers(self, text: str) -> None:
        self._respond(text)

    @precondition(asks)
    @rule(effects=st.lists(st.sampled_from(EFFECTS), min_size=1, max_size=3))
    def the_model_wants_tools(self, effects: list[Effect]) -> None:
        self._respond("", *effects)

    @precondition(runs)
    @rule(then=st.sampled_from(["returned", "died", "rests"]))
    def a_tool_runs(self, then: str) -> None:
        """It returns, or its worker dies in it, or it lets the turn wait."""
        following = self._following()
        assert isinstance(following, turn.RunTool)
        call: Any = following.call
        if following.again:
            assert call.tool != "once"
        else:
            self.world.start_call(call, call.tool)
        match then:
            case "returned":
                self.world.finish_call(call, "returned")
            case "rests":
                self.world.suspend(call, 100)
            case _:
                self.world.die()

    @precondition(ends)
    @rule()
    def go_on(self) -> None:
        """What follows without anybody's choice."""
        over = self._over()
        match self._following():
            case _ if over is not None:
                self.world.end(over)
            case turn.AnswerUnknown(call=call):
                self.world.finish_call(call, "interrupted")
            case turn.EndWait(call=call):
                self.world.finish_call(call, "skipped")
            case turn.Finish(text=text):
                self.world.end(Completed(text) if text else Incomplete(EMPTY_REPLY))
            case turn.Exhausted():
                self.world.end(Incomplete("max_tool_iterations"))
            case _:
                raise AssertionError("somebody has a choice here")

    @precondition(flying)
    @rule(outcome=st.sampled_from([BUSY, FINAL, TimedOut(60)]), leaving=st.booleans())
    def fail(self, outcome: Outcome, leaving: bool) -> None:
        self.world.end(self._stop() or outcome, leaving)

    def _respond(self, text: str, *effects: Effect) -> None:
        state = self.world.state
        self._may_ask(state, state.responses)
        self.answered.add((state.begun.turn_id, state.responses))
        self.world.respond(text, *effects)

    def _following(self) -> turn.NextStep:
        return turn.next_step(self.world.state, self.world.agent.policy.max_tool_iterations)

    def _over(self) -> Outcome | None:
        return self._stop() or self.world.lost_too_often()

    def _stop(self) -> Outcome | None:
        focus = self.world.agent.attention
        stopped = isinstance(focus, Focused) and focus.stop_by is not None
        return stopped_outcome(focus.stop_by) if stopped else None  # type: ignore[union-attr,arg-type]

    def _may_ask(self, state: turn.TurnState, number: int) -> None:
        """No recorded response is asked for again; what waits shows in no request (4)."""
        assert (state.begun.turn_id, number) not in self.answered
        told = (said_of(event) for event in self.world.sessions[state.begun.session_id])
        history = provider_history([one for one in told if one is not None], 10_000, 10**9)
        shown = "".join(one.content for one in history if not isinstance(one, ToolAnswered))
        for item in self.world.items:
            if isinstance(item.phase, Queued) and item.tries.picked == 0:
                assert f"<{item.id}>" not in shown

    @invariant()
    def history_is_sound(self) -> None:
        """Invariants 1, 2, 3 and 5, over all that was recorded so far."""
        history = self.world.history
        for placed in history[self.checked :]:
            assert self.check.feed(placed) == []
        self.checked = len(history)

    @invariant()
    def counts_are_right(self) -> None:
        """Every item is in one place, and the agent's row counts those that wait."""
        world = self.world
        queued = [one.id for one in world.items if isinstance(one.phase, Queued)]
        focus = world.agent.attention
        in_focus = () if isinstance(focus, Idle) else focus.item_ids
        over = [one.id for one in world.items if _status(one) in TERMINAL]
        assert world.agent.waiting == len(queued)
        assert sorted([*queued, *in_focus, *over]) == sorted(one.id for one in world.items)

    def _step(self) -> None:
        if asks(self):
            self.the_model_answers("so")
        elif runs(self):
            self.a_tool_runs("returned")
        else:
            self.go_on()

    def teardown(self) -> None:
        """Left alone with a worker that lives, the agent works everything off."""
        world = self.world
        world.write(*agents.start(world.agent))
        for _ in range(MOST_STEPS):
            if world.epoch is None:
                world.pass_time(1000)
                world.attend()
            if world.epoch is None:
                break
            self._step()
        self.history_is_sound()
        assert self.check.finish() == []
        assert [one.id for one in world.items if _status(one) not in TERMINAL] == []
        responses = [
            (e.turn_id, e.step)
            for steps in world.sessions.values()
            for e in steps
            if isinstance(e, ModelResponded)
        ]
        assert len(responses) == len(set(responses))


def _status(item: Any) -> str:
    return str(item.phase.__struct_config__.tag)


TestOneAgent = OneAgent.TestCase
TestOneAgent.settings = settings(max_examples=200, stateful_step_count=40, deadline=None)
