"""The routes of conversations and their items."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Annotated, Any, Final
from uuid import UUID

from fastapi import Body

from app.bootstrap import Container
from app.core.model.errors import DomainError, InvalidInputError, NotFoundError
from app.core.text.patterns import compiled
from app.http.dependencies import Services, Tenant
from app.http.openai.ids import ItemId, item_of
from app.http.openai.inputs import Attempts, conversation_of, drafts_of
from app.http.openai.items import items_of
from app.http.openai.resources import Json, conversation_object, deletion_object, list_object
from app.http.openai.response_requests import ConversationRequest, ConversationUpdate, ItemsRequest
from app.http.openai.responses import After, Limit, Order
from app.http.openai.routing import openai_router
from app.usecases.history.conversations import NewConversation

router = openai_router()

_ITEMS_FIELD: Final = compiled(r"(?:messages|input)\b.*", re.ASCII | re.DOTALL)
"""The field that other routes call ``messages`` or ``input``."""


@contextlib.contextmanager
def _errors_naming_items() -> Iterator[None]:
    try:
        yield
    except InvalidInputError as error:
        error.errors = tuple(
            replace(one, field="items") if _ITEMS_FIELD.fullmatch(one.field) else one for one in error.errors
        )
        raise


@router.post("/conversations")
async def create_openai_conversation(
    services: Services,
    tenant: Tenant,
    attempt: Attempts,
    body: Annotated[ConversationRequest, Body()] = ConversationRequest(),  # noqa: B008 - a frozen value
) -> dict[str, Any]:
    """Create a conversation."""
    with _errors_naming_items():
        drafts = await drafts_of(services, tenant, body.items or ())
    new = NewConversation(metadata=body.metadata or {})
    conversation = (await services.conversations.create(tenant, new, idem=attempt.own)).conversation
    if drafts:
        # Nobody else knows the conversation yet, so everything that is appended under this key belongs to this request.
        idem = replace(attempt, tries=1).key(_idempotency_place(conversation.id), fixes_place=True)
        try:
            with _errors_naming_items():
                own = replace(idem, key=f"{idem.key}:items")
                await services.messages.append(tenant, conversation.id, drafts, idem=own)
        except DomainError:
            # Not if an earlier try filled it.
            await services.openai.stored.drop_if_empty(tenant, conversation.id, attempt.own)
            raise
    return conversation_object(conversation)


@router.get("/conversations/{conversation_id}")
async def retrieve_openai_conversation(conversation_id: str, services: Services, tenant: Tenant) -> dict[str, Any]:
    """One conversation, even if it was made through another API."""
    return await _shown_conversation(services, tenant, conversation_of(conversation_id))


@router.post("/conversations/{conversation_id}")
async def update_openai_conversation(
    conversation_id: str,
    services: Services,
    tenant: Tenant,
    _attempt: Attempts,
    body: Annotated[ConversationUpdate, Body()],
) -> dict[str, Any]:
    """Replace the metadata."""
    id_ = conversation_of(conversation_id)
    present = (await services.conversations.get(tenant, id_)).conversation.metadata
    view = await services.conversations.patch(tenant, id_, {"metadata": _patch_to(body.metadata, present)})
    return conversation_object(view.conversation)


def _patch_to(wanted: Mapping[str, Any], present: Mapping[str, Any]) -> dict[str, Any]:
    patch: dict[str, Any] = dict.fromkeys(present.keys() - wanted.keys())
    for name, value in wanted.items():
        there = present.get(name)
        patch[name] = _patch_to(value, there) if isinstance(value, Mapping) and isinstance(there, Mapping) else value
    return patch


@router.delete("/conversations/{conversation_id}")
async def delete_openai_conversation(conversation_id: str, services: Services, tenant: Tenant) -> dict[str, Any]:
    """Delete a conversation with everything derived."""
    await services.conversations.delete(tenant, conversation_of(conversation_id))
    return deletion_object(conversation_id, "conversation.deleted")


@router.get("/conversations/{conversation_id}/items")
async def list_conversation_items(
    conversation_id: str,
    services: Services,
    tenant: Tenant,
    limit: Limit = 20,
    after: After = None,
    order: Order = "desc",
) -> dict[str, Any]:
    """The full history as items, never affected by compaction; the newest first by default."""
    place = None if after is None else (after, _item_id(after).message_id)
    page = await services.openai.responses.item_page(
        tenant, conversation_of(conversation_id), items_of, limit=limit, after=place, order=order
    )
    return list_object(page.items, has_more=page.has_more)


@router.post("/conversations/{conversation_id}/items")
async def create_conversation_items(
    conversation_id: str, services: Services, tenant: Tenant, attempt: Attempts, body: Annotated[ItemsRequest, Body()]
) -> dict[str, Any]:
    """Append items without asking for an answer."""
    id_ = conversation_of(conversation_id)
    with _errors_naming_items():
        drafts = await drafts_of(services, tenant, body.items)
    if not drafts:
        raise InvalidInputError.of("items", "there is nothing to keep of these items")
    idem = attempt.key(_idempotency_place(id_), fixes_place=False)
    with _errors_naming_items():
        messages = await services.messages.append(tenant, id_, drafts, idem=idem)
    return list_object([item for message in messages for item in items_of(message)], has_more=False)


@router.get("/conversations/{conversation_id}/items/{item_id}")
async def retrieve_conversation_item(
    conversation_id: str, item_id: str, services: Services, tenant: Tenant
) -> dict[str, Any]:
    """One item."""
    _, item = await _place_and_item(services, tenant, conversation_id, item_id)
    return item


@router.delete("/conversations/{conversation_id}/items/{item_id}")
async def delete_conversation_item(
    conversation_id: str, item_id: str, services: Services, tenant: Tenant
) -> dict[str, Any]:
    """Erase the message that an item belongs to, with everything derived from it."""
    place, _ = await _place_and_item(services, tenant, conversation_id, item_id)
    id_ = conversation_of(conversation_id)
    await services.erasure.erase(tenant, id_, place.message_id)
    return await _shown_conversation(services, tenant, id_)


async def _place_and_item(services: Container, tenant: UUID, conversation_id: str, item_id: str) -> tuple[ItemId, Json]:
    place = item_of(item_id)
    if place is None:
        raise NotFoundError("No such item.")
    message = await services.openai.responses.message(tenant, conversation_of(conversation_id), place.message_id)
    item = next((item for item in items_of(message) if item["id"] == item_id), None)
    if item is None:
        raise NotFoundError("No such item.")
    return place, item


def _idempotency_place(conversation_id: UUID) -> str:
    return f"{conversation_id.hex}:items"


def _item_id(id_: str) -> ItemId:
    place = item_of(id_)
    if place is None:
        raise InvalidInputError.of("after", "must be the id of an item of this list")
    return place


async def _shown_conversation(services: Container, tenant: UUID, conversation_id: UUID) -> Json:
    return conversation_object((await services.conversations.get(tenant, conversation_id)).conversation)
