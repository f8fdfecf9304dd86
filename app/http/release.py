"""Operations on a conversation that was set aside."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import Body

from app.http import schemas
from app.http.dependencies import IdempotencyKey, Services, Tenant
from app.http.present import present_conversation
from app.http.requests import EmptyRequest
from app.http.routing import AdminRoute, keyed_router

router = keyed_router("/conversations/{conversation_id}/release", "conversations", AdminRoute)


@router.post("")
async def release_conversation(
    conversation_id: UUID,
    services: Services,
    tenant: Tenant,
    _idem: IdempotencyKey,
    _body: Annotated[EmptyRequest, Body()] = EmptyRequest(),  # noqa: B008 - a frozen value
) -> schemas.Conversation:
    """Release a conversation that was set aside because processes ended during work on it.

    The scope `admin` is needed.
    """
    return present_conversation(await services.release.release(tenant, conversation_id))
