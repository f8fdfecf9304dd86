"""Calculations that a statement writes out: "16.7 % too many (400 / 2,400)", "9 left (12 - 3)".

A written calculation is computed as it stands. Its result holds if all its numbers were shown, however many there are.
A number that was not shown proves nothing. If the calculation written for a value has another result, no other
calculation is tried for the value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, product
from typing import Final

from app.core.text.languages.combined_words import alternatives, words_of
from app.core.text.memo import memoized
from app.core.text.numerals import plain_number, resolution, resolution_as_written
from app.core.text.patterns import capped
from app.core.text.scan_results import Token
from app.core.text.value_reader import plain_text_and_tokens
from app.core.text.values import MAX_APPROXIMATION, Value

_MAX_CHARACTERS_BETWEEN: Final = 30
_UNIT_WORD: Final = r"\s?(?:[^\W\d_]{1,15}|[€$£¥₽])?\.?"
_MULTIPLICATION_LETTERS: Final = "".join(sorted(word for word in words_of("values", "between_sides") if len(word) == 1))
"""Signs of a product that are one letter of another script. Words such as "on" and "by" are too common."""
_OPERATOR: Final = capped(
    rf"(?:{_UNIT_WORD})(?P<percent>\s?%)?\s?(?P<closed>\)?)\s?"
    rf"(?:(?P<times>[*×·x{_MULTIPLICATION_LETTERS}])|(?P<share>{alternatives('values', 'out_of')})"
    r"|(?P<sign>[-+/÷]|(?<= ):(?= )))"
    r"\s?(?P<opened>\(?)\s?[€$£¥]?$",
    _MAX_CHARACTERS_BETWEEN,
)
_OPENING_BRACKET: Final = capped(r"[^\d()\[\]]{0,24}\(\s?[€$£¥]?$", _MAX_CHARACTERS_BETWEEN)
_CLOSING_BRACKET: Final = capped(rf"{_UNIT_WORD}\s?\)", _MAX_CHARACTERS_BETWEEN)
_EQUALS: Final = capped(rf"{_UNIT_WORD}\s?=\s?[€$£¥]?", _MAX_CHARACTERS_BETWEEN)
_DIVISION_SIGNS: Final = frozenset("/÷:")
_RANKS: Final = {"(": 0, ")": 1, "+": 1, "-": 1, "*": 2, "/": 2, "%": 2}
_SMALL_NUMBER: Final = 10
"""A smaller whole number may be an operand without having been shown."""
_USUAL_OPERANDS: Final = frozenset({12.0, 24.0, 30.0, 31.0, 52.0, 60.0, 100.0, 365.0, 1_000.0})
_WHOLE_PERCENT: Final = 100
_UNIT_FACTORS: Final = (1_000.0, 100.0, 60.0)
_MAX_TERMS: Final = 12
_MAX_READINGS: Final = 16
_MAX_CALCULATIONS: Final = 40
_ROUNDING_ERROR: Final = 1e-6


@dataclass(frozen=True, slots=True)
class _Term:
    start: int
    end: int
    readings: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class WrittenCalculation:
    """One calculation as it is written out; its places are those in the original text."""

    terms: tuple[_Term, ...]
    signs: tuple[str, ...]
    joined_by: str
    """How it is joined to its value: ``brackets`` around it, or an equals sign (``equals``)."""
    start: int
    end: int

    def _possible_results(self, is_shown_number: Callable[[float], bool] | None) -> Iterator[float]:
        for numbers in islice(product(*(term.readings for term in self.terms)), _MAX_READINGS):
            result = _result_of(numbers, self.signs)
            if result is not None and (
                is_shown_number is None or all(_is_known_operand(one, is_shown_number) for one in numbers)
            ):
                yield result

    def results_in(self, value: Value, is_shown_number: Callable[[float], bool] | None = None) -> bool:
        """Whether its result, rounded like the value, is the value.

        With ``is_shown_number``, all its numbers must have been shown.
        """
        amount = abs(value.amount or 0.0)
        if value.kind not in {"number", "money"} or not amount:
            return False
        written_step = min(resolution_as_written(value.text, amount), 1.0)
        tolerance = min(resolution(plain_number(amount)) / 2, amount * MAX_APPROXIMATION) if value.approximate else 0.0
        tolerance = max(tolerance, written_step / 2) + _ROUNDING_ERROR * amount
        return any(
            abs(abs(one) - amount) <= tolerance
            for result in self._possible_results(is_shown_number)
            for one in _in_other_units(result, value)
        )

    def belongs_to(self, value: Value) -> bool:
        """Whether it is in brackets after the value, or before the value with an equals sign between."""
        return (self.joined_by == "brackets" and value.end <= self.start) or (
            self.joined_by == "equals" and value.start >= self.end
        )


@dataclass(frozen=True, slots=True)
class WrittenCalculations:
    """All calculations that a statement writes out."""

    calculations: tuple[WrittenCalculation, ...] = ()

    def unshown_operands(self, is_shown_number: Callable[[float], bool]) -> list[tuple[int, int]]:
        """The places of their numbers that prove nothing: neither shown, nor small, nor usual (12, 60, 1,000)."""
        return [
            (term.start, term.end)
            for one in self.calculations
            for term in one.terms
            if not any(_is_known_operand(number, is_shown_number) for number in term.readings)
        ]

    def proves(self, value: Value, is_shown_number: Callable[[float], bool]) -> bool:
        """Whether one gives the value from shown numbers, or has it as a term that a shown percentage leaves.

        Where 20 % was shown, the term 0.8 is proved.
        """
        amount = value.amount or 0.0
        is_term = any(value.start == term.start for one in self.calculations for term in one.terms)
        return any(one.results_in(value, is_shown_number) for one in self.calculations) or (
            is_term and _is_complement_of_percentage(amount, is_shown_number)
        )

    def denies(self, text: str, value: Value) -> bool:
        """Whether the value's own calculation, the one directly next to it, has another result."""
        return any(
            one.belongs_to(value) and _is_adjacent(text, one, value) and not one.results_in(value)
            for one in self.calculations
        )


