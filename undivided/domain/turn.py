"""A turn as a durable coroutine: its state is folded from its steps, and says what is next.

A recorded model response is never asked for again and a recorded tool result never computed
again: whoever drives the turn, in whatever process, folds the steps there are and goes on
from the last one.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from undivided.domain.dialogue import (
    AssistantSaid,
    Said,
    ToolAnswered,
    ToolCall,
    Usage,
    UserSaid,
)
from undivided.domain.events import sessions as s
from undivided.domain.events.catalogue import Event
from undivided.domain.plans import Plan
from undivided.domain.state.session import (
    TurnOver,
    TurnRow,
    TurnRunning,
    TurnSetAside,
    TurnWaiting,
)
from undivided.domain.tooling import Effect
from undivided.domain.waits import Wait

INTERRUPTED = (
    "interrupted: the process died while this call was running; whether it took effect is "
    "unknown. It was not run again."
)

CUT_OFF = (
    "interrupted: the turn ended while this call was running; whether it took effect is unknown"
)
SKIPPED = "skipped: the turn ended before this call was run"
PLANNED = "the plan is made"
PREEMPTED = "skipped: preempted by {why} before this call was run; call it again if it is needed"

NUDGED_REQUESTS = 24
"""How many model requests a turn has at most once it was nudged."""


class OpenCall(Struct, frozen=True):
    """A tool call without a result yet; `started` once it may have taken effect."""

    call: ToolCall
    started: bool = False
    effect: Effect = "once"
    waiting: bool = False


class TurnState(Struct, frozen=True):
    """One turn, as its recorded steps leave it."""

    begun: s.TurnStarted
    said: tuple[Said, ...]
    open: tuple[OpenCall, ...] = ()
    responses: int = 0
    tool_calls: int = 0
    usage: Usage = Usage()
    nudges: tuple[s.NudgeReason, ...] = ()
    nudged_at: int = 0
    """How many responses there were when it was nudged last."""
    replies: tuple[str, ...] = ()
    """What it said when it called nothing more: before each nudge, and in the end."""
    marked: bool = False
    """One of those replies bore the completion marker."""
    newest: str | None = None
    """The newest live update or nudge, if there was one."""
    plan: Plan | None = None
    """What a deliberation has decided."""

    @property
    def newest_input(self) -> str:
        """The newest thing that the model was told."""
        return self.begun.input if self.newest is None else self.newest


def evolve(state: TurnState | None, event: Event) -> TurnState | None:
    """The turn after `event`; events of other turns change nothing."""
    if state is None:
        if isinstance(event, s.TurnStarted):
            return TurnState(event, (UserSaid(event.input),))
        return None
    if getattr(event, "turn_id", None) != state.begun.turn_id:
        return state
    match event:
        case s.ModelResponded():
            return _answered(state, event)
        case s.ToolCallStarted():
            return replace(state, open=_marked(state.open, event))
        case s.ToolCallFinished():
            return replace(
                state,
                said=(*state.said, ToolAnswered(event.call_id, event.tool, event.content)),
                open=tuple(o for o in state.open if o.call.id != event.call_id),
                tool_calls=state.tool_calls + 1,
            )
        case s.TurnUpdated():
            return replace(state, said=(*state.said, UserSaid(event.content)), newest=event.content)
        case s.TurnNudged():
            return replace(
                state, said=(*state.said, UserSaid(event.content)), newest=event.content,
                nudges=(*state.nudges, event.reason), nudged_at=state.responses,
            )  # fmt: skip
        case s.DeliberationPlanned(plan=plan):
            return replace(state, plan=plan)
        case s.TurnSuspended():
            return replace(
                state,
                open=tuple(
                    replace(o, waiting=True) if o.call.id == event.call_id else o
                    for o in state.open
                ),
            )
        case _:
            return state


def _answered(state: TurnState, event: s.ModelResponded) -> TurnState:
    last = not event.calls
    return replace(
        state,
        said=(*state.said, AssistantSaid(event.text, event.calls)),
        open=tuple(OpenCall(call) for call in event.calls),
        responses=state.responses + 1,
        usage=state.usage.plus(event.usage),
        replies=(*state.replies, event.text) if last else state.replies,
        marked=state.marked or (last and event.marked),
    )


def _marked(calls: tuple[OpenCall, ...], event: s.ToolCallStarted) -> tuple[OpenCall, ...]:
    return tuple(
        replace(o, started=True, effect=event.effect) if o.call.id == event.call_id else o
        for o in calls
    )


class AskModel(Struct, frozen=True):
    """Request the next response; `step` counts them from 0."""

    step: int


class RunTool(Struct, frozen=True):
    """Run a call; `again` if it was started before and its effect allows a second run."""

    call: ToolCall
    again: bool


class AnswerUnknown(Struct, frozen=True):
    """Answer a `once` call that a crash interrupted; it must not run again."""

    call: ToolCall


class EndWait(Struct, frozen=True):
    """The call waits; what ends the wait must answer it before the turn goes on."""

    call: ToolCall


class Finish(Struct, frozen=True):
    """The model has said its last word."""

    text: str


class Exhausted(Struct, frozen=True):
    """The turn has used all the model requests that its policy allows."""

    requests: int


NextStep = AskModel | RunTool | AnswerUnknown | EndWait | Finish | Exhausted


def next_step(state: TurnState, max_requests: int) -> NextStep:
    """What the turn needs now; `max_requests` 0 means no limit.

    What a nudge asks for has a limit of its own.
    """
    if state.open:
        return _next_call(state.open[0])
    if state.plan is not None:
        return Finish(state.plan.reasoning.strip() or PLANNED)
    last = state.said[-1]
    if isinstance(last, AssistantSaid) and not last.calls:
        return Finish(last.content)
    limit, used = max_requests, state.responses
    if state.nudges:
        limit = min(max_requests or NUDGED_REQUESTS, NUDGED_REQUESTS)
        used -= state.nudged_at
    if limit and used >= limit:
        return Exhausted(state.responses)
    return AskModel(state.responses)


def in_batch(state: TurnState) -> bool:
    """Whether some calls of the newest response have their results already, and others not."""
    asked = next((one for one in reversed(state.said) if isinstance(one, AssistantSaid)), None)
    return asked is not None and 0 < len(state.open) < len(asked.calls)


def _next_call(first: OpenCall) -> RunTool | AnswerUnknown | EndWait:
    if first.waiting:
        return EndWait(first.call)
    if not first.started:
        return RunTool(first.call, again=False)
    if first.effect == "once":
        return AnswerUnknown(first.call)
    return RunTool(first.call, again=True)


def left_open(state: TurnState, epoch: int) -> tuple[s.ToolCallFinished, ...]:
    """Results for the calls that the end of the turn leaves without one."""
    return tuple(
        s.ToolCallFinished(
            turn_id=state.begun.turn_id,
            call_id=one.call.id,
            tool=one.call.tool,
            resolution="interrupted" if one.started else "skipped",
            content=CUT_OFF if one.started else SKIPPED,
            epoch=epoch,
        )
        for one in state.open
    )


def waited_for(turn: TurnRow) -> Wait | None:
    """What the turn waits for, if it does; set aside or not."""
    match turn.phase:
        case TurnWaiting(wait=wait) | TurnSetAside(waiting=TurnWaiting(wait=wait)):
            return wait
        case TurnSetAside() | TurnRunning() | TurnOver():
            return None


def skipped_for(state: TurnState, epoch: int, why: str) -> tuple[s.ToolCallFinished, ...]:
    """Results for the calls of a batch that are not run because the turn is set aside."""
    return tuple(
        s.ToolCallFinished(
            turn_id=state.begun.turn_id, call_id=one.call.id, tool=one.call.tool,
            resolution="skipped", content=PREEMPTED.format(why=why), epoch=epoch,
        )
        for one in state.open
        if not one.waiting
    )  # fmt: skip


def idempotency_key(turn_id: str, call_id: str) -> str:
    """The key a tool gets for one call: the same in every run of it."""
    return f"{turn_id}:{call_id}"
