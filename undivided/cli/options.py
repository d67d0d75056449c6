"""Options that many commands share, so that they are called and explained alike everywhere."""

from __future__ import annotations

from typing import Annotated

import typer

Url = Annotated[
    str | None,
    typer.Option(
        help="Address of the service. Else UNDIVIDED_URL, else the one that `undivided up` "
        "runs in this folder, else http://127.0.0.1:8420.",
        show_default=False,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the answer as JSON and nothing else.")]
At = Annotated[
    str | None,
    typer.Option(
        help="As it was then: a time (2026-03-01T14:03:00Z) or a position that an answer gave.",
        show_default=False,
    ),
]
Limit = Annotated[int, typer.Option(min=1, max=500, help="How many to show at most.")]
Cursor = Annotated[
    str | None, typer.Option(help="Go on where the page before ended.", show_default=False)
]
AgentId = Annotated[str, typer.Argument(metavar="AGENT", help="Id of the agent.")]
