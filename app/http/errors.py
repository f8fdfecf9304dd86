"""Errors in responses: RFC 9457 problems, and the one table from codes to statuses.

Below ``/v1`` they have the form of OpenAI's API instead (``openai/errors.py``).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache
from http import HTTPStatus
from typing import Any, Final

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter
from pydantic_core import to_json
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection
from starlette.responses import Response
from starlette.routing import BaseRoute, Match, Route

from app.core.model.errors import DomainError, FieldError, NotFoundError
from app.core.model.json_schemas import names_at
from app.core.model.redaction import redact, redact_value
from app.core.text.localization.catalogue import Catalogue, catalogue_of
from app.http.limit_headers import refused_headers
from app.http.openai.errors import PREFIX, has_openai_errors, is_openai_path, openai_error, openai_status
from app.http.refusals import MethodNotAllowedError, UnreadableError, invalid_input, unexpected_error

STATUS: Final[Mapping[str, int]] = {
    "unreadable": 400,
    "unauthenticated": 401,
    "forbidden": 403,
    "not_found": 404,
    "previous_response_not_found": 404,
    "method_not_allowed": 405,
    "conflict": 409,
    "compaction_in_progress": 409,
    "conversation_moved_on": 409,
    "conversation_set_aside": 409,
    "fork_in_progress": 409,
    "no_room_for_file": 409,
    "not_failed": 409,
    "not_pinnable": 409,
    "not_regenerable": 409,
    "pin_budget_exceeded": 409,
    "idempotency_in_progress": 409,
    "tools_pending": 409,
    "turn_in_progress": 409,
    "state_version_mismatch": 412,
    "body_too_large": 413,
    "message_too_large": 413,
    "unsupported_media_type": 415,
    "host_not_allowed": 421,
    "invalid_input": 422,
    "budget_too_small": 422,
    "idempotency_key_reused": 422,
    "model_not_allowed": 422,
    "not_folded": 422,
    "policy_invalid": 422,
    "unknown_preset": 422,
    "unsupported_parameter": 422,
    "rate_limited": 429,
    "internal_error": 500,
    "empty_summary": 502,
    "model_failed": 502,
    "summarizer_failed": 502,
    "context_over_window": 503,
    "dependency_unavailable": 503,
    "lease_expired": 503,
    "model_unavailable": 503,
    "request_timeout": 503,
}
"""The status of each code. A class's own ``stable_code`` without an entry here has the status of the class."""

MEDIA_TYPE: Final = "application/problem+json"
SHOULD_RETRY: Final = "X-Should-Retry"
"""The header in which OpenAI's SDKs are told whether to retry."""
MAX_ERRORS: Final = 50
"""The most ``errors`` shown, so that a body with a million wrong keys does not get a larger answer."""
MAX_TEXT_LENGTH: Final = 300
"""The most characters of one message or field name, since pydantic's messages may quote the input."""
MAX_SCANNED_CHARACTERS: Final = 1_200
"""How many characters of such a text are searched for secrets: enough to find one that begins in the shown part."""
WAIT_STATUSES: Final = frozenset({409, 429, 503})
"""Statuses after which another try soon makes sense. Their answers always have a ``Retry-After``."""
_PLAIN_MESSAGES: Final[Mapping[str, str]] = {
    "extra_forbidden": "is not a field of this request",
    "model_attributes_type": "must be a JSON object",
    "dict_type": "must be a JSON object",
    "list_type": "must be a JSON array",
    "union_tag_not_found": "must be a JSON object with a type",
}
"""Messages in the terms of JSON, for errors that pydantic describes in the terms of Python."""
PART_TYPES: Final = frozenset({"text", "tool_call", "tool_result", "media"})
"""Pydantic puts the type of a part into the path of an error; it is not shown."""


class ProblemField(BaseModel):
    """One invalid field."""

    field: str
    message: str


class Problem(BaseModel):
    """An RFC 9457 problem; some codes have further members (``message_id``, ``limit``, ``breakdown`` …)."""

    model_config = ConfigDict(extra="allow")

    type: str = Field(examples=["urn:throughline:problem:not_found"])
    title: str
    status: int
    detail: str
    code: str = Field(description="Stable; clients branch on it.")
    retryable: bool
    request_id: str
    errors: list[ProblemField] = Field(default_factory=list)
    retry_after: int | None = Field(
        default=None, ge=1, description="Seconds, as in `Retry-After`; only where that is told."
    )


def status_of(error: DomainError) -> int:
    """The status of an error's code, or of the nearest class above it that has one."""
    codes = (error.stable_code, *(cls.code for cls in type(error).__mro__ if issubclass(cls, DomainError)))
    return next((STATUS[code] for code in codes if code in STATUS), 500)


