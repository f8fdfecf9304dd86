"""Pins: messages that are served verbatim for ever."""

from __future__ import annotations

from uuid import UUID

from app.http import schemas
from app.http.dependencies import Services, Tenant
from app.http.routing import keyed_router

router = keyed_router("/conversations/{conversation_id}/messages/{message_id}/pin", "messages")


@router.put("")
async def pin_message(conversation_id: UUID, message_id: UUID, services: Services, tenant: Tenant) -> schemas.Message:
    """Pin a message, so that it is served verbatim.

    409 `pin_budget_exceeded`, with numbers, if the policy has no room for it.
    """
    return schemas.Message.model_validate(await services.pins.pin(tenant, conversation_id, message_id))


@router.delete("")
async def unpin_message(conversation_id: UUID, message_id: UUID, services: Services, tenant: Tenant) -> schemas.Message:
    """Remove a pin. The message stays protected if a rule of the policy protects it."""
    return schemas.Message.model_validate(await services.pins.unpin(tenant, conversation_id, message_id))
