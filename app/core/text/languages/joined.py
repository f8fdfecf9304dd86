"""The words of one kind from all languages together, for texts whose language need not be known."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from app.core.text.languages.dialect import Language
from app.core.text.languages.loading import languages
from app.core.text.patterns import compiled

_NOTHING: Final = r"(?!)"


def words_of(section: str, key: str) -> frozenset[str]:
    """The words that any language lists there."""
    return frozenset(word for language in languages() for word in getattr(getattr(language, section), key))


def alternatives(section: str, key: str, given: Iterable[Language] | None = None, *, spaced: bool | None = None) -> str:
    """What any language says there, as the alternatives of a pattern; they match nothing where none says anything.

    ``given`` are the languages, all where none are given. ``spaced``: only those whose words stand between spaces, or
    only the others; both where it is left out.
    """
    asked = [one for one in (languages() if given is None else given) if spaced in {None, one.spaced}]
    return "|".join(part for one in asked for part in _parts(one, section, key)) or _NOTHING


def pattern_of(section: str, key: str, given: Iterable[Language] | None = None) -> re.Pattern[str]:
    """What matches where any language says this: whole words where words are spaced; nothing where none does.

    ``given`` are the languages, all where none are given.
    """
    return compiled(whole_words(section, key, given), re.IGNORECASE)


def sources_of(section: str, key: str) -> list[str]:
    """The source of ``pattern_of`` for each language that says this."""
    return [whole_words(section, key, [one]) for one in languages() if _parts(one, section, key)]


def whole_words(section: str, key: str, given: Iterable[Language] | None = None) -> str:
    """The source of ``pattern_of``."""
    asked = tuple(languages() if given is None else given)
    words, signs = (alternatives(section, key, asked, spaced=spaced) for spaced in (True, False))
    parts = [rf"\b(?:{words})\b" if words != _NOTHING else words, signs]
    return f"(?:{'|'.join(part for part in parts if part != _NOTHING) or _NOTHING})"


def _parts(language: Language, section: str, key: str) -> tuple[str, ...]:
    said: str | tuple[str, ...] = getattr(getattr(language, section), key)
    return (said,) if isinstance(said, str) and said else tuple(said)
