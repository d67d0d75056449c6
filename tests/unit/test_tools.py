"""Tools: who sees which, what a call means, and that every call ends in an outcome."""

from __future__ import annotations

import asyncio
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from undivided.domain.memory import NoteMemory
from undivided.domain.scenarios import SCENARIOS
from undivided.domain.tooling import Acts, Raised, Returned, Suspends, ToolOutcome
from undivided.domain.waits import Sleep
from undivided.workers.tools import Tool, ToolContext, Tools, blocking, run_tool
from undivided.workers.tools.running import RESULT_LIMIT, cut
from undivided.workers.tools.tool import EVERYWHERE, Run, parameters

CONTEXT = ToolContext("ada", "ses_1", "trn_1", "call_1", "key_1", datetime(2026, 1, 1, tzinfo=UTC))


async def call(name: str, args: dict[str, Any], timeout_s: float = 30) -> ToolOutcome:
    return await run_tool(Tools(test_tools=True).resolve(name, args), CONTEXT, args, timeout_s)


def tool(run: Run) -> Tool:
    return Tool("probe", "", parameters(()), "pure", "never", EVERYWHERE, run)


class TestRegistry:
    """A request offers what its context and its agent allow."""

    def test_built_in_tools_are_everywhere(self) -> None:
        for scenario in set(SCENARIOS) - {"deliberation"}:
            names = [tool.name for tool in Tools(test_tools=False).for_context(scenario, None)]
            assert names[0] == "sleep"

    def test_test_tools_only_where_asked_for(self) -> None:
        with_them = {tool.name for tool in Tools(test_tools=True).for_context("chat", None)}
        without = {tool.name for tool in Tools(test_tools=False).for_context("chat", None)}
        assert with_them - without == {
            "test_sleep", "test_append", "test_fail", "test_return", "test_big",
            "test_sleep_pure", "test_sleep_idempotent", "test_sleep_once",
            "test_append_pure", "test_append_idempotent", "test_append_once",
        }  # fmt: skip

    def test_an_agents_own_list_narrows(self) -> None:
        tools = Tools(test_tools=True).for_context("chat", ("sleep", "unheard_of"))
        assert [tool.name for tool in tools] == ["sleep"]

    def test_another_context_does_not_see_a_tool(self) -> None:
        narrow = Tool("narrow", "", {}, "pure", "never", frozenset({"run"}), blocking(_nothing))
        tools = Tools(test_tools=False, more=[narrow])
        assert narrow in tools.for_context("run", None)
        assert narrow not in tools.for_context("chat", None)


class TestEffects:
    """The effect of a call is known before it runs."""

    @pytest.mark.parametrize("effect", ["pure", "idempotent", "once"])
    @pytest.mark.parametrize("name", ["test_append", "test_sleep"])
    def test_the_argument_picks_the_effect(self, name: str, effect: str) -> None:
        tools = Tools(test_tools=True)
        assert tools.resolve(name, {"effect": effect}).effect == effect
        assert tools.resolve(f"{name}_{effect}", {}).effect == effect

    def test_append_is_once_unless_it_says_otherwise(self) -> None:
        tools = Tools(test_tools=True)
        assert tools.resolve("test_append", {}).effect == "once"
        assert tools.resolve("test_append", {"effect": ["odd"]}).effect == "once"

    async def test_a_variant_takes_no_other_effect(self, tmp_path: Path) -> None:
        path = tmp_path / "w"
        args = {"path": str(path), "line": "x", "effect": "pure"}
        assert "must be one of" in _message(await call("test_append_once", args))
        assert not path.exists()


class TestAbsentTools:
    """A call of a tool that is not there gets a result, too."""

    async def test_unknown(self) -> None:
        message = _message(await call("fly", {"to": "the moon"}))
        assert message.startswith("there is no tool 'fly' here; there are sleep, notify_user")

    async def test_not_offered(self) -> None:
        tools = Tools(test_tools=True)
        offered = tools.for_context("chat", ("sleep",))
        absent = tools.resolve("test_fail", {}, offered)
        assert "there are sleep" in _message(await run_tool(absent, CONTEXT, {}, 1))


class TestBuiltIn:
    """What every agent can do."""

    async def test_sleep_suspends(self) -> None:
        assert await call("sleep", {"seconds": 90}) == Suspends(Sleep(90.0))

    async def test_working_memory_is_noted(self) -> None:
        outcome = await call("update_working_memory", {"key": "plan", "content": "go"})
        assert outcome == Acts(NoteMemory("plan", "go"))


