"""The presets, with their policies."""

from __future__ import annotations

from fastapi import APIRouter

from app.http import schemas
from app.http.dependencies import Services
from app.http.present import present_preset
from app.http.routing import StrictRoute

router = APIRouter(prefix="/presets", route_class=StrictRoute, tags=["presets"])


@router.get("")
async def list_presets(services: Services) -> schemas.Listing[schemas.Preset]:
    """Every preset, with the operator's numbers. No key is needed."""
    return schemas.Listing(data=[present_preset(view) for view in services.conversations.presets()])
