"""How answers of the API look in a terminal."""

from __future__ import annotations

import io
import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console, RenderableType

from undivided.cli.views.agents import NOBODY, agent_line, agent_view, agents_view
from undivided.cli.views.cells import one_line, plain, priority, span, took
from undivided.cli.views.mailbox import mailbox_chosen_view, mailbox_view
from undivided.cli.views.mind import mind_view

ANY = st.text(st.characters())


def shown(view: RenderableType, width: int = 80) -> str:
    """What a terminal of so many columns shows."""
    out = io.StringIO()
    console = Console(file=out, width=width, markup=False, emoji=False, highlight=False)
    console.print(view)
    return out.getvalue()


def agent(**known: Any) -> dict[str, Any]:
    """An agent as the API tells it."""
    return {
        "id": "ada", "name": "Ada", "definition": None, "model": "default", "instructions": "",
        "tools": None, "policy": {"intake": "focus", "retryBackoffS": [1.0, 5.0]},
        "policyVersion": 3, "teamId": None, "heartbeatIntervalS": None, "status": "started",
        "attentionState": "idle", "mailboxDepth": 0, "createdAt": "2026-01-02T03:04:05.678Z",
        "changedAt": "2026-01-02T03:04:06.000Z", "position": "7-8", **known,
    }  # fmt: skip


def item(**known: Any) -> dict[str, Any]:
    """An item of a mailbox as the API tells it."""
    return {
        "id": "mbx_91dd6dbb7af244b2621b1316af", "sourceType": "human_chat",
        "category": "interaction", "priority": 0, "status": "completed", "summary": "hello",
        "queuedAt": "2026-01-02T03:04:05.000Z", "startedAt": "2026-01-02T03:04:06.500Z",
        "completedAt": "2026-01-02T03:05:36.500Z", "attempts": 1, "decisions": [],
        "activity": None, **known,
    }  # fmt: skip


def box(queued: list[Any], history: list[Any], cursor: str | None = None) -> dict[str, Any]:
    """A mailbox as the API tells it."""
    return {
        "queued": queued, "queueDepth": len(queued), "history": history,
        "statusCounts": {"queued": len(queued), "completed": 2}, "nextCursor": cursor,
        "position": "1-1",
    }  # fmt: skip


def mind(**known: Any) -> dict[str, Any]:
    """A mind as the API tells it."""
    return {
        "attentionState": "idle", "status": "started", "currentFocus": None, "mailboxDepth": 0,
        "queuedItems": [], "deferredItems": [], "recentDecisions": [], "lastTriage": None,
        "workingMemory": [], "position": "1-1", **known,
    }  # fmt: skip


class TestText:
    """What others wrote does nothing to the terminal."""

    @given(ANY)
    def test_no_character_is_obeyed(self, text: str) -> None:
        """Controls, lone surrogates and marks of direction are spelled out."""
        said = plain(text)
        assert all(c in "\n\t" or unicodedata.category(c) not in {"Cc", "Cs"} for c in said)
        assert not set(said) & set("\u202e\u2066\u200f")
        said.encode("utf-8")

    @given(ANY)
    def test_one_line_is_one_line(self, text: str) -> None:
        """However many it had."""
        assert len(one_line(text).splitlines()) <= 1

    def test_ordinary_text_of_any_language_stays(self) -> None:
        """Nothing but what is dangerous changes."""
        assert plain("grüße 你好 👋\n\tx") == "grüße 你好 👋\n\tx"

    @given(ANY)
    def test_markup_in_text_is_text(self, text: str) -> None:
        """Names are shown as they are, whatever library draws them."""
        assert "[red]x[/red] :smile:" in shown(agent_line(agent(name=f"[red]x[/red] :smile:{text}")), 10_000)  # fmt: skip  # noqa: E501


class TestAgents:
    """The table of all, and one whole."""

    def test_none_says_how_to_make_one(self) -> None:
        """A newcomer's first look."""
        assert shown(agents_view({"items": [], "nextCursor": None})).strip() == NOBODY

    def test_a_row_for_each_and_how_to_go_on(self) -> None:
        """The next page is one option away."""
        page = {"items": [agent(), agent(id="bob", status="paused")], "nextCursor": "abc"}
        text = shown(agents_view(page))
        assert [line.split()[0] for line in text.splitlines()] == ["id", "ada", "bob", "more:"]
        assert "--cursor abc" in text

    def test_one_agent_whole(self) -> None:
        """Policy included; what it has not is left out."""
        text = shown(agent_view(agent(tools=[], instructions="Be kind.\nBe brief.")))
        assert "Be kind." in text
        assert "policy, version 3" in text
        assert "1, 5" in text
        assert "heartbeat" not in text

    def test_after_a_command_one_line_is_enough(self) -> None:
        """With what waits, if anything does."""
        text = shown(agent_line(agent(status="stopped", mailboxDepth=2)))
        assert text == "ada (Ada) is stopped, 2 waiting\n"


