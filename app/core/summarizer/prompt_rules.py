"""The rules that all prompts of a summarizer share: the language and the length of its answer."""

from __future__ import annotations

from typing import Final

from app.core.text.languages.loading import languages

_WORDS_PER_TOKEN: Final = {one.code: one.words_per_token for one in languages() if one.words_per_token is not None}
_CHARACTERS_PER_TOKEN: Final = {
    one.code: one.characters_per_token for one in languages() if one.characters_per_token is not None
}
"""Languages without spaces between words: for them a size is given in characters."""
_DEFAULT_WORDS_PER_TOKEN: Final = 0.6
_NAMES: Final = {one.code: one.name for one in languages()}

_DENSITY: Final = 0.8
"""How many words a token of a record has, relative to plain text: fewer, since a record has many numbers, names and
dates. In the honest answers of ``bench.trust`` a token has 0.54 to 0.6 English words (0.75 in plain text), 0.48 to 0.51
German (0.6), 0.44 Russian (0.5), 1.25 to 1.29 Chinese characters (1.5)."""
SAVING_SHARE: Final = 0.6
"""The largest share of the folded messages' tokens for new text of a record: more is refused, as it saves little."""


def language_rule(language: str | None) -> str:
    """The instruction that says in which language to write."""
    name = f", {_NAMES[language]}" if language and language in _NAMES else ""
    return f"Write in the conversation's own language{name}."


def size_of(tokens: float, language: str | None) -> str:
    """A number of tokens in units that a writer can count: ``600 words``."""
    if language and language in _CHARACTERS_PER_TOKEN:
        return f"{_rounded_to_two_figures(tokens * _CHARACTERS_PER_TOKEN[language])} characters"
    return f"{_rounded_to_two_figures(tokens * _WORDS_PER_TOKEN.get(language or 'en', _DEFAULT_WORDS_PER_TOKEN))} words"


def size_of_record(tokens: int, language: str | None) -> str:
    """Like ``size_of``, for tokens of a record, whose words cost more tokens than those of prose."""
    return size_of(tokens * _DENSITY, language)


def _rounded_to_two_figures(number: float) -> int:
    # A writer cannot follow a more precise number.
    step = int("1".ljust(len(str(int(number))) - 1, "0"))
    return max(1, int(number) // step * step)
