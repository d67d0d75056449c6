"""Refuse what has grown too large to read: files, functions, classes, parameters, vague names."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

FILE_LINES = 400
FUNCTION_LINES = 50
CLASS_LINES = 150
PARAMETERS = 6
VAGUE = {"utils", "helpers", "common", "misc", "base", "manager", "service"}
FOLDERS = ("undivided", "tests", "scripts")


def parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """How many parameters a caller must know; the receiver of a method is not one of them."""
    spec = function.args
    names = [arg.arg for arg in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs)]
    return len([name for name in names if name not in {"self", "cls"}])


def surfaces(tree: ast.Module) -> set[str]:
    """Names of the functions whose parameters nobody passes by hand.

    They are command-line options or HTTP fields: functions that a Typer app or a router takes, as
    `@router.get(...)` above them or as `app.command()(function)`.
    """
    found: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case (
                ast.FunctionDef(name=name, decorator_list=marks)
                | ast.AsyncFunctionDef(name=name, decorator_list=marks)
            ):
                if any(_registers(mark) for mark in marks):
                    found.add(name)
            case ast.Call(func=func, args=[ast.Name(id=name)]) if _registers(func):
                found.add(name)
            case _:
                pass
    return found


def _registers(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)


def oversized(path: Path) -> Iterator[str]:
    """Name everything in one file that is over its ceiling."""
    source = path.read_text(encoding="utf-8")
    lines = source.count("\n") + (not source.endswith("\n"))
    if lines > FILE_LINES:
        yield f"{path}: {lines} lines, ceiling {FILE_LINES}"
    names = {path.stem, path.parent.name} if path.name == "__init__.py" else {path.stem}
    if names & VAGUE:
        yield f"{path}: the name says nothing about what is inside"
    tree = ast.parse(source, filename=str(path))
    free = surfaces(tree)
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield from too_long(path, node, FUNCTION_LINES)
                if parameters(node) > PARAMETERS and node.name not in free:
                    count = parameters(node)
                    yield f"{path}:{node.lineno}: {node.name} takes {count}, ceiling {PARAMETERS}"
            case ast.ClassDef():
                yield from too_long(path, node, CLASS_LINES)
            case _:
                pass


def too_long(
    path: Path, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, ceiling: int
) -> Iterator[str]:
    """Name a function or class that has more lines than its ceiling."""
    length = (node.end_lineno or node.lineno) - node.lineno + 1
    if length > ceiling:
        yield f"{path}:{node.lineno}: {node.name} has {length} lines, ceiling {ceiling}"


def main() -> int:
    """Check every Python file of the tree; 1 if any is over a ceiling."""
    root = Path(__file__).resolve().parent.parent
    files = sorted(path for folder in FOLDERS for path in (root / folder).rglob("*.py"))
    found = [line for path in files for line in oversized(path)]
    print("\n".join(found) if found else f"sizes: {len(files)} files within their ceilings")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
