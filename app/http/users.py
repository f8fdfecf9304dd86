"""The route that erases an end user of a tenant."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path

from app.http import schemas
from app.http.dependencies import Services, Tenant
from app.http.routing import AdminRoute, keyed_router

router = keyed_router("/users", "operations", AdminRoute)


@router.delete("/{user_id:path}", status_code=202)
async def erase_user(
    user_id: Annotated[str, Path(min_length=1, max_length=255)], services: Services, tenant: Tenant
) -> schemas.Erasure:
    """Begin to delete every conversation of an end user, and the keys that only see those.

    The keys end at once. The conversations are deleted one after the other; a few take seconds.
    """
    erasure = await services.removal.erase_user(tenant, user_id)
    return schemas.Erasure.model_validate(erasure)
