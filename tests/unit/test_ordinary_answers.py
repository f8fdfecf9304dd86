"""In honest answers about ordinary talks almost no statement fails; usually only the failing part is cut."""

from __future__ import annotations

import pytest

from bench.trust.ordinary import KINDS, Counts, answers, counted


@pytest.fixture(scope="module", params=["open", pytest.param("work-open", marks=pytest.mark.long)])
def found(request: pytest.FixtureRequest) -> Counts:
    return counted(answers(request.param))


def test_hardly_an_honest_item_goes_as_a_whole(found: Counts) -> None:
    assert found["items", "all"] > 200
    assert found["items", "gone"] <= 0.01 * found["items", "all"]


def test_about_half_of_the_true_values_beside_a_wrong_one_are_left(found: Counts) -> None:
    all_, left = found["all", "changed, true values"], found["all", "changed, true values, left"]
    assert all_ > 500
    assert left >= 0.48 * all_, "0.38 and 0.44 where whole sentences go"


@pytest.mark.parametrize("kind", KINDS)
def test_few_honest_statements_fail(found: Counts, kind: str) -> None:
    assert found[kind, "failing"] <= 0.05 * found[kind, "all"]


def test_control_with_one_value_changed_nearly_all_fail(found: Counts) -> None:
    changed, failing = (sum(found[kind, which] for kind in KINDS) for which in ("changed", "changed, failing"))
    assert changed > 200
    assert failing >= 0.95 * changed
