"""A town whose agents attend as a worker does: between steps, and from one turn into the next.

What `Attentive` leaves out: the judge's word, all that waits dealt with at one yield point, and a
turn that begins in the append that ends or sets aside another.
"""

from __future__ import annotations

from tests.support.attentive import WHY, Attentive, Mind
from undivided.domain import attention, interruptions, interrupts
from undivided.domain.attention import Begin, Rest
from undivided.domain.endings import Ending, fates_of, stopped_outcome
from undivided.domain.events import flights as f
from undivided.domain.events import sessions as s
from undivided.domain.events.catalogue import Event
from undivided.domain.interrupts import OTHERWISE, Pair, Ruling, Verdict, Weighing
from undivided.domain.merging import composed
from undivided.domain.outcomes import Cancelled, Outcome
from undivided.domain.state.agent import AgentRow, Idle
from undivided.domain.state.item import ItemRow, Queued
from undivided.domain.turn import left_open, skipped_for
from undivided.store.tidying import takes_thought

AT_ONCE = 12
"""Candidates that one yield point deals with at most, as in the product."""


class Preempting(Attentive):
    """Workers that look up between steps, and go on from one turn to the next."""

    def land(self, mind: Mind, outcome: Outcome, leaving: bool = False) -> Mind | None:
        """End a turn about items, and begin the next one in the same append if that is simple."""
        hand, epoch = mind.hand, mind.hand.epoch
        view, agent = self.view(hand.agent_id), self.agent(hand.agent_id)
        self.record(hand)  # the fence comes before any decision
        by = None if isinstance(agent.attention, Idle) else agent.attention.stop_by
        outcome = outcome if by is None else stopped_outcome(by)
        names = tuple((self.name("dec"), self.name("ntf")) for _ in mind.item_ids)
        items = tuple(self.item(one) for one in mind.item_ids)
        fates = fates_of(agent, items, outcome, Ending(hand.turn.id, epoch, names))
        over = frozenset(one.item_id for one in fates if one.is_over)
        back = attention.after_preemptor(agent, view.deferred, over)
        ended = self._ended(hand, outcome, mind.item_ids)
        mine: tuple[Event, ...] = (*(event for one in fates for event in one.events), *back)
        steps: tuple[Event, ...] = (*left_open(hand.state, epoch), ended)
        told = tuple(one.notice for one in fates if one.notice is not None)
        retried = [(self.item(one.item_id), one.event) for one in fates if one.retry_now]
        due = attention.choose(agent, attention.ready_then(view, retried, back))
        if leaving or isinstance(due, Rest) or self._takes_a_look(agent, due):
            released = f.FlightReleased(agent_id=agent.id, epoch=epoch, reason="done")
            self.record(hand, *mine, released, *steps, *told)
            return None
        events, turn_id = self._opening(agent, due, epoch, ended)
        self.record(hand, *mine, *steps, *told, *events)
        return self._mind(agent.id, epoch, turn_id)

    def look(self, mind: Mind, says: Verdict | None, leaving: bool = False) -> Mind | None:
        """Deal with all that waits; the judge, if there is one, `says` the same of everything."""
        for _ in range(AT_ONCE):
            pairs = self._pairs(mind)
            weighing = interrupts.weigh(pairs)
            if weighing is None:
                return mind
            if passed := interrupts.left_waiting(pairs, says is not None):
                self._pass_over(mind, *passed)
                return mind
            weighing = _judged(pairs, weighing, says)
            verdict = weighing.ruling.verdict
            if self._is_left(mind, weighing):
                left = Ruling("continue", weighing.ruling.rule)
                self._pass_over(mind, Weighing(weighing.candidate, left, weighing.others))
            elif verdict == "preempt":
                return self.set_aside(mind, weighing, leaving)
            elif verdict == "merge":
                self._take_in(mind, weighing)
            elif verdict == "defer":
                self._put_off(mind, weighing)
            else:
                self._pass_over(mind, weighing)
                stops = verdict == "cancel"
                return self.land(mind, Cancelled("judge"), leaving) if stops else mind
        return mind

    def skips_rest(self, mind: Mind) -> Weighing | None:
        """Whether the calls of a batch that have not begun give way, and to what."""
        pairs = self._pairs(mind)
        if self.agent(mind.hand.agent_id).lifecycle != "started":
            return None
        if not interrupts.skips_rest(pairs, mind.hand.turn.scenario):
            return None
        return interrupts.weigh(pairs)

    def set_aside(self, mind: Mind, weighing: Weighing, leaving: bool) -> Mind | None:
        """Set the turn aside, and begin the other one in the same append if that is simple."""
        hand, agent = mind.hand, self.agent(mind.hand.agent_id)
        items = tuple(self.item(one) for one in mind.item_ids)
        names = tuple(self.name("dec") for _ in items)
        at, candidate = self._at(mind), weighing.candidate
        mine: tuple[Event, ...] = (
            interruptions.weighed(agent, at, candidate, weighing, self.name("dec")),
            *interruptions.set_aside(agent, at, (items, names), weighing),
        )
        preempted = s.TurnPreempted(turn_id=hand.turn.id, by=candidate.id, epoch=hand.epoch)
        steps: tuple[Event, ...] = (*skipped_for(hand.state, hand.epoch, WHY), preempted)
        begin = Begin(candidate, weighing.others, "preemptor_first")
        if leaving or begin.comes_back:
            released = f.FlightReleased(agent_id=agent.id, epoch=hand.epoch, reason="done")
            self.record(hand, *mine, released, *steps)
            return None
        events, turn_id = self._opening(agent, begin, hand.epoch, preempted)
        self.record(hand, *mine, *steps, *events)
        return self._mind(agent.id, hand.epoch, turn_id)

    def _takes_a_look(self, agent: AgentRow, due: Begin) -> bool:
        return due.comes_back or takes_thought(agent, due, self.now)

    def _is_left(self, mind: Mind, weighing: Weighing) -> bool:
        """Whether the turn does not do what was ruled: nobody is cut off, nothing else begun."""
        paused = self.agent(mind.hand.agent_id).lifecycle != "started"
        if paused and weighing.ruling.verdict == "preempt":
            return True
        return not interrupts.honoured(mind.hand.turn.scenario, False, weighing.ruling)

    def _pairs(self, mind: Mind) -> tuple[Pair, ...]:
        hand, agent = mind.hand, self.agent(mind.hand.agent_id)
        focus = (self.item(mind.item_ids[0]), hand.turn.session_id)
        seen = sorted(self.items(agent.id), key=lambda item: (item.priority, item.seq))
        found = [one for one in seen if self._is_in_sight(one) and _is_news(one, hand.turn.id)]
        known = attention.known_only(tuple(found[:AT_ONCE]))
        return tuple(
            Pair.of(focus, (item, attention.session_for(agent, item)), agent.policy)
            for item in known
        )

    def _is_in_sight(self, item: ItemRow) -> bool:
        held = isinstance(item.phase, Queued) and item.phase.coalescing
        return held or self._eligible(item)

    def _at(self, mind: Mind) -> interruptions.At:
        return interruptions.At(mind.hand.turn.id, mind.hand.turn.session_id, mind.hand.epoch)

    def _pass_over(self, mind: Mind, *weighings: Weighing) -> None:
        agent, at = self.agent(mind.hand.agent_id), self._at(mind)
        self.record(mind.hand, *(
            interruptions.weighed(agent, at, one.candidate, one, self.name("dec"))
            for one in weighings
        ))  # fmt: skip

    def _put_off(self, mind: Mind, weighing: Weighing) -> None:
        agent, at, name = self.agent(mind.hand.agent_id), self._at(mind), self.name("dec")
        event = interruptions.put_off(agent, at, weighing.candidate, weighing, name)
        self.record(mind.hand, event)

    def _take_in(self, mind: Mind, weighing: Weighing) -> None:
        hand, agent = mind.hand, self.agent(mind.hand.agent_id)
        focus, candidate = self.item(mind.item_ids[0]), weighing.candidate
        into = (focus, self.name("dec"))
        merged = interruptions.merged(agent, self._at(mind), candidate, weighing, into)
        content = composed(candidate, self.joined(candidate)).content
        told = s.TurnUpdated(
            turn_id=hand.turn.id, item_id=candidate.id, epoch=hand.epoch,
            content=interrupts.live_update(candidate, content),
        )  # fmt: skip
        self.record(hand, merged, told)


def _judged(pairs: tuple[Pair, ...], weighing: Weighing, says: Verdict | None) -> Weighing:
    """What the judge's word comes to, where the rules say nothing."""
    if weighing.ruling != OTHERWISE or says is None:
        return weighing
    pair = next(one for one in pairs if one.new == weighing.candidate)
    return Weighing(weighing.candidate, interrupts.judged(pair, says), weighing.others)


def _is_news(item: ItemRow, turn_id: str) -> bool:
    seen = item.weighed
    return seen is None or (seen.turn_id, seen.merged) != (turn_id, item.merged)
