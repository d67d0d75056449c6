"""What a request asks: its body, its parameters, who asks. Everything malformed is refused here."""

from __future__ import annotations

import json
import math
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Any, TypeVar

import msgspec
from fastapi import Request
from pydantic import BaseModel, ValidationError

from undivided.domain.errors import Invalid, TooLarge
from undivided.store.codec import escape_text, unescape_text
from undivided.store.horizon import resolve, wait_until_seen
from undivided.store.queries.reading import Reading

MIB = 1024 * 1024
BODY_LIMIT = 16 * MIB
LIMIT, LARGEST_LIMIT = 50, 500
DEEPEST = 100
B = TypeVar("B", bound=BaseModel)


def principal(request: Request) -> str:
    """Who asks, for the log. On loopback nobody has to say; `[auth]` will decide it later."""
    del request
    return "user"


async def raw_body(request: Request, limit: int = BODY_LIMIT) -> bytes:
    """The bytes of a body.

    Raises:
        TooLarge: it has more than `limit` of them.
    """
    declared = request.headers.get("content-length", "")
    if declared.isdigit() and int(declared) > limit:
        raise _too_large(limit)
    pieces, size = [], 0
    async for piece in request.stream():
        size += len(piece)
        if size > limit:
            raise _too_large(limit)
        pieces.append(piece)
    return b"".join(pieces)


def _too_large(limit: int) -> TooLarge:
    return TooLarge(f"the body is over {limit // MIB} MiB", "body")


def parsed(raw: bytes, kind: type[B]) -> tuple[B, bool]:
    """A body as its model, and whether its strings are escaped (see `restored`).

    JSON may spell out lone surrogates, which strict parsers refuse; such a body takes the
    slower way, with its awkward characters escaped as they will be in the log.

    Raises:
        ValidationError, Invalid: it is not what the model says.
    """
    try:
        return kind.model_validate_json(raw), False
    except ValidationError as error:
        if error.errors()[0]["type"] != "json_invalid" or b"\\u" not in raw:
            raise
    return kind.model_validate(_escaped(parsed_json(raw), 0)), True


def parsed_json(raw: bytes) -> Any:
    """A body that may be any JSON.

    Raises:
        Invalid: it is not JSON.
    """
    try:
        return json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise Invalid(f"the body is not JSON: {error}", "body") from error


def _escaped(tree: Any, depth: int) -> Any:
    if depth > DEEPEST:
        raise Invalid(f"the body is nested more than {DEEPEST} deep", "body")
    if isinstance(tree, str):
        return escape_text(tree)
    if isinstance(tree, dict):
        return {escape_text(key): _escaped(value, depth + 1) for key, value in tree.items()}
    if isinstance(tree, list):
        return [_escaped(value, depth + 1) for value in tree]
    return tree


def restored(tree: Any) -> Any:
    """Strings as they were before `parsed` escaped them."""
    if isinstance(tree, str):
        return unescape_text(tree)
    if isinstance(tree, dict):
        return {unescape_text(key): restored(value) for key, value in tree.items()}
    if isinstance(tree, list):
        return [restored(value) for value in tree]
    return tree


def check_tree(tree: Any, field: str, depth: int = 0) -> None:
    """Refuse what JSON in the log cannot hold: NaN, infinities, too deep a nesting."""
    if depth > DEEPEST:
        raise Invalid(f"{field} is nested more than {DEEPEST} deep", field)
    if isinstance(tree, float) and not math.isfinite(tree):
        raise Invalid(f"{field} holds a number that is not finite", field)
    values = tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ()
    for value in values:
        check_tree(value, field, depth + 1)


async def reading_of(request: Request, database: Any) -> Reading:
    """Now, or where `at=` says, once `minPosition=` is seen."""
    query = request.query_params
    if not query:
        return Reading(database, None)
    if "minPosition" in query:
        await wait_until_seen(database, query["minPosition"])
    at = query.get("at")
    return Reading(database, await resolve(database, at) if at is not None else None)


def limit_of(request: Request) -> int:
    """How many entries a list may have."""
    return whole_number(request, "limit", LIMIT, 1, LARGEST_LIMIT)


def whole_number(request: Request, name: str, default: int, low: int, high: int) -> int:
    """A query parameter between `low` and `high`."""
    text = request.query_params.get(name)
    if text is None:
        return default
    if text.isascii() and text.isdigit() and len(text) < 10 and low <= int(text) <= high:
        return int(text)
    raise Invalid(f"{name} must be a whole number from {low} to {high}, got {text[:20]!r}", name)


def choice_of(request: Request, name: str, choices: tuple[str, ...]) -> str:
    """A query parameter that is one of `choices`; the first where it is missing."""
    text = request.query_params.get(name, choices[0])
    if text not in choices:
        raise Invalid(f"{name} must be one of {', '.join(choices)}; got {text[:20]!r}", name)
    return text


def seconds(request: Request, name: str, high: float) -> float:
    """A query parameter in seconds; 0 where it is missing."""
    text = request.query_params.get(name, "0")
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= high:
        raise Invalid(f"{name} must be 0 to {high:g} seconds, got {text[:20]!r}", name)
    return value


def names_of(request: Request, name: str) -> list[str] | None:
    """A query parameter that lists names, separated by commas; None if it is missing."""
    text = request.query_params.get(name)
    if text is None:
        return None
    if "\x00" in text or any("\ud800" <= c <= "\udfff" for c in text):
        raise Invalid(f"{name} must not hold NUL or lone surrogates", name)
    return [part for part in text.split(",") if part]


def cursor_of(request: Request, kind: type[Any]) -> Any | None:
    """Where the page before ended, as `kind`; None for the first page.

    Raises:
        Invalid: not a cursor of this list.
    """
    text = request.query_params.get("cursor")
    if text is None:
        return None
    try:
        return msgspec.json.decode(urlsafe_b64decode(text.encode("ascii")), type=kind)
    except (ValueError, msgspec.MsgspecError) as error:
        raise Invalid("cursor is not one that this list gave out", "cursor") from error


def cursor_for(place: Any) -> str:
    """A cursor that says where a page ended."""
    return urlsafe_b64encode(msgspec.json.encode(place)).decode("ascii")
