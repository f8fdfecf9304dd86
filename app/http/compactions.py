"""The routes of compactions: ask for one, read what it did, retry a failed one."""

from __future__ import annotations

from typing import Annotated, Final
from uuid import UUID

from fastapi import Body, Query, Response

from app.core.model.records import CompactionStatus
from app.http import schemas
from app.http.dependencies import IdempotencyKey, Paging, Services, Tenant
from app.http.present import present_compaction, present_compaction_continuity, present_list
from app.http.requests import CompactRequest, EmptyRequest
from app.http.routing import AdminRoute, keyed_router

ANSWER_MARGIN: Final = 2.0
"""Seconds of the request's time that are kept for answering that the time was too short."""

router = keyed_router("", "compactions")
operations = keyed_router("/compactions", "operations", AdminRoute)


@router.post(
    "/conversations/{conversation_id}/compact",
    responses={202: {"model": schemas.Compaction, "description": "Queued: `wait` was false."}},
)
async def compact(
    conversation_id: UUID,
    response: Response,
    services: Services,
    tenant: Tenant,
    idem: IdempotencyKey,
    body: Annotated[CompactRequest, Body()] = CompactRequest(),  # noqa: B008 - a frozen value
) -> schemas.Compaction:
    """Fold everything but the last turn into the state, now or in the worker."""
    timeout = max(services.settings.request_timeout_seconds - ANSWER_MARGIN, ANSWER_MARGIN)
    view = await services.manual.compact(tenant, conversation_id, body.input(), timeout=timeout, idem=idem)
    if not body.wait and not view.planned:
        _answer_accepted(view.compaction.id, response)
    return present_compaction(view)


@router.get("/conversations/{conversation_id}/compactions")
async def list_compactions(
    conversation_id: UUID, services: Services, tenant: Tenant, page: Paging
) -> schemas.Listing[schemas.Compaction]:
    """The compactions of a conversation."""
    found = await services.manual.page(tenant, page, conversation_id=conversation_id)
    return await present_list(found, present_compaction)


@router.get("/conversations/{conversation_id}/continuity")
async def list_continuity(
    conversation_id: UUID, services: Services, tenant: Tenant, page: Paging
) -> schemas.Listing[schemas.CompactionContinuity]:
    """What the conversation could still answer after each compaction that has a continuity score."""
    found = await services.manual.page(tenant, page, conversation_id=conversation_id, scored=True)
    return await present_list(found, present_compaction_continuity)


@router.get("/compactions/{compaction_id}")
async def get_compaction(compaction_id: UUID, services: Services, tenant: Tenant) -> schemas.Compaction:
    """One compaction."""
    return present_compaction(await services.manual.get(tenant, compaction_id))


@operations.get("")
async def list_all_compactions(
    services: Services, tenant: Tenant, page: Paging, status: Annotated[CompactionStatus | None, Query()] = None
) -> schemas.Listing[schemas.Compaction]:
    """The compactions of all conversations."""
    return await present_list(await services.manual.page(tenant, page, status=status), present_compaction)


@operations.post("/{compaction_id}/retry", status_code=202)
async def retry_compaction(
    compaction_id: UUID,
    response: Response,
    services: Services,
    tenant: Tenant,
    idem: IdempotencyKey,
    _body: Annotated[EmptyRequest, Body()] = EmptyRequest(),  # noqa: B008 - a frozen value
) -> schemas.Compaction:
    """Queue a failed compaction again, as a new one."""
    view = await services.manual.retry(tenant, compaction_id, idem=idem)
    _answer_accepted(view.compaction.id, response)
    return present_compaction(view)


def _answer_accepted(compaction_id: UUID, response: Response) -> None:
    response.status_code = 202
    response.headers["Location"] = f"/compactions/{compaction_id}"
