"""The letters of each script, as the inside of a character class."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from typing import Final

SCRIPTS: Final[Mapping[str, str]] = {
    "latin": "A-Za-z\u00aa\u00ba\u00c0-\u024f\u1e00-\u1eff",
    "cyrillic": "\u0400-\u052f",
    "han": "\u3400-\u9fff\uf900-\ufaff",
    "kana": "\u3040-\u30ff",
    "hangul": "\uac00-\ud7af\u1100-\u11ff",
    "arabic": "\u0620-\u064a\u066e-\u06d3\u06fa-\u06ff",
    "greek": "\u0370-\u03ff\u1f00-\u1fff",
    "hebrew": "\u05d0-\u05ea",
    "devanagari": "\u0900-\u097f",
    "bengali": "\u0980-\u09ff",
    "tamil": "\u0b80-\u0bff",
    "thai": "\u0e00-\u0e7f",
    "georgian": "\u10a0-\u10ff",
    "armenian": "\u0530-\u058f",
}
CHINESE_JAPANESE: Final = f"{SCRIPTS['kana']}{SCRIPTS['han']}"
"""The characters of scripts that are written without spaces between words."""
UNSPACED: Final = f"{CHINESE_JAPANESE}\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ecd\u1000-\u103f\u1050-\u1089\u1780-\u17d3"
"""The same characters, and those of Thai, Lao, Burmese and Khmer, which have no spaces between words either."""
EAST_ASIAN: Final = f"{CHINESE_JAPANESE}\uac00-\ud7af"
"""These characters and the syllables of Korean: each character says as much as several letters."""
MARKS: Final = "".join(chr(code) for code in range(0x0300, 0x0E00) if unicodedata.category(chr(code)) in {"Mn", "Mc"})
"""Signs that follow a letter and belong to its word, such as the vowels of Hindi, where words have spaces between."""
READING_AIDS: Final = "\u0300-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0640\u064b-\u0652\u0670"
"""Signs that most people leave out, as the inside of a character class: stress, and vowels of Hebrew and Arabic."""
_FIRST_KANA, _, _LAST_KANA = SCRIPTS["kana"].partition("-")


def is_kana(sign: str) -> bool:
    """Whether a character belongs to one of the two syllabaries of Japanese."""
    return _FIRST_KANA <= sign <= _LAST_KANA
