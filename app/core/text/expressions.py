"""Calculations that a text writes out: "9 left (12 - 3)", "690 : 31 × 2 = 44.52".

The numbers of one stand beside each other, with nothing but an operator, a unit and parentheses between two.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise, starmap
from typing import Final

from app.core.text.operands import quantities
from app.core.text.patterns import compiled
from app.core.text.plain_text import PlainText
from app.core.text.reader import scanned

_MOST_NUMBERS: Final = 64
"""Of one text that are looked at."""
_BETWEEN: Final = compiled(
    r"\.? ?(?:[^\W\d]{1,12}\.?)? ?(?P<closed>\)?) ?"
    r"(?P<sign>[+*/×·⋅∙÷]|(?<= )[xх:-](?= )|(?<=\))-|-(?=\())"
    r" ?(?P<opened>\(?) ?(?:[^\W\d]{1,3}\.?)? ?"
)
"""A unit that is no known one, the operator, and a currency before its amount."""
_TIGHT_MINUS: Final = compiled(r"[^\W\d]{0,12}-")
_MINUS: Final = "−"
_SIGNS: Final = {"x": "*", "х": "*", "×": "*", "·": "*", "⋅": "*", "∙": "*", "÷": "/", ":": "/"}
_RANKS: Final = {"(": 0, "+": 1, "-": 1, "*": 2, "/": 2}


@dataclass(frozen=True, slots=True)
class _Number:
    amount: float
    start: int
    end: int


def written_results(text: str, *, without: Iterable[tuple[int, int]] = ()) -> tuple[float, ...]:
    """What the calculations come to that a text writes out.

    Args:
        text: Of any length.
        without: Stretches of the text, as start and end: a calculation with a number that begins there is none.
    """
    plain, _ = scanned(text)
    left_out = set(chain.from_iterable(starmap(range, without)))
    numbers = [
        _Number(one.amount / 100 if one.unit == "%" else one.amount, start, end)
        for one, start, end in quantities(text, _MOST_NUMBERS)
    ]
    found = []
    for amounts, signs in _runs(text, plain, numbers, left_out):
        if (result := _result(amounts, signs)) is not None:
            found.append(result)
    return tuple(dict.fromkeys(found))


def _runs(
    text: str, plain: PlainText, numbers: Sequence[_Number], left_out: set[int]
) -> Iterator[tuple[list[float], list[str]]]:
    """The numbers that follow one another with operators between them, as they are and what stands between each two."""
    amounts: list[float] = []
    signs: list[str] = []
    for one, other in pairwise(numbers):
        is_known = left_out.isdisjoint((plain.original(one.start), plain.original(other.start)))
        between = _operator(text, plain, one.end, other.start) if is_known else ""
        if between:
            amounts = amounts or [one.amount]
            amounts.append(other.amount)
            signs.append(between)
        elif amounts:
            yield amounts, signs
            amounts, signs = [], []
    if amounts:
        yield amounts, signs


def _operator(text: str, plain: PlainText, start: int, end: int) -> str:
    """The operator between two numbers with the parentheses around it; empty if anything else stands there."""
    between = plain.text[start:end]
    if found := _BETWEEN.fullmatch(between):
        return found["closed"] + _SIGNS.get(found["sign"], found["sign"]) + found["opened"]
    if _TIGHT_MINUS.fullmatch(between) and text[plain.original(end - 1)] == _MINUS:
        return "-"
    return ""


def _result(amounts: Sequence[float], signs: Sequence[str]) -> float | None:
    """Dijkstra's shunting yard; a parenthesis without its other one reaches to the end, or from the beginning."""
    values, waiting = [amounts[0]], list[str]()
    try:
        for sign, amount in zip(signs, amounts[1:], strict=True):
            for piece in sign:
                if piece == "(":
                    waiting.append(piece)
                elif piece == ")":
                    _apply(values, waiting, 1)
                    if waiting:
                        waiting.pop()
                else:
                    _apply(values, waiting, _RANKS[piece])
                    waiting.append(piece)
            values.append(amount)
        while waiting:
            _apply(values, waiting, 1)
            if waiting:
                waiting.pop()
    except (ZeroDivisionError, OverflowError):
        return None
    return abs(values[0])


def _apply(values: list[float], waiting: list[str], rank: int) -> None:
    """Calculate what waits and binds at least as close."""
    while waiting and _RANKS[waiting[-1]] >= rank:
        sign, second, first = waiting.pop(), values.pop(), values.pop()
        if sign == "+":
            values.append(first + second)
        elif sign == "-":
            values.append(first - second)
        else:
            values.append(first * second if sign == "*" else first / second)
