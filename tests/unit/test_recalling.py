"""What recall asks the database for: which words, and how many messages."""

from __future__ import annotations

import pytest

from app.core.text.words import stem
from app.usecases.context.recalling import CANDIDATES, MOST_CANDIDATES, RELATED, candidates_for, sought


def test_the_questions_own_words_are_sought_first_then_those_that_mean_the_same() -> None:
    stems = sought("When did she repair the bicycle?")

    assert stems[:2] == [stem("repair"), stem("bicycle")]
    assert {stem("fix"), stem("bike")} <= set(stems[2:])
    assert len(stems) == len(set(stems))


def test_a_long_question_brings_no_more_of_them_than_that() -> None:
    question = "buy repair bicycle photo movie doctor decide mother father trip start finish shop happy sad tired"

    assert len(sought(question)) == len(question.split()) + RELATED
    assert sought("zyxwvu") == ["zyxwvu"], "control: a word that means the same as none"
    assert sought("") == []


@pytest.mark.parametrize(("places", "looked_at"), [(0, CANDIDATES), (100, 300), (200, 600), (1e9, MOST_CANDIDATES)])
def test_the_more_there_is_room_for_the_more_are_looked_at(places: float, looked_at: int) -> None:
    assert candidates_for(places) == looked_at
