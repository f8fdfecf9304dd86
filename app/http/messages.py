"""The session history: append to it, read it whole."""

from __future__ import annotations

from uuid import UUID

from fastapi import APIRouter, Depends

from app.http import schemas
from app.http.dependencies import IdempotencyKey, PagingFromStart, Services, Tenant, bearer_key
from app.http.present import present_list, present_message
from app.http.requests import MessageAppend, MessageBatch
from app.http.routing import TenantRoute

router = APIRouter(
    prefix="/conversations/{conversation_id}/messages",
    route_class=TenantRoute,
    tags=["messages"],
    dependencies=[Depends(bearer_key)],
)


@router.post("", status_code=201)
async def append_message(
    conversation_id: UUID, body: MessageAppend, services: Services, tenant: Tenant, idem: IdempotencyKey
) -> schemas.Message:
    """Append a message without asking a model for a reply."""
    appended = await services.messages.append(
        tenant, conversation_id, [body.draft()], expected_last_message_id=body.expected_last_message_id, idem=idem
    )
    return present_message(appended[0])


@router.post("/batch", status_code=201)
async def append_messages(
    conversation_id: UUID, body: MessageBatch, services: Services, tenant: Tenant, idem: IdempotencyKey
) -> schemas.MessageBatchResult:
    """Append up to 1 000 messages, all or none."""
    drafts = [message.draft() for message in body.messages]
    appended = await services.messages.append(
        tenant, conversation_id, drafts, expected_last_message_id=body.expected_last_message_id, idem=idem
    )
    return schemas.MessageBatchResult(data=[present_message(message) for message in appended])


@router.get("")
async def list_messages(
    conversation_id: UUID, services: Services, tenant: Tenant, page: PagingFromStart
) -> schemas.Listing[schemas.Message]:
    """The full history, oldest first unless asked otherwise; no compaction ever changes it."""
    return present_list(await services.messages.page(tenant, conversation_id, page), present_message)
