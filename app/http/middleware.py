"""The middleware of all requests, in pure ASGI: request id, log line, last error handler, limits of size and time.

Outermost first: ``RequestContext``, CORS, ``LastResort``, ``KnownHosts`` (``hosts.py``; only if no key is needed),
``BodyLimit``, ``Deadline``. So a refusal by an inner one has the headers of the outer ones.
"""

from __future__ import annotations

import asyncio
import time
import traceback
from pathlib import Path
from typing import Final

import structlog
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect, HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uuid_utils import uuid7

from app.core.model.errors import NotFoundError
from app.core.text.patterns import compiled
from app.http.disconnects import ClientGoneError
from app.http.errors import error_response
from app.http.limit_headers import rate_headers
from app.http.refusals import BodyTooLargeError, RequestTimeoutError, UnreadableError, UnsupportedMediaTypeError

REQUEST_ID_PATTERN: Final = compiled(r"[\x21-\x7e]{1,128}")
UUID_PATTERN: Final = compiled(r"[0-9a-f-]{36}")
FILE_PATH_PATTERN: Final = compiled(r"/conversations/[^/]{1,64}/files")
LOGIN_PATH: Final = "/ui/session"
LOGIN_BYTES: Final = 4_000
"""The most bytes of a login, which is the only body that is read without a key."""
PRIVATE: Final = "private, no-store"
"""The ``Cache-Control`` of answers to requests with a key or a session."""
MAX_PATH_LENGTH: Final = 4_000
"""The most characters of a path, unescaped. The longest that is used names an end user."""
MAX_PARAMETERS: Final = 1_000
"""The most parameters of a query."""
MAX_METHOD_LENGTH: Final = 32
"""The most characters of a request's method in the log: a client may send any word, with thousands of letters."""
SHOWN_FRAMES: Final = 8
CLIENT_CLOSED: Final = 499
"""The status in the log for a request whose client left before the response; it is not sent."""

log = structlog.get_logger("throughline.http")


class ResponseBrokenError(Exception):
    """A response failed half way; the cause is already in the log."""


class RequestContext:
    """Gives the request an id, binds it to the log, and writes one line at the end, with ids and numbers only.

    If the request counts towards a limit, the response says how much of it is left. No cache keeps an answer that only
    the owner of a key may see. Its places in limits of concurrency
    are released at the end.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = _request_id(scope)
        scope.setdefault("state", {})["request_id"] = request_id
        status = CLIENT_CLOSED

        async def with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                headers["X-Request-Id"] = request_id
                if "principal" in scope["state"]:  # a browser would keep the answer on its disk, also after a logout
                    headers.setdefault("Cache-Control", PRIVATE)
                for name, value in rate_headers(scope["state"].get("standing")).items():
                    headers.setdefault(name, value)
            await send(message)

        began = time.perf_counter()
        with structlog.contextvars.bound_contextvars(request_id=request_id):
            try:
                await self._app(scope, receive, with_id)
            finally:
                request_scope = scope["state"].get("request_scope")
                if request_scope is not None:
                    request_scope.end()
                _log_line(scope, status, time.perf_counter() - began)


class LastResort:
    """Turns an unexpected error into a problem without details, and into a log line with all of them."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        started = False

        async def watched(message: Message) -> None:
            nonlocal started
            started = started or message["type"] == "http.response.start"
            await send(message)

        try:
            await self._app(scope, receive, watched)
        except (ClientDisconnect, ClientGoneError):
            return
        except Exception as error:
            if scope["type"] != "http":
                raise
            log_failure(error)
            if started:
                # Only an error makes the server cut the connection, so that nobody takes the half response for the
                # whole.
                raise ResponseBrokenError from None
            await error_response(HTTPConnection(scope), error)(scope, receive, send)


