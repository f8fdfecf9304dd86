"""Finds relative times ("yesterday", "last week"), and adds the day that they mean or on which they were said.

The words are in the files of ``languages``, under ``relative``: a list of those that mean one certain day
("yesterday"), and patterns of other times that depend on the day ("last Friday").
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Final, Literal, get_args

from app.core.text.blanks import with_plain_blanks
from app.core.text.cue_patterns import CUE_INDEX
from app.core.text.day_notes import any_of, notes_of, written_days
from app.core.text.language import detect
from app.core.text.languages.loading import languages
from app.core.text.languages.sections_of_values import Relative
from app.core.text.patterns import compiled

_TABLES: Final[Mapping[str, Relative]] = {
    language.code: language.relative for language in languages() if language.relative is not None
}
_SIGNS_BEFORE_SENTENCE: Final = ".!?…:;\"'“«„(（[—–-•*。！？：；「"
"""Signs after which a sentence or a quotation may begin."""
QUOTATION: Final = compiled(
    r"\"[^\"\n]{1,600}\"|“[^”\n]{1,600}”|«[^»\n]{1,600}»|„[^“”\n]{1,600}[“”]|「[^」\n]{1,600}」|『[^』\n]{1,600}』|`[^`\n]{1,600}`"
)
"""A quotation, or code within a line."""
_HAN: Final = "\u3400"  # the first Chinese character: words from here on have no spaces around them


NeededPart = Literal["weekday", "day", "month"]
"""How much of the day's date is needed to understand a relative time."""


@dataclass(frozen=True, slots=True)
class NearDay:
    """A word that means one certain day, counted from the day on which it is said."""

    language: str
    start: int
    end: int
    """The end of the word, or of a part of the day after it, as in "yesterday morning"."""
    distance: int
    """The distance in days: -1 for "yesterday"."""
    is_quoted: bool


def near_days(text: str) -> list[NearDay]:
    """The words of a text that mean one certain day, in order, without words in titles such as "USA Today"."""
    text = with_plain_blanks(text)
    found = _near_days_of(text, CUE_INDEX.may_match_text(text))
    return [] if found and _is_in_language_without_table(text) else found


def _near_days_of(text: str, possible: int) -> list[NearDay]:
    matches = [
        (language, match)
        for language, (bit, pattern, _) in _NEAR_DAY_PATTERNS.items()
        if bit & possible
        for match in pattern.finditer(text)
    ]
    quoted = [found.span() for found in QUOTATION.finditer(text)] if matches else []
    starts = [start for start, _ in quoted]
    found = [
        NearDay(
            language,
            match.start(),
            match.end(),
            _NEAR_DAY_PATTERNS[language][2][match["word"].lower()],
            (number := bisect_right(starts, match.start())) > 0 and match.start() < quoted[number - 1][1],
        )
        for language, match in matches
        if not (_TABLES[language].capital and match[0][0].isupper() and not _begins_sentence(text, match.start()))
    ]
    return sorted(found, key=lambda one: one.start)


@dataclass(frozen=True, slots=True)
class OtherTime:
    """A time that depends on the day on which it is said but is not one certain day: "last week", "on Friday"."""

    language: str
    text: str
    needed: NeededPart


def other_times(text: str) -> list[OtherTime]:
    """The other times of a text, with plain spaces; first those that need the weekday, then the day, then the month."""
    text = with_plain_blanks(text)
    possible = CUE_INDEX.may_match_text(text)
    found = [
        OtherTime(language, match[0], needed)
        for language, needed, bit, pattern in _OTHER_TIME_PATTERNS
        if bit & possible
        for match in pattern.finditer(text)
    ]
    return [] if found and _is_in_language_without_table(text) else found


def has_relative_time(text: str) -> bool:
    """Whether a text holds any relative time."""
    text = with_plain_blanks(text)
    possible = CUE_INDEX.may_match_text(text) & _ANY_BIT
    has_match = bool(possible) and (
        bool(_near_days_of(text, possible))
        or any(bit & possible and pattern.search(text) for _, _, bit, pattern in _OTHER_TIME_PATTERNS)
    )
    return has_match and not _is_in_language_without_table(text)


