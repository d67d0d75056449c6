"""Rehearsal models: recorded responses, given again to the requests they were recorded for.

The response to a request is the one at its `response_index`, which counts the model responses
that its session already holds: a function of the request alone, the same after a crash.
The first request that differs from the recorded one is reported, not answered.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec
from msgspec import Struct

from undivided.domain.calls import named_calls
from undivided.domain.dialogue import ModelReply, ModelRequest, Usage
from undivided.domain.errors import Invalid, ModelFailed

_EXCERPT = 60
_SHAPE = '{"agents": {"<agent id>": [{"expect", "reply", "calls", "usage"}]}}'


class RecordedCall(Struct, frozen=True, forbid_unknown_fields=True):
    """A tool call of a recorded response."""

    tool: str
    args: dict[str, Any] = {}


class RecordedUsage(Struct, frozen=True, forbid_unknown_fields=True):
    """The tokens that a recorded response took."""

    input: int = 0
    output: int = 0
    cache: int = 0


class Recorded(Struct, frozen=True, forbid_unknown_fields=True):
    """One recorded response; `expect` is the newest input it answered, None where any will do."""

    reply: str = ""
    expect: str | None = None
    calls: tuple[RecordedCall, ...] = ()
    usage: RecordedUsage = RecordedUsage()


class Recording(Struct, frozen=True, forbid_unknown_fields=True):
    """Every recorded response of a conversation: for each agent id, in order."""

    agents: dict[str, tuple[Recorded, ...]]


class RecordingMistake(Invalid):
    """A recording is not of the shape that recordings have."""

    code = "recording_mistake"


def parse_recording(content: bytes, name: str) -> Recording:
    """The recording in a JSON document; `name` is its file or digest, for people.

    Raises:
        RecordingMistake: not JSON (with the line), or of another shape (with the path).
    """
    try:
        return msgspec.convert(json.loads(content, parse_constant=_no_constant), Recording)
    except json.JSONDecodeError as error:
        raise RecordingMistake(f"{name}, line {error.lineno}: not JSON: {error.msg}") from error
    except msgspec.ValidationError as error:
        raise RecordingMistake(f"{name}: {error}; a recording is {_SHAPE}") from error
    except (ValueError, RecursionError) as error:
        raise RecordingMistake(f"{name}: not JSON: {error}") from error


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON value")


def respond(recording: Recording, request: ModelRequest) -> ModelReply:
    """The recorded response to `request`.

    Raises:
        ModelFailed: refused; the recording has no such agent, no more responses, or was made
            of another request. The text says which, and where both part.
    """
    recorded = _recorded(recording, request)
    if recorded.expect is not None and recorded.expect != request.newest_input:
        raise ModelFailed("refused", _difference(recorded.expect, request))
    usage = recorded.usage
    return ModelReply(
        text=recorded.reply,
        calls=named_calls(request, ((call.tool, call.args) for call in recorded.calls)),
        usage=Usage(usage.input, usage.output, usage.cache, requests=1),
    )


def _recorded(recording: Recording, request: ModelRequest) -> Recorded:
    responses = recording.agents.get(request.agent_id)
    if responses is None:
        known = ", ".join(sorted(recording.agents)[:20]) or "none"
        raise ModelFailed(
            "refused", f"the recording has no agent {request.agent_id}; its agents are {known}"
        )
    index = request.response_index
    if index >= len(responses):
        raise ModelFailed(
            "refused",
            f"agent {request.agent_id} asks for response {index}, counted from 0, "
            f"but the recording has only {len(responses)} responses of it",
        )
    return responses[index]


def _difference(expected: str, request: ModelRequest) -> str:
    got = request.newest_input
    pairs = enumerate(zip(expected, got, strict=False))
    at = next((i for i, (one, other) in pairs if one != other), min(len(expected), len(got)))
    return (
        f"request {request.response_index} (counted from 0) of agent {request.agent_id} "
        f"differs from the recorded one at character {at}: "
        f"expected {_excerpt(expected, at)}, got {_excerpt(got, at)}"
    )


def _excerpt(text: str, at: int) -> str:
    start = max(0, at - _EXCERPT // 3)
    return json.dumps(
        ("…" if start else "")
        + text[start : start + _EXCERPT]
        + ("…" if len(text) > start + _EXCERPT else ""),
        ensure_ascii=False,
    )
