"""When a conversation is compacted: the arithmetic, the boundaries, and what is refused."""

from __future__ import annotations

import math
from dataclasses import asdict, fields, replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.model.conversation import MAX_WAIT, QuietPeriod
from app.core.model.errors import PolicyInvalidError, UnknownPresetError
from app.core.model.gauge import Breakdown, gauge_of
from app.core.model.policies.budgets import Budgets
from app.core.model.policies.contradictions import contradictions
from app.core.model.policies.policy import CompactionPolicy, Moment, Threshold
from app.core.model.policies.resolving import PRESETS, resolve
from app.core.model.policies.short_forms import SHORT_FORMS
from app.core.planning.triggers import (
    first_due_trigger,
    moments_at_rest,
    moments_of_append,
    moments_of_reply,
    quiet_after,
    trigger_messages,
    trigger_tokens,
)
from tests.builders import START, budgets, policy_of
from tests.corpus import assert_values, corpus, names

ALWAYS = QuietPeriod()


def due(
    tokens: int,
    moment: Moment,
    *,
    messages: int = 9,
    quiet: QuietPeriod = ALWAYS,
    last_seq: int = 9,
    minutes: int = 0,
    **overrides: Any,
) -> str | None:
    policy = policy_of(context_window=4_000, **overrides)
    trigger = first_due_trigger(
        policy,
        budgets(policy),
        moments={moment},
        tokens=tokens,
        messages=messages,
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
        digest_tokens=306,
    )


def test_the_verifier_is_a_language_model_or_the_operators_choice() -> None:
    assert policy_of().verifier_model is None
    named = policy_of(verifier_model="openai:judge", fallback_model="openai:second")
    assert named.models == {"fallback_model": "openai:second", "verifier_model": "openai:judge"}
    for wrong in ("", "x" * 201, 7, "offline"):
        with pytest.raises(PolicyInvalidError, match=r"policy\.verifier_model"):
            policy_of(verifier_model=wrong)


def test_without_levels_digests_have_no_room_and_each_level_counts_once() -> None:
    assert budgets(policy_of(context_window=4_000, levels=[])).digest_tokens == 0
    assert budgets(policy_of(context_window=4_000, digest_share=0)).digest_tokens == 0
    assert policy_of(levels=["L3", "L1", "L3"]).levels == ("L1", "L3")
    with pytest.raises(PolicyInvalidError, match=r"policy\.levels"):
        policy_of(levels=["L0"])


def test_digests_have_what_keeps_block_and_held_messages_below_half_the_budget() -> None:
    found = budgets(policy_of(context_window=4_000))

    assert [found.digest_room(beside=beside) for beside in (0, 1_223, 1_224, 1_528, 1_529, 9_999)] == [
        306,
        306,
        305,
        1,
        0,
        0,
    ]
    even = replace(found, budget=100, digest_tokens=60)
    assert 40 + even.digest_room(beside=40) < 50
    odd = replace(found, budget=101, digest_tokens=60)
    assert 40 + odd.digest_room(beside=40) < 50.5


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
    found = first_due_trigger(
        policy, budgets(policy), moments={moment}, tokens=tokens, messages=9, last_seq=9, quiet=ALWAYS, now=START
    )

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


@pytest.mark.parametrize(("window", "first"), [(4_000, 2_602), (32_000, 20_001)])
def test_max_tokens_keeps_the_share_that_the_preset_has_beside_its_own_number(window: int, first: int) -> None:
    policy = resolve("handoff", {"context_window": window, "max_tokens": 20_000})
    (trigger,) = policy.triggers
    assert (trigger.at.tokens, trigger.at.share, trigger.keep_messages, trigger.fold) == (20_000, 0.85, 20, "all")
    assert trigger.at.first_tokens(budgets(policy)) == first
    assert policy_of(max_tokens=20_000).triggers[-1].at == Threshold(tokens=20_000), "control: there is none"


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


def test_a_manual_compaction_keeps_what_both_short_forms_say() -> None:
    policy = policy_of(keep_tail_messages=6, keep_tail_turns=2)

    assert {(trigger.keep_turns, trigger.keep_messages) for trigger in policy.triggers} == {(2, 6)}
    assert (policy.manual_keep.turns, policy.manual_keep.messages) == (2, 6)


def trigger(name: str, on: Moment, at: dict[str, Any], **values: Any) -> dict[str, Any]:
    run = "inline" if on == "before_call" else "background"
    return {"name": name, "on": on, "at": at, "run": run} | values


