"""Two agents, their workers and their people, in any order: what must be true always is.

The agents share names of sessions; their workers die, freeze, leave and come back as strangers
that still believe to hold an agent; people stop, pause, archive and delete.
"""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.support.checks import check_agent, check_request
from tests.support.town import Hand, Town, finished, responded, started
from undivided.domain import agents, mailbox, turn
from undivided.domain.attention import Halt, at_yield_point, known_only
from undivided.domain.endings import stopped_outcome
from undivided.domain.errors import Full, NotFound, Rejected, StaleFlight
from undivided.domain.events import items as i
from undivided.domain.events import sessions as s
from undivided.domain.events.catalogue import Event
from undivided.domain.invariants import HistoryCheck
from undivided.domain.outcomes import EMPTY_REPLY, Completed, Failed, Incomplete, Outcome, TimedOut
from undivided.domain.policy import DEFAULT_POLICY
from undivided.domain.state.agent import Idle
from undivided.domain.state.item import Queued
from undivided.projections.table import fold

AGENTS = ("ada", "bob")
WHO = st.sampled_from(AGENTS)
POLICY = {
    "maxDeliveryAttempts": 3, "retryBackoffS": [1, 60], "itemMaxRetries": 1,
    "timeoutMaxRetries": 1, "maxToolIterations": 3, "mailboxCapacity": 4,
    "workingMemoryEntries": 2,
}  # fmt: skip
KINDS = (
    "human_chat", "mention", "heartbeat", "task_comment", "task_notification", "from_tomorrow",
)  # fmt: skip
EFFECTS = st.lists(st.sampled_from(("pure", "idempotent", "once")), max_size=2)
CUT_SHORT: tuple[Outcome, ...] = (
    TimedOut(60), Failed("rate_limited", "later", retryable=True),
    Failed("refused", "no", retryable=False),
)  # fmt: skip
ENOUGH = 300
"""More steps than any agent needs to work off what one example can have given it."""


def somebody_works(machine: Any) -> bool:
    return bool(machine.hands)


class Mail(RuleBasedStateMachine):
    """What arrives, and when."""

    def __init__(self) -> None:
        super().__init__()
        self.town = Town()
        self.hands: dict[str, Hand] = {}
        self.strangers: list[Hand] = []
        self.leaving = False

    @initialize()
    def create(self) -> None:
        for name in AGENTS:
            command = agents.CreateAgent(agent_id=name, name=name, policy=POLICY)
            self.town.write(*agents.create(DEFAULT_POLICY, command))
            self.accept(name, ["human_chat"], None, shared=False)

    @rule(who=WHO, kinds=st.lists(st.sampled_from(KINDS), min_size=1, max_size=2),
          priority=st.none() | st.integers(0, 4), shared=st.booleans())  # fmt: skip
    def accept(self, who: str, kinds: list[str], priority: int | None, shared: bool) -> None:
        """A batch arrives whole, or is refused whole."""
        agent, batch = self.town.agent(who), tuple(map(self._stimulus, kinds))
        commands = tuple(self._command(one, priority, shared) for one in batch)
        try:
            accepted = mailbox.accept(agent, commands, self.town.joinable(who))
        except Full:
            assert agent.waiting + len(commands) > agent.policy.mailbox_capacity
        except NotFound:
            assert agent.lifecycle == "deleted"
        else:
            # A type that only a newer release knows is accepted by a worker of that release.
            sent = dict(zip((one.item_id for one in commands), kinds, strict=True))
            self.town.write(*(self._as_sent(one, sent) for one in accepted))

    def _stimulus(self, kind: str) -> str:
        return "daily_report" if kind == "from_tomorrow" else kind

    def _as_sent(self, event: Event, sent: dict[str, str]) -> Event:
        if not isinstance(event, i.StimulusAccepted):
            return event
        kind = sent[event.item_id]
        fields = {name: getattr(event, name) for name in event.__struct_fields__}
        return i.StimulusAccepted(**{**fields, "source_type": kind})

    def _command(self, kind: str, priority: int | None, shared: bool) -> mailbox.Accept:
        name = self.town.name("mbx")
        return mailbox.Accept(
            item_id=name, source_type=kind, payload=i.Payload(f"<{name}>", task_id="t"),
            priority=priority,
            session_id="shared" if shared else None,
        )  # fmt: skip

    @rule(seconds=st.sampled_from([1, 60, 1000]))
    def time_passes(self, seconds: int) -> None:
        self.town.pass_time(seconds)


