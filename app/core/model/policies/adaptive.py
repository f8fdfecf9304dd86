"""Thresholds that follow a conversation's pace within its policy's bounds. Off unless the policy says so.

Two aims pull in different directions. A compaction rewrites what the provider has cached. So where much comes from the
cache, compactions should be rare: they begin later and fold more. But nobody should have to wait: what is added while a
compaction runs must fit below the trigger that compacts inside a turn.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from app.core.model.errors import FieldError
from app.core.model.pace import Pace
from app.core.model.policies.budgets import Budgets, exact_share
from app.core.model.policies.policy import CompactionPolicy, Threshold, Trigger

MIN_TURNS_APART: Final = 3
"""The fewest turns between two compactions, even where a provider caches nothing: each compaction is a model call."""
MIN_TURNS_APART_CACHED: Final = 48
"""The fewest turns between two compactions where everything comes from the provider's cache."""
MIN_BELOW_SYNC: Final = Fraction(5, 100)
"""Default room between the latest background trigger and the trigger inside a turn, as a share of the budget."""
MAX_BELOW_TARGET: Final = Fraction(20, 100)
"""How far below its own target a policy lets a compaction fold by default, as a share of the budget."""
_PERCENT: Final = 100
"""Thresholds are whole percents of the budget: they are easy to read, and do not move with every turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ThresholdBounds:
    """Shares of the budget between which the thresholds stay; the policy's own numbers lie within them."""

    background_min: Fraction
    background_max: Fraction
    target_min: Fraction
    target_max: Fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class AdaptedThresholds:
    """The thresholds in force, as shares of the budget, and the numbers from which they were computed."""

    background: float
    target: float
    own_background: float
    """The policy's own number, from which ``background`` was adapted."""
    own_target: float
    pace: Pace | None
    """The pace to which they were adapted; ``None`` while there are too few turns: the policy's own numbers hold."""


def adapt(policy: CompactionPolicy, budgets: Budgets, pace: Pace | None, *, floor: int = 0) -> AdaptedThresholds | None:
    """The thresholds for a conversation of this pace.

    The more a turn adds and the longer a compaction takes, the earlier a compaction begins. The more comes from the
    provider's cache, the later it begins and the more it folds.

    Args:
        policy: The resolved policy.
        budgets: Its shares in tokens.
        pace: The pace that ``pace_of`` measured.
        floor: Tokens that no compaction can take away. The target is not set below them, unless the policy's own
            target is lower.

    Returns:
        ``None`` if the policy does not ask for adaptive thresholds, or has no trigger that can be adapted.
    """
    trigger = adaptable_trigger(policy)
    if policy.adaptive != "on" or trigger is None or budgets.budget <= 0:
        return None
    own, own_target = _share_of(trigger), exact_share(policy.target)
    background, target = own, own_target
    if any(adaptive_errors(policy, budgets)):  # stored before an operator's numbers changed
        pace = None
    if pace is not None:
        bounds = bounds_of(policy, budgets, trigger)
        background = _background_share(own, bounds, _sync_share(policy, budgets), budgets, pace)
        target = max(_target_share(own, bounds, budgets, pace), min(_floor_share(floor, budgets), own_target))
    return AdaptedThresholds(
        background=float(background),
        target=float(target),
        own_background=float(own),
        own_target=policy.target,
        pace=pace,
    )


def adapted_policy(
    policy: CompactionPolicy, budgets: Budgets, adapted: AdaptedThresholds
) -> tuple[CompactionPolicy, Budgets]:
    """The policy and its budgets with these thresholds in place of its own."""
    own = adaptable_trigger(policy)
    at = Threshold(share=adapted.background)
    triggers = tuple(one.model_copy(update={"at": at}) if one is own else one for one in policy.triggers)
    changed = policy.model_copy(update={"triggers": triggers, "target": adapted.target})
    return changed, budgets.with_target(adapted.target)


def adaptable_trigger(policy: CompactionPolicy) -> Trigger | None:
    """The trigger with an adaptable threshold: a background one at a share of the budget that folds to the target."""
    asked = (trigger for trigger in policy.triggers if trigger.on == "stored" and trigger.fold == "to_target")
    return next((one for one in asked if one.at.share is not None and one.at.tokens is None), None)


