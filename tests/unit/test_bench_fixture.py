"""The fixture's file of rows, its identifiers and its plans; the fixture's own test covers the database."""

from __future__ import annotations

import itertools
import lzma
from uuid import UUID

import pytest

from bench.fixture.conversations import PLANS, PRESETS
from bench.fixture.making import numbered_ids
from bench.fixture.rows import Dump, Table
from bench.fixture.served import differences

DUMP = Dump(
    revision="0123abc",
    tables=(
        Table(name="empty", columns=("id",), rows=()),
        Table(name="messages", columns=("id", "content"), rows=(rb"1\ta\nb", b"2\t{}", "3\t\u2028".encode())),
    ),
)


def test_rows_come_back_as_they_were() -> None:
    assert Dump.unpacked(DUMP.packed()) == DUMP


def test_another_file_is_refused() -> None:
    with pytest.raises(lzma.LZMAError):
        Dump.unpacked(b"not ours")


def test_identifiers_are_the_same_each_time_and_sort_as_they_were_made() -> None:
    first, second = numbered_ids(), numbered_ids()
    made = [first() for _ in range(5_000)]

    assert made == [second() for _ in range(5_000)]
    assert all(one < other for one, other in itertools.pairwise(made))
    assert {UUID(str(each)).version for each in made} == {7}


def test_there_is_a_conversation_of_every_preset_in_three_languages() -> None:
    names = [plan.name for plan in PLANS]

    assert len(names) == len(set(names)) >= 40
    assert {f"{preset}-{language}" for preset in PRESETS for language in ("en", "ru", "zh")} <= set(names)
    assert {plan.tenant for plan in PLANS} == {"first", "second"}


def test_equal_values_do_not_differ() -> None:
    value = {"a": [1, {"b": None}], "c": "d"}

    assert not list(differences(value, {"c": "d", "a": [1, {"b": None}]}))


@pytest.mark.parametrize(
    ("then", "now", "paths"),
    [
        ({"a": 1}, {"a": 2}, ["a"]),
        ({"a": 1}, {"a": 1.0}, ["a"]),
        ({"a": True}, {"a": 1}, ["a"]),
        ({"a": [1, 2]}, {"a": [1, 3]}, ["a.1"]),
        ({"a": [1, 2]}, {"a": [1]}, ["a"]),
        ({"a": {"b": 1}}, {"a": {"c": 1}}, ["a.b", "a.c"]),
        ({"a": None}, {"a": {}}, ["a"]),
    ],
)
def test_what_differs_is_named_by_its_path(then: object, now: object, paths: list[str]) -> None:
    assert list(differences(then, now)) == paths
