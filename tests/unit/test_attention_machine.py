"""An agent that attends, in any order of events: what must be true always is.

All kinds of things arrive; the agent looks up, is preempted and comes back, merges, puts off,
drops, deliberates; its workers die; people stop it; time passes, also by days.
"""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.support.attentive import Attentive, Mind
from tests.support.town import finished, responded, started
from undivided.domain import agents, mailbox, mailbox_tools, turn
from undivided.domain.errors import Full, StaleFlight
from undivided.domain.events import items as i
from undivided.domain.invariants import HistoryCheck
from undivided.domain.mailbox_tools import DeferItem, DropItem, Owned, PrioritizeItem
from undivided.domain.outcomes import Completed, Failed, Outcome, TimedOut
from undivided.domain.plans import Plan
from undivided.domain.policy import DEFAULT_POLICY
from undivided.domain.state.agent import Idle
from undivided.domain.state.item import Deferred, Dropped, Merged, Processing, Queued
from undivided.projections.table import fold

WHO = "ada"
POLICY = {
    "maxDeliveryAttempts": 3, "retryBackoffS": [1], "itemMaxRetries": 1, "timeoutMaxRetries": 1,
    "mailboxCapacity": 8, "coalesceWindowMs": 200,
}  # fmt: skip
KINDS = st.sampled_from((
    "human_chat", "mention", "a2a_message", "task_comment", "requirement_update",
    "task_status_update", "system_event", "heartbeat", "callback_result", "review_request",
))  # fmt: skip
ENDS: tuple[Outcome, ...] = (
    Completed("so"), TimedOut(60), Failed("rate_limited", "later", retryable=True),
    Failed("refused", "no", retryable=False),
)  # fmt: skip
ENOUGH = 400


class Working(RuleBasedStateMachine):
    """One agent, what reaches it, and its workers."""

    def __init__(self) -> None:
        super().__init__()
        self.town = Attentive()
        self.mind: Mind | None = None
        self.strangers: list[Mind] = []

    @initialize()
    def create(self) -> None:
        command = agents.CreateAgent(agent_id=WHO, name=WHO, policy=POLICY)
        self.town.write(*agents.create(DEFAULT_POLICY, command))

    @rule(kind=KINDS, priority=st.none() | st.integers(0, 4), about=st.sampled_from("xyz"),
          role=st.sampled_from(["user", "agent", "system"]),
          starts=st.sampled_from([False] * 5 + [True]))  # fmt: skip
    def arrive(self, kind: str, priority: int | None, about: str, role: Any, starts: bool) -> None:
        """Something new, about one of a few things, from one of a few people."""
        extra: dict[str, Any] = {"channelKey": f"group:{about}"} if kind == "a2a_message" else {}
        extra |= {"triggerExecution": True} if starts else {}
        name = self.town.name("mbx")
        command = mailbox.Accept(
            item_id=name, source_type=kind, priority=priority,
            payload=i.Payload(f"<{name}>", task_id=about, requirement_id=about, extra=extra),
            sender=i.Sender(f"{role}-{about}", None, role),
        )  # fmt: skip
        try:
            events = mailbox.accept(self.town.agent(WHO), (command,), self.town.joinable(WHO))
        except Full:
            return
        self.town.write(*events)

    @rule(seconds=st.sampled_from([0.1, 1, 60, 60, 600, 20_000, 300_000]))
    def time_passes(self, seconds: float) -> None:
        self.town.pass_time(seconds)

    @rule()
    def attend(self) -> None:
        """A worker takes the agent, also from one that only seems alive."""
        if self.mind is not None:
            self.strangers.append(self.mind)
        self.mind = self.town.attend(WHO)

    @precondition(lambda machine: machine.mind is not None)
    @rule()
    def die(self) -> None:
        self.mind = None

    @precondition(lambda machine: machine.mind is not None)
    @rule(times=st.integers(1, 3))
    def look_up(self, times: int) -> None:
        """At a yield point."""
        for _ in range(times):
            if self.mind is not None:
                self.mind = self.town.look_up(self.mind)

    @precondition(lambda machine: machine.mind is not None)
    @rule(effect=st.sampled_from(["pure", "once"]))
    def step(self, effect: str) -> None:
        """One response with a call, or the call."""
        assert self.mind is not None
        hand = self.mind.hand
        match turn.next_step(hand.state, 0):
            case turn.AskModel():
                self.town.record(hand, responded(hand, "", effect))
            case turn.RunTool(call=call, again=again):
                if not again:
                    self.town.record(hand, started(hand, call.id, call.tool))
                self.town.record(hand, finished(hand, call.id, "returned"))
            case turn.AnswerUnknown(call=call):
                self.town.record(hand, finished(hand, call.id, "interrupted"))
            case _:
                raise AssertionError("nothing waits here, and nothing is over")

    @precondition(lambda machine: machine.mind is not None)
    @rule(outcome=st.sampled_from(ENDS), data=st.data())
    def end(self, outcome: Outcome, data: st.DataObject) -> None:
        """However it ends; a deliberation with any plan at all."""
        assert self.mind is not None
        mind, self.mind = self.mind, None
        self.town.finish(mind, outcome, self._plan(mind, data) if mind.considered else None)

    def _plan(self, mind: Mind, data: st.DataObject) -> Plan | None:
        ids = st.lists(st.sampled_from([*mind.considered, "mbx_unknown"]), max_size=3).map(tuple)
        process = data.draw(ids)
        if not process:
            return None
        lists = [data.draw(ids) for _ in range(3)]
        return Plan(process=process, defer=lists[0], drop=lists[1], inline=lists[2])

    @precondition(lambda machine: machine.mind is not None and machine.town.items(WHO))
    @rule(which=st.integers(0, 50), deed=st.sampled_from(["defer", "drop", "first", "last"]),
          wait_s=st.none() | st.sampled_from([0.0, 100.0]))  # fmt: skip
    def manage(self, which: int, deed: str, wait_s: float | None) -> None:
        """The agent's own tools for its mailbox, about any item there ever was."""
        assert self.mind is not None
        items = self.town.items(WHO)
        item = items[which % len(items)]
        owned = Owned(self.town.agent(WHO), self.mind.hand.epoch, self.town.name("dec"))
        match deed:
            case "defer":
                told = mailbox_tools.deferred(owned, item, DeferItem(item.id, "later", wait_s))
            case "drop":
                told = mailbox_tools.dropped(owned, item, DropItem(item.id, "stale"))
            case _:
                wanted = PrioritizeItem(item.id, 0 if deed == "first" else 4)
                told = mailbox_tools.prioritized(owned, item, wanted)
        if told.events:
            self.town.record(self.mind.hand, *told.events)

    @precondition(lambda machine: machine.strangers)
    @rule(which=st.integers(0, 50))
    def write_as_a_stranger(self, which: int) -> None:
        """Whoever lost the agent is refused."""
        stranger = self.strangers[which % len(self.strangers)]
        before = len(self.town.history)
        try:
            self.town.finish(stranger, Completed("late"))
        except StaleFlight as refused:
            assert len(self.town.history) == before
            self.town.fenced(stranger.hand, refused)
        else:
            raise AssertionError("a stranger wrote")