def bounds_of(policy: CompactionPolicy, budgets: Budgets, trigger: Trigger) -> ThresholdBounds:
    """The policy's bounds; those that it does not name are computed from its own numbers.

    By default a compaction begins between the middle of target and trigger, and 0.05 of the budget below the trigger
    inside a turn; and it folds down to the policy's target, or up to 0.20 of the budget deeper.
    """
    given, own, target = policy.adaptive_bounds, _share_of(trigger), exact_share(policy.target)
    latest = max(own, _sync_share(policy, budgets) - MIN_BELOW_SYNC)
    return ThresholdBounds(
        background_min=_bound_or_default(given.background_min, (own + target) / 2),
        background_max=_bound_or_default(given.background_max, latest),
        target_min=_bound_or_default(
            given.target_min, max(target - MAX_BELOW_TARGET, min(target, Fraction(1, _PERCENT)))
        ),
        target_max=_bound_or_default(given.target_max, target),
    )


def adaptive_errors(policy: CompactionPolicy, budgets: Budgets) -> Iterator[FieldError]:
    """Why these bounds, or adaptive thresholds under this policy at all, make no sense."""
    trigger = adaptable_trigger(policy)
    if trigger is None:
        if policy.adaptive == "on":
            yield FieldError(
                field="policy.adaptive",
                message="there is no trigger that could follow the conversation: it takes one on stored at a share of"
                " the budget that folds to_target (background_at)",
            )
        return
    if policy.adaptive == "off" and not any(policy.adaptive_bounds.model_dump().values()):
        return
    bounds, own, target = bounds_of(policy, budgets, trigger), _share_of(trigger), exact_share(policy.target)
    ordered = (
        ("background_min", bounds.background_min, own, "background_at"),
        ("target_min", bounds.target_min, target, "target"),
    )
    for name, least, number, called in ordered:
        if least > number:
            yield _out_of_bounds(name, f"is above {called} ({float(number):g})")
    if bounds.background_max < own:
        yield _out_of_bounds("background_max", f"is below background_at ({float(own):g})")
    if bounds.target_max < target:
        yield _out_of_bounds("target_max", f"is below the target ({policy.target:g})")
    if (
        bounds.background_max > (sync := _sync_share(policy, budgets))
        and policy.adaptive_bounds.background_max is not None
    ):
        yield _out_of_bounds("background_max", f"is above the trigger inside a turn ({float(sync):.2g})")
    if bounds.target_max >= bounds.background_min and target < own:
        yield _out_of_bounds("target_max", f"is not below background_min ({float(bounds.background_min):g})")


def _background_share(own: Fraction, bounds: ThresholdBounds, sync: Fraction, budgets: Budgets, pace: Pace) -> Fraction:
    # The more comes from the provider's cache, the later; but early enough that nobody has to wait.
    known = pace.compaction_seconds is not None and pace.turn_seconds is not None
    wish = own + exact_share(pace.cached_share) * (bounds.background_max - own) if known else own
    grows = Fraction(pace.largest_turn)
    if pace.compaction_seconds is not None and pace.turn_seconds is not None:
        grows += (
            pace.turn_tokens * exact_share(pace.compaction_seconds) / max(exact_share(pace.turn_seconds), Fraction(1))
        )
    return _between(
        bounds.background_min, _rounded_down(min(wish, sync - grows / budgets.budget)), bounds.background_max
    )


def _target_share(own: Fraction, bounds: ThresholdBounds, budgets: Budgets, pace: Pace) -> Fraction:
    apart = MIN_TURNS_APART + (MIN_TURNS_APART_CACHED - MIN_TURNS_APART) * exact_share(pace.cached_share)
    wish = own - apart * pace.turn_tokens / budgets.budget
    return _between(bounds.target_min, _rounded_down(wish), bounds.target_max)


def _sync_share(policy: CompactionPolicy, budgets: Budgets) -> Fraction:
    shares = (_inline_share(one.at, budgets) for one in policy.triggers if one.run == "inline")
    return min((share for share in shares if share is not None), default=Fraction(1))


def _inline_share(at: Threshold, budgets: Budgets) -> Fraction | None:
    if at.share is not None and at.tokens is None:
        return exact_share(at.share)
    first = at.first_tokens(budgets)
    return None if first is None else min(Fraction(first, budgets.budget), Fraction(1))


def _floor_share(floor: int, budgets: Budgets) -> Fraction:
    return Fraction(math.ceil(Fraction(floor * _PERCENT, budgets.budget)), _PERCENT)


def _share_of(trigger: Trigger) -> Fraction:
    return exact_share(trigger.at.share or 0)


def _bound_or_default(bound: float | None, default: Fraction) -> Fraction:
    return default if bound is None else exact_share(bound)


def _between(least: Fraction, value: Fraction, most: Fraction) -> Fraction:
    return max(least, min(value, most))


def _rounded_down(share: Fraction) -> Fraction:
    return Fraction(math.floor(share * _PERCENT), _PERCENT)


def _out_of_bounds(name: str, message: str) -> FieldError:
    return FieldError(field=f"policy.adaptive_bounds.{name}", message=message)
