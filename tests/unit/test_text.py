"""Sentences, words, stems and exact values, by example and on hostile texts."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.words.identifiers import find_identifiers
from app.domain.words.text import identifiers, sentences, stem, stems, words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two! Three? Four… Five", ["One.", "Two!", "Three?", "Four…", "Five"]),
        (
            "Dr. Smith paid $3.50, e.g. for tea. See https://a.b/c.html now.",
            ["Dr. Smith paid $3.50, e.g. for tea.", "See https://a.b/c.html now."],
        ),
        ("Version 1.2.3 is out. i like it. it works", ["Version 1.2.3 is out.", "i like it.", "it works"]),
        (
            "Мы решили, т.е. Иван и я. А. С. Пушкин писал. Это стоит 2.5 млн. руб. в год.",
            ["Мы решили, т.е. Иван и я.", "А. С. Пушкин писал.", "Это стоит 2.5 млн. руб. в год."],
        ),
        ("今天天气很好。我们去公园吧！你觉得呢？", ["今天天气很好。", "我们去公园吧！", "你觉得呢？"]),
        ("1. First item. More\n2. Second\n- third", ["1. First item.", "More", "2. Second", "- third"]),
        ("Am 12. September heiraten wir. Schön.", ["Am 12. September heiraten wir.", "Schön."]),
        ("He said “go.” Then he left.", ["He said “go.”", "Then he left."]),
        ("", []),
        (" \n\t ", []),
    ],
)
def test_sentences(text: str, expected: list[str]) -> None:
    assert sentences(text) == expected


def test_code_fences_stay_whole() -> None:
    code = "```py\nx = 1. + 2\nprint(x)\n```"
    assert sentences(f"Look. See:\n{code}\nDone. Fine.") == ["Look.", "See:", code, "Done.", "Fine."]
    assert sentences("Open:\n```\na. b. c")[-1] == "```\na. b. c"


def test_a_long_line_goes_on_in_the_next() -> None:
    text = "This line was wrapped by a mail program at some fixed column and\ngoes on here. New one."
    assert sentences(text) == [
        "This line was wrapped by a mail program at some fixed column and goes on here.",
        "New one.",
    ]


@given(st.text())
def test_sentences_lose_no_visible_sign(text: str) -> None:
    kept = "".join("".join(sentences(text)).split())
    lost = [sign for sign in "".join(text.split()) if sign.isalnum()]
    assert [sign for sign in kept if sign.isalnum()] == lost


def test_words_drop_grammar_and_pair_ideographs() -> None:
    assert words("Let's use the connection_pool of Postgres 16.2 for Mia's data") == [
        "use",
        "connection",
        "pool",
        "postgres",
        "16.2",
        "mia",
        "data",
    ]
    assert words("Here's Dana's plan, there's a dog") == ["dana", "plan", "dog"]
    assert words("我们决定") == ["我们", "们决", "决定"]
    assert words("и в базе, но не там") == ["базе"]


@pytest.mark.parametrize(
    "family",
    [
        ("decide", "decided", "decides", "deciding"),
        ("city", "cities"),
        ("paint", "painted", "painting", "paints"),
        ("run", "runs", "running"),
        ("база", "базы", "базой", "базами", "базу"),
        ("решить", "решил", "решила", "решили"),
    ],
)
def test_stems_fold_inflection(family: tuple[str, ...]) -> None:
    assert len({stem(word) for word in family}) == 1


def test_stems_keep_words_apart() -> None:
    assert len(set(stems("bus class news data redis process"))) == 6


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "I'm Dana Brooks from Lisbon. Yesterday Anna paid $1,250.50 on May 20th, 2024 at 9:30 am.",
            ["Dana Brooks", "Lisbon", "Anna", "$1,250.50", "May 20th, 2024", "9:30 am"],
        ),
        (
            "Deploy v2.1.3 of app/domain/words/text.py to https://example.com/x?y=1. Call getUser() with parse_args.",
            ["v2.1.3", "app/domain/words/text.py", "https://example.com/x?y=1", "getUser()", "parse_args"],
        ),
        (
            "Меня зовут Марина Иванова, бюджет 250 тыс. рублей, срок 15 марта 2025, звонить в 10:30.",
            ["Марина Иванова", "250 тыс. рублей", "15 марта 2025", "10:30"],
        ),
        (
            "Order A-1001, flight HAT069, id 550e8400-e29b-41d4-a716-446655440000, mia.li@example.com, 20 %",
            ["A-1001", "HAT069", "550e8400-e29b-41d4-a716-446655440000", "mia.li@example.com", "20 %"],
        ),
        ('We said "never on Fridays" and «только утром».', ['"never on Fridays"', "«только утром»"]),
        ("预算是50000元，2024年5月20日", ["50000元", "2024年5月20日"]),
        ("The New York office and 3 GB", ["New York", "3 GB"]),
        (
            "The clerk is called Mr. Brandt, due by 13 June. Mrs. Petrakis paid 2 million.",
            ["Brandt", "13 June", "Petrakis", "2 million"],
        ),
        ("Nothing of that kind is here. Hello there. Well then.", []),
    ],
)
def test_identifiers(text: str, expected: list[str]) -> None:
    assert identifiers(text) == expected


@given(st.text())
def test_identifiers_are_verbatim(text: str) -> None:
    for found in find_identifiers(text):
        assert found.text.removesuffix("()") in text
        assert found.text


HOSTILE = [
    "a", "A", "Aa ", "1", "1,", "1.1.", "/", "a/", "_", "a_", "(", '"', "a@", "a.", "-", "0-", "$1", "«", "1 ", "Jan ",
    "Aa-", "ffffffff-", "https://", "#A1", "\n", "1:", ".", ". ", "…", "```", "```\n", "。", "\x00", "\ud800", "а.",
]  # fmt: skip


@pytest.mark.parametrize("unit", HOSTILE)
def test_linear_time_on_hostile_text(unit: str) -> None:
    text = unit * (200_000 // len(unit))
    started = time.perf_counter()
    sentences(text)
    words(text)
    identifiers(text)
    assert time.perf_counter() - started < 6
