"""Texts that may make a pattern slow, from its own parts and from the characters of many alphabets.

For each repetition in a pattern they have what leads there, its body many times over, and an end that does not fit.
Most slow patterns are slow because two repetitions fit the same run, or because one is begun again at each place of it.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from re import _constants as codes  # type: ignore[attr-defined] # the tree is no public interface
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any, Final

from tests.unit.growth import Pump

SIGNS: Final = (
    "a", "A", "1", "_", "я", "字", " ", "\n", ".", "-", "'", '"', ",", ":", "/", "@", "=", "(", "[", "{", "<", "#", "`",
    "?", "!", "|", "*", "\\", "+", ";", "$", "&", "%", "~", "Я", "é", "ı", "ſ", "İ", "ß", "１", "Ａ", "٣", "か", "カ",
    "한", "ا", "\u0301", "\t", "\r", "\u00a0", "\u2003", "\u2028", "\u200b", "\x1c", "\x85", "’", "“", "„", "«", "»",
    "「", "。", "，", "：", "？", "！", "…", "—", "–", "€", "→", "•", "　", "😀", "\x00",
)  # fmt: skip
"""Characters of many alphabets; those with which a class is tried are looked for in this order."""

GENERIC: Final = tuple(
    Pump("", unit, after)
    for unit in (
        *SIGNS, "a ", "a1", "a_", "_a", "aB", "я字", "a.", "a-", "a,", "a'", "1.", "1,", "1:", "1 ", "1-", "字1", "１.",
        "?!", "! ", "- ", " -", "\n ", " \n", "\r\n", "\n-", "\"'", "()", "[]", "{}", "<>", "((", "](", "/a",
        "a/", "a@", "@a", "a: ", "a=1 ", "=a", "://", "``", "**", "e\u0301", "A a ", "Aa ", "is a ", "the ", "не ",
        "я не ", "的",
    )
    for after in ("", "\x00", "a", "!")
)  # fmt: skip

_REPEATS: Final = frozenset({codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT})
_CLASSES: Final = frozenset({codes.IN, codes.ANY, codes.NOT_LITERAL})
_MAX_CHARACTERS: Final = 7
"""The most characters with which a class is tried."""
_LONG: Final = 12
"""A repetition that may go on at least this many times is pumped."""
_ENDS: Final = ("", "\x00", "!", "a", "\n", "1", " ", "@", "я")


def pumps_of(source: str, flags: int, most: int) -> Sequence[Pump]:
    """At most this many texts, without duplicates: first the pattern's own, with some for each repetition."""
    own = [list(_of_repetition(place)) for place in _inside(parser.parse(source, flags), "", "")]
    mixed = itertools.chain.from_iterable(itertools.zip_longest(*own))
    every = dict.fromkeys(pump for pump in itertools.chain(mixed, GENERIC) if pump is not None and pump.unit)
    return tuple(itertools.islice(every, most))


@dataclass(frozen=True, slots=True)
class _Place:
    """A repetition: samples of what leads to it, of its body, and of what follows."""

    before: str
    bodies: tuple[str, ...]
    after: str


def _of_repetition(place: _Place) -> Iterator[Pump]:
    for body in place.bodies:
        yield Pump(place.before, body, "\x00")
        yield Pump("", place.before + body * 3, "\x00")
        yield Pump("", place.before + body * 3 + place.after, "\x00")
    if place.before:
        yield Pump("", place.before, "\x00")
    for body in place.bodies:
        for end in _ENDS:
            yield Pump(place.before, body, end)
            yield Pump(place.before, body, place.after[:-1] + end)
        if place.after:
            yield Pump(place.before, body + place.after, "\x00")
            yield Pump(place.before, body, place.after)


def _inside(tree: Any, before: str, after: str) -> Iterator[_Place]:
    """Each repetition that may become long, with what leads to it and what follows."""
    items = list(tree)
    samples = [_sample([item]) for item in items]
    for number, (code, given) in enumerate(items):
        led = before + "".join(samples[:number])
        follows = "".join(samples[number + 1 :]) + after
        if code in _REPEATS:
            _, most, body = given
            if most is codes.MAXREPEAT or most >= _LONG:
                yield _Place(led, tuple(_samples(body)), follows)
            if len(body) > 1 or body[0][0] in {codes.SUBPATTERN, codes.BRANCH, codes.ATOMIC_GROUP}:
                yield from _inside(body, led, follows)
        for part in _parts(code, given):
            yield from _inside(part, led, follows)


