"""Pins: messages that are served verbatim for ever."""

from __future__ import annotations

from uuid import UUID

from app.http import schemas
from app.http.dependencies import Services, Tenant
from app.http.routing import keyed_router

router = keyed_router("/conversations/{conversation_id}/messages/{message_id}/pin", "messages")


@router.put("")
async def pin_message(conversation_id: UUID, message_id: UUID, services: Services, tenant: Tenant) -> schemas.Message:
    """Hold a message verbatim; 409 `pin_budget_exceeded`, with the numbers, when the policy has no room for it."""
    return schemas.Message.model_validate(await services.pins.pin(tenant, conversation_id, message_id))


@router.delete("")
async def unpin_message(conversation_id: UUID, message_id: UUID, services: Services, tenant: Tenant) -> schemas.Message:
    """Let go of a pin; the message is still protected where the policy's rules say so."""
    return schemas.Message.model_validate(await services.pins.unpin(tenant, conversation_id, message_id))
