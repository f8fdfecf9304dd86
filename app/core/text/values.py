"""Exact values: those that a statement claims, and whether a text that was shown has them in any form.

(Values that are only copied as they are written are found by ``identifiers.py``.)

A statement is read strictly: only what is plainly a value counts (``values``). What was shown is read generously
(``ValueIndex``): a value is found if any reading of the text gives it, whatever its unit, separators, words or order.
Only currencies, percentages, lengths of time, times of day, and units of the same dimension are distinguished
(``measure``): "12 hours" is found in a text with a bare 12, but not in one with "12 %" or "12 minutes". Values that
follow from others by calculation are not found here, except days that follow from the date of the message.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right, insort
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Final, Literal
from urllib.parse import unquote

from app.core.text import moments
from app.core.text.memo import memoized
from app.core.text.numerals import plain_number, resolution, resolution_as_written
from app.core.text.patterns import compiled
from app.core.text.scan_results import WEEKDAY, FoundValue
from app.core.text.shapes import FILE, squashed_within
from app.core.text.value_reader import day_of, plain_text_and_tokens, read_values

Kind = Literal["url", "email", "path", "identifier", "version", "money", "number", "date", "time"]
NAMING_KINDS: Final[frozenset[Kind]] = frozenset({"url", "email", "path", "identifier"})
"""Kinds of values that name something. A name does not change over time as amounts and days do, and a part of it names
something else."""
_MIN_ROUNDED_NUMBER: Final = 1_000
"""Whole numbers below this are never roundings, unless the text says so."""
MAX_ROUNDING: Final = 0.02
MAX_APPROXIMATION: Final = 0.1
"""How far off a rounding (``MAX_ROUNDING``) and one that says "about" (``MAX_APPROXIMATION``) may be, as a share of
the number."""
_APPROXIMATION_IN_LAST_DIGITS: Final = 4
"""How far off a number that says "about" may be if no zero ends it, in units of its last digit: "about 83" may mean 84,
not 88."""
_TIME_STEPS: Final = (60, 30, 15, 10, 5)
"""Precisions of approximate times, in minutes. A time that is exact to the minute is not approximate."""
_PARTS_OF_TIME: Final = 2
_EVENING_WEST, _MORNING_EAST = 8, 13
_FIRST_YEAR, _LAST_YEAR = 1900, 2100
_MAX_SIMILAR_SIZES: Final = 1_000
_CLOCK: Final = "clock"
MONEY: Final = "money"
"""The unit for all currencies: currencies are not converted."""
_DAY: Final = 86_400
_DISTINCT_BASES: Final = frozenset({"%", "s", "mo"})
_DIMENSIONS: Final = {"g": "mass", "m": "length", "l": "volume", "pint": "volume"}
"""What some units measure. "820 mg" is not shown by "820 g", but it is by 820 of anything else."""
_JOINT: Final = compiled("&(?=[a-z]:)")
"""The sign between two parts of a form. A text that is searched for as it is may have it too: ``?q=chairs&page=2``."""
_ADDRESS: Final = compiled("s:[^&/?]*[/?]")
"""How the form of an address begins, which has no parts: "&n:2" in it is its own text."""
_EVERY_DIMENSION: Final = ("", *sorted(set(_DIMENSIONS.values())))
"""The same, and the empty text for all other units and for none."""


@dataclass(frozen=True, slots=True)
class Value:
    """An exact value that a text claims."""

    kind: Kind
    text: str
    """The value as it is written, including markup within it."""
    start: int
    end: int
    forms: frozenset[str]
    """The possible forms: a text with any of them has the value. Parts of a form joined by ``&`` are all needed.

    ``n:4500`` is a number, ``q:7200|s`` an amount in its base unit, ``i:`` the letters and digits of a code, ``s:``
    text that is searched for as it is, ``f:`` a file's name, searched likewise, ``v:`` a version or digits as written,
    ``p:`` a part of a network address, ``r:7`` the number of a source, ``l:6:40`` a length of time as a clock shows it.
    Days and times (``d:``, ``o:``, ``t:``) are explained in ``moments.py``. Only shown texts have ``n:14|#EUR``, a
    number of euros, ``n:14|#``, a bare number, and ``w:``, a day that a weekday may mean, or the date in another time
    zone when the message was written.
    """
    amount: float | None
    """The number with its scale, in its own unit; ``None`` if the value is not a number."""
    approximate: bool
    """Whether the text itself says that the value is rounded ("about", "18k", "около")."""
    base: str = ""
    """The base unit of an amount; empty without a unit, and for money."""
    factor: float = 1.0
    """The factor from its own unit to the base unit."""
    measure: str = ""
    """What its number counts, if that is one of the measures that are distinguished; else empty."""

    @property
    def meaning(self) -> tuple[object, ...]:
        """A key that is the same for values with the same meaning, wherever they are written."""
        return self.kind, self.text, self.forms, self.amount, self.approximate, self.base, self.factor, self.measure

    @property
    def reads_as_year(self) -> bool:
        """Whether it may be a year: a bare number of four digits, written like a year."""
        is_plain = self.kind == "number" and not self.base and self.text.isdecimal()
        return is_plain and self.amount is not None and _FIRST_YEAR <= self.amount <= _LAST_YEAR


def values(text: str, at: datetime | None = None) -> tuple[Value, ...]:
    """The exact values that a text claims, in order and without overlaps.

    These do not count as values: names; abbreviations; without a unit, numbers of one digit or up to ten in words;
    ordinals; fractions; parts of a formula (except the value of one letter, "x = 45"); numbers of a list or a step;
    numbers of fewer than three digits that name something ("#12").

    Args:
        text: A text of any length. Markdown, LaTeX and character references in it are ignored.
        at: The moment of its message; only values that need a year to be understood depend on it.
    """
    return _values(text, day_of(at))


@memoized()
def _values(text: str, day: date | None) -> tuple[Value, ...]:
    plain_text, pieces = plain_text_and_tokens(text)
    found: list[Value] = []
    last = 0
    for one in read_values(plain_text, pieces, day, all_readings=False):
        start, end = plain_text.original(one.start), plain_text.original(one.end - 1) + 1
        if not one.is_stated or start < last or end <= start:
            continue
        last = end
        amount = one.readings[0] * one.scale if one.readings else None
        kind: Kind = one.kind  # type: ignore[assignment] # the reader's kinds are these
        base, factor = one.unit or ("", 1.0)
        about = one.is_approximate
        found.append(Value(kind, text[start:end], start, end, one.forms, amount, about, base, factor, _measure(one)))
    return tuple(found)


def _measure(found: FoundValue) -> str:
    if found.kind == "time":
        return _CLOCK
    base, factor = found.unit or (found.currency, 1.0)
    if _is_shown_by_clock(base, factor):
        return f"{base} {factor:g}"
    if base in _DIMENSIONS:
        return f"{base} {factor:.6g}"
    # Other units are not distinguished: their signs are letters with many other meanings.
    return base if found.currency or base in _DISTINCT_BASES else ""


def _dimension(found: FoundValue) -> str:
    return _DIMENSIONS.get(found.unit[0], "") if found.unit else ""


def _other_dimensions(base: str) -> list[str]:
    return [dimension for dimension in _EVERY_DIMENSION if dimension != _DIMENSIONS.get(base, "")]


def _is_shown_by_clock(base: str, factor: float) -> bool:
    return base == "s" and factor < _DAY


def _forms_to_look_up(value: Value) -> Iterator[str]:
    for form in value.forms:
        if value.measure and _is_number(form):
            # Look for a number of the same measure, and for a bare one. "1:47" shows 47 minutes, and perhaps seconds.
            yield from (f"{form}|#{value.measure}", f"{form}|#")
            yield from (f"{form}|~{dimension}" for dimension in _other_dimensions(value.base))
            if _is_shown_by_clock(value.base, value.factor):
                yield f"{form}|#{_CLOCK}"
        else:
            yield form


def _parts_of(form: str) -> list[str]:
    return _JOINT.split(form) if "&" in form and not _ADDRESS.match(form) else [form]


def _is_number(form: str) -> bool:
    return form[:2] == "n:" and "&" not in form


@memoized()
def _possible_meanings(text: str, day: date | None) -> tuple[frozenset[str], frozenset[tuple[float, str]], str]:
    plain_text, pieces = plain_text_and_tokens(text)
    found = read_values(plain_text, pieces, day, all_readings=True)
    small = plain_text.text
    return (
        frozenset(form for one in found for form in _possible_forms(one)),
        frozenset(amount for one in found for amount in _possible_amounts(one)),
        unquote(small) if "%" in small and "/" in small else small,
    )


def _possible_forms(found: FoundValue) -> Iterator[str]:
    for form in found.forms:
        yield _as_possible_day(form) if found.kind == WEEKDAY else form
    for form in filter(_is_number, found.forms):
        yield from (f"{form}|#{_measure(found)}", f"{form}|~{_dimension(found)}")


def _as_possible_day(form: str) -> str:
    return f"w:{form}" if moments.is_of_day(form) else form


def _possible_amounts(found: FoundValue) -> Iterator[tuple[float, str]]:
    yield from found.amounts
    for amount, base in found.amounts:
        if not base:
            yield from ((amount, f"#{_measure(found)}"), (amount, f"~{_dimension(found)}"))


class ValueIndex:
    """The texts that were shown, by numbered sources; finds whether and where they have a value."""

    __slots__ = ("_amounts", "_forms", "_is_dated", "_known", "_plain", "_sizes", "_squashed", "_texts")

    def __init__(self) -> None:
        self._forms: defaultdict[str, set[int]] = defaultdict(set)
        self._amounts: defaultdict[str, dict[float, set[int]]] = defaultdict(dict)
        self._sizes: defaultdict[str, list[float]] = defaultdict(list)
        self._texts: list[_SearchableText] = []
        self._squashed: list[_SearchableText] = []
        self._known: dict[str, frozenset[int]] = {}
        self._plain: dict[tuple[object, ...], frozenset[int]] = {}
        self._is_dated = False

    def add(self, source: int, text: str, at: datetime | None = None) -> None:
        """Add a shown text.

        Args:
            source: The number of its source, which may have several texts.
            text: A text of any length.
            at: The moment of its message. Its day counts as shown, in other time zones too, and relative days are
                counted from it.
        """
        self._known.clear()
        self._plain.clear()
        self._is_dated = self._is_dated or at is not None
        day = day_of(at)
        forms, amounts, searched = _possible_meanings(text, day)
        for form in forms:
            self._forms[form].add(source)
        for amount, base in amounts:
            if amount not in self._amounts[base]:
                insort(self._sizes[base], amount)
            self._amounts[base].setdefault(amount, set()).add(source)
        self._forms[f"r:{source}"].add(source)  # "#218" may name a message
        if at is not None and day is not None:
            elsewhere = map(_as_possible_day, moments.forms_of_dates(_day_elsewhere(day, at.hour)))
            for form in (*moments.forms_of_dates([day]), *elsewhere, f"t:{at:%H:%M}"):
                self._forms[form].add(source)
        self._texts.append(_SearchableText(source, searched, is_of_word))

    def sources(self, value: Value) -> frozenset[int]:
        """The sources that have a value in any form; empty if it was not shown."""
        plain_sources, weekday_sources = self.plain_sources(value), self.weekday_sources(value)
        return plain_sources | weekday_sources if weekday_sources else plain_sources

    def plain_sources(self, value: Value) -> frozenset[int]:
        """The sources that have a value, but not its day only by a weekday, or as their date in another time zone."""
        meaning = value.meaning
        if meaning not in self._plain:
            self._plain[meaning] = self._plainly(value)
        return self._plain[meaning]

    def _plainly(self, value: Value) -> frozenset[int]:
        found: set[int] = set()
        for form in _forms_to_look_up(value):
            found |= self._sources_of_all(form)
        return frozenset(found | self._rounded(value) | self._sources_of_rounded_time(value))

    def possible_sources(self, value: Value) -> frozenset[int]:
        """The sources among which all are that have a value by themselves, whatever the others have.

        Of similar amounts only the nearest thousand are looked at, as everywhere here.
        """
        first_parts = (self._sources_of(_parts_of(form)[0]) for form in _forms_to_look_up(value))
        found = self._rounded(value) | self._sources_of_rounded_time(value)
        return self.weekday_sources(value).union(found, *first_parts)

    def holds(self, value: Value) -> bool:
        """Whether a value was shown anywhere."""
        if self.sources(value):
            return True
        joined = (parts for form in value.forms if len(parts := _parts_of(form)) > 1 and not form.startswith("d:"))
        return any(all(self._sources_of(part) for part in parts) for parts in joined)

    def days_and_months(self, value: Value) -> Iterator[tuple[frozenset[int], frozenset[int]]]:
        """The sources that name the day of a date without its month, and those with its month; either may be empty."""
        for form in value.forms:
            month, _, day = form.partition("&")
            if day.startswith("o:"):
                yield self._sources_of(day), self._sources_of(month)

    def weekday_sources(self, value: Value) -> frozenset[int]:
        """The sources with a weekday that may mean this day, and those written when it was this day elsewhere."""
        return frozenset(source for form in value.forms for source in self._forms.get(f"w:{form}", ()))

    def holding(self, number: float) -> frozenset[int]:
        """The sources that have this number."""
        return frozenset(self._forms.get(f"n:{plain_number(number)}", ()))

    def sources_of_similar_amount(self, amount: float, most: float) -> frozenset[int]:
        """The sources of large numbers at most ``most`` times larger or smaller than this one; years do not count."""
        sizes = self._sizes.get("", [])
        alike = sizes[bisect_left(sizes, max(amount / most, _MIN_ROUNDED_NUMBER)) : bisect_right(sizes, amount * most)]
        found = (self._amounts[""][one] for one in alike[:_MAX_SIMILAR_SIZES] if not _FIRST_YEAR <= one <= _LAST_YEAR)
        return frozenset().union(*found)

    def amounts_between(self, unit: str, first: float, last: float) -> list[float]:
        """The shown amounts of a base unit or a currency between two amounts.

        The empty unit means numbers without a unit; ``MONEY`` means all currencies.
        """
        keys = [key for key in self._sizes if key[1:].isupper()] if unit == MONEY else [f"#{unit}"]
        others = [unit] if unit else [f"~{dimension}" for dimension in _other_dimensions("")]
        found = (self._sizes.get(key, ()) for key in (*keys, *others))
        return [one for sizes in found for one in sizes[bisect_left(sizes, first) : bisect_right(sizes, last)]]

    def _sources_of_all(self, form: str) -> frozenset[int]:
        first, *others = map(self._sources_of, _parts_of(form))
        if form.startswith(moments.YEARLESS) and not self._is_dated:  # no source says which year it is
            return first
        if form.startswith((moments.YEARLESS, FILE)):  # its year or its folders may be in other sources
            return first if all(others) else frozenset()
        return first.intersection(*others)

    def _sources_of(self, form: str) -> frozenset[int]:
        if form not in self._known:
            self._known[form] = frozenset(self._forms.get(form, ())) | self._searched(form)
        return self._known[form]

    def _searched(self, form: str) -> frozenset[int]:
        kind, _, needle = form.partition(":")
        if kind == "i":
            for one in self._texts[len(self._squashed) :]:
                self._squashed.append(_SearchableText(one.source, squashed_within(one.text), str.isdigit))
        texts = {"s": self._texts, "f": self._texts, "i": self._squashed}.get(kind, [])
        return frozenset(one.source for one in texts if needle in one.text and one.holds(needle))

    def _rounded(self, value: Value) -> set[int]:
        """The sources of amounts of which the value is a rounding.

        A value that says "about" (or is written as 18k) may be off by half of the worth of its last digit that is not
        zero, at most by a tenth; or by four times the worth of its last digit, at most by 2 %. Any other value is a
        rounding only if it has fewer digits than the amount and is within 2 %. A whole number below a thousand is a
        rounding only of a number with decimals: 18,000 for 17,995 is found, 150 for 147 is not. Identifiers are never
        roundings, even if their last letter looks like a scale (8841207K), and neither are years.
        """
        found: set[int] = set()
        if value.kind == "identifier" or (value.reads_as_year and not value.approximate):
            return found
        dimension = _DIMENSIONS.get(value.base, "")
        for form in _forms_to_look_up(value):
            if form[:2] not in {"n:", "q:"} or "&" in form or value.amount is None:
                continue
            number, _, base = form[2:].partition("|")
            claimed = float(number)
            nearby = self._nearby_sizes(base, claimed) if claimed else []
            if not nearby:
                continue
            is_exact = not value.approximate and claimed < _MIN_ROUNDED_NUMBER and claimed == int(claimed)
            scale = claimed / abs(value.amount) if value.amount else 1
            about = _APPROXIMATION_IN_LAST_DIGITS * resolution(plain_number(abs(value.amount))) * scale
            step = resolution_as_written(value.text, value.amount) * scale
            step = min(step, 1.0) if is_exact else step
            # The numbers of digits cannot be compared if the unit was converted, as from feet to metres.
            is_other_unit = bool(base) and base not in _DISTINCT_BASES and not (dimension and base[0] in "#~")
            is_converted = is_other_unit and bool(plain_number(value.factor).strip("10."))
            for amount in nearby:
                off = abs(amount - claimed)
                if value.approximate:
                    is_rounding = off <= max(
                        min(step / 2, claimed * MAX_APPROXIMATION), min(about, claimed * MAX_ROUNDING)
                    )
                else:
                    is_rounding = off <= min(step / 2, claimed * MAX_ROUNDING) and (
                        is_converted or resolution(plain_number(amount)) < step
                    )
                if is_rounding:
                    found |= self._amounts[base][amount]
        return found

    def _sources_of_rounded_time(self, value: Value) -> set[int]:
        if value.kind != "time" or not value.approximate:
            return set()
        found: set[int] = set()
        times = (form for form in value.forms if form[:2] == "t:")
        to_the_minute = (form.split(":")[1:] for form in times if form.count(":") == _PARTS_OF_TIME)
        for hour, minute in (map(int, parts) for parts in to_the_minute):
            # The time may be off by half of its precision.
            most = next((step for step in _TIME_STEPS if minute % step == 0), 0) // 2
            for minutes in range(60 * hour + minute - most, 60 * hour + minute + most + 1):
                found |= self._forms.get(f"t:{minutes // 60 % 24:02}:{minutes % 60:02}", set())
        return found

    def _nearby_sizes(self, base: str, claimed: float) -> list[float]:
        sizes = self._sizes.get(base, [])
        first, last = (
            bisect_left(sizes, claimed * (1 - MAX_APPROXIMATION)),
            bisect_right(sizes, claimed * (1 + MAX_APPROXIMATION)),
        )
        nearest = bisect_left(sizes, claimed)
        return sizes[max(first, nearest - _MAX_SIMILAR_SIZES) : min(last, nearest + _MAX_SIMILAR_SIZES)]


class _SearchableText:
    """A text that is searched for values as they are written."""

    __slots__ = ("_ends", "_joins", "source", "text")

    def __init__(self, source: int, text: str, joins: Callable[[str], bool]) -> None:
        self.source, self.text = source, text
        self._joins = joins
        self._ends: array[int] | None = None

    def holds(self, needle: str) -> bool:
        """Whether the text has it as a whole, not as a part of a longer run of characters that belong together.

        A match inside such a run skips the whole run, so that a long run is looked at only once.
        """
        begins, ends, text = self._joins(needle[:1]), self._joins(needle[-1:]), self.text
        place = text.find(needle)
        while place >= 0:
            end = place + len(needle)
            if not (begins and self._joins(text[place - 1 : place])) and not (
                ends and self._joins(text[end : end + 1])
            ):
                return True
            place = text.find(needle, self._end_of_run(place) if begins else place + 1)
        return False

    def _end_of_run(self, place: int) -> int:
        if self._ends is None:
            self._ends = array("I", range(1, len(self.text) + 1))
            for at in range(len(self.text) - 2, -1, -1):
                if self._joins(self.text[at]) and self._joins(self.text[at + 1]):
                    self._ends[at] = self._ends[at + 1]
        return self._ends[place]


def _day_elsewhere(day: date, hour: int) -> list[date]:
    # The range is from California to the east of Australia.
    if hour < _EVENING_WEST:
        return [day - timedelta(days=1)]
    return [day + timedelta(days=1)] if hour >= _MORNING_EAST else []


def is_of_word(sign: str) -> bool:
    """Whether a character forms one word with its neighbours of the same kind; Chinese and Japanese ones do not."""
    return sign.isalnum() and not "\u3040" <= sign <= "\u9fff"