class Attending(Working):
    """What people do meanwhile, and what is true all along."""

    def __init__(self) -> None:
        super().__init__()
        self.check, self.checked = HistoryCheck(), 0

    @rule(command=st.sampled_from([agents.start] * 8 + [agents.stop, agents.pause]))
    def command(self, command: Any) -> None:
        if events := command(self.town.agent(WHO)):
            self.town.write(*events)

    @rule()
    def stop_the_turn(self) -> None:
        if events := agents.request_stop(self.town.agent(WHO), "eve"):
            self.town.write(*events)

    @invariant()
    def history_is_sound(self) -> None:
        """0 to 5, 8 and 11, over all that is recorded so far, at every transaction."""
        for placed in self.town.history[self.checked :]:
            assert self.check.feed(placed) == []
        self.checked = len(self.town.history)
        assert self.check.finish() == []

    @invariant()
    def every_item_is_counted_once(self) -> None:
        """The agent's counters are what its items say; what merged is in something else."""
        if not self.town.history:
            return
        agent, items = self.town.agent(WHO), self.town.items(WHO)
        counts = dict.fromkeys((Queued, Deferred, Merged, Dropped, Processing), 0)
        for item in items:
            counts[type(item.phase)] = counts.get(type(item.phase), 0) + 1
        assert (agent.waiting, agent.deferred) == (counts[Queued], counts[Deferred])
        assert (agent.merged, agent.dropped) == (counts[Merged], counts[Dropped])
        focus = () if isinstance(agent.attention, Idle) else agent.attention.item_ids
        at_work = {one.id for one in items if isinstance(one.phase, Processing)}
        assert at_work == set(focus)
        for item in items:
            if isinstance(item.phase, Merged):
                assert item.phase.into != item.id
                assert ("items", item.phase.into) in self.town.rows

    def teardown(self) -> None:
        """With a worker that lives, all is worked off; and the rows are what the log says."""
        if not self.town.history:
            return
        self.mind = None
        if events := agents.start(self.town.agent(WHO)):
            self.town.write(*events)
        for _ in range(ENOUGH):
            self.town.pass_time(1000)
            mind = self.town.attend(WHO)
            if mind is None:
                break
            self.town.finish(mind, Completed("so"))
        items = self.town.items(WHO)
        assert not [one for one in items if isinstance(one.phase, Queued | Deferred | Processing)]
        self.history_is_sound()
        again: dict[tuple[str, str], Any] = {}
        fold(again, [one.recorded for one in self.town.history])
        assert again == self.town.rows


TestAttending = Attending.TestCase
TestAttending.settings = settings(
    max_examples=200,
    stateful_step_count=50,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
