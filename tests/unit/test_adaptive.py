"""Thresholds that follow a conversation never leave their bounds, and each cause moves them in one direction."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.model.errors import PolicyInvalidError
from app.core.model.figure_labels import trigger_label
from app.core.model.gauge import Breakdown, explained_thresholds, gauge_of
from app.core.model.pace import MAX_TURNS, MIN_TURNS, MessageSample, Pace, pace_of
from app.core.model.policies.adaptive import AdaptedThresholds, adapt, adapted_policy, adaptive_errors
from app.core.model.policies.budgets import Budgets, budgets_of
from app.core.model.policies.operator import operator_numbers
from app.core.model.policies.policy import CompactionPolicy
from app.core.model.policies.resolving import resolve
from app.core.planning.triggers import trigger_tokens
from app.core.text.localization.catalogue import CATALOGUES

WINDOW: Final = 10_000
THEN: Final = datetime(2026, 1, 5, 9, tzinfo=UTC)
CALM: Final = Pace(
    turns=8, turn_tokens=100, largest_turn=150, turn_seconds=60.0, compaction_seconds=4.0, cached_share=0.0
)
paces = st.builds(
    Pace,
    turns=st.just(8),
    turn_tokens=st.integers(0, 20_000),
    largest_turn=st.integers(0, 50_000),
    turn_seconds=st.none() | st.floats(0.001, 1e6),
    compaction_seconds=st.none() | st.floats(0, 1e5),
    cached_share=st.floats(0, 1),
)


def under(preset: str = "semantic", **overrides: Any) -> tuple[CompactionPolicy, Budgets]:
    policy = resolve(preset, {"adaptive": "on", **overrides})
    return policy, budgets_of(policy, WINDOW, output_limit=8_000)


def adapted(pace: Pace | None, *, floor: int = 0, **overrides: Any) -> AdaptedThresholds:
    found = adapt(*under(**overrides), pace, floor=floor)
    assert found is not None
    return found


def thresholds(pace: Pace | None, **options: Any) -> tuple[float, float]:
    found = adapted(pace, **options)
    return found.background, found.target


def test_the_policy_s_own_numbers_hold_until_something_is_known() -> None:
    assert thresholds(None) == thresholds(CALM) == (0.70, 0.60)
    assert adapted(None).pace is None


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        pytest.param({"cached_share": 1.0}, (0.80, 0.40), id="all-cached-later-and-deeper"),
        pytest.param({"cached_share": 0.2}, (0.72, 0.54), id="a-fifth-cached"),
        pytest.param({"turn_tokens": 130, "cached_share": 0.2}, (0.72, 0.49), id="larger-turns-deeper"),
        pytest.param({"compaction_seconds": None, "cached_share": 1.0}, (0.70, 0.40), id="not-later-untimed"),
        pytest.param({"largest_turn": 1_300}, (0.67, 0.60), id="room-for-the-largest-turn"),
        pytest.param({"compaction_seconds": 600.0}, (0.69, 0.60), id="slow-compactions-earlier"),
        pytest.param({"turn_tokens": 1_000, "largest_turn": 3_000}, (0.65, 0.40), id="as-early-and-deep-as-may-be"),
    ],
)
def test_each_cause_moves_them(changed: dict[str, Any], expected: tuple[float, float]) -> None:
    assert thresholds(replace(CALM, **changed)) == expected


def test_another_policy_has_other_bounds() -> None:
    assert thresholds(replace(CALM, cached_share=1.0), preset="sessions") == (0.93, 0.4)  # turns wait from 0.95 on
    wide = {"background_max": 0.84, "target_min": 0.2}
    heavy = replace(CALM, turn_tokens=500, largest_turn=50, turn_seconds=1e6, cached_share=1.0)
    assert thresholds(heavy, adaptive_bounds=wide) == (0.84, 0.2)
    assert thresholds(heavy) == (0.80, 0.40), "control"


def test_no_target_below_what_no_compaction_takes_away() -> None:
    _, budgets = under()
    heavy = replace(CALM, turn_tokens=1_000)
    assert thresholds(heavy)[1] == 0.40
    assert thresholds(heavy, floor=budgets.share(0.501))[1] == 0.51
    assert thresholds(heavy, floor=budgets.budget)[1] == 0.60, "the policy's own, which nothing reaches either"


def test_off_or_without_a_trigger_that_can_follow_nothing_is_adapted() -> None:
    policy = resolve("semantic", {})
    assert adapt(policy, budgets_of(policy, WINDOW), CALM) is None
    assert adapt(*under("turn_end"), CALM) is None
    assert adapt(*under("handoff"), CALM) is None


@pytest.mark.parametrize(
    ("preset", "overrides", "field"),
    [
        ("turn_end", {}, "policy.adaptive"),
        ("handoff", {}, "policy.adaptive"),
        ("semantic", {"background_at": None}, "policy.adaptive"),
        ("semantic", {"adaptive_bounds": {"background_min": 0.71}}, "policy.adaptive_bounds.background_min"),
        ("semantic", {"adaptive_bounds": {"background_max": 0.69}}, "policy.adaptive_bounds.background_max"),
        ("semantic", {"adaptive_bounds": {"background_max": 0.86}}, "policy.adaptive_bounds.background_max"),
        ("semantic", {"adaptive_bounds": {"target_min": 0.61}}, "policy.adaptive_bounds.target_min"),
        ("semantic", {"adaptive_bounds": {"target_max": 0.59}}, "policy.adaptive_bounds.target_max"),
        ("semantic", {"adaptive_bounds": {"target_max": 0.65}}, "policy.adaptive_bounds.target_max"),
        ("semantic", {"adaptive": "off", "adaptive_bounds": {"target_min": 0.61}}, "policy.adaptive_bounds.target_min"),
    ],
)
def test_what_makes_no_sense_is_named(preset: str, overrides: dict[str, Any], field: str) -> None:
    assert [error.field for error in adaptive_errors(*under(preset, **overrides))] == [field]


@pytest.mark.parametrize("preset", ["semantic", "hierarchical", "sessions", "research"])
def test_every_preset_that_can_follow_may(preset: str) -> None:
    assert list(adaptive_errors(*under(preset))) == []


def test_bounds_that_an_operator_s_new_numbers_contradict_let_the_policy_s_own_hold() -> None:
    found = adapted(replace(CALM, turn_tokens=1_000), adaptive_bounds={"target_max": 0.66})
    assert (found.background, found.target, found.pace) == (0.70, 0.60, None)


def test_no_notice_names_a_threshold_that_moves() -> None:
    catalogue = CATALOGUES["en"]
    assert "70" in trigger_label(catalogue, "background", resolve("semantic", {})), "control"
    assert "70" not in trigger_label(catalogue, "background", under()[0])
    assert "85" in trigger_label(catalogue, "sync", under()[0])


def test_an_operator_can_switch_it_on_for_a_preset() -> None:
    numbers = operator_numbers({"semantic": {"adaptive": "on"}})
    assert resolve("semantic", numbers.completed_overrides("semantic", {})).adaptive == "on"
    with pytest.raises(PolicyInvalidError, match="adaptive"):
        operator_numbers({"semantic": {"adaptive": "sometimes"}})


@given(paces, st.sampled_from(["semantic", "sessions"]), st.integers(0, 20_000))
def test_they_never_leave_their_bounds(pace: Pace, preset: str, floor: int) -> None:
    policy, budgets = under(preset)
    found = adapt(policy, budgets, pace, floor=floor)
    assert found is not None
    sync = max(one.at.share or 0 for one in policy.triggers)
    assert (
        (found.own_background + found.own_target) / 2
        <= found.background
        <= max(sync - 0.05 + 1e-9, found.own_background)
    )
    assert found.own_target - 0.20 - 1e-9 <= found.target <= found.own_target < found.background
    changed, tokens = adapted_policy(policy, budgets, found)
    first = trigger_tokens(changed, tokens)
    assert first is not None
    assert tokens.target < first <= budgets.share(sync) + 1
    assert [one for one in changed.triggers if one.run == "inline"] == [
        one for one in policy.triggers if one.run == "inline"
    ], "where a turn waits stays as the policy says"


@given(paces, st.data())
def test_each_cause_moves_them_one_way(pace: Pace, data: st.DataObject) -> None:
    more: dict[str, Any] = {
        "turn_tokens": pace.turn_tokens + data.draw(st.integers(0, 5_000)),
        "largest_turn": pace.largest_turn + data.draw(st.integers(0, 5_000)),
        "compaction_seconds": None
        if pace.compaction_seconds is None
        else pace.compaction_seconds + data.draw(st.floats(0, 1e3)),
    }
    earlier, before = thresholds(replace(pace, **more)), thresholds(pace)
    assert earlier[0] <= before[0]
    assert earlier[1] <= before[1]
    cached = data.draw(st.floats(pace.cached_share, 1))
    later = thresholds(replace(pace, cached_share=cached))
    assert later[0] >= before[0]
    assert later[1] <= before[1]


def said(turns: int, *, seconds: float = 30, cached: int = 0) -> list[MessageSample]:
    """Turns with a question of 10 tokens, a call of 5, its result of 40, and a reply of 45."""
    steps = []
    for number in range(turns):
        at = THEN + timedelta(seconds=seconds * number)
        steps += [
            MessageSample(role="user", tokens=10, at=at),
            MessageSample(role="assistant", tokens=5, at=at),
            MessageSample(role="tool", tokens=40, at=at),
            MessageSample(role="user", tokens=0, at=at, is_command=True),
            MessageSample(role="assistant", tokens=45, at=at, input_tokens=1_000, cached_tokens=cached),
        ]
    return steps


def test_a_pace_is_what_the_newest_turns_were() -> None:
    old = [MessageSample(role="user", tokens=9_000, at=THEN - timedelta(days=9))]
    found = pace_of([*old, *said(20, cached=750)], [3.0, 8.5, 2.0], factor=1.25)
    assert found == Pace(
        turns=MAX_TURNS,
        turn_tokens=125,
        largest_turn=125,
        turn_seconds=30.0,
        compaction_seconds=8.5,
        cached_share=0.75,
    )


def test_a_pace_takes_some_turns() -> None:
    assert pace_of(said(MIN_TURNS - 1), []) is None
    assert pace_of(said(MIN_TURNS)[1:], []) is None, "the first of them began before what was read"
    found = pace_of(said(MIN_TURNS, seconds=0), [])
    assert found is not None
    assert (found.turn_seconds, found.compaction_seconds, found.cached_share) == (None, None, 0.0), "imported at once"


@pytest.mark.parametrize(
    ("locale", "pace", "sentence"),
    [
        (
            "en",
            replace(CALM, cached_share=0.9),
            (
                "Compactions begin at 79 % of the budget (the policy says 70 %) and fold down to 40 % (60 %): a turn"
                " adds about 100 tokens, a compaction takes up to 4 s, and 90 % of what is sent comes from the"
                " provider's cache."
            ),
        ),
        ("en", None, "Too few turns yet to follow: compactions begin at 70 % of the budget and fold down to 60 %"),
        ("ru", replace(CALM, compaction_seconds=None), "длительность сжатий ещё не измерена"),
    ],
)
def test_the_gauge_says_why(locale: str, pace: Pace | None, sentence: str) -> None:
    found = adapted(pace)
    policy, budgets = adapted_policy(*under(), found)
    gauge = gauge_of(policy, budgets, Breakdown(tail=10), adaptive=explained_thresholds(found, CATALOGUES[locale]))
    assert gauge.adaptive is not None
    assert sentence in gauge.adaptive.explanation
    assert (gauge.background_at, gauge.target) == (
        -(-round(100 * found.background) * budgets.budget // 100),
        round(100 * found.target) * budgets.budget // 100,
    )
