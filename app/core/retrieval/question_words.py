"""Finds words of questions and answers in all languages, as listed under ``questions`` in the files of languages."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, Literal

from app.core.text.languages.language_file import Language
from app.core.text.languages.loading import languages
from app.core.text.patterns import compiled

Kind = Literal["when", "how_many", "time", "number", "first_person", "told", "user", "assistant"]
_WRITTEN_IN_ASCII: Final = tuple(language for language in languages() if language.script == "latin")


def plain_words(kind: Kind) -> frozenset[str]:
    """The plain words (not patterns) of a kind in languages with Latin letters, in lower case."""
    return frozenset(word for one in _WRITTEN_IN_ASCII for word in _listed_words(one, kind))


def _listed_words(language: Language, kind: str) -> tuple[str, ...]:
    words: tuple[str, ...] = getattr(language.questions, f"{kind}_words", ())
    return words


def _joined_sources(given: Iterable[Language], kind: Kind) -> str:
    return "|".join(f"(?:{source})" for one in given if (source := _pattern_source(one, kind)))


def _pattern_source(language: Language, kind: Kind) -> str:
    words = sorted(_listed_words(language, kind), key=lambda word: (-len(word), word))
    whole = [rf"\b(?:{'|'.join(words)})\b".replace("'", "['’]")] if words else []
    return "|".join([*whole, *getattr(language.questions, kind)])


class WordPattern:
    """Finds any of the words of a kind, in whatever language, by one pattern for all.

    A text of ASCII alone is searched only for languages in Latin letters. This is four times as fast and finds the
    same: what other languages would find in ASCII (digits), English finds too.
    """

    def __init__(self, kind: Kind) -> None:
        self._all = compiled(_joined_sources(languages(), kind), re.IGNORECASE)
        in_ascii = _joined_sources(_WRITTEN_IN_ASCII, kind)
        self._ascii = compiled(in_ascii, re.IGNORECASE | re.ASCII)

    def search(self, text: str) -> re.Match[str] | None:
        """The first match, if any."""
        return (self._ascii if text.isascii() else self._all).search(text)
