"""The rules that all prompts of a summarizer share: in which language, and how long."""

from __future__ import annotations

from typing import Final

from app.core.text.languages.loading import languages

_WORDS_PER_TOKEN: Final = {one.code: one.words_per_token for one in languages() if one.words_per_token is not None}
_CHARACTERS_PER_TOKEN: Final = {
    one.code: one.characters_per_token for one in languages() if one.characters_per_token is not None
}
"""Where words are not set apart by spaces, the size is named in characters."""
_DEFAULT_WORDS_PER_TOKEN: Final = 0.6
_NAMES: Final = {one.code: one.name for one in languages()}

_DENSITY: Final = 0.8
"""A record is made of numbers, names and dates: a token of it holds fewer words than one of plain text. Of the honest
answers of ``bench.trust`` it holds 0.54 to 0.6 English words (0.75 of plain text), 0.48 to 0.51 German (0.6), 0.44
Russian (0.5), 1.25 to 1.29 Chinese characters (1.5)."""
SAVING_SHARE: Final = 0.6
"""New text of a record has at most this share of the folded messages' tokens. More is refused, for it hardly saves."""


def language_rule(language: str | None) -> str:
    """The instruction that says in which language to write."""
    name = f", {_NAMES[language]}" if language and language in _NAMES else ""
    return f"Write in the conversation's own language{name}."


def size_of(tokens: float, language: str | None) -> str:
    """So many tokens in what a writer can count: ``600 words``."""
    if language and language in _CHARACTERS_PER_TOKEN:
        return f"{_rounded_to_two_figures(tokens * _CHARACTERS_PER_TOKEN[language])} characters"
    return f"{_rounded_to_two_figures(tokens * _WORDS_PER_TOKEN.get(language or 'en', _DEFAULT_WORDS_PER_TOKEN))} words"


def size_of_record(tokens: int, language: str | None) -> str:
    """So many tokens of a record in what a writer can count: its words cost more tokens than those of prose."""
    return size_of(tokens * _DENSITY, language)


def _rounded_to_two_figures(number: float) -> int:
    # A writer cannot aim better.
    step = int("1".ljust(len(str(int(number))) - 1, "0"))
    return max(1, int(number) // step * step)
