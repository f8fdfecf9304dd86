"""Sentences, words, stems and exact values, by example and on hostile texts."""

from __future__ import annotations

import unicodedata
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.retrieval.terms import is_pair
from app.core.text.cldr_names import month_names, short_months, weekday_names
from app.core.text.identifiers import _scan, find_identifiers, identifiers
from app.core.text.sentences import sentences
from app.core.text.values import ValueIndex, values
from app.core.text.words import stem, stems, tokens, words
from tests.corpus import assert_values, assert_verdicts, corpus
from tests.talks import made_talk
from tests.unit.timing import assert_linear, often


def test_words_drop_grammar_and_pair_ideographs() -> None:
    assert [*words("Let's use the connection_pool of Postgres 16.2 for Mia's data")] == [
        "use",
        "connection",
        "pool",
        "postgres",
        "16.2",
        "mia",
        "data",
    ]
    assert [*words("Here's Dana's plan, there's a dog")] == ["dana", "plan", "dog"]
    assert [*words("我们决定")] == ["我们", "们决", "决定"]
    assert [*words("и в базе, но не там")] == ["базе"]


@pytest.mark.parametrize("text", ["café Éclair", "йогурт и ёлка", "Việt Nam đẹp", "이메일 확인", "Übergang"])
def test_a_letter_is_the_same_in_one_sign_and_in_two(text: str) -> None:
    apart = unicodedata.normalize("NFD", text)
    assert apart != text
    assert words(apart) == words(text)


def test_scripts_without_spaces_are_compared_as_pairs_of_characters() -> None:
    for written in ("ไฟดับ", "ကျောင်း", "សាលា", "ໂຮງ"):
        assert words(f"3 {written}") == ("3", *(written[place : place + 2] for place in range(len(written) - 1)))
    asked, said = words("แมวชื่ออะไร"), words("แมวของเราชื่อส้มโอ")
    assert {"แม", "มว", "ชื"} <= {*asked} & {*said}
    assert all(is_pair(word) for word in asked)


def test_signs_that_follow_a_letter_belong_to_its_word() -> None:
    assert words("अगले मंगलवार मीटिंग है।") == ("अगले", "मंगलवार", "मीटिंग", "है")
    assert words("মঙ্গলবার মিটিং") == ("মঙ্গলবার", "মিটিং")
    assert tokens("மீண்டும் கூட்டம், 3.5") == ["மீண்டும்", "கூட்டம்", "3.5"]


@pytest.mark.parametrize(("written", "typed"), [("مُهِمّ", "مهم"), ("مـهـم", "مهم"), ("שָׁלוֹם", "שלום"), ("за́мок", "замок")])
def test_signs_that_most_people_leave_out_make_no_difference(written: str, typed: str) -> None:
    assert words(written) == words(typed) == (typed,)


@pytest.mark.parametrize(
    ("shown", "stated"),
    [
        ("التذاكر بـ300 درهم، وب25 ضيفاً و40 كرسياً", "300، 25، 40"),
        ("קניתי ב-320 שקל, ל-25 איש", "320, 25"),
        ("शादी 22 नवंबर को है", "22.11."),
        ("हॉल 3 लाख में", "300000"),
        ("anggaran 12,5 juta", "12.500.000"),
        ("金曜の夜に", "3月13日"),
        ("శుక్రవారం ఉదయం 9:30కి సమావేశం", "13 మార్చి 9:30"),
        ("جلسه سه‌شنبه است", "17 March"),
        ("a partir de 1º de abril, na 3ª sala", "1 de abril"),
    ],
)
def test_values_of_many_scripts_are_found_in_another_form(shown: str, stated: str) -> None:
    at = datetime(2026, 3, 12, 12, tzinfo=UTC)
    texts = ValueIndex()
    texts.add(1, shown, at)
    claimed = values(stated, at)
    assert claimed
    assert all(texts.sources(value) for value in claimed)


def test_names_of_the_calendar_are_read_from_every_release_of_the_library() -> None:
    months, weekdays, short = month_names(), weekday_names(), short_months()
    assert {("cs", "leden", 1), ("cs", "ledna", 1), ("nb", "januar", 1), ("hi", "मार्च", 3)} <= {*months}
    assert {("fi", "maanantai", 0), ("fi", "maanantaina", 0), ("te", "శుక్రవారం", 4)} <= {*weekdays}
    assert {"ar", "de", "pt", "tr", "vi"} - {code for code, *_ in short} <= {"vi"}
    assert min(len(months), len(short)) > 400


