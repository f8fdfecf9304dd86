"""One value, many ways of writing it."""

from __future__ import annotations

import time
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.canonical.numbers import readings
from app.domain.canonical_forms import find_values, given_forms

MONDAY = date(2026, 11, 16)


def needs(text: str) -> list[str]:
    """The readings of the only value of a text."""
    (value,) = find_values(text)
    return list(value.needs)


@pytest.mark.parametrize(
    ("form", "ways"),
    [
        ("n:5000", ["5k", "5 000", "5,000", "5000", "five thousand", "пять тысяч", "5 тыс.", "五千", "5\u00a0000"]),
        ("n:1200000", ["1.2 million", "1,2 млн", "1 200 000", "one million two hundred thousand", "120万"]),
        ("m:1200|USD", ["$1.2k", "1 200 USD", "1200 долларов", "USD 1,200", "twelve hundred dollars", "1200美元"]),
        ("m:900|CHF", ["CHF 900", "900 francs", "nine hundred Swiss francs", "900 франков"]),
        ("m:84.9|EUR", ["84,90 €", "€84.90", "84.90 EUR", "84.9 евро"]),
        ("m:5000|CNY", ["5000元", "五千元", "5000块", "¥5000", "5 000 юаней"]),
        ("n:3|%", ["3 %", "3%", "three percent", "трёх процентах", "百分之三"]),
        ("n:5400|s", ["90 minutes", "1.5 hours", "90 мин", "полтора часа", "90分钟"]),
        ("n:1209600|s", ["two weeks", "14 days", "две недели", "14 дней", "两周"]),
        ("n:2500|m", ["2.5 km", "2,5 км", "2500 meters"]),
        ("n:40|m²", ["40 m²", "40 square metres", "40 sq. m", "40 кв. м", "40 квадратных метров", "40平方米"]),
        ("d:2025-03-12", ["2025-03-12", "12 March 2025", "March 12th, 2025", "12.03.2025", "12 марта 2025",
                          "2025年3月12日",
                          "12th of March 2025", "2025/03/12", "12. März 2025"]),
        ("d:--03-12", ["12 March", "March 12th", "12 марта", "12-го марта", "3月12日", "三月十二日", "12.03"]),
        ("d:2027-06", ["June 2027", "июнь 2027", "2027-06", "2027年6月"]),
        ("t:17:00", ["5 pm", "17:00", "5:00 p.m.", "5 вечера", "下午5点", "下午五点", "5 PM"]),
        ("t:12:00", ["noon", "12 pm", "полдень", "12:00"]),
    ],
)  # fmt: skip
def test_every_way_of_writing_a_value_is_one_form(form: str, ways: list[str]) -> None:
    for way in ways:
        assert form in needs(way), way
        assert form in given_forms(f"We said {way}, I think."), way


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("5k", "5"),
        ("900 euros", "900 dollars"),
        ("12 March 2025", "13 March 2025"),
        ("12.03.2025", "12.04.2025"),
        ("5 pm", "5 am"),
        ("17:00", "18:00"),
        ("5 kg", "5 lb"),
        ("40 m²", "40 km"),
        ("40 square metres", "40 square feet"),
        ("5 GB", "5 MB"),
        ("3 %", "3 km"),
        ("two weeks", "two months"),
        ("1.5", "15"),
        ("пять тысяч", "пятьсот"),
        ("五千", "五百"),
        ("June 2027", "July 2027"),
    ],
)
def test_different_values_share_no_form(one: str, other: str) -> None:
    assert not set(needs(one)) & set(needs(other))
    assert not set(needs(other)) & given_forms(one)


@pytest.mark.parametrize(
    ("said", "days"),
    [
        ("today", ["2026-11-16"]),
        ("tomorrow", ["2026-11-17"]),
        ("yesterday", ["2026-11-15"]),
        ("the day after tomorrow", ["2026-11-18"]),
        ("next Friday", ["2026-11-20", "2026-11-27"]),
        ("on Friday", ["2026-11-13", "2026-11-20"]),
        ("last Friday", ["2026-11-06", "2026-11-13"]),
        ("in two weeks", ["2026-11-30"]),
        ("three days ago", ["2026-11-13"]),
        ("in a month", ["2026-12-16"]),
        ("вчера", ["2026-11-15"]),
        ("послезавтра", ["2026-11-18"]),
        ("через неделю", ["2026-11-23"]),
        ("через две недели", ["2026-11-30"]),
        ("два дня назад", ["2026-11-14"]),
        ("в следующую пятницу", ["2026-11-20", "2026-11-27"]),
        ("明天", ["2026-11-17"]),
        ("三天后", ["2026-11-19"]),
        ("两周后", ["2026-11-30"]),
        ("下周五", ["2026-11-20", "2026-11-27"]),
        ("end of the month", ["2026-11-30"]),
        ("on the 20th", ["2026-10-20", "2026-11-20"]),
        ("12 March", ["2026-03-12", "2027-03-12"]),
    ],
)
def test_relative_dates_are_resolved_from_the_day_of_the_message(said: str, days: list[str]) -> None:
    found = sorted(
        form[2:] for form in given_forms(f"Well, {said}!", MONDAY) if form.startswith("d:2") and form.count("-") == 2
    )
    assert found == days


@pytest.mark.parametrize(
    ("said", "form"),
    [("next month", "d:2026-12"), ("last year", "n:2025"), ("в прошлом году", "n:2025"), ("明年", "n:2027")],
)
def test_months_and_years_are_resolved_too(said: str, form: str) -> None:
    assert form in given_forms(said, MONDAY)


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


@pytest.mark.parametrize(
    ("amount", "meant"),
    [("5,000", [5000]), ("1.150", [1150, 1.15]), ("84,90", [84.9]), ("1,234,567.89", [1234567.89]), ("0.500", [0.5])],
)
def test_separators_are_read_as_they_can_be_meant(amount: str, meant: list[float]) -> None:
    assert readings(amount) == meant


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


def test_hostile_text_is_read_in_linear_time() -> None:
    for piece in ("1 ", "1,", "12-", "one ", "five and ", "двести ", "十", "next ", "12:0", "$", "3.", "in a "):
        times = []
        for count in (2_000, 8_000):
            started = time.perf_counter()
            given_forms(piece * count, MONDAY)
            times.append(time.perf_counter() - started)
        assert times[1] < 0.2 + 12 * times[0], piece
