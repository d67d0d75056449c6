"""Files that models answer from, scripts and recordings: reading them with their line numbers."""

from __future__ import annotations

import json
from pathlib import Path as File
from typing import Any

import yaml

from undivided.domain.errors import Invalid
from undivided.domain.rehearsal import parse_recording
from undivided.domain.script import Script
from undivided.domain.script_document import Path, ScriptMistake, parse_script

UPLOADED = "recording:"
"""How a rehearsal names an uploaded recording, by the sha256 of its content, instead of a file."""


def look_into(model: str) -> None:
    """Read the file that a model answers from, if it is one that does, and find its mistakes.

    Raises:
        Invalid: it cannot be read, or has a mistake; with file, line, and what is allowed.
    """
    kind, _, source = model.partition(":")
    if kind == "script":
        read_script(content_of(source), source)
    elif kind == "rehearsal" and not source.startswith(UPLOADED):
        parse_recording(content_of(source), source)


def content_of(path: str) -> bytes:
    """The bytes of a file.

    Raises:
        Invalid: it cannot be read.
    """
    try:
        file = File(path)
        if file.exists() and not file.is_file():
            raise Invalid(f"{path} is no regular file", "model")
        return file.read_bytes()
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from error


def unreadable(path: str, error: Exception) -> Invalid:
    """What to say of a file that cannot be read."""
    reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
    return Invalid(f"{path} cannot be read: {reason}", "model")


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
