"""A town whose agents attend: they look up, are preempted and come back, put off, drop, deliberate.

As `Town`, it makes the transactions of the store out of the product's own decisions.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from tests.support.town import Hand, Town
from undivided.domain import attention, consolidation, interruptions, triage
from undivided.domain.attention import Begin, Carry, Rest, Taken, Wake
from undivided.domain.deliberation import Triaging, abort, apply
from undivided.domain.endings import Ending, fates_of, stopped_outcome
from undivided.domain.events import flights as f
from undivided.domain.events import sessions as s
from undivided.domain.events import triage as t
from undivided.domain.events.catalogue import Event
from undivided.domain.interrupts import Pair, Weighing, live_update, weigh
from undivided.domain.outcomes import Completed, Outcome
from undivided.domain.planning import Considered
from undivided.domain.plans import Plan
from undivided.domain.state.agent import AgentRow, Focused, Idle
from undivided.domain.state.item import Deferred, ItemRow, Queued
from undivided.domain.state.view import AgentView
from undivided.domain.turn import left_open, skipped_for

WHY = "something else"


class Mind(Struct):
    """A worker's hold on an agent: a hand, and all items of its turn; none while it deliberates."""

    hand: Hand
    item_ids: tuple[str, ...]
    considered: tuple[str, ...] = ()


