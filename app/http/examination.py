"""The route that looks for damage that checks of earlier versions of the service did to a state."""

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
    """Tell what checks of earlier versions of the service damaged in the state that is served.

    With `mend` code sets right what it can, as a new version: sentences that stand in an item's place are set aside,
    a stale narrative gives way to the newest entries. A second time nothing is found, and nothing changes.
    """
    found = await services.examination.examine(tenant, conversation_id, mend=body.mend, if_match=if_match)
    return schemas.Examination.model_validate(found)
