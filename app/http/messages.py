"""The history of messages: append to it, read it whole, erase a message."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated, Literal
from uuid import UUID

from fastapi import Query, Request, Response
from pydantic_core import to_json

from app.core.model.errors import InvalidInputError
from app.http import schemas
from app.http.dependencies import IdempotencyKey, PagingFromStart, Services, Tenant, container_of, tenant_of
from app.http.errors import accept_language_of
from app.http.notifications import Notifier
from app.http.present import present_list
from app.http.requests import MessageAppend, MessageBatch, drafts_of
from app.http.routing import keyed_router
from app.http.ui.history import present_thread
from app.off_loop import in_slices, off_loop

Format = Annotated[
    Literal["plain", "ui"],
    Query(description="`ui`: as messages of the AI SDK; `limit` counts stored messages, and no answer is cut in two."),
]

router = keyed_router("/conversations/{conversation_id}/messages", "messages")


@router.post("", status_code=201)
async def append_message(
    conversation_id: UUID, body: MessageAppend, request: Request, idem: IdempotencyKey
) -> schemas.Message:
    """Append a message without asking a model for a reply."""
    with _errors_without_batch_index():
        appended = await container_of(request).messages.append(
            tenant_of(request),
            conversation_id,
            await drafts_of([body]),
            expected_last_message_id=body.expected_last_message_id,
            idem=idem,
        )
    return schemas.Message.model_validate(appended[0])


@contextlib.contextmanager
def _errors_without_batch_index() -> Iterator[None]:
    try:
        yield
    except InvalidInputError as error:
        error.errors = tuple(replace(one, field=one.field.removeprefix("messages.0.")) for one in error.errors)
        raise


@router.post("/batch", status_code=201)
async def append_messages(
    conversation_id: UUID, body: MessageBatch, services: Services, tenant: Tenant, idem: IdempotencyKey
) -> schemas.MessageBatchResult:
    """Append up to 1 000 messages, either all or none."""
    drafts = await drafts_of(body.messages)
    appended = await services.messages.append(
        tenant, conversation_id, drafts, expected_last_message_id=body.expected_last_message_id, idem=idem
    )
    return schemas.MessageBatchResult(data=await in_slices(schemas.Message.model_validate, appended))


@router.get("", response_model=schemas.Listing[schemas.Message] | schemas.Listing[schemas.UIMessage])
async def list_messages(
    conversation_id: UUID,
    request: Request,
    services: Services,
    tenant: Tenant,
    page: PagingFromStart,
    format: Format = "plain",  # noqa: A002 - the name of the parameter
) -> schemas.Listing[schemas.Message] | Response:
    """The full history, oldest first by default; no compaction ever changes it."""
    if format == "ui":
        thread = await services.ui_threads.page(tenant, conversation_id, page)
        notifier = Notifier(services, tenant, conversation_id, accept_language_of(request))
        listing = await present_thread(thread, notifier)
        return Response(await off_loop(to_json, listing), media_type="application/json")
    return await present_list(
        await services.messages.page(tenant, conversation_id, page), schemas.Message.model_validate
    )


@router.delete("/{message_id}", status_code=204)
async def erase_message(conversation_id: UUID, message_id: UUID, services: Services, tenant: Tenant) -> None:
    """Erase a message and everything derived from it; its place in the history stays."""
    await services.erasure.erase(tenant, conversation_id, message_id)
