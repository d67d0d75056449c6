"""The steps of a turn: one model response, or one tool call brought to its result.

Before each there is a short transaction, after each another; never one open meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from undivided.domain import turn as t
from undivided.domain.attention import Leave
from undivided.domain.dialogue import ModelReply, ToolCall
from undivided.domain.errors import ModelFailed, Unavailable
from undivided.domain.events import sessions as s
from undivided.domain.marker import Withheld, is_marked, stripped
from undivided.domain.outcomes import Failed, Outcome, TimedOut
from undivided.domain.state.session import TurnRunning
from undivided.domain.tooling import Acts, Raised, Returned, Suspends
from undivided.store import acting, landing
from undivided.store.flights import Flight
from undivided.store.hints import Hints
from undivided.store.log import Log
from undivided.workers import deliberating, requesting
from undivided.workers.judge import Judge
from undivided.workers.looking import CalledAway, Looking, SetAside
from undivided.workers.model import Models
from undivided.workers.signals import Broken, Signals
from undivided.workers.tools.registry import Tools
from undivided.workers.tools.running import run_tool
from undivided.workers.tools.tool import Tool, ToolContext

FIRST_TURN = 2
"""The version of a turn's start in a session where nothing was said before."""

Landing = Outcome | Leave | Suspends | SetAside | CalledAway
"""Where a turn comes to rest in this flight."""


class Steps:
    """Takes single steps with the models, tools and log of one process."""

    def __init__(self, log: Log, models: Models, tools: Tools, hints: Hints) -> None:
        self._log, self._models, self._tools, self._hints = log, models, tools, hints
        self._looking = Looking(log, Judge(log, models))

    async def ask(self, flight: Flight, signals: Signals, step: int) -> s.ModelResponded | Landing:
        """Look up from the turn, then request the next response; it is not recorded yet."""
        halted = await self._looking.up(flight, signals, step)
        if halted is not None:
            return halted
        request = await requesting.request(self._log.database, flight, step, self.offered(flight))
        show, withheld = self._shows(flight, step), Withheld()
        try:
            reply = await signals.run(
                self._models.complete(request, lambda piece: show(withheld.feed(piece))),
                self._left_s(flight),
            )
        except ModelFailed as failed:
            return Failed(failed.kind, failed.detail, retryable=failed.kind != "refused")
        if isinstance(reply, Broken):
            return await self._broken(flight, reply)
        show(withheld.finish())
        return _responded(flight, reply, step)

    def _shows(self, flight: Flight, step: int) -> Callable[[str], None]:
        """Hints what of a response can be shown while it is written."""
        topic = f"deltas:{flight.turn.id}"

        def show(text: str) -> None:
            if text:
                told = msgspec.json.encode({"step": step, "text": _plain(text)})
                self._hints.publish(topic, told)

        return show

    def offered(self, flight: Flight) -> tuple[Tool, ...]:
        """The tools that the turn's requests offer."""
        tools = self._tools.for_context(flight.turn.scenario, flight.agent.tools)
        return deliberating.offered(flight, tools) if flight.deliberates else tools

    async def answer(
        self, flight: Flight, signals: Signals, step: t.RunTool | t.AnswerUnknown | t.EndWait
    ) -> Landing | None:
        """Bring one open call to its result."""
        match step:
            case t.RunTool():
                return await self._call(flight, signals, step)
            case t.AnswerUnknown(call=call):
                await self.record(flight, _answered(flight, call, "interrupted", t.INTERRUPTED))
            case t.EndWait(call=call):
                await self.record(flight, _answered(flight, call, "skipped", "not waited"))
        return None

    async def _call(self, flight: Flight, signals: Signals, run: t.RunTool) -> Landing | None:
        """Run one call to its recorded result; a landing if the turn cannot go on here."""
        call, turn = run.call, flight.turn
        if signals.cause is not None:
            return await self._broken(flight, Broken(signals.cause))
        if signals.leaving and not run.again:
            return Leave()
        if not run.again and t.in_batch(flight.state):
            interrupted = await self._looking.before_call(flight)
            if interrupted is not None:
                return interrupted
        tool = self._tools.resolve(call.tool, call.args, self.offered(flight))
        key = t.idempotency_key(turn.id, call.id)
        if not run.again:
            await self.record(flight, s.ToolCallStarted(
                turn_id=turn.id, call_id=call.id, tool=call.tool, args=call.args,
                effect=tool.effect, idempotency_key=key, epoch=flight.epoch,
            ))  # fmt: skip
        context = ToolContext(
            agent_id=flight.agent.id, session_id=turn.session_id, turn_id=turn.id,
            call_id=call.id, idempotency_key=key, now=self._log.database.clock.now(),
            meta=flight.meta,
        )  # fmt: skip
        timeout_s = min(flight.agent.policy.tool_timeout_s, self._left_s(flight))
        outcome = await signals.run(
            run_tool(tool, context, call.args, timeout_s), self._left_s(flight)
        )
        match outcome:
            case Broken():
                return await self._broken(flight, outcome)
            case Suspends():
                return outcome
            case Acts(act=act):
                suspended = await acting.act(self._log, flight, call, act)
                self._hints.publish("tail", flight.agent.id.encode())
                return suspended
            case Raised(message=message):
                await self.record(flight, _answered(flight, call, "raised", message))
            case Returned(content=content):
                await self.record(flight, _answered(flight, call, "returned", content))
        return None

    async def _broken(self, flight: Flight, broken: Broken) -> Landing:
        match broken.cause:
            case "lost":
                raise Unavailable("the flight was lost")
            case "leaving":
                return Leave()
            case "deadline":
                return TimedOut(flight.agent.policy.processing_timeout_s)
            case "stopped":
                return await self._looking.stopped(flight)

    async def record(self, flight: Flight, *steps: s.ModelResponded | s.ToolCallStarted
                      | s.ToolCallFinished | s.TurnNudged) -> None:  # fmt: skip
        """Record steps, and hint that something was."""
        await landing.record(self._log, flight, *steps)
        self._hints.publish("tail", flight.agent.id.encode())

    def _left_s(self, flight: Flight) -> float:
        phase = flight.turn.phase
        if not isinstance(phase, TurnRunning):
            return 0.0
        return (phase.deadline - self._log.database.clock.now()).total_seconds()


def _plain(text: str) -> str:
    """Text as a hint can carry it; a lone surrogate is shown as a question mark."""
    return text.encode("utf-8", "replace").decode()


def _responded(flight: Flight, reply: ModelReply, step: int) -> s.ModelResponded:
    return s.ModelResponded(
        turn_id=flight.turn.id,
        step=step,
        text=stripped(reply.text),
        calls=reply.calls,
        usage=reply.usage,
        model=reply.model,
        epoch=flight.epoch,
        marked=is_marked(reply.text),
    )


def _answered(
    flight: Flight, call: ToolCall, resolution: s.Resolution, content: str
) -> s.ToolCallFinished:
    return s.ToolCallFinished(
        turn_id=flight.turn.id,
        call_id=call.id,
        tool=call.tool,
        resolution=resolution,
        content=content,
        epoch=flight.epoch,
    )
