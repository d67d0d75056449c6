"""What a turn's last word amounts to: an end, or one more reason to go on.

A turn is asked to go on at most once for each reason. What it said before and after is one reply.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from undivided.domain.dialogue import AssistantSaid
from undivided.domain.events.sessions import NudgeReason, TurnNudged
from undivided.domain.marker import abnormal, asks_for_marker
from undivided.domain.outcomes import EMPTY_REPLY, MARKER_MISSING, Completed, Incomplete
from undivided.domain.scenarios import COMMENT_RESPONSE, REQUIREMENT_ACTION
from undivided.domain.stimuli import StimulusType
from undivided.domain.turn import TurnState

_MARKER_MISSES = (
    "Your last reply did not end with the completion marker that your instructions ask for. If "
    "something is left to do, do it now; then end with the marker."
)
_NO_COMMENT = (
    "You have not answered the comment: what you write here is not shown under it. Answer it with "
    "{tools}, or say [NO_REPLY_NEEDED] if it needs no answer."
)
_NO_ACTION = (
    "The requirement needs a decision, and you have not acted on it. Act now with one of your "
    "tools: {tools}."
)
_NO_ACTION_ENDS = ("_list", "_get", "_comment")


def _comments(tool: str) -> bool:
    return tool.endswith("_comment")


def _decides(tool: str) -> bool:
    return tool.startswith("requirement_") and not tool.endswith(_NO_ACTION_ENDS)


def _acts(tool: str) -> bool:
    return _decides(tool) or (tool.startswith("task_") and not tool.endswith(_NO_ACTION_ENDS))


class _Duty(Struct, frozen=True):
    """What a turn of some scenario is there to do with a tool, and how it is reminded.

    It has the `means` if such a tool is offered; a call of one that it is `done_by` does it, and
    saying `declined` does away with it.
    """

    reason: NudgeReason
    asks: str
    means: Callable[[str], bool]
    done_by: Callable[[str], bool]
    declined: str = ""


_DUTIES = {
    COMMENT_RESPONSE: _Duty("no_comment", _NO_COMMENT, _comments, _comments, "[no_reply_needed]"),
    REQUIREMENT_ACTION: _Duty("no_action", _NO_ACTION, _decides, _acts),
}


class Nudge(Struct, frozen=True):
    """The turn goes on: the model is asked once more, and told `content`."""

    reason: NudgeReason
    content: str

    def event(self, turn_id: str, epoch: int) -> TurnNudged:
        """What is recorded of it."""
        return TurnNudged(turn_id=turn_id, reason=self.reason, content=self.content, epoch=epoch)


def after_final(
    state: TurnState, kind: StimulusType, offered: tuple[str, ...]
) -> Completed | Incomplete | Nudge:
    """What follows a response that calls nothing, which `state` holds already.

    `kind` is the type of the item in focus, `offered` are the tools that the model could call.
    People who chat are never kept waiting for a second try. A turn that answered by a tool is not
    empty, so that nothing is done twice.
    """
    if _missing(state) == EMPTY_REPLY and not _has_acted(state):
        return Incomplete(EMPTY_REPLY)
    reminder = _reminder(state, offered)
    if reminder is not None:
        return reminder
    again = "marker_missing" not in state.nudges and not kind.protected
    if again and _missing(state) is not None and asks_for_marker(state.begun.scenario):
        return Nudge("marker_missing", _MARKER_MISSES)
    return as_it_stands(state)


def as_it_stands(state: TurnState) -> Completed | Incomplete:
    """How a turn ends that is not asked on any more: with what it has said by now."""
    reply = reply_of(state)
    if _missing(state) is None or (reply and not asks_for_marker(state.begun.scenario)):
        return Completed(reply)
    return Incomplete(MARKER_MISSING, reply)


def reply_of(state: TurnState) -> str:
    """What the turn has said in the end, and before it was asked to go on."""
    return "\n\n".join(text for text in state.replies if text.strip())


def _missing(state: TurnState) -> str | None:
    return abnormal(True, reply_of(state), state.marked)


def _reminder(state: TurnState, offered: tuple[str, ...]) -> Nudge | None:
    """The one reminder of a turn that has a tool to do its duty with and did not use it."""
    duty = _DUTIES.get(state.begun.scenario)
    if duty is None or duty.reason in state.nudges or _has_acted(state):
        return None
    means = [name for name in offered if duty.means(name)]
    if not means or (duty.declined and duty.declined in reply_of(state).lower()):
        return None
    return Nudge(duty.reason, duty.asks.format(tools=", ".join(means)))


def _has_acted(state: TurnState) -> bool:
    duty = _DUTIES.get(state.begun.scenario)
    return duty is not None and any(duty.done_by(name) for name in _called(state))


def _called(state: TurnState) -> tuple[str, ...]:
    return tuple(
        call.tool for said in state.said if isinstance(said, AssistantSaid) for call in said.calls
    )
