"""What an agent keeps in mind and knows, and how its prompts show it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from tests.support.events import BEGAN
from tests.support.spec import AGENT, accepted, given
from undivided.domain.activity_lines import activity_line
from undivided.domain.agents import note
from undivided.domain.context import InMind, instructions
from undivided.domain.events.agents import KnowledgeSaved
from undivided.domain.memory import (
    NOTE_CHARS,
    SECTION_CHARS,
    SECTIONS_CHARS,
    SaveKnowledge,
    cleared,
    saved,
)
from undivided.domain.outcomes import Cancelled, Completed, Failed, Incomplete, Outcome
from undivided.domain.scenarios import COMMENT_RESPONSE
from undivided.domain.state.agent import KnowledgeRow, MemoryRow

SITUATION = given(accepted("i1", "task_comment", 2))


class TestWorkingMemory:
    """Few, short, and the agent's own."""

    def test_177_the_fifth_key_takes_the_place_of_the_oldest(self) -> None:
        """An entry is cut; what is written again is not one more."""
        event = note(SITUATION.agent, ("a", "b", "c", "d"), ("e", "x" * 7000), "trn_1", "agent")
        assert event.evicted == ("a",)
        assert len(event.content) == 6000
        again = note(SITUATION.agent, ("a", "b", "c", "d"), ("a", "x"), "trn_1", "agent")
        assert again.evicted == ()

    def test_177_clearing_counts_what_is_gone(self) -> None:
        """One key, all of one's own, or nothing."""
        everything = cleared(AGENT, ("a", "b"), None, "trn_1")
        assert everything is not None
        assert everything.keys == ("a", "b")
        one = cleared(AGENT, ("a", "b"), "b", "trn_1")
        assert one is not None
        assert one.keys == ("b",)
        assert cleared(AGENT, ("a", "b"), "deliberation", "trn_1") is None


class TestKnowledge:
    """Bounded, and refused in words rather than cut."""

    def test_a_section_is_bounded(self) -> None:
        """By itself, and together with the others."""
        assert "at most 3000" in str(save("section", "x" * (SECTION_CHARS + 1)))
        held = {f"s{n}": SECTION_CHARS for n in range(5)}
        assert "shorten some" in str(save("section", "x", held))
        assert isinstance(save("section", "x" * SECTION_CHARS, {**held, "k": 9}), str)
        assert isinstance(save("section", "y" * 10, {"k": SECTIONS_CHARS}), KnowledgeSaved)

    def test_a_note_is_bounded(self) -> None:
        """But there may be any number."""
        assert isinstance(save("note", "x" * NOTE_CHARS), KnowledgeSaved)
        assert isinstance(save("note", "x" * (NOTE_CHARS + 1)), str)


def save(kind: Any, content: str, held: dict[str, int] | None = None) -> KnowledgeSaved | str:
    return saved(AGENT, SaveKnowledge(kind, "k", content), held or {}, "trn_1")


def prompt(scenario: str = "chat", in_mind: InMind | None = None, **extra: Any) -> str:
    item = SITUATION.item("i1")
    item = replace(item, payload=replace(item.payload, extra=extra))
    return instructions(SITUATION.agent, in_mind or InMind(), item, scenario, BEGAN)


class TestPrompts:
    """What the instructions say."""

    def test_an_empty_mind_adds_nothing(self) -> None:
        """Only who the agent is."""
        assert prompt() == SITUATION.agent.instructions or f"You are {SITUATION.agent.name}."

    def test_what_is_in_mind_is_shown_with_its_age(self) -> None:
        """What is known for good first, for it changes least."""
        memory = MemoryRow(
            id="ada/plan", agent_id=AGENT, key="plan", content="ship it",
            noted_at=BEGAN - timedelta(minutes=3),
        )  # fmt: skip
        section = KnowledgeRow(
            id="ada/section/team", agent_id=AGENT, kind="section", key="team",
            content="bob reviews", saved_at=BEGAN, version=1, changed_version=1,
        )  # fmt: skip
        told = prompt(in_mind=InMind((memory,), (section,)))
        assert "## Long-term Memory\n\n### team\nbob reviews" in told
        assert "## Working Memory\n\n### plan (3.0min ago)\nship it" in told
        assert told.index("Long-term") < told.index("Working")

    @pytest.mark.parametrize(("streak", "warned"), [(0, False), (1, False), (2, True), (5, True)])
    def test_224_a_streak_of_agents_is_pointed_out(self, streak: int, warned: bool) -> None:
        """Where the last comments are by agents; where a person wrote last there is none."""
        told = prompt(COMMENT_RESPONSE, agentCommentStreak=streak)
        assert (f"The last {streak} comments are by agents" in told) is warned
        assert "recall_activity" in told

    def test_what_a_comment_answers_is_quoted_and_cut(self) -> None:
        """In one line."""
        told = prompt(COMMENT_RESPONSE, replyTo={"author": "Eve", "content": "why\n" + "x" * 200})
        assert 'It answers what Eve wrote: "why xxx' in told
        assert "x" * 117 + "…" not in told
        assert "x" * 116 + "…" in told

    @pytest.mark.parametrize("odd", [None, 3, [], {}, {"content": 3}])
    def test_odd_marks_are_passed_over(self, odd: Any) -> None:
        """A producer may write anything there."""
        assert "It answers" not in prompt(COMMENT_RESPONSE, replyTo=odd, agentCommentStreak=odd)


class TestActivityLines:
    """The chat's line about what was done elsewhere."""

    @pytest.mark.parametrize(
        ("outcome", "came_to"),
        [
            (Completed(""), "responded to comment"),
            (Completed("done\nand  well"), "responded to comment"),
            (Incomplete("half", "a start"), "incomplete: a start"),
            (Incomplete("half"), "incomplete"),
            (Failed("refused", "", retryable=False), "failed"),
            (Cancelled("bob"), "cancelled"),
        ],
    )
    def test_says_what_came_of_it(self, outcome: Outcome, came_to: str) -> None:
        """In one line."""
        line = activity_line(AGENT, "trn_1", SITUATION.item("i1"), outcome).line
        assert line == f"[ACTIVITY: task_comment] content of i1 → {came_to}"
