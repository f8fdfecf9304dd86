"""Names of months, weekdays and powers of ten from the CLDR; whole names only for languages whose files list none."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import date
from itertools import chain
from typing import Final, Literal

from babel import Locale
from babel.dates import format_skeleton, get_month_names

from app.core.text.languages.loading import languages
from app.core.text.plain_text import plain_text_of
from app.core.text.scripts import MARKS
from app.core.text.word_lists import NOISE

_WITHOUT_FILE: Final = ("da", "fi", "gu", "hu", "kn", "ml", "mr", "nb", "pa", "ro", "sk", "te")
_DETECTED: Final = tuple(one.code for one in languages() if not one.values.months and one.spaced)
_WITH_MONTHS: Final = tuple(one.code for one in languages() if one.values.months and one.spaced)
_CODES: Final = (*_DETECTED, *_WITHOUT_FILE)
_MIN_NAME_LENGTH: Final = 3
_SIGNS_IN_NAMES: Final = f"-'{MARKS}"
Name = tuple[str, str, int]
"""(language, word, the number of the month or weekday that it means)."""


def month_names() -> tuple[Name, ...]:
    """The names of months, both as written after a day ("18 września") and alone ("wrzesień")."""
    behind_days = (
        (code, word, month)
        for code in _CODES
        for month in range(1, 13)
        for word in format_skeleton("MMMMd", date(2026, month, 15), locale=code).split()
    )
    return _unambiguous_names([*behind_days, *_babel_names(_CODES, "months", "wide")])


def short_months() -> tuple[Name, ...]:
    """Abbreviations of months, only in languages that can be detected: elsewhere "set" and "mar" are other words."""
    listed = (
        (code, name, month)
        for code in _WITH_MONTHS
        for month, name in get_month_names("abbreviated", locale=code).items()
    )
    found = (*_babel_names(_DETECTED, "months", "abbreviated"), *listed)
    names = ((code, name.rstrip(".").lower(), month) for code, name, month in found)
    return tuple(name for name in names if _is_name(name[1]))


def weekday_names() -> tuple[Name, ...]:
    """The names of weekdays; Monday is 0."""
    return _unambiguous_names(_babel_names(_CODES, "days", "wide"))


def powers_of_ten() -> dict[str, float]:
    """The words for a thousand, a hundred thousand, a million and more, where they are written behind a number."""
    found: dict[str, float] = {}
    for code in _CODES:
        forms = Locale.parse(code).compact_decimal_formats["long"]
        for size, pattern in chain.from_iterable(forms[plural].items() for plural in forms):
            zeros, _, word = str(pattern.pattern).strip("\u200f").rpartition(" ")
            name = plain_text_of(word).text
            is_short = name.isascii() and len(name) <= _MIN_NAME_LENGTH  # "mie" is Italian for "my" too
            if zeros and not zeros.strip("0") and _is_word(name) and not is_short:
                found[name] = float(size) / 10.0 ** (len(zeros) - 1)
    return found


def _babel_names(codes: Iterable[str], key: Literal["months", "days"], width: str) -> Iterator[Name]:
    for code in codes:
        contexts = getattr(Locale.parse(code), key)
        for context in contexts:
            names = contexts[context].get(width, {})
            yield from ((code, name, number) for number, name in names.items())


def _unambiguous_names(given_names: Iterable[Name]) -> tuple[Name, ...]:
    meanings: defaultdict[str, set[int]] = defaultdict(set)
    names = [(code, plain_text_of(word).text, number) for code, word, number in given_names]
    for _, word, number in names:
        meanings[word].add(number)
    return tuple(
        (code, word, number)
        for code, word, number in dict.fromkeys(names)
        if len(meanings[word]) == 1 and word not in NOISE and _is_name(word)
    )


def _is_name(word: str) -> bool:
    return len(word) >= _MIN_NAME_LENGTH and _is_word(word)


def _is_word(text: str) -> bool:
    return all(sign.isalpha() or sign in _SIGNS_IN_NAMES for sign in text)
