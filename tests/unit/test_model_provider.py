"""The model door to a provider, over real HTTP to a provider on loopback."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from pydantic_ai import models as library

from tests.unit.loopback_provider import (
    Fails,
    Provider,
    Says,
    provider,
    text,
    tool_call,
)
from tests.unit.requests import request
from undivided.domain.calls import call_id
from undivided.domain.dialogue import (
    AssistantSaid,
    ModelReply,
    ModelRequest,
    ToolAnswered,
    ToolCall,
    ToolSpec,
    Usage,
    UserSaid,
)
from undivided.domain.errors import ModelFailed
from undivided.store.settings import Config, ModelProfile, Price
from undivided.workers.model import Models

ONCE = {"max_retries": 0}


@pytest.fixture(autouse=True)
def _loopback_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Model requests are allowed here, for every profile has a loopback address."""
    monkeypatch.setattr(library, "ALLOW_MODEL_REQUESTS", True)
    monkeypatch.setenv("OPENAI_API_KEY", "not-a-key")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "not-a-key")
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


async def _no_recordings(digest: str) -> bytes:
    raise AssertionError(f"nobody asked for recording {digest}")


@asynccontextmanager
async def door(
    *answers: Says | Fails, model: str = "openai-chat:loop-1", **settings: Any
) -> AsyncIterator[tuple[Models, Provider]]:
    async with provider(*answers) as serving:
        profile = ModelProfile(
            model=model,
            settings={"base_url": serving.url, **ONCE, **settings},
            price=Price(input=1, output=10, cache=0.5),
        )
        models = Models(Config(models={"default": profile}), _no_recordings)
        try:
            yield models, serving
        finally:
            await models.aclose()


def unheard(_delta: str) -> None:
    """Nobody listens to the stream."""


async def ask(*answers: Says | Fails, **settings: Any) -> tuple[ModelReply, list[str]]:
    heard: list[str] = []
    async with door(*answers, **settings) as (models, _):
        return await models.complete(request(), heard.append), heard


async def failure(*answers: Says | Fails, **settings: Any) -> ModelFailed:
    with pytest.raises(ModelFailed) as raised:
        await ask(*answers, **settings)
    return raised.value


class TestReplies:
    """What a provider streams is what the reply holds."""

    async def test_text_streams_and_usage_is_priced(self) -> None:
        reply, heard = await ask(Says(text("Hel", "lo", "!")))
        assert "".join(heard) == reply.text == "Hello!"
        assert len(heard) == 3
        assert reply.model == "loop-1"
        assert reply.usage == Usage(
            100, 20, 40, requests=1, cost=(60 * 1 + 40 * 0.5 + 20 * 10) / 1e6
        )

    async def test_tool_calls_get_our_ids_whatever_the_provider_says(self) -> None:
        """Some servers give every call the same id; a session needs them apart."""
        answer = Says(
            (
                *text("wait"),
                *tool_call(0, "look", '{"at":', ' "x"}'),
                *tool_call(1, "sleep", '{"seconds": 1}'),
            ),
            "tool_calls",
        )
        reply, heard = await ask(answer)
        assert heard == ["wait"]
        assert reply.calls == (
            ToolCall(call_id(request(), 0), "look", {"at": "x"}),
            ToolCall(call_id(request(), 1), "sleep", {"seconds": 1}),
        )

    async def test_ollama_is_served_by_the_same_protocol(self) -> None:
        reply, _ = await ask(Says(text("hi")), model="ollama:llama3")
        assert reply.text == "hi"

    async def test_connections_are_shared(self) -> None:
        async with door(Says(text("hi"))) as (models, serving):
            replies = await asyncio.gather(
                *(models.complete(request(turn_id=str(n)), unheard) for n in range(8))
            )
        assert [reply.text for reply in replies] == ["hi"] * 8
        assert len(serving.asked) == 8


class TestRequests:
    """What a provider is asked is the whole history, in its own words."""

    ASKED = request(
        history=(
            UserSaid("look twice \ud800"),
            AssistantSaid("looking", (ToolCall("c1", "look", {}), ToolCall("c2", "look", {}))),
            ToolAnswered("c1", "look", "one"),
            ToolAnswered("c2", "look", "two"),
            AssistantSaid(""),
            UserSaid("and?"),
        ),
        tools=(ToolSpec("look", "Look around.", {"type": "object", "properties": {}}),),
    )

    async def test_history_tools_instructions_and_settings(self) -> None:
        async with door(Says(text("ok")), temperature=0.25, max_tokens=99) as (models, serving):
            await models.complete(self.ASKED, unheard)
        [asked] = serving.asked
        assert [message["role"] for message in asked["messages"]] == [
            "system", "user", "assistant", "tool", "tool", "user",
        ]  # fmt: skip
        system, user, assistant, one, two, _ = asked["messages"]
        assert system["content"] == "Be brief."
        assert user["content"] == "look twice \ufffd"
        assert [call["id"] for call in assistant["tool_calls"]] == ["c1", "c2"]
        assert (one["tool_call_id"], one["content"]) == ("c1", "one")
        assert (two["tool_call_id"], two["content"]) == ("c2", "two")
        assert asked["tools"][0]["function"]["name"] == "look"
        assert asked["temperature"] == 0.25
        assert 99 in (asked.get("max_tokens"), asked.get("max_completion_tokens"))
        assert "base_url" not in asked

    @pytest.mark.parametrize(
        "history", [(), (UserSaid("before"), AssistantSaid("answered"))], ids=["empty", "answered"]
    )
    async def test_there_is_always_something_to_answer(self, history: tuple[Any, ...]) -> None:
        asked: ModelRequest = request(history=history, newest_input="now")
        async with door(Says(text("ok"))) as (models, serving):
            await models.complete(asked, unheard)
        assert serving.asked[0]["messages"][-1] == {"role": "user", "content": "now"}

    @pytest.mark.parametrize("model", ["openai:loop-1", "anthropic:loop-1"])
    async def test_other_protocols_take_the_same_history(self, model: str) -> None:
        async with door(Fails(429), model=model) as (models, serving):
            with pytest.raises(ModelFailed) as raised:
                await models.complete(self.ASKED, unheard)
        assert raised.value.kind == "rate_limited"
        [asked] = serving.asked
        assert asked["stream"] is True
        said = json.dumps(asked)
        for part in ("Be brief.", "looking", "c1", "c2", "one", "two", "and?", "Look around."):
            assert part in said


