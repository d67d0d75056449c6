"""Recorded conversations of every format read into one shape, and mistakes are told exactly."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, ClassVar

import pytest

from undivided.cli.readers.conversation import Conversation, ReaderMistake, Spoken
from undivided.cli.readers.detection import read_conversation
from undivided.cli.rehearse.plan import plan_rehearsal

ROOT = Path(__file__).parents[2]


def write(folder: Path, content: object, *more: object) -> Path:
    """A file with one JSON document, or with one a line where there are more."""
    file = folder / "talk.json"
    text = "\n".join(json.dumps(value) for value in (content, *more))
    file.write_text(text, "utf-8")
    return file


class TestWhoAndWhen:
    """Failure logs of teams, in their two shapes."""

    def test_a_role_in_brackets_says_whether_it_was_thought_or_to_whom(
        self, tmp_path: Path
    ) -> None:
        """Thoughts and the termination condition are said to nobody; `human` is a person."""
        roles = {
            "human": Spoken("human", "x", person=True),
            "Orchestrator (thought)": Spoken("Orchestrator", "x", thought=True),
            "Orchestrator (-> WebSurfer)": Spoken("Orchestrator", "x", addressed_to="WebSurfer"),
            "WebSurfer": Spoken("WebSurfer", "x"),
            "Orchestrator (termination condition)": Spoken("Orchestrator", "x", thought=True),
        }
        history = [{"role": role, "content": "x"} for role in roles]
        read = read_conversation(write(tmp_path, {"question": "why?", "history": history}))
        assert read == Conversation("talk.json", "why?", tuple(roles.values()))

    def test_a_name_is_the_speaker_and_everybody_hears_it(self, tmp_path: Path) -> None:
        """In group chats `role` is only the provider's word."""
        history = [
            {"role": "assistant", "name": "Geo_Expert", "content": "a"},
            {"role": "user", "name": "Computer_terminal", "content": ""},
        ]
        read = read_conversation(write(tmp_path, {"question": "q", "history": history}))
        assert read.messages == (Spoken("Geo_Expert", "a"), Spoken("Computer_terminal", ""))

    @pytest.mark.parametrize(
        ("history", "sentence"),
        [
            ([], "history: must be a list of {content, role, name?} with entries"),
            ([{"role": "human"}], 'history[0]: "content" must be text, not missing or null'),
            (
                [{"role": "human", "content": "x"}, {"role": 3, "content": "x"}],
                'history[1]: "role" must be text, not a number',
            ),
            (["hello"], 'history[0]: "content" must be text, not missing or null'),
            ([{"role": " ", "content": "x"}], "history[0]: the speaker's name is empty"),
        ],
    )
    def test_a_mistake_names_the_entry(
        self, tmp_path: Path, history: list[object], sentence: str
    ) -> None:
        """The error says file, entry and what is allowed."""
        with pytest.raises(ReaderMistake) as raised:
            read_conversation(write(tmp_path, {"question": "q", "history": history}))
        assert str(raised.value) == f"talk.json: {sentence}"

    def test_real_logs_read_whole(self) -> None:
        """Every entry of every real log is read, and spoken messages stay in order."""
        given = os.environ.get("UNDIVIDED_WHO_AND_WHEN")
        folder = Path(given) if given else ROOT.parent / "shared" / "data" / "who_and_when"
        files = sorted(folder.glob("*/*.json"))
        if not files:
            pytest.skip("no recorded conversations: set UNDIVIDED_WHO_AND_WHEN to their folder")
        for file in files:
            history = json.loads(file.read_text("utf-8"))["history"]
            read = read_conversation(file)
            assert [said.content for said in read.messages] == [e["content"] for e in history]
            assert plan_rehearsal(read).left_out == 0


