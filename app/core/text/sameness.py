"""Decides whether two texts say the same. In doubt they do not: a duplicate costs tokens, a mistake loses a fact."""

from __future__ import annotations

import unicodedata
from collections import Counter
from typing import Final

from app.core.text.identifiers import identifiers
from app.core.text.languages.combined_words import words_of
from app.core.text.memo import memoized
from app.core.text.patterns import compiled
from app.core.text.relative import without_added_days
from app.core.text.word_lists import respelled

_MARKS: Final = compiled("[\"'’‘`“”„«»*]+")
_PUNCTUATION: Final = compiled(
    r"(?<![.,;:!?…。，；：！？])[.,;:!?…。，；：！？]++(?=\s|$)|(?<=\s)[-–—]++(?=\s)|^[-–—•]\s"
)
_POWER: Final = compiled("(?<=[0-9])[⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻]++")
_KEY: Final = compiled(r"(?=\S*\d)(?=\S*[a-z])(?=\S*[A-Z])\S+")
_ARTICLES: Final = words_of("clauses", "articles")
_REVERSING_WORDS: Final = words_of("clauses", "turns")

_WORDS_OF_RUN: Final = 4  # words; with fewer it cannot be sure
_MIN_SHARED_SHARE: Final = 0.6  # the shorter text's share of the longer: more than two fifths of new words are news


@memoized()
def canonical(text: str) -> str:
    """A text for comparisons: without added days, and without case (but in ``aB3x``), quotes and punctuation."""
    told = without_added_days(text)
    folded = told if told.isascii() else unicodedata.normalize("NFKC", _POWER.sub(r"^\g<0>", told))  # 10⁵ is not 105
    plain = _PUNCTUATION.sub("", _MARKS.sub("", " ".join(folded.split())))
    return " ".join(word if _KEY.fullmatch(word) else _fold(word) for word in plain.split())


def word_count(text: str) -> int:
    """The number of words, without articles."""
    return len(_words(text))


def covers(longer: str, shorter: str) -> bool:
    """Whether the longer of two texts says all that the shorter says, in the same words, and little else.

    The shorter must be in the longer as one run of words, since an inserted word can change who did what ("the user has
    a dog", "the user's sister has a dog"). Exact values must be the same, and added words may not reverse the meaning.
    """
    long_words, short_words = _words(longer), _words(shorter)
    if len(short_words) < _WORDS_OF_RUN or len(short_words) < _MIN_SHARED_SHARE * len(long_words):
        return False
    if len(short_words) > len(long_words) or f" {' '.join(short_words)} " not in f" {' '.join(long_words)} ":
        return False
    added = Counter(long_words) - Counter(short_words)
    return not (_REVERSING_WORDS & added.keys()) and _values(longer) == _values(shorter)


def word_runs(text: str) -> list[str]:
    """All runs of ``_WORDS_OF_RUN`` words of a text. A longer text that covers it has them too: it can be looked up."""
    words = _words(text)
    return [" ".join(words[at : at + _WORDS_OF_RUN]) for at in range(len(words) - _WORDS_OF_RUN + 1)]


def _fold(word: str) -> str:
    return respelled(word.casefold())


@memoized()
def _words(text: str) -> tuple[str, ...]:
    return tuple(word for word in canonical(text).split() if word not in _ARTICLES)


def _values(text: str) -> set[str]:
    return {value.casefold() for value in identifiers(without_added_days(text))}
