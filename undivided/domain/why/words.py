"""The words of a story: who, what, how long, how urgent, and because of which rule."""

from __future__ import annotations

from collections.abc import Iterable

from undivided.domain.decisions import Decision
from undivided.domain.events.items import Payload, Sender
from undivided.domain.interrupts import JUDGE, OTHERWISE, RULES
from undivided.domain.stimuli import REGISTRY

PRIORITIES = ("critical", "high", "normal", "low", "background")
QUOTED = 80
NAMED = 5
_ROLES = {"user": "a person", "agent": "an agent", "system": "the system"}

RULE_SENTENCES: dict[str, str] = {
    **{name: (rule.__doc__ or "").split("\n")[0].rstrip(".") for name, rule in RULES},
    OTHERWISE.rule: "No rule says more than that it waits",
    JUDGE: "The judge read both",
    "person_while_waiting": "A turn that waits for somebody lets every person pass",
}
"""What each rule says in words: the first line of the function that it is."""


def because(decision: Decision) -> str:
    """The rule of a decision by its name, and what it says."""
    said = RULE_SENTENCES.get(decision.rule) or decision.reasoning
    return f"by rule {one_line(decision.rule)}: {lowered(one_line(said))}"


def lowered(text: str) -> str:
    """A sentence as it goes on after a colon."""
    return text[:1].lower() + text[1:]


def one_line(text: str, most: int = 200) -> str:
    """Text on one line, cut to `most` characters."""
    line = " ".join(text[: 4 * most].split())
    return line if len(line) <= most else line[: most - 1] + "…"


def quoted(text: str) -> str:
    """The beginning of what somebody said."""
    return f'"{one_line(text, QUOTED)}"'


def told_by(payload: Payload) -> str:
    """What a stimulus says, in one quoted line."""
    return quoted(payload.summary or payload.content)


def kind_in_words(source_type: str) -> str:
    """A type of stimulus as people call it, with its article."""
    known = REGISTRY.get(source_type)
    label = known.label.lower() if known is not None else source_type
    return f"{'an' if label[:1] in 'aeiou' else 'a'} {label}"


def sender_in_words(sender: Sender) -> str:
    """Who sent a stimulus, as far as is known."""
    return one_line(sender.name or sender.id or _ROLES[sender.role], QUOTED)


def priority_in_words(priority: int) -> str:
    """A priority by number and name."""
    name = PRIORITIES[priority] if 0 <= priority < len(PRIORITIES) else "of its own"
    return f"{priority} ({name})"


def span(seconds: float) -> str:
    """A length of time."""
    if seconds < 120:
        return f"{seconds:g} s"
    return f"{seconds / 60:g} min" if seconds < 7200 else f"{seconds / 3600:.3g} h"


def counted(number: int, word: str) -> str:
    """So many of a thing."""
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def listed(names: Iterable[str]) -> str:
    """Names in a row, the first few of them."""
    every = [one_line(name) for name in names]
    rest = f" and {len(every) - NAMED} more" if len(every) > NAMED else ""
    return ", ".join(every[:NAMED]) + rest
