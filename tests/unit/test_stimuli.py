"""The type registry: what it holds, and that it is the only place where a type is named."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import undivided
from tests.support.spec import given
from undivided.domain.events.items import Payload, StimulusAccepted
from undivided.domain.mailbox import Accept, accept
from undivided.domain.scenarios import SCENARIOS
from undivided.domain.stimuli import REGISTRY

PACKAGE = Path(undivided.__file__).parent
DOCUMENTED = {
    "system_event": ("System Event", 1, "system", "⚙", "internal", True, True),
    "human_chat": ("Chat", 0, "interaction", "💬", "chat", True, True),
    "task_comment": ("Task Comment", 2, "task", "💬", None, False, False),
    "mention": ("Mention", 1, "interaction", "@", "chat", True, True),
    "session_reply": ("Session Reply", 1, "task", "↩", "respond_in_session", True, True),
    "task_status_update": ("Task Status", 1, "task", "📋", None, True, False),
    "a2a_message": ("Agent Message", 2, "interaction", "🔗", "a2a", True, True),
    "review_request": ("Review Request", 1, "task", "👀", "chat", True, True),
    "requirement_comment": ("Requirement Comment", 2, "task", "💬", None, False, False),
    "requirement_update": ("Requirement Update", 1, "notification", "📝", "internal", True, False),
    "daily_report": ("Daily Report", 2, "system", "📊", "internal", True, True),
    "heartbeat": ("Heartbeat", 3, "system", "♡", "heartbeat", True, True),
    "memory_consolidation": ("Memory Consolidation", 4, "system", "🧠", "internal", True, True),
    "callback_result": ("Callback Result", 1, "system", "↩", "internal", True, True),
}
"""The fourteen types of the mailbox document, as its registry lists them."""

ORDINARY = {"text"}
"""Names that are ordinary words: a message's text, a kind of page, an SQL type."""
ELSEWHERE = {
    ("domain/scenarios.py", "heartbeat"), ("domain/scenarios.py", "memory_consolidation"),
    ("domain/scenarios.py", "session_reply"), ("cli/views/agents.py", "heartbeat"),
    ("domain/deliberation_prompt.py", "task_comment"),
    ("domain/deliberation_prompt.py", "requirement_comment"),
    ("migrations/versions/0004_deliberation.py", "heartbeat"),
}  # fmt: skip
"""Names that mean a scenario or a tool there, the heading of an interval, or what was a name when
a schema was migrated, which stays as it was."""


def strays() -> Iterator[str]:
    """Every place outside the registry where a program names a type."""
    quoted = re.compile("['\"](" + "|".join(REGISTRY) + ")['\"]")
    for path in sorted(PACKAGE.rglob("*.py")):
        place = path.relative_to(PACKAGE).as_posix()
        if place == "domain/stimuli.py":
            continue
        tree = ast.parse(path.read_text("utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                named = {node.value} & set(REGISTRY) | set(quoted.findall(node.value))
                for name in sorted(named):
                    if name not in ORDINARY and (place, name) not in ELSEWHERE:
                        yield f"{place}:{node.lineno} {name}"


def test_a_type_is_named_only_in_the_registry() -> None:
    """Whoever needs one by its name takes the registry's constant."""
    assert list(strays()) == []


@pytest.mark.parametrize("name", DOCUMENTED)
def test_028_a_type_is_as_the_document_lists_it(name: str) -> None:
    """Label, priority, category, icon, activity, and what handling does."""
    kind = REGISTRY[name]
    assert (
        kind.label, kind.priority, kind.category, kind.icon, kind.activity,
        kind.creates_activity, kind.invokes_model,
    ) == DOCUMENTED[name]  # fmt: skip


@pytest.mark.parametrize("name", REGISTRY)
def test_028_without_a_priority_an_item_has_that_of_its_type(name: str) -> None:
    """Whoever sends it, unless a person says something about a task."""
    (event, *_) = accept(
        given().agent, (Accept(item_id="i1", source_type=name, payload=Payload("x")),)
    )
    assert isinstance(event, StimulusAccepted)
    assert event.priority == REGISTRY[name].priority


def test_every_scenario_of_a_type_is_one() -> None:
    """Tools and script rules are chosen by it."""
    assert {kind.scenario for kind in REGISTRY.values()} <= set(SCENARIOS)


def test_types_that_go_stale_are_those_of_the_reference() -> None:
    """Ruling 37: but for a result that was awaited, which never goes silently."""
    assert {name for name, kind in REGISTRY.items() if kind.ages} == {
        "task_status_update", "heartbeat", "memory_consolidation", "daily_report",
    }  # fmt: skip
