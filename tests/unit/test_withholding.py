"""The search for what a provider blocks stays within the allowed calls, and comes closer with each."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from app.core.planning.withholding import WITHHELD, WithholdingSearch, with_placeholders
from tests.builders import message


def found(count: int, guilty: set[int], calls: int) -> tuple[range | None, int]:
    """The smallest range that passed, and the number of calls."""
    search, best, asked = WithholdingSearch(start=0, stop=count), None, 0
    while (hidden := search.next(calls - asked)) is not None:
        asked += 1
        blocked = bool(guilty - set(hidden))
        best = best if blocked else hidden
        search = search.after(hidden, blocked=blocked)
    return best, asked


@given(st.integers(1, 500), st.data(), st.integers(1, 12))
def test_one_culprit_is_always_withheld_and_little_beside_it(count: int, data: st.DataObject, calls: int) -> None:
    guilty = data.draw(st.integers(0, count - 1))
    best, asked = found(count, {guilty}, calls)
    assert asked <= calls
    assert best is not None
    assert guilty in best
    # The last call may be needed to confirm the finding.
    assert len(best) <= -(-count // 2 ** (calls - 1)) + 1


@given(st.integers(1, 200), st.data())
def test_with_calls_enough_exactly_the_culprit_is_withheld(count: int, data: st.DataObject) -> None:
    guilty = data.draw(st.integers(0, count - 1))
    assert found(count, {guilty}, 20)[0] == range(guilty, guilty + 1)


@given(st.integers(1, 100), st.sets(st.integers(0, 99), min_size=1), st.integers(1, 12))
def test_several_culprits_are_withheld_together_or_not_at_all(count: int, guilty: set[int], calls: int) -> None:
    there = {index for index in guilty if index < count}
    best, asked = found(count, there, calls)
    assert asked <= calls
    assert best is None or there <= set(best)


def test_a_provider_that_blocks_everything_is_given_up() -> None:
    best, asked = found(40, {0, 39}, 6)
    assert best is None
    assert asked == 6


def test_a_placeholder_keeps_its_place_and_says_nothing() -> None:
    first, second = message(1, "Hello there"), message(2, "The words that are blocked", role="assistant")
    shown = with_placeholders([first, second], [2])
    assert shown[0] is first
    assert (shown[1].seq, shown[1].role, shown[1].created_at) == (2, "assistant", second.created_at)
    assert (shown[1].content, shown[1].parts) == (WITHHELD, ())
    assert second.content == "The words that are blocked"