def _parts(code: Any, given: Any) -> Iterable[Any]:
    """The parts of a group, an alternative or a look-around."""
    if code is codes.SUBPATTERN:
        return [given[3]]
    if code is codes.BRANCH:
        return list(given[1])
    if code is codes.ATOMIC_GROUP:
        return [given]
    if code in {codes.ASSERT, codes.ASSERT_NOT}:
        return [given[1]] if given[0] > 0 else []
    if code is codes.GROUPREF_EXISTS:
        return [part for part in given[1:] if part is not None]
    return []


def _sample(items: Any) -> str:
    """A short text that the items probably fit; it is not tried."""
    return "".join(_of_item(code, given) for code, given in items)


def _samples(body: Any) -> Iterator[str]:
    """Short texts that a repetition's body fits: one for each character of its first class, or for each alternative."""
    items = list(body)
    found: list[str] = []
    for number, (code, given) in enumerate(items):
        head, tail = _sample(items[:number]), _sample(items[number + 1 :])
        found += [head + one + tail for one in _variants(code, given)]
    yield from itertools.islice(dict.fromkeys(one for one in found if one), 2 * _MAX_CHARACTERS)


def _variants(code: Any, given: Any) -> Sequence[str]:
    if code in _CLASSES:
        return _signs(_members(code, given))
    if code is codes.BRANCH:
        return [one for branch in given[1] for one in itertools.islice(_samples(branch), 3)] or [""]
    if code in _REPEATS:
        return [one * max(given[0], 1) for one in _samples(given[2])]
    parts = _parts(code, given) if code in {codes.SUBPATTERN, codes.ATOMIC_GROUP} else ()
    return [one for part in parts for one in _samples(part)] or [_of_item(code, given)]


def _of_item(code: Any, given: Any) -> str:
    if code is codes.LITERAL:
        return chr(given)
    if code in _CLASSES:
        return _signs(_members(code, given))[0]
    if code in _REPEATS:
        return _sample(given[2]) * (max(given[0], 1) if given[1] else 0)
    if code in {codes.SUBPATTERN, codes.ATOMIC_GROUP, codes.BRANCH}:
        return _sample(next(iter(_parts(code, given))))
    return ""


def _members(code: Any, given: Any) -> Any:
    """The members of a class of characters, also of one that is written as a dot."""
    if code is codes.IN:
        return given
    return [(codes.NEGATE, None), (codes.LITERAL, given if code is codes.NOT_LITERAL else ord("\n"))]


def _signs(members: Any) -> list[str]:
    """Characters of a class, of as many kinds as are tried."""
    negated = any(code is codes.NEGATE for code, _ in members)
    own = [chr(given) for code, given in members if code is codes.LITERAL]
    own += [chr(given[0]) for code, given in members if code is codes.RANGE]
    offered = SIGNS if negated else (*SIGNS, *own)
    found = [sign for sign in offered if _has(members, sign) != negated]
    kept = found[:_MAX_CHARACTERS] if negated else [*own[:3], *found][:_MAX_CHARACTERS]
    return list(dict.fromkeys(kept)) or ["a"]


def _has(members: Any, sign: str) -> bool:
    for code, given in members:
        if code is codes.LITERAL and ord(sign) == given:
            return True
        if code is codes.RANGE and given[0] <= ord(sign) <= given[1]:
            return True
        if code is codes.CATEGORY and _CATEGORIES[str(given)].match(sign):
            return True
    return False


_CATEGORIES: Final = {
    "CATEGORY_DIGIT": re.compile(r"\d"), "CATEGORY_NOT_DIGIT": re.compile(r"\D"),
    "CATEGORY_SPACE": re.compile(r"\s"), "CATEGORY_NOT_SPACE": re.compile(r"\S"),
    "CATEGORY_WORD": re.compile(r"\w"), "CATEGORY_NOT_WORD": re.compile(r"\W"),
}  # fmt: skip
