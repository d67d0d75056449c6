"""What an agent is told when it deliberates, and when it then handles several items at once."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from undivided.domain.merging import RULE, composed, summary_with
from undivided.domain.protection import is_kept
from undivided.domain.state.item import ItemRow

ITEMS_TOLD = 50
CONTENT_CUT = 3000
LEVELS = ("critical", "high", "normal", "low", "background")
Joined = Mapping[str, tuple[ItemRow, ...]]

DELIBERATION_TOOLS = frozenset((
    "task_list", "task_get", "requirement_list", "requirement_get", "list_projects", "team_list",
    "team_status", "recall_activity", "memory_search", "memory_search_longterm",
    "check_mailbox", "defer_mailbox_item", "drop_mailbox_item", "prioritize_mailbox_item",
    "update_working_memory", "clear_working_memory", "update_notebook", "clear_notebook",
    "memory_save", "memory_update", "memory_update_longterm",
    "notify_user", "task_comment", "requirement_comment",
    "agent_send_message", "send_message", "agent_send_group_message",
    "agent_create_group_chat", "agent_list_group_chats", "complete_deliberation",
))  # fmt: skip
"""What a deliberation may use: looking, small words to others, and its own decision. What has
heavy effects belongs to the turn that handles an item."""

_MODE = """[DELIBERATION MODE]
I have {count} items waiting and choose what to do before I begin. I look up what I need to know, \
and I can deal with simple items here and now, with a notification, a comment or a message.
Then I call complete_deliberation once, and every item below is in exactly one of its lists:
- process_item_id (or process_item_ids, for items that belong together): what I turn to now
- inline_completed_ids: what I have dealt with in this deliberation
- defer_item_ids: what can wait until I am idle
- drop_item_ids: what is stale or redundant"""


def deliberation_prompt(items: tuple[ItemRow, ...], joined: Joined, now: datetime) -> str:
    """Every item that is considered, the head first; `joined` is what has joined each."""
    told = items[:ITEMS_TOLD]
    blocks = (_considered(item, joined.get(item.id, ()), now) for item in told)
    return "\n\n".join((_MODE.format(count=len(told)), *blocks))


def batch_prompt(items: tuple[ItemRow, ...], joined: Joined, context: str) -> str:
    """Several items that one turn handles together; `context` is what the plan says of them."""
    what = context.strip() or "Handle all of them, and say for each what came of it."
    blocks = (
        f"### {number}. {item.source_type}: {summary_with(item)}\n"
        f"{composed(item, joined.get(item.id, ())).content}"
        for number, item in enumerate(items, start=1)
    )
    return RULE.join((f"[BATCH] {len(items)} items, handled together.\n{what}", *blocks))


def age(seconds: float) -> str:
    """`12.0s`, `3.4min` or `5.6h`."""
    if seconds < 60:
        return f"{max(seconds, 0):.1f}s"
    return f"{seconds / 60:.1f}min" if seconds < 3600 else f"{seconds / 3600:.1f}h"


def level(priority: int) -> str:
    """The name of a priority."""
    return LEVELS[min(max(priority, 0), len(LEVELS) - 1)]


def _considered(item: ItemRow, joined: tuple[ItemRow, ...], now: datetime) -> str:
    payload = composed(item, joined)
    sender = item.sender.name or item.sender.id
    facts = (
        f"type {item.source_type}",
        f"priority {level(item.priority)}",
        f"age {age((now - item.queued_at).total_seconds())}",
        f"task {payload.task_id}" if payload.task_id else "",
        f"from {sender}" if sender else "",
        "protected: it is processed or waits" if is_kept(item) else "",
    )
    heading = f"## {item.id}\n{', '.join(fact for fact in facts if fact)}"
    return f"{heading}\n{summary_with(item)}\n{payload.content[:CONTENT_CUT]}"