def test_control_a_letter_that_is_no_word_before_a_number_makes_a_code() -> None:
    assert [value.kind for value in values("غرفة ص12 وباب A4")] == ["identifier", "identifier"]


def test_stems_fold_inflection_and_keep_words_apart() -> None:
    assert_verdicts(corpus("word_families"), lambda family: len({stem(word) for word in family}) == 1)


def test_stems_keep_words_apart() -> None:
    assert len(set(stems("bus class news data redis process"))) == 6


@pytest.mark.parametrize("talk", ["assistant_en", "friends_de", "friends_ru", "sisters_zh"])
def test_no_text_that_holds_one_is_passed_over(talk: str) -> None:
    said = [sentence for one in made_talk(talk)["messages"] for sentence in sentences(one["content"])]
    assert all(find_identifiers(text) == tuple(_scan(text)) for text in said)
    assert find_identifiers("Thanks") == () != find_identifiers("3 kg")


def test_identifiers() -> None:
    assert_values(corpus("identifiers"), identifiers)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("bis zum 12. März 2026, also 3 Wochen", ["12. März 2026", "3 Wochen"]),
        ("avant le 12 mars 2026, 45 Euro", ["12 mars 2026", "45 Euro"]),
        ("el 12 de mayo de 2026, 6 kilos", ["12 de mayo de 2026", "6 kilos"]),
        ("do 18 września 2026", ["18 września 2026"]),
        ("до 12-го мая, 500 р. и 40 мин", ["12-го мая", "500 р", "40 мин"]),
        ("it was £0.2486 and 0.0430$", ["£0.2486", "0.0430$"]),
        ("₹12,34,567.50 for 1,00,000 kg, rooms 1,23,45", ["₹12,34,567.50", "1,00,000 kg", "1,23", "45"]),
    ],
)
def test_days_amounts_and_money_are_found_in_each_language(text: str, expected: list[str]) -> None:
    assert [found.text for found in find_identifiers(text) if found.kind != "name"] == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("房东电话是13800135724", ["13800135724"]),
        ("订单号LZ20260407-0317,实付339.52元", ["LZ20260407-0317", "339.52元"]),
        ("合同编号JJ-2026-1018，上午10:30签", ["JJ-2026-1018", "10:30"]),
        ("改到2月8号周日,体重83.7公斤", ["2月8号", "83.7"]),
        ("升到v1.10.0了，看/etc/nginx.conf里", ["v1.10.0", "/etc/nginx.conf"]),
        ("発到chenli-mo@example.com。新しい品は5月7日に", ["chenli-mo@example.com", "5月7日"]),
        ("三万二两家，「红楼梦」5本", ["「红楼梦」", "5"]),
    ],
)
def test_a_value_needs_no_space_beside_words_that_have_none(text: str, expected: list[str]) -> None:
    found = find_identifiers(text)
    assert [one.text for one in found] == expected
    assert all(text.startswith(one.text, one.start) for one in found)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("there were 12. May I ask?", ["12"]),
        ("all 12 may come, 3 march in", ["12", "3"]),
        ("september 3,870 $", ["3,870 $"]),
        ("в январе 12 400 ₽", ["12 400 ₽"]),
        ("tengo 5 yo y tú 3", ["5", "3"]),
    ],
)
def test_control_other_words_behind_a_number_stay_out(text: str, expected: list[str]) -> None:
    assert [found.text for found in find_identifiers(text)] == expected


@given(st.text())
def test_identifiers_are_verbatim(text: str) -> None:
    for found in find_identifiers(text):
        assert found.text.removesuffix("()") in text
        assert found.text


HOSTILE = [
    "a", "A", "Aa ", "1", "1,", "1.1.", "/", "a/", "_", "a_", "(", '"', "a@", "a.", "-", "0-", "$1", "«", "1 ", "Jan ",
    "Aa-", "ffffffff-", "https://", "#A1", "\n", "1:", ".", ". ", "…", "```", "```\n", "。", "\x00", "\ud800", "а.",
]  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("unit", often(HOSTILE))
def test_linear_time_on_hostile_text(unit: str) -> None:
    assert_linear(lambda text: [sentences(text), words(text), identifiers(text)], unit * (80_000 // len(unit)))
