"""Reads numbers that are spelled in several words."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import Final

from app.core.text.numerals import continues_number, number_of_words
from app.core.text.scan_results import Cursor
from app.core.text.tables import (
    AND_MORE,
    COUNTED_SCALES,
    DOZENS,
    HUNDRED_JOINTS,
    NO_NUMERAL_AFTER,
    NUMBERS,
    ONE_OR_ARTICLE,
    SCALES,
    TEN_JOINTS,
)

_Phrases = Mapping[str, tuple[tuple[str, ...], ...]]
_MAX_WORDS, _HUNDRED, _MINUTES, _TEN, _AFTER = 12, 100, 60, 10, 12
_EAST_ASIAN: Final = "\u3040"
_BETWEEN: Final = frozenset({"", " ", "-", "  "})


def phrases(words: Collection[str]) -> _Phrases:
    """Phrases of several words, grouped by their first word, the longest first."""
    found = defaultdict[str, list[tuple[str, ...]]](list)
    for word in sorted(words, key=lambda one: (-one.count(" "), one)):
        if " " in word:
            first, *more = word.split(" ")
            found[first].append((first, *more))
    return {first: tuple(several) for first, several in found.items()}


_PHRASES: Final = phrases(NUMBERS.keys())
_MORE: Final = phrases(AND_MORE.keys())


def spelled_number_words(c: Cursor, place: int) -> tuple[list[str], int]:
    """The words from this token on that make one number together, and the token after them."""
    words: list[str] = []
    after, last = place, 0.0
    while len(words) < _MAX_WORDS and (not words or c.gap(after) in _BETWEEN):
        word, behind = phrase_at(c, after, _PHRASES)
        if word in NUMBERS and (not last or word in DOZENS or continues_number(last, NUMBERS[word])):
            last = NUMBERS[word]
        elif word in SCALES and _counts_as_scale(c, word, last):
            last = SCALES[word]
        elif words and _joins_two_numbers(c, after, last):
            after += 1
            continue
        else:
            break
        words.append(word)
        after = behind
    is_article = (
        len(words) == 1 and NUMBERS.get(words[0]) == 1 and (words[0] in ONE_OR_ARTICLE or _is_pronoun_one(c, place))
    )
    return ([], place) if is_article and not added_fraction(c, after)[1] else (words, after)


def _counts_as_scale(c: Cursor, word: str, last: float) -> bool:
    is_counted = last > 1 or c.all_readings or word not in COUNTED_SCALES
    return (len(word) > 1 or word >= _EAST_ASIAN) and word not in NUMBERS and is_counted


def phrase_at(c: Cursor, place: int, several: _Phrases) -> tuple[str, int]:
    """The longest of these phrases that begins at a token, otherwise the token's word; and the token after it."""
    for words in several.get(c.word(place), ()):
        if c.word(place + 1) == words[1] and c.near(place + 1) and c.says(place + 1, *words[1:]):
            return " ".join(words), place + len(words)
    return c.word(place), place + 1


def number_below_sixty(c: Cursor, place: int) -> tuple[int, int]:
    """A whole number below sixty, in digits or words, and the token after it; (0, the same token) without one."""
    if place >= len(c.tokens):
        return 0, place
    number, after = (c.tokens[place].data[0] if c.kind(place) == "n" else 0.0), place + 1
    if c.kind(place) == "w":
        words, after = spelled_number_words(c, place)
        number = number_of_words(words)
        if c.word(place) in ONE_OR_ARTICLE and not words:
            number, after = 1.0, place + 1
    is_small = number < _MINUTES and number == int(number) and (number or c.kind(place) == "n")
    return (int(number), after) if is_small else (0, place)


def added_fraction(c: Cursor, place: int) -> tuple[float, int]:
    """What words such as "and a half" add, and how many tokens they are."""
    word, after = phrase_at(c, place, _MORE)
    return (AND_MORE[word], after - place) if word in AND_MORE and c.near(place) else (0.0, 0)


def _joins_two_numbers(c: Cursor, place: int, last: float) -> bool:
    following = NUMBERS.get(c.word(place + 1), 0.0)
    if c.word(place) in TEN_JOINTS and last < _HUNDRED:
        return 0 < following < _TEN and continues_number(last, following) and c.near(place + 1)
    return c.word(place) in HUNDRED_JOINTS and last >= _HUNDRED and c.word(place + 1) in NUMBERS


def _is_pronoun_one(c: Cursor, place: int) -> bool:
    end = c.tokens[place].end
    following = c.text[end : end + _AFTER].lstrip(" -")
    word = following.split(" ")[0].strip(".,;:!?)")
    return not following[:1].isalpha() or word in NO_NUMERAL_AFTER
