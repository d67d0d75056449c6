"""A rehearsal's plan: every spoken message once and in order, every thought in its place."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from undivided.cli.readers.conversation import Conversation, Spoken
from undivided.cli.rehearse.cast import cast_players, recording_of, shown, slug
from undivided.cli.rehearse.drive import compare, delivery
from undivided.cli.rehearse.plan import (
    OPENING,
    SILENCE,
    Note,
    Plan,
    PlanMistake,
    plan_rehearsal,
)
from undivided.domain.ids import checked_id
from undivided.domain.rehearsal import parse_recording

PERSONS = ("Noor", "Ivan")
AGENTS = ("lead", "web surfer", "web-surfer", "écrivain")


@st.composite
def entries(draw: st.DrawFn) -> Spoken:
    speaker = draw(st.sampled_from(PERSONS + AGENTS))
    person = speaker in PERSONS
    thought = not person and draw(st.booleans())
    return Spoken(speaker, draw(st.text(max_size=5)), thought=thought, person=person)


conversations = st.builds(
    Conversation,
    title=st.just("talk"),
    question=st.text(max_size=5),
    messages=st.lists(entries(), max_size=25)
    .map(tuple)
    .filter(lambda said: any(not s.thought and not s.person for s in said)),
)


def talk(*said: Spoken, question: str = "why?") -> Plan:
    """The plan of a short conversation."""
    return plan_rehearsal(Conversation("talk", question, said))


class TestAnyConversation:
    """What holds whoever speaks, in whatever order."""

    @given(conversations)
    def test_each_message_is_in_the_plan_once_and_in_order(self, said: Conversation) -> None:
        """An agent's message is the reply of one turn; a person's is in one stimulus."""
        plan = plan_rehearsal(said)
        replies = [turn.message for turn in plan.turns if turn.message is not None]
        asked = [
            number
            for turn in plan.turns
            if turn.stimulus.source_type == "human_chat"
            for number in turn.stimulus.messages
        ]
        spoken = {n: s for n, s in enumerate(said.messages) if not s.thought}
        assert replies == [n for n, s in spoken.items() if not s.person]
        assert asked == [n for n, s in spoken.items() if s.person]
        assert plan.messages == len(replies) + len(asked)

    @given(conversations)
    def test_each_stimulus_is_what_was_said_just_before(self, said: Conversation) -> None:
        """A turn's stimulus ends with the spoken message before the turn's own."""
        spoken = [n for n, s in enumerate(said.messages) if not s.thought]
        for turn in plan_rehearsal(said).turns:
            place = len(spoken) if turn.message is None else spoken.index(turn.message)
            before = spoken[place - 1 : place]
            assert list(turn.stimulus.messages[-1:]) == before

    @given(conversations)
    def test_each_thought_is_noted_once_by_its_thinker(self, said: Conversation) -> None:
        """In order and before the words it led to; left out is only what has no place."""
        plan = plan_rehearsal(said)
        for agent in plan.agents:
            noted = [n for t in plan.turns if t.agent == agent for n in t.notes]
            assert noted == [
                Note(f"thought-{number:04d}", one.content)
                for number, one in enumerate(said.messages)
                if one.thought and one.speaker == agent and one.content.strip()
            ]
        thoughts = sum(one.thought for one in said.messages)
        assert plan.left_out == thoughts - sum(len(turn.notes) for turn in plan.turns)

    @given(conversations)
    def test_the_recording_answers_every_turn(self, said: Conversation) -> None:
        """One response a turn, one more before it where there are notes; ids never collide."""
        plan = plan_rehearsal(said)
        players = cast_players(plan.agents, "reh_1")
        recording = parse_recording(recording_of(plan, players), "talk")
        assert len(recording.agents) == len(plan.agents)
        for speaker, player in players.items():
            turns = [turn for turn in plan.turns if turn.agent == speaker]
            answers = recording.agents[player.agent_id]
            assert [a.reply for a in answers if not a.calls] == [t.reply for t in turns]
            assert len(answers) == len(turns) + sum(bool(t.notes) for t in turns)
            assert all(reply.reply.strip() for reply in answers if not reply.calls)

    @given(conversations)
    def test_only_a_session_with_every_message_once_compares_equal(
        self, said: Conversation
    ) -> None:
        """A message too few, too many or changed is found."""
        plan = plan_rehearsal(said)
        turns = [turn for turn in plan.turns if turn.agent == plan.agents[0]]
        session = [
            message
            for turn in turns
            for message in (
                {"role": "user", "content": f"From somebody: {turn.stimulus.content}"},
                {"role": "assistant", "content": "", "toolCalls": [{}]},
                {"role": "tool", "content": "noted"},
                {"role": "assistant", "content": turn.reply},
            )
        ]
        changed = [*session[:-1], {"role": "assistant", "content": "something else"}]
        assert compare(turns, session) == ""
        assert compare(turns, session[:-1])
        assert compare(turns, [*session, session[-1]])
        assert compare(turns, changed)


class TestOpenings:
    """What starts the first turn."""

    def test_a_person_opens_with_a_chat_message(self) -> None:
        """It is counted like every message."""
        plan = talk(Spoken("Noor", "hello", person=True), Spoken("lead", "hi"))
        assert (plan.messages, plan.turns[0].stimulus.source_type) == (2, "human_chat")

    @pytest.mark.parametrize(("question", "said"), [("why?", "why?"), (" ", OPENING)])
    def test_an_agent_is_started_by_the_question(self, question: str, said: str) -> None:
        """The question is a system event, which is not a message."""
        plan = talk(Spoken("lead", "hi"), question=question)
        stimulus = plan.turns[0].stimulus
        assert (plan.messages, stimulus.source_type, stimulus.content) == (1, "system_event", said)

    def test_nobody_but_persons_is_no_rehearsal(self) -> None:
        """There would be no turn."""
        with pytest.raises(PlanMistake, match="no agent speaks in it"):
            talk(Spoken("Noor", "hello", person=True), Spoken("lead", "hm", thought=True))


class TestRows:
    """The same kind of speaker twice in a row."""

    def test_an_agent_that_goes_on_hears_itself(self) -> None:
        """Its own message is what starts its next turn."""
        plan = talk(Spoken("lead", "one"), Spoken("lead", "two"))
        stimulus = plan.turns[1].stimulus
        assert (plan.turns[1].agent, stimulus.sender, stimulus.content) == ("lead", "lead", "one")

    def test_persons_in_a_row_are_one_stimulus_that_names_them(self) -> None:
        """They got one answer."""
        plan = talk(
            Spoken("Noor", "a", person=True),
            Spoken("Ivan", "b", person=True),
            Spoken("lead", "both"),
        )
        assert plan.turns[0].stimulus.content == "Noor: a\n\nIvan: b"

    def test_closing_words_reach_the_last_agent(self) -> None:
        """It answers with silence, spelt out."""
        plan = talk(Spoken("lead", "done"), Spoken("Noor", "thanks", person=True))
        last = plan.turns[-1]
        assert (last.agent, last.stimulus.content, last.reply) == ("lead", "thanks", SILENCE)


class TestThoughts:
    """Where a thought is written down."""

    def test_a_thought_after_the_last_turn_is_noted_in_it(self) -> None:
        """No turn is invented for it."""
        plan = talk(
            Spoken("lead", "go", addressed_to="surfer"),
            Spoken("lead", "next: surfer", thought=True),
            Spoken("surfer", "gone"),
            Spoken("lead", "satisfied", thought=True),
        )
        assert [note.key for note in plan.turns[0].notes] == ["thought-0001", "thought-0003"]
        assert len(plan.turns) == 2


def test_a_delivery_says_who_sent_it_in_which_role() -> None:
    """Agents by their id, persons by name, the runtime by role alone."""
    plan = talk(
        Spoken("web surfer", "x"), Spoken("lead", "y"), Spoken("Zoë B", "z", person=True),
        Spoken("lead", "end"),
    )  # fmt: skip
    players = cast_players(plan.agents, "reh_1")
    first, second, third = (
        delivery(turn.stimulus, players[turn.agent], players)["metadata"] for turn in plan.turns
    )
    assert first == {"senderRole": "system"}
    assert second["senderId"] == players["web surfer"].agent_id
    assert third == {"senderRole": "user", "senderId": "Zo-B", "senderName": "Zoë B"}


@given(st.text() | st.just("a\x00\ud800"))
def test_any_speaker_gets_a_name_that_agents_may_bear(speaker: str) -> None:
    """Names of real logs are anything; names of agents are not."""
    name = shown(speaker)
    assert name.strip()
    assert len(name) <= 200
    assert not any(c == "\x00" or "\ud800" <= c <= "\udfff" for c in name)
    assert checked_id(f"reh_1.1.{slug(speaker)}", "id")


def test_a_recording_is_plain_ascii_whatever_was_said() -> None:
    """Lone surrogates and NUL travel as escapes."""
    plan = talk(Spoken("lead", "a\x00\ud800"))
    content = recording_of(plan, cast_players(plan.agents, "reh_1"))
    assert content.isascii()
    assert "a\x00\ud800" in next(iter(json.loads(content)["agents"].values()))[0]["reply"]
