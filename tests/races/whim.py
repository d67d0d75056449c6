"""A model, and a world around it, that do anything at all; what, is told by a seed."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from tests.races.hand import Hand, Model
from tests.support.lives import BY
from undivided.domain.approvals import Answer
from undivided.domain.dialogue import ModelReply, ModelRequest, ToolCall, Usage
from undivided.domain.errors import Full, ModelFailed, Rejected
from undivided.domain.events.items import Payload, Sender
from undivided.domain.mailbox import Accept
from undivided.domain.scenarios import DELIBERATION, JUDGE
from undivided.domain.script import completed
from undivided.domain.state.agent import Focused
from undivided.domain.stimuli import SenderRole
from undivided.store.commands import agents, approvals, sessions
from undivided.store.commands.accepting import accept_stimuli
from undivided.store.fresh import fresh_id
from undivided.store.settling import settle_approvals

KINDS = (
    "human_chat", "human_chat", "mention", "a2a_message", "task_comment", "task_comment",
    "requirement_update", "system_event", "review_request", "heartbeat", "task_notification",
    "callback_result",
)  # fmt: skip
WORDS = ("continue", "preempt", "cancel", "merge", "defer", "nonsense")
FAR_S = 3600.0


class Dies(BaseException):
    """The worker is gone in the middle of a model request; nothing of it is recorded."""


class World:
    """What can happen to one agent from outside, at any moment."""

    def __init__(self, hand: Hand, agent_id: str, random: Random) -> None:
        self.agent_id, self.random, self.items = agent_id, random, list[str]()
        self.log = hand.log
        self._outlet = hand.outlet

    async def happens(self) -> None:
        """One thing; most often something new arrives."""
        match self.random.randrange(20):
            case 0:
                await self.answers()
            case 1:
                await self.stops()
            case 2:
                await agents.pause(self._outlet, self.agent_id, BY)
            case 3:
                await agents.cancel_processing(self._outlet, self.agent_id, BY)
            case 4 if self.random.random() < 0.3:
                await agents.stop(self._outlet, self.agent_id, BY)
            case 5 | 6 | 7:
                await agents.start(self._outlet, self.agent_id, BY)
            case 8:
                await settle_approvals(self.log.database)
            case 9:
                await self.archives()
            case _:
                await self.arrives()

    async def arrives(self) -> None:
        """Something new, about one of two things, from one of two people."""
        roles: tuple[SenderRole, ...] = ("user", "agent")
        about, role = self.random.choice("xy"), self.random.choice(roles)
        kind = self.random.choice(KINDS)
        extra: dict[str, Any] = {"channelKey": f"group:{about}"} if kind == "a2a_message" else {}
        command = Accept(
            item_id=fresh_id("mbx"), source_type=kind,
            payload=Payload(f"{kind} {len(self.items)}", task_id=about, requirement_id=about,
                            extra=extra),
            priority=self.random.choice((None, None, 0, 1, 4)),
            sender=Sender(f"{role}-{about}", None, role),
            delivery=self.random.choice(("queue", "queue", "queue", "steer")),
        )  # fmt: skip
        try:
            await accept_stimuli(self._outlet, self.agent_id, [command], BY)
        except Full:
            return
        self.items.append(command.item_id)

    async def answers(self) -> None:
        """Somebody answers whatever was asked."""
        rows = await self.ask("SELECT id FROM approvals WHERE agent_id = %s AND status = 'pending'")
        for (approval_id,) in rows:
            given = Answer(self.random.random() < 0.5)
            try:
                await approvals.answer(self._outlet, approval_id, given, BY)
            except Rejected:
                continue  # it expired, or nobody waits for it any more

    async def stops(self) -> None:
        """Somebody stops whatever is at work, or set aside, in one of its sessions."""
        rows = await self.ask("SELECT id FROM sessions WHERE agent_id = %s ORDER BY opened_at")
        if rows:
            await sessions.stop_turn(self._outlet, self.random.choice(rows)[0], BY)

    async def archives(self) -> None:
        """Somebody archives one of its sessions, if nothing is to be done in it."""
        rows = await self.ask("SELECT id FROM sessions WHERE agent_id = %s ORDER BY opened_at")
        if rows:
            try:
                await sessions.end(self._outlet, self.random.choice(rows)[0], "archived", BY)
            except Rejected:
                return

    async def calms(self) -> None:
        """The agent works, and whoever was asked answers."""
        await agents.start(self._outlet, self.agent_id, BY)
        await self.answers()

    async def ask(self, statement: str) -> list[tuple[Any, ...]]:
        """What the rows say about the agent."""
        async with self.log.database.connection() as connection:
            cursor = await connection.execute(statement.encode(), (self.agent_id,))
            return await cursor.fetchall()


class Whim(Model):
    """While it is asked things happen; then it fails, dies, calls something, or says something.

    Once it is `calm` it only says "so".
    """

    def __init__(self, world: World) -> None:
        super().__init__()
        self._world, self._random, self.calm = world, world.random, False

    async def complete(self, request: ModelRequest, on_delta: Callable[[str], None]) -> ModelReply:
        """Anything."""
        on_delta("s")
        if self.calm:
            return _said(completed("so", request))
        if request.scenario == JUDGE:
            return _said(self._random.choice(WORDS))
        for _ in range(self._random.choice((0, 0, 1, 1, 2))):
            await self._world.happens()
        match self._random.randrange(24):
            case 0:
                raise Dies
            case 1:
                raise ModelFailed(self._random.choice(("rate_limited", "refused")), "as it likes")
            case 2:
                return _said(self._random.choice(("", "no marker")))
            case n if n < 9:
                return _said(completed("so", request))
            case _:
                return await self._calls(request)

    async def _calls(self, request: ModelRequest) -> ModelReply:
        wished = [await self._call(request) for _ in range(self._random.choice((1, 1, 2)))]
        calls = tuple(
            ToolCall(f"{request.turn_id}.{request.step}.{n}", tool, args)
            for n, (tool, args) in enumerate(wished)
        )
        return ModelReply("", calls, Usage(1, 1, 0, 1), "whim")

    async def _call(self, request: ModelRequest) -> tuple[str, dict[str, Any]]:
        if request.scenario == DELIBERATION and self._random.random() < 0.7:
            return "complete_deliberation", await self._plan()
        item = self._random.choice([*self._world.items, "mbx_unknown"])
        why = {"item_id": item, "reason": "a whim"}
        choices: tuple[tuple[str, dict[str, Any]], ...] = (
            ("test_return", {"value": "x"}),
            ("test_return", {"value": "x"}),
            ("check_mailbox", {}),
            ("sleep", {"seconds": self._random.choice((0, FAR_S))}),
            ("request_user_approval", {"title": "?", "description": "?"}),
            ("request_user_approval",
             {"title": "?", "description": "?", "expires_in_seconds": 0.001}),
            ("notify_user", {"title": "!", "body": "!"}),
            ("defer_mailbox_item", why),
            ("drop_mailbox_item", why),
            ("prioritize_mailbox_item", {"item_id": item, "priority": self._random.randrange(5)}),
        )  # fmt: skip
        return self._random.choice(choices)

    async def _plan(self) -> dict[str, Any]:
        """Each item that is considered in some list; seldom one is forgotten."""
        agent = (await self._world.log.view(self._world.agent_id)).agent
        focus = agent.attention if agent is not None else None
        ids = list(focus.considered) if isinstance(focus, Focused) else []
        self._random.shuffle(ids)
        lists: dict[str, list[str]] = {
            "process_item_ids": ids[:1], "defer_item_ids": [], "drop_item_ids": [],
            "inline_completed_ids": [], "forgotten": [],
        }  # fmt: skip
        for one in ids[1:]:
            self._random.choice((*list(lists.values())[:4] * 5, lists["forgotten"])).append(one)
        del lists["forgotten"]
        return {**lists, "reasoning": "a whim"}


def _said(text: str) -> ModelReply:
    return ModelReply(text, (), Usage(1, 1, 0, 1), "whim")
