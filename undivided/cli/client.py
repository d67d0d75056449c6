"""The way every command talks to a running service: JSON over HTTP, and its event stream.

A client has patience: for so many seconds a call that met a dead or restarting server is made
again. Only calls that may be made twice are: reads, and commands that carry an
`Idempotency-Key`. Without patience (the default) the first failure is told.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Self, TypeVar
from urllib.parse import quote

import httpx
import typer

from undivided.cli.sse import Decoder, ServerEvent
from undivided.cli.views.cells import one_line

DEFAULT_URL = "http://127.0.0.1:8420"
RUN_FILE = Path(".undivided") / "run.json"

NO, USAGE, UNREACHABLE = 1, 2, 3
"""Exit codes: the answer is no; the call was a mistake; no server answered."""

RESUMED = "resumed"
"""Name of the event that says: the stream broke off here, and goes on."""

OVER = frozenset({"done", "error"})
"""Names of the events that end a conversation."""

_TIMEOUT = httpx.Timeout(90.0, connect=5.0)
_BUSY = {429, 502, 503, 504}
_REFUSED = {409, 412, 429}
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.05, 1.0

T = TypeVar("T")


class Problem(Exception):
    """The service refused; the sentence is its own, `code` names the rule."""

    def __init__(self, status: int, code: str, sentence: str) -> None:
        super().__init__(sentence)
        self.status, self.code = status, code


class Unreachable(Exception):
    """No server answered in time; the sentence says which was tried and what to do."""

    def __init__(self, url: str, reason: str) -> None:
        super().__init__(f"cannot reach {url} ({reason}); start it with `undivided up`")


def find_url(asked: str | None, environ: Mapping[str, str], folder: Path) -> str:
    """Where the service is: asked for, from UNDIVIDED_URL, from run.json, or the default."""
    found = asked or environ.get("UNDIVIDED_URL") or _running(folder) or DEFAULT_URL
    return found.rstrip("/")


def _running(folder: Path) -> str | None:
    try:
        run = json.loads((folder / RUN_FILE).read_text("utf-8"))
    except (OSError, ValueError):
        return None
    url = run.get("url") if isinstance(run, dict) else None
    return url if isinstance(url, str) else None


def connect(url: str | None = None, patience_s: float = 0.0) -> Client:
    """A client for the service that the command's option and environment name."""
    found = find_url(url, os.environ, Path.cwd())
    if not _is_http(found):
        raise Unreachable(found, "not an address like http://127.0.0.1:8420")
    return Client(found, os.environ.get("UNDIVIDED_API_KEY"), patience_s)


def _is_http(url: str) -> bool:
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL:
        return False
    return parsed.scheme in {"http", "https"} and bool(parsed.host) and (parsed.port or 0) < 2**16


def route(*parts: str) -> str:
    """A path made of parts, each safely quoted: ids come from people."""
    return "".join(f"/{quote(part, safe='')}" for part in parts)


def finish(work: Coroutine[Any, Any, T]) -> T:
    """Run a command's work; what goes wrong is told as by `failures_told`."""
    with failures_told():
        return asyncio.run(work)


@contextmanager
def failures_told() -> Iterator[None]:
    """A refusal or a silent server becomes a sentence and an exit code."""
    try:
        yield
    except (Unreachable, Problem) as error:
        typer.echo(one_line(str(error)), err=True)
        raise typer.Exit(exit_code(error)) from error


def exit_code(error: Unreachable | Problem) -> int:
    """How a command ends after this: nobody there, refused by a rule, or asked wrongly."""
    if isinstance(error, Unreachable) or error.status >= httpx.codes.INTERNAL_SERVER_ERROR:
        return UNREACHABLE
    return NO if error.status in _REFUSED else USAGE


async def ask(url: str | None, path: str, **query: Any) -> Any:
    """The answer to one query, over a connection of its own."""
    async with connect(url) as client:
        return await client.get(path, **query)


async def tell(url: str | None, path: str, body: Any) -> Any:
    """The answer to one command, over a connection of its own."""
    async with connect(url) as client:
        return await client.post(path, body)


