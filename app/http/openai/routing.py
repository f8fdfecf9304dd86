"""The routes of OpenAI's API: they need the same key, and ignore unknown parameters, as that API does."""

from __future__ import annotations

from typing import Final

from fastapi import APIRouter

from app.http.openai.errors import PREFIX, OpenAIError
from app.http.routing import TenantRoute, keyed_router

TAG: Final = "openai"


class OpenAIRoute(TenantRoute):
    """A route below ``/v1``."""

    placeholders = True
    passes_over = True


def openai_router() -> APIRouter:
    """A router below ``/v1``."""
    described = {"model": OpenAIError, "description": "An error in the form of OpenAI's API."}
    return keyed_router(PREFIX, TAG, OpenAIRoute, responses={"default": described})
