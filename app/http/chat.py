"""The routes of a chat turn: send a message and get the reply, whole or as a stream."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Annotated, Final
from uuid import UUID

from fastapi import Body, Header, Request, Response

from app.bootstrap import Container
from app.core.model.notifications import NOTIFIED_EVENT_TYPES, Notification
from app.core.text.patterns import compiled
from app.http import schemas
from app.http.chat_requests import ChatRequest
from app.http.dependencies import IdempotencyKey, Services, Shutdown, Tenant
from app.http.disconnects import ClientGoneError, while_client_present
from app.http.errors import accept_language_of, problem_of, request_id_of
from app.http.event_schemas import stream_of
from app.http.middleware import log_failure
from app.http.notifications import Notifier
from app.http.present import present_chat, present_interruption, present_notification
from app.http.refusals import unexpected_error
from app.http.requests import EmptyRequest
from app.http.routing import keyed_router
from app.http.shutdown import Stopping
from app.http.sse import EventStream, Steps, frame
from app.usecases.chat.turn_handle import ChatEvent, TurnHandle

STOPPING_GRACE: Final = 3.0
"""How many seconds a reply may go on after the process was told to end. The server waits longer for connections."""
EVENT_STREAM: Final = compiled(r"(^|,)\s*text/event-stream\s*(;(?!\s*q=0(\.0*)?\s*(,|$))|,|$)", re.IGNORECASE)

WishedLanguage = Annotated[
    str | None,
    Header(alias="Accept-Language", description="Of notifications in a stream; else the conversation's `locale`."),
]

router = keyed_router("/conversations/{conversation_id}/chat", "chat")


@router.post(
    "",
    status_code=201,
    response_model=schemas.ChatResult,
    responses={200: stream_of("ChatStreamEvent", "With `Accept: text/event-stream`.")},
)
async def chat(
    conversation_id: UUID,
    request: Request,
    services: Services,
    tenant: Tenant,
    stopping: Shutdown,
    idem: IdempotencyKey,
    body: Annotated[ChatRequest, Body()] = ChatRequest(),  # noqa: B008 - a frozen value
    accept_language: WishedLanguage = None,
) -> schemas.ChatResult | Response:
    """Send a message, results of your tools, or neither to answer what still waits, and get the reply."""
    turn = await services.chat.start(tenant, conversation_id, body.input(), idem=idem)
    return await turn_response(
        turn, Notifier(services, tenant, conversation_id, accept_language), services, stopping, request
    )


@router.post("/interrupt", status_code=202)
async def interrupt_chat(
    conversation_id: UUID,
    services: Services,
    tenant: Tenant,
    _idem: IdempotencyKey,
    _body: Annotated[EmptyRequest, Body()] = EmptyRequest(),  # noqa: B008 - a frozen value
) -> schemas.Interruption:
    """Stop the running reply, in whichever process it runs; what was said so far is kept."""
    return present_interruption(await services.chat.interrupt(tenant, conversation_id))


def wants_stream(request: Request) -> bool:
    """Whether the client accepts server-sent events."""
    return EVENT_STREAM.search(request.headers.get("accept", "")) is not None


async def turn_response(
    turn: TurnHandle, notifier: Notifier, services: Container, stopping: Stopping, request: Request
) -> schemas.ChatResult | Response:
    """The response for a turn: a stream of all events, or the whole reply, as the client asked."""
    if wants_stream(request):
        return reply_stream(turn, notifier, services, stopping, request)
    return await whole_reply(turn, request)


async def whole_reply(turn: TurnHandle, request: Request) -> schemas.ChatResult:
    """Wait for the whole reply. If the client leaves before, the policy decides what happens to the turn."""
    try:
        return present_chat(await while_client_present(turn.result(), request.receive))
    except ClientGoneError:
        await turn.note_client_left()
        raise


def reply_stream(
    turn: TurnHandle, notifier: Notifier, services: Container, stopping: Stopping, request: Request
) -> EventStream[NotifiedEvent]:
    """All events of a turn, from its beginning."""
    return EventStream(
        Steps(_notified_events(turn, notifier), services.settings.timings.stream_heartbeat_seconds),
        lambda notified: _frame(notified, request),
        stopping=stopping,
        grace=STOPPING_GRACE,
        on_disconnect=turn.note_client_left,
    )


@dataclass(frozen=True, slots=True)
class NotifiedEvent:
    """An event of a turn with its notification for the user."""

    event: ChatEvent
    notification: Notification | None = None


async def _notified_events(turn: TurnHandle, notifier: Notifier) -> AsyncIterator[NotifiedEvent]:
    try:
        async with aclosing(turn.events()) as events:
            async for event in events:
                yield NotifiedEvent(event, await notifier.notification_if_available(event.type, event.data))
    except Exception as error:  # noqa: BLE001 - a stream that has begun can only say it this way
        log_failure(error)
        yield NotifiedEvent(ChatEvent(type="reply.failed", error=unexpected_error()))


def _frame(notified: NotifiedEvent, request: Request) -> bytes:
    event = notified.event
    if event.result is not None:
        return frame(event.type, present_chat(event.result), event.id)
    if event.error is not None:
        return frame(event.type, problem_of(event.error, request_id_of(request), accept_language_of(request)), event.id)
    if event.type in NOTIFIED_EVENT_TYPES:
        return frame(event.type, {**event.data, "notification": present_notification(notified.notification)}, event.id)
    return frame(event.type, event.data, event.id)
