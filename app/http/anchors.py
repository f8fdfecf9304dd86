"""The routes of anchors, which are statements that are never compressed away: list them, and set their status."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import Query

from app.core.model.anchors import AnchorStatus, AnchorType
from app.http import schemas
from app.http.dependencies import PagingFromStart, Services, Tenant
from app.http.present import present_list
from app.http.requests import AnchorPatch
from app.http.routing import keyed_router

router = keyed_router("/conversations/{conversation_id}/anchors", "anchors")


@router.get("")
async def list_anchors(
    conversation_id: UUID,
    services: Services,
    tenant: Tenant,
    page: PagingFromStart,
    type: Annotated[AnchorType | None, Query()] = None,  # noqa: A002 - the contract's name
    status: Annotated[AnchorStatus | None, Query()] = None,
) -> schemas.Listing[schemas.Anchor]:
    """The anchors by their position; with a type or a status only those that have it."""
    found = await services.anchors.page(tenant, conversation_id, page, type_=type, status=status)
    return await present_list(found, schemas.Anchor.model_validate)


@router.patch("/{anchor_id}")
async def patch_anchor(
    conversation_id: UUID, anchor_id: UUID, body: AnchorPatch, services: Services, tenant: Tenant
) -> schemas.Anchor:
    """Set an anchor to settled, replaced or active again; only active anchors are served."""
    return schemas.Anchor.model_validate(
        await services.anchors.set_status(tenant, conversation_id, anchor_id, body.status)
    )
