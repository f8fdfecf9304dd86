"""The presets, with their policies."""

from __future__ import annotations

from fastapi import APIRouter

from app.api import schemas
from app.api.present import present_preset
from app.api.routing import StrictRoute
from app.domain.policies.presets import PRESETS

router = APIRouter(prefix="/presets", route_class=StrictRoute, tags=["presets"])


@router.get("")
async def list_presets() -> schemas.Listing[schemas.Preset]:
    """Every preset; needs no key."""
    return schemas.Listing(data=[present_preset(preset) for preset in PRESETS.values()])
