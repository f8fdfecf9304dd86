"""The words that recall matches by: stems, and of Chinese single characters beside the pairs.

A pair says more than a sign, but "火车" and "列车" share no pair, and a word of one sign has none of
its own. Characters are recall's alone: stored keys, search and the rest work with stems.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import cache
from typing import Final

from app.core.text.patterns import compiled
from app.core.text.scripts import CHINESE_JAPANESE, SCRIPTS
from app.core.text.stemming import stem_in, stems_in
from app.core.text.word_lists import COMMON_SIGNS, STOPWORDS

_SIGN: Final = compiled(f"[{SCRIPTS['han']}]")
_PAIR: Final = compiled(rf"[{CHINESE_JAPANESE}]{{2}}\Z")
_OF_A_WORD: Final = 2
"""Signs of a Chinese word, mostly."""


def terms(text: str, language: str | None = None) -> list[str]:
    """Stems, and the characters of Chinese that are no function words; a sign that stands alone only once.

    Args:
        text: What is taken apart.
        language: As for ``stems_in``.
    """
    found = list(stems_in(text, language))
    signs = [sign for sign in _SIGN.findall(text) if sign not in COMMON_SIGNS]
    return [*(stem for stem in found if len(stem) > 1 or not _SIGN.match(stem)), *signs] if signs else found


def is_pair(term: str) -> bool:
    """Whether a term is two neighbouring Chinese signs, which may belong to two different words."""
    return _PAIR.match(term) is not None


def word_count(found: Collection[str], language: str | None) -> int:
    """How many content words these are: two Chinese signs count as one, function words of the language as none."""
    written = [term for term in found if not _SIGN.match(term)]
    signs = sum(len(term) == 1 for term in found) - sum(len(term) == 1 for term in written)
    return sum(term not in _function_stems(language) for term in written) + -(-signs // _OF_A_WORD)


@cache
def _function_stems(language: str | None) -> frozenset[str]:
    # Some are content in other languages ("war"), and so count as such elsewhere.
    return frozenset(stem_in(word, language) for word in STOPWORDS.get(language or "", ()))
