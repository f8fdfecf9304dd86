"""The routes for the AI SDK: what ``useChat`` posts, and the stream that it resumes."""

from __future__ import annotations

from typing import Annotated, Any, Final
from uuid import UUID

from fastapi import Body, Request, Response

from app.http.dependencies import IdempotencyKey, Services, Shutdown, Tenant
from app.http.routing import keyed_router
from app.http.ui.requests import UiRequest
from app.http.ui.stream import TurnStream

STREAM: Final[dict[str, Any]] = {
    "description": "The UI message stream, version 1; `[DONE]` ends it.",
    "content": {"text/event-stream": {}},
}

router = keyed_router("/conversations/{conversation_id}/ui", "ui")


@router.post("", response_class=Response, responses={200: STREAM})
async def answer_ui_message(
    conversation_id: UUID,
    request: Request,
    body: Annotated[UiRequest, Body()],
    services: Services,
    tenant: Tenant,
    stopping: Shutdown,
    idem: IdempotencyKey,
) -> Response:
    """Answer the last message of a chat, continue with results of its tools, or make its last reply again.

    Without an `Idempotency-Key` the message's own id is the key: a message that is sent twice has one effect, and both
    requests get the answer.
    """
    turns, key = services.ui_turns, idem or body.idem(conversation_id)
    regenerates = body.trigger == "regenerate-message"
    if regenerates:
        again, given = body.again()
        turn = await turns.regenerate(tenant, conversation_id, again, given, key)
    else:
        named, given = body.submitted()
        turn = await turns.submit(tenant, conversation_id, named, given, key)
    stream = TurnStream(services=services, tenant=tenant, conversation=conversation_id, request=request)
    return stream.response(turn, stopping, sends_earlier_parts=regenerates)


@router.get("/stream", response_class=Response, responses={200: STREAM, 204: {"description": "No turn runs."}})
async def resume_ui_stream(
    conversation_id: UUID, request: Request, services: Services, tenant: Tenant, stopping: Shutdown
) -> Response:
    """The running turn from its beginning, in whichever process it runs, with its whole message."""
    turn = await services.chat.follow(tenant, conversation_id)
    if turn is None:
        return Response(status_code=204)
    stream = TurnStream(services=services, tenant=tenant, conversation=conversation_id, request=request)
    return stream.response(turn, stopping, sends_earlier_parts=True)