ENDINGS = [
    trigger("completion", "completed", {"window": 0.9}, fold="all"),
    trigger("interrupted", "interrupted", {"window": 0.9}, fold="all", keep_turns=1),
    trigger("sync", "before_call", {"window": 0.9}, fold="all"),
]


def claimed(policy: CompactionPolicy, tokens: int, moments: frozenset[Moment], messages: int = 9) -> str | None:
    found = first_due_trigger(
        policy,
        budgets(policy),
        moments=moments,
        tokens=tokens,
        messages=messages,
        last_seq=9,
        quiet=ALWAYS,
        now=START,
    )
    return found.name if found else None


def test_an_append_claims_an_inline_trigger_where_there_is_no_stored_one() -> None:
    policy = policy_of(context_window=4_000, triggers=[trigger("sync", "before_call", {"share": 0.8})])
    both = policy_of(context_window=4_000)

    assert claimed(policy, 2_448, moments_of_append(policy, turn_is_over=False)) == "sync"
    assert claimed(policy, 2_447, moments_of_append(policy, turn_is_over=False)) is None
    assert claimed(both, 3_000, moments_of_append(both, turn_is_over=True)) == "background"  # never the inline one


def test_the_end_of_a_turn_has_moments_of_its_own() -> None:
    policy = policy_of(context_window=4_000, triggers=ENDINGS)
    first = 3_240  # 0.9 × the window of 3 600

    assert claimed(policy, first, moments_of_reply(interrupted=False)) == "completion"
    assert claimed(policy, first, moments_of_reply(interrupted=True)) == "interrupted"
    assert claimed(policy, first, moments_of_append(policy, turn_is_over=True)) == "completion"
    assert claimed(policy, first, moments_of_append(policy, turn_is_over=False)) == "sync"
    assert claimed(policy, first - 1, moments_of_reply(interrupted=False)) is None


def test_semantic_knows_no_end_of_a_turn_but_a_stored_reply() -> None:
    for interrupted in (True, False):
        assert (
            claimed(policy_of(context_window=4_000), 2_142, moments_of_reply(interrupted=interrupted)) == "background"
        )


def test_the_first_due_trigger_in_the_policys_order_is_the_one() -> None:
    triggers = [
        trigger("completion", "completed", {"tokens": 2_500}),
        trigger("background", "stored", {"tokens": 2_000}),
    ]
    policy, other = (policy_of(context_window=4_000, triggers=order) for order in (triggers, triggers[::-1]))
    moments = moments_of_reply(interrupted=False)

    assert [claimed(policy, tokens, moments) for tokens in (2_000, 2_001, 2_501)] == [None, "background", "completion"]
    assert claimed(other, 2_501, moments) == "background"


def test_messages_fire_at_greater_and_fold_all() -> None:
    policy = policy_of(triggers=[trigger("max_messages", "stored", {"messages": 50}, keep_messages=20)])

    assert [due(9, "stored", messages=count, triggers=policy.triggers) for count in (50, 51)] == [None, "max_messages"]
    assert policy.triggers[0].fold == "all"
    assert (trigger_messages(policy), trigger_tokens(policy, budgets(policy))) == (51, None)


def test_a_stored_policy_resolves_to_itself() -> None:
    triggers = [*ENDINGS, trigger("max_messages", "stored", {"messages": 50})]
    policy = policy_of(triggers=triggers)

    assert policy_of(triggers=[one.model_dump() for one in policy.triggers]) == policy
    assert policy_of(triggers=policy.triggers) == policy


def test_the_sweeper_looks_for_all_that_needs_no_turn() -> None:
    stored = trigger("background", "stored", {"tokens": 2_500})
    ended = trigger("completion", "completed", {"tokens": 2_200})
    inline = trigger("sync", "before_call", {"tokens": 2_000})
    counted = trigger("max_messages", "completed", {"messages": 30})

    def first(*triggers: dict[str, Any]) -> tuple[int | None, int | None, str | None]:
        policy = policy_of(context_window=4_000, triggers=triggers)
        found = budgets(policy)
        return (
            trigger_tokens(policy, found),
            trigger_messages(policy),
            claimed(
                policy,
                trigger_tokens(policy, found) or 0,
                moments_at_rest(policy, "completed"),
                trigger_messages(policy) or 0,
            ),
        )

    assert first(stored, ended, inline) == (2_201, None, "completion")
    assert first(stored, inline) == (2_501, None, "background")
    assert first(ended, inline) == (2_001, None, "sync")
    assert first(counted) == (None, 31, "max_messages")
    assert first() == (None, None, None)
    assert moments_at_rest(policy_of(triggers=[ended]), "interrupted").isdisjoint({"completed"})


