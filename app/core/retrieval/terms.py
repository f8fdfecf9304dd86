"""The words that recall matches by: stems, and of Chinese single characters beside the pairs.

A pair says more than a sign, but "火车" and "列车" share no pair, and a word of one sign has none of
its own. Characters are recall's alone: stored keys, search and the rest work with stems.
"""

from __future__ import annotations

from typing import Final

from app.core.text.patterns import compiled
from app.core.text.scripts import SCRIPTS
from app.core.text.stemming import stems_in
from app.core.text.word_lists import COMMON_SIGNS

_SIGN: Final = compiled(f"[{SCRIPTS['han']}]")


def terms(text: str, language: str | None = None) -> list[str]:
    """Stems, and the characters of Chinese that are no function words; a sign that stands alone only once.

    Args:
        text: What is taken apart.
        language: As for ``stems_in``.
    """
    found = list(stems_in(text, language))
    signs = [sign for sign in _SIGN.findall(text) if sign not in COMMON_SIGNS]
    return [*(stem for stem in found if len(stem) > 1 or not _SIGN.match(stem)), *signs] if signs else found
