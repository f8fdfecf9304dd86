"""Allotments that depend on what else is served: digests have only what nothing else needs."""

from __future__ import annotations

from app.core.model.policies.policy import Budgets


def digest_room(budgets: Budgets, *, beside: int) -> int:
    """Tokens that digests may take: their share, or less where block and held messages would exceed half of the budget.

    Args:
        budgets: The policy's shares in tokens.
        beside: What the block without digests weighs, and the held messages after it.
    """
    below_half = (budgets.budget - 1) // 2
    return max(min(budgets.digest_tokens, below_half - beside), 0)