def test_quiet_ends_by_a_new_message_that_weighs_something() -> None:
    policy = policy_of(context_window=4_000)
    quiet = quiet_after(policy, budgets(policy), seen_seq=9, predicted_tokens=2_200)

    assert due(2_500, "stored", quiet=quiet, last_seq=9) is None  # nothing came that the plan had not seen
    assert due(2_352, "stored", quiet=quiet, last_seq=10) is None  # 2 200 + 0.05 of 3 060 is 2 353
    assert due(2_353, "stored", quiet=quiet, last_seq=10) == "background"


@pytest.mark.case("14")
def test_a_lasting_floor_is_left_alone_for_a_hundred_messages() -> None:
    policy = policy_of(context_window=4_000)
    quiet = quiet_after(policy, budgets(policy), seen_seq=9, predicted_tokens=2_200, lasting_floor=True)

    assert quiet.reason == "irreducible_floor"
    assert due(9_000, "before_call", quiet=quiet, last_seq=109) is None
    assert due(9_000, "before_call", quiet=quiet, last_seq=110) == "sync"


def test_quiet_ends_by_time() -> None:
    quiet = QuietPeriod(until=START + timedelta(minutes=5))

    assert due(3_000, "before_call", quiet=quiet, minutes=4) is None
    assert due(3_000, "before_call", quiet=quiet, minutes=5) == "sync"


def test_a_quiet_period_that_a_wrong_clock_began_years_ahead_is_none() -> None:
    """The longest quiet period that can be planned is kept to its end, also if clocks differ a little."""
    longest = QuietPeriod(until=START + MAX_WAIT)
    assert due(3_000, "before_call", quiet=longest, minutes=0) is None
    assert due(3_000, "before_call", quiet=QuietPeriod(until=START + timedelta(days=1_500)), minutes=0) == "sync"


def test_what_is_out_of_range_is_named() -> None:
    def fault(overrides: dict[str, Any]) -> tuple[str, str]:
        with pytest.raises(PolicyInvalidError) as caught:
            policy_of(**overrides)
        return caught.value.errors[0].field, caught.value.errors[0].message

    assert_values(corpus("policy_faults"), fault, agrees=names)


def test_an_unknown_field_is_told_which_there_are() -> None:
    with pytest.raises(PolicyInvalidError) as caught:
        policy_of(layers=["L1"])

    for name in (*CompactionPolicy.model_fields, *SHORT_FORMS):
        assert name in caught.value.errors[0].message


def test_a_similar_field_is_looked_for_only_for_the_first_of_many() -> None:
    with pytest.raises(PolicyInvalidError) as caught:
        policy_of(**{f"max_tokens_{number}": 1 for number in range(1_000)})

    assert [" (is max_tokens meant?)" in error.message for error in caught.value.errors] == [True] * 20 + [False] * 980


MID_TURN = {"name": "mid_turn", "on": "between_calls", "at": {"share": 0.9}, "run": "inline", "keep_turns": 1}


def test_between_calls_is_due_there_and_nowhere_else() -> None:
    only: dict[str, Any] = {"triggers": [MID_TURN]}
    policy = policy_of(context_window=4_000, **only)

    assert due(2_754, "between_calls", **only) == "mid_turn"
    assert due(2_753, "between_calls", **only) is None
    assert due(2_754, "before_call", **only) is None
    elsewhere = moments_of_append(policy, turn_is_over=True) | moments_of_reply(interrupted=False)
    assert "between_calls" not in elsewhere | moments_at_rest(policy, "completed")
    assert trigger_tokens(policy, budgets(policy)) is None, "nothing for the sweeper's index"


def test_between_calls_somebody_waits() -> None:
    with pytest.raises(PolicyInvalidError, match='a trigger on "between_calls" runs "inline", not "background"'):
        policy_of(triggers=[MID_TURN | {"run": "background"}])


def test_an_unknown_preset_lists_those_there_are() -> None:
    with pytest.raises(UnknownPresetError, match="semantic"):
        resolve("nonesuch", {})


@pytest.mark.case("19")
def test_a_floor_above_the_target_shows_the_arithmetic() -> None:
    policy = policy_of(context_window=4_000)
    (found,) = contradictions(policy, budgets(policy), system_tokens=1_103)

    assert found.field == "policy.context_window"
    assert "1103 + state cap 734 = 1837 tokens exceeds the target of 1836 (0.6 × budget 3060)" in found.message
    assert contradictions(policy, budgets(policy), system_tokens=1_102) == []