class TestOpenAiChat:
    """Chat messages in three containers."""

    MESSAGES: tuple[dict[str, Any], ...] = (
        {"role": "system", "content": "A café."},
        {"role": "user", "name": "Mirela", "content": [{"type": "text", "text": "Hi"}]},
        {"role": "assistant", "name": "planner", "reasoning_content": "hm", "content": "Yes"},
        {"role": "user", "content": "and?"},
        {"role": "assistant", "content": "done"},
    )
    READ = (
        Spoken("Mirela", "Hi", person=True),
        Spoken("planner", "hm", thought=True),
        Spoken("planner", "Yes"),
        Spoken("user", "and?", person=True),
        Spoken("assistant", "done"),
    )

    @pytest.mark.parametrize("container", ["list", "object", "lines"])
    def test_list_object_and_lines_read_alike(self, tmp_path: Path, container: str) -> None:
        """The speaker is the name, else the role; opening instructions are the question."""
        listed = list(self.MESSAGES)
        file = {
            "list": lambda: write(tmp_path, listed),
            "object": lambda: write(tmp_path, {"messages": listed}),
            "lines": lambda: write(tmp_path, *listed),
        }[container]()
        read = read_conversation(file)
        assert (read.question, read.messages) == ("A café.", self.READ)

    def test_a_name_that_also_assists_is_no_person(self, tmp_path: Path) -> None:
        """A group chat's log shows all but one agent as `user`."""
        messages = [
            {"role": "user", "name": "writer", "content": "a"},
            {"role": "assistant", "name": "writer", "content": "b"},
        ]
        read = read_conversation(write(tmp_path, messages))
        assert [said.person for said in read.messages] == [False, False]

    def test_a_message_that_only_calls_a_tool_is_spoken_to_it(self, tmp_path: Path) -> None:
        """Its content is the calls, so that nothing of the log is lost."""
        calls = [{"id": "1", "function": {"name": "search", "arguments": "{}"}}]
        messages = [
            {"role": "assistant", "content": None, "tool_calls": calls},
            {"role": "tool", "tool_call_id": "1", "content": "found"},
        ]
        first, second = read_conversation(write(tmp_path, messages)).messages
        assert (first.addressed_to, json.loads(first.content)) == ("search", calls)
        assert second == Spoken("tool", "found")

    @pytest.mark.parametrize(
        ("messages", "sentence"),
        [
            (
                [{"role": "boss", "content": "x"}],
                '[0]: "role" must be one of system, developer, user, assistant, tool, function',
            ),
            (
                [{"role": "user"}],
                '[0]: "content" must be text or a list of parts, not missing or null',
            ),
            ([{"role": "user", "content": "x", "name": " "}], '[0]: "name" must not be empty'),
            (
                [{"role": "user", "content": [3]}],
                '[0]: a part of "content" must be an object with a "type"',
            ),
            (
                [{"role": "system", "content": "x"}],
                "has no message of role user, assistant or tool",
            ),
        ],
    )
    def test_a_mistake_names_the_message(
        self, tmp_path: Path, messages: list[object], sentence: str
    ) -> None:
        """The error says file, message and what is allowed."""
        with pytest.raises(ReaderMistake) as raised:
            read_conversation(write(tmp_path, messages))
        assert str(raised.value) == f"talk.json: {sentence}"


def event(type_: str, /, **data: object) -> dict[str, object]:
    """An exported event, with the envelope that readers pass over."""
    return {"position": "1-1", "id": "e", "stream": "s", "version": 1, "type": type_, "data": data}


def accepted(item: str, content: str, **sender: str) -> dict[str, object]:
    """A stimulus in a mailbox."""
    payload = {"content": content}
    return event(
        "item.accepted", item_id=item, source_type="x", payload=payload, sender=sender, seq=1
    )


def started(turn: str, agent: str, item: str) -> dict[str, object]:
    """A turn about one item."""
    told = f"told of {item}"
    return event(
        "turn.started", turn_id=turn, session_id="s", agent_id=agent, item_ids=[item], input=told
    )


