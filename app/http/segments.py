"""Segments: descriptions of folded messages, and the way back to every one of these messages."""

from __future__ import annotations

from typing import Annotated, Literal
from uuid import UUID

from fastapi import Query

from app.core.model.segments import LEVEL_BY_NAME, LevelName
from app.http import schemas
from app.http.dependencies import After, IdempotencyKey, PagingFromStart, Services, Tenant
from app.http.fields import MAX_TOKENS
from app.http.present import present_expanded, present_list, present_listed
from app.http.requests import SegmentRequest
from app.http.routing import keyed_router

router = keyed_router("/conversations/{conversation_id}/segments", "segments")


@router.get("")
async def list_segments(
    conversation_id: UUID,
    services: Services,
    tenant: Tenant,
    page: PagingFromStart,
    level: Annotated[Literal["detailed", "brief", "tags"], Query()] = "brief",
) -> schemas.Listing[schemas.Segment]:
    """The segments that the present state covers, by position, each at this level or the nearest one that it has."""
    found = await services.expansion.page(tenant, conversation_id, page)
    return await present_list(found, lambda listed: present_listed(listed, LEVEL_BY_NAME[level]))


@router.get("/{segment_id}")
async def expand_segment(
    conversation_id: UUID,
    segment_id: str,
    services: Services,
    tenant: Tenant,
    level: Annotated[LevelName, Query(description="`full`: the original messages.")] = "full",
    max_tokens: Annotated[
        int | None, Query(ge=1, le=MAX_TOKENS, description="The most that a page weighs; at least one message is.")
    ] = None,
    after: After = None,
) -> schemas.Segment:
    """Expand a marker. Every segment id that was ever served works; `earlier` and `anchors` give their lists."""
    expanded = await services.expansion.expand(
        tenant, conversation_id, segment_id, level, max_tokens=max_tokens, after=after
    )
    return present_expanded(expanded)


@router.post("")
async def make_level(
    conversation_id: UUID, body: SegmentRequest, services: Services, tenant: Tenant, idem: IdempotencyKey
) -> schemas.Segment:
    """Make a level of a segment now: `detailed` by the summarizer if there is one, the others by code."""
    made = await services.expansion.make(tenant, conversation_id, body.place(), body.level, idem=idem)
    return present_expanded(made)
