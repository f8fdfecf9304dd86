"""The results of scanning a text: tokens, values, and a cursor over both."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Final

from app.core.text.languages.combined_words import words_of
from app.core.text.tables import CUBES, NUMBERS, SQUARES, UNITS

TIGHT: Final = frozenset({"", " ", "-", "  ", " -", "- "})
"""The texts that may stand between a number and its unit."""
LOOSE: Final = frozenset({*TIGHT, ".", ". ", ",", ", ", " (", "/", " /", " - ", " | ", ".-"})
"""The texts that may stand between the parts of a date."""
WEEKDAY: Final = "weekday"
"""The kind of values that are days which a weekday, or a span such as "next week", may mean."""
Unit = tuple[str, float]
"""(the base unit, the factor to it)."""
_TIGHT_UNITS: Final = words_of("values", "tight_units")
_OF: Final = words_of("values", "shared")
_MINUTES: Final = 60
_LITRES: Final = 1_000  # litres in a cubic metre


@dataclass(slots=True)
class Token:
    """One piece of a text.

    ``kind`` says what ``data`` holds: ``w`` (a known word) and ``s`` (a sign): nothing; ``n`` (a number): its readings;
    ``o`` (an ordinal): its number; ``f`` (a fraction): its amount; ``d`` (a date): its possible days; ``t`` (a time):
    hour, minute, second and half of the day; ``weekday`` and ``span`` (Chinese): the step and the weekday or span; or
    the kind of a complete value: its forms.
    """

    kind: str
    text: str
    start: int
    end: int
    data: Any = None


@dataclass(slots=True)
class FoundValue:
    """A value and its place in the text in plain letters."""

    kind: str
    start: int
    end: int
    forms: frozenset[str] = frozenset()
    is_stated: bool = True
    """Whether a statement with it states an exact value; otherwise it is only something that a shown text may mean."""
    is_approximate: bool = False
    readings: list[float] = field(default_factory=list)
    """The numbers that the written digits or words may mean."""
    unit: Unit | None = None
    currency: str = ""
    """The currency of money; empty if its sign does not say which."""
    scale: float = 1.0
    amounts: list[tuple[float, str]] = field(default_factory=list)
    """The possible amounts, each with its base unit; the unit is empty for the number as written."""


@dataclass(slots=True)
class Cursor:
    """The tokens of a text, and the values that were made of them so far.

    ``place`` is the index of a token everywhere here.
    """

    text: str
    cased: str
    tokens: Sequence[Token]
    at: date | None
    all_readings: bool
    """Whether all that the text may mean is wanted, and not only what it states."""
    found: list[FoundValue] = field(default_factory=list)
    dates: list[FoundValue] = field(default_factory=list)
    """Those of ``found`` that are dates."""
    weekdays: dict[int, int] = field(default_factory=dict)
    """The weekdays that are named without a date, by the index of their token."""

    def kind(self, place: int) -> str:
        """The kind of a token; empty beyond the ends."""
        return self.tokens[place].kind if 0 <= place < len(self.tokens) else ""

    def word(self, place: int) -> str:
        """The word or sign at a place; empty for any other token."""
        token = self.tokens[place] if 0 <= place < len(self.tokens) else None
        return token.text if token and token.kind in {"w", "s"} else ""

    def gap(self, place: int) -> str:
        """The text between a token and the one before it; a line break beyond the ends."""
        if not 0 < place < len(self.tokens):
            return "\n"
        return self.text[self.tokens[place - 1].end : self.tokens[place].start]

    def near(self, place: int, gaps: frozenset[str] = TIGHT) -> bool:
        """Whether only one of these gaps separates a token from the one before it."""
        return self.gap(place) in gaps

    def before(self, place: int) -> str:
        """The word directly before a token; empty without one."""
        return self.word(place - 1) if self.near(place) else ""

    def says(self, place: int, *words: str) -> bool:
        """Whether these words stand from this place on, each directly after the one before."""
        return all(self.word(place + number) == word and self.near(place + number) for number, word in enumerate(words))

    def is_capital(self, place: int) -> bool:
        """Whether a token begins with a capital."""
        return self.cased[self.tokens[place].start].isupper()

    def small(self, place: int) -> int:
        """The whole number below sixty at a place, in digits or one word; 0 without one."""
        value: float = 0
        if self.kind(place) == "n":
            value = self.tokens[place].data[0]
        elif self.kind(place) == "w":
            value = 1 if self.word(place) == "ein" else NUMBERS.get(self.word(place), 0)
        return int(value) if value < _MINUTES and value == int(value) else 0

    def unit(self, place: int) -> tuple[Unit | None, int]:
        """The unit at a place ("м", "sq m", "кв. м", "pour cent"), and the place after it."""
        gap = self.gap(place)
        is_elided = gap == "'" and self.word(place - 1) in _OF  # "trois quarts d'heure"
        if gap not in TIGHT and gap != " (" and not is_elided:
            return None, place
        word = self.tokens[place].text
        power = 2 if word in SQUARES else 3 if word in CUBES else 1
        base, factor = UNITS.get(self.word(place + 1), ("", 1.0)) if power > 1 else ("", 1.0)
        if base == "m" and self.near(place + 1, LOOSE):
            return ((f"{base}²", factor**2) if power == 2 else ("l", _LITRES * factor**3)), place + 2  # noqa: PLR2004
        both = f"{word} {self.word(place + 1)}"
        if both in UNITS and self.gap(place + 1) == " ":
            return UNITS[both], place + 2
        if word in UNITS and not (gap and word in _TIGHT_UNITS and self._is_followed_directly(place)):
            return UNITS[word], place + 1
        return None, place

    def _is_followed_directly(self, place: int) -> bool:
        end = self.tokens[place].end
        return self.text[end : end + 2].strip()[:1].isalnum()

    def add(self, kind: str, first: int, after: int, forms: Iterable[str], *, is_stated: bool = True) -> None:
        """Keep a value that reaches from the token ``first`` up to the token before ``after``."""
        start, end = self.tokens[first].start, self.tokens[after - 1].end
        value = FoundValue(kind, start, end, frozenset(forms), is_stated)
        self.found.append(value)
        if kind == "date":
            self.dates.append(value)

    def add_possible(self, place: int, forms: Iterable[str], kind: str = "date") -> None:
        """Keep a value that the text may mean without stating it; only if all readings are wanted."""
        every = frozenset(forms) if self.all_readings else frozenset()
        if every:
            self.add(kind, place, place + 1, every, is_stated=False)