def problem_of(error: Exception, request_id: str, accept_language: str | None = None) -> dict[str, Any]:
    """The members of the problem, without secrets from the request; of an unexpected exception nothing is shown.

    ``accept_language`` is an ``Accept-Language`` header, which decides the language of ``title``.
    """
    catalogue = catalogue_of(accept_language)
    known = error if isinstance(error, DomainError) else unexpected_error()
    status = status_of(known)
    members = {
        "type": f"urn:throughline:problem:{known.stable_code}",
        "title": _title(known, catalogue),
        "status": status,
        "detail": redact(known.detail),
        "code": known.stable_code,
        "retryable": known.retryable,
        "request_id": request_id,
        "errors": [
            {"field": redact(item.field), "message": redact(item.message)} for item in known.errors[:MAX_ERRORS]
        ],
    }
    wait = _seconds_to_wait(known, status)
    if wait is not None:
        members["retry_after"] = wait  # in a stream there is no header for it
    return members | {name: redact_value(value) for name, value in known.extra.items() if name not in members}


def _title(error: DomainError, catalogue: Catalogue) -> str:
    codes = (error.stable_code, *(cls.code for cls in type(error).__mro__ if issubclass(cls, DomainError)))
    return next((title for code in codes if (title := catalogue.own.get(f"title.{code}"))), error.title)


def problem_response(
    error: Exception, request_id: str, headers: Mapping[str, str] | None = None, accept_language: str | None = None
) -> Response:
    """The problem as a response, with ``Retry-After`` and ``WWW-Authenticate`` if they apply."""
    members = problem_of(error, request_id, accept_language)
    merged = {**_headers_of(error, members["status"]), **(headers or {})}
    return Response(to_json(members), status_code=members["status"], headers=merged, media_type=MEDIA_TYPE)


def error_response(connection: HTTPConnection, error: Exception, headers: Mapping[str, str] | None = None) -> Response:
    """The error in the form of the API in use: OpenAI's below ``/v1``, a problem everywhere else."""
    if not has_openai_errors(connection.scope["path"]):
        return problem_response(error, request_id_of(connection), headers, accept_language_of(connection))
    known = error if isinstance(error, DomainError) else unexpected_error()
    status = openai_status(known, status_of(known))
    merged = {**_retry_refusal(error), **_headers_of(error, status), **(headers or {})}
    asked, path = connection.scope.get("path_params"), connection.scope["path"]
    return Response(
        to_json({"error": openai_error(known, status, asked=asked, path=path)}),
        status_code=status,
        headers=merged,
        media_type="application/json",
    )


def request_id_of(connection: HTTPConnection) -> str:
    """The id that the middleware gave the request."""
    return str(getattr(connection.state, "request_id", ""))


def accept_language_of(request: HTTPConnection) -> str | None:
    """The ``Accept-Language`` header of the request."""
    return request.headers.get("accept-language")


def install(app: FastAPI, routes: Sequence[BaseRoute]) -> None:
    """Answer every expected error with a problem; the middleware answers unexpected ones.

    ``routes`` are those of the app.
    """

    async def on_http_exception(request: Request, error: Exception) -> Response:
        return _on_http_exception(request, error, routes)

    app.add_exception_handler(DomainError, _on_domain_error)
    app.add_exception_handler(RequestValidationError, _on_validation_error)
    app.add_exception_handler(HTTPException, on_http_exception)


async def _on_domain_error(request: Request, error: Exception) -> Response:
    return error_response(request, error)


async def _on_validation_error(request: Request, error: Exception) -> Response:
    return error_response(request, validation_refusal(error, _body_type(request.scope.get("route"))))


def _body_type(route: object) -> Any:
    field = route.body_field if isinstance(route, APIRoute) else None
    return field.field_info.annotation if field is not None else None


def validation_refusal(error: Exception, body: Any = None) -> DomainError:
    """The error for an invalid body or invalid parameters.

    ``body`` is the type of the body that the route takes; the error lists its fields.
    """
    found = error.errors() if isinstance(error, RequestValidationError) else []
    if any(tuple(item["loc"]) == ("body",) and item["type"] == "missing" for item in found):
        return UnreadableError("A JSON object is expected as the body.")
    return invalid_input([_field_error(item, body) for item in found[:MAX_ERRORS]], count=len(found))


