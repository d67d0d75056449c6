"""How commands find the service and read its event stream."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from undivided.cli.client import DEFAULT_URL, Client, Unreachable, connect, find_url, route
from undivided.cli.sse import Decoder, ServerEvent

lines = st.text(st.characters(codec="utf-8", exclude_characters="\r\n"), min_size=1, max_size=8)
server_events = st.builds(
    ServerEvent,
    event=lines,
    data=st.lists(lines, min_size=1, max_size=3).map("\n".join),
    id=st.none() | lines,
)


def wire(event: ServerEvent) -> bytes:
    """An event as a server writes it, with a heartbeat in front."""
    fields = [f"event: {event.event}", *(f"data: {line}" for line in event.data.split("\n"))]
    if event.id is not None:
        fields.append(f"id: {event.id}")
    return (": still here\n\n" + "\n".join(fields) + "\n\n").encode()


class TestEventStream:
    """Server-sent events in pieces."""

    @given(st.lists(server_events, max_size=5), st.integers(1, 7))
    def test_events_are_the_same_however_the_stream_is_cut(
        self, events: list[ServerEvent], size: int
    ) -> None:
        """A piece may end anywhere, even inside a character."""
        content = b"".join(wire(event) for event in events)
        pieces = [content[at : at + size] for at in range(0, len(content), size)]
        decoder = Decoder()
        assert [event for piece in pieces for event in decoder.feed(piece)] == events

    def test_other_line_ends_of_unicode_do_not_end_a_line(self) -> None:
        """JSON may hold them unescaped."""
        (event,) = Decoder().feed('data: "a\u2028b\x85c"\r\n\r\n'.encode())
        assert event == ServerEvent("message", '"a\u2028b\x85c"')


class TestWhere:
    """Which service a command talks to."""

    def test_option_environment_run_file_default_in_this_order(self, tmp_path: Path) -> None:
        """The nearest to the person wins."""
        environ = {"UNDIVIDED_URL": "http://env:1/"}
        assert find_url(None, {}, tmp_path) == DEFAULT_URL
        (tmp_path / ".undivided").mkdir()
        (tmp_path / ".undivided" / "run.json").write_text(json.dumps({"url": "http://run:2"}))
        assert find_url(None, {}, tmp_path) == "http://run:2"
        assert find_url(None, environ, tmp_path) == "http://env:1"
        assert find_url("http://asked:3", environ, tmp_path) == "http://asked:3"

    @pytest.mark.parametrize("content", ["", "[]", '{"url": 3}'])
    def test_a_broken_run_file_is_passed_over(self, tmp_path: Path, content: str) -> None:
        """It may be half written."""
        (tmp_path / ".undivided").mkdir()
        (tmp_path / ".undivided" / "run.json").write_text(content)
        assert find_url(None, {}, tmp_path) == DEFAULT_URL

    def test_ids_from_people_are_quoted(self) -> None:
        """An id with a slash is one part of the path."""
        assert route("agents", "a/b ?", "mind") == "/agents/a%2Fb%20%3F/mind"


class TestUnreachable:
    """Nobody listens."""

    @pytest.fixture
    def closed_url(self) -> str:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            return f"http://127.0.0.1:{free.getsockname()[1]}"

    async def test_the_sentence_says_what_was_tried_and_what_to_do(self, closed_url: str) -> None:
        """For calls and for streams."""
        async with Client(closed_url) as client:
            with pytest.raises(Unreachable, match=f"cannot reach {closed_url} .*`undivided up`"):
                await client.get("/agents")
            with pytest.raises(Unreachable):
                await anext(client.events("/events/stream"))

    @pytest.mark.parametrize("url", ["localhost:8420", "http://", "http://127.0.0.1:99999", "x"])
    def test_an_address_that_is_none_is_told_alike(self, url: str) -> None:
        """A typing mistake is no traceback."""
        with pytest.raises(Unreachable, match="not an address like"):
            connect(url)