def test_a_reserve_that_eats_the_window_is_the_field_that_is_named() -> None:
    policy = policy_of(context_window=4_000, output_reserve=3_900)
    found = contradictions(policy, budgets(policy), system_tokens=200)[0]

    assert found.field == "policy.output_reserve"
    assert "from a limit of 4000 less output_reserve 3900: lower output_reserve" in found.message
    small = policy_of(context_window=4_000, output_reserve=400)
    assert contradictions(small, budgets(small), system_tokens=1_200)[0].field == "policy.context_window"


@pytest.mark.case("19")
def test_what_can_never_be_met_is_refused_with_the_arithmetic_and_what_can_just_be_met_is_accepted() -> None:
    def refused(text: dict[str, Any]) -> tuple[str, str] | None:
        policy = policy_of(context_window=4_000, **text["overrides"])
        found = contradictions(policy, budgets(policy), system_tokens=text["system_tokens"])
        assert len(found) <= 1
        return (found[0].field, found[0].message) if found else None

    assert_values(corpus("policy_contradictions"), refused, agrees=names)


def test_a_target_just_below_every_trigger_is_fine() -> None:
    policy = policy_of(context_window=4_000, target=0.699, max_tokens=2_142)

    assert contradictions(policy, budgets(policy), system_tokens=0) == []


@pytest.mark.case("21")
@pytest.mark.parametrize("budget", [10_000, 846_518, 3_060, 9_999_999])
def test_evaluation_at_the_boundaries_exactly(budget: int) -> None:
    """0.6999 nothing, 0.70 background, 0.8499 background, 0.85 inline: the last integer below each, and the first."""
    policy = policy_of(context_window=budget, output_reserve=0, window_share=1.0)

    def found(tokens: int) -> tuple[str | None, str | None]:
        stored, inline = (claimed(policy, tokens, frozenset({moment})) for moment in ("stored", "before_call"))
        return stored, inline

    background, sync = -(-7 * budget // 10), -(-85 * budget // 100)
    assert budgets(policy).budget == budget
    assert found(6_999 * budget // 10_000) == (None, None)
    assert found(background - 1) == (None, None)
    assert found(background) == ("background", None)
    assert found(8_499 * budget // 10_000) == ("background", None)
    assert found(sync - 1) == ("background", None)
    assert found(sync) == ("background", "sync")


@given(st.integers(1, 10**6), st.integers(0, 10**6), st.integers(0, 10**6))
def test_a_threshold_of_messages_or_tokens_is_monotone(at: int, one: int, other: int) -> None:
    found = budgets(policy_of())
    less, more = sorted((one, other))

    for threshold in (Threshold(messages=at), Threshold(tokens=at)):
        small, large = (threshold.reached(found, tokens=size, messages=size) for size in (less, more))
        assert small <= large
        assert small == (less > at)


@given(st.integers(1_000, 2_000_000), st.integers(1, 100).map(lambda percent: percent / 100))
def test_a_share_fires_at_greater_or_equal_exactly(limit: int, share: float) -> None:
    policy = policy_of(target=0.001, background_at=share, sync_at=1.0)
    found = budgets(policy, limit)
    first = policy.triggers[0].at.first_tokens(found)

    assert first is not None
    assert first * 100 >= round(share * 100) * found.budget
    assert (first - 1) * 100 < round(share * 100) * found.budget


@given(st.lists(st.integers(0, 100_000), min_size=9, max_size=9), st.floats(0.7, 1.5))
def test_a_breakdown_by_the_factor_adds_up(parts: list[int], factor: float) -> None:
    names = [field.name for field in fields(Breakdown)]
    found = Breakdown(**dict(zip(names, parts, strict=True)))
    total = math.ceil(found.total * factor)
    shown = asdict(found.scaled(total))

    assert sum(shown.values()) == total
    assert all(abs(shown[name] - factor * part) <= 2 for name, part in zip(names, parts, strict=True))


def test_the_gauge_counts_the_end_of_a_turn_as_a_background_threshold() -> None:
    policy = policy_of(context_window=4_000, triggers=ENDINGS)
    gauge = gauge_of(policy, budgets(policy), Breakdown(tail=3_000))

    assert (gauge.background_at, gauge.sync_at, gauge.tokens_until_compaction) == (3_240, 3_240, 240)
