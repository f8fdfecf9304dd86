"""What a model would be sent; asking never compacts."""

from __future__ import annotations

from typing import Annotated, Literal
from uuid import UUID

from fastapi import APIRouter, Body, Depends, Query

from app.api import schemas
from app.api.dependencies import IdempotencyKey, Services, Tenant, bearer_key
from app.api.fields import Budget
from app.api.present import present_context
from app.api.requests import ContextRequest
from app.api.routing import TenantRoute

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
    format: Annotated[Literal["plain"], Query()] = "plain",  # noqa: A002, ARG001 - the contract's name; one so far
) -> schemas.AssembledContext:
    """The context, within the policy's budget or the given one."""
    return present_context(await services.context.assemble(tenant, conversation_id, budget))


@router.post("")
async def assemble_context(
    conversation_id: UUID,
    services: Services,
    tenant: Tenant,
    _idem: IdempotencyKey,
    body: Annotated[ContextRequest, Body()] = ContextRequest(),  # noqa: B008 - a frozen value
) -> schemas.AssembledContext:
    """The same, asked with a body."""
    return present_context(await services.context.assemble(tenant, conversation_id, body.budget))
