"""What an act comes to, and how one is decided."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from msgspec import Struct

from undivided.domain.events.catalogue import Event
from undivided.domain.waits import Wait
from undivided.store.batch import Addition


class Done(Struct, frozen=True, kw_only=True):
    """What an act changes, and what the model reads about it.

    `events` are for the agent's stream, `steps` for the turn's session, before the result;
    `elsewhere` for other streams. With `wait` the call is answered later. `failed`: the content
    says why nothing was done.
    """

    content: str = ""
    events: tuple[Event, ...] = ()
    steps: tuple[Event, ...] = ()
    elsewhere: tuple[Addition, ...] = ()
    wait: Wait | None = None
    failed: bool = False


def refused(why: str) -> Done:
    """Nothing is done; the model reads why."""
    return Done(content=why, failed=True)


def _alone(_flight: Any, _act: Any) -> tuple[str, ...]:
    return ()


class Doing(Struct, frozen=True):
    """How one kind of act is decided, and which other streams it may append to.

    `decide(tx, flight, act)` runs under the agent's row lock, with `tx.view` read in it; `also`
    names the streams that it locks besides (see `Log.locked`).
    """

    decide: Callable[[Any, Any, Any], Awaitable[Done]]
    also: Callable[[Any, Any], tuple[str, ...]] = _alone
