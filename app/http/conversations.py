"""The routes of conversations: create, list, read, change, delete; their gauge, states, and restoring a state."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import Body, Query, Response

from app.http import schemas
from app.http.dependencies import IdempotencyKey, IfMatch, Paging, Services, Tenant
from app.http.present import (
    present_conversation,
    present_conversation_summary,
    present_list,
    present_state_version,
)
from app.http.refusals import invalid_field
from app.http.requests import ConversationCreate, ConversationPatch, RestoreRequest
from app.http.routing import keyed_router
from app.usecases.history.conversations import ConversationView

router = keyed_router("/conversations", "conversations")

UserFilter = Annotated[str | None, Query(max_length=255)]
VersionFilter = Annotated[int | None, Query(ge=1, le=2**31 - 1)]


@router.post("", status_code=201)
async def create_conversation(
    response: Response,
    services: Services,
    tenant: Tenant,
    idem: IdempotencyKey,
    body: Annotated[ConversationCreate, Body()] = ConversationCreate(),  # noqa: B008 - a frozen value
) -> schemas.Conversation:
    """Start a conversation."""
    view = await services.conversations.create(tenant, body.new(), idem=idem)
    response.headers["Location"] = f"/conversations/{view.conversation.id}"
    return _with_entity_tag(view, response)


@router.get("")
async def list_conversations(
    services: Services, tenant: Tenant, page: Paging, user_id: UserFilter = None
) -> schemas.Listing[schemas.ConversationSummary]:
    """Conversations by the time of their last message, without state, policy and scratchpad."""
    return await present_list(await services.conversations.page(tenant, page, user_id), present_conversation_summary)


@router.get("/{conversation_id}")
async def get_conversation(
    conversation_id: UUID, response: Response, services: Services, tenant: Tenant
) -> schemas.Conversation:
    """One conversation, with its policy, its state and its scratchpad."""
    return _with_entity_tag(await services.conversations.get(tenant, conversation_id), response)


@router.patch("/{conversation_id}")
async def patch_conversation(
    conversation_id: UUID,
    body: ConversationPatch,
    response: Response,
    services: Services,
    tenant: Tenant,
    if_match: IfMatch,
) -> schemas.Conversation:
    """Change the given fields; a new policy takes effect at once."""
    view = await services.conversations.patch(tenant, conversation_id, body.changes(), if_match=if_match)
    return _with_entity_tag(view, response)


@router.delete("/{conversation_id}", status_code=204)
async def delete_conversation(conversation_id: UUID, services: Services, tenant: Tenant) -> None:
    """Delete a conversation with everything derived from it."""
    await services.conversations.delete(tenant, conversation_id)


@router.get("/{conversation_id}/usage")
async def get_usage(conversation_id: UUID, services: Services, tenant: Tenant) -> schemas.Gauge:
    """How full the context is."""
    return schemas.Gauge.model_validate(await services.conversations.usage(tenant, conversation_id))


@router.get("/{conversation_id}/states")
async def list_states(
    conversation_id: UUID,
    services: Services,
    tenant: Tenant,
    page: Paging,
    a: VersionFilter = None,
    b: VersionFilter = None,
) -> schemas.Listing[schemas.StateVersion] | schemas.StateDifference:
    """Versions of the state; with `a` and `b`, the differences between the two."""
    if a is not None and b is not None:
        return schemas.StateDifference.model_validate(await services.states.difference(tenant, conversation_id, a, b))
    if a is not None or b is not None:
        raise invalid_field("b" if b is None else "a", "give both a and b")
    return await present_list(await services.states.page(tenant, conversation_id, page), present_state_version)


@router.post("/{conversation_id}/restore")
async def restore_state(
    conversation_id: UUID,
    body: RestoreRequest,
    response: Response,
    services: Services,
    tenant: Tenant,
    idem: IdempotencyKey,
    if_match: IfMatch,
) -> schemas.Conversation:
    """Restore an earlier state and its boundary, as a new version."""
    view = await services.states.restore(tenant, conversation_id, body.state_version, if_match=if_match, idem=idem)
    return _with_entity_tag(view, response)


def _with_entity_tag(view: ConversationView, response: Response) -> schemas.Conversation:
    response.headers["ETag"] = f'"{view.conversation.state_version}"'
    return present_conversation(view)
