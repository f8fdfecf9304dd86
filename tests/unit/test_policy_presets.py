"""The presets are what their designs say: the matrix, field by field, with the numbers of each design."""

from __future__ import annotations

from typing import Any, Final

import pytest

from app.core.model.policies.budgets import Budgets, budgets_of
from app.core.model.policies.contradictions import contradictions
from app.core.model.policies.policy import AdaptiveBounds, CompactionPolicy, Keep, SegmentBy
from app.core.model.policies.resolving import DEFAULT_PRESET, PRESETS, resolve
from app.core.model.schemas import SCHEMAS

BASE: Final[dict[str, Any]] = {
    "digest_share": 0.10,
    "recall_share": 0.15,
    "held_roles": ("system",),
    "oversized": "refuse",
    "segment_by": SegmentBy(),
    "fallback_model": None,
    "adaptive": "off",
    "adaptive_bounds": AdaptiveBounds(),
    "verify": "auto",
    "verifier_model": None,
    "continuity_floor": None,
    "instructions": "",
    "reasoning": "shown",
    "minimum_progress": 0.05,
    "sync_deadline": 20.0,
    "calls_per_chunk": 6,
    "calls_per_hour": 40,
    "cache": "auto",
    "cache_ttl": 3_600,
    "pin_share": 0.10,
    "over_allotment": "fold",
    "state_schema": "session",
    "target": 0.60,
    "window_share": 0.85,
    "output_reserve": None,
    "context_window": None,
    "estimator": "script",
    "state_tokens": 800,
    "state_cap": None,
    "state_share": None,
    "served_as": "pair",
    "levels": ("L1", "L2", "L3"),
    "recall": "auto",
    "anchor_share": 0.15,
    "protect": ("turn_0",),
    "on_failure": "truncate",
    "inject_system_context": False,
    "on_disconnect": "finish",
    "summarizer": "compaction_model",
    "notifications": "events",
}
DIFFERENT: Final[dict[str, dict[str, Any]]] = {
    # for each preset, in the order in which they are shown, the fields that are not as in BASE
    "semantic": {"state_cap": 800},
    "handoff": {
        "state_schema": "handoff",
        "estimator": "bytes",
        "state_tokens": 2_000,
        "levels": ("L2", "L3"),
        "recall": "off",
        "anchor_share": 0,
        "protect": (),
        "on_failure": "keep_full",
        "summarizer": "chat_model",
        "notifications": "summary",
    },
    "hierarchical": {"anchor_share": None},
    "turn_end": {
        "state_schema": "summary",
        "window_share": 1.0,
        "output_reserve": 0,
        "state_share": 0.10,
        "served_as": "assistant",
        "levels": (),
        "recall": "off",
        "anchor_share": 0,
        "protect": (),
        "on_failure": "keep_full",
        "inject_system_context": True,
        "on_disconnect": "interrupt",
        "summarizer": "chat_model",
        "notifications": "before_and_after",
    },
    "sessions": {
        "window_share": 1.0,
        "output_reserve": 0,
        "context_window": 8_000,
        "levels": (),
        "recall": "off",
        "protect": ("turn_0", "initial_objective", "constraint", "auth_checkpoint", "goal", "goal_statements"),
        "pin_share": 0.25,
        "over_allotment": "refuse",
    },
    "research": {
        "state_schema": "research",
        "state_tokens": 2_000,
        "anchor_share": 0.20,
        "protect": ("turn_0", "constraint", "goal"),
    },
}
KEPT: Final = {"turn_end": Keep(), "handoff": Keep(messages=20)}  # what a manual compaction keeps; otherwise a turn
FIRES: Final[dict[str, list[tuple[str, str, int, str, int, int, str]]]] = {
    # name, on, first token, run, turns kept, messages kept, fold; 0.85 × (100 000 − 4 096) is the budget of `semantic`
    "semantic": [("background", "stored", 57_063, "background", 0, 0, "to_target"),
                 ("sync", "before_call", 69_291, "inline", 0, 0, "to_target")],
    "handoff": [("max_tokens", "before_call", 69_291, "inline", 0, 20, "all")],
    "turn_end": [("completion", "completed", 90_000, "background", 0, 0, "all"),
                 ("interrupted", "interrupted", 90_000, "background", 1, 0, "all"),
                 ("sync", "before_call", 90_000, "inline", 1, 0, "all"),
                 ("mid_turn", "between_calls", 90_000, "inline", 1, 0, "all")],
    "sessions": [("background", "stored", 7_600, "background", 0, 0, "to_target"),
                 ("sync", "before_call", 7_600, "inline", 0, 0, "to_target")],
}  # fmt: skip


