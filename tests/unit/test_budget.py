"""Choosing within a budget: what each way takes, and what it leaves."""

from __future__ import annotations

from itertools import accumulate, pairwise

from hypothesis import given
from hypothesis import strategies as st

from app.core.text.budget import MAX_LOOKS, Budget, best_first, each_fitting, first_fitting, make_fitting, without_last

COSTS = st.lists(st.integers(min_value=0, max_value=30), max_size=20)
ROOM = st.integers(min_value=-5, max_value=120)


def test_a_budget_takes_what_it_holds_and_no_more() -> None:
    budget = Budget(10)
    assert [budget.takes(cost) for cost in (6, 5, 4, 0, 1)] == [True, False, True, True, False]
    assert budget.remaining == 0
    assert not Budget(-1).takes(0), "what is overspent takes nothing"


def test_the_first_that_does_not_fit_ends_it_or_is_passed_over() -> None:
    assert first_fitting([3, 4, 9, 1], 10, int) == [3, 4]
    assert each_fitting([3, 4, 9, 1], 10, int) == [3, 4, 1]


@given(COSTS, ROOM)
def test_the_first_ones_are_the_longest_beginning_that_fits(costs: list[int], room: int) -> None:
    taken = first_fitting(costs, room, int)
    fitting = [count for count, total in enumerate(accumulate(costs, initial=0)) if total <= room]
    assert taken == costs[: max(fitting, default=0)]


@given(COSTS)
def test_more_room_only_adds_to_the_first_ones(costs: list[int]) -> None:
    for less, more in pairwise(first_fitting(costs, room, int) for room in range(0, sum(costs) + 5, 5)):
        assert more[: len(less)] == less


@given(COSTS, ROOM)
def test_each_that_fits_is_taken_and_nothing_left_out_would_fit_behind_them(costs: list[int], room: int) -> None:
    taken = each_fitting(range(len(costs)), room, costs.__getitem__)
    spent = sum(costs[place] for place in taken)
    assert not taken or spent <= room
    assert all(costs[place] > room - spent for place in range(len(costs)) if place not in taken)


def test_the_last_ones_go_until_enough_is_free() -> None:
    assert without_last([5, 4, 3], 0, int) == [5, 4, 3]
    assert without_last([5, 4, 3], 3, int) == [5, 4]
    assert without_last([5, 4, 3], 4, int) == [5]
    assert without_last([5, 4, 3], 100, int) == []


def test_the_best_by_now_comes_first() -> None:
    worth = {0: 5.0, 1: 4.0, 2: 3.0}
    order = []
    for option in best_first(worth, worth.__getitem__, int):
        order.append(option)
        worth[1] = 1.0  # the chosen one already says most of it
    assert order == [0, 2, 1]


def test_of_one_worth_the_smaller_key_comes_first() -> None:
    assert list(best_first([3, 1, 2], lambda _: 1.0, int)) == [1, 2, 3]


def test_what_is_worth_nothing_by_now_is_left_out() -> None:
    worth: dict[int, float | None] = {0: 5.0, 1: 4.0, 2: None}
    order = []
    for option in best_first(worth, worth.__getitem__, int):
        order.append(option)
        worth[1] = None
    assert order == [0]


def test_an_option_is_looked_at_a_bounded_number_of_times() -> None:
    looks = 0

    def falling(option: int) -> float:
        nonlocal looks
        looks += option == 0
        return 1_000.0 - looks if option == 0 else 0.0

    assert sorted(best_first([0, 1], falling, int)) == [0, 1]
    looks = 0
    ever_less = iter(range(1_000, 0, -1))
    assert sorted(best_first(range(5), lambda _: float(next(ever_less)), int)) == list(range(5))
    assert 1_000 - next(ever_less) <= 5 * (MAX_LOOKS + 2)


def test_what_weighs_too_much_is_made_again_with_so_much_less_room() -> None:
    rooms: list[int] = []

    def make(room: int) -> int:
        rooms.append(room)
        return room + 7  # the weight of the text around it

    assert make_fitting(make, lambda weight: weight - 100, 100) == 100
    assert rooms == [100, 93]


def test_with_the_least_room_it_is_made_for_the_last_time() -> None:
    rooms: list[int] = []

    def make(room: int) -> int:
        rooms.append(room)
        return 500

    assert make_fitting(make, lambda weight: weight - 100, 600, least_limit=1) == 500
    assert rooms == [600, 200, 1]