class BodyLimit:
    """Refuses a body that is too large before all of it is read, a compressed body, and a very long address."""

    def __init__(self, app: ASGIApp, limit: int, file_limit: int) -> None:
        """``limit`` is the most bytes of a body; ``file_limit`` of a body that is a file of a conversation."""
        self._app = app
        self._limit = limit
        self._file_limit = file_limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        is_file = scope["type"] == "http" and FILE_PATH_PATTERN.fullmatch(scope["path"]) is not None
        limit = self._file_limit if is_file else self._limit
        if scope["type"] == "http" and scope["path"] == LOGIN_PATH:
            limit = min(limit, LOGIN_BYTES)
        too_large = _too_large(limit, is_file=is_file)
        refusal = _refused_address(scope)
        if refusal is None and scope["type"] == "http":
            refusal = _refused_size_or_encoding(Headers(scope=scope), limit, too_large)
        if refusal is not None:
            await error_response(HTTPConnection(scope), refusal)(scope, receive, send)
            return
        read = 0

        async def counted() -> Message:
            nonlocal read
            message = await receive()
            read += len(message.get("body", b""))
            if read > limit:
                raise too_large
            return message

        await self._app(scope, counted, send)


def _refused_address(scope: Scope) -> Exception | None:
    # Every route's pattern is tried on a path, and each parameter is read: both take time on the event loop.
    if scope["type"] != "http":
        return None
    if len(scope["path"]) > MAX_PATH_LENGTH:
        return NotFoundError(f"There is nothing at a path of more than {MAX_PATH_LENGTH} characters.")
    if scope["query_string"].count(b"&") >= MAX_PARAMETERS:
        return UnreadableError(f"A request has at most {MAX_PARAMETERS} query parameters.")
    return None


def _refused_size_or_encoding(headers: Headers, limit: int, too_large: BodyTooLargeError) -> Exception | None:
    if headers.get("content-encoding", "identity").strip().lower() != "identity":
        return UnsupportedMediaTypeError("Send the body without a Content-Encoding.")
    length = headers.get("content-length", "0")
    if not (length.isascii() and length.isdigit()):
        return UnreadableError("Content-Length must be a number.")
    return too_large if len(length) > len(str(limit)) or int(length) > limit else None


def _too_large(limit: int, *, is_file: bool) -> BodyTooLargeError:
    if is_file:
        detail = f"A file may have at most {limit} bytes: send a smaller one, or raise THROUGHLINE_MAX_FILE_BYTES."
    elif limit == LOGIN_BYTES:
        detail = f"A login may have at most {limit} bytes: send the key alone."
    else:
        detail = f"The body may have at most {limit} bytes: send it in parts, or raise THROUGHLINE_MAX_BODY_BYTES."
    return BodyTooLargeError(detail, extra={"limit": limit})


class Deadline:
    """Limits the time of the whole request; a stream has no limit once it has begun."""

    def __init__(self, app: ASGIApp, seconds: float) -> None:
        self._app = app
        self._seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = False

        async def watched(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                if _is_stream_or_file(Headers(raw=message["headers"])):
                    clock.reschedule(None)
            await send(message)

        try:
            async with asyncio.timeout(self._seconds) as clock:
                await self._app(scope, receive, watched)
        except TimeoutError:
            if started or not clock.expired():
                raise
            error = RequestTimeoutError(
                f"No answer within {self._seconds:g} seconds; what the request began may still be finished."
            )
            await error_response(HTTPConnection(scope), error)(scope, receive, send)


def _is_stream_or_file(headers: Headers) -> bool:
    is_file = headers.get("content-disposition", "").startswith("attachment")
    return is_file or headers.get("content-type", "").startswith("text/event-stream")


def _request_id(scope: Scope) -> str:
    given = Headers(scope=scope).get("x-request-id", "")
    return given if REQUEST_ID_PATTERN.fullmatch(given) else str(uuid7())


def log_failure(error: Exception) -> None:
    """Log the kind and place of an unexpected error, but not its message, which may quote a user's text."""
    if type(error) is RuntimeError and isinstance(error.__cause__, Exception):
        error = error.__cause__  # Starlette raised it because an answer had already begun
    frames = traceback.extract_tb(error.__traceback__)
    where = [f"{Path(item.filename).name}:{item.lineno} {item.name}" for item in frames[-SHOWN_FRAMES:]]
    log.error("http.failed", error=type(error).__name__, where=where)


def _log_line(scope: Scope, status: int, seconds: float) -> None:
    principal = scope["state"].get("principal")
    log.info(
        "http.request",
        method=scope["method"][:MAX_METHOD_LENGTH],
        route=getattr(scope.get("route"), "path_format", None),
        **{name: value for name, value in scope.get("path_params", {}).items() if UUID_PATTERN.fullmatch(str(value))},
        tenant_id=str(principal.tenant_id) if principal else None,
        status=int(status),
        duration_ms=round(seconds * 1000, 1),
    )
