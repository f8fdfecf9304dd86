"""The rules that every prompt of a summarizer has in common: in which language, and how long."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_WORDS_PER_TOKEN: Final[Mapping[str, float]] = {
    "en": 0.75,
    "ru": 0.5,
    "uk": 0.45,
    "de": 0.6,
    "fr": 0.65,
    "es": 0.65,
    "it": 0.65,
    "pt": 0.65,
    "nl": 0.6,
    "pl": 0.45,
    "cs": 0.45,
    "tr": 0.45,
    "ar": 0.5,
    "he": 0.5,
    "ko": 0.45,
}
_CHARACTERS_PER_TOKEN: Final[Mapping[str, float]] = {"zh": 1.5, "ja": 1.6, "th": 2.5}
"""Where words are not set apart by blanks, the size is named in characters."""
_DEFAULT_WORDS_PER_TOKEN: Final = 0.6

_LANGUAGES: Final[Mapping[str, str]] = {
    "en": "English", "ru": "Russian", "uk": "Ukrainian", "de": "German", "fr": "French", "es": "Spanish",
    "it": "Italian", "pt": "Portuguese", "nl": "Dutch", "pl": "Polish", "cs": "Czech", "tr": "Turkish",
    "sv": "Swedish", "ar": "Arabic", "fa": "Persian", "he": "Hebrew", "zh": "Chinese", "ja": "Japanese",
    "ko": "Korean", "hi": "Hindi", "el": "Greek", "th": "Thai", "vi": "Vietnamese", "id": "Indonesian",
}  # fmt: skip


def language_rule(language: str | None) -> str:
    """In which language to write."""
    name = f", {_LANGUAGES[language]}" if language and language in _LANGUAGES else ""
    return f"Write in the conversation's own language{name}."


def size_of(tokens: int, language: str | None) -> str:
    """So many tokens in what a writer can count: ``600 words``."""
    if language and language in _CHARACTERS_PER_TOKEN:
        return f"{_rounded(tokens * _CHARACTERS_PER_TOKEN[language])} characters"
    return f"{_rounded(tokens * _WORDS_PER_TOKEN.get(language or 'en', _DEFAULT_WORDS_PER_TOKEN))} words"


def _rounded(number: float) -> int:
    """To two figures: a writer cannot aim better."""
    step = int("1".ljust(len(str(int(number))) - 1, "0"))
    return max(1, int(number) // step * step)
