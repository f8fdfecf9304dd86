"""Words that say little, of all languages, from the section ``words`` of the files in ``languages``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from app.core.text.languages.combined_words import words_of
from app.core.text.languages.loading import languages

STOPWORDS: Final[Mapping[str, frozenset[str]]] = {
    language.code: frozenset(language.words.function) for language in languages() if language.words.function
}
"""Function words by ISO 639-1 code."""
NOISE: Final = words_of("words", "function").difference(
    *(frozenset(language.words.content) - STOPWORDS.get(language.code, frozenset()) for language in languages())
)
"""Function words of any language that are not content words in another."""
GENERIC: Final = words_of("words", "generic")
"""Content words too common in talk to name a topic."""
FRAME: Final = words_of("words", "frame")
"""Words with which a record reports: who spoke, and that something was said."""
TECHNOLOGY: Final = words_of("words", "technology")
"""Names of technology that are written like ordinary words, so that their spelling does not show it."""
_SPELLINGS: Final = (("’", "'"), *((pair[0], pair[1]) for pair in sorted(words_of("words", "spelled_alike"))))
COMMON_SIGNS: Final = frozenset("".join(words_of("words", "signs")))
"""Characters that are function words, or parts of so many words that they mean nothing alone."""


def respelled(text: str) -> str:
    """A text with one spelling for what can be written in two ways: apostrophes, and letters such as "ё" and "е"."""
    for one, other in _SPELLINGS:
        text = text.replace(one, other)
    return text
