"""What a model would be sent; asking never compacts."""

from __future__ import annotations

from typing import Annotated, Literal
from uuid import UUID

from fastapi import APIRouter, Body, Depends, Query

from app.api import schemas
from app.api.dependencies import IdempotencyKey, Services, Tenant, bearer_key
from app.api.fields import Budget
from app.api.fields import Query as Question
from app.api.present import present_context
from app.api.requests import ContextRequest
from app.api.routing import TenantRoute
from app.services.recalling import Asked

router = APIRouter(
    prefix="/conversations/{conversation_id}/context",
    route_class=TenantRoute,
    tags=["context"],
    dependencies=[Depends(bearer_key)],
)


@router.get("")
async def get_context(
    conversation_id: UUID,
    services: Services,
    tenant: Tenant,
    budget: Annotated[Budget | None, Query()] = None,
    query: Annotated[Question | None, Query()] = None,
    format: Annotated[Literal["plain"], Query()] = "plain",  # noqa: A002, ARG001 - the contract's name; one so far
) -> schemas.AssembledContext:
    """The context, within the policy's budget or the given one; with a query, with what is recalled for it."""
    found = await services.context.assemble(tenant, conversation_id, budget, asked=Asked(query=query))
    return present_context(found)


@router.post("")
async def assemble_context(
    conversation_id: UUID,
    services: Services,
    tenant: Tenant,
    _idem: IdempotencyKey,
    body: Annotated[ContextRequest, Body()] = ContextRequest(),  # noqa: B008 - a frozen value
) -> schemas.AssembledContext:
    """The same, asked with a body, which may bring passages of its own along."""
    found = await services.context.assemble(tenant, conversation_id, body.budget, asked=body.asked())
    return present_context(found)
