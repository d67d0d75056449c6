"""Write `docs/events.md` from the catalogue, or, with `--check`, say whether it is current."""

from __future__ import annotations

import inspect
import re
import sys
from pathlib import Path

from undivided.domain.events import (
    agents,
    callbacks,
    flights,
    heartbeats,
    items,
    people,
    sessions,
    triage,
)
from undivided.domain.events.catalogue import CATALOGUE

PAGE = Path(__file__).parent.parent / "docs" / "events.md"
STREAMS = {
    agents: "`agent:<id>`: an agent's life, configuration and working memory",
    items: "`agent:<id>`: its mailbox (and `user:<id>`: what people are told)",
    triage: "`agent:<id>`: what it considers before it chooses",
    heartbeats: "`agent:<id>`: what the clock brings to it",
    flights: "`agent:<id>`: who holds it, and what its focus waits for",
    callbacks: "`agent:<id>`: what it will hear of later",
    people: "`user:<id>`: what a person is told and asked",
    sessions: "`session:<id>`: turns and their steps",
}
TABLE = "| event | schema | what it says | fields |\n|---|---|---|---|"
HEAD = """# Events

Every fact that Undivided keeps, in the order in which a newcomer should read them. This page is
written by `scripts/events_catalogue.py` from `undivided/domain/events/`; `make check` compares.
A name never changes; a changed shape raises the schema number and gets an upcast. The API tells
the same fields in camelCase.
"""


def page() -> str:
    """The whole page."""
    parts = [HEAD]
    for module, stream in STREAMS.items():
        parts.append(f"## {stream}\n\n{TABLE}")
        parts += [
            _row(kind, *named)
            for kind, named in CATALOGUE.items()
            if kind.__module__ == module.__name__
        ]
        parts.append("")
    return "\n".join(parts)


def _row(kind: type, name: str, schema: int) -> str:
    says = re.sub(r"\s+", " ", inspect.getdoc(kind) or "").replace("|", "\\|")
    fields = ", ".join(f"`{field}`" for field in kind.__struct_fields__)  # type: ignore[attr-defined]
    return f"| `{name}` | {schema} | {says} | {fields} |"


def main() -> int:
    """Write or check; 1 if the page is stale."""
    if "--check" not in sys.argv:
        PAGE.write_text(page(), encoding="utf-8")
        return 0
    if PAGE.is_file() and PAGE.read_text(encoding="utf-8") == page():
        return 0
    print("docs/events.md is stale; run: .venv/bin/python scripts/events_catalogue.py")
    return 1


if __name__ == "__main__":
    sys.exit(main())
