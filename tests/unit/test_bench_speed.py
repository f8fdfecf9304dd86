"""The bench's ratios and their intervals."""

from __future__ import annotations

import pytest

from bench.speed import folds, interval, question, ratio_of


def test_a_ratio_is_the_median_of_the_rounds() -> None:
    found = ratio_of("a", [0.2, 0.3, 0.9], [0.1, 0.1, 0.3])

    assert (found.ratio, found.low, found.high) == (3.0, 2.0, 3.0)
    assert (found.ms, found.against_ms) == (300.0, 100.0)


def test_one_slow_round_moves_no_ratio() -> None:
    even = [0.1] * 41

    assert ratio_of("a", [*even[:40], 60.0], even).high == pytest.approx(1.0)


def test_rounds_that_do_not_match_are_refused() -> None:
    with pytest.raises(ValueError, match="zip"):
        ratio_of("a", [0.1], [0.1, 0.2])


@pytest.mark.parametrize(("count", "places"), [(1, (0, 0)), (5, (0, 4)), (40, (13, 26)), (100, (40, 59))])
def test_the_interval_of_a_median_is_symmetric(count: int, places: tuple[int, int]) -> None:
    assert interval(count) == places
    assert places[0] == count - 1 - places[1]


def test_no_question_is_asked_twice() -> None:
    assert len({question(number) for number in range(200)}) == 200


@pytest.mark.long
def test_folds_are_timed_beside_plain_python() -> None:
    found = folds(1)

    assert [len(times) for times in found.values()] == [1, 1]
    assert min(times[0] for times in found.values()) > 0
