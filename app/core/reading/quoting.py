"""Writes a text as a quotation that names its speaker."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from app.core.model.state import Origin
from app.core.text.languages.loading import languages
from app.core.text.languages.sections_of_talk import Quotes

_QUOTES: Final[Mapping[str, Quotes]] = {
    language.code: language.quotes for language in languages() if language.quotes is not None
}
_QUOTATION_OPENINGS: Final = tuple(f'{said}: "' for each in _QUOTES.values() for _, said in each)


def as_quotation(text: str, origin: Origin, language: str | None) -> str:
    """The text as a quotation: ``The user wrote: "…"``, in the conversation's language if it is known."""
    introduction: str = getattr(_QUOTES.get((language or "en")[:2], _QUOTES["en"]), origin)
    return f'{introduction}: "{text}"'


def is_quotation(text: str) -> bool:
    """Whether a text is such a quotation."""
    return text.endswith('"') and text.startswith(_QUOTATION_OPENINGS)


def is_unclosed_quotation(text: str) -> bool:
    """Whether a text is the beginning of such a quotation, without its end."""
    return text.startswith(_QUOTATION_OPENINGS) and text.count('"') % 2 == 1