class TestOwnExport:
    """What `undivided export` wrote."""

    HEADER: ClassVar = {"undivided-export": 1, "of": "agent"}

    def test_turns_become_what_was_heard_thought_and_said(self, tmp_path: Path) -> None:
        """Working memory that the model wrote is a thought; the last response is the message."""
        note = {
            "id": "c",
            "tool": "update_working_memory",
            "args": {"key": "k", "content": "hm"},
        }
        read = read_conversation(
            write(
                tmp_path,
                self.HEADER,
                event("agent.created", agent_id="a1", name="planner"),
                accepted("i1", "hello", id="m", name="Mirela", role="user"),
                started("t1", "a1", "i1"),
                event("model.responded", turn_id="t1", text="", calls=[note]),
                event("tool_call.finished", turn_id="t1", call_id="c", tool="x", content="noted"),
                event("model.responded", turn_id="t1", text="hi", calls=[]),
                event("turn.ended", turn_id="t1", outcome={"type": "completed", "reply": "hi"}),
            )
        )
        assert read.messages == (
            Spoken("Mirela", "hello", addressed_to="planner", person=True),
            Spoken("planner", "hm", thought=True),
            Spoken("planner", "hi"),
        )

    def test_a_message_between_exported_agents_stands_once(self, tmp_path: Path) -> None:
        """The sender's reply and the reader's input are the same message."""
        read = read_conversation(
            write(
                tmp_path,
                self.HEADER,
                accepted("i1", "start", role="system"),
                started("t1", "a1", "i1"),
                event("model.responded", turn_id="t1", text="to you", calls=[]),
                accepted("i2", "to you", id="a1", role="agent"),
                started("t2", "a2", "i2"),
                event("model.responded", turn_id="t2", text="thanks", calls=[]),
            )
        )
        assert read.question == "start"
        assert read.messages == (Spoken("a1", "to you"), Spoken("a2", "thanks"))

    @pytest.mark.parametrize(
        ("line", "sentence"),
        [
            ("hello", "line 2: must be an event {type, data, ...}, not text"),
            (
                {"type": "turn.started", "data": {}},
                "line 2: turn.started: Object missing required field `turn_id`",
            ),
        ],
    )
    def test_a_mistake_names_the_line(self, tmp_path: Path, line: object, sentence: str) -> None:
        """The error says file, line and what is missing."""
        with pytest.raises(ReaderMistake) as raised:
            read_conversation(write(tmp_path, self.HEADER, line))
        assert str(raised.value) == f"talk.json: {sentence}"

    def test_another_version_is_refused(self, tmp_path: Path) -> None:
        """An export of a newer shape is not guessed at."""
        with pytest.raises(ReaderMistake, match='must be a header with "undivided-export": 1'):
            read_conversation(write(tmp_path, {"undivided-export": 2}, event("x")))


class TestAnyFile:
    """What holds before a format is known."""

    def test_the_content_decides_and_the_option_overrides(self, tmp_path: Path) -> None:
        """A file with both fields is what the caller says it is."""
        message = {"role": "user", "content": "m"}
        file = write(tmp_path, {"messages": [message], "history": [message]})
        assert read_conversation(file).messages[0].person is False
        assert read_conversation(file, "openai-chat").messages[0].person is True

    def test_lone_surrogates_and_nul_survive(self, tmp_path: Path) -> None:
        """Real logs contain them."""
        strange = "a\x00b\ud800c\u2028d"
        read = read_conversation(write(tmp_path, [{"role": "user", "content": strange}]))
        assert read.messages[0].content == strange

    @pytest.mark.parametrize(
        ("content", "sentence"),
        [
            (b" \n", "talk.json: is empty; a JSON document or JSONL was expected"),
            (b"\xff{}", "is not UTF-8, which it must be"),
            (b'{"history": [\n{"role" "x"}]}', "talk.json: line 2: is not JSON"),
            (b'{"role": "user", "content": "x"}\n{"role":', "talk.json: line 2: is not JSON"),
            (b"[" * 100_000, "talk.json: is nested too deeply"),
            (b"3", "talk.json: is none of the known formats"),
            (b'{"a": 1}\n{"b": 2}', "talk.json: is none of the known formats"),
        ],
    )
    def test_what_is_no_conversation_is_told_in_one_sentence(
        self, tmp_path: Path, content: bytes, sentence: str
    ) -> None:
        """Nothing but a ReaderMistake comes out of a bad file."""
        file = tmp_path / "talk.json"
        file.write_bytes(content)
        with pytest.raises(ReaderMistake) as raised:
            read_conversation(file)
        assert sentence in str(raised.value)

    def test_a_missing_file_and_an_unknown_format_are_told(self, tmp_path: Path) -> None:
        """Both sentences say what was asked."""
        with pytest.raises(ReaderMistake, match="cannot be read"):
            read_conversation(tmp_path / "none.json")
        file = write(tmp_path, [{"role": "user", "content": "x"}])
        with pytest.raises(ReaderMistake, match=r"undivided, who-and-when, openai-chat, not 'csv'"):
            read_conversation(file, "csv")


def test_the_shipped_example_has_persons_agents_and_thoughts() -> None:
    """The README runs it."""
    read = read_conversation(ROOT / "docs" / "examples" / "repair-evening.jsonl")
    assert {said.speaker for said in read.messages if said.person} == {"Mirela"}
    plan = plan_rehearsal(read)
    assert (plan.messages, len(plan.agents), len(plan.turns), plan.left_out) == (15, 4, 12, 0)
