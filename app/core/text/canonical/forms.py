"""Numbers, money, dates and times of a text in canonical form: what it states, and what it lets others say."""

from __future__ import annotations

from datetime import date

from app.core.text.canonical.dates import day_forms, find_dates
from app.core.text.canonical.numbers import find_numbers, find_shares, find_single_units
from app.core.text.canonical.relative import find_relative
from app.core.text.canonical.times import find_loose_times, find_times
from app.core.text.canonical.values import Value


def find_values(text: str, at: date | None = None) -> list[Value]:
    """What a text states, in order, no two in the same place.

    A date goes before a time before a number, but an amount with its unit before the date that its digits look like.
    """
    small = _small(text)
    taken = bytearray(len(small))
    found: list[Value] = []
    numbers = list(find_numbers(small))
    starts = {value.start: value.end for value in numbers if value.unit}
    ends = {value.end: value.start for value in numbers if value.unit}
    dates = (
        value
        for value in find_dates(small, at)
        if starts.get(value.start, 0) <= value.end and ends.get(value.end, value.start) >= value.start
    )
    for value in (*dates, *find_times(small), *numbers):
        last = found[-1] if found else None
        is_range = last is not None and (last.kind, last.start, last.end) == (value.kind, value.start, value.end)
        if value.needs and (is_range or not any(taken[value.start : value.end])):
            taken[value.start : value.end] = b"\1" * (value.end - value.start)
            found.append(value)
    return sorted(found, key=lambda value: value.start)


def given_forms(text: str, at: date | None = None) -> set[str]:
    """Every form that a text gives; ``at``: the day of its message, for relative dates."""
    small = _small(text)
    forms: set[str] = set()
    scanners = (find_dates(small, at), find_times(small), find_numbers(small), find_single_units(small))
    for values in scanners:
        for value in values:
            forms.update(value.gives)
    forms.update(find_shares(small))
    for loose in find_loose_times(small):
        forms.update(loose)
    for relative in find_relative(small, at) if at is not None else ():
        forms.update(relative)
    return forms


def forms_of_day(day: date) -> tuple[str, ...]:
    """What the day of a message lets others say."""
    return day_forms(day)


def _small(text: str) -> str:
    """In small letters, every sign in its place."""
    small = text.lower()
    return small if len(small) == len(text) else "".join(sign.lower()[:1] for sign in text)
