"""Divides a model's window: how many tokens a context may have, and the share of each of its parts."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from app.core.model.policies.policy import CompactionPolicy

MAX_OUTPUT_RESERVE = 4_096  # a chat reply rarely needs more
OUTPUT_RESERVE_SHARE = Fraction(1, 10)
STATE_SHARE = Fraction(12, 100)  # so that a small window is not filled by its own state
STATE_CAP_FACTOR = 2
OUTPUT_DIVISOR = 2  # a state is at most half of what the summarizer can write: the rest is for its provenance


@dataclass(frozen=True, slots=True, kw_only=True)
class Budgets:
    """The policy's shares in tokens, each rounded down: limit 4 000, window 3 600, budget 3 060, target 1 836."""

    limit: int
    window: int
    budget: int
    target: int
    state_tokens: int
    state_cap: int
    anchor_tokens: int | None
    """The room for anchors; ``None`` = all there is."""
    pin_tokens: int
    digest_tokens: int = 0
    """The room for digests; 0 if none is served."""

    def share(self, share: float) -> int:
        """A share of the budget in tokens, rounded down."""
        return part_of(share, self.budget)

    def digest_room(self, *, beside: int) -> int:
        """Tokens for digests: their share, or less if the block and held messages would exceed half of the budget.

        ``beside`` is the size of the block without digests and of the held messages after it.
        """
        return max(min(self.digest_tokens, (self.budget - 1) // 2 - beside), 0)

    def with_target(self, share: float) -> Budgets:
        """These budgets with another target, as a share of the budget."""
        return replace(self, target=self.share(share))


def budgets_of(policy: CompactionPolicy, model_limit: int, *, output_limit: int | None = None) -> Budgets:
    """How many tokens a context of this policy may have, and each share of them.

    Args:
        policy: The policy.
        model_limit: The chat model's input limit.
        output_limit: The summarizer's output limit; needed if the state is a share of the window.
    """
    limit = policy.context_window or model_limit
    default_reserve = min(MAX_OUTPUT_RESERVE, math.floor(OUTPUT_RESERVE_SHARE * limit))
    reserve = default_reserve if policy.output_reserve is None else policy.output_reserve
    window = max(limit - reserve, 0)
    budget = part_of(policy.window_share, window)
    state_tokens = _state_tokens(policy, window, budget, output_limit)
    return Budgets(
        limit=limit,
        window=window,
        budget=budget,
        target=part_of(policy.target, budget),
        state_tokens=state_tokens,
        state_cap=_state_cap(policy, state_tokens),
        anchor_tokens=None if policy.anchor_share is None else part_of(policy.anchor_share, budget),
        pin_tokens=part_of(policy.pin_share, budget),
        digest_tokens=part_of(policy.digest_share, budget) if policy.levels else 0,
    )


def _state_tokens(policy: CompactionPolicy, window: int, budget: int, output_limit: int | None) -> int:
    if policy.state_share is None:
        return min(policy.state_tokens, math.floor(STATE_SHARE * budget))
    planned = part_of(policy.state_share, window)
    return planned if output_limit is None else min(planned, output_limit // OUTPUT_DIVISOR)


def _state_cap(policy: CompactionPolicy, planned: int) -> int:
    cap = STATE_CAP_FACTOR * planned
    return cap if policy.state_cap is None else max(min(cap, policy.state_cap), planned)


@lru_cache(maxsize=1_024)
def exact_share(share: float) -> Fraction:
    """A share as an exact fraction, 0.7 as seven tenths: with binary fractions 2 142 would be rounded down to 2 141."""
    return Fraction(str(share))


def part_of(share: float, whole: int) -> int:
    """An exact share of a whole, rounded down. It is computed in whole numbers for speed: each request needs many."""
    found = exact_share(share)
    return found.numerator * whole // found.denominator