class Beginning(Town):
    """How attentive workers begin: in order, or after having considered all that waits."""

    def view(self, agent_id: str) -> AgentView:
        """What a decision reads, also of what is put off."""
        items = sorted(self.items(agent_id), key=lambda item: (item.priority, item.seq))
        deferred = tuple(
            one
            for one in items
            if isinstance(one.phase, Deferred)
            and (one.phase.until is None or one.phase.until <= self.now)
        )
        return replace(super().view(agent_id), deferred=deferred)

    def attend(self, agent_id: str) -> Mind | None:
        """Put the queue in order, then begin what is due."""
        while self._tidied(agent_id):
            pass
        view, agent = self.view(agent_id), self.agent(agent_id)
        acquired = self._acquired(agent_id, view)
        match attention.what_is_due(view, agent):
            case Rest():
                return None
            case Begin() as begin if begin.comes_back:
                return self._come_back(agent, begin, acquired)
            case Begin() as begin if self._considers(agent, begin):
                return self._deliberate(agent, begin, acquired)
            case Begin() as begin:
                return self._open(agent, begin, acquired.epoch, acquired)
            case (Carry() | Wake()) as due:
                self.write(acquired, *self._resuming(agent_id, due, acquired.epoch))
                return self._mind(agent_id, acquired.epoch, due.turn_id)

    def item(self, item_id: str) -> ItemRow:
        """One item's row."""
        row: ItemRow = self.rows["items", item_id]
        return row

    def _acquired(self, agent_id: str, view: AgentView) -> f.FlightAcquired:
        epoch = view.flight.epoch + 1 if view.flight else 1
        held = view.flight is not None and view.flight.held
        return f.FlightAcquired(
            agent_id=agent_id, epoch=epoch, worker="w", taken_from=epoch - 1 if held else None
        )

    def _tidied(self, agent_id: str) -> bool:
        view, agent = self.view(agent_id), self.agent(agent_id)
        if agent.lifecycle != "started" or not isinstance(agent.attention, Idle):
            return False
        queue = attention.ready(view.queue, view.now)
        given_up = [
            consolidation.expired(agent, item, view.now, (self.name("dec"), self.name("ntf")))
            for item in queue
        ]
        events: tuple[Event, ...] = attention.resurfacing(view, agent)
        events = events or tuple(
            event for one in given_up if one is not None for event in (one.expired, one.notice)
        )
        events = events or consolidation.purge(agent, queue, view.now)
        events = events or consolidation.consolidate(agent, queue, view.now)
        if events:
            self.write(*events)
        return bool(events)

    def _considers(self, agent: AgentRow, begin: Begin) -> bool:
        chosen = triage.tier(begin.item, begin.over, agent.policy, has_deliberation=True)
        vain = triage.in_vain(agent, (begin.item, *begin.over))
        return isinstance(chosen, triage.Deliberate) and not vain

    def _deliberate(self, agent: AgentRow, begin: Begin, acquired: f.FlightAcquired) -> Mind:
        turn_id, ids = self.name("trn"), (begin.item.id, *(one.id for one in begin.over))
        session_id = attention.deliberation_session(agent.id, turn_id)
        began = t.TriageBegan(
            agent_id=agent.id, turn_id=turn_id, session_id=session_id, head=ids[0],
            item_ids=ids, epoch=acquired.epoch,
        )  # fmt: skip
        started = s.TurnStarted(
            turn_id=turn_id, session_id=session_id, agent_id=agent.id, item_ids=(),
            scenario="deliberation", origin="deliberation", index=0, responses_before=0,
            input="choose", epoch=acquired.epoch, backstop_s=60,
        )  # fmt: skip
        opened = s.SessionOpened(session_id=session_id, agent_id=agent.id)
        self.write(acquired, began, opened, started)
        return self._mind(agent.id, acquired.epoch, turn_id)

    def _open(self, agent: AgentRow, begin: Begin, epoch: int, *before: Event) -> Mind:
        events, turn_id = self._opening(agent, begin, epoch)
        self.write(*before, *events)
        return self._mind(agent.id, epoch, turn_id)

    def _come_back(self, agent: AgentRow, begin: Begin, acquired: f.FlightAcquired) -> Mind:
        phase = begin.item.phase
        assert isinstance(phase, Queued)
        assert phase.turn_id is not None
        assert phase.session_id is not None
        items = tuple(self.item(one) for one in self.rows["turns", phase.turn_id].item_ids)
        back = attention.with_siblings(agent, items)
        begin = Begin(items[0], begin.over, begin.rule, items[1:])
        taken = Taken(phase.turn_id, tuple(self.name("dec") for _ in items), acquired.epoch)
        picks = attention.resumed(agent, begin, phase.session_id, taken)
        stop = attention.asked_to_stop(agent, phase.turn_id, items)
        resumed = s.TurnResumed(turn_id=phase.turn_id, cause="preempted", epoch=acquired.epoch)
        self.write(*back, acquired, *picks, *stop, resumed)
        return self._mind(agent.id, acquired.epoch, phase.turn_id)

    def _mind(self, agent_id: str, epoch: int, turn_id: str) -> Mind:
        turn, focus = self.rows["turns", turn_id], self.agent(agent_id).attention
        considered = focus.considered if isinstance(focus, Focused) else ()
        item_id = turn.item_ids[0] if turn.item_ids else ""
        hand = Hand(agent_id, epoch, turn, item_id, self.folded(turn_id))
        return Mind(hand, turn.item_ids, considered)