class TestTestTools:
    """What outside checks drive turns with."""

    @pytest.mark.parametrize(("value", "content"), [("a", "a"), ({"b": [1]}, '{"b": [1]}')])
    async def test_return(self, value: object, content: str) -> None:
        assert await call("test_return", {"value": value}) == Returned(content)

    async def test_fail(self) -> None:
        assert await call("test_fail", {"message": "no"}) == Raised("no")

    async def test_big(self) -> None:
        assert await call("test_big", {"bytes": 1000}) == Returned("x" * 1000)

    async def test_too_big_is_cut_and_says_so(self) -> None:
        outcome = await call("test_big", {"bytes": RESULT_LIMIT + 5})
        assert isinstance(outcome, Returned)
        assert outcome.content.startswith("x" * RESULT_LIMIT + "\n[cut off: 5 of ")

    async def test_sleep_takes_its_time_and_can_be_cancelled(self) -> None:
        assert await call("test_sleep", {"seconds": 0}) == Returned("slept 0 s")
        sleeping = asyncio.create_task(call("test_sleep", {"seconds": 600}))
        await asyncio.sleep(0)
        sleeping.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sleeping

    async def test_append_to_a_folder_that_is_not_there(self, tmp_path: Path) -> None:
        args = {"path": str(tmp_path / "no" / "w"), "line": "x"}
        assert "FileNotFoundError" in _message(await call("test_append", args))


class TestArguments:
    """Arguments that do not fit are answered with what is allowed; the tool does not run."""

    @pytest.mark.parametrize(
        ("name", "args", "words"),
        [
            ("sleep", {}, ["must have 'seconds'", "allowed are seconds"]),
            ("sleep", {"seconds": "long"}, ["'seconds' must be of type number", '"long"']),
            ("sleep", {"seconds": True}, ["of type number"]),
            ("sleep", {"seconds": -1}, ["at least 0", "-1"]),
            ("sleep", {"seconds": float("nan")}, ["at least 0", "NaN"]),
            ("sleep", {"seconds": 1, "why": 2}, ["must not have 'why'"]),
            ("update_working_memory", {"key": "", "content": "x"}, ["at least 1 characters"]),
            ("test_append", {"path": "x", "line": "y", "effect": "maybe"}, ["must be one of"]),
            ("test_big", {"bytes": 1.5}, ["of type integer"]),
        ],
    )
    async def test_is_named(self, name: str, args: dict[str, Any], words: list[str]) -> None:
        message = _message(await call(name, args))
        assert message.startswith(f"{name} was not run: ")
        for word in words:
            assert word in message

    async def test_nested_schemas(self) -> None:
        nested = {
            "type": "object",
            "properties": {
                "to": {"type": "array", "maxItems": 2, "items": {"type": ["string", "null"]}}
            },
        }
        probe = Tool("probe", "", nested, "pure", "never", EVERYWHERE, blocking(_nothing))
        assert await run_tool(probe, CONTEXT, {"to": ["a", None]}, 1) == Returned("")
        wrong = _message(await run_tool(probe, CONTEXT, {"to": ["a", 1]}, 1))
        assert "'to[1]' must be of type string or null; got 1" in wrong
        assert "at most 2" in _message(await run_tool(probe, CONTEXT, {"to": ["a"] * 3}, 1))


class TestRunning:
    """A tool may raise, hang or block; the turn does not."""

    async def test_an_exception_is_an_outcome(self) -> None:
        def explode(_context: ToolContext, _args: dict[str, Any]) -> ToolOutcome:
            raise LookupError("nothing there")

        outcome = await run_tool(tool(blocking(explode)), CONTEXT, {}, 1)
        assert outcome == Raised("probe failed: LookupError: nothing there")

    async def test_a_timeout_is_an_outcome(self) -> None:
        outcome = await call("test_sleep", {"seconds": 600}, timeout_s=0.01)
        assert outcome == Raised("test_sleep did not end within 0.01 s and was stopped")

    async def test_a_tools_own_timeout_is_not_ours(self) -> None:
        def give_up(_context: ToolContext, _args: dict[str, Any]) -> ToolOutcome:
            raise TimeoutError("the other side was silent")

        message = _message(await run_tool(tool(blocking(give_up)), CONTEXT, {}, 60))
        assert message == "probe failed: TimeoutError: the other side was silent"

    async def test_a_blocking_tool_leaves_the_loop_free(self) -> None:
        """The tool waits for something that only a free loop can do."""
        freed = threading.Event()

        def block(_context: ToolContext, _args: dict[str, Any]) -> ToolOutcome:
            return Returned(str(freed.wait(20)))

        asyncio.get_running_loop().call_later(0.01, freed.set)
        started = time.monotonic()
        assert await run_tool(tool(blocking(block)), CONTEXT, {}, 30) == Returned("True")
        assert time.monotonic() - started < 20

    @given(st.text(st.characters(codec=None), max_size=60), st.integers(1, 80))
    def test_cutting_keeps_whole_characters(self, text: str, limit: int) -> None:
        size = len(text.encode("utf-8", "surrogatepass"))
        kept = cut(text, limit)
        if size <= limit:
            assert kept == text
            return
        head = kept[: kept.rindex("\n[cut off: ")]
        missing = int(kept[len(head) :].split(" ")[2])
        assert text.startswith(head)
        assert len(head.encode("utf-8", "surrogatepass")) == size - missing <= limit


def _nothing(_context: ToolContext, _args: dict[str, Any]) -> ToolOutcome:
    return Returned("")


def _message(outcome: ToolOutcome) -> str:
    assert isinstance(outcome, Raised)
    return outcome.message
