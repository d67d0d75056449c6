"""One question to the model instead of a deliberation: policy `triage` is `mini`."""

from __future__ import annotations

import json

import pytest

from tests.races.hand import hired
from tests.races.staging import Stage
from tests.races.test_deliberation import several
from tests.support.lives import create
from undivided.domain.events import sessions as s
from undivided.domain.events import triage as t
from undivided.domain.mini_triage import ROUNDS
from undivided.store.log import Log
from undivided.store.settings import Settings


class TestMini:
    """One question instead of a conversation: policy `triage` is `mini`."""

    async def test_169_the_choice_is_in_the_answer(
        self, log: Log, stage: Stage, settings: Settings
    ) -> None:
        """With thoughts and prose around it."""
        await create(log, "ada", triage="mini")
        ids = await several(log, 3)
        choice = {
            "processItemId": ids[2], "deferItemIds": [ids[0]], "dropItemIds": [ids[1]],
            "reasoning": "last",
        }  # fmt: skip
        said = f"<think>hm {{}}</think>I say {json.dumps(choice)} so."
        async with hired(settings) as hand:
            hand.model.words = {"deliberation": said}
            await hand.attend("ada")
            assert hand.model.inputs() == ["work 2", "work 0"]
        (applied,) = await stage.events(t.TriageApplied)
        assert (applied.primary, applied.deferred, applied.dropped) == (
            ids[2],
            (ids[0],),
            (ids[1],),
        )
        assert applied.decision.rule == "mini_triage"

    async def test_171_what_it_forgets_it_is_asked_once_more(
        self, log: Log, stage: Stage, settings: Settings
    ) -> None:
        """The same answer again is no better: it stands as it was."""
        await create(log, "ada", triage="mini")
        ids = await several(log, 3)
        async with hired(settings) as hand:
            hand.model.words = {
                "deliberation": f'{{"processItemId": "{ids[1]}", "reasoning": "so"}}'
            }
            await hand.attend("ada")
            assert hand.model.inputs() == ["work 1", "work 0", "work 2"]
        first, *_ = await stage.events(s.TurnEnded)
        assert first.responses == 2
        nudged = await stage.events(s.TurnNudged)
        assert nudged[0].reason == "items_forgotten"

    @pytest.mark.parametrize("said", ["", "nothing of use", '{"processItemId": "mbx_', "{}", "[1]"])
    async def test_nonsense_leaves_it_to_order(
        self, log: Log, settings: Settings, said: str
    ) -> None:
        """Nothing, half a JSON, no choice."""
        await create(log, "ada", triage="mini")
        await several(log, 2)
        async with hired(settings) as hand:
            hand.model.words = {"deliberation": said}
            await hand.attend("ada")
            assert hand.model.inputs() == ["work 0", "work 1"]

    async def test_172_it_looks_things_up_for_so_long(self, log: Log, settings: Settings) -> None:
        """Then it is asked without tools."""
        await create(log, "ada", triage="mini")
        await several(log, 2)
        async with hired(settings) as hand:
            hand.model.calls = [[("check_mailbox", {})] for _ in range(ROUNDS)]
            await hand.attend("ada")
            looking = [one for one in hand.model.asked if one.scenario == "deliberation"]
        assert [bool(one.tools) for one in looking] == [True] * ROUNDS + [False]
        assert {tool.name for tool in looking[0].tools} == {
            "check_mailbox", "recall_activity", "memory_search", "memory_search_longterm",
        }  # fmt: skip
        assert {(one.temperature, one.max_tokens) for one in looking} == {(0.1, 8192)}
