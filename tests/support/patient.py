"""A town whose agents wait, for a time or for a person, and give way meanwhile."""

from __future__ import annotations

from msgspec.structs import replace

from tests.support.attentive import Mind
from tests.support.preempting import Preempting
from undivided.domain import approvals, attention, interruptions, interrupts
from undivided.domain.approvals import Answer, AskPerson, Named, Waiting
from undivided.domain.attention import Begin, Carry, Taken, Wake
from undivided.domain.events import flights as f
from undivided.domain.events import sessions as s
from undivided.domain.events.catalogue import Event
from undivided.domain.interrupts import OTHERWISE, Pair, Weighing
from undivided.domain.notifications import From
from undivided.domain.state.agent import AgentRow, Suspended
from undivided.domain.state.item import Queued
from undivided.domain.state.people import ApprovalRow
from undivided.domain.turn import waited_for
from undivided.domain.waits import Approval
from undivided.domain.waking import patience_over, resolution_of, told_after_wait


class Patient(Preempting):
    """Workers whose turns ask people and wait, and give way to what comes meanwhile."""

    def attend(self, agent_id: str) -> Mind | None:
        """Begin what is due; a turn that waits for a person may have to give way first."""
        mind = super().attend(agent_id)
        while mind is None and self._gives_way(agent_id):
            mind = super().attend(agent_id)
        return mind

    def ask(self, mind: Mind, seconds: float, expires: bool) -> str:
        """The turn asks a person inside its first open call, and the worker lets go."""
        hand, agent = mind.hand, self.agent(mind.hand.agent_id)
        call = hand.state.open[0].call
        wanted = AskPerson(title="?", description="", expires_s=seconds if expires else None)
        named = Named(self.name("apr"), self.name("ntf"), call.id)
        speaker = From(agent, hand.turn.id, hand.turn.session_id)
        asked = approvals.requested(wanted, speaker, self.item(mind.item_ids[0]), named)
        wait = approvals.wait_for(wanted, named.approval_id, seconds)
        turn_id, epoch = hand.turn.id, hand.epoch
        self.record(
            hand, *asked,
            f.FocusSuspended(
                agent_id=agent.id, turn_id=turn_id, epoch=epoch, wait=wait, wait_s=seconds
            ),
            f.FlightReleased(agent_id=agent.id, epoch=epoch, reason="suspended"),
            s.TurnSuspended(
                turn_id=turn_id, call_id=call.id, wait=wait, wait_s=seconds, epoch=epoch
            ),
        )  # fmt: skip
        return named.approval_id

    def answer(self, approval_id: str, given: Answer) -> bool:
        """A person answers; whether in time."""
        row: ApprovalRow = self.rows["approvals", approval_id]
        turn, item = self.rows["turns", row.turn_id], self.item(row.item_id)
        waiting = approvals.waiting_for(row, self.agent(row.agent_id), turn, item)
        late = approvals.late(row, waiting, self.now)
        if late is not None:
            if late.event is not None:
                self.write(late.event)
            return False
        assert isinstance(waiting, Waiting)
        option = approvals.chosen(row, given)
        content = approvals.told_answer(given, option)
        self.write(
            *approvals.carried_on(row, waiting, content), approvals.answered(row, given, option)
        )
        return True

    def _gives_way(self, agent_id: str) -> bool:
        """Whether a turn that waits for a person was set aside, or something was weighed."""
        view, agent = self.view(agent_id), self.agent(agent_id)
        focus = agent.attention
        if not isinstance(focus, Suspended) or not isinstance(focus.wait, Approval):
            return False
        about = (view.focus[0], focus.session_id)
        pairs = tuple(
            Pair.of(about, (item, attention.session_for(agent, item)), agent.policy)
            for item in attention.unweighed(view, focus.turn_id)
        )
        if agent.lifecycle != "started" or not pairs:
            return False
        acquired = self._acquired(agent_id, view)
        at = interruptions.At(focus.turn_id, focus.session_id, acquired.epoch)
        weighing = interrupts.while_waiting(pairs)
        passed = [Weighing(pair.new, OTHERWISE, ()) for pair in pairs]
        decided: list[Event] = [
            interruptions.weighed(agent, at, one.candidate, one, self.name("dec"))
            for one in (passed if weighing is None else [weighing])
        ]
        let_go = f.FlightReleased(agent_id=agent_id, epoch=acquired.epoch, reason="suspended")
        if weighing is None:
            self.write(acquired, *decided, let_go)
            return True
        names = tuple(self.name("dec") for _ in view.focus)
        wait_s = max(0.0, (focus.until - view.now).total_seconds())
        aside = interruptions.set_aside(agent, at, (view.focus, names), weighing, wait_s)
        preempted = s.TurnPreempted(turn_id=at.turn_id, by=weighing.candidate.id, epoch=at.epoch)
        self.write(acquired, *decided, *aside, let_go, preempted)
        return True

    def _resuming(self, agent_id: str, due: Carry | Wake, epoch: int) -> tuple[Event, ...]:
        regained = f.FocusRegained(
            agent_id=agent_id, turn_id=due.turn_id, epoch=epoch, cause=due.cause
        )
        ended = self._end_of_wait(due, epoch) if isinstance(due, Wake) else ()
        left_s = self._left_s(due) if isinstance(due, Wake) else None
        resumed = s.TurnResumed(turn_id=due.turn_id, cause=due.cause, epoch=epoch, left_s=left_s)
        return (regained, *ended, resumed)

    def _end_of_wait(self, wake: Wake, epoch: int) -> tuple[Event, ...]:
        wait = waited_for(self.rows["turns", wake.turn_id])
        return tuple(
            s.ToolCallFinished(
                turn_id=wake.turn_id, call_id=one.call.id, tool=one.call.tool, epoch=epoch,
                resolution=resolution_of(wake), content=told_after_wait(wake, wait),
            )
            for one in self.folded(wake.turn_id).open
            if one.waiting
        )  # fmt: skip

    def _left_s(self, wake: Wake) -> float | None:
        over = patience_over(wake, waited_for(self.rows["turns", wake.turn_id]))
        return 0.0 if over else None

    def _come_back(self, agent: AgentRow, begin: Begin, acquired: f.FlightAcquired) -> Mind:
        phase, epoch = begin.item.phase, acquired.epoch
        assert isinstance(phase, Queued)
        assert phase.turn_id is not None
        assert phase.session_id is not None
        items = tuple(self.item(one) for one in self.rows["turns", phase.turn_id].item_ids)
        back = attention.with_siblings(agent, items)
        begin = Begin(items[0], begin.over, begin.rule, items[1:])
        taken = Taken(phase.turn_id, tuple(self.name("dec") for _ in items), epoch)
        picks = attention.resumed(agent, begin, phase.session_id, taken)
        stop = attention.asked_to_stop(agent, phase.turn_id, items)
        wake = Wake(phase.turn_id, phase.session_id, "waited")
        if phase.answer is not None:
            wake = replace(wake, cause="answered", answer=phase.answer)
        elif phase.stop_by is not None:
            wake = replace(wake, cause="stopped")
        resumed = s.TurnResumed(
            turn_id=phase.turn_id, cause="preempted", epoch=epoch, left_s=self._left_s(wake)
        )
        ended = self._end_of_wait(wake, epoch)
        self.write(*back, acquired, *picks, *stop, *ended, resumed)
        return self._mind(agent.id, epoch, phase.turn_id)
