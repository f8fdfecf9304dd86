"""Erasing a message."""

from __future__ import annotations

from uuid import UUID

from fastapi import APIRouter, Depends

from app.http.dependencies import Services, Tenant, bearer_key
from app.http.routing import TenantRoute

router = APIRouter(
    prefix="/conversations/{conversation_id}/messages",
    route_class=TenantRoute,
    tags=["messages"],
    dependencies=[Depends(bearer_key)],
)


@router.delete("/{message_id}", status_code=204)
async def erase_message(conversation_id: UUID, message_id: UUID, services: Services, tenant: Tenant) -> None:
    """Erase a message and all that was derived from it; its place in the history stays."""
    await services.erasure.erase(tenant, conversation_id, message_id)
