"""A replay in a terminal: a state, the event that led to it, and what it changed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import msgspec
from rich.console import Group, RenderableType
from rich.text import Text

from undivided.cli.replay.changes import Change
from undivided.cli.replay.states import State
from undivided.cli.views.cells import facts, heading, moment, one_line, plain, state, table
from undivided.domain.events.catalogue import CATALOGUE
from undivided.domain.placed import Placed

_CUT = 300
_MESSAGE_CUT = 4_000


def state_view(shown: State) -> RenderableType:
    """An agent or a session as it was."""
    if shown["position"] is None:
        return Text(f"{shown['kind']} {shown['id']} had not begun by then", style="dim")
    head = heading(
        one_line(f"{shown['kind']} {shown['id']} at {shown['position']}, {shown['time']}")
    )
    if shown["kind"] == "session":
        return Group(head, _session(shown))
    return Group(head, _agent(shown))


def event_view(placed: Placed, number: int, total: int) -> Text:
    """One event on one line: which of how many, where, what."""
    recorded = placed.recorded
    text = Text(f"{number}/{total}  {placed.coordinate}  {moment(recorded.at.isoformat())}  ")
    text.append(name_of(placed), style="bold")
    text.append(f"  {one_line(recorded.stream)}  ", style="dim")
    return text.append(one_line(_cut(json.dumps(data_of(placed)))))


def changes_view(changes: Sequence[Change]) -> RenderableType:
    """What differs, before and after."""
    if not changes:
        return Text("  changes nothing that is shown", style="dim")
    rows = table("what", "before", "after", giving=("before", "after"))
    for change in changes:
        rows.add_row(one_line(change.path), _told(change.before), _told(change.after))
    return rows


def name_of(placed: Placed) -> str:
    """The stored name of an event."""
    return CATALOGUE[type(placed.recorded.event)][0]


def data_of(placed: Placed) -> Any:
    """What an event says, as JSON values."""
    return msgspec.to_builtins(placed.recorded.event)


def _agent(shown: State) -> RenderableType:
    if shown["agent"] is None:
        return Text("not created yet", style="dim")
    agent, attention, flight = shown["agent"], shown["attention"], shown["flight"]
    focus = ", ".join(attention.get("itemIds", ())) or None
    if focus:
        focus = f"{focus} in {attention['turnId']}, session {attention['sessionId']}"
    held = "" if flight is None or flight["held"] else ", let go"
    parts: list[RenderableType] = [
        facts({
            "name": agent["name"], "status": state(agent["status"]),
            "attention": state(attention["state"]), "focus": focus,
            "flight": f"epoch {flight['epoch']}, {flight['worker']}{held}" if flight else None,
            "items": ", ".join(f"{n} {name}" for name, n in shown["items"].items()) or "none",
        })
    ]  # fmt: skip
    if shown["queued"]:
        parts += [heading("waiting"), _queue(shown["queued"])]
    if shown["decisions"]:
        parts += [heading("decided last"), _decisions(shown["decisions"])]
    if shown["memory"]:
        parts += [heading("working memory"), facts(_noted(shown["memory"]))]
    for name, session in shown["sessions"].items():
        parts += [heading(f"session {one_line(name)}"), _session(session)]
    return Group(*parts)


def _queue(queued: list[State]) -> RenderableType:
    rows = table("item", "type", "priority", "from", "summary", giving=("summary",))
    for item in queued:
        rows.add_row(
            one_line(item["id"]), one_line(item["sourceType"]), str(item["priority"]),
            one_line(item["from"] or "-"), one_line(item["summary"]),
        )  # fmt: skip
    return rows


def _decisions(decisions: list[State]) -> RenderableType:
    rows = table("decision", "rule", "item", "because", giving=("because",))
    for made in decisions:
        rows.add_row(*(one_line(made[name]) for name in ("type", "rule", "itemId", "reasoning")))
    return rows


def _noted(memory: dict[str, str]) -> dict[str, RenderableType | None]:
    return {one_line(key): _told(content) for key, content in memory.items()}


def _session(shown: State) -> RenderableType:
    session = shown["session"]
    if session is None:
        return Text("not opened yet", style="dim")
    lines: list[RenderableType] = [
        Text(one_line(f"of {session['agentId']}, {session['status']}, {len(shown['turns'])} turns"))
    ]
    lines += [_message(message) for message in shown["messages"]]
    if session["activeTurn"]:
        turn = shown["turns"].get(session["activeTurn"], {})
        lines.append(Text(f"… turn {session['activeTurn']} is {turn.get('status')}", style="dim"))
    return Group(*lines)


def _message(message: State) -> Text:
    who = message.get("tool") or message["role"]
    text = Text(f"{message['position']:>16}  ", style="dim")
    text.append(f"{one_line(who)}: ", style="bold")
    text.append(plain(_shortened(message["content"])))
    for call in message.get("toolCalls", ()):
        text.append(f"\n{'':>18}→ {one_line(call['tool'])} {one_line(json.dumps(call['args']))}")
    return text


def _shortened(content: str) -> str:
    """What a terminal takes of a message; `--json` has all of it."""
    left = len(content) - _MESSAGE_CUT
    return content if left <= 0 else f"{content[:_MESSAGE_CUT]} … ({left} characters more)"


def _told(value: Any) -> str:
    if value is None:
        return "-"
    return one_line(_cut(value if isinstance(value, str) else json.dumps(value)))


def _cut(text: str) -> str:
    return text if len(text) <= _CUT else text[:_CUT] + " …"
