"""The questions of ``bench.scale`` have new words each time, all of them from the conversation."""

import itertools

import pytest

from app.core.retrieval.question import question_of
from app.core.text.words import words
from bench.scale import SMALL, contents, questions

ROUNDS = 50
"""The number of questions about a conversation in one run."""


def test_there_are_enough_questions_and_always_the_same() -> None:
    asked = questions()
    assert len(set(asked)) == len(asked) > ROUNDS
    assert questions() == asked


@pytest.mark.long
def test_a_question_is_made_of_words_of_one_message() -> None:
    said = [set(words(text)) for _, text in contents(SMALL)]

    assert all(any(set(words(question)) <= message for message in said) for question in questions())


@pytest.mark.long
def test_most_of_what_a_question_asks_for_was_not_asked_just_before() -> None:
    asked = [set(question_of(question, ()).stems) for question in questions()]

    shared = sum(len(one & other) for one, other in itertools.pairwise(asked))
    assert shared < sum(map(len, asked)) / 4