def of(name: str, limit: int = 100_000) -> tuple[CompactionPolicy, Budgets]:
    policy = PRESETS[name].policy
    return policy, budgets_of(policy, limit, output_limit=65_536)


def test_each_has_its_expectations_and_semantic_is_the_default() -> None:
    unknown = [name for name in PRESETS if name not in DIFFERENT]
    assert not unknown, f"DIFFERENT does not say what is expected of {unknown}"
    assert list(PRESETS) == list(DIFFERENT), "the presets are shown in another order than in DIFFERENT"
    assert DEFAULT_PRESET == "semantic"
    assert all(preset.policy.state_schema in SCHEMAS for preset in PRESETS.values())
    assert {preset.policy.state_schema for preset in PRESETS.values()} == set(SCHEMAS)


@pytest.mark.parametrize("name", DIFFERENT)
def test_its_column_of_the_matrix(name: str) -> None:
    policy = PRESETS[name].policy
    expected = BASE | DIFFERENT[name]
    assert {field: getattr(policy, field) for field in expected} == expected
    left = set(CompactionPolicy.model_fields) - set(expected) - {"triggers", "manual_keep"}
    assert left == set(), "every field is in the matrix"
    assert policy.manual_keep == KEPT.get(name, Keep(turns=1))


@pytest.mark.parametrize("name", DIFFERENT)
def test_its_triggers(name: str) -> None:
    policy, budgets = of(name)
    found = [
        (one.name, one.on, one.at.first_tokens(budgets), one.run, one.keep_turns, one.keep_messages, one.fold)
        for one in policy.triggers
    ]
    assert found == FIRES.get(name, FIRES["semantic"])


def test_the_handoff_fires_above_80_000_bytes_by_four_in_a_large_window() -> None:
    policy, budgets = of("handoff", 1_048_576)
    (trigger,) = policy.triggers
    assert not trigger.at.reached(budgets, tokens=80_000, messages=1)
    assert trigger.at.reached(budgets, tokens=80_001, messages=1)
    assert resolve("handoff", {"max_tokens": -1}).triggers == ()
    assert resolve("handoff", {"max_tokens": 0}) == resolve("handoff", {}) == policy


def test_a_tenth_of_the_window_is_a_summary_and_never_more_than_half_of_what_can_be_written() -> None:
    policy, budgets = of("turn_end")
    assert (budgets.window, budgets.state_tokens, budgets.state_cap) == (100_000, 10_000, 20_000)
    assert budgets_of(policy, 100_000, output_limit=8_192).state_tokens == 4_096


def test_sessions_has_its_own_window_whatever_the_model() -> None:
    _, budgets = of("sessions", 1_048_576)
    assert (budgets.window, budgets.budget, budgets.target, budgets.pin_tokens) == (8_000, 8_000, 4_800, 2_000)


@pytest.mark.parametrize("name", PRESETS)
def test_each_can_be_overridden_field_by_field(name: str) -> None:
    policy = resolve(name, {"context_window": 16_000, "digest_share": 0.05})
    assert policy == PRESETS[name].policy.model_copy(update={"context_window": 16_000, "digest_share": 0.05})


@pytest.mark.parametrize("name", PRESETS)
def test_each_can_be_met(name: str) -> None:
    """Every conversation under a preset that cannot be met would be refused."""
    policy = resolve(name, {})
    assert contradictions(policy, budgets_of(policy, 128_000), system_tokens=200) == []


def test_a_trigger_below_the_target_cannot_be_met() -> None:
    """The control: a compaction ends at 0.6 of the budget, and would be due again at once."""
    policy = resolve("semantic", {"target": 0.75})
    assert contradictions(policy, budgets_of(policy, 128_000), system_tokens=200)
