"""The words that recall matches by: stems, and for Chinese also single characters (signs), not only pairs of them.

A pair says more than a sign, but "火车" and "列车" share no pair, and a word of one sign has no pair of its own. Only
recall uses single characters: stored keys, search and the rest work with stems.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import cache
from typing import Final

from app.core.text.patterns import compiled
from app.core.text.scripts import SCRIPTS, UNSPACED
from app.core.text.stemming import stem_in, stems_in
from app.core.text.word_lists import COMMON_SIGNS, STOPWORDS

_SIGN: Final = compiled(f"[{SCRIPTS['han']}]")
_PAIR: Final = compiled(rf"[{UNSPACED}]{{2}}\Z")
_OF_A_WORD: Final = 2
"""How many signs a Chinese word mostly has."""


def terms(text: str, language: str | None = None) -> list[str]:
    """The stems of a text, and its Chinese characters that are not function words; none is listed as both.

    Args:
        text: The text to take apart.
        language: As for ``stems_in``.
    """
    found = list(stems_in(text, language))
    signs = [sign for sign in _SIGN.findall(text) if sign not in COMMON_SIGNS]
    return [*(stem for stem in found if len(stem) > 1 or not _SIGN.match(stem)), *signs] if signs else found


def is_pair(term: str) -> bool:
    """Whether a term is two neighbouring signs of an unspaced script, which may belong to two different words."""
    return _PAIR.match(term) is not None


def word_count(found_terms: Collection[str], language: str | None) -> int:
    """How many content words these are: two Chinese signs count as one, function words of the language as none."""
    written = [term for term in found_terms if not _SIGN.match(term)]
    signs = sum(len(term) == 1 for term in found_terms) - sum(len(term) == 1 for term in written)
    return sum(term not in _function_stems(language) for term in written) + -(-signs // _OF_A_WORD)


@cache
def _function_stems(language: str | None) -> frozenset[str]:
    # Some are content words in other languages ("war"), so they are function words only in their own.
    return frozenset(stem_in(word, language) for word in STOPWORDS.get(language or "", ()))
