"""An agent that asks people, sleeps, is preempted, and comes back, in any order of events.

What `test_attention_machine.py` does, with a judge that says anything, turns that follow each
other in one append, several turns set aside at once, and people who answer, stop and delete.
"""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

from tests.support import townspeople
from tests.support.attentive import Mind
from tests.support.patient import Patient
from tests.support.set_aside_checks import check_answers, check_shown, check_turns
from tests.support.town import finished, responded, started
from tests.unit.test_attention_machine import KINDS, POLICY, WHO, Attending
from undivided.domain import agents, turn
from undivided.domain.approvals import Answer
from undivided.domain.attention import Halt, at_yield_point
from undivided.domain.endings import stopped_outcome
from undivided.domain.errors import Rejected
from undivided.domain.events import sessions as s
from undivided.domain.outcomes import Completed, Failed, Outcome, TimedOut
from undivided.domain.policy import DEFAULT_POLICY
from undivided.domain.state.item import Deferred, Processing, Queued
from undivided.domain.state.session import TurnOver
from undivided.projections.table import fold

SAYS = st.sampled_from([None, "continue", "preempt", "cancel", "merge", "defer"])
"""What the judge says of whatever the rules say nothing about; None: there is no judge."""
ON_MESSAGE = st.sampled_from(["merge", "steer", "queue", "preempt", "abort"])
TRIAGE = st.sampled_from(["off", "off", "deliberation"])
WAITS = st.sampled_from([0.0, 50.0, 50_000.0])
CUT_SHORT: tuple[Outcome, ...] = (
    TimedOut(60), Failed("rate_limited", "later", retryable=True),
    Failed("refused", "no", retryable=False),
)  # fmt: skip
ENOUGH = 400


ARRIVES = st.none() | st.tuples(
    KINDS, st.none() | st.integers(0, 4), st.sampled_from("xy"), st.sampled_from(["user", "agent"])
)
MOMENT = st.tuples(ARRIVES, st.sampled_from([0, 1, 1, 2]), SAYS)
"""What may arrive, how many tools the model asks for next, what the judge says."""


def works(machine: Any) -> bool:
    """Whether somebody is at work on items, and not only considering them."""
    return machine.mind is not None and not machine.mind.considered


class Waiting(Attending):
    """One agent that also waits, and its workers."""

    town: Patient

    def __init__(self) -> None:
        super().__init__()
        self.town = Patient()
        self.approvals: list[str] = []

    @initialize(on_message=ON_MESSAGE, triage=TRIAGE)
    def create(self, on_message: str, triage: str) -> None:
        policy = {**POLICY, "onUserMessage": on_message, "triage": triage}
        command = agents.CreateAgent(agent_id=WHO, name=WHO, policy=policy)
        self.town.write(*agents.create(DEFAULT_POLICY, command))

    @rule(steals=st.sampled_from([False] * 9 + [True]))
    def attend(self, steals: bool = False) -> None:
        """A worker takes the agent, now and then from one that only seems dead."""
        if self.mind is None or steals:
            super().attend()

    def look_up(self) -> None:
        """The agent looks up before each step; see `step`."""

    @rule(moments=st.lists(MOMENT, min_size=1, max_size=8))
    def work(self, moments: list[Any]) -> None:
        """A worker works while things arrive, and takes the agent again when it has let go."""
        for arrives, tools, says in moments:
            if arrives is not None:
                self.arrive(*arrives, starts=False)
            if self.mind is None:
                self.mind = self.town.attend(WHO)
            elif not self.mind.considered:
                self.step(tools, says, leaving=False)

    @precondition(works)
    @rule(tools=st.integers(0, 2), says=SAYS, leaving=st.booleans())
    def step(self, tools: int, says: Any, leaving: bool) -> None:
        """Look up, and then whatever the recorded steps call for."""
        if not self._goes_on(says, leaving):
            return
        hand = self._at_work().hand
        match turn.next_step(hand.state, 0):
            case turn.AskModel() if tools == 0:
                self.town.record(hand, responded(hand, "so"))
                self.mind = self.town.land(self._at_work(), Completed("so"), leaving)
            case turn.AskModel():
                self.town.record(hand, responded(hand, "", *["pure", "once"][:tools]))
            case turn.RunTool(call=call, again=again):
                if not again:
                    self.town.record(hand, started(hand, call.id, call.tool))
                self.town.record(hand, finished(hand, call.id, "returned"))
            case turn.AnswerUnknown(call=call):
                self.town.record(hand, finished(hand, call.id, "interrupted"))
            case never:
                raise AssertionError(f"whoever resumes or records has seen to {never}")

    def _at_work(self) -> Mind:
        assert self.mind is not None
        return self.mind

    def _goes_on(self, says: Any, leaving: bool) -> bool:
        """What a worker does before a step; whether the same turn is at work after it."""
        before = self._at_work()
        agent, hand = self.town.agent(WHO), before.hand
        match at_yield_point(agent, hand.turn.id, draining=False):
            case Halt(by=by):
                self.mind = self.town.land(before, stopped_outcome(by), leaving)
                return False
        following = turn.next_step(hand.state, 0)
        if isinstance(following, turn.AskModel):
            self.mind = self.town.look(before, says, leaving)
        elif isinstance(following, turn.RunTool) and turn.in_batch(hand.state):
            weighing = self.town.skips_rest(before)
            if weighing is not None and not following.again:
                self.mind = self.town.set_aside(before, weighing, leaving)
        return self.mind is before

    @precondition(lambda machine: machine.mind is not None and machine.mind.considered)
    @rule(outcome=st.sampled_from([Completed("so"), *CUT_SHORT]), data=st.data())
    def end(self, outcome: Outcome, data: st.DataObject) -> None:
        """A deliberation ends, with any plan at all."""
        mind, self.mind = self._at_work(), None
        self.town.finish(mind, outcome, self._plan(mind, data))

    @precondition(works)
    @rule(outcome=st.sampled_from(CUT_SHORT), leaving=st.booleans())
    def cut_short(self, outcome: Outcome, leaving: bool) -> None:
        """A backstop or a failure ends the turn wherever it is."""
        self.mind = self.town.land(self._at_work(), outcome, leaving)

    @precondition(works)
    @rule(seconds=WAITS, how=st.sampled_from(["sleep", "patience", "expiry"]))
    def wait(self, seconds: float, how: str) -> None:
        """A call asks to wait; where none is open, the model first asks for one."""
        if not self._goes_on(None, leaving=False):
            return
        hand = self._at_work().hand
        if isinstance(turn.next_step(hand.state, 0), turn.AskModel):
            self.town.record(hand, responded(hand, "", "pure", "once"))
        match turn.next_step(hand.state, 0):
            case turn.RunTool(call=call, again=again):
                if not again:
                    self.town.record(hand, started(hand, call.id, "pure"))
                mind, self.mind = self._at_work(), None
                if how == "sleep":
                    self.town.suspend(mind.hand, call, seconds)
                else:
                    self.approvals.append(self.town.ask(mind, seconds, how == "expiry"))


