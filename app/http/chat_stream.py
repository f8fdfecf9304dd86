"""Following the turn that runs, in whichever process: from its beginning, also after a reload of the page."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends, Header, Request, Response

from app.http.chat import streamed
from app.http.dependencies import Services, Shutdown, Tenant, bearer_key
from app.http.routing import TenantRoute
from app.http.telling import Teller

router = APIRouter(
    prefix="/conversations/{conversation_id}/chat/stream",
    route_class=TenantRoute,
    tags=["chat"],
    dependencies=[Depends(bearer_key)],
)


@router.get(
    "",
    response_class=Response,
    responses={
        200: {
            "description": "The events of the running turn, as `POST` streams them.",
            "content": {"text/event-stream": {}},
        },
        204: {"description": "No turn runs."},
    },
)
async def follow_turn(
    conversation_id: UUID,
    request: Request,
    services: Services,
    tenant: Tenant,
    stopping: Shutdown,
    accept_language: Annotated[
        str | None,
        Header(alias="Accept-Language", description="Of notifications; else the conversation's `locale`."),
    ] = None,
) -> Response:
    """The running turn from `message.created` on; a reply that was made in part already comes at once up to there."""
    turn = await services.chat.follow(tenant, conversation_id)
    if turn is None:
        return Response(status_code=204)
    return streamed(turn, Teller(services, tenant, conversation_id, accept_language), services, stopping, request)
