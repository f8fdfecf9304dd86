"""Exact values: what a statement claims, whether the shown texts state it, and hostile texts."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Any, Final
from unicodedata import normalize

import pytest
from babel.numbers import format_decimal
from hypothesis import given
from hypothesis import strategies as st

from app.core.text import moments, plain_text, scanner
from app.core.text.days import forms_in_month_of_last_date
from app.core.text.memo import forget
from app.core.text.plain_text import plain_text_of
from app.core.text.scan_results import Cursor, FoundValue, Token
from app.core.text.values import ValueIndex, _SearchableText, values
from bench.trust.formatted import failing
from tests.corpus import assert_values, assert_verdicts, corpus
from tests.rows import each
from tests.unit.timing import assert_linear, often


def shown(*texts: str, at: datetime | None = None) -> ValueIndex:
    given_texts = ValueIndex()
    for number, text in enumerate(texts, start=1):
        given_texts.add(number, text, at)
    return given_texts


def is_held(row: Any) -> bool:
    at = datetime.fromisoformat(row["at"]) if "at" in row else None
    claimed = values(row["claim"], at)
    assert claimed, "the row claims no value"
    return all(shown(row["given"], at=at).holds(value) for value in claimed)


def holds(claim: str, text: str) -> bool:
    return is_held({"claim": claim, "given": text})


def test_what_a_statement_claims() -> None:
    assert_values(corpus("core_claims"), lambda text: [[value.kind, value.text] for value in values(text)])


def test_what_a_text_holds() -> None:
    assert_verdicts(corpus("core_found"), is_held)


@pytest.mark.parametrize(
    ("kind", "locale"),
    [("decimals", "en_IN"), ("money", "hi_IN"), ("money", "es_MX"), ("days", "ar"), ("days", "sk"), ("days", "hu")],
)
def test_values_are_found_as_the_cldr_formats_them(kind: str, locale: str) -> None:
    assert failing(kind, locale) == (0, 0)


@pytest.mark.parametrize(
    ("claim", "text"),
    [
        ("Rent: ₹100,000", "The rent is ₹1,00,000."),
        ("Rooms 12, 34 and 567", "Please clean rooms 12,34,567."),
        ("On 22 avril 2026", "On se voit le 22 avr. 2026 chez ma mère."),
        ("El 30 de enero de 2027", "Nos vemos el 30 ene 2027 con mi hermana."),
        ("Am 12. März 2026", normalize("NFD", "Wir treffen uns am 12. März 2026.")),
        ("See Rechnung_März.pdf", normalize("NFD", "I attached Rechnung_März.pdf for you.")),
        ("4,500 euros", "We paid 4\u200b500 euros."),
        ("500 dollars", "The fee is USD500."),
        ("navetta alle 6.45 da Abano", "La navetta parte alle 6:45."),
        ("bus at 8.30 from Leeds", "The bus leaves at 8:30."),
        ("3.500.000.000 đồng", "Căn nhà giá 3,5 tỷ."),
        ("₹3,75,000", "our FD of 3.75 lakhs"),
        ("₹1,12,00,000", "last year 1.12 cr"),
        ("6.750 TL, 0532 418 77 09", "(Hakan usta, 0532 418 77 09) 6.750 TL"),
        ("3.300 TL", "(0212 418 77 09) 3.300 TL"),
        ("+44 20 7946 0958", "+44 (0)20 7946 0958"),
    ],
)
def test_a_value_is_found_however_it_is_typed(claim: str, text: str) -> None:
    assert holds(claim, text)


@pytest.mark.parametrize(
    ("claim", "text"),
    [
        ("Rent: ₹1", "The rent is ₹1,00,000."),
        ("On 22 mai 2026", "On se voit le 22 avr. 2026 chez ma mère."),
        ("On 3 February 2027", "Sections 31. 2. 2027 of the list."),
        ("navetta alle 6.45 da Abano", "La navetta parte alle 7:45."),
        ("weight 8.30 kg", "The bus leaves at 8:30."),
        ("₹3,85,000", "our FD of 3.75 lakhs"),
        ("3.300 TL, 0212 418 77 09", "0212 418 77 09"),
    ],
)
def test_no_other_value_is_found_for_it(claim: str, text: str) -> None:
    assert not holds(claim, text)


def test_a_scale_of_a_language_whose_numbers_are_not_read_in_words_needs_digits() -> None:
    assert values("بميزانية ألف وخمسمئة ريال") == ()
    assert [value.amount for value in values("بميزانية 3 آلاف ريال")] == [3_000]


def test_a_day_may_be_in_one_word_with_its_preposition() -> None:
    texts = shown("הכניסה ב-19 לחודש", at=datetime(2026, 6, 7, tzinfo=UTC))
    assert texts.holds(*values("ב-19 ביוני 2026"))
    assert not texts.holds(*values("ב-21 ביוני 2026"))


def test_the_sources_of_a_value() -> None:
    texts = shown("18k at most", "by Friday", "18,000 euros", at=datetime(2026, 8, 28, tzinfo=UTC))
    (money,) = values("€18,000")
    assert texts.sources(money) == {1, 3}
    assert not texts.sources(values("€19,000")[0])
    assert texts.sources(values("27 August 2026")[0]) == {1, 2, 3}


def test_several_texts_of_one_source() -> None:
    texts = ValueIndex()
    texts.add(7, "order AB-1234")
    texts.add(7, "for 42 euros")
    assert all(texts.sources(value) == {7} for value in values("AB-1234 costs €42"))


@each(
    ("text", "is_approximate"),
    [
        ("about 250 guests", True), ("some 250 guests", True), ("~250 guests", True), ("250 guests or so", True),
        ("около 250 гостей", True), ("примерно 250 гостей", True), ("约250人", True), ("250人左右", True),
        ("etwa 250 Gäste", True), ("ca. 250 Gäste", True), ("18k", True), ("2 Mio. Euro", True), ("12万元", True),
        ("250 guests", False), ("exactly 18,000", False), ("ровно 250 гостей", False), ("250人", False),
    ],
)  # fmt: skip
def test_a_text_may_say_that_it_rounds(text: str, is_approximate: bool) -> None:  # noqa: FBT001
    (value,) = values(text)
    assert value.approximate is is_approximate


@pytest.mark.parametrize(
    ("told", "said", "is_held"),
    [
        ("around noon", "We left at 12:20.", True),
        ("around noon", "We left at 12:40.", False),
        ("at noon", "We left at 12:20.", False),
        ("about 12:30", "We left at 12:40.", True),
        ("about 12:30", "We left at 12:50.", False),
        ("roughly 12:40", "We left at 12:43.", True),
        ("roughly 12:40", "We left at 12:47.", False),
        ("about 12:41", "We left at 12:42.", False),
        ("около 8 вечера", "Вышли в 19:50.", True),
        ("gegen 20:00 Uhr", "Wir sind um 19:50 los.", True),
    ],
)
def test_a_time_that_is_told_about_is_off_by_half_of_its_steps(told: str, said: str, is_held: bool) -> None:  # noqa: FBT001
    (time,) = values(told)
    assert shown(said).holds(time) is is_held


@pytest.mark.parametrize(
    ("told", "said", "is_held"),
    [
        ("almost a quarter of an hour", "It took 14 minutes.", True),
        ("almost a quarter of an hour", "It took 12 minutes.", False),
        ("a quarter of an hour", "It took 14 minutes.", False),
        ("about half an hour", "It took 28 minutes.", True),
        ("half an hour", "It took 28 minutes.", False),
        ("fast eine halbe Stunde", "Es dauerte 28 Minuten.", True),
        ("около получаса", "Заняло 28 минут.", True),
        ("大约半小时", "花了28分钟", True),
    ],
)
def test_a_share_of_a_unit_that_is_told_about_is_off_by_a_tenth(told: str, said: str, is_held: bool) -> None:  # noqa: FBT001
    (share,) = values(told)
    assert shown(said).holds(share) is is_held


@pytest.mark.parametrize(("text", "told", "other"), [
    ("shutting down at five forty pm", "5:40 p.m.", "5:40 a.m."),
    ("loaded around four thirty", "at 4:30", "at 4:20"),
    ("um sieben dreißig los", "um 7:30 Uhr", "um 7:13 Uhr"),
    ("at twenty two fifteen", "at 22:15", "at 20:15"),
    ("meet at 730pm", "7:30 p.m.", "7:30 a.m."),
    ("free 5-730pm", "until 19:30", "until 7:30 am"),
    ("watch ends 1845 hrs", "at 18:45", "at 18:54"),
])  # fmt: skip
def test_a_time_may_be_told_as_two_numbers(text: str, told: str, other: str) -> None:
    assert [holds(time, text) for time in (told, other)] == [True, False]


@pytest.mark.parametrize(("text", "told", "is_held"), [
    ("four thirty kilo bags", "at 4:30", False),
    ("four three", "at 4:03", False),
    ("1845 of them", "at 18:45", False),
    ("the rent is £650pm", "at 6:50 pm", False),
    ("the rent is £650pm", "£650", True),
    ("the rent is 650pm", "£650", True),
])  # fmt: skip
def test_control_an_amount_is_no_time(text: str, told: str, is_held: bool) -> None:  # noqa: FBT001
    assert holds(told, text) is is_held


@pytest.mark.parametrize(
    ("told", "said", "is_held"),
    [
        ("blood pressure 152/84", "It was 152 over 84.", True),
        ("blood pressure 152/84", "It was 148 over 84.", False),
        ("scored 17/20", "17 из 20 верно", True),
        ("scored 17/20", "85 % were right", True),
        ("scored 17/20", "18 out of 20", False),
    ],
)
def test_a_fraction_of_two_long_numbers_tells_both(told: str, said: str, is_held: bool) -> None:  # noqa: FBT001
    (fraction,) = values(told)
    assert shown(said).holds(fraction) is is_held


@pytest.mark.parametrize("text", ["3/4 of it", "open 24/7", "season 2025/26", "split 60/40", "on 14/15 February"])
def test_no_other_fraction_does(text: str) -> None:
    assert not values(text)


@pytest.mark.parametrize("said", ["at 22:41", "seats 22, 41 and 7", "row 22;41", "22\n41"])
def test_an_identifier_stands_in_no_time_no_list_and_no_two_lines(said: str) -> None:
    (number,) = values("PR #2241")
    assert not shown(said).holds(number)
    assert shown("PR 2241 is open").holds(number)


@pytest.mark.parametrize(
    ("told", "said", "is_held"),
    [
        ("Python 3.10", "Python 3.11", False),
        ("Python 3.1", "Python 3.11", True),
        ("12.50 euros", "12.47 euros", False),
        ("12.5 euros", "12.47 euros", True),
        ("about 12.50 euros", "12.47 euros", True),
        ("69.00 kg", "69.4 kg", False),
        ("69 kg", "69.4 kg", True),
        ("2.50 Euro", "2,5 Euro", True),
        ("18,000 euros", "17,995 euros", True),
    ],
)
def test_a_number_is_as_exact_as_it_is_written(told: str, said: str, is_held: bool) -> None:  # noqa: FBT001
    assert holds(told, said) is is_held


@pytest.mark.parametrize("version", ["2.0.30", "8.0.36", "1.25.10", "31.2.24", "5.0.12", "3.14.15"])
def test_three_numbers_that_are_no_day_are_a_version(version: str) -> None:
    (value,) = values(f"It runs on SQLAlchemy {version}.")
    assert value.kind == "version"
    assert shown(f"We took {version} of it.").holds(value)
    assert not shown(f"We took {version}1 of it.").holds(value)


def test_three_numbers_that_are_a_day_are_a_date() -> None:
    assert [value.kind for value in values("on 3.1.19, 13.05.26, 12.05.2026, 12.13.2025")] == ["date"] * 3


def test_the_amount_is_in_the_unit_of_the_text() -> None:
    assert [value.amount for value in values("18k, 1.5 hours, €1,200, AB-1")] == [18_000, 1.5, 1_200, None]


@pytest.mark.parametrize(
    ("said", "is_held"),
    [
        ("the runner is ci-node-19", True),
        ("CI node 19 is the runner", True),
        ("node 19 of the ci pool", True),
        ("43 passed in 19.07 s on 19 May, 19 files", False),
        ("the runner is ci-node-18, 19 files", True),  # both of its names and its number, though in different places
        ("the runner is ci-node-18", False),
    ],
)
def test_a_small_number_alone_is_no_identifier(said: str, is_held: bool) -> None:  # noqa: FBT001
    assert holds("It ran on ci-node-19", said) is is_held


def test_a_long_number_alone_is_one() -> None:
    assert holds("The order is AB-1234", "order number 1234")
    assert not holds("The order is AB-1234", "order number 1243")


def test_a_full_date_needs_its_year() -> None:
    at = datetime(2026, 3, 1, tzinfo=UTC)
    texts = shown("on 12 September", at=at)
    assert texts.holds(values("12 September 2026")[0])
    assert not texts.holds(values("12 September 2028")[0])
    assert shown("on 12 September").holds(values("12 September 2028")[0]), "nothing says which year"


def test_a_year_that_nothing_tells_is_none_of_a_date_without_one() -> None:
    texts = shown("on 12 September")
    texts.add(2, "the lease ends in 2029", datetime(2026, 3, 1, tzinfo=UTC))
    held = [year for year in range(2024, 2032) if texts.sources(values(f"12 September {year}")[0])]
    assert held == [2026, 2029]


@pytest.mark.parametrize(
    ("claim", "is_held"),
    [
        ("Friday, 16 October 2026", True),
        ("Thursday, 16 October 2026", False),
        ("пятница, 16 октября 2026 г.", True),
        ("четверг, 16 октября 2026 г.", False),
        ("Freitag, den 16. Oktober 2026", True),
        ("from Thursday 15 to Friday 16 October 2026", True),
        ("from Thursday 15 to Sunday 16 October 2026", False),
        ("Monday 17 October 2026", True),
    ],
)
def test_a_date_has_its_own_weekday(claim: str, is_held: bool) -> None:  # noqa: FBT001
    assert holds(claim, "15 and 16 October 2026; the invitation says Monday 17 October 2026") is is_held


def test_a_file_in_other_folders_is_another_one() -> None:
    assert holds("internal/queue/batcher.go", "in internal/queue: batcher.go")
    assert holds("queue/batcher.go", "internal/queue/batcher.go")
    assert shown("cd internal/queue", "batcher.go is 118 lines").sources(values("internal/queue/batcher.go")[0]) == {2}
    assert not holds("internal/store/batcher.go", "internal/queue/batcher.go")


def test_hours_minutes_and_seconds_are_told_apart() -> None:
    assert not holds("45 hours", "for 45 minutes")
    assert not holds("300 s", "the target is 300 ms")
    assert holds("45 hours", "takes 45")
    assert holds("45 minutes", "0.75 hours")
    assert holds("47 minutes", "took 1:47")


def test_about_does_not_stand_for_other_digits() -> None:
    assert holds("about 856 km", "854 km")
    assert not holds("about 856 km", "850.5 km")
    assert not holds("≈ 0.742", "0.75")
    assert holds("about 131 ft", "40 m")
    assert holds("about 10,000 people", "9,870 people")
    assert not holds("about 10,000 people", "8,900 people")


def test_bytes_parted_by_colons_are_one_identifier() -> None:
    assert [value.text for value in values("certificate D0:5E:22 until 28 January")] == ["D0:5E:22", "28 January"]
    assert holds("00:1b:44:11:3a:b7", '{"mac": "00:1B:44:11:3A:B7"}')
    assert not holds("00:1B:11:44:3A:B7", "00:1B:44:11:3A:B7")
    assert [value.kind for value in values("at 12:30:45")] == ["time"]


@pytest.mark.parametrize("year", [1, 9999])
def test_moments_at_the_ends_of_the_calendar(year: int) -> None:
    at = datetime(year, 12, 31, 23, tzinfo=UTC)
    shown("tomorrow, next month, in 9000 years, 5000 weeks ago, on the 31st, next Friday", at=at)
    shown("in 99999999999 years, 99999999999999 days ago", at=datetime(2026, 1, 1, tzinfo=UTC))


@pytest.mark.parametrize(("hour", "days"), [(3, (11, 12)), (10, (12,)), (20, (12, 13))])
def test_the_day_of_a_message_is_given_also_as_it_is_where_it_was_written(hour: int, days: tuple[int, ...]) -> None:
    said = shown("Signed it.", at=datetime(2026, 5, 12, hour, tzinfo=UTC))
    given_days = [day for day in range(9, 16) if said.holds(values(f"on {day} May 2026")[0])]
    assert given_days == list(days)


@pytest.mark.parametrize(
    ("told", "time"),
    [
        ("twenty to midnight", "23:40"),
        ("half past midnight", "0:30"),
        ("ten to noon", "11:50"),
        ("Viertel nach Mitternacht", "0:15"),
    ],
)
def test_times_beside_midnight_and_noon(told: str, time: str) -> None:
    assert shown(time).holds(values(told)[0])
    assert [value.text for value in values("open from 5 to midnight")] == ["midnight"]


NUMBERS = st.integers(min_value=11, max_value=999_999)


@given(NUMBERS, st.sampled_from(["{0}", "{0:,}", "€{0:,}", "{0} km", "**{0}**", "$\\text{{{0}}}$", "{0}.0", "-{0}"]))
def test_a_number_is_found_in_any_spelling(number: int, spelling: str) -> None:
    assert holds(f"they counted {number} there", f"so {spelling.format(number)} it is")
    assert holds(f"they paid {number:,} euros", f"so {spelling.format(number)} it is")


@given(NUMBERS, st.sampled_from(["{0:,}", "{0:_}", "{0}"]))
def test_blanks_points_and_apostrophes_part_thousands(number: int, spelling: str) -> None:
    written = spelling.format(number)
    for sign in " .'\u00a0\u202f":
        assert holds(f"they paid {number} euros", "it is " + written.replace(",", sign).replace("_", sign) + " euros")


@given(NUMBERS, NUMBERS)
def test_another_number_is_not_found(number: int, other: int) -> None:
    far = abs(number - other) > 0.03 * number
    if far and str(other) not in {str(number), *f"{number:,}".split(",")}:
        assert not holds(f"they paid {other} euros", f"it is {number} euros")


@given(st.dates(min_value=datetime(1990, 1, 1).date(), max_value=datetime(2049, 12, 31).date()))  # noqa: DTZ001
def test_a_date_is_found_in_any_spelling(day: Any) -> None:
    spellings = [
        "%d %B %Y", "%B %d, %Y", "%d.%m.%Y", "%Y-%m-%d", "%d/%m/%Y", "%b %d %Y", "%Y/%m/%d",
        "%Y年%m月%d日", "%d. %B %Y",
        "the %dth of %B %Y", "%A, %d %b %Y", "%Y-%m-%dT10:00:00Z", "%Y%m%d",
    ]  # fmt: skip
    for spelling in spellings:
        assert holds(day.strftime("on %d %B %Y"), day.strftime(f"on {spelling}, she said")), spelling
        assert holds(day.strftime("on %Y-%m-%d"), day.strftime(f"on {spelling}, she said")), spelling
    for days in (40, 400):
        other = day + timedelta(days=days)
        assert not holds(other.strftime("on %d %B %Y"), day.strftime("on %d %B %Y"))
        assert not holds(day.strftime("on %d %B %Y"), other.strftime("on %Y-%m-%d"))


@given(st.integers(0, 23), st.integers(0, 59))
def test_a_time_is_found_on_either_clock(hour: int, minute: int) -> None:
    half = "am" if hour < 12 else "pm"
    written, spoken = f"{hour:02}:{minute:02}", f"{(hour - 1) % 12 + 1}:{minute:02}"
    for text in (written, f"{spoken} {half}", f"{spoken}{half}", f"{written} Uhr", f"{hour:02}.{minute:02}"):
        assert holds(f"at {written}", f"it begins at {text}"), text
    assert not holds(f"at {written}", f"it begins at {hour:02}:{(minute + 7) % 60:02}")


@given(st.text())
def test_values_are_verbatim_in_order_and_none_inside_another(text: str) -> None:
    last = 0
    for value in values(text):
        assert text[value.start : value.end] == value.text
        assert last <= value.start < value.end
        last = value.end


@given(st.text(alphabet=st.sampled_from("0123456789.,:/-+ abkmT€$%年月日点三十万иячтhalf*`\\^{}&;#x\n")))
def test_no_text_breaks_the_reading(text: str) -> None:
    values(text)
    shown(text, at=datetime(2026, 8, 28, tzinfo=UTC))


HOSTILE = [
    "a", "1", "1,", "1.", "1 ", "1 000 ", "1-", "1:", "1/", "/", "a/", "a@", "a.", "a-1-", "_1", "one ", "one hundred ",
    "hundert", "zwei", "двух", "一", "十万", "3月", "5点", "第", "€", "half ", "12 May ", "1, ",
    "1st to ", "the ", "in ",
    "https://", "www.a", "+1 ", "\\frac{", "&#", "*", "`", "**1**", "1e", "ab12-", "2 h 3 min ",
    "~", "пол", "о'", "v1.",
    "2026-09-12T10:", "上个", "百分之", "<b ", "1'", "\x00", "\ud800", "İ", "１", "٣", "²",
]  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("unit", often(HOSTILE))
def test_linear_time_on_hostile_text(unit: str) -> None:
    at = datetime(2026, 8, 28, tzinfo=UTC)
    assert_linear(lambda text: [values(text), shown(text, at=at)], unit * (12_000 // len(unit)))


def test_for_the_month_of_a_day_only_dates_are_looked_at() -> None:
    """A list has thousands of numbers that may be days, and for each of them every value before was looked at."""
    number = FoundValue("number", 0, 1)
    day_and_month = [Token("n", "3", 0, 1), Token("w", "may", 2, 5)]
    del number.kind  # whoever looks at it fails
    cursor = Cursor("3 may", "3 May", day_and_month, None, all_readings=False, found=[number] * 1_000)
    assert forms_in_month_of_last_date(cursor, 7) == frozenset()
    cursor.add("date", 0, 2, moments.claimed_forms((2026, 5, 3)))
    assert forms_in_month_of_last_date(cursor, 7) == moments.claimed_forms((None, 5, 7))


@pytest.mark.parametrize("unit", ["１", "1", "1a"])
def test_linear_time_where_pieces_of_a_long_run_are_looked_for_in_it(unit: str) -> None:
    """The pieces are everywhere in the long run, but never alone."""

    def looked_for(text: str) -> list[bool]:
        given_text, pieces = shown(text + "x"), [unit * (20 + count % 40) for count in range(len(text) // 50)]
        return [given_text.holds(value) for value in values(" ".join(pieces))]

    assert_linear(looked_for, unit * (12_000 // len(unit)))


# --- plain words are read first, for speed alone

_PIECES = st.sampled_from([
    "room", "the", "c", "www", "deadbeef", "v", "am", "p.m.", "Mai", "два", "三", "五月", "com", "1", "2026",
    " ", "  ", "\n", ",", ", ", ";", ".", ":", "/", "\\", "-", "'", "@", "_", "~", "+", "°", "½", "%", "$", "(", ")",
])  # fmt: skip


@given(st.lists(_PIECES | st.characters(), max_size=30).map("".join))
def test_without_the_shape_of_plain_words_the_scan_finds_the_same(text: str) -> None:
    found = scanner.tokens(plain_text_of(text))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scanner, "_SCAN", re.compile("|".join(scanner._SHAPES[1:])))
        assert scanner.tokens(plain_text_of(text)) == found


@given(
    st.text("1１2a- ", min_size=1, max_size=5),
    st.text("1１2a- ", max_size=30),
    st.sampled_from([str.isdigit, str.isalnum]),
)
def test_a_value_stands_where_no_sign_that_it_would_join_is_beside_it(
    needle: str, text: str, joins: Callable[[str], bool]
) -> None:
    places = [place for place in range(len(text)) if text.startswith(needle, place)]
    free = [
        not (joins(needle[0]) and joins(text[place - 1 : place] if place else ""))
        and not (joins(needle[-1]) and joins(text[place + len(needle) :][:1]))
        for place in places
    ]
    assert _SearchableText(0, text, joins).holds(needle) == any(free)


MESSAGE_DAY = datetime(2026, 5, 11, 12, 13, tzinfo=UTC)
"""A Monday."""


@each(
    ("text", "told", "wrong"),
    [
        ("we are in btwn 8 and 1", "in from 08:00 to 13:00", "in from 08:00 to 15:00"),
        ("open 7–11", "open until 11 p.m.", "open until 10 p.m."),
        ("can u take my wed 2-10?", "Wednesday, 14:00 to 22:00", "Wednesday, 14:00 to 21:00"),
        ("с 9-30 до 6", "с 9:30 до 18:00", "с 9:45 до 18:00"),
        ("до пол десятого", "до 9:30", "до 10:30"),
        ("be there at 1845", "be there at 18:45", "be there at 18:54"),
        ("Fr 13:30-15", "bis 15:00", "bis 16:00"),
        ("fri 20 – mon 23 march", "from 20 March", "from 21 March"),
        ("going on sat, ok?", "on 16 May 2026", "on 17 May 2026"),
        ("mo 14.9. hin, zurück fr gegen 4", "zurück am 18. September", "zurück am 17. September"),
        ("поверка до 11.2026", "до ноября 2026", "до декабря 2026"),
        ("1,120 miles at $0.70", "70 cents a mile", "75 cents a mile"),
        ("65p each", "£0.65 each", "£0.56 each"),
        ("5块8一个", "5.8元一个", "5.6元一个"),
        ("他身高一米七五", "身高1.75米", "身高1.85米"),
        ("一共3万5", "一共35000元", "一共38000元"),
        ("月租1万8，面积45平", "月租18000元", "月租10800元"),
        ("бензин тысяч двенадцать", "бензин около 12 000 ₽", "бензин около 13 000 ₽"),
        ("тысяч 12, не больше", "до 12 тысяч", "до 13 тысяч"),
        ("тысяча двенадцать рублей", "1012 рублей", "1013 рублей"),
        ("on est rentrés avant-hier", "rentrés le 9 mai 2026", "rentrés le 8 mai 2026"),
        ("llega pasado mañana", "llega el 13 de mayo de 2026", "llega el 14 de mayo de 2026"),
        ("跑了5万8公里", "跑了58000公里", "跑了50800公里"),
        ("花了3万5块", "花了35000元", "花了30500元"),
        ("报完自己付2万7千9", "自付2.79万元", "自付2.97万元"),
        ("首付8万6千", "首付86000元", "首付80600元"),
        ("利率百分之三点八五", "利率3.85%", "利率3.45%"),
        ("税费百分之十二点五", "税费12.5%", "税费12%"),
        ("跑了两点五公里", "跑了2.5公里", "跑了2.6公里"),
        ("加零点五升水", "加0.5升水", "加0.6升水"),
        ("花了一点五万元", "花了15000元", "花了50000元"),
        ("下午两点四十五到", "14:45到", "14:54到"),
        ("两点五分到", "2:05到", "2:15到"),
        (r"it was about 1.386", r"$2\ln2\approx1.386$", r"$2\ln2\approx1.368$"),
        ("90x60x75 cm", "0.9 m long", "0.8 m long"),
        ("ванна 170 на 70 см", "длина 1,7 м", "длина 1,9 м"),
        ("it draws 500 mA", "it draws 0.5 A.", "it draws 0.4 A."),
        ("23 outta 25 right", "92 % right", "96 % right"),
        ("6 раз из 10", "в 60 % случаев", "в 70 % случаев"),
        ("ci takes 14m20s", "860 seconds", "890 seconds"),
        ("ran it in 1:58:37", "7,117 seconds", "7,171 seconds"),
        ("700–1 200 ₽", "до 1200 рублей", "до 1300 рублей"),
        ("邮箱caiwu@dingtai.example", "邮箱是caiwu@dingtai.example", "邮箱是caiwo@dingtai.example"),
        ("Packung mit 98 Tabletten = N3", "eine N3-Packung", "eine N2-Packung"),
        ("replaced 40 m of cable", "replaced 131 ft of cable", "replaced 150 ft of cable"),
        ("fine walking 2 miles", "up to 3.2 km", "up to 4.2 km"),
        ("I weigh 78.5 kg", "weighs 173 lb", "weighs 183 lb"),
        ("a 28 inch suitcase", "a 71 cm suitcase", "a 81 cm suitcase"),
        ("1,8 м³ в час", "1 800 л в час", "1 600 л в час"),
        ("bake at 195 °C", "bake at 383 °F", "bake at 370 °F"),
        ("bake at 350 °F", "bake at 177 °C", "bake at 187 °C"),
        ("hasta el 28 de mayo", "hasta el 28/05", "hasta el 27/05"),
        ("the staging run took 14 min 20 s", "it took 14:20", "it took 14:30"),
        ("10k in 47:12, weeks of 36 and 48 km", "10k in 47:12", "10k in 48:21"),
        ("d=.5 and p=.041", "d = 0.5, p = 0.041", "d = 0.5, p = 0.014"),
        ("目标2小时20分以内", "目标2:20", "目标2:30"),
        ("配速6分40", "配速6:40", "配速6:50"),
        ("web-02 is nearly full", "Web-02's disk is nearly full", "Web-03's disk is nearly full"),
        ("the voucher is NTV-7QK2-30", "NTV-7QK2-30 was spent", "NTV-7QK5-30 was spent"),
        ("questions 1-12 of the sheet", "Q1-12 of the sheet", "Q1-13 of the sheet"),
        ("pressure: 126/81", "126/81 at home", "134/86 at home"),
        ("мастер берёт четыре пятьсот", "берёт 4 500 ₽", "берёт 4 600 ₽"),
        ("просит пять девятьсот восемьдесят", "цена 5,98 млн", "цена 5,89 млн"),
        ("сошлись на шести двухстах", "сошлись на 6,2 млн", "сошлись на 6,1 млн"),
        ("отдаст за миллион восемьсот", "отдаст за 1,8 млн", "отдаст за 1,08 млн"),
        ("la empanada a dos ochenta", "a 2,80 €", "a 2,08 €"),
        ("antes a dieciséis con cuarenta", "antes 16,40 €", "antes 16,60 €"),
        ("antivol soixante-neuf quatre-vingt-dix", "69,90 €", "69,09 €"),
        ("der Liter zwei achtzig", "2,80 €", "2,90 €"),
        ("avant le trente juin", "avant le 30 juin 2026", "avant le 13 juin 2026"),
        ("el quince de julio", "el 15 de julio de 2026", "el 5 de julio de 2026"),
        ("в мае с 1 по 11 на даче", "с 1 по 11 мая", "с 1 по 12 мая"),
        ("奶粉三百六一罐", "奶粉360元", "奶粉301元"),
        ("成都三万二两家在谈", "成都32000元", "成都30002元"),
        ("一个月一千三四", "一个月1300到1400元", "一个月1300到1500元"),
        ("也就三四百块", "300到400元", "200到400元"),
        ("来了十五六个人", "来了15到16人", "来了14到16人"),
        ("一条缝七八厘米长", "7到8厘米", "6到8厘米"),
        ("量到三十八度七", "38.7℃", "38.5℃"),
        ("烧到38度2", "38.2℃", "38.3℃"),
        ("凌晨3点38.7度", "凌晨3点，38.7度", "凌晨3点38分"),
    ],
)
def test_what_is_told_loosely(text: str, told: str, wrong: str) -> None:
    given = shown(text, at=MESSAGE_DAY)
    assert [value.text for value in values(told) if not given.sources(value)] == []
    assert [value for value in values(wrong) if not given.sources(value)]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (r"$\int_1^9 x\,dx$", []),
        (r"$2\sqrt2$, and it costs $2", ["$2"]),
        ("$5 and $x^2$", ["$5"]),
        (r"极限$\lim_{x\to0}x^2$已讲", []),
        (r"C:\dir\temp1\file2", [r"C:\dir\temp1\file2"]),
        ("set $HOME_DIR, pay $25 and $30", ["$25", "$30"]),
    ],
)
def test_a_formula_is_no_money_and_its_commands_are_no_identifiers(text: str, told: list[str]) -> None:
    assert [value.text for value in values(text)] == told


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("v^2 = u^2+2as, h=2R=1.2 and v0=14 at 30 degrees", ["1.2", "30 degrees"]),
        ("CH4 + 2O2 gives CO2", ["CO2"]),
        ("216 W /230 = 0,94 A", ["216 W", "0,94 A"]),
        ("$67{,}50 + 40$ in total, $38.40 + 21.75 = 60.15$ too", []),
        ("AB12 = 14 euros, 9a41c7 = broken", ["AB12", "14 euros", "9a41c7"]),  # codes
        ("it is $5 + $6 or $7 (=4€)", ["$5", "$6", "$7", "4€"]),  # money
        ("20$ = 18€, 30$ + 5 $ tip = 35$", ["20$", "18€", "30$", "5 $", "35$"]),  # the sign behind it
        ("locker b7 = Anna, db1=primary, iron + B12", ["b7", "db1", "B12"]),  # names
        ("x1 = sqrt(2), t0 = time.now(), a2 = sin 30", ["30"]),
    ],
)
def test_a_part_of_a_formula_is_neither_code_path_nor_money(text: str, told: list[str]) -> None:
    assert [value.text for value in values(text)] == told


@pytest.mark.parametrize(
    ("claim", "text", "other"),
    [
        ("p = .024", "p = 0.024", "p = .034"),
        ("p = 0.007", "p=.007 here", "p = 0.07"),
        ("It took 0.8 s.", "v=sqrt(2*5.206*.8) after .8 s", "It took 0.9 s."),
        ("The factor is 27.1.", "(27.1)*.5 *and more*", "The factor is 27.6."),
        ("67,50 €", "$67{,}50 + 40$: insgesamt $107{,}50$ €", "76,50 €"),
    ],
)
def test_numbers_of_formulas_are_found(claim: str, text: str, other: str) -> None:
    assert holds(claim, text)
    assert not holds(other, text)


def test_a_number_behind_a_point_may_be_the_end_of_an_address() -> None:
    assert holds("Proxmox is on .28.", "The hosts are 27-29.")
    assert holds("Proxmox is on .28.", "Proxmox is 10.0.0.28")
    assert not holds("p = .28", "The hosts are 27-29.")


@pytest.mark.parametrize("text", ["on Saturday 6 June", "6 June, Saturday evening", "on 6 June. Saturday it is"])
def test_a_weekday_that_a_date_has_means_no_day_a_week_later(text: str) -> None:
    found = shown(text, at=datetime(2026, 6, 1, tzinfo=UTC))
    assert found.holds(values("Saturday, 6 June 2026")[0])
    assert not found.holds(values("Saturday, 13 June 2026")[0])


@pytest.mark.parametrize(("text", "number"), [
    ("a million and a half are left", "n:1500000"),
    ("$1 million and a half", "n:1500000"),
    ("three thousand and a half", "n:3500"),
    ("half a million people", "n:500000"),
    ("a quarter of a million", "n:250000"),
    ("миллион с половиной рублей", "n:1500000"),
    ("eine halbe Million Euro", "n:500000"),
    ("two hundred and a half", "n:200.5"),
    ("3 and a half million", "n:3500000"),
])  # fmt: skip
def test_a_half_belongs_to_the_scale_before_or_behind_it(text: str, number: str) -> None:
    assert [number in value.forms for value in values(text)] == [True]


@pytest.mark.parametrize(("told", "is_held"), [
    ("PR #218 is merged.", True), ("PR № 218 is merged.", True), ("PR #281 is merged.", False),
    ("ticket #12354", False), ("ticket #12345", True), ("policy № 0412987756", True), ("policy № 0412987765", False),
    ("as said in #101", True), ("as said in #102", False),
])  # fmt: skip
def test_a_number_that_names_something_is_looked_up(told: str, is_held: bool) -> None:  # noqa: FBT001
    given_ = ValueIndex()
    given_.add(101, "PR 218 closes ticket #12345; the policy is XXX 0412987756")
    [value] = values(told)
    assert value.kind == "identifier"
    assert given_.holds(value) is is_held


def test_a_short_number_that_names_something_is_no_value() -> None:
    assert values("as message #26 and №7 say") == ()


@each(("told", "text", "other"), [
    ("€14", "the bus is 14 €", "the bus is £14"),
    ("$500", "500 bucks", "500 рублей"),
    ("18 %", "eighteen percent", "18元"),
    ("12 days", "it takes 12 days", "12 % of it"),
    ("12 days", "a fortnight less two: 12", "valid for 12 months"),
    ("12 days", "days: 12", "the log of 06:12:00Z"),
    ("3 weeks", "3 wks", "3 hours"),
    ("14,3 %", "14.3 percent", "€14.31"),
    ("R$ 120", "120 reais", "120 dólares"),
    ("820 mg", "820 milligrams", "820 g"),
    ("25 µg", "0.025 mg", "25 mg"),
    ("20 kg", "20 kilos", "20 lb"),
    ("20 литров", "20 л", "20 мл"),
    ("5 litres", "5 l", "5 gallons"),
    ("about 5 km", "4.9 km", "4.9 miles"),
])  # fmt: skip
def test_a_number_that_counts_something_is_shown_by_no_other_measure(told: str, text: str, other: str) -> None:
    assert [holds(told, shown_by) for shown_by in (text, other)] == [True, False]


@each(("told", "text"), [
    ("€14", "14 for the bus"),
    ("12 days", "twelve, I think"),
    ("15 %", "0.15 of all"),
    ("25 %", "3 out of 12"),
    ("5 min", "a pace of 5:40/km"),
    ("¥500", "500 yen"),
    ("120元", "¥120"),
    ("$500", "500 pesos"),
    ("$5", "50 cents, no: 5"),
    ("2 s", r"$T = 2$"),
    ("30 seconds", "90+30. Won the first round"),
    ("14", "€14"),
    ("14", "14 %"),
    ("7 kg", "7 m"),
    ("7 kg", "7 of them, and 7 lb"),
    ("7 kg", "$7"),
    ("$7", "7 kg"),
])  # fmt: skip
def test_control_a_bare_number_a_shared_sign_or_another_unit_shows_it(told: str, text: str) -> None:
    assert holds(told, text)


@pytest.mark.parametrize(
    ("claim", "text", "held"),
    [
        ("2 crowns went to Tam, so 28.", "You have 28.", True),  # "So" is Sunday in German, where it has a capital
        ("Push-ups: do 12, then rest.", "Twelve push-ups.", True),
        ("Basia pracuje do 18.", "Basia pracuje do 18.", True),  # "until" in Polish, Thursday in German
        ("Erano meno di 20.", "Scese a meno di 20.", True),
        ("Treffen am So 28.", "Ich habe 28.", False),
    ],
)
def test_a_weekday_that_is_another_word_too_has_a_capital(claim: str, text: str, *, held: bool) -> None:
    assert holds(claim, text) is held


def test_a_day_that_a_weekday_may_mean_is_told_apart() -> None:
    texts = shown("dinner on Thursday", "dinner on 3 September", at=datetime(2026, 8, 28, tzinfo=UTC))
    [thursday] = values("3 September 2026")
    assert [set(texts.plain_sources(thursday)), set(texts.weekday_sources(thursday))] == [{2}, {1}]
    assert texts.sources(thursday) == {1, 2}


@pytest.mark.parametrize("year", range(2024, 2029))
def test_the_day_that_most_years_lack_is_read_in_each_of_them(year: int) -> None:
    texts = shown("My birthday is 29 February.", at=datetime(year, 11, 16, tzinfo=UTC))
    held = ["29 February", "29.02.", f"29 February {2024 if year < 2028 else 2032}", "29 February 2028"]
    assert all(texts.holds(value) for told in held for value in values(told))
    assert not any(texts.holds(value) for told in ("28 February", "29 February 2020") for value in values(told))


@pytest.mark.parametrize("text", ["Gilt bis 31.12.9999, ab Freitag zu zahlen.", "Valid until 9999-12-31, from Friday."])
def test_the_last_day_of_the_calendar_which_means_without_an_end_is_read_beside_a_weekday(text: str) -> None:
    texts = shown(text, at=datetime(2026, 8, 28, tzinfo=UTC))
    held = ["9999-12-31", "28 August 2026", "4 September 2026"]
    assert all(texts.holds(value) for told in held for value in values(told))


@pytest.mark.parametrize(
    ("text", "is_day"),
    [
        ("The sales role moves on the 15 or later", True),
        ("The sales role moves behind the 15k mark", False),
        ("A refund of 15 % of the price", False),
        ("A fee of 15 EUR", False),
        ("Take out the 15V cable", False),
        ("On the 15 in Leiden", True),
        ("Wir treffen uns am 15 in Köln", True),
        ("Der Rabatt ist der 15%-Rabatt", False),
        ("到15号", True),
    ],
)
def test_an_amount_is_no_day_of_a_month(text: str, is_day: bool) -> None:  # noqa: FBT001
    given_texts = shown(text, at=datetime(2026, 5, 13, 9, tzinfo=UTC))
    (told,) = values("It is on 15 May 2026.")
    assert given_texts.holds(told) is is_day


@each(
    ("claim", "text", "is_held"),
    [
        ("They stay one night", "we stay from one day to the next", True),
        ("They stay one night", "we stay 2 nights", False),
        ("住三晚", "我们住三个晚上", True),
        ("住三晚", "我们住四晚", False),
        ("В палатках три ночи", "в палатках 3 дня и 3 ночи", True),
        ("три ночи в палатках", "в палатках 4 ночи", False),
        ("автобус в три ночи", "автобус в 3:00", True),
        ("автобус в три ночи", "автобус в 4:00", False),
        ("Встреча в 2 дня", "встреча в 14:00", True),
        ("Встреча через 2 дня", "через два дня", True),
        ("Встреча через 2 дня", "встреча в 14:00", False),
        ("the song goes on until 3 night", "until 03:00", True),
    ],
)
def test_a_part_of_the_day_that_is_counted_is_a_length(claim: str, text: str, is_held: bool) -> None:  # noqa: FBT001
    assert holds(claim, text) is is_held


@pytest.mark.parametrize(
    ("claim", "text", "other"),
    [
        ("квартира 83", "Я живу в 83-й", "квартира 38"),
        ("floor 83", "we sit on the 83rd", "floor 38"),
        ("в 2016 году", "это из 2016-го", "в 2018 году"),
        ("с марта 2023 года", "в декрете с марта 2023-го", "с марта 2022 года"),
        ("12 мая 2019 года", "купили 12-го мая 2019-го", "12 мая 2020 года"),
        ("12 мая 2019-го", "купили 12.05.2019", "12 мая 2020-го"),
    ],
)
def test_a_number_with_the_ending_of_an_ordinal_shows_number_and_year(claim: str, text: str, other: str) -> None:
    assert holds(claim, text)
    assert not holds(other, text)


@pytest.mark.parametrize(
    ("claim", "text", "other"),
    [
        ("с 27 на 25 февраля", "27 февраля, теперь 25 февраля", "с 26 на 25 февраля"),
        ("vom 27. auf den 25. Februar", "27. Februar, jetzt 25. Februar", "vom 26. auf den 25. Februar"),
        ("on 25 February, not 27", "27 February, now 25 February", "on 25 February, not 26"),
        ("с 19–20 на 21–22 мая 2026 года", "19–20 мая, нет, 21–22 мая 2026", "с 18–20 на 21–22 мая 2026 года"),
    ],
)
def test_a_number_shortly_beside_a_date_may_be_a_day_of_its_month(claim: str, text: str, other: str) -> None:
    assert holds(claim, text)
    assert not holds(other, text)


def test_control_a_number_further_from_a_date_or_with_a_unit_is_no_day() -> None:
    text = "27 February, now 25 February"
    assert not holds("27 people come at the earliest on 25 February", text)
    assert not holds("27 € until 25 February", text)
    assert not holds("on 25 February, 27 people come", text)
    assert not holds("25 февраля — 27 мест", "27 февраля, теперь 25 февраля")


@pytest.mark.parametrize(
    ("claim", "text", "other"),
    [
        ("rust-cache v2.7.3", "rust-cache@v2.7.3 set", "rust-cache v2.7.4"),
        ("react@18.2.0", "react went to 18.2.0", "react@18.2.1"),
        ("checkout v4.1.1", "uses: actions/checkout@v4.1.1", "checkout v4.1.2"),
    ],
)
def test_a_version_behind_an_at_sign_is_no_address(claim: str, text: str, other: str) -> None:
    assert holds(claim, text)
    assert not holds(other, text)


def test_control_an_address_stays_one() -> None:
    assert [value.kind for value in values("write to ops@node2.example or a@b2.c3.de")] == ["email", "email"]


@pytest.mark.parametrize(
    ("claim", "other"),
    [
        ("log in as deploy@10.0.0.5", "log in as root@10.0.0.5"),
        ("the invoice RE2024.118", "the invoice AB2024.118"),
        ("case ABC123.45", "case XYZ123.45"),
    ],
)
def test_control_a_login_and_a_number_with_its_letters_are_no_versions(claim: str, other: str) -> None:
    assert holds(claim, f"We spoke of {claim}.")
    assert not holds(other, f"We spoke of {claim}.")


def test_a_login_also_tells_the_address_of_its_device() -> None:
    assert holds("the server is 10.0.0.5", "log in as deploy@10.0.0.5")
    assert not holds("the server is 10.0.0.6", "log in as deploy@10.0.0.5")


def test_in_a_german_text_am_is_a_preposition_behind_a_number() -> None:
    text = "Angemeldet sind 8 Kinder für Freitag und zwei für den Samstag"
    assert holds("Angemeldet sind bisher 8 am Freitag und zwei am Samstag", text)
    assert not holds("Angemeldet sind bisher 9 am Freitag und zwei am Samstag", text)


def test_control_am_after_an_hour_stays_the_morning() -> None:
    assert holds("they meet at 8 am on Friday and not later", "meeting on Friday 08:00")
    assert not holds("they meet at 8 am on Friday and not later", "8 of us meet on Friday at 9:00")


def test_control_an_ordinal_that_is_a_day_shows_no_other_number() -> None:
    assert not holds("квартира 12", "приедем 12-го")


def test_an_identifier_that_ends_like_a_scale_is_no_rounding() -> None:
    shown = ValueIndex()
    shown.add(1, "The file is 8841207K, for 8,841,207 people.")
    (right,), (wrong,) = values("file 8841207K"), values("file 8841270K")
    assert shown.holds(right)
    assert not shown.holds(wrong)
    (rounded,) = values("some 8.8 million")
    assert shown.holds(rounded), "control: an amount is"


@pytest.mark.parametrize(
    ("claim", "text", "is_held"),
    [
        ("founded in 1920", "founded in 1919", False),
        ("open until 2030", "open until 2028", False),
        ("around 1920", "in 1919", True),
        ("1920 EUR", "1919 EUR", True),
        ("1,920 people", "1,919 people", True),
    ],
)
def test_a_year_is_no_rounding_of_another(claim: str, text: str, is_held: bool) -> None:  # noqa: FBT001
    assert holds(claim, text) is is_held


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Il totale all'11 maggio", ["11 maggio"]),
        ("musica fino all’1:00", ["1:00"]),
        ("le train de l'11 mai", ["11 mai"]),
        ("Am 12. Sept. 2026", ["12. Sept. 2026"]),
        ("order O'Brien-77", ["O'Brien-77"]),
        ("custa R$ 120, não US$30", ["R$ 120", "US$30"]),
        ("Friday 3, Saturday 4 May", ["3", "4 May"]),
        ("den 3, Sonntag 4. Mai", ["3", "4. Mai"]),
        ("+44 (20) 7946-0958", ["+44 (20) 7946-0958"]),
        ("edit main.c.", ["main.c"]),
    ],
)
def test_where_a_value_begins_and_ends(text: str, found: list[str]) -> None:
    """After an apostrophe a new number begins."""
    assert [value.text for value in values(text)] == found


ARABIC_SIGNS: Final = {ord(sign) for sign in "\u066a\u066b\u066c"}  # of per cent, fractions and thousands


def shares_held(locale: str) -> tuple[float, float]:
    """Of numbers as a locale writes them, the share that holds, and the share of other numbers that holds too."""
    drawn, true, wrong, count = Random(7), 0, 0, 60
    for _ in range(count):
        number = Decimal(drawn.randrange(1_000, 90_000_000)) / drawn.choice([1, 10, 100])
        said, told, other = format_decimal(number, locale=locale, numbering_system="default"), number, number + 1_000
        true += holds(f"{told:,} in all", said)
        wrong += holds(f"{other:,} in all", said)
    forget()  # what was read with other signs
    return true / count, wrong / count


@pytest.mark.parametrize("locale", ["ar_EG", "fa", "ur_IN"])
def test_numbers_with_arabic_signs_are_read_as_babel_writes_them(locale: str, monkeypatch: pytest.MonkeyPatch) -> None:
    true, wrong = shares_held(locale)
    assert (true, wrong < 0.05) == (1.0, True)
    rest = {code: sign for code, sign in plain_text._SIGNS.items() if code not in ARABIC_SIGNS}
    monkeypatch.setattr(plain_text, "_SIGNS", rest)
    assert shares_held(locale)[0] < 0.4, "control: without the signs most are not"


def test_an_arabic_sign_of_per_cent_is_one() -> None:
    assert holds("25 %", "۲۵٪")
    assert not holds("۲۵٪", "it costs 25 euros")


def in_japanese(number: int) -> str:
    """A number below ten thousand in numerals; the one before a thousand, a hundred or a ten is left out."""
    digits, places = "一二三四五六七八九", ("千", "百", "十", "")
    return "".join(
        ("" if digit == "1" and place else digits[int(digit) - 1]) + place
        for digit, place in zip(f"{number:04}", places, strict=True)
        if digit != "0"
    )


@pytest.mark.long
def test_each_number_before_yen_is_read() -> None:
    wrong = [
        number
        for number in range(2, 10_000)
        if [value.amount for value in values(f"{in_japanese(number)}円")] != [number]
    ]
    assert not wrong
