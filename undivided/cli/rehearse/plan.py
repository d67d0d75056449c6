"""What a rehearsal will do, worked out before anything is sent. Pure.

A conversation becomes a sequence of turns, one for each message that an agent spoke: what
reaches the agent's mailbox, what it notes, what it answers.

What reaches the mailbox of the next speaker is the message before its own: a person's as
`human_chat`, an agent's as `a2a_message`, its own too when it speaks twice in a row. What
persons say one after the other is one stimulus, because it got one answer. A conversation
that an agent opens is started by a `system_event` with the question, which nobody spoke and
which is not counted.

Thoughts are notes in the speaker's working memory, written in its next turn before it speaks;
a note's key is the number of its entry in the recording. Thoughts that come after a speaker's
last turn are written in that turn: they stand a little early there, but no turn is invented
for them. Thoughts of somebody who never speaks have no place; `left_out` counts them.

Silence cannot be an answer in Undivided. So a message that is empty in the recording is
rehearsed as `SILENCE`, and persons' closing words that nobody answered reach the agent that
spoke last, which answers `SILENCE`.
"""

from __future__ import annotations

from collections import defaultdict

from msgspec import Struct

from undivided.cli.readers.conversation import Conversation, Spoken
from undivided.domain.stimuli import A2A_MESSAGE, HUMAN_CHAT, SYSTEM_EVENT

SILENCE = "(nothing was said)"
OPENING = "Begin."


class PlanMistake(Exception):
    """A conversation that cannot be rehearsed; the sentence says why."""


class Note(Struct, frozen=True):
    """A thought, kept in working memory."""

    key: str
    content: str


class Stimulus(Struct, frozen=True):
    """What reaches an agent's mailbox; `messages` are the numbers of the entries it carries."""

    source_type: str
    sender: str
    content: str
    messages: tuple[int, ...]


class PlannedTurn(Struct, frozen=True):
    """One turn of one agent; `message` is the number of the entry it speaks, None for silence."""

    agent: str
    stimulus: Stimulus
    notes: tuple[Note, ...]
    reply: str
    message: int | None


class Plan(Struct, frozen=True):
    """The whole rehearsal, turn by turn; `messages` is how many entries were spoken."""

    title: str
    agents: tuple[str, ...]
    turns: tuple[PlannedTurn, ...]
    messages: int
    left_out: int


def plan_rehearsal(conversation: Conversation) -> Plan:
    """Work out the turns of a conversation.

    Raises:
        PlanMistake: no agent speaks in it.
    """
    turns = _turns(conversation)
    if not turns:
        raise PlanMistake(f"{conversation.title}: no agent speaks in it, so there is no turn")
    placed, left_out = _with_notes(turns, conversation)
    return Plan(
        title=conversation.title,
        agents=tuple(dict.fromkeys(turn.agent for turn in placed)),
        turns=placed,
        messages=sum(not said.thought for said in conversation.messages),
        left_out=left_out,
    )


def _turns(conversation: Conversation) -> list[PlannedTurn]:
    turns: list[PlannedTurn] = []
    unheard: list[int] = []
    for number, said in enumerate(conversation.messages):
        if said.thought:
            continue
        if not said.person:
            stimulus = _stimulus(conversation, unheard)
            turns.append(PlannedTurn(said.speaker, stimulus, (), _words(said), number))
            unheard = []
        elif unheard and not conversation.messages[unheard[-1]].person:
            unheard = []  # a person heard it: it is in no agent's mailbox
        unheard.append(number)
    if turns and unheard and conversation.messages[unheard[-1]].person:
        stimulus = _stimulus(conversation, unheard)
        turns.append(PlannedTurn(turns[-1].agent, stimulus, (), SILENCE, None))
    return turns


def _stimulus(conversation: Conversation, unheard: list[int]) -> Stimulus:
    if not unheard:
        return Stimulus(SYSTEM_EVENT, "", conversation.question.strip() or OPENING, ())
    said = [conversation.messages[number] for number in unheard]
    kind = HUMAN_CHAT if said[0].person else A2A_MESSAGE
    return Stimulus(kind, said[-1].speaker, _joined(said), tuple(unheard))


def _joined(said: list[Spoken]) -> str:
    if len({one.speaker for one in said}) == 1:
        return "\n\n".join(_words(one) for one in said)
    return "\n\n".join(f"{one.speaker}: {_words(one)}" for one in said)


def _words(said: Spoken) -> str:
    return said.content if said.content.strip() else SILENCE


def _with_notes(
    turns: list[PlannedTurn], conversation: Conversation
) -> tuple[tuple[PlannedTurn, ...], int]:
    notes: defaultdict[int, list[Note]] = defaultdict(list)
    left_out = 0
    for number, said in enumerate(conversation.messages):
        if not said.thought:
            continue
        place = _place(turns, said.speaker, number)
        if place is None or said.person or not said.content.strip():
            left_out += 1
        else:
            notes[place].append(Note(f"thought-{number:04d}", said.content))
    placed = (
        PlannedTurn(turn.agent, turn.stimulus, tuple(notes[index]), turn.reply, turn.message)
        for index, turn in enumerate(turns)
    )
    return tuple(placed), left_out


def _place(turns: list[PlannedTurn], speaker: str, number: int) -> int | None:
    own = [(index, turn.message) for index, turn in enumerate(turns) if turn.agent == speaker]
    later = (index for index, message in own if message is None or message > number)
    return next(later, own[-1][0] if own else None)
