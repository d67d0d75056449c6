"""Script models: reading a script file with its line numbers, and answering as it says."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import yaml

from undivided.domain.dialogue import ModelReply, ModelRequest
from undivided.domain.errors import ModelFailed
from undivided.domain.script import Script, choose, deltas
from undivided.domain.script_document import Path, ScriptMistake, parse_script


def read_script(content: bytes, name: str) -> Script:
    """The script in a YAML or JSON file; `name` is the file, for people.

    Raises:
        ScriptMistake: the file is neither, or says something that a script cannot say.
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ScriptMistake(f"{name}: must be UTF-8 text; byte {error.start} is not") from error
    if text.lstrip().startswith("{"):
        return parse_script(*_read_json(text, name))
    return parse_script(*_read_yaml(text, name))


async def answer_from(
    script: Script, request: ModelRequest, on_delta: Callable[[str], None]
) -> ModelReply:
    """What the script says to `request`, after its delay and in its chunks.

    Raises:
        ModelFailed: the script says so.
    """
    answer = choose(script, request)
    await asyncio.sleep(answer.delay.total_seconds())
    if answer.error:
        raise ModelFailed(answer.error, f"scripted by {answer.origin}")
    await stream(answer.text, answer.chunks, on_delta)
    return ModelReply(answer.text, answer.calls, answer.usage, f"script:{script.name}")


async def stream(text: str, chunks: int, on_delta: Callable[[str], None]) -> None:
    """Hand `text` on in `chunks` parts, with room for others and for a cancel between them."""
    for delta in deltas(text, chunks):
        on_delta(delta)
        await asyncio.sleep(0)


_Read = tuple[object, str, dict[Path, int]]


def _read_json(text: str, name: str) -> _Read:
    """A JSON document, or a YAML one that is written in braces."""
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        try:
            return _read_yaml(text, name)
        except ScriptMistake:
            raise ScriptMistake(f"{name}, line {error.lineno}: not JSON: {error.msg}") from error
    try:
        # YAML knows the lines of JSON too, but refuses tabs, which move no line.
        return document, name, _read_yaml(text.replace("\t", " "), name)[2]
    except ScriptMistake:
        return document, name, {}


def _read_yaml(text: str, name: str) -> _Read:
    loader = _Loader(text)
    try:
        node = loader.get_single_node()
        lines: dict[Path, int] = {}
        if node is not None:
            _mark(node, (), lines, name)
        return (None if node is None else loader.construct_document(node)), name, lines
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f", line {mark.line + 1}" if mark else ""
        raise ScriptMistake(f"{name}{where}: not YAML: {error.problem}") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ScriptMistake(f"{name}: not YAML: {error}") from error
    finally:
        loader.dispose()


class _Loader(yaml.SafeLoader):
    """YAML without its dates: what looks like one stays the text that it is."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, Any]]] = {  # noqa: RUF012
        first: [(tag, how) for tag, how in resolvers if tag != "tag:yaml.org,2002:timestamp"]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


def _mark(node: yaml.Node, path: Path, lines: dict[Path, int], name: str) -> None:
    """Note the line of every value below `node`; a key that stands twice is a mistake."""
    lines[path] = node.start_mark.line + 1
    if isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            _mark(item, (*path, index), lines, name)
    elif isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            here = (*path, str(key.value))
            line = key.start_mark.line + 1
            if here in lines:
                raise ScriptMistake(f"{name}, line {line}: {key.value!r} stands here twice")
            _mark(value, here, lines, name)
            lines[here] = line
