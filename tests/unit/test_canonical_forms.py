"""One value, many ways of writing it."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.text.canonical.forms import find_values, given_forms
from app.core.text.canonical.numbers import readings
from tests.corpus import agreed, assert_values, assert_verdicts, corpus, holds
from tests.unit.timing import assert_linear

MONDAY = date(2026, 11, 16)


def needs(text: str) -> list[str]:
    """The readings of the only value of a text."""
    (value,) = find_values(text)
    return list(value.needs)


def test_every_way_of_writing_a_value_is_one_form() -> None:
    def forms(text: str) -> set[str]:
        return set(needs(text)) & given_forms(f"We said {text}, I think.")

    assert_values(corpus("value_forms"), forms, agrees=holds)


def test_two_ways_of_writing_a_value_share_a_form_and_different_values_share_none() -> None:
    def share(text: dict[str, str]) -> bool:
        one, other = text["one"], text["other"]
        return agreed(
            bool(set(needs(one)) & set(needs(other))),
            bool(set(needs(other)) & given_forms(one)),
            bool(set(needs(one)) & given_forms(other)),
        )

    assert_verdicts(corpus("value_pairs"), share)


def test_relative_dates_are_resolved_from_the_day_of_the_message() -> None:
    def days(said: str) -> list[str]:
        forms = given_forms(f"Well, {said}!", MONDAY)
        return sorted(form[2:] for form in forms if form.startswith("d:2") and form.count("-") == 2)

    assert_values(corpus("relative_dates"), days)


def test_months_and_years_are_resolved_too() -> None:
    assert_values(corpus("relative_periods"), lambda said: given_forms(said, MONDAY), agrees=holds)


def test_without_the_day_of_the_message_nothing_relative_is_known() -> None:
    assert not given_forms("tomorrow or next Friday")


def test_a_range_gives_and_needs_both_ends() -> None:
    assert [value.needs for value in find_values("12-15 June")] == [("d:--06-12",), ("d:--06-15",)]
    assert [value.needs for value in find_values("10–20 km")] == [("n:10000|m",), ("n:20000|m",)]


def test_an_amount_that_looks_like_a_date_is_an_amount() -> None:
    assert [value.kind for value in find_values("12.10 euros, €11.12, 12.10.2026, 3.5 km")] == [
        "money", "money", "date", "number",
    ]  # fmt: skip


def test_digits_inside_codes_are_no_numbers() -> None:
    assert find_values("JD0146 and v2 and a1b2") == []


def test_separators_are_read_as_they_can_be_meant() -> None:
    assert_values(corpus("separators"), readings)


@given(st.integers(0, 999_999_999))
def test_a_number_is_read_however_its_groups_are_set(number: int) -> None:
    for way in (f"{number}", f"{number:,}", f"{number:,}".replace(",", "\u00a0")):
        assert f"n:{number}" in given_forms(f"say {way} then")


@given(st.dates(date(1950, 1, 1), date(2099, 12, 31)))
def test_a_day_is_one_form_in_every_language(day: date) -> None:
    russian = "января февраля марта апреля мая июня июля августа сентября октября ноября декабря".split()  # noqa: SIM905
    for way in (
        day.isoformat(),
        f"{day:%d.%m.%Y}",
        f"{day.day} {day:%B} {day.year}",
        f"{day:%B} {day.day}, {day.year}",
        f"{day.day} {russian[day.month - 1]} {day.year}",
        f"{day.year}年{day.month}月{day.day}日",
    ):
        assert needs(way) == [f"d:{day.isoformat()}"], way


@given(st.text(max_size=300))
def test_any_text_can_be_read(text: str) -> None:
    for value in find_values(text):
        assert 0 <= value.start < value.end <= len(text)
    given_forms(text, MONDAY)


@pytest.mark.long
def test_hostile_text_is_read_in_linear_time() -> None:
    for piece in ("1 ", "1,", "12-", "one ", "five and ", "двести ", "十", "next ", "12:0", "$", "3.", "in a "):
        assert_linear(lambda text: given_forms(text, MONDAY), piece * 4_000)
