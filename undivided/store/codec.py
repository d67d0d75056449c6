r"""How events and rows become JSON in Postgres and come back unharmed.

Postgres refuses NUL and lone surrogates in jsonb, Python allows both. Each such character,
and the escape itself, is written as the escape character U+001A and four hex digits; text
without them is stored as it is. An event is at most 256 KiB; its long strings go to `blobs`
by their SHA-256 and leave `{"\u001ablob": sha256}` behind, and where it is not long strings
that make it long, whole fields go there as JSON and leave `{"\u001atree": sha256}`. U+001A is
never stored unescaped, so no content can look like an escape or a reference.

Decoding trusts what was stored: msgspec straight into the frozen structs, tolerant of fields
that a newer release added; the tree is walked only where an escape is really there.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import msgspec

from undivided.domain.errors import Corrupt
from undivided.domain.events.catalogue import CATALOGUE, Event
from undivided.store.upcasts import upcast

T = TypeVar("T")

ESCAPE = "\x1a"
BLOB_KEY = ESCAPE + "blob"
TREE_KEY = ESCAPE + "tree"
REFERENCE_SIGN = "\\u001a"
"""What stored JSON has in it wherever it refers to a blob, or an escape."""
EVENT_LIMIT = 256 * 1024
"""Bytes of one event's data, at most."""
_BLOB_FROM = 16 * 1024
"""Characters from which on a string goes to a blob where an event is too long."""
_BLOB_LEAST = 256
"""The same where that was not enough; a reference to anything shorter would not be shorter."""

_AWKWARD = re.compile("[\x00\x1a\ud800-\udfff]")
_ESCAPED = re.compile("\x1a([0-9a-f]{4})")
_ESCAPES = b"\\u00"
_MARKS = (b"\\u0000", b"\\u001a")
_encode = msgspec.json.Encoder().encode
_NAMES = {kind.__name__: named for kind, named in CATALOGUE.items()}
_DECODERS: dict[str, tuple[int, Callable[[bytes | str], Event]]] = {
    name: (schema, msgspec.json.Decoder(kind).decode) for kind, (name, schema) in CATALOGUE.items()
}
_KINDS: dict[str, type[Event]] = {name: kind for kind, (name, _) in CATALOGUE.items()}


def name_of(event: Event) -> tuple[str, int]:
    """The stored name and schema number of an event."""
    return _NAMES[type(event).__name__]


def encode(value: Any) -> bytes:
    """JSON of a struct that Postgres takes as jsonb."""
    try:
        text = _encode(value)
    except UnicodeEncodeError:
        return _encode(_escaped(msgspec.to_builtins(value)))
    if _ESCAPES in text and any(mark in text for mark in _MARKS):
        return _encode(_escaped(msgspec.to_builtins(value)))
    return text


def encode_event(event: Event) -> tuple[bytes, dict[str, bytes]]:
    """JSON of an event within its limit, and the blobs that it refers to."""
    text = encode(event)
    if len(text) <= EVENT_LIMIT:
        return text, {}
    blobs: dict[str, bytes] = {}
    threshold = _BLOB_FROM
    tree = msgspec.json.decode(text)
    while len(text) > EVENT_LIMIT and threshold >= _BLOB_LEAST:
        tree = _without_long(tree, threshold, blobs)
        text, threshold = _encode(tree), threshold // 4
    return (text, blobs) if len(text) <= EVENT_LIMIT else _fields_apart(encode(event))


def decode_event(name: str, schema: int, text: str, blobs: Mapping[str, str]) -> Event | None:
    """The event that was stored, in today's shape; None for a name nobody here knows.

    `blobs` holds the contents of every blob the text refers to.

    Raises:
        Corrupt: the stored data fits no shape that this name ever had.
    """
    known = _DECODERS.get(name)
    if known is None:
        return None
    current, decoder = known
    try:
        if schema == current and "\\u001a" not in text:
            return decoder(text)
        tree = _restored(msgspec.json.decode(text), blobs)
        return msgspec.convert(upcast(name, schema, current, tree), _KINDS[name])
    except msgspec.MsgspecError as error:
        raise Corrupt(f"stored event {name} schema {schema} cannot be read: {error}") from error


