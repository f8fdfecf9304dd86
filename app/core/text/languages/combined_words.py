"""The words of one kind from all languages together, for texts whose language need not be known."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from app.core.text.languages.language_file import Language
from app.core.text.languages.loading import languages
from app.core.text.patterns import compiled

_NOTHING: Final = r"(?!)"


def words_of(section: str, key: str) -> frozenset[str]:
    """The words that any language lists under this key."""
    return frozenset(word for language in languages() for word in getattr(getattr(language, section), key))


def alternatives(section: str, key: str, given: Iterable[Language] | None = None, *, spaced: bool | None = None) -> str:
    """The entries of all languages under this key as alternatives of a pattern; without entries it matches nothing.

    ``given`` are the languages; ``None``: all. ``spaced``: only languages with spaces between words (true) or without
    (false); ``None``: both.
    """
    asked = [one for one in (languages() if given is None else given) if spaced in {None, one.spaced}]
    return "|".join(part for one in asked for part in _parts(one, section, key)) or _NOTHING


def pattern_of(section: str, key: str, given: Iterable[Language] | None = None) -> re.Pattern[str]:
    """A pattern of the entries of all languages under this key: whole words in languages with spaces between words.

    It matches nothing if there are no entries. ``given`` are the languages; ``None``: all.
    """
    return compiled(whole_words(section, key, given), re.IGNORECASE)


def sources_of(section: str, key: str) -> list[str]:
    """The source of ``pattern_of`` for each language that has entries under this key."""
    return [whole_words(section, key, [one]) for one in languages() if _parts(one, section, key)]


def whole_words(section: str, key: str, given: Iterable[Language] | None = None) -> str:
    """The source of ``pattern_of``."""
    asked = tuple(languages() if given is None else given)
    words, signs = (alternatives(section, key, asked, spaced=spaced) for spaced in (True, False))
    parts = [rf"\b(?:{words})\b" if words != _NOTHING else words, signs]
    return f"(?:{'|'.join(part for part in parts if part != _NOTHING) or _NOTHING})"


def _parts(language: Language, section: str, key: str) -> tuple[str, ...]:
    section_value: str | tuple[str, ...] = getattr(getattr(language, section), key)
    return (section_value,) if isinstance(section_value, str) and section_value else tuple(section_value)