class Client:
    """A connection to one service; use it as an async context."""

    def __init__(self, url: str, key: str | None = None, patience_s: float = 0.0) -> None:
        self.url = url
        self._patience_s = patience_s
        headers = {"authorization": f"Bearer {key}"} if key else {}
        self._http = httpx.AsyncClient(base_url=f"{url}/api", headers=headers, timeout=_TIMEOUT)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *failure: object) -> None:
        await self._http.aclose()

    async def get(self, path: str, **query: Any) -> Any:
        """The answer to a query; parameters that are None are left out."""
        request = self._http.build_request("GET", path, params=_present(query))
        return await self._answer(request, again=True)

    async def post(self, path: str, body: Any, key: str | None = None) -> Any:
        """The answer to a command; with an idempotency `key` it may be made again."""
        return await self.post_raw(path, json.dumps(body).encode("ascii"), key)

    async def post_raw(self, path: str, content: bytes, key: str | None = None) -> Any:
        """The same for a body that is JSON bytes already."""
        headers = {"content-type": "application/json"}
        if key:
            headers["idempotency-key"] = key
        request = self._http.build_request("POST", path, content=content, headers=headers)
        return await self._answer(request, again=key is not None)

    async def delete(self, path: str) -> Any:
        """The answer to a deletion."""
        return await self._answer(self._http.build_request("DELETE", path), again=False)

    async def pages(self, path: str, **query: Any) -> AsyncIterator[dict[str, Any]]:
        """Every entry of a list, page after page."""
        cursor = None
        while True:
            page = await self.get(path, **{"limit": 200, **query, "cursor": cursor})
            for item in page["items"]:
                yield item
            cursor = page.get("nextCursor")
            if not cursor:
                return

    async def events(
        self, path: str, after: str | None = None, **query: Any
    ) -> AsyncIterator[ServerEvent]:
        """An event stream without end, taken up again where it broke off."""
        request = partial(self._http.build_request, "GET", path, params=_present(query))
        async for event in self._followed(request, after):
            if event.event != RESUMED:
                yield event

    async def conversation(
        self, path: str, body: Any, key: str, after: str | None = None
    ) -> AsyncIterator[ServerEvent]:
        """The events with which a command is answered, up to the one that ends them.

        Where the stream broke off and was taken up again there is a `RESUMED` among them:
        events without an id that came before it may come again.
        """
        content = json.dumps(body).encode("ascii")
        fixed = {"content-type": "application/json", "idempotency-key": key}

        def request(headers: dict[str, str]) -> httpx.Request:
            return self._http.build_request(
                "POST", path, content=content, headers={**fixed, **headers}
            )

        async for event in self._followed(request, after):
            yield event
            if event.event in OVER:
                return

    async def _followed(
        self, request: Callable[..., httpx.Request], after: str | None
    ) -> AsyncIterator[ServerEvent]:
        seen, patience = after, Patience(self._patience_s)
        while True:
            try:
                async for event in self._stream(request, seen):
                    seen, patience = event.id or seen, Patience(self._patience_s)
                    yield event
                await patience.wait(Unreachable(self.url, "the stream ended"))
            except httpx.TransportError as error:
                await patience.wait(Unreachable(self.url, _reason(error)))
            except Problem as error:
                if error.status not in _BUSY:
                    raise
                await patience.wait(error)
            yield ServerEvent(RESUMED, "{}")

    async def _stream(
        self, request: Callable[..., httpx.Request], seen: str | None
    ) -> AsyncIterator[ServerEvent]:
        headers = {"accept": "text/event-stream"}
        if seen:
            headers["last-event-id"] = seen
        decoder = Decoder()
        answer = await self._http.send(request(headers=headers), stream=True)
        try:
            if answer.is_error:
                await answer.aread()
                raise _problem(answer)
            async for piece in answer.aiter_bytes():
                for event in decoder.feed(piece):
                    yield event
        finally:
            await answer.aclose()

    async def _answer(self, request: httpx.Request, again: bool) -> Any:
        patience = Patience(self._patience_s if again else 0.0)
        while True:
            try:
                answer = await self._http.send(request)
            except httpx.TransportError as error:
                await patience.wait(Unreachable(self.url, _reason(error)))
                continue
            if answer.is_success:
                return answer.json() if answer.content else None
            if answer.status_code not in _BUSY:
                raise _problem(answer)
            await patience.wait(_problem(answer))


class Patience:
    """How long a failing call is made again, with growing pauses in between."""

    def __init__(self, seconds: float) -> None:
        self._until = asyncio.get_running_loop().time() + seconds
        self._pause_s = _FIRST_PAUSE_S

    async def wait(self, failure: Exception, pause_s: float | None = None) -> None:
        """Pause before another try; out of patience, the failure is raised."""
        if pause_s is None:
            pause_s, self._pause_s = self._pause_s, min(self._pause_s * 2, _LONGEST_PAUSE_S)
        if asyncio.get_running_loop().time() + pause_s > self._until:
            raise failure
        await asyncio.sleep(pause_s)


def _present(query: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in query.items() if value is not None}


def _reason(error: httpx.TransportError) -> str:
    return str(error) or type(error).__name__


def _problem(answer: httpx.Response) -> Problem:
    try:
        body = answer.json()
    except ValueError:
        body = {}
    known = body if isinstance(body, dict) else {}
    sentence = (
        known.get("detail") or known.get("title") or f"the server answered {answer.status_code}"
    )
    return Problem(answer.status_code, str(known.get("code", "")), str(sentence))
