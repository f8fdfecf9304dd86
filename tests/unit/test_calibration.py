"""The clamped factor from reported usage (failure 17), with controls that remove the clamps."""

from __future__ import annotations

import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from app.core.model import calibration
from app.core.model.calibration import (
    MAX_FACTOR,
    MAX_STEP,
    MIN_FACTOR,
    MIN_TOKENS,
    adjusted_factor,
    counted,
    estimated_within,
)
from app.core.model.gauge import in_proportion

FACTORS = st.floats(min_value=MIN_FACTOR, max_value=MAX_FACTOR)
COUNTS = st.integers(min_value=-10, max_value=10**9)
ENOUGH = st.integers(min_value=MIN_TOKENS, max_value=10**7)
SMALL_STEP = 0.051  # five hundredths, and a float's inaccuracy


@pytest.mark.case("17")
@given(FACTORS, COUNTS, COUNTS)
def test_value_and_step_are_clamped_whatever_is_reported(factor: float, estimated: int, reported: int) -> None:
    after = adjusted_factor(factor, estimated=estimated, reported=reported)
    assert 0.7 <= after <= 1.5
    assert abs(after - factor) <= SMALL_STEP


@given(FACTORS, ENOUGH, ENOUGH)
def test_it_moves_towards_what_was_reported_and_never_past_it(factor: float, estimated: int, reported: int) -> None:
    aim = min(max(reported / estimated, MIN_FACTOR), MAX_FACTOR)
    after = adjusted_factor(factor, estimated=estimated, reported=reported)
    assert min(factor, aim) - 1e-9 <= after <= max(factor, aim) + 1e-9
    assert after != factor or math.isclose(factor, aim)


@given(FACTORS, ENOUGH, ENOUGH, ENOUGH)
def test_more_reported_never_means_a_smaller_factor(factor: float, estimated: int, one: int, other: int) -> None:
    low, high = sorted((one, other))
    assert adjusted_factor(factor, estimated=estimated, reported=low) <= adjusted_factor(
        factor, estimated=estimated, reported=high
    )


@pytest.mark.parametrize(
    ("estimated", "reported"),
    [(0, 5_000), (5_000, 0), (-1, 5_000), (5_000, -5_000), (0, 0), (30, 90), (199, 5_000), (5_000, 199)],
)
def test_garbage_and_tiny_requests_teach_nothing(estimated: int, reported: int) -> None:
    assert adjusted_factor(1.1, estimated=estimated, reported=reported) == 1.1


@pytest.mark.parametrize("ratio", [0.75, 0.9, 1.0, 1.15, 1.4])
def test_honest_reports_are_learnt(ratio: float) -> None:
    factor = 1.0
    for number in range(30):
        estimated = 3_000 + 500 * number
        factor = adjusted_factor(factor, estimated=estimated, reported=round(estimated * ratio))
    assert factor == pytest.approx(ratio, abs=0.01)


def test_a_stored_factor_outside_the_bounds_comes_back() -> None:
    assert adjusted_factor(9.0, estimated=1_000, reported=1_000) <= 1.5
    assert adjusted_factor(0.1, estimated=0, reported=0) == 0.7


def moved_by_one_wild_report() -> float:
    return adjusted_factor(1.0, estimated=20_000, reported=200_000) - 1.0


@pytest.mark.case("17")
def test_ten_times_too_high_once_is_one_small_step() -> None:
    assert 0 < moved_by_one_wild_report() <= SMALL_STEP
    # and four correct reports undo most of it
    factor = 1.0 + moved_by_one_wild_report()
    for _ in range(4):
        factor = adjusted_factor(factor, estimated=20_000, reported=20_000)
    assert factor < 1.025


@pytest.mark.control("17")
def test_without_the_clamp_of_the_step_one_wild_report_would_move_it_far(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibration, "MAX_STEP", math.inf)
    assert moved_by_one_wild_report() > SMALL_STEP


def wildest() -> float:
    factor = 1.0
    for _ in range(500):
        factor = adjusted_factor(factor, estimated=20_000, reported=200_000)
    return factor


@pytest.mark.case("17")
def test_always_ten_times_too_high_ends_at_the_bound() -> None:
    assert wildest() == pytest.approx(MAX_FACTOR)


@pytest.mark.control("17")
def test_without_the_clamp_of_the_value_it_would_end_at_ten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibration, "MAX_FACTOR", math.inf)
    assert wildest() > 9


def test_the_step_is_small_beside_the_room_between_the_thresholds() -> None:
    """One wild report at 69 % of the budget starts at most a background compaction, never an inline one."""
    assert 0.70 * (1 + MAX_STEP) < 0.85


def test_estimates_count_in_the_providers_tokens_rounded_up() -> None:
    assert [counted(10, factor) for factor in (0.7, 1.0, 1.1, 1.11, 1.5)] == [7, 10, 11, 12, 15]
    assert [estimated_within(100, factor) for factor in (0.7, 1.0, 1.1, 1.5)] == [142, 100, 90, 66]


@given(st.integers(min_value=-100, max_value=10**7), FACTORS)
def test_the_most_that_fits_fits_and_one_more_does_not(tokens: int, factor: float) -> None:
    most = estimated_within(tokens, factor)
    assert counted(most, factor) <= tokens < counted(most + 1, factor)


@given(st.lists(st.integers(min_value=0, max_value=10**5), min_size=2, max_size=9), FACTORS)
@example([1, 4], 1.25)
def test_shares_behind_others_count_for_no_more_than_alone(parts: list[int], factor: float) -> None:
    """A requested budget holds for the parts after the system prompt and the files."""
    total = counted(sum(parts), factor)
    shares = in_proportion(parts, total)
    assert sum(shares) == total
    assert all(share >= 0 for share in shares)
    for first in range(1, len(parts)):
        assert sum(shares[first:]) <= counted(sum(parts[first:]), factor)


def test_control_sums_that_are_rounded_down_count_for_more() -> None:
    total, alone = counted(1 + 4, 1.25), counted(4, 1.25)
    assert (total - 1 * total // (1 + 4), alone) == (6, 5)
