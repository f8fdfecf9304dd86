"""What a summarizer is told of a system prompt: its terms and its ways of working, and nothing else."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from app.core.summarizer.system_context import system_context
from app.core.text.token_counts import estimate_text
from tests.unit.timing import assert_linear_in

ENGLISH = """\
You are the friendly helper of Northwind.

## Terms
- Parcel: a shipment of at most 30 kg.
- A "slot" is also called a window.
Speak warmly.

## Work
1. Ask for the parcel number.
2. Then check the slot.
If the customer is angry, escalate to a human.
You love the sea."""

RUSSIAN = """\
Ты вежливый помощник.
Заявка — это тикет; её также называют обращением.
Сначала уточни номер заявки, затем проверь статус.
Отвечай тепло."""


def test_terms_and_steps_are_taken_and_manners_are_not() -> None:
    assert system_context(ENGLISH, max_tokens=500).splitlines() == [
        "- Parcel: a shipment of at most 30 kg.",
        '- A "slot" is also called a window.',
        "1. Ask for the parcel number.",
        "2. Then check the slot.",
        "If the customer is angry, escalate to a human.",
    ]


def test_it_reads_russian() -> None:
    assert system_context(RUSSIAN, max_tokens=500).splitlines() == [
        "Заявка — это тикет; её также называют обращением.",
        "Сначала уточни номер заявки, затем проверь статус.",
    ]


def test_terms_come_first_where_there_is_little_room() -> None:
    assert system_context(ENGLISH, max_tokens=30).splitlines() == [
        "- Parcel: a shipment of at most 30 kg.",
        '- A "slot" is also called a window.',
    ]


@given(st.text(max_size=2_000), st.integers(0, 300))
def test_it_quotes_and_stays_within_its_room(prompt: str, room: int) -> None:
    found = system_context(prompt, max_tokens=room)
    assert estimate_text(found) <= room + 1
    assert all(line in prompt for line in found.splitlines())


def test_a_hostile_prompt_takes_linear_time() -> None:
    def reading(size: int) -> Callable[[], object]:
        return lambda: system_context("a " * size + ":" * size + "is " * size, max_tokens=500)

    assert_linear_in(reading, 80_000)
