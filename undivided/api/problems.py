"""From errors to answers: one table, and one form for everything that goes wrong.

| family | status |
|---|---|
| NotFound | 404 |
| Rejected, Conflict, StaleFlight | 409 |
| NotReached | 412 |
| TooLarge | 413 |
| Invalid | 422 |
| Full | 429, with `Retry-After` |
| Corrupt, and whatever nobody foresaw | 500 |
| Unavailable | 503, with `Retry-After` |

Nothing internal leaks: what nobody foresaw is logged here and told as one sentence.
"""

from __future__ import annotations

import logging
from typing import Any, Final

import psycopg
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError
from starlette.exceptions import HTTPException

from undivided.api.answers import encoded
from undivided.domain import errors as e
from undivided.store.horizon import NotReached

log = logging.getLogger(__name__)

STATUS: Final[tuple[tuple[type[Exception], int], ...]] = (
    (e.NotFound, 404),
    (e.Rejected, 409),
    (e.Conflict, 409),
    (e.StaleFlight, 409),
    (NotReached, 412),
    (e.TooLarge, 413),
    (e.Invalid, 422),
    (e.Full, 429),
    (e.Unavailable, 503),
)
"""The first family that an error belongs to decides."""

TITLES: Final[dict[int, str]] = {
    404: "Not found",
    405: "Method not allowed",
    409: "Refused by a rule",
    412: "Position not reached",
    413: "Too large",
    422: "Invalid",
    429: "Full",
    500: "Internal error",
    503: "Unavailable",
}
UNFORESEEN = "something went wrong here that nobody foresaw; it was written to the log"
SCHEMA = "the database's schema is not the one this release needs; run `undivided migrate`"
NO_SCHEMA = (
    psycopg.errors.UndefinedTable,
    psycopg.errors.UndefinedColumn,
    psycopg.errors.UndefinedFunction,
    psycopg.errors.InsufficientPrivilege,
)


def problem(
    status: int,
    code: str,
    detail: str,
    errors: list[dict[str, Any]] | None = None,
    retry_after_s: int | None = None,
) -> Response:
    """One problem+json answer."""
    body: dict[str, Any] = {
        "type": f"urn:undivided:problem:{code}",
        "title": TITLES.get(status, "Error"),
        "status": status,
        "detail": detail,
        "code": code,
    }
    if errors is not None:
        body["errors"] = errors
    headers = {} if retry_after_s is None else {"Retry-After": str(retry_after_s)}
    return Response(encoded(body), status, headers, "application/problem+json")


def answer_to(error: Exception) -> Response:
    """The answer that an error becomes."""
    if isinstance(error, ValidationError):
        return invalid_fields(list(error.errors(include_url=False, include_context=False)))
    if isinstance(error, NO_SCHEMA):
        return problem(503, "schema_not_current", SCHEMA, retry_after_s=5)
    status = next((status for family, status in STATUS if isinstance(error, family)), 500)
    if status == 500 or not isinstance(error, e.Undivided):
        log.error("unforeseen %s", type(error).__name__, exc_info=error)
        return problem(500, "internal", UNFORESEEN)
    errors = None
    if isinstance(error, e.Invalid):
        errors = [{"field": error.field, "detail": str(error)}]
    return problem(status, error.code, str(error), errors, _retry_after(error))


def _retry_after(error: e.Undivided) -> int | None:
    if isinstance(error, e.Full):
        return error.retry_after_s
    return 1 if isinstance(error, e.Unavailable) else None


def invalid_fields(mistakes: list[Any]) -> Response:
    """422 for what a body or query says wrong, field by field."""
    errors = [
        {"field": ".".join(str(part) for part in mistake["loc"]), "detail": _said(mistake["msg"])}
        for mistake in mistakes[:50]
    ]
    first = errors[0] if errors else {"field": "", "detail": "invalid"}
    named = f"{first['field']}: {first['detail']}" if first["field"] else str(first["detail"])
    return problem(422, "invalid", named, errors)


def _said(message: str) -> str:
    """A mistake without pydantic's name for its own kind of error."""
    return message.removeprefix("Value error, ")


async def _undivided(_request: Request, error: Exception) -> Response:
    return answer_to(error)


async def _http(_request: Request, error: Exception) -> Response:
    if not isinstance(error, HTTPException):
        return answer_to(error)
    codes = {404: "no_such_path", 405: "method_not_allowed"}
    code = codes.get(error.status_code, "http_error")
    answer = problem(error.status_code, code, str(error.detail))
    answer.headers.update(error.headers or {})
    return answer


async def _request(_request: Request, error: Exception) -> Response:
    if not isinstance(error, RequestValidationError):
        return answer_to(error)
    return invalid_fields(list(error.errors()))


def install(app: FastAPI) -> None:
    """Have every error of `app` answered by this table."""
    app.add_exception_handler(e.Undivided, _undivided)
    app.add_exception_handler(ValidationError, _undivided)
    app.add_exception_handler(psycopg.Error, _undivided)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(RequestValidationError, _request)
    app.add_exception_handler(Exception, _undivided)