class TestFailures:
    """Whatever goes wrong on the other side has a kind."""

    @pytest.mark.parametrize(
        ("status", "kind"),
        [
            (400, "refused"),
            (401, "refused"),
            (402, "refused"),
            (404, "refused"),
            (408, "timeout"),
            (429, "rate_limited"),
            (500, "server_error"),
            (503, "server_error"),
            (529, "server_error"),
        ],
    )
    async def test_status(self, status: int, kind: str) -> None:
        failed = await failure(Fails(status, {"error": {"message": "because"}}))
        assert failed.kind == kind

    async def test_exhausted_quota_is_not_a_rate_limit(self) -> None:
        """Waiting would not help."""
        error = {"message": "pay", "code": "insufficient_quota", "type": "insufficient_quota"}
        assert (await failure(Fails(429, {"error": error}))).kind == "refused"

    async def test_credentials_are_not_repeated(self) -> None:
        error = {"message": "Incorrect API key provided: sk-secret"}
        failed = await failure(Fails(401, {"error": error}))
        assert failed.detail == "the provider does not accept our credentials for this model"

    async def test_the_provider_asks_again_by_itself_if_the_profile_says_so(self) -> None:
        reply, _ = await ask(Fails(500), Says(text("better")), max_retries=1)
        assert reply.text == "better"

    async def test_silence(self) -> None:
        assert (await failure(Says((), hangs=True), timeout=0.2)).kind == "timeout"

    async def test_silence_in_mid_stream(self) -> None:
        failed = await failure(Says(text("Hel"), hangs=True), timeout=0.2)
        assert failed.kind == "timeout"

    async def test_the_whole_request_has_a_deadline(self) -> None:
        failed = await failure(Says(text("Hel"), hangs=True), request_timeout=0.2)
        assert failed.kind == "timeout"

    async def test_torn_in_mid_stream(self) -> None:
        assert (await failure(Says(text("Hel"), torn=True))).kind == "server_error"

    async def test_cut_off_cleanly(self) -> None:
        """Half a reply that ends as if it were whole is not a reply."""
        assert (await failure(Says(text("Hel"), finish=None))).kind == "server_error"

    async def test_a_server_that_never_says_why_it_ends_can_be_configured(self) -> None:
        reply, _ = await ask(Says(text("Hel"), finish=None), requires_finish_reason=False)
        assert reply.text == "Hel"

    async def test_a_setting_that_nobody_knows_is_not_ignored(self) -> None:
        failed = await failure(Says(text("hi")), temprature=0.5)
        assert failed.kind == "refused"
        assert "does not know the setting temprature; it knows base_url, " in failed.detail

    async def test_a_setting_of_one_provider_passes(self) -> None:
        async with door(Says(text("hi")), openai_user="ada") as (models, serving):
            await models.complete(request(), unheard)
        assert serving.asked[0]["user"] == "ada"

    async def test_nobody_there(self) -> None:
        async with provider(Says(())) as gone:
            url = gone.url
        failed = await failure(Says(()), base_url=url)
        assert failed.kind == "server_error"

    async def test_content_filter(self) -> None:
        assert (await failure(Says(text("I"), "content_filter"))).kind == "refused"

    async def test_refusal(self) -> None:
        assert (await failure(Says(({"refusal": "I will not"},)))).kind == "refused"

    @pytest.mark.parametrize("arguments", ['{"at": "x', "[1]", "look!"])
    async def test_arguments_that_are_no_object(self, arguments: str) -> None:
        failed = await failure(Says(tool_call(0, "look", arguments), "tool_calls"))
        assert (failed.kind, "the arguments of look" in failed.detail) == ("malformed", True)

    async def test_cancelling_reaches_the_provider(self) -> None:
        heard = asyncio.Event()
        async with door(Says(text("Hel"), hangs=True)) as (models, serving):
            asking = asyncio.create_task(models.complete(request(), lambda _: heard.set()))
            await asyncio.wait_for(heard.wait(), 20)
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking
            await asyncio.wait_for(serving.left.wait(), 20)

    async def test_forbidden_requests_stay_forbidden(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(library, "ALLOW_MODEL_REQUESTS", False)
        with pytest.raises(RuntimeError, match="not allowed"):
            await ask(Says(text("hi")))
