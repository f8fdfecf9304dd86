"""Words of numbers, units, money and the calendar, of all languages, in small letters; "ё" is written "е".

They come from the files of ``languages``, section ``values``, where their keys are explained. This module derives more
words from them: numbers written in one word, and Russian words for half hours.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

from app.core.text.cldr_names import Name, month_names, powers_of_ten, short_months, weekday_names
from app.core.text.languages.loading import languages
from app.core.text.languages.sections_of_values import Values
from app.core.text.plain_text import plain_text_of

_KANA: Final = "\u3040"
"""The first character of scripts in which a text in plain letters may have other characters."""
_VALUES: Final = {language.code: language.values for language in languages()}
_LISTED: Final = {word for values in _VALUES.values() for _, words in values.months for word in words}
_FULL_MONTHS: Final = month_names()
_SHORT_MONTHS: Final = tuple(
    name for name in short_months() if name[1] not in _LISTED.union(word for _, word, _ in _FULL_MONTHS)
)
SHORT_MONTHS: Final = frozenset(word for _, word, _ in _SHORT_MONTHS)
"""Abbreviations of months that count only next to a number."""
_HOMOGRAPHS: Final = (
    *((code, word) for code, values in _VALUES.items() for word in values.homographs),
    *((code, word) for code, word, _ in _SHORT_MONTHS),
)
HOMOGRAPHS: Final[Mapping[str, frozenset[str]]] = {
    word: frozenset(code for code, other in _HOMOGRAPHS if other == word) for _, word in _HOMOGRAPHS
}
"""The languages in which a word belongs to values, for words that mean something else in other languages."""


def _own_spellings(words: Iterable[str], code: str) -> Iterator[str]:
    for word in (plain_text_of(one).text if one[0] >= _KANA else one for one in words):
        yield " ".join(own_word(one, code) if code in HOMOGRAPHS.get(one, ()) else one for one in word.split(" "))


def own_word(word: str, code: str) -> str:
    """A name for a word of one language that is spelled like another word; no text contains this name."""
    return f"{word}.{code}"


def _first_by_word(key: str) -> dict[str, str]:
    rows = ((code, *row) for code, values in _VALUES.items() for row in getattr(values, key))
    return {word: first for code, first, words in rows for word in _own_spellings(words, code)}


def _numbers(key: str) -> dict[str, float]:
    return {word: float(first) for word, first in _first_by_word(key).items()}


def _integers(key: str) -> dict[str, int]:
    return {word: int(first) for word, first in _first_by_word(key).items()}


def _first_two_by_word(key: str) -> dict[str, tuple[str, str]]:
    rows = (
        (first, *_own_spellings(words, code))
        for code, values in _VALUES.items()
        for first, words in getattr(values, key)
    )
    return {word: (first, second) for first, second, *words in rows for word in words}


def _number_by_name(names: Iterable[Name]) -> dict[str, int]:
    return {own: number for code, word, number in names for own in _own_spellings((word,), code)}


def _hour(written: str) -> tuple[int, int]:
    hour, _, minute = written.partition(":")
    return int(hour), int(minute)


def _words(key: str) -> frozenset[str]:
    return frozenset(word for code, values in _VALUES.items() for word in _own_spellings(getattr(values, key), code))


ARTICLES: Final = _words("articles")
_TEN, _HUNDRED = 10, 100


def _tens_and_ones(code: str, values: Values) -> Iterator[tuple[str, float]]:
    """The numbers below a hundred that a language writes in one word, such as "zweiundvierzig" and "ventotto"."""
    named_numbers = [(word, float(first)) for first, words in (*values.numbers, *values.within_words) for word in words]
    ones = [(word, number) for word, number in named_numbers if 1 <= number < _TEN and number.is_integer()]
    tens = [(word, number) for word, number in named_numbers if _TEN <= number < _HUNDRED and number % _TEN == 0]
    for template in values.tens_and_ones:
        for ten, base in tens:
            for one, number in ones:
                yield template.replace("{ten}", ten).replace("{one}", one), base + number
    yield from ((word, number) for word, number in _within_words(code, values) if number < _HUNDRED)


def _within_words(code: str, values: Values) -> Iterator[tuple[str, float]]:
    return ((own_word(word, code), float(first)) for first, words in values.within_words for word in words)


def _number_words(code: str, values: Values) -> Iterator[tuple[str, str]]:
    """The words of which a number in one word may consist, each with the word that stands for it in a token."""
    rows = (*values.numbers, *values.scales)
    for word in (*(word for _, words in rows for word in words), *values.hundred_joints):
        yield word, next(_own_spellings((word,), code))
    yield from ((word, word) for word, _ in _tens_and_ones(code, values) if "." not in word)
    yield from ((word, own_word(word, code)) for _, words in values.within_words for word in words)


_IN_ONE_WORD: Final = {code: said for code, said in _VALUES.items() if said.tens_and_ones}
_COMPOUNDS: Final = {word: number for code, said in _IN_ONE_WORD.items() for word, number in _tens_and_ones(code, said)}
NUMBER_WORDS: Final = tuple(dict(_number_words(code, said)) for code, said in _IN_ONE_WORD.items())
"""For each language that writes numbers in one word: the words of which such a number may consist."""
NUMBERS: Final[Mapping[str, float]] = _COMPOUNDS | _numbers("numbers")
_POWERS_OF_TEN: Final = powers_of_ten()
_LISTED_SCALES: Final = _numbers("scales")
SCALES: Final[Mapping[str, float]] = {
    **_POWERS_OF_TEN, **_LISTED_SCALES,
    **{word: number for code, said in _IN_ONE_WORD.items()
       for word, number in _within_words(code, said) if number >= _HUNDRED},
}  # fmt: skip
COUNTED_SCALES: Final = _words("counted_scales") | (_POWERS_OF_TEN.keys() - _LISTED_SCALES.keys())
"""Scales only behind a number: of languages whose other number words are not known, "a thousand five hundred" is not
a thousand."""
UNITS: Final[Mapping[str, tuple[str, float]]] = {
    word: (base, float(factor)) for word, (base, factor) in _first_two_by_word("units").items()
}
"""(base unit, factor to it) by the unit's word. Months are not converted to seconds: they are a base unit."""
CURRENCIES: Final[Mapping[str, str]] = _first_by_word("currencies")
MONTHS: Final[Mapping[str, int]] = _number_by_name((*_FULL_MONTHS, *_SHORT_MONTHS)) | _integers("months")
WEEKDAYS: Final[Mapping[str, int]] = _number_by_name(weekday_names()) | _integers("weekdays")
"""The number of a weekday; Monday is 0."""
DAY_DISTANCES: Final[Mapping[str, int]] = _integers("days")
"""The distance in days from the message's day."""
ORDINALS: Final[Mapping[str, int]] = _integers("ordinals")
TENS: Final[Mapping[str, int]] = _integers("tens")
"""Tens that may stand before an ordinal: "twenty-first"."""
SHARES: Final[Mapping[str, float]] = _numbers("shares")
FRACTION_SIGNS: Final[Mapping[str, float]] = {
    "½": 1 / 2, "⅓": 1 / 3, "⅔": 2 / 3, "¼": 1 / 4, "¾": 3 / 4, "⅕": 1 / 5, "⅛": 1 / 8, "⅜": 3 / 8,
    "⅝": 5 / 8, "⅞": 7 / 8,
}  # fmt: skip
HALF_UNITS: Final[Mapping[str, tuple[float, str]]] = {
    word: (float(size), unit) for word, (size, unit) in _first_two_by_word("half_units").items()
}
"""(amount, unit) of a single word for both."""
HALF_HOURS: Final[Mapping[str, int]] = {
    f"пол{word}": hour
    for word, hour in ORDINALS.items()
    if word.endswith("го") and hour <= 12  # noqa: PLR2004
}
"""The hour that a Russian word for a half hour names; it means half an hour before it."""
NAMED_HOURS: Final[Mapping[str, tuple[int, int]]] = {
    word: _hour(written) for word, written in _first_by_word("named_hours").items()
}
SPANS: Final[Mapping[str, str]] = _first_by_word("spans")
ONES: Final = _words("ones")
"""Words for units that mean one unit if they stand alone, since Russian has no article."""
NO_NUMERAL_AFTER: Final = _words("no_numeral_after")
"""Words after "one" that show that it stands for a noun: "one of them"."""
ONE_OR_ARTICLE: Final = _words("one_or_article")
"""Number words that are articles if they stand alone."""
ORDINAL_SHARES: Final = _words("ordinal_shares")
"""Ordinals that are fractions after an article: "a third"."""
TEN_JOINTS: Final = _words("ten_joints")
"""Words between a ten and its one: "treinta y ocho"."""
HUNDRED_JOINTS: Final = _words("hundred_joints")
"""Words between hundreds and the rest: "two hundred and five"."""
AND_MORE: Final[Mapping[str, float]] = _numbers("and_more")
"""Words after a number or its unit that add a fraction: "and a half"."""
BEFORE_CLOCK: Final = _words("before_clock")
HOUR_WORDS: Final = _words("hour_words")
PAST_HOUR: Final = _words("past_hour")
TO_HOUR: Final = _words("to_hour")
QUARTERS: Final = _words("quarters")
HALF_BEFORE: Final = _words("half_before")
HOUR_JOINTS: Final = _words("hour_joints")
MINUTES_PAST: Final = _words("minutes_past")
MINUTES_TO: Final = _words("minutes_to")
MINUTES_BEFORE: Final = _words("minutes_before")
LOOSE_MINUTES: Final = _words("loose_minutes")
PAST_BEHIND: Final = _words("past_behind")
TO_BEHIND: Final = _words("to_behind")
HALF_PAST: Final = _words("half_past")
YEAR_SIGNS, MONTH_SIGNS, DAY_SIGNS, HOUR_SIGNS, MINUTE_SIGNS, HALF_SIGNS = (
    "".join(signs) for signs in zip(*(said.date_signs for said in _VALUES.values() if said.date_signs), strict=True)
)
POINTS: Final = _words("points")
ENDINGS: Final = _words("endings")
NUMBER_JOINTS: Final = _words("number_joints")
"""Words between two amounts that are one: "five euros and ten cents"."""
JOINTS: Final = _words("joints")
"""Words that only join other words."""
APPROXIMATE: Final = _words("approximate")
SQUARES: Final = _words("squares")
CUBES: Final = _words("cubes")
DOZENS: Final = _words("dozens")
NUMBERING: Final = _words("numbering")
"""Words before a bare number that only numbers something, such as a step."""
RANGE_WORDS: Final = _words("range_words")
ATTACHED: Final = ".attached"
"""Stands for every preposition that is written in one word with a number; no text contains this name."""
BEFORE_HOURS: Final = _words("before_hours") | {ATTACHED}
LATE: Final = _words("late")
EARLY: Final = _words("early")
NIGHT: Final = _words("night")
CLOCK: Final = _words("clock")
PAST: Final = _words("past")
NEXT: Final = _words("next")
THIS: Final = _words("this")
AHEAD: Final = _words("ahead")
"""Words before a length of time that mean "from now": "in two weeks"."""
LATER: Final = _words("later")
"""Words after a length of time that mean "from now": "two weeks later"."""
AGO: Final = _words("ago")
DATE_FILL: Final = _words("date_fill") | {ATTACHED}
ENDS: Final = _words("ends")
MONTH_ENDS: Final = _words("month_ends")
BEFORE_MONTHS: Final = _words("before_months")
WORDS_AND_VERBS: Final = _words("ambiguous")
"""Words of the calendar that also have another meaning."""
MONTHS_AND_VERBS: Final = frozenset({"may", "march", "mar"})
"""Months that are verbs if they do not begin with a capital."""
ORDINAL_ENDINGS: Final = _words("ordinal_endings")
NUMBER_ENDINGS: Final = _words("number_endings")
COMPOUND_STEMS: Final[Mapping[str, str]] = {
    word: unit.removeprefix("-") for word, unit in _first_by_word("compounds").items()
}
"""The unit that a part of a word after a number names ("семилетняя", "dreitägig"); empty for none."""
_RUSSIAN_HEADS: Final = {
    word: number for word, number in _numbers("numbers").items() if word[-1:] in {"и", "х", "т", "а"} and word[0] >= "а"
}
COMPOUND_HEADS: Final[Mapping[str, float]] = {
    **_RUSSIAN_HEADS, **_COMPOUNDS, **_numbers("compound_heads"),
    **{word: float(first) for said in _IN_ONE_WORD.values() if said.compounds
       for first, words in (*said.numbers, *said.scales) for word in words},
}  # fmt: skip
_HEAD_LENGTH: Final = 3


def _heads(words: Collection[str]) -> Iterator[str]:
    beginnings = {word[:_HEAD_LENGTH] for word in words}
    short = [word for word in beginnings if len(word) < _HEAD_LENGTH]
    for beginning in (*beginnings, *(one + other for one in short for other in beginnings)):
        if len(beginning) >= _HEAD_LENGTH:
            yield beginning[:_HEAD_LENGTH]


HEADS: Final = frozenset(head for words in (COMPOUND_HEADS, *NUMBER_WORDS) for head in _heads(words))
