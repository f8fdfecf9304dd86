"""Responses over one connection that stays open: a WebSocket at ``/v1/responses``.

Each text frame is a ``response.create``, answered by the events of a response's stream, one request at a time. A
response that is not stored (``store: false``) is remembered for this connection only, so that a later request can
continue it. It is forgotten if such a request fails.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

import structlog
from fastapi import APIRouter, WebSocket
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError
from pydantic_core import to_json
from starlette.websockets import WebSocketDisconnect
from uuid_utils import uuid7

from app.bootstrap import Container
from app.core.model.errors import DomainError
from app.core.text.budget import first_fitting
from app.http.auth import address_of, given_key
from app.http.disconnects import cancel
from app.http.errors import error_response, status_of, validation_refusal
from app.http.middleware import log_failure
from app.http.openai.answers import response_events
from app.http.openai.beginning import begin_response, previous_messages
from app.http.openai.errors import PREFIX, openai_error, openai_status
from app.http.openai.inputs import attempt_of, drafts_of
from app.http.openai.resources import Json
from app.http.openai.response_requests import ResponseRequest
from app.http.openai.sending import STOPPING_GRACE
from app.http.refusals import BodyTooLargeError, UnreadableError, unexpected_error
from app.http.shutdown import Stopping
from app.http.strict_json import parse
from app.off_loop import act_for, off_loop
from app.usecases.history.drafts import MessageDraft, bytes_of
from app.usecases.shared.caller import Principal, RequestScope

CONNECTION_SECONDS: Final = 3_600.0
"""The most seconds that a connection lasts. With a key it may last less, and it ends when its key does."""
REMEMBERED_RESPONSES: Final = 8
"""How many responses a connection remembers."""
REMEMBERED_MESSAGES: Final = 2_000
"""How many messages of one response a connection remembers, the newest."""
REMEMBERED_BYTES: Final = 16_000_000
"""The most bytes that a connection remembers. Older responses are dropped first, then the oldest messages of one."""
GRACE_SECONDS: Final = 2.0
"""How many seconds the current request may still run after the client has left."""
MAX_WAITING_REQUESTS: Final = 1
"""How many requests may wait while one is answered; a client that sends more is not read meanwhile."""
CLOSE_REFUSED: Final = 1008
CLOSE_ENDED: Final = 1001
CREATE_TYPE: Final = "response.create"
CLIENT_GONE_ERRORS: Final = (WebSocketDisconnect, RuntimeError)
"""What receiving and sending raise after the client has left."""

router = APIRouter(prefix=PREFIX)
log = structlog.get_logger("throughline.http")


@dataclass(frozen=True, slots=True)
class _RememberedResponse:
    """The messages up to the end of a response, and their sizes in bytes."""

    messages: tuple[MessageDraft, ...]
    sizes: tuple[int, ...]


_NOTHING_REMEMBERED: Final = _RememberedResponse((), ())


@dataclass(slots=True)
class Memory:
    """What a connection remembers of responses that are not stored."""

    _responses: OrderedDict[str, _RememberedResponse] = field(default_factory=OrderedDict)

    def messages_of(self, id_: str | None) -> tuple[MessageDraft, ...]:
        """The messages up to the end of that response; empty if it is not remembered."""
        return self._responses.get(id_ or "", _NOTHING_REMEMBERED).messages

    def remember(self, id_: str, previous: str | None, messages: Sequence[MessageDraft]) -> None:
        """Remember a response that continues the previous one with these messages."""
        earlier = self._responses.get(previous or "", _NOTHING_REMEMBERED)
        sizes = (*earlier.sizes, *map(bytes_of, messages))[-REMEMBERED_MESSAGES:]
        count = len(first_fitting(sizes[::-1], REMEMBERED_BYTES, int))
        newest = (*earlier.messages, *messages)[len(earlier.messages) + len(messages) - count :]
        self._responses[id_] = _RememberedResponse(newest, sizes[len(sizes) - count :])
        while len(self._responses) > REMEMBERED_RESPONSES or self._bytes > REMEMBERED_BYTES:
            self._responses.popitem(last=False)

    @property
    def _bytes(self) -> int:
        # Messages that two responses share count twice.
        return sum(sum(kept.sizes) for kept in self._responses.values())

    def forget(self, id_: str | None) -> None:
        """Forget a response because a request that continued it failed."""
        if id_:
            self._responses.pop(id_, None)


@router.websocket("/responses")
async def respond_over_socket(socket: WebSocket) -> None:
    """Accept a connection with a valid key, and answer requests until it ends."""
    services: Container = socket.app.state.container
    if not _is_allowed_origin(socket, services):
        await socket.close(CLOSE_REFUSED)
        return
    request_scope: RequestScope | None = None
    try:
        principal = await _principal(socket, services)
        request_scope = RequestScope(principal)
        request_scope.begin()
        act_for(services.shares, principal.tenant_id)
        await services.limits.admit(principal)
        await services.limits.hold("open_streams")
        await socket.accept()
        with structlog.contextvars.bound_contextvars(request_id=str(uuid7())):
            log.info("socket.opened", tenant_id=str(principal.tenant_id))
            await _answer_until_over(socket, services, principal)
            log.info("socket.closed", tenant_id=str(principal.tenant_id))
    except DomainError as error:
        with suppress(*CLIENT_GONE_ERRORS):
            await socket.send_denial_response(error_response(socket, error))
    finally:
        if request_scope is not None:
            request_scope.end()


async def _principal(socket: WebSocket, services: Container) -> Principal:
    """The principal of the key with which the socket was opened, as the key is now.

    Raises what ``authorize`` raises.
    """
    key = given_key(services, socket.headers.get("authorization"), placeholders=True)
    principal = await services.keys.authenticate(key, address_of(socket))
    principal.require("write")
    return principal


async def _answer_until_over(socket: WebSocket, services: Container, principal: Principal) -> None:
    """Answer until the client leaves, the process ends, or the connection or its key is too old."""
    stopping: Stopping = socket.app.state.stopping
    requests: asyncio.Queue[str | None] = asyncio.Queue(MAX_WAITING_REQUESTS)
    reading = asyncio.create_task(_queue_frames(socket, requests))
    answering = asyncio.create_task(_answer_requests(socket, services, requests))
    ending = asyncio.create_task(stopping.wait(0))
    over = asyncio.create_task(services.limits.stream_over(principal))
    tasks = (reading, answering, ending, over)
    try:
        await asyncio.wait(tasks, timeout=CONNECTION_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        has_client_left = reading.done()
        if has_client_left:  # the present work may still end
            await asyncio.wait({answering}, timeout=GRACE_SECONDS)
        elif stopping.has_begun:  # likewise, as that of a stream; what waits behind it is not begun
            await cancel(reading)
            while not requests.empty():
                requests.get_nowait()
            requests.put_nowait(None)
            await asyncio.wait({answering}, timeout=STOPPING_GRACE)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    if not has_client_left:
        with suppress(*CLIENT_GONE_ERRORS):
            await socket.close(CLOSE_ENDED)


async def _queue_frames(socket: WebSocket, requests: asyncio.Queue[str | None]) -> None:
    try:
        while True:
            await requests.put(await _next_frame(socket))
    except CLIENT_GONE_ERRORS:
        # ``None`` means that the client has left.
        with suppress(asyncio.QueueFull):
            requests.put_nowait(None)


async def _next_frame(socket: WebSocket) -> str:
    try:
        return await socket.receive_text() or ""
    except KeyError:
        # A frame of bytes is read as an empty text, which is refused because it is not JSON.
        return ""


async def _answer_requests(socket: WebSocket, services: Container, requests: asyncio.Queue[str | None]) -> None:
    memory = Memory()
    while (text := await requests.get()) is not None:
        previous: str | None = None
        request_scope: RequestScope | None = None
        try:
            principal = await _principal(socket, services)
            request_scope = RequestScope(principal)
            request_scope.begin()
            await services.limits.admit(principal)
            body = await off_loop(_request, text, services.settings.max_body_bytes, size=len(text))
            previous = body.previous_response_id
            await _respond(socket, services, principal.tenant_id, memory, body, text.encode())
        except DomainError as error:
            memory.forget(previous)
            await _send(socket, _error_event(error))
        except CLIENT_GONE_ERRORS:
            return
        except Exception as error:  # noqa: BLE001 - the connection outlives a defect of ours
            log_failure(error)
            memory.forget(previous)
            await _send(socket, _error_event(unexpected_error()))
        finally:
            if request_scope is not None:
                request_scope.end()


def _request(text: str, limit: int) -> ResponseRequest:
    """The request in a frame. Raises ``DomainError`` if it is no request."""
    raw = text.encode(errors="surrogatepass")
    if len(raw) > limit:
        raise BodyTooLargeError(f"A request may have at most {limit} bytes.")
    document = parse(raw)
    if not isinstance(document, dict) or document.get("type") != CREATE_TYPE:
        raise UnreadableError(f"A JSON object of type {CREATE_TYPE} is expected.")
    try:
        return ResponseRequest.model_validate(document)
    except ValidationError as error:
        found = [{**item, "loc": ("body", *item["loc"])} for item in error.errors()]
        raise validation_refusal(RequestValidationError(found)) from None


async def _respond(
    socket: WebSocket, services: Container, tenant_id: UUID, memory: Memory, body: ResponseRequest, raw: bytes
) -> None:
    """Answer one request. Raises the error with which it is refused."""
    before: tuple[MessageDraft, ...] = ()
    to_answer = body
    if not body.stores:
        before = memory.messages_of(body.previous_response_id) or await previous_messages(services, tenant_id, body)
    if before:
        to_answer = body.model_copy(update={"previous_response_id": None})
    answering = await begin_response(
        services, tenant_id, to_answer, headers=socket.headers, attempt=attempt_of(socket.headers, raw), before=before
    )
    answering.echo = {**answering.echo, "previous_response_id": body.previous_response_id}
    response: Json = {}
    try:
        async with aclosing(response_events(answering)) as events:
            async for event in events:
                response = event.get("response", response)
                await _send(socket, event)
    except BaseException:
        stopping: Stopping = socket.app.state.stopping
        if answering.on_disconnect is not None and not stopping.has_begun:  # else it is not the client that leaves
            await answering.on_disconnect()
        raise
    if answering.error is not None:
        memory.forget(body.previous_response_id)
    elif not body.stores:
        given = await drafts_of(services, tenant_id, body.items)
        made = await off_loop(lambda: ResponseRequest.model_validate({"input": response["output"]}).items)
        messages = [*given, *await drafts_of(services, tenant_id, made)]
        if not memory.messages_of(body.previous_response_id):  # it continues a stored response
            messages = [*before, *messages]
        await off_loop(memory.remember, response["id"], body.previous_response_id, messages)


async def _send(socket: WebSocket, event: Json) -> None:
    await socket.send_text(to_json(event).decode())


def _error_event(error: DomainError) -> Json:
    status = openai_status(error, status_of(error))
    return {"type": "error", "status": status, "error": openai_error(error, status)}


def _is_allowed_origin(socket: WebSocket, services: Container) -> bool:
    # A browser sends a preflight request for another origin (CORS), but not before it opens a socket.
    origin: Any = socket.headers.get("origin")
    return origin is None or origin in services.settings.cors_origins
