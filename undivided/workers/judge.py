"""Asking the interrupt judge: one model request, one word, no transaction open meanwhile."""

from __future__ import annotations

import logging

from undivided.domain.dialogue import ModelRequest, UserSaid
from undivided.domain.errors import ModelFailed
from undivided.domain.interrupts import Verdict, Weighing
from undivided.domain.judging import INSTRUCTIONS, JudgedPair, judge_prompt, verdict
from undivided.domain.policy import JUDGE_OFF
from undivided.domain.scenarios import JUDGE
from undivided.store.flights import Flight
from undivided.store.log import Log
from undivided.store.queries.weighing import around
from undivided.workers.model import Models
from undivided.workers.signals import Broken, Signals

logger = logging.getLogger("undivided.turn")
TEMPERATURE = 0.1
PATIENCE_S = 30.0
"""How long a judge may think; after that the rules' word stands."""


class Judge:
    """The judge of one process: a profile of its own, or the agent's model."""

    def __init__(self, log: Log, models: Models) -> None:
        self._log, self._models = log, models

    async def verdict(self, flight: Flight, signals: Signals, weighing: Weighing) -> Verdict | None:
        """The judge's word about a candidate; None if there is no judge or it says nothing."""
        profile = self._profile(flight)
        if profile == JUDGE_OFF:
            return None
        queue, decisions = await around(self._log.database, flight.agent.id)
        shown = JudgedPair(flight.item, weighing.candidate, queue, decisions)
        request = _request(flight, profile, judge_prompt(shown))
        try:
            reply = await signals.run(self._models.complete(request, _unheard), PATIENCE_S)
        except ModelFailed as failed:
            logger.warning("judge agent=%s gave no word: %s", flight.agent.id, failed)
            return None
        return None if isinstance(reply, Broken) else verdict(reply.text)

    def sits(self, flight: Flight) -> bool:
        """Whether there is a judge for this agent's turns."""
        return self._profile(flight) != JUDGE_OFF

    def _profile(self, flight: Flight) -> str:
        wanted = flight.agent.policy.judge_model
        if wanted:
            return wanted
        return JUDGE if self._models.knows(JUDGE) else flight.agent.model


def _unheard(_text: str) -> None:
    """Nobody listens to a judge that is still writing."""


def _request(flight: Flight, profile: str, prompt: str) -> ModelRequest:
    turn = flight.turn
    return ModelRequest(
        agent_id=flight.agent.id, definition=flight.agent.definition, scenario=JUDGE,
        profile=profile, instructions=INSTRUCTIONS, history=(UserSaid(prompt),), tools=(),
        turn_id=turn.id, session_id=turn.session_id, turn_index=turn.index, step=0,
        newest_input=prompt, temperature=TEMPERATURE,
    )  # fmt: skip