def row_decoder(kind: type[T]) -> Callable[[str], T]:
    """A function from stored row JSON to `kind`."""
    plain = msgspec.json.Decoder(kind).decode

    def decode(text: str) -> T:
        if "\\u001a" not in text:
            return plain(text)
        return msgspec.convert(_restored(msgspec.json.decode(text), {}), kind)

    return decode


def decode_tree(text: str, blobs: Mapping[str, str]) -> Any:
    """Stored JSON as plain Python values, unescaped."""
    tree = msgspec.json.decode(text)
    return _restored(tree, blobs) if "\\u001a" in text else tree


def blob_references(text: str) -> set[str]:
    """The SHA-256 names of the blobs that stored JSON refers to."""
    if REFERENCE_SIGN not in text:
        return set()
    found: set[str] = set()
    _gather(msgspec.json.decode(text), found)
    return found


def escape_text(text: str) -> str:
    """A string as Postgres can store it."""
    if text.isascii() and "\x00" not in text and ESCAPE not in text:
        return text
    return _AWKWARD.sub(lambda m: f"{ESCAPE}{ord(m[0]):04x}", text)


def unescape_text(text: str) -> str:
    """The string that `escape_text` was given."""
    return _ESCAPED.sub(lambda m: chr(int(m[1], 16)), text) if ESCAPE in text else text


def blob_bytes(text: str) -> bytes:
    """What a blob stores for an already escaped string."""
    return text.encode()


def _escaped(tree: Any) -> Any:
    if isinstance(tree, str):
        return escape_text(tree)
    if isinstance(tree, dict):
        return {escape_text(key): _escaped(value) for key, value in tree.items()}
    if isinstance(tree, (list, tuple)):
        return [_escaped(value) for value in tree]
    return tree


def _restored(tree: Any, blobs: Mapping[str, str]) -> Any:
    if isinstance(tree, str):
        return unescape_text(tree)
    if isinstance(tree, list):
        return [_restored(value, blobs) for value in tree]
    if isinstance(tree, dict):
        if BLOB_KEY in tree:
            return unescape_text(_blob(tree[BLOB_KEY], blobs))
        if TREE_KEY in tree:
            return _restored(msgspec.json.decode(_blob(tree[TREE_KEY], blobs)), {})
        return {unescape_text(key): _restored(value, blobs) for key, value in tree.items()}
    return tree


def _blob(name: str, blobs: Mapping[str, str]) -> str:
    if name not in blobs:
        raise Corrupt(f"blob {name} is referred to but not stored")
    return blobs[name]


def _without_long(tree: Any, threshold: int, blobs: dict[str, bytes]) -> Any:
    if isinstance(tree, str) and len(tree) >= threshold:
        return {BLOB_KEY: _kept(blob_bytes(tree), blobs)}
    if isinstance(tree, dict):
        if BLOB_KEY in tree:
            return tree
        return {key: _without_long(value, threshold, blobs) for key, value in tree.items()}
    if isinstance(tree, list):
        return [_without_long(value, threshold, blobs) for value in tree]
    return tree


def _fields_apart(text: bytes) -> tuple[bytes, dict[str, bytes]]:
    """The event with its longest fields as blobs, as many as it takes."""
    blobs: dict[str, bytes] = {}
    tree = msgspec.json.decode(text)
    parts = {field: _encode(value) for field, value in tree.items()}
    for field in sorted(parts, key=lambda field: len(parts[field]), reverse=True):
        if len(text) <= EVENT_LIMIT:
            break
        tree[field] = {TREE_KEY: _kept(parts[field], blobs)}
        text = _encode(tree)
    return text, blobs


def _kept(content: bytes, blobs: dict[str, bytes]) -> str:
    name = hashlib.sha256(content).hexdigest()
    blobs[name] = content
    return name


def _gather(tree: Any, found: set[str]) -> None:
    if isinstance(tree, dict):
        if BLOB_KEY in tree or TREE_KEY in tree:
            found.update(tree.values())
        else:
            for value in tree.values():
                _gather(value, found)
    elif isinstance(tree, list):
        for value in tree:
            _gather(value, found)