def _is_in_language_without_table(text: str) -> bool:
    # Ukrainian shares words with Russian, and Japanese with Chinese, but they may mean something else.
    return detect(text) in _LANGUAGES_WITHOUT_TABLE


def day_in_brackets(day: date, language: str) -> str:
    """A day as it is written after the word that means it: `` (12 May 2025)``."""
    return _bracketed(language, _day_in_form(_TABLES[language].day, day, language))


def date_note(day: date, text: str) -> str:
    """The day of a message, as far as its text needs it: `` (said Mon 12 May 2025)``; empty if the text does not."""
    near, others = near_days(text), other_times(text)
    if not (near or others):
        return ""
    language = others[0].language if others else near[0].language
    needed = others[0].needed if others else "day"
    form: str = getattr(_TABLES[language].said, "day" if near and needed == "month" else needed)
    return _bracketed(language, _day_in_form(form, day, language))


def without_added_days(text: str) -> str:
    """The text without the days that this module wrote into it, for comparing it with others."""
    if not any(sign in text for sign in ")）"):
        return text
    for pattern in _ADDED_DAY_PATTERNS:
        text = pattern.sub(r"\g<word>", text)
    return text


def _bracketed(language: str, inside: str) -> str:
    return _TABLES[language].brackets.replace("{}", inside)


def _day_in_form(form: str, day: date, language: str) -> str:
    table = _TABLES[language]
    return form.format(
        day=day.day, month=table.months[day.month - 1], year=day.year, weekday=table.weekdays[day.weekday()]
    )


def _begins_sentence(text: str, place: int) -> bool:
    before = text[max(place - 3, 0) : place].rstrip()
    return not before or before[-1] in _SIGNS_BEFORE_SENTENCE or "\n" in text[max(place - 2, 0) : place]


def _near_pattern(table: Relative) -> str:
    words, parts = any_of(table.days), any_of(table.parts)
    if next(iter(table.days))[0] >= _HAN:
        return rf"{table.not_after}(?P<word>{words}){table.not_before}(?:{parts})?"
    return rf"(?<![\w-]){table.not_after}(?P<word>{words})(?:['’]s)?(?: (?:{parts}))?{table.not_before}(?![\w-])"


def _other_pattern(table: Relative, needed: NeededPart) -> str:
    patterns: tuple[str, ...] = getattr(table, f"by_{needed}")
    others = "|".join(patterns).replace("{number}", table.number)
    return others if not others or next(iter(table.days))[0] >= _HAN else rf"(?<![\w-])(?:{others})(?![\w-])"


def _added_patterns(table: Relative) -> Iterator[str]:
    """Patterns of what ``day_in_brackets`` and ``date_note`` write; the former only after a word that means a day."""
    (day,) = written_days(table, [table.day])
    yield rf"(?P<word>{_near_pattern(table).replace('(?P<word>', '(?:')}){day}"
    yield rf"(?P<word>)(?:{notes_of(table)})"


_NEAR_DAY_PATTERNS: Final[Mapping[str, tuple[int, re.Pattern[str], Mapping[str, int]]]] = {
    language: (CUE_INDEX.add(source), compiled(source, re.IGNORECASE), table.days)
    for language, table in _TABLES.items()
    for source in [_near_pattern(table)]
}
_OTHER_TIME_PATTERNS: Final[Sequence[tuple[str, NeededPart, int, re.Pattern[str]]]] = [
    (language, needed, CUE_INDEX.add(source), compiled(source, re.IGNORECASE))
    for needed in get_args(NeededPart)
    for language, table in _TABLES.items()
    for source in [_other_pattern(table, needed)]
    if source
]
_ANY_BIT: Final = sum(
    [*(bit for bit, _, _ in _NEAR_DAY_PATTERNS.values()), *(bit for _, _, bit, _ in _OTHER_TIME_PATTERNS)]
)
_LANGUAGES_WITHOUT_TABLE: Final = frozenset(language.code for language in languages()) - _TABLES.keys()
_ADDED_DAY_PATTERNS: Final = tuple(
    compiled(pattern, re.IGNORECASE) for table in _TABLES.values() for pattern in _added_patterns(table)
)