class TestMailbox:
    """What waits and what was."""

    def test_empty(self) -> None:
        """Nothing ever came."""
        empty = {**box([], []), "statusCounts": {}}
        assert shown(mailbox_view(empty)) == "Nothing has come to this mailbox yet.\n"

    def test_what_waits_stands_apart_from_history(self) -> None:
        """Each once, though the API tells a waiting one in both."""
        waits = item(id="mbx_waits", status="queued", startedAt=None, completedAt=None)
        text = shown(mailbox_view(box([waits], [waits, item()])))
        assert text.count("mbx_waits") == 1
        assert "waiting, next first (1)" in text
        assert text.startswith("1 queued, 2 completed")

    def test_how_long_it_took_and_how_often_it_was_tried(self) -> None:
        """Once is not worth a word."""
        assert "1 min 30 s  " in shown(mailbox_view(box([], [item()])))
        assert "1 min 30 s, 3 tries" in shown(mailbox_view(box([], [item(attempts=3)])))

    def test_a_delay_and_an_outcome_are_told(self) -> None:
        """Until when it waits; how it ended if not as its status says."""
        later = item(status="queued", notBefore="2026-01-02T03:10:00.000Z")
        assert "until 03:10:00" in shown(mailbox_view(box([later], [])))
        failed = item(status="dead_letter", activity={"outcome": "failed"})
        assert "dead_letter (failed)" in shown(mailbox_view(box([], [failed])))

    def test_what_was_chosen_is_shown_alone(self) -> None:
        """With a filter, what waits is no longer beside it."""
        text = shown(mailbox_chosen_view(box([item(id="mbx_waits")], [item()], "next")))
        assert "mbx_waits" not in text
        assert "--cursor next" in text
        assert shown(mailbox_chosen_view(box([], []))) == "No such item.\n"

    @pytest.mark.parametrize("width", [40, 80, 100, 200])
    def test_ids_are_whole_in_any_terminal(self, width: int) -> None:
        """Whatever else must give way."""
        long = item(summary="word " * 99, sourceType="requirement_comment")
        lines = shown(mailbox_view(box([], [long])), width).splitlines()
        assert all(len(line) <= width for line in lines)
        if width >= 80:
            assert "2026-01-02" in lines[-1]
            assert any(line.startswith("mbx_91dd6dbb7af244b2621b1316af") for line in lines)


class TestMind:
    """Attention first."""

    def test_an_idle_mind(self) -> None:
        """Nothing in focus, no worker."""
        text = shown(mind_view(mind(status="paused")))
        assert "idle, agent is paused" in text
        assert "worker" not in text

    def test_a_busy_mind(self) -> None:
        """Focus, worker, what waits, why, and what it remembers."""
        focus = {
            "mailboxItemId": "mbx_1", "type": "human_chat", "label": "Chat message",
            "summary": "do\nit", "startedAt": "2026-01-02T03:04:05.000Z", "taskId": None,
            "turnId": "trn_1", "sessionId": "ses_1",
        }  # fmt: skip
        decision = {
            "id": "dec_1", "decisionType": "pick", "rule": "priority_fifo", "reasoning": "best",
            "mailboxItemId": "mbx_1", "policyVersion": 1, "createdAt": "2026-01-02T03:04:05.000Z",
        }  # fmt: skip
        busy = mind(
            attentionState="suspended",
            currentFocus=focus,
            suspension={"kind": "sleep", "turnId": "trn_1", "sessionId": "ses_1", "callId": "c",
                        "since": "2026-01-02T03:04:05.000Z", "until": "2026-01-02T04:04:05.000Z"},
            flight={"epoch": 4, "worker": "w1"},
            mailboxDepth=14,
            queuedItems=[item(id=f"mbx_q{n}", status="queued") for n in range(14)],
            recentDecisions=[decision],
            workingMemory=[{"key": "plan", "content": "tea", "notedAt": "2026-01-02T03:04:05Z"}],
        )  # fmt: skip
        text = shown(mind_view(busy), 100)
        for part in ("Chat message: do it", "w1, epoch 4", "sleep", "priority_fifo", "tea"):
            assert part in text
        assert "and 4 more" in text


def test_spans_have_two_figures_that_matter() -> None:
    """Seconds, minutes, hours."""
    assert [span(s) for s in (0.014, 9.5, 42, 60, 3_600, 90_061)] == [
        "0.01 s", "9.50 s", "42 s", "1 min 00 s", "1 h 00 min", "25 h 01 min",
    ]  # fmt: skip
    assert took(None, "2026-01-02T03:04:05Z") == "-"
    assert priority(0) == "0 critical"
    assert priority(9) == "9"
