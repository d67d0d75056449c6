"""Events of single flight: who holds an agent, under which epoch; stream `agent:<id>`."""

from __future__ import annotations

from typing import Literal

from undivided.domain.value import Value
from undivided.domain.waits import Wait

ReleaseReason = Literal["done", "suspended", "yielded", "stopped"]


class FlightAcquired(Value, frozen=True, kw_only=True):
    """A worker holds the agent; `epoch` is one higher than any before."""

    agent_id: str
    epoch: int
    worker: str
    taken_from: int | None = None
    """The epoch of the flight that was lost, where one was."""


class FlightReleased(Value, frozen=True, kw_only=True):
    """The worker let go of the agent at a point where nothing of its turn can be lost."""

    agent_id: str
    epoch: int
    reason: ReleaseReason


class FlightFenced(Value, frozen=True, kw_only=True):
    """A late append of a lost flight was refused.

    Or the flight gave up its call before there was one; `refused` says which, by an error's code.
    """

    agent_id: str
    epoch: int
    current_epoch: int
    worker: str
    refused: tuple[str, ...]


class FocusSuspended(Value, frozen=True, kw_only=True):
    """The turn waits and holds nothing; it can go on `wait_s` seconds from now at the latest."""

    agent_id: str
    turn_id: str
    epoch: int
    wait: Wait
    wait_s: float


class FocusRegained(Value, frozen=True, kw_only=True):
    """A turn that waited, yielded or was orphaned is at work again under `epoch`."""

    agent_id: str
    turn_id: str
    epoch: int
    cause: Literal["waited", "woken", "yielded", "orphaned", "stopped", "answered"]


class FocusAnswered(Value, frozen=True, kw_only=True):
    """What a suspended turn waits for has come: `content` is what its call is answered with.

    `item_id` names its item where the turn was set aside meanwhile.
    """

    agent_id: str
    turn_id: str
    call_id: str
    content: str
    item_id: str | None = None


class StopRequested(Value, frozen=True, kw_only=True):
    """A person asked that the turn end at its next safe point.

    `item_ids` are its items where it was set aside.
    """

    agent_id: str
    turn_id: str
    by: str
    item_ids: tuple[str, ...] = ()
