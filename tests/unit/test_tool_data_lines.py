"""A tool's data in few words: what stays, what goes, and that nothing is made up."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.reading.scoring import relevances
from app.core.reading.tool_data_lines import (
    DataLine,
    group_key,
    is_call,
    is_code_like,
    joined_records,
    lines_from_data,
    parse_line,
    parsed_dump,
    record_heads,
    records_in,
    terse_parts,
)

RESERVATION = {
    "reservation_id": "ZX81QK",
    "user_id": "ana_ruiz_77",
    "origin": "LIS",
    "cabin": "economy",
    "created_at": "2024-05-01T09:08:54",
    "flights": [
        {"flight_number": "QF101", "date": "2024-06-02", "price": 120, "origin": "LIS", "seats": 4},
        {"flight_number": "QF202", "date": "2024-06-03", "price": 80, "origin": "MAD", "seats": 9},
    ],
    "payment_history": [{"payment_id": "gift_card_12345", "amount": 200}],
    "bags": 2,
    "insurance": "no",
}


def texts(data: Any) -> list[str]:
    return [line.text for line in lines_from_data(data)]


def test_a_record_tells_its_values_behind_their_names_and_amounts_apart() -> None:
    assert texts(RESERVATION) == [
        "reservation_id=ZX81QK, user_id=ana_ruiz_77, origin=LIS, cabin=economy",
        "created_at=2024-05-01T09:08:54, bags=2, insurance=no",
        "flights: QF101 2024-06-02 LIS",
        "flights: QF202 2024-06-03 MAD",
        "payment_history: gift_card_12345, 200",
    ]


def test_a_table_by_id_is_told_like_a_list() -> None:
    cards = {"card_11": {"id": "card_11", "brand": "visa"}, "card_22": {"brand": "visa"}}

    assert texts({"cards": cards}) == ["cards: card_11, visa", "cards: card_22, visa"]


def test_what_is_small_inside_a_record_of_a_list_is_part_of_it() -> None:
    lamp = {"item_id": "A1-77", "options": {"color": "red", "size": "L"}, "tags": ["new"]}

    assert texts({"items": [lamp, {**lamp, "item_id": "B2-88", "options": {"color": "blue"}}]}) == [
        "items: A1-77, red, L, new",
        "items: B2-88, blue, new",
    ]


def test_measures_are_no_ids() -> None:
    lamp = {"name": "Lamp", "item_id": "A1-77", "shop_id": "S-100", "size": 376_593, "weight": 253.07999999999998}

    assert texts({"items": [lamp, {**lamp, "item_id": "B2-88"}]}) == [
        "items: Lamp, A1-77 S-100",
        "items: Lamp, B2-88 S-100",
    ]


def test_no_amount_stands_before_the_id_of_its_record() -> None:
    cards = {
        "visa_44": {"amount": 1.5, "brand": "visa", "id": "visa_44"},
        "voucher_77": {"source": "voucher", "amount": 250, "id": "voucher_77"},
    }
    lines = texts({"cards": cards})

    assert lines == ["cards: visa_44, 1.5", "cards: voucher_77, 250"]
    assert [terse_parts(line, set())[1] for line in lines] == [["visa_44, 1.5"], ["voucher_77, 250"]]


def test_records_of_one_list_stand_apart_behind_its_name() -> None:
    told = list(joined_records(["cards: card_11, visa", "cards: card_22", "id=7, x=LIS", "id=8"]))

    assert told == ["cards: card_11, visa | card_22", "id=7, x=LIS", "id=8"]
    assert records_in(told[0]) == ["cards: card_11, visa", "cards: card_22"]
    assert parse_line(told[0]).codes == ("card_11", "card_22")


def test_an_id_in_a_mere_list_gives_way_to_the_record_that_it_heads() -> None:
    mention, record = "orders: #W100200, #W300400", "#W300400, sent, A1-77"
    heads = record_heads([mention, record])

    assert heads == {"#w300400": record}
    assert terse_parts(mention, set(), heads=heads) == ("orders: ", ["#W100200"])
    assert terse_parts(record, set(), heads=heads)[1][0] == "#W300400"


def test_a_list_is_known_by_its_name_or_by_the_form_of_its_ids() -> None:
    assert group_key("cards: card_11, visa") == "cards: "
    assert group_key("evt_a1, Sync") == group_key("evt_b27, Review") != group_key("TR-7, Review")
    assert group_key("search(query=A1-77)") == ""


def test_russian_and_chinese_values_stay_as_they_are() -> None:
    assert texts({"город": "Казань", "номер": "ТК-48213"}) == ["город=Казань, номер=ТК-48213"]
    assert texts({"城市": "鹿特丹", "编号": "KD-48213"}) == ["城市=鹿特丹, 编号=KD-48213"]


def test_what_is_no_data_is_not_read() -> None:
    assert parsed_dump("plain words") is None
    assert parsed_dump("{broken") is None
    assert parsed_dump("[" * 100_000) is None
    assert parsed_dump('"a string"') is None
    assert parsed_dump('{"a": 1}') == {"a": 1}


def test_deep_and_wide_data_ends() -> None:
    deep: Any = {"id": "A1B2"}
    for _ in range(300):
        deep = {"inside": deep}
    wide = [{"id": f"ROW{number}"} for number in range(10_000)]

    assert len(lines_from_data(deep)) == 0
    assert len(lines_from_data(wide)) <= 80


def test_terse_lines_tell_each_value_once_and_no_names() -> None:
    told: set[str] = set()

    assert terse_parts("flights: QF101 2024-06-02 LIS, QF202 2024-06-02 MAD", told) == (
        "flights: ",
        ["QF101 2024-06-02 LIS", "QF202 MAD"],
    )
    assert terse_parts("reservation_id=ZX81QK, origin=LIS, cabin=economy", told) == ("", ["ZX81QK", "economy"])
    assert terse_parts("origin=LIS", told) == ("", [])


def test_a_line_is_read_back() -> None:
    line = parse_line("flights: QF101 2024-06-02, economy, 120, cabin=business")

    assert line.codes == ("QF101", "2024-06-02")
    assert line.words == ("economy", "business")
    assert line.amounts == ("120",)


def test_a_value_of_several_words_stays_one_value() -> None:
    lines = lines_from_data({"street": "12 Birch Street", "city": "New York", "zip": "10148", "country": "USA"})
    told: set[str] = set()

    assert [line.codes for line in lines] == [("12 Birch Street", "10148", "USA")]
    assert lines[0].words == ("New York",)
    assert terse_parts(lines[0].text, told) == ("", ["12 Birch Street", "New York", "10148", "USA"])


def test_a_call_is_read_back_with_its_arguments_as_values() -> None:
    told: set[str] = set()
    call = "run_command(command=pytest -q tests/a.py, limit=3)"

    assert is_call(call)
    assert not is_call("plain words (and more)")
    assert parse_line(call).codes == ("pytest -q tests/a.py",)
    assert terse_parts(call, told) == ("run_command: ", ["pytest -q tests/a.py", "limit=3"])


def test_amounts_without_a_name_go_with_the_value_before_them_or_not_at_all() -> None:
    assert terse_parts("cards: card_11, 80", set())[1] == ["card_11, 80"]
    assert terse_parts("cards: card_11, 80", {"card_11"})[1] == []
    assert terse_parts("cards: card_11, 80", set(), amounts=False)[1] == ["card_11"]


_SCALAR = st.none() | st.booleans() | st.integers(-9_999, 9_999) | st.text(max_size=12)
_DATA = st.recursive(
    _SCALAR,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(st.text(max_size=8), _DATA, max_size=5))
def test_nothing_is_told_that_the_data_does_not_say(data: dict[str, Any]) -> None:
    said = re.sub(r"\s+", " ", json.dumps(data, ensure_ascii=False)).lower()
    unescaped = said.encode().decode("unicode_escape", "ignore") if "\\" in said else said
    for line in lines_from_data(data):
        for value in (*line.codes, *line.words):
            assert value.lower() in said or "\\" in said or value.lower() in unescaped


def test_records_that_were_talked_of_alike_are_told_alike_whatever_their_words() -> None:
    """Their worth is a sum over sets of words, whose order differs between processes."""
    names = ["ab", "cd", "ef", "gh", "ij", "kl"]
    said = {name: [f"{name}{number}" for number in range(60)] for name in names}
    rare = [
        [word for number, word in enumerate(words) if number % 7 >= least]
        for least in range(1, 7)
        for words in said.values()
    ]
    records = [DataLine(" ".join(words), tuple(words), (), ()) for words in (*said.values(), *rare)]
    factors = relevances(records, frozenset(word for words in said.values() for word in words))
    assert len(set(factors[: len(names)])) == 1


@pytest.mark.parametrize(
    "word",
    [
        "a_b",
        "_a_b",
        "a_/b",
        "src/app/main.py",
        "a_b-c/d.e",
        "a.b@c.example",
        "a@.b.c",
        "s3://bucket/x",
        "W123",
        "12345",
    ],
)
def test_a_word_that_is_exact(word: str) -> None:
    assert is_code_like(word)


@pytest.mark.parametrize("word", ["word", "a_", "_", "a//b", "a/", "a.b_c", "a@b", "a@b.", "x y_z", "a_b" + "_c" * 200])
def test_a_word_that_is_not(word: str) -> None:
    assert not is_code_like(word)
