"""The level that each segment gets from a budget: by value per token, in an order that more room only extends."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise, product

from hypothesis import given
from hypothesis import strategies as st

from app.core.segments.detail_choice import Form, Step, fitting_steps, token_worth, upgrade_steps

SEGMENTS = st.lists(
    st.lists(st.tuples(st.integers(0, 400), st.floats(0, 50)), min_size=1, max_size=5).map(
        lambda forms: [Form(str(number), tokens, value) for number, (tokens, value) in enumerate(forms)]
    ),
    max_size=6,
)


def value_of(segments: Sequence[Sequence[Form]], taken: Sequence[Step]) -> float:
    last = {step.segment: step.form for step in taken}
    return sum(forms[last.get(place, 0)].value for place, forms in enumerate(segments))


def tokens_of(segments: Sequence[Sequence[Form]], taken: Sequence[Step]) -> int:
    last = {step.segment: step.form for step in taken}
    return sum(forms[last.get(place, 0)].tokens - forms[0].tokens for place, forms in enumerate(segments))


def test_steps_go_along_the_hull_by_value_per_token() -> None:
    old = [Form("marker", 10, 1), Form("L3", 30, 2), Form("L1", 60, 26), Form("full", 160, 36)]
    new = [Form("L2", 80, 40), Form("full", 180, 100)]

    steps = upgrade_steps([old, new])

    assert [(step.segment, step.form, step.tokens) for step in steps] == [(1, 1, 100), (0, 2, 50), (0, 3, 100)]
    assert fitting_steps(steps, 149) == steps[:1]
    assert fitting_steps(steps, 150) == steps[:2]
    assert fitting_steps(steps, 99) == []


def test_what_is_better_and_no_longer_comes_first() -> None:
    steps = upgrade_steps([[Form("L2", 80, 1), Form("full", 60, 5)], [Form("none", 0, 0), Form("full", 1, 90)]])

    assert [step.segment for step in steps] == [0, 1]
    assert fitting_steps(steps, 0) == steps, "what is shorter leaves room for another"


def test_of_equals_the_newest_comes_first_and_what_is_newer_important_or_related_is_worth_more() -> None:
    same = [Form("none", 0, 0), Form("full", 10, 10)]

    assert [step.segment for step in upgrade_steps([same, same, same])] == [2, 1, 0]
    plain = token_worth(rank=50, importance=0, relation=0)
    assert token_worth(rank=0, importance=0, relation=0) > plain
    assert token_worth(rank=50, importance=1, relation=0) > plain
    assert token_worth(rank=50, importance=0, relation=1) > token_worth(rank=0, importance=0, relation=0)


@given(SEGMENTS, st.integers(0, 1_500), st.integers(0, 1_500))
def test_more_room_takes_the_same_steps_and_perhaps_more(segments: list[list[Form]], room: int, more: int) -> None:
    steps = upgrade_steps(segments)
    taken, further = fitting_steps(steps, room), fitting_steps(steps, room + more)

    assert further[: len(taken)] == taken
    assert tokens_of(segments, taken) <= room
    assert all(before.slope >= after.slope for before, after in pairwise(steps))
    for place in range(len(segments)):
        values = [segments[place][step.form].value for step in taken if step.segment == place]
        assert values == sorted(values)


@given(SEGMENTS.filter(lambda segments: len(segments) < 4), st.integers(0, 1_500))
def test_it_is_the_best_choice_but_for_one_step(segments: list[list[Form]], room: int) -> None:
    steps = upgrade_steps(segments)
    taken = fitting_steps(steps, room)
    next_gain = steps[len(taken)].gain if len(taken) < len(steps) else 0.0
    best = max(
        sum(form.value for form in choice)
        for choice in product(*segments)
        if sum(form.tokens - forms[0].tokens for form, forms in zip(choice, segments, strict=True)) <= room
    )

    assert value_of(segments, taken) + next_gain >= best - 1e-6
