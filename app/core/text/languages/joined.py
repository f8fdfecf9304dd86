"""Patterns of all languages as one, for texts whose language need not be known."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, Literal

from app.core.text.languages.dialect import Language
from app.core.text.languages.loading import languages
from app.core.text.patterns import compiled

_NOTHING: Final = r"(?!)"


def pattern_of(section: Literal["work"], key: str, given: Iterable[Language] | None = None) -> re.Pattern[str]:
    """What fits where any language says this: whole words where words are spaced; nothing where none does.

    Args:
        section: Of the files.
        key: In it.
        given: The languages; all where none are given.
    """
    said = [
        (language.spaced, text)
        for language in (languages() if given is None else given)
        if (text := getattr(getattr(language, section), key))
    ]
    words = "|".join(text for spaced, text in said if spaced)
    signs = [text for spaced, text in said if not spaced]
    parts = [rf"\b(?:{words})\b", *signs] if words else signs
    return compiled(f"(?:{'|'.join(parts) or _NOTHING})", re.IGNORECASE)
