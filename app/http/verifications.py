"""The route that lists the verifications of a conversation."""

from __future__ import annotations

from uuid import UUID

from app.http import schemas
from app.http.dependencies import Paging, Services, Tenant
from app.http.present import present_list, present_verification
from app.http.routing import keyed_router

router = keyed_router("/conversations/{conversation_id}/verifications", "compactions")


@router.get("")
async def list_verifications(
    conversation_id: UUID, services: Services, tenant: Tenant, page: Paging
) -> schemas.Listing[schemas.Verification]:
    """The verifications of a conversation's state by a model."""
    found = await services.verifications.page(tenant, conversation_id, page)
    return await present_list(found, present_verification)
