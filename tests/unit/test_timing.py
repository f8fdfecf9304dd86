"""The comparison of times tells quadratic work from linear work."""

from __future__ import annotations

import re

import pytest

from tests.unit.timing import assert_linear, assert_linear_in


def test_linear_work_passes() -> None:
    assert_linear(lambda text: [sign.upper() for sign in text], "ab" * 100_000)
    assert_linear_in(lambda size: lambda: sum(range(size)), 1_000_000)


def test_work_that_is_too_short_to_be_compared_passes() -> None:
    assert_linear(len, "ab" * 100_000)


@pytest.mark.long
def test_control_quadratic_work_fails() -> None:
    with pytest.raises(pytest.fail.Exception, match="times as long as a quarter of it"):
        assert_linear(re.compile(r"a*b").search, "a" * 16_000)


@pytest.mark.long
def test_control_a_memory_of_texts_does_not_hide_quadratic_work() -> None:
    known: dict[str, object] = {}

    def remembered(text: str) -> object:
        if text not in known:
            known[text] = re.search(r"a*b", text)
        return known[text]

    with pytest.raises(pytest.fail.Exception, match="times as long as a quarter of it"):
        assert_linear(remembered, "a" * 32_000)
