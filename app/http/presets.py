"""The presets, with their policies."""

from __future__ import annotations

from fastapi import APIRouter

from app.core.model.policies.presets import PRESETS
from app.http import schemas
from app.http.present import present_preset
from app.http.routing import StrictRoute

router = APIRouter(prefix="/presets", route_class=StrictRoute, tags=["presets"])


@router.get("")
async def list_presets() -> schemas.Listing[schemas.Preset]:
    """Every preset; needs no key."""
    return schemas.Listing(data=[present_preset(preset) for preset in PRESETS.values()])
