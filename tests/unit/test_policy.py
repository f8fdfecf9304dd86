"""When a conversation is compacted: the arithmetic, the boundaries, and what is refused."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.conversation import Quiet
from app.domain.errors import PolicyInvalidError, UnknownPresetError
from app.domain.policy import (
    Budgets,
    Moment,
    Trigger,
    contradictions,
    evaluate,
    evaluate_append,
    quiet_after,
    trigger_tokens,
)
from app.domain.presets import PRESETS, resolve
from tests.builders import START, budgets, policy_of

ALWAYS = Quiet()


def due(
    tokens: int, moment: Moment, *, quiet: Quiet = ALWAYS, last_seq: int = 9, minutes: int = 0, **overrides: Any
) -> str | None:
    policy = policy_of(context_window=4_000, **overrides)
    trigger = evaluate(
        policy,
        budgets(policy),
        moment=moment,
        tokens=tokens,
        last_seq=last_seq,
        quiet=quiet,
        now=START + timedelta(minutes=minutes),
    )
    return trigger.name if trigger else None


def test_the_arithmetic_of_the_design() -> None:
    found = budgets(policy_of(context_window=4_000))

    assert found == Budgets(
        limit=4_000,
        window=3_600,
        budget=3_060,
        target=1_836,
        state_tokens=367,
        state_cap=734,
        anchor_tokens=459,
        pin_tokens=306,
    )


def test_a_large_model_reserves_no_more_than_a_reply_needs() -> None:
    found = budgets(policy_of(), 1_048_576)

    assert found.window == 1_048_576 - 4_096
    assert found.state_tokens == 800


def test_an_output_reserve_of_zero_is_a_value() -> None:
    assert budgets(policy_of(context_window=4_000, output_reserve=0, window_share=1.0)).budget == 4_000


@pytest.mark.parametrize(
    ("tokens", "moment", "expected"),
    [
        (6_999, "stored", None),
        (7_000, "stored", "background"),
        (8_499, "before_call", None),
        (8_499, "stored", "background"),
        (8_500, "before_call", "sync"),
        (25_000, "before_call", "sync"),
    ],
)
def test_the_boundaries_of_semantic(tokens: int, moment: Moment, expected: str | None) -> None:
    policy = policy_of(context_window=10_000, output_reserve=0, window_share=1.0)
    found = evaluate(policy, budgets(policy), moment=moment, tokens=tokens, last_seq=9, quiet=ALWAYS, now=START)

    assert (found.name if found else None) == expected


def test_a_share_of_an_odd_budget_fires_only_from_the_share_on() -> None:
    policy = policy_of(context_window=10_001, output_reserve=0, window_share=1.0)

    assert trigger_tokens(policy, budgets(policy)) == 7_001  # 7 000 / 10 001 is 0.69993


def test_max_tokens_fires_at_greater() -> None:
    assert due(1_000, "before_call", max_tokens=1_000) is None
    assert due(1_001, "before_call", max_tokens=1_000) == "max_tokens"


def test_max_tokens_of_minus_one_clears_every_automatic_trigger() -> None:
    policy = policy_of(context_window=4_000, max_tokens=-1)

    assert policy.triggers == ()
    assert trigger_tokens(policy, budgets(policy)) is None


@pytest.mark.parametrize("nothing", [{}, {"max_tokens": 0}])
def test_max_tokens_of_zero_is_the_presets_default(nothing: dict[str, int]) -> None:
    assert policy_of(**nothing).triggers == PRESETS["semantic"].policy.triggers


def test_short_forms_are_shown_resolved() -> None:
    policy = policy_of(background_at=0.65, sync_at=0.8, keep_tail_messages=7)

    assert [(trigger.name, trigger.at.share, trigger.keep_messages) for trigger in policy.triggers] == [
        ("background", 0.65, 7),
        ("sync", 0.8, 7),
    ]
    assert policy.manual_keep.messages == 7


def test_an_append_claims_an_inline_trigger_where_there_is_no_stored_one() -> None:
    only_inline = [{"name": "sync", "on": "before_call", "at": {"share": 0.8}, "run": "inline"}]
    policy = policy_of(context_window=4_000, triggers=only_inline)
    both = policy_of(context_window=4_000)

    def claimed(tokens: int, of: Any) -> Trigger | None:
        return evaluate_append(of, budgets(of), tokens=tokens, last_seq=9, quiet=ALWAYS, now=START)

    assert claimed(2_448, policy) == policy.triggers[0]
    assert claimed(2_447, policy) is None
    assert claimed(3_000, both) == both.triggers[0]  # the stored one, never the inline one


def test_quiet_ends_by_a_new_message_that_weighs_something() -> None:
    policy = policy_of(context_window=4_000)
    quiet = quiet_after(policy, budgets(policy), seen_seq=9, predicted_tokens=2_200)

    assert due(2_500, "stored", quiet=quiet, last_seq=9) is None  # nothing that the plan had not seen
    assert due(2_352, "stored", quiet=quiet, last_seq=10) is None  # 2 200 + 0.05 of 3 060 is 2 353
    assert due(2_353, "stored", quiet=quiet, last_seq=10) == "background"


def test_quiet_ends_by_time() -> None:
    quiet = Quiet(until=START + timedelta(minutes=5))

    assert due(3_000, "before_call", quiet=quiet, minutes=4) is None
    assert due(3_000, "before_call", quiet=quiet, minutes=5) == "sync"


@pytest.mark.parametrize(
    ("overrides", "field", "words"),
    [
        ({"target": 1.5}, "policy.target", "less than or equal to 1"),
        ({"target": 0}, "policy.target", "greater than 0"),
        ({"background_at": 1.2}, "policy.triggers.0.at.share", "less than or equal to 1"),
        ({"background_at": "much"}, "policy.background_at", "must be a number"),
        ({"max_tokens": -2}, "policy.max_tokens", "-1 for no automatic trigger"),
        ({"max_tokens": True}, "policy.max_tokens", "a number of tokens"),
        ({"recall": "auto"}, "policy.recall", "Extra inputs"),
        ({"context_window": 10}, "policy.context_window", "greater than or equal to 1000"),
        ({"triggers": "none"}, "policy.triggers", "valid tuple"),
        (
            {"triggers": [{"name": "sync", "on": "stored", "at": {"share": 0.8}, "run": "inline"}]},
            "policy.triggers.0",
            'runs "background"',
        ),
        (
            {"triggers": [{"name": "sync", "on": "before_call", "at": {"share": 0.8, "tokens": 5}, "run": "inline"}]},
            "policy.triggers.0.at",
            "exactly one of",
        ),
    ],
)
def test_what_is_out_of_range_is_named(overrides: dict[str, Any], field: str, words: str) -> None:
    with pytest.raises(PolicyInvalidError) as caught:
        policy_of(**overrides)

    assert caught.value.errors[0].field == field
    assert words in caught.value.errors[0].message


def test_an_unknown_preset_lists_those_there_are() -> None:
    with pytest.raises(UnknownPresetError, match="semantic"):
        resolve("handoff", {})


def test_a_floor_above_the_target_shows_the_arithmetic() -> None:
    policy = policy_of(context_window=4_000)
    (found,) = contradictions(policy, budgets(policy), system_tokens=1_103)

    assert found.field == "policy.context_window"
    assert "1103 + state cap 734 = 1837 tokens exceeds the target of 1836 (0.6 × budget 3060)" in found.message
    assert contradictions(policy, budgets(policy), system_tokens=1_102) == []


@pytest.mark.parametrize(
    ("overrides", "trigger"),
    [
        ({"target": 0.7}, "background, which fires from 2142"),
        ({"sync_at": 0.5}, "sync, which fires from 1530"),
        ({"max_tokens": 1_835}, "max_tokens, which fires from 1836"),
    ],
)
def test_a_target_above_a_trigger_is_named(overrides: dict[str, Any], trigger: str) -> None:
    policy = policy_of(context_window=4_000, **overrides)
    (found,) = contradictions(policy, budgets(policy), system_tokens=0)

    assert found.field == "policy.target"
    assert trigger in found.message


def test_a_target_just_below_every_trigger_is_fine() -> None:
    policy = policy_of(context_window=4_000, target=0.699, max_tokens=2_142)

    assert contradictions(policy, budgets(policy), system_tokens=0) == []


@given(st.integers(1_000, 2_000_000), st.integers(1, 100).map(lambda percent: percent / 100))
def test_a_share_fires_at_greater_or_equal_exactly(limit: int, share: float) -> None:
    policy = policy_of(target=0.001, background_at=share, sync_at=1.0)
    found = budgets(policy, limit)
    first = policy.triggers[0].at.first_tokens(found)

    assert first * 100 >= round(share * 100) * found.budget
    assert (first - 1) * 100 < round(share * 100) * found.budget