def _in_other_units(result: float, value: Value) -> Iterator[float]:
    yield result
    if value.base == "%":
        yield from (result * _WHOLE_PERCENT, (result - 1) * _WHOLE_PERCENT)
    elif value.base or value.kind == "money":
        yield from (changed for factor in _UNIT_FACTORS for changed in (result * factor, result / factor))


def _is_known_operand(number: float, is_shown_number: Callable[[float], bool]) -> bool:
    is_small = number == int(number) and number < _SMALL_NUMBER
    return (
        is_small
        or number in _USUAL_OPERANDS
        or _is_complement_of_percentage(number, is_shown_number)
        or is_shown_number(number)
    )


def _is_complement_of_percentage(number: float, is_shown_number: Callable[[float], bool]) -> bool:
    return 0 < number < 1 and is_shown_number(round(_WHOLE_PERCENT * (1 - number), 6))


def _is_adjacent(text: str, one: WrittenCalculation, value: Value) -> bool:
    if value.end <= one.start:
        return (
            _OPENING_BRACKET.match(text[value.end : one.start][:_MAX_CHARACTERS_BETWEEN].replace("（", "(")) is not None
        )
    found = _EQUALS.match(text[one.end : value.start][:_MAX_CHARACTERS_BETWEEN])
    return found is not None and found.end() == value.start - one.end


@memoized()
def written_calculations(text: str) -> WrittenCalculations:
    """Find the calculations of a statement: two and more numbers, with an operator between each two."""
    folded, tokens = plain_text_and_tokens(text)
    found: list[WrittenCalculation] = []
    for terms, signs in _runs(folded.text, tokens):
        before, after = folded.text[: terms[0].start], folded.text[terms[-1].end :]
        joined_by = ""
        if before.rstrip("€$£¥ ").endswith("(") and _CLOSING_BRACKET.match(after[:_MAX_CHARACTERS_BETWEEN]):
            joined_by = "brackets"
        elif _EQUALS.match(after[:_MAX_CHARACTERS_BETWEEN]):
            joined_by = "equals"
        placed = tuple(
            _Term(folded.original(one.start), folded.original(one.end - 1) + 1, one.readings) for one in terms
        )
        found.append(WrittenCalculation(placed, signs, joined_by, placed[0].start, placed[-1].end))
        if len(found) == _MAX_CALCULATIONS:
            break
    return WrittenCalculations(tuple(found))


def _runs(text: str, tokens: Sequence[Token]) -> Iterator[tuple[tuple[_Term, ...], tuple[str, ...]]]:
    terms: list[_Term] = []
    signs: list[str] = []
    for one in _terms(tokens):
        sign = _sign(text, terms[-1].end, one.start) if terms and len(terms) < _MAX_TERMS else ""
        if sign:
            terms.append(one)
            signs.append(sign)
            continue
        if signs:
            yield tuple(terms), tuple(signs)
        terms, signs = [one], []
    if signs:
        yield tuple(terms), tuple(signs)


def _terms(tokens: Sequence[Token]) -> Iterator[_Term]:
    """The numbers in digits, those of a fraction apart."""
    for token in tokens:
        if token.kind == "n" and token.text[:1].isdecimal():
            first, *others = token.data
            yield _Term(token.start, token.end, (first, *(one for one in others if one != int(one))))
        elif token.kind == "f" and token.text.count("/") == 1:
            first, second = token.text.split("/")
            if first.isdecimal() and second.isdecimal():
                middle = token.start + len(first)
                yield _Term(token.start, middle, (float(first),))
                yield _Term(middle + 1, token.end, (float(second),))


def _sign(text: str, end: int, start: int) -> str:
    between = text[end:start]
    if not 0 < len(between) <= _MAX_CHARACTERS_BETWEEN or not (found := _OPERATOR.match(between)):
        return ""
    is_times = bool(found["times"])
    if found["percent"]:  # "20 % of 195"
        sign = "%" if found["share"] or is_times else ""
    else:
        sign = "*" if is_times else "/" if found["share"] or found["sign"] in _DIVISION_SIGNS else found["sign"]
    return sign and found["closed"] + sign + found["opened"]


def _result_of(numbers: Sequence[float], signs: Sequence[str]) -> float | None:
    """Products and quotients before sums and differences, what stands in brackets before both.

    A bracket without its other one reaches to the end, or from the beginning. By Dijkstra's shunting yard.
    """
    values, waiting = [numbers[0]], list[str]()
    try:
        for pieces, number in zip(signs, numbers[1:], strict=True):
            for piece in pieces:
                if piece == "(":
                    waiting.append(piece)
                    continue
                _apply_waiting_operators(values, waiting, _RANKS[piece])
                if piece != ")":
                    waiting.append(piece)
                elif waiting:
                    waiting.pop()
            values.append(number)
        while waiting:
            _apply_waiting_operators(values, waiting, _RANKS[")"])
            del waiting[-1:]
    except ZeroDivisionError:
        return None
    return values[0]


def _apply_waiting_operators(values: list[float], waiting: list[str], rank: int) -> None:
    while waiting and _RANKS[waiting[-1]] >= rank:
        sign, second, first = waiting.pop(), values.pop(), values.pop()
        if sign in "+-":
            values.append(first + second if sign == "+" else first - second)
        elif sign == "/":
            values.append(first / second)
        else:
            values.append(first * second / (_WHOLE_PERCENT if sign == "%" else 1))
