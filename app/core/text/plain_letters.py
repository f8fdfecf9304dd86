"""Letters without accents, umlauts and strokes: people who search for "naïve" or "Straße" type "naive" or "strasse"."""

from __future__ import annotations

import unicodedata
from itertools import chain
from typing import Final

from app.core.text.patterns import compiled

_LATIN: Final = compiled(r"LATIN SMALL (?:LETTER|LIGATURE) (?:DOTLESS )?([A-Z]{1,2})(?: WITH .{1,60})?")
"""The Unicode name of a letter with a sign or a stroke, or of two letters in one, such as "æ"."""
_LETTERS: Final = (range(0x00E0, 0x0250), range(0x0370, 0x0400), range(0x1E00, 0x2000))
"""The Latin and Greek letters. In other scripts a sign makes another letter, or is a vowel."""
_SIGNS: Final = range(0x0300, 0x0370)
"""Combining signs, which follow a letter if there is no single character for both."""


def _plain_letter(character: str) -> str:
    found = _LATIN.fullmatch(unicodedata.name(character, ""))
    return found[1].lower() if found else unicodedata.normalize("NFD", character)[0]


_PLAIN: Final = (
    {code: _plain_letter(chr(code)) for code in chain(*_LETTERS)} | dict.fromkeys(_SIGNS, "") | {0x00DF: "ss"}
)


def in_plain_letters(word: str) -> str:
    """A lower-case word with its Latin and Greek letters without accents, umlauts and strokes; others are kept."""
    return word if word.isascii() else word.translate(_PLAIN)