def _on_http_exception(request: Request, error: Exception, routes: Sequence[BaseRoute]) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    headers = dict(error.headers or {}) if isinstance(error, HTTPException) else {}
    if status == HTTPStatus.METHOD_NOT_ALLOWED:
        methods = ", ".join(sorted(_methods_at(request, routes)))
        refusal = MethodNotAllowedError(f"This path takes {methods}, and not {_shortened(request.method)}.")
        return error_response(request, refusal, {**headers, "Allow": methods})
    if status == HTTPStatus.NOT_FOUND:
        return error_response(request, NotFoundError(_not_found_text(request, routes)), headers)
    return error_response(request, _error_for_status(status), headers)


def _not_found_text(request: Request, routes: Sequence[BaseRoute]) -> str:
    path: str = request.scope["path"]
    without_empty_steps = "/".join(["", *filter(None, path.split("/"))])
    others = {without_empty_steps, path.removeprefix(PREFIX) if is_openai_path(path) else f"{PREFIX}{path}"}
    scopes = [{**request.scope, "path": other} for other in others if is_openai_path(other)]
    is_there = any(route.matches(scope)[0] is not Match.NONE for scope in scopes for route in routes)
    if is_there or (has_openai_errors(path) and not is_openai_path(path)):
        return (
            f"There is nothing at this path: clients of OpenAI's API take an address that ends with {PREFIX}, once and"
            " without a slash (docs/openai.md)."
        )
    return "There is nothing at this path. The page is at /ui/; openapi.json and docs/contract.md list every path."


def _methods_at(request: Request, routes: Sequence[BaseRoute]) -> set[str]:
    # The router's own answer would name the methods of only one of these routes.
    matching = (route for route in routes if route.matches(request.scope)[0] is not Match.NONE)
    return {method for route in matching if isinstance(route, Route) for method in route.methods or ()}


def _error_for_status(status: int) -> DomainError:
    if status < HTTPStatus.INTERNAL_SERVER_ERROR:
        return UnreadableError("The request cannot be read.")
    return unexpected_error()


def _field_error(item: Mapping[str, Any], body: Any) -> FieldError:
    known_fields = _known_fields(item["loc"], body) if body is not None and item["type"] == "extra_forbidden" else ""
    return FieldError(field=_dotted_path(item["loc"]), message=_message_of_fault(item) + known_fields)


def _known_fields(location: Sequence[str | int], body: Any) -> str:
    names = ", ".join(names_at(_json_schema(body), location[1:-1]))
    return f"; there are {names}" if names and len(names) <= MAX_TEXT_LENGTH else ""


@cache
def _json_schema(body: Any) -> dict[str, Any]:
    return TypeAdapter(body).json_schema()


def _dotted_path(location: Sequence[str | int]) -> str:
    kept: list[str | int] = []
    for step in location[1:]:
        # Tags of a union are in angle brackets, or come after an index of ``parts``.
        is_tag = step in PART_TYPES and len(kept) > 1 and isinstance(kept[-1], int) and kept[-2] == "parts"
        is_tag = is_tag or (isinstance(step, str) and step.startswith("<"))
        if not is_tag:
            kept.append(step)
    steps = [_shortened(step) if isinstance(step, str) else str(step) for step in kept]
    return ".".join(steps) or str(location[0])


def _message_of_fault(item: Mapping[str, Any]) -> str:
    reason = item.get("ctx", {}).get("error") if item["type"] == "value_error" else None
    words = reason or _PLAIN_MESSAGES.get(item["type"], item["msg"])
    return _shortened(str(words))


def _shortened(text: str) -> str:
    # The name of a field, or a quoted input, may be megabytes long.
    return redact(text[:MAX_SCANNED_CHARACTERS])[:MAX_TEXT_LENGTH]


def _retry_refusal(error: Exception) -> dict[str, str]:
    """The header that tells OpenAI's SDKs not to retry: otherwise they repeat each 409 and 5xx, which may cost money.

    Whether an unexpected error may be retried is unknown, so that is left to them.
    """
    is_final = isinstance(error, DomainError) and not (error.retryable or error.retry_after)
    return {SHOULD_RETRY: "false"} if is_final else {}


def _headers_of(error: Exception, status: int) -> dict[str, str]:
    if status == HTTPStatus.UNAUTHORIZED:
        return {"WWW-Authenticate": "Bearer"}
    if not isinstance(error, DomainError) or (wait := _seconds_to_wait(error, status)) is None:
        return {}
    return {"Retry-After": str(wait), **refused_headers(error)}


def _seconds_to_wait(error: DomainError, status: int) -> int | None:
    if not (error.retryable or error.retry_after):
        return None
    if error.retry_after is None and status not in WAIT_STATUSES:
        return None
    return max(1, math.ceil(error.retry_after or 1))
