"""No answer of a model and no span makes the gate slow: its time grows no faster than both together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import process_time
from typing import Final

import pytest

from app.core.model.conversation import Message
from app.core.text.memo import forget
from app.core.validation import cutting, dates, exact_checks
from app.core.validation.gate import judge
from tests.profiles import is_long
from tests.unit.talk import answer, fact, message, proposal, request
from tests.unit.timing import assert_linear_in

_END: Final = " We met Clara in Graz about the order, and she was with us for the whole of it."
_HELD: Final = fact("We met Clara in Graz about the order and she said that the room is open.", 1)
_PIECE: Final = 200  # characters of each message
Shape = Callable[[int], tuple[str, str]]


def told(unit: str, count: int) -> str:
    return "".join(unit.format(n=1_000 + number) for number in range(count))


def of_narrative(unit: str, begin: str = "") -> Shape:
    return lambda count: (answer(begin + told(unit, count) + _END, [_HELD] * 12), "")


def items(unit: str, said: str) -> Shape:
    return lambda count: (
        answer("We met Clara.", [fact(unit.format(n=1_000 + n), *range(1, 6)) for n in range(count)]),
        told(said, count),
    )


SHAPES: Final[dict[str, tuple[Shape, int]]] = {
    "parentheses of one sentence": (of_narrative("({n}7 euros) ", "We paid Clara in Graz "), 250),
    "sentences of a narrative": (of_narrative("She was there and saw it all. She paid {n}7 euros. "), 250),
    "calculations from messages": (
        items("She paid {n}7 euros less than 12 euros", "Clara paid {n}9 euros there. "),
        150,
    ),
    "a value that every message holds": (items("Clara has " + "port 8006, " * 30, "port 8006, " * 20), 40),
    "orders that nobody gave": (items("Always send the bill {n} to Bob.", "Never write to Dana about {n}. "), 150),
    "sentences about yesterday": (
        lambda count: (
            answer(told("We met Clara there yesterday. ", count) + _END, [_HELD] * 12),
            told("I met Bob yesterday. ", count),
        ),
        150,
    ),
    "hints from messages": (items("Clara paid {n}7 euros there", "She paid {n}8 euros, {n} km there. "), 150),
    "values of one sentence": (of_narrative("{n}7 euros, ", "We paid Clara in Graz "), 500),
    "words for yesterday": (of_narrative('yesterday, "she" came on 3 May {n}, ', "We met Clara "), 150),
}


def work(shape: Shape, count: int) -> Callable[[], object]:
    text, said = shape(count)
    span: Sequence[Message] = [message(1, "We met Clara in Graz about the order. The room is open.")]
    span = [*span, *(message(2 + n, said[n * _PIECE :][:_PIECE]) for n in range(-(-len(said) // _PIECE)))]
    asked = request(span)
    return lambda: judge(proposal(text), asked)


@pytest.mark.daily(6)  # the others take the same paths as one of these
@pytest.mark.parametrize("name", SHAPES)
def test_a_hostile_answer_takes_linear_time(name: str) -> None:
    shape, count = SHAPES[name]
    assert_linear_in(lambda size: work(shape, size), (8 if is_long() else 3) * count)


def seconds(shape: Shape, count: int) -> float:
    judging = work(shape, count)
    forget()
    began = process_time()
    judging()
    return process_time() - began


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "module", "cap"),
    [
        ("parentheses of one sentence", cutting, "_MAX_IN_PARENTHESES"),
        ("calculations from messages", exact_checks, "_MAX_CALCULATED_OF_ANSWER"),
        ("sentences about yesterday", dates, "_MAX_SENTENCES"),
    ],
)
def test_control_without_a_cap_it_takes_longer(
    name: str, module: object, cap: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shape, count = SHAPES[name]
    held = min(seconds(shape, 4 * count) for _ in range(3))  # other processes can only make it longer
    monkeypatch.setattr(module, cap, 1_000_000)
    assert seconds(shape, 4 * count) > 2 * held