class Attentive(Beginning):
    """What attentive workers do from then on."""

    def look_up(self, mind: Mind) -> Mind | None:
        """Deal with the best of what waits; answers who holds the agent then."""
        hand = mind.hand
        view, agent = self.view(hand.agent_id), self.agent(hand.agent_id)
        if mind.considered:
            return mind
        focus = (self.item(mind.item_ids[0]), hand.turn.session_id)
        pairs = tuple(
            Pair.of(focus, (item, attention.session_for(agent, item)), agent.policy)
            for item in attention.unweighed(view, hand.turn.id)
        )
        weighing = weigh(pairs)
        if weighing is None:
            return mind
        at = interruptions.At(hand.turn.id, hand.turn.session_id, hand.epoch)
        match weighing.ruling.verdict:
            case "merge":
                self._merge(mind, at, weighing)
            case "preempt":
                return self._set_aside(mind, at, weighing)
            case "defer":
                name = self.name("dec")
                event = interruptions.put_off(agent, at, weighing.candidate, weighing, name)
                self.record(hand, event)
            case _:
                name = self.name("dec")
                event_ = interruptions.weighed(agent, at, weighing.candidate, weighing, name)
                self.record(hand, event_)
        return mind

    def finish(self, mind: Mind, outcome: Outcome, plan: Plan | None = None) -> None:
        """End the turn, and let go."""
        hand = mind.hand
        view, agent = self.view(hand.agent_id), self.agent(hand.agent_id)
        self.record(hand)
        by = None if isinstance(agent.attention, Idle) else agent.attention.stop_by
        outcome = outcome if by is None else stopped_outcome(by)
        if mind.considered:
            self._conclude(mind, outcome, plan)
            return
        names = tuple((self.name("dec"), self.name("ntf")) for _ in mind.item_ids)
        items = tuple(self.item(one) for one in mind.item_ids)
        fates = fates_of(agent, items, outcome, Ending(hand.turn.id, hand.epoch, names))
        over = frozenset(one.item_id for one in fates if one.is_over)
        self.record(
            hand,
            *(event for one in fates for event in one.events),
            *attention.after_preemptor(agent, view.deferred, over),
            f.FlightReleased(agent_id=agent.id, epoch=hand.epoch, reason="done"),
            *left_open(hand.state, hand.epoch),
            self._ended(hand, outcome, mind.item_ids),
            *(one.notice for one in fates if one.notice is not None),
        )

    def _conclude(self, mind: Mind, outcome: Outcome, plan: Plan | None) -> None:
        hand, agent = mind.hand, self.agent(mind.hand.agent_id)
        about = Considered(mind.considered, {one: self.item(one) for one in mind.considered})
        triaging = Triaging(hand.turn.id, agent, hand.turn.id, hand.epoch, about)
        person = triage.called_away(self.view(agent.id).queue, mind.considered)
        planned = plan if isinstance(outcome, Completed) else None
        applied = abort(triaging, planned, "a person") if person else apply(triaging, planned)
        over = frozenset((*applied.inline, *applied.dropped))
        self.record(
            hand,
            *attention.after_preemptor(agent, self.view(agent.id).deferred, over),
            *applied.events,
            f.FlightReleased(agent_id=agent.id, epoch=hand.epoch, reason="done"),
            *left_open(hand.state, hand.epoch),
            self._ended(hand, outcome, applied.inline),
        )

    def _merge(self, mind: Mind, at: interruptions.At, weighing: Weighing) -> None:
        hand, agent = mind.hand, self.agent(mind.hand.agent_id)
        focus, candidate = self.item(mind.item_ids[0]), weighing.candidate
        merged = interruptions.merged(agent, at, candidate, weighing, (focus, self.name("dec")))
        told = s.TurnUpdated(
            turn_id=hand.turn.id, item_id=candidate.id, epoch=hand.epoch,
            content=live_update(candidate, candidate.payload.content),
        )  # fmt: skip
        self.record(hand, merged, told)

    def _set_aside(self, mind: Mind, at: interruptions.At, weighing: Weighing) -> Mind | None:
        hand, agent = mind.hand, self.agent(mind.hand.agent_id)
        items = tuple(self.item(one) for one in mind.item_ids)
        names = tuple(self.name("dec") for _ in items)
        self.record(
            hand,
            interruptions.weighed(agent, at, weighing.candidate, weighing, self.name("dec")),
            *interruptions.set_aside(agent, at, (items, names), weighing),
            f.FlightReleased(agent_id=agent.id, epoch=hand.epoch, reason="done"),
            *skipped_for(hand.state, hand.epoch, WHY),
            s.TurnPreempted(turn_id=hand.turn.id, by=weighing.candidate.id, epoch=hand.epoch),
        )
        return None

    def _ended(self, hand: Hand, outcome: Outcome, item_ids: tuple[str, ...]) -> s.TurnEnded:
        return s.TurnEnded(
            turn_id=hand.turn.id, session_id=hand.turn.session_id, agent_id=hand.agent_id,
            item_ids=item_ids, outcome=outcome, usage=hand.state.usage,
            responses=hand.state.responses, tool_calls=hand.state.tool_calls, epoch=hand.epoch,
        )  # fmt: skip
