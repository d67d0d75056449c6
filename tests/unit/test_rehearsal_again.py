"""An agent's history played again: the first difference is found and named."""

from __future__ import annotations

from typing import Any

import pytest

from undivided.cli.readers.own_export import Export, RecordedTurn, read_export
from undivided.cli.readers.source import Entry, Source
from undivided.cli.rehearse.again import (
    Divergence,
    by_session,
    delivery,
    first_divergence,
    recorded_answers,
)


def export(*events: tuple[str, dict[str, Any]]) -> Export:
    """The transcripts of some events."""
    header = Entry("line 1", {"undivided-export": 1})
    lines = (Entry("event", {"type": name, "data": data}) for name, data in events)
    return read_export(Source("agent", lines=(header, *lines)))


def story(
    told: str = "go",
    noted: str = "noted",
    said: str = "gone",
    session: str = "s1",
    outcome: str = "completed",
) -> list[RecordedTurn]:
    """One turn: a stimulus, a tool call, its result, a reply."""
    call = {"id": "c", "tool": "look", "args": {"at": "it"}}
    turn = {"turn_id": f"t-{session}"}
    payload = {"content": told, "extra": {"channelKey": "k"}}
    return list(
        export(
            (
                "item.accepted",
                {
                    "item_id": "i",
                    "source_type": "a2a_message",
                    "payload": payload,
                    "sender": {"id": "lead", "role": "agent"},
                    "priority": 1,
                },
            ),
            (
                "turn.started",
                turn | {"session_id": session, "agent_id": "a", "item_ids": ["i"], "input": told},
            ),
            ("model.responded", turn | {"text": "", "calls": [call]}),
            (
                "tool_call.finished",
                turn | {"call_id": "c", "tool": "look", "content": noted},
            ),
            ("model.responded", turn | {"text": said, "calls": []}),
            ("turn.ended", turn | {"outcome": {"type": outcome}}),
        ).turns
    )


class TestDivergence:
    """Two tellings of one session, step by step."""

    def test_the_same_history_does_not_diverge(self) -> None:
        """Ids of turns and calls are fresh each time and do not count."""
        assert first_divergence("s", story(), story()) is None

    @pytest.mark.parametrize(
        ("now", "what", "recorded", "is_"),
        [
            (story(told="stop"), "input", "go", "stop"),
            (story(noted="failed"), "result of look", "noted", "failed"),
            (story(said="stayed"), "answer", '["gone"]', '["stayed"]'),
            ([], "input", "go", "nothing"),
        ],
    )
    def test_the_first_difference_is_named(
        self, now: list[RecordedTurn], what: str, recorded: str, is_: str
    ) -> None:
        """Whatever follows from it is not."""
        found = first_divergence("s", story(), now)
        assert found == Divergence("s", 1, what, recorded, is_)

    def test_a_turn_too_many_is_a_divergence(self) -> None:
        """History may also go on where it had ended."""
        found = first_divergence("s", story(), [*story(), *story()])
        assert found == Divergence("s", 2, "nothing", "nothing", "go")


def test_answers_are_bound_to_the_input_they_answered() -> None:
    """So that the model door itself refuses another request."""
    (turn,) = story()
    assert list(recorded_answers(turn)) == [
        {"expect": "go", "reply": "", "calls": [{"tool": "look", "args": {"at": "it"}}]},
        {"expect": "go", "reply": "gone", "calls": []},
    ]


def test_a_stimulus_is_delivered_as_it_was() -> None:
    """Payload, sender and priority are the recorded ones; what was absent stays absent."""
    (turn,) = story()
    assert delivery(turn.stimuli[0], "ses_1") == {
        "sourceType": "a2a_message",
        "payload": {"content": "go", "extra": {"channelKey": "k"}},
        "metadata": {"senderId": "lead", "senderRole": "agent"},
        "sessionId": "ses_1",
        "priority": 1,
    }


def test_sessions_are_told_apart() -> None:
    """Each is played by an agent of its own."""
    turns = (*story(session="s1"), *story(session="s2"))
    assert {name: len(own) for name, own in by_session(Export(turns, {})).items()} == {
        "s1": 1,
        "s2": 1,
    }


@pytest.mark.parametrize("outcome", ["failed", "timed_out", "cancelled", "interrupted"])
def test_a_turn_that_was_broken_off_is_not_played_again(outcome: str) -> None:
    """No recorded answer could break it off once more."""
    turns = (*story(outcome=outcome), *story(session="s2", outcome="incomplete"))
    assert by_session(Export(turns, {})) == {"s2": [turns[1]]}
