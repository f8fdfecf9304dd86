"""One test over many rows tries them all, and tells which of them fail."""

from __future__ import annotations

import inspect

import pytest

from tests.rows import each


def test_every_row_is_tried_and_each_that_fails_is_told() -> None:
    tried: list[int] = []

    @each("number", [1, 2, 3])
    def rows(number: int) -> None:
        tried.append(number)
        assert number == 2

    with pytest.raises(ExceptionGroup, match="2 rows failed") as raised:
        rows()
    assert tried == [1, 2, 3]
    assert [one.__notes__ for one in raised.value.exceptions] == [
        [f"in the row {{'number': {number}}}"] for number in (1, 3)
    ]


def test_what_fails_alone_is_raised_as_it_is_and_a_skip_is_none() -> None:
    @each(("one", "other"), [(1, 1), (1, 2)])
    def alone(one: int, other: int) -> None:
        if one != other:
            pytest.fail("they differ")

    @each("row", ["x"])
    def skips(row: str) -> None:
        pytest.skip("not here")

    with pytest.raises(AssertionError, match="they differ"):
        alone()
    with pytest.raises(pytest.skip.Exception):
        skips()


def test_a_skip_hides_no_failure_and_a_table_without_rows_is_a_mistake() -> None:
    tried: list[int] = []

    @each("number", [1, 2, 3])
    def rows(number: int) -> None:
        tried.append(number)
        assert number > 1, "too small"
        if number == 2:
            pytest.skip("not here")

    with pytest.raises((AssertionError, pytest.skip.Exception)) as raised:
        rows()
    assert isinstance(raised.value, AssertionError)
    assert tried == [1, 2, 3]
    with pytest.raises(ValueError, match="no rows of number"):
        each("number", [])


@each("first", [1, 2])
@each("second", [10, 20])
async def test_rows_of_two_tables_meet_beside_fixtures(request: pytest.FixtureRequest, first: int, second: int) -> None:
    assert request.node.name == "test_rows_of_two_tables_meet_beside_fixtures", "one test for all rows"
    assert (first, second) in {(1, 10), (1, 20), (2, 10), (2, 20)}


def test_only_fixtures_are_asked_for() -> None:
    assert list(inspect.signature(test_rows_of_two_tables_meet_beside_fixtures).parameters) == ["request"]
