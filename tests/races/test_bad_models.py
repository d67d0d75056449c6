"""Models that fail in every way there is: no item is left in a turn, and people are told."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic_ai import models as library

from tests.races.hand import hired
from tests.races.staging import Stage
from tests.races.test_interrupts import send
from tests.support.lives import BY
from tests.unit.loopback_provider import Says, provider, text
from undivided.domain import agents
from undivided.domain.agents import CreateAgent
from undivided.domain.events.items import AgentIncomplete, NoticePosted
from undivided.domain.policy import DEFAULT_POLICY
from undivided.domain.recorded import agent_stream
from undivided.domain.state.agent import Idle
from undivided.store.config import default_config
from undivided.store.log import Addition, Log
from undivided.store.settings import Config, ModelProfile, Settings
from undivided.workers.model import Models

AT_ONCE = {"retryBackoffS": [0], "maxDeliveryAttempts": 3}


async def _no_recordings(digest: str) -> bytes:
    raise AssertionError(f"nobody asked for recording {digest}")


async def create(log: Log, model: str) -> None:
    """An agent that is tried again without a pause."""
    command = CreateAgent(agent_id="ada", name="ada", model=model, policy=AT_ONCE)
    events = agents.create(DEFAULT_POLICY, command)
    await log.append([Addition(agent_stream("ada"), 0, events)], BY)


async def work_off(log: Log, settings: Settings, config: Config) -> None:
    """Attend until nothing waits; the models are real ones."""
    async with hired(settings) as hand:
        models = Models(config, _no_recordings)
        hand.model.complete = models.complete  # type: ignore[method-assign]
        while (agent := (await log.view("ada")).agent) and agent.waiting:
            await hand.attend("ada")
        await models.aclose()
    assert agent is not None
    assert isinstance(agent.attention, Idle)


async def nothing_is_left(stage: Stage) -> None:
    """Each item is over, and told of once."""
    assert await stage.ask("SELECT status, count(*) FROM items GROUP BY 1") == [("dead_letter", 2)]
    assert len(await stage.events(AgentIncomplete)) == 2
    assert len(await stage.events(NoticePosted)) == 2


@pytest.mark.parametrize(
    "kind", ["timeout", "rate_limited", "server_error", "refused", "malformed"]
)
async def test_a_failure_of_every_kind(
    log: Log, stage: Stage, settings: Settings, tmp_path: Path, kind: str
) -> None:
    """A person's message and an agent's alike."""
    script = tmp_path / "bad.yaml"
    script.write_text(f"rules:\n  - {{error: {kind}}}\n", encoding="utf-8")
    await create(log, f"script:{script}")
    await send(log, "human_chat", "hello", role="user")
    await send(log, "a2a_message", "work")
    await work_off(log, settings, default_config())
    await nothing_is_left(stage)


async def test_a_provider_that_breaks_off_in_mid_stream(
    log: Log, stage: Stage, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half a reply is not a reply, whatever was shown of it."""
    monkeypatch.setattr(library, "ALLOW_MODEL_REQUESTS", True)
    monkeypatch.setenv("OPENAI_API_KEY", "not-a-key")
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    async with provider(Says(text("Hel", "lo"), torn=True)) as serving:
        profile = ModelProfile(
            model="openai-chat:loop-1", settings={"base_url": serving.url, "max_retries": 0}
        )
        await create(log, "loop")
        await send(log, "human_chat", "hello", role="user")
        await send(log, "a2a_message", "work")
        await work_off(log, settings, Config(models={"loop": profile}))
        assert len(serving.asked) == 6
    await nothing_is_left(stage)
