"""Words that say little, of all languages; they stand in the files of ``languages``, under ``words``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from app.core.text.languages.loading import languages

Kind = Literal["function", "content", "generic", "frame", "technology", "signs"]


def _words(kind: Kind) -> frozenset[str]:
    return frozenset(word for language in languages() for word in getattr(language.words, kind))


STOPWORDS: Final[Mapping[str, frozenset[str]]] = {
    language.code: frozenset(language.words.function) for language in languages() if language.words.function
}
"""Function words by ISO 639-1 code."""
NOISE: Final = _words("function").difference(
    *(frozenset(language.words.content) - STOPWORDS.get(language.code, frozenset()) for language in languages())
)
"""Words of any language that carry no content, whatever the language."""
GENERIC: Final = _words("generic")
"""Content words too common in talk to name a topic."""
FRAME: Final = _words("frame")
"""The record's own voice: whose words are told, and that they were said."""
TECHNOLOGY: Final = _words("technology")
"""Names of technology that are written like ordinary words, and could not be told by their letters."""
COMMON_SIGNS: Final = frozenset("".join(_words("signs")))
"""Signs that are function words, or parts of so many words that they say nothing alone."""
