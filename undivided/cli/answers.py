"""How a command shows what the service answered: a view for people, or JSON for programs."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from typing import Any

import typer
from rich.console import Console, RenderableType

_UNBOUNDED = 250
"""Columns where there is no terminal whose width would matter."""


def show(answer: Any, as_json: bool, view: Callable[[Any], RenderableType]) -> None:
    """Print an answer."""
    if as_json:
        print_json(answer)
    else:
        terminal().print(view(answer))


def print_json(answer: Any) -> None:
    """Print JSON alone; ASCII, because lone surrogates survive in nothing else."""
    typer.echo(json.dumps(answer, indent=2 if sys.stdout.isatty() else None))


def terminal() -> Console:
    """A console that takes text for text: no markup, no emoji codes, no colours of its own."""
    free = not sys.stdout.isatty() and "COLUMNS" not in os.environ
    return Console(markup=False, emoji=False, highlight=False, width=_UNBOUNDED if free else None)
