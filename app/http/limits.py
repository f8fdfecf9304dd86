"""The routes of limits and of the audit log: what a key may request, and who did what."""

from __future__ import annotations

from fastapi import Request

from app.http import schemas
from app.http.dependencies import PagingFromStart, Services, Tenant
from app.http.present import present_limits, present_list
from app.http.routing import AdminRoute, keyed_router
from app.usecases.shared.caller import Principal

router = keyed_router("", "limits")
operations = keyed_router("", "operations", AdminRoute)


@router.get("/limits")
async def get_limits(request: Request, services: Services) -> schemas.KeyLimits:
    """The limits of the key and of its tenant, and how much of each is left."""
    principal: Principal = request.state.principal
    standings = await services.limits.standings(principal)
    return present_limits(principal, standings, services.limits.stream_seconds(principal))


@operations.get("/audit")
async def list_audit(services: Services, tenant: Tenant, page: PagingFromStart) -> schemas.Listing[schemas.AuditEntry]:
    """Who did what, in the order in which it happened."""
    return await present_list(await services.audit.page(tenant, page), schemas.AuditEntry.model_validate)
