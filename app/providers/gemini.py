"""Gemini through pydantic-ai and google-genai, at Google or wherever the base URL points."""

from __future__ import annotations

from typing import Any, Final

from pydantic_ai.models import Model
from pydantic_ai.models.google import GoogleModel
from pydantic_ai.providers import Provider
from pydantic_ai.providers.google import GoogleProvider

from app.core.model.errors import InvalidInputError

PROVIDER: Final = "google"

_PREFIXES: Final = ("image/", "audio/", "video/", "text/")
_EXACT: Final = frozenset({"application/pdf"})


def provider(api_key: str | None, base_url: str | None) -> Provider[Any]:
    """The client of the Gemini API; google-genai repeats nothing unless it is told to."""
    if not api_key:
        raise InvalidInputError("Models of google need a key: set GOOGLE_API_KEY.")
    return GoogleProvider(api_key=api_key, base_url=base_url)


def model(name: str, of: Provider[Any]) -> Model:
    """The model of that name, without its provider's prefix."""
    return GoogleModel(name, provider=of)


def takes_media(media_type: str) -> bool:
    """What Gemini reads inline."""
    return media_type.startswith(_PREFIXES) or media_type in _EXACT
