"""The routes of the context that a model would be sent. Only a ``POST`` that asks for it compacts first."""

from __future__ import annotations

from typing import Annotated, Final
from uuid import UUID

from fastapi import Body, Query, Request

from app.core.context.formats import Format
from app.core.retrieval.rendering import ELEMENTS_BEFORE
from app.core.text.contents import data_bytes
from app.http import schemas
from app.http.dependencies import IdempotencyKey, Services, Tenant, container_of, tenant_of
from app.http.fields import Budget
from app.http.fields import Query as Question
from app.http.present import present_context
from app.http.requests import ContextRequest
from app.http.routing import keyed_router
from app.off_loop import off_loop
from app.usecases.context.recalling import RecallRequest
from app.usecases.context.requests import ContextAsk, ContextView

_BYTES_PER_PART: Final = 10
"""The bytes of work that each message and section counts for; their text is not searched."""

router = keyed_router("/conversations/{conversation_id}/context", "context")


@router.get("")
async def get_context(
    conversation_id: UUID,
    request: Request,
    budget: Annotated[Budget | None, Query()] = None,
    query: Annotated[Question | None, Query()] = None,
    format: Annotated[Format, Query()] = "plain",  # noqa: A002 - the contract's name
) -> schemas.AssembledContext:
    """The context within the policy's budget or the given one; with a query, together with what is recalled for it."""
    ask = ContextAsk(budget=budget, recall_request=RecallRequest(query=query))
    found = await container_of(request).context_requests.answer(tenant_of(request), conversation_id, ask)
    return await _presented(found, format)


@router.post("")
async def assemble_context(
    conversation_id: UUID,
    services: Services,
    tenant: Tenant,
    idem: IdempotencyKey,
    body: Annotated[ContextRequest, Body()] = ContextRequest(),  # noqa: B008 - a frozen value
) -> schemas.AssembledContext:
    """What a model would be sent. The body may bring passages, choose sections, and have a due compaction run first."""
    found = await services.context_requests.answer(tenant, conversation_id, body.ask(), idem=idem)
    return await _presented(found, body.format)


async def _presented(found: ContextView, format_: Format) -> schemas.AssembledContext:
    context = found.context
    parts = len(context.messages_with_files) + len(context.sections) + len(context.markers) + len(context.recalled)
    # Recalled messages and passages are looked through. In a provider's format, data of media are plain Base64, which
    # is searched and decoded.
    read = sum(len(message.content) for message in context.messages if message.content.startswith(ELEMENTS_BEFORE))
    if format_ != "plain":
        read += sum(data_bytes(part) for message in context.messages_with_files for part in message.parts)
    return await off_loop(present_context, found, format_, size=_BYTES_PER_PART * parts + read)
