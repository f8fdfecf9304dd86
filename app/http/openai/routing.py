"""The routes of OpenAI's API: the same key, and parameters that we do not know are passed over, as it does."""

from __future__ import annotations

from typing import Final

from fastapi import APIRouter, Depends

from app.http.dependencies import bearer_key
from app.http.openai.errors import PREFIX, OpenAIError
from app.http.routing import TenantRoute

TAG: Final = "openai"


class OpenAIRoute(TenantRoute):
    """A route below ``/v1``."""

    placeholders = True
    passes_over = True


def openai_router() -> APIRouter:
    """A router below ``/v1``."""
    return APIRouter(
        prefix=PREFIX,
        route_class=OpenAIRoute,
        tags=[TAG],
        dependencies=[Depends(bearer_key)],
        responses={"default": {"model": OpenAIError, "description": "An error in the form of OpenAI's API."}},
    )
