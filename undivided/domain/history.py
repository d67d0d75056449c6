"""The history a provider is handed: always valid, whatever was interleaved.

Every call of an assistant message is answered right behind it, in the order of the calls;
an answer that was never given is synthesised; an answer to no call is left out, and so is a
response that said nothing, which providers refuse to read again; the first message is a user's.
What does not fit the limits is cut off at the old end.
"""

from __future__ import annotations

from collections.abc import Iterable

from undivided.domain.dialogue import AssistantSaid, Said, ToolAnswered, UserSaid
from undivided.domain.events import sessions as s
from undivided.domain.events.catalogue import Event

UNANSWERED = "interrupted: this call has no recorded result"
WROTE_FIRST = "(you wrote first in this conversation)"
_CHARACTERS_PER_TOKEN = 3.5


def said_of(event: Event) -> Said | None:
    """The message that an event adds to its session's transcript, if it adds one."""
    match event:
        case s.TurnStarted(input=text):
            return UserSaid(text)
        case s.TurnUpdated(content=text) | s.TurnNudged(content=text):
            return UserSaid(text)
        case s.ModelResponded(text=text, calls=calls):
            return AssistantSaid(text, calls)
        case s.ActivityNoted(line=text):
            return UserSaid(text)
        case s.MessagePosted(content=text):
            return AssistantSaid(text)
        case s.ToolCallFinished(call_id=call_id, tool=tool, content=content):
            return ToolAnswered(call_id, tool, content)
        case _:
            return None


def begun_by_agent(said: tuple[Said, ...]) -> tuple[Said, ...]:
    """A whole transcript; if the agent wrote first, with a line of ours before it.

    Without one its words would be cut off, for a provider wants to see a user's first.
    """
    if said and isinstance(said[0], AssistantSaid):
        return (UserSaid(WROTE_FIRST), *said)
    return said


def provider_history(said: Iterable[Said], max_messages: int, max_tokens: int) -> tuple[Said, ...]:
    """`said` with valid adjacency, within the limits; the newest user message always stays."""
    kept = _trimmed(_adjacent(tuple(said)), max_messages, max_tokens)
    first = next((n for n, one in enumerate(kept) if isinstance(one, UserSaid)), len(kept))
    return kept[first:]


def _adjacent(said: tuple[Said, ...]) -> tuple[Said, ...]:
    answers = {one.call_id: one for one in said if isinstance(one, ToolAnswered)}
    valid: list[Said] = []
    for one in said:
        match one:
            case UserSaid():
                if not valid or valid[-1] != one:
                    valid.append(one)
            case AssistantSaid(content=text, calls=()) if not text.strip():
                pass
            case AssistantSaid(calls=calls):
                valid.append(one)
                valid.extend(
                    answers.get(c.id, ToolAnswered(c.id, c.tool, UNANSWERED)) for c in calls
                )
            case ToolAnswered():
                pass
    return tuple(valid)


def _trimmed(said: tuple[Said, ...], max_messages: int, max_tokens: int) -> tuple[Said, ...]:
    newest_user = max((n for n, m in enumerate(said) if isinstance(m, UserSaid)), default=0)
    start, characters = len(said), 0.0
    while start > 0:
        characters += _length(said[start - 1])
        over = len(said) - start + 1 > max_messages
        over = over or characters > max_tokens * _CHARACTERS_PER_TOKEN
        if over and start <= newest_user:
            break
        start -= 1
    return said[start:]


def _length(one: Said) -> int:
    match one:
        case UserSaid(content=text) | ToolAnswered(content=text):
            return len(text)
        case AssistantSaid(content=text, calls=calls):
            return len(text) + sum(len(str(call.args)) for call in calls)