class Work(Mail):
    """What workers do about it, how they end, and how they come back."""

    @rule(who=WHO)
    def take_off(self, who: str) -> None:
        """A worker takes an agent whose lock is free, also from one that only seems alive."""
        if who in self.hands:
            self.strangers.append(self.hands.pop(who))
        self._hold(who, self.town.take_off(who))

    def _hold(self, who: str, hand: Hand | None) -> None:
        self.hands.pop(who, None)
        if hand is not None:
            self.hands[who] = hand
            return
        # A wake-up is never lost: whoever lets go has seen that nothing is due.
        focus, town = self.town.agent(who).attention, self.town
        if isinstance(focus, Idle):
            queue = known_only(town.view(who).queue)
            assert town.agent(who).lifecycle != "started" or not queue or self.leaving

    def _at_work(self, who: str) -> Hand:
        """The worker of `who`, or else of the other one."""
        return self.hands.get(who) or next(iter(self.hands.values()))

    @precondition(somebody_works)
    @rule(who=WHO)
    def die(self, who: str) -> None:
        del self.hands[self._at_work(who).agent_id]

    @precondition(somebody_works)
    @rule(who=WHO)
    def leave(self, who: str) -> None:
        self.town.leave(self.hands.pop(self._at_work(who).agent_id))

    @precondition(somebody_works)
    @rule(who=WHO, effects=EFFECTS, text=st.sampled_from(["so", " "]), steps=st.integers(1, 4))
    def work(self, who: str, effects: list[str], text: str, steps: int) -> None:
        """A worker takes a few steps and lives."""
        for _ in range(steps):
            if self.hands:
                self.step(who, effects, text, dies=False)

    @precondition(somebody_works)
    @rule(who=WHO, effects=EFFECTS, text=st.sampled_from(["so", " "]), dies=st.booleans())
    def step(self, who: str, effects: list[str], text: str, dies: bool) -> None:
        """What the recorded steps call for; the worker may die before it is recorded."""
        hand = self._at_work(who)
        if (over := self._over(hand)) is not None:
            self._end(hand, over)
            return
        match turn.next_step(hand.state, self.town.agent(hand.agent_id).policy.max_tool_iterations):
            case turn.AskModel() as ask:
                check_request(self.town, hand, ask)
                answer = responded(hand, text, *effects)
                if dies:
                    del self.hands[hand.agent_id]
                elif effects:
                    self.town.record(hand, answer)
                else:
                    outcome = Completed(text) if text.strip() else Incomplete(EMPTY_REPLY)
                    self._end(hand, outcome, answer)
            case turn.RunTool(call=call, again=again):
                assert not (again and call.tool == "once")
                if not again:
                    self.town.record(hand, started(hand, call.id, call.tool))
                if dies:
                    del self.hands[hand.agent_id]
                    return
                self.town.record(hand, *self._noted(hand), finished(hand, call.id, "returned"))
            case turn.AnswerUnknown(call=call):
                self.town.record(hand, finished(hand, call.id, "interrupted"))
            case turn.Exhausted():
                self._end(hand, Incomplete("max_tool_iterations"))
            case turn.EndWait() | turn.Finish() as never:
                raise AssertionError(f"whoever resumes or records has seen to {never}")

    def _over(self, hand: Hand) -> Outcome | None:
        agent = self.town.agent(hand.agent_id)
        match at_yield_point(agent, hand.turn.id, draining=False):
            case Halt(by=by):
                return stopped_outcome(by)
        if hand.turn.orphaned >= agent.policy.max_delivery_attempts:
            return Failed("flight_lost", "", retryable=False)
        return None

    def _noted(self, hand: Hand) -> list[Event]:
        """Every tool leaves a note; what gives way is decided on the rows of this transaction."""
        rows = [row for key, row in self.town.rows.items() if key[0] == "memories" and row]
        held = sorted((r.noted_at, r.key) for r in rows if r.agent_id == hand.agent_id)
        agent, entry = self.town.agent(hand.agent_id), (f"k{hand.state.tool_calls}", "words")
        return [agents.note(agent, tuple(key for _, key in held), entry, hand.turn.id)]

    def _end(self, hand: Hand, outcome: Outcome, *last: s.ModelResponded) -> None:
        self._hold(hand.agent_id, self.town.end(hand, outcome, last))

    @precondition(somebody_works)
    @rule(who=WHO, outcome=st.sampled_from(CUT_SHORT), leaving=st.booleans())
    def cut_short(self, who: str, outcome: Outcome, leaving: bool) -> None:
        """A backstop or a failure ends the turn wherever it is; the worker may be leaving."""
        hand, self.leaving = self._at_work(who), leaving
        self._hold(hand.agent_id, self.town.end(hand, outcome, (), leaving))
        self.leaving = False

    @precondition(somebody_works)
    @rule(who=WHO, seconds=st.sampled_from([500, 10, 0]))
    def suspend(self, who: str, seconds: float) -> None:
        """A tool asks to wait; where none is to run, the model first asks for one that does."""
        hand = self._at_work(who)
        if self._over(hand) is None and turn.next_step(hand.state, 3) == turn.AskModel(
            hand.state.responses
        ):
            self.town.record(hand, responded(hand, "", "pure"))
        match turn.next_step(hand.state, 0):
            case turn.RunTool(call=call, again=again):
                if not again:
                    self.town.record(hand, started(hand, call.id, "pure"))
                self.town.suspend(self.hands.pop(hand.agent_id), call, seconds)

    @precondition(lambda machine: bool(machine.strangers))
    @rule(which=st.integers(0, 50), deed=st.sampled_from(["answer", "leave", "end"]))
    def write_as_a_stranger(self, which: int, deed: str) -> None:
        """Whoever lost an agent and does not know it is refused, whatever it writes."""
        hand = self.strangers[which % len(self.strangers)]
        before = len(self.town.history)
        try:
            match deed:
                case "answer":
                    self.town.record(hand, responded(hand, "late"))
                case "leave":
                    self.town.leave(hand)
                case _:
                    self.town.end(hand, Completed("late"))
        except StaleFlight as refused:
            assert len(self.town.history) == before
            self.town.fenced(hand, refused)
        else:
            raise AssertionError("a stranger wrote")


