"""The names of months and weekdays in languages whose files list none, as the CLDR has them.

Only names in full: an abbreviation ("set", "ago", "mar") is another word elsewhere.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from typing import Final

from babel import localedata
from babel.dates import format_skeleton

from app.core.text.folding import folded
from app.core.text.languages.loading import languages
from app.core.text.word_lists import NOISE

_WITHOUT_FILE: Final = ("da", "fi", "hu", "nb", "ro", "sk")
_CODES: Final = (*(one.code for one in languages() if not one.values.months and one.spaced), *_WITHOUT_FILE)
_SHORTEST: Final = 3
Name = tuple[str, str, int]
"""A language, a word of it and what it means."""


def month_names() -> tuple[Name, ...]:
    """The months behind a day ("18 września") and alone ("wrzesień")."""
    behind_days = (
        (code, word, month)
        for code in _CODES
        for month in range(1, 13)
        for word in format_skeleton("MMMMd", date(2026, month, 15), locale=code).split()
    )
    return _unmistakable([*behind_days, *_wide("months")])


def weekday_names() -> tuple[Name, ...]:
    """The weekdays; Monday is 0."""
    return _unmistakable(_wide("days"))


def _wide(key: str) -> Iterator[Name]:
    """Names in full. Only what the data of a language itself say: Babel mixes up what they inherit."""
    for code in _CODES:
        contexts = localedata.load(code, merge_inherited=False)[key]
        for names in (contexts[context].get("wide", {}) for context in contexts):
            if isinstance(names, Mapping):
                yield from ((code, name, number) for number, name in names.items())


def _unmistakable(told: Iterable[Name]) -> tuple[Name, ...]:
    """Single words that mean one number, whatever the language, and nothing else."""
    meanings: defaultdict[str, set[int]] = defaultdict(set)
    names = [(code, folded(word).text, number) for code, word, number in told]
    for _, word, number in names:
        meanings[word].add(number)
    return tuple(
        (code, word, number)
        for code, word, number in dict.fromkeys(names)
        if len(meanings[word]) == 1 and len(word) >= _SHORTEST and word not in NOISE and _is_word(word)
    )


def _is_word(text: str) -> bool:
    return text.replace("-", "").replace("'", "").isalpha()
