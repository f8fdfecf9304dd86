"""The route that finds damage to a state by checks of earlier versions of the service."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import Body

from app.http import schemas
from app.http.dependencies import IdempotencyKey, IfMatch, Services, Tenant
from app.http.requests import ExaminationRequest
from app.http.routing import keyed_router

router = keyed_router("/conversations/{conversation_id}/examination", "conversations")


@router.post("")
async def examine_state(
    conversation_id: UUID,
    services: Services,
    tenant: Tenant,
    if_match: IfMatch,
    _idem: IdempotencyKey,
    body: Annotated[ExaminationRequest, Body()] = ExaminationRequest(),  # noqa: B008 - a frozen value
) -> schemas.Examination:
    """List what checks of earlier versions of the service damaged in the state that is served.

    With `mend`, code repairs what it can, as a new version: sentences that took an item's place are removed, and a
    stale narrative is replaced by the newest entries. A second call finds nothing and changes nothing.
    """
    found = await services.examination.examine(tenant, conversation_id, mend=body.mend, if_match=if_match)
    return schemas.Examination.model_validate(found)
