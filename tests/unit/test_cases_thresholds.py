"""Case 21: the boundaries to the token; the control fires only above a boundary, not at it."""

from __future__ import annotations

import pytest

from app.core.model.policies.budgets import Budgets
from app.core.model.policies.policy import Threshold
from tests.unit import test_policy


@pytest.mark.control("21")
@pytest.mark.parametrize("by", [1, -1], ids=["one token late", "one token early"])
@pytest.mark.parametrize("budget", [10_000, 846_518, 3_060, 9_999_999])
def test_control_a_threshold_that_is_one_token_off(monkeypatch: pytest.MonkeyPatch, budget: int, by: int) -> None:
    whole = Threshold.first_tokens

    def off(self: Threshold, budgets: Budgets) -> int | None:
        first = whole(self, budgets)
        return None if first is None else first + by

    test_policy.test_evaluation_at_the_boundaries_exactly(budget)
    monkeypatch.setattr(Threshold, "first_tokens", off)
    with pytest.raises(AssertionError):
        test_policy.test_evaluation_at_the_boundaries_exactly(budget)