class Asking(Waiting):
    """Its people, and what is true all along."""

    @precondition(lambda machine: machine.approvals)
    @rule(which=st.integers(0, 50), approved=st.booleans())
    def answer(self, which: int, approved: bool) -> None:
        """A person answers any request there ever was."""
        self.town.answer(self.approvals[which % len(self.approvals)], Answer(approved))

    @rule()
    def settle(self) -> None:
        townspeople.settle(self.town)

    @precondition(lambda machine: machine.town.sessions)
    @rule(which=st.integers(0, 50))
    def stop_a_session(self, which: int) -> None:
        """Whatever is at work in it, and whatever is set aside."""
        names = sorted(self.town.sessions)
        townspeople.stop_session(self.town, names[which % len(names)], "eve")

    @precondition(lambda machine: machine.town.sessions)
    @rule(which=st.integers(0, 50))
    def archive(self, which: int) -> None:
        """Only a session in which nothing is left to do."""
        names = sorted(self.town.sessions)
        row = self.town.session(names[which % len(names)])
        idle = row is not None and row.active_turn is None and not row.set_aside
        if row is not None and idle and row.status == "active":
            self.town.write(s.SessionArchived(session_id=row.id))

    @invariant()
    def turns_and_items_tell_one_story(self) -> None:
        """A turn that is set aside has all its items, and they bring it back."""
        if self.town.history:
            check_turns(self.town, WHO)
            check_answers(self.town)
            check_shown(self.town, WHO)

    @rule(sure=st.sampled_from([False] * 19 + [True]))
    def delete(self, sure: bool) -> None:
        """The agent may go for good; nothing of it is left over, and another one comes."""
        if not sure or self.town.agent(WHO).lifecycle == "deleted":
            return
        try:
            townspeople.delete(self.town, WHO)
        except Rejected:
            return
        self.mind = None
        self._is_done()
        policy = self.town.agent(WHO).policy
        self.__init__()  # type: ignore[misc]
        self.create(policy.on_user_message, policy.triage)

    def _left(self) -> list[str]:
        waits = Queued | Deferred | Processing
        items = [one.id for one in self.town.items(WHO) if isinstance(one.phase, waits)]
        turns = [
            row.id
            for (table, _), row in self.town.rows.items()
            if table == "turns" and not isinstance(row.phase, TurnOver)
        ]
        return items + turns

    def teardown(self) -> None:
        """With a worker that lives, all is worked off; and the rows are what the log says."""
        if not self.town.history:
            return
        self.mind = None
        if events := agents.start(self.town.agent(WHO)):
            self.town.write(*events)
        for _ in range(ENOUGH):
            self.town.pass_time(100_000)
            self.mind = self.town.attend(WHO)
            if self.mind is None:
                break
            while self.mind is not None:
                if self.mind.considered:
                    mind, self.mind = self.mind, None
                    self.town.finish(mind, Completed("so"))
                else:
                    self.step(0, None, leaving=False)
        self._is_done()

    def _is_done(self) -> None:
        """Nothing is left to do, nobody waits, and the rows are what the log says."""
        assert self._left() == []
        townspeople.settle(self.town)
        self.history_is_sound()
        self.turns_and_items_tell_one_story()
        again: dict[tuple[str, str], Any] = {}
        fold(again, [one.recorded for one in self.town.history])
        assert again == self.town.rows


TestAsking = Asking.TestCase
TestAsking.settings = settings(
    max_examples=100,
    stateful_step_count=50,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
