"""The routes that follow a running turn, in whichever process it runs, and that make the last reply again."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import Body, Request, Response

from app.http import schemas
from app.http.chat import WishedLanguage, reply_stream, turn_response
from app.http.dependencies import IdempotencyKey, Services, Shutdown, Tenant
from app.http.event_schemas import stream_of
from app.http.notifications import Notifier
from app.http.requests import RegenerateRequest
from app.http.routing import keyed_router

router = keyed_router("/conversations/{conversation_id}/chat", "chat")


@router.get(
    "/stream",
    response_class=Response,
    responses={
        200: stream_of("ChatStreamEvent", "The events of the turn, as `POST` streams them."),
        204: {"description": "No turn runs."},
    },
)
async def follow_turn(
    conversation_id: UUID,
    request: Request,
    services: Services,
    tenant: Tenant,
    stopping: Shutdown,
    accept_language: WishedLanguage = None,
) -> Response:
    """The running turn from `message.created` on; the part of the reply that was said before comes at once."""
    turn = await services.chat.follow(tenant, conversation_id)
    if turn is None:
        return Response(status_code=204)
    return reply_stream(turn, Notifier(services, tenant, conversation_id, accept_language), services, stopping, request)


@router.post(
    "/regenerate",
    status_code=201,
    response_model=schemas.ChatResult,
    responses={200: stream_of("ChatStreamEvent", "With `Accept: text/event-stream`.")},
)
async def regenerate_reply(
    conversation_id: UUID,
    request: Request,
    services: Services,
    tenant: Tenant,
    stopping: Shutdown,
    idem: IdempotencyKey,
    body: Annotated[RegenerateRequest, Body()] = RegenerateRequest(),  # noqa: B008 - a frozen value
    accept_language: WishedLanguage = None,
) -> schemas.ChatResult | Response:
    """Answer the last message again.

    The first reply stays in the history as `superseded`, and is not served any more.
    """
    turn = await services.chat.start(tenant, conversation_id, body.input(), idem=idem)
    return await turn_response(
        turn, Notifier(services, tenant, conversation_id, accept_language), services, stopping, request
    )
