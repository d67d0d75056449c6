"""Stepping through a story: forward and back with keys, or every step in turn."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from msgspec import Struct, to_builtins
from rich.console import Console

from undivided.cli.replay.changes import Change, changes
from undivided.cli.replay.states import Fold, State
from undivided.cli.replay.story import Story
from undivided.cli.replay.views import changes_view, data_of, event_view, name_of, state_view

FORWARD, BACK, QUIT = ("n", " ", "\r", "\x1b[C"), ("p", "\x1b[D"), ("q", "\x03", "\x04")
FIRST, LAST = ("g", "\x1b[H"), ("G", "\x1b[F")
HELP = "n next · p previous · g first · G last · q quit"


class Step(Struct, frozen=True):
    """One event of a story, what it changed, and how it stood afterwards."""

    number: int
    changed: list[Change]
    state: State


def steps(story: Story) -> Iterator[Step]:
    """Every step of a story, from its beginning."""
    fold = Fold(story)
    before = fold.state()
    for number, placed in enumerate(story.events, start=1):
        after = fold.take([placed]).state()
        yield Step(number, changes(before, after), after)
        before = after


def step_told(story: Story, step: Step) -> dict[str, Any]:
    """A step as JSON values."""
    placed = story.events[step.number - 1]
    return {
        "step": step.number,
        "of": len(story.events),
        "position": str(placed.coordinate),
        "time": step.state["time"],
        "stream": placed.recorded.stream,
        "version": placed.recorded.version,
        "type": name_of(placed),
        "data": data_of(placed),
        "changed": to_builtins(step.changed),
    }


def print_steps(story: Story, console: Console) -> None:
    """Every step in turn: the event and what it changed."""
    for step in steps(story):
        console.print(event_view(story.events[step.number - 1], step.number, len(story.events)))
        console.print(changes_view(step.changed))


def walk(story: Story, console: Console, read_key: Callable[[], str]) -> None:
    """Let a person go forward and back, until they leave."""
    total = len(story.events)
    number = min(1, total)
    while True:
        _show(story, number, console)
        key = read_key()
        if key in QUIT:
            return
        number = _moved(number, total, key)


def _moved(number: int, total: int, key: str) -> int:
    if key in FORWARD:
        return min(number + 1, total)
    if key in BACK:
        return max(number - 1, min(1, total))
    if key in FIRST:
        return min(1, total)
    return total if key in LAST else number


def _show(story: Story, number: int, console: Console) -> None:
    events = story.events
    before = Fold(story).take(events[: max(0, number - 1)]).state()
    after = Fold(story).take(events[:number]).state()
    console.clear()
    console.print(state_view(after))
    console.print()
    if number:
        console.print(event_view(events[number - 1], number, len(events)))
        console.print(changes_view(changes(before, after)))
    console.print(HELP, style="dim")
