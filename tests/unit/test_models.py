"""The model door without a network: profiles, the offline model, scripts and rehearsals."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.requests import request
from undivided.domain.dialogue import ModelReply, ModelRequest, ToolSpec, Usage
from undivided.domain.errors import ModelFailed, NotFound, Unavailable
from undivided.domain.marker import COMPLETION_MARKER
from undivided.store.settings import Config, ModelProfile, Price
from undivided.workers.model import Models, priced
from undivided.workers.model_offline import answer_offline

RECORDING = json.dumps({"agents": {"ada": [{"expect": "hello", "reply": "recorded"}]}}).encode()
DIGEST = sha256(RECORDING).hexdigest()


async def recordings(digest: str) -> bytes:
    if digest == "down":
        raise Unavailable("the database is down")
    if digest != DIGEST:
        raise NotFound(f"there is no recording {digest}")
    return RECORDING


def write(path: Path, text: str) -> None:
    path.write_text(text)


def unheard(_delta: str) -> None:
    """Nobody listens to the stream."""


def models(**profiles: str) -> Models:
    config = {name: ModelProfile(model=model) for name, model in profiles.items()}
    return Models(Config(models={"default": ModelProfile(model="offline"), **config}), recordings)


async def ask(door: Models, asked: ModelRequest) -> tuple[ModelReply, list[str]]:
    heard: list[str] = []
    return await door.complete(asked, heard.append), heard


async def refusal(door: Models, asked: ModelRequest) -> str:
    with pytest.raises(ModelFailed) as raised:
        await door.complete(asked, unheard)
    assert raised.value.kind == "refused"
    return raised.value.detail


class TestProfiles:
    """A request names a profile of the config, or a whole model."""

    async def test_without_a_config_the_default_is_offline(self) -> None:
        reply, _ = await ask(models(), request())
        assert reply.model == "offline"

    async def test_a_whole_model_needs_no_profile(self, tmp_path: Path) -> None:
        path = tmp_path / "s.yaml"
        write(path, "rules: [{reply: hi}]")
        reply, _ = await ask(models(), request(profile=f"script:{path}"))
        assert (reply.text, reply.model) == ("hi", f"script:{path}")

    async def test_an_unknown_profile_is_refused(self) -> None:
        said = await refusal(models(fast="offline"), request(profile="slow"))
        assert "there is no model profile 'slow'; configured are default, fast" in said

    async def test_an_unknown_provider_is_refused(self) -> None:
        said = await refusal(models(), request(profile="nobody:nothing"))
        assert said.startswith("model 'nobody:nothing' cannot be used: ")

    def test_a_price_makes_a_cost(self) -> None:
        used = Usage(input_tokens=1_000, output_tokens=100, cache_tokens=400, requests=1)
        assert priced(used, None).cost is None
        price = Price(input=10, output=100, cache=1)
        assert priced(used, price).cost == pytest.approx((600 * 10 + 400 * 1 + 100 * 100) / 1e6)

    def test_the_library_is_loaded_only_for_a_provider(self) -> None:
        """Workers that need no provider start faster and stay smaller."""
        code = "import sys, undivided.workers.model; sys.exit('pydantic_ai' in sys.modules)"
        environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
        ended = subprocess.run([sys.executable, "-c", code], check=False, env=environment)
        assert ended.returncode == 0


class TestOffline:
    """The built-in model says what it is, echoes, and is the same every time."""

    async def test_it_echoes(self) -> None:
        reply, heard = await ask(models(), request(newest_input='say "hi"'))
        assert reply.text.startswith("This is the offline model: agent ada has no language model")
        assert reply.text.endswith('"say \\"hi\\"".')
        assert "".join(heard) == reply.text
        assert len(heard) > 2

    async def test_it_calls_no_tools(self) -> None:
        reply, _ = await ask(models(), request(tools=(ToolSpec("sleep", "", {}),)))
        assert reply.calls == ()

    async def test_nothing_said(self) -> None:
        reply, _ = await ask(models(), request(newest_input="  "))
        assert "Nothing was said to it" in reply.text

    async def test_much_said_is_cut(self) -> None:
        reply, _ = await ask(models(), request(newest_input="x" * 100_000))
        assert len(reply.text) < 2_300
        assert reply.text.endswith("and 98000 more characters.")

    async def test_it_ends_with_the_marker_where_asked_for(self) -> None:
        asked = request(instructions=f"End with {COMPLETION_MARKER}")
        reply, _ = await ask(models(), asked)
        assert reply.text.endswith(COMPLETION_MARKER)

    @given(st.text(st.characters(codec=None)))
    def test_any_input_has_one_answer(self, told: str) -> None:
        first, second = (
            asyncio.run(answer_offline(request(newest_input=told), unheard)) for _ in range(2)
        )
        assert first == second


class TestScripts:
    """A script model streams, waits, fails, and is read again when its file changes."""

    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        return tmp_path / "plan.yaml"

    async def test_the_reply_comes_in_its_chunks(self, path: Path) -> None:
        write(path, "rules: [{reply: abcdef, chunks: 3, usage: {input: 7}}]")
        reply, heard = await ask(models(default=f"script:{path}"), request())
        assert heard == ["ab", "cd", "ef"]
        assert (reply.text, reply.usage) == ("abcdef", Usage(input_tokens=7, requests=1))

    @pytest.mark.parametrize(
        "kind", ["timeout", "rate_limited", "server_error", "refused", "malformed"]
    )
    async def test_it_fails_as_told(self, path: Path, kind: str) -> None:
        write(path, f"rules:\n- error: {kind}\n")
        with pytest.raises(ModelFailed) as raised:
            await ask(models(default=f"script:{path}"), request())
        assert raised.value.kind == kind
        assert raised.value.detail == f"scripted by {path}, rule at line 2"

    async def test_a_delay_comes_before_the_first_token_and_can_be_cancelled(
        self, path: Path
    ) -> None:
        write(path, "rules: [{reply: late, delay: 3600}]")
        heard: list[str] = []
        waiting = asyncio.create_task(
            models(default=f"script:{path}").complete(request(), heard.append)
        )
        done, _ = await asyncio.wait([waiting], timeout=0.05)
        assert not done
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert heard == []

    async def test_a_changed_file_is_read_again(self, path: Path) -> None:
        door = models(default=f"script:{path}")
        for said in ("one", "another"):
            write(path, f"rules: [{{reply: {said}}}]")
            assert (await ask(door, request()))[0].text == said

    async def test_a_missing_file_is_refused(self, path: Path) -> None:
        said = await refusal(models(default=f"script:{path}"), request())
        assert said == f"{path} cannot be read: No such file or directory"


class TestRehearsals:
    """Recordings come from a file or from the store."""

    async def test_from_a_file(self, tmp_path: Path) -> None:
        path = tmp_path / "r.json"
        write(path, RECORDING.decode())
        reply, heard = await ask(models(default=f"rehearsal:{path}"), request())
        assert (reply.text, heard) == ("recorded", ["recorded"])

    async def test_from_the_store(self) -> None:
        reply, _ = await ask(models(), request(profile=f"rehearsal:recording:{DIGEST}"))
        assert reply.text == "recorded"

    async def test_a_difference_is_refused(self) -> None:
        asked = request(profile=f"rehearsal:recording:{DIGEST}", newest_input="hullo")
        assert "differs from the recorded one at character 1" in await refusal(models(), asked)

    async def test_an_unknown_recording_is_refused(self) -> None:
        said = await refusal(models(), request(profile="rehearsal:recording:ff"))
        assert said == "there is no recording ff"

    async def test_a_store_that_is_down_is_not_a_models_failure(self) -> None:
        with pytest.raises(Unavailable):
            await ask(models(), request(profile="rehearsal:recording:down"))
