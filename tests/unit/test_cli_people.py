"""What agents ask people, in a terminal."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.test_cli_main import told
from tests.unit.test_cli_views import shown
from undivided.cli.views.people import NOTHING, approval_view, approvals_view


def approval(**known: Any) -> dict[str, Any]:
    """A request as the API tells it."""
    return {
        "id": "apr_1", "userId": "owner", "agentId": "ada", "turnId": "trn_1", "sessionId": "s",
        "mailboxItemId": "mbx_1", "title": "Deploy?", "description": "to production\x1b[31m",
        "options": [
            {"id": "approve", "label": "Approve", "description": ""},
            {"id": "reject", "label": "Reject", "description": "not now"},
        ],
        "allowFreeform": True, "priority": "high", "taskId": None, "status": "pending",
        "approved": None, "selectedOption": None, "comment": None, "respondedBy": None,
        "respondedAt": None, "createdAt": "2026-01-02T03:04:05.678Z", "expiresAt": None,
        "position": "1-1", **known,
    }  # fmt: skip


class TestApprovals:
    """The table of all, and one whole."""

    def test_none_says_so(self) -> None:
        assert shown(approvals_view({"items": [], "nextCursor": None})).strip() == NOTHING

    def test_a_row_for_each_and_how_to_go_on(self) -> None:
        text = shown(approvals_view({"items": [approval()], "nextCursor": "abc"}), 200)
        assert "approve, reject" in text
        assert "pending" in text
        assert "--cursor abc" in text
        assert "\x1b" not in text

    def test_one_that_was_answered(self) -> None:
        answered = approval(
            status="rejected", approved=False, selectedOption="reject", comment="too late",
            respondedBy="bob", respondedAt="2026-01-02T03:05:05.678Z",
        )  # fmt: skip
        text = shown(approval_view(answered))
        for part in ("rejected", "too late", "reject (Reject): not now", "03:05:05 UTC, by bob"):
            assert part in text


@pytest.mark.parametrize(
    "arguments", [("--answer", "apr_1"), ("--approve",), ("--comment", "go"), ("--option", "a")]
)
def test_half_an_answer_is_a_mistake(arguments: tuple[str, ...]) -> None:
    """Exit code 2, and a sentence on what is missing."""
    assert "--approve" in told("approvals", *arguments, code=2)