class Life(Work):
    """What people do meanwhile, and what is true all along."""

    def __init__(self) -> None:
        super().__init__()
        self.check, self.checked = HistoryCheck(), 0

    @rule(who=WHO, by=st.sampled_from(["eve", "ann"]))
    def stop_the_turn(self, who: str, by: str) -> None:
        self._command_of(who, *agents.request_stop(self.town.agent(who), by))

    @rule(who=WHO, command=st.sampled_from([agents.start] * 4 + [agents.stop, agents.pause]))
    def command(self, who: str, command: Any) -> None:
        try:
            self._command_of(who, *command(self.town.agent(who)))
        except Rejected:
            assert self.town.agent(who).lifecycle == "deleted"

    def _command_of(self, who: str, *events: Event) -> None:
        assert all(getattr(event, "agent_id", who) == who for event in events)
        if events:
            self.town.write(*events)

    @precondition(lambda machine: bool(machine.town.sessions))
    @rule(which=st.integers(0, 50))
    def archive(self, which: int) -> None:
        names = sorted(self.town.sessions)
        row = self.town.session(names[which % len(names)])
        if row is not None and row.active_turn is None and row.status == "active":
            self.town.write(s.SessionArchived(session_id=row.id))

    @rule(sure=st.sampled_from([False] * 9 + [True]))
    def delete(self, sure: bool) -> None:
        """`bob` may go for good, with all that waits for him."""
        if sure:
            waiting = tuple(one for one in self.town.items("bob") if isinstance(one.phase, Queued))
            names = tuple(self.town.name("dec") for _ in waiting)
            try:
                self._command_of("bob", *agents.delete(self.town.agent("bob"), waiting, names))
            except Rejected:
                assert not isinstance(self.town.agent("bob").attention, Idle)

    @invariant()
    def history_is_sound(self) -> None:
        """0, 1, 2, 3 and 5, over all that is recorded so far, at every transaction."""
        for placed in self.town.history[self.checked :]:
            assert self.check.feed(placed) == []
        self.checked = len(self.town.history)
        assert self.check.finish() == []

    @invariant()
    def rows_agree(self) -> None:
        """Agent, items, turn and session tell one story."""
        for who in AGENTS if self.town.history else ():
            check_agent(self.town, who)

    @invariant()
    def sessions_are_ones_own(self) -> None:
        """No turn is in another agent's session, and its number is its place there."""
        for steps in self.town.sessions.values():
            begun = [one for one in steps if isinstance(one, s.TurnStarted)]
            assert len({one.agent_id for one in begun}) <= 1
            assert [one.index for one in begun] == list(range(len(begun)))

    def teardown(self) -> None:
        """With one worker that lives, all is worked off; and the rows are what the log says."""
        self.strangers += self.hands.values()
        self.hands = {}
        for who in AGENTS if self.town.history else ():
            self._work_off(who)
        self.history_is_sound()
        again: dict[tuple[str, str], Any] = {}
        fold(again, [one.recorded for one in self.town.history])
        assert again == self.town.rows

    def _work_off(self, who: str) -> None:
        if self.town.agent(who).lifecycle != "deleted":
            self._command_of(who, *agents.start(self.town.agent(who)))
        for _ in range(ENOUGH):
            if who not in self.hands:
                self.town.pass_time(1000)
                self.take_off(who)
            if who not in self.hands:
                break
            self.step(who, [], "so", dies=False)
        self.hands.pop(who, None)
        assert isinstance(self.town.agent(who).attention, Idle)
        assert known_only(self.town.view(who).queue) == ()
        check_agent(self.town, who)


TestLife = Life.TestCase
TestLife.settings = settings(
    max_examples=80,
    stateful_step_count=50,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
