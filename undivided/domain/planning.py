"""From the arguments of `complete_deliberation` to a plan, or to what is wrong with them.

Nothing that was considered may be forgotten: each item that still waits is in one list of the
plan, and in one only. The head needs no mention, and neither does what a plan cannot touch.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from undivided.domain.plans import MemoryUpdate, Plan
from undivided.domain.protection import is_protected
from undivided.domain.state.item import ItemRow, Queued
from undivided.domain.tooling import Act


class CompleteDeliberation(Act, frozen=True):
    """Record a plan; `args` are the tool's own."""

    args: dict[str, Any]


class Considered(Struct, frozen=True):
    """What a deliberation is about: its items' ids, the head first, and their rows as of now."""

    ids: tuple[str, ...]
    rows: Mapping[str, ItemRow]

    @property
    def waiting(self) -> tuple[str, ...]:
        """Those that still wait."""
        return tuple(one for one in self.ids if self.waits(one))

    def waits(self, item_id: str) -> bool:
        """Whether an item still waits."""
        row = self.rows.get(item_id)
        return row is not None and isinstance(row.phase, Queued)


class Refusal(Struct, frozen=True, kw_only=True):
    """Why there is no plan; the ids say what to put right."""

    error: str
    orphaned: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    doubled: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """What the model reads."""
        told = {
            "status": "error", "error": self.error, "orphaned": self.orphaned,
            "unknown": self.unknown, "doubled": self.doubled,
        }  # fmt: skip
        return json.dumps(told, ensure_ascii=False)


def planned(args: dict[str, Any], considered: Considered) -> Plan | Refusal:
    """The plan that the arguments describe; what no longer waits is left out of it."""
    process = _process(args)
    lists = (
        process,
        _ids(args, "defer_item_ids"),
        _ids(args, "drop_item_ids"),
        _ids(args, "inline_completed_ids"),
    )
    wrong = _mistake(lists, considered)
    if wrong is not None:
        return wrong
    process, defer, drop, inline = (tuple(filter(considered.waits, ids)) for ids in lists)
    if considered.waiting and not process:
        return Refusal(
            error="process_item_id or process_item_ids must name an item that still waits: "
            + ", ".join(considered.waiting)
        )
    return Plan(
        process=process, batch_context=args.get("batch_context", ""), defer=defer, drop=drop,
        inline=inline, reasoning=args.get("reasoning", ""),
        awareness=args.get("situational_awareness", ""),
        memory_updates=tuple(
            MemoryUpdate(one["key"], one["content"], one.get("type", "working"))
            for one in args.get("memory_updates", ())
        ),
    )  # fmt: skip


def _process(args: dict[str, Any]) -> tuple[str, ...]:
    """The items to process; `process_item_ids` counts as a batch only with more than one."""
    one, several = args.get("process_item_id"), _ids(args, "process_item_ids")
    if len(several) > 1:
        return several if one is None or one in several else (one, *several)
    return (one,) if one is not None else several


def _ids(args: dict[str, Any], name: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(args.get(name, ())))


def _mistake(lists: tuple[tuple[str, ...], ...], considered: Considered) -> Refusal | None:
    named = Counter(one for ids in lists for one in ids)
    unknown = tuple(one for one in named if one not in considered.ids)
    doubled = tuple(one for one, times in named.items() if times > 1)
    orphaned = tuple(
        one
        for one in considered.waiting
        if one not in named and one != considered.ids[0] and not is_protected(considered.rows[one])
    )
    if not (unknown or doubled or orphaned):
        return None
    told = (
        ("in no list", orphaned),
        ("not among the items of this deliberation", unknown),
        ("in more than one list", doubled),
    )
    error = "; ".join(f"{', '.join(ids)}: {what}" for what, ids in told if ids)
    return Refusal(error=error, orphaned=orphaned, unknown=unknown, doubled=doubled)
