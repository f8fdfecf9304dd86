"""How likely a sentence is worth remembering: values, bounds, and the effect on a worth."""

from __future__ import annotations

from collections.abc import Sequence
from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from app.core.reading import importance
from app.core.reading.importance import (
    FEATURES,
    LIKELIHOOD_WEIGHTS,
    STANDALONE_WEIGHTS,
    features,
    likelihood_of_entry,
    ratings_of,
)
from app.core.reading.passages import Passage, passages_of
from app.core.reading.scoring import MAX_WORTH_OF_WORDS, score_all, worth_of_statement
from app.core.reading.sentence import sentence_of
from tests.unit.test_extractive import message, talk


def passages(text: str) -> Sequence[Passage]:
    return passages_of(talk(text), "en")


def test_every_feature_has_a_weight() -> None:
    (only,) = features(passages("U We meet."))
    assert len(only) == len(FEATURES)
    assert set(FEATURES) == set(LIKELIHOOD_WEIGHTS) >= set(STANDALONE_WEIGHTS)


def test_what_says_something_is_likelier_worth_remembering_than_small_talk() -> None:
    spans = {
        "en": "A Where do you live now?\nU We moved to Basel with the children last Friday.\nA That sounds great!",
        "de": "A Wo wohnt ihr?\nU Wir sind letzten Freitag mit den Kindern nach Basel gezogen.\nA Das klingt toll!",
        "zh": "A 你们现在住在哪里？\nU 我们上周五和孩子们一起搬到了巴塞尔的新房子。\nA 听起来很棒！",
    }
    for text in spans.values():
        _, told, small_talk = ratings_of(passages(text)).likely
        assert told > 2 * small_talk


def test_an_answer_is_likelier_than_the_same_words_behind_no_question() -> None:
    asked = ratings_of(passages("A Who looks after the dog?\nU My brother Tom does on weekdays.")).likely
    said = ratings_of(passages("A I look after the dog.\nU My brother Tom does on weekdays.")).likely
    assert asked[1] > said[1]


def test_encouragement_of_the_other_side_is_less_likely_than_the_same_of_oneself() -> None:
    own, others = ratings_of(
        passages("U Our family keeps a small garden in Basel.\nU Your family keeps a small garden in Bern.")
    ).likely
    assert own > 1.5 * others


def test_what_points_back_hardly_stands_alone() -> None:
    back, alone = ratings_of(passages("U They moved to the harbour.\nU Petra opened a bakery in Cork.")).standalone
    assert back < 0.25
    assert alone > 0.5


def test_other_weights_are_other_likelihoods() -> None:
    found = passages("U We moved to Basel.\nA That sounds great!")
    with patch.object(importance, "LIKELIHOOD_WEIGHTS", {}):
        assert ratings_of(found).likely == [0.5, 0.5]
    assert ratings_of(found).likely != [0.5, 0.5]


@given(st.lists(st.text(max_size=200), min_size=1, max_size=8))
def test_likelihoods_have_bounds(contents: list[str]) -> None:
    found = passages_of([message(seq, "user", text) for seq, text in enumerate(contents, 1)], "en")
    assert all(0 <= likelihood <= 1 for likelihood in [*ratings_of(found).likely, *ratings_of(found).standalone])


def test_a_sentence_of_a_million_words_has_a_likelihood_too() -> None:
    (found,) = passages("U We meet.")
    with patch.object(importance, "features", lambda _: [(1.0, 1e6)]):
        assert ratings_of([found]).likely[0] > 0.99


def test_an_entry_is_as_likely_as_its_words_were() -> None:
    text = "We moved to Basel with the children last Friday."
    said = sentence_of(text)
    own = likelihood_of_entry(said, answers=False, by_assistant=False)
    answer = likelihood_of_entry(said, answers=True, by_assistant=False)
    lecture = likelihood_of_entry(said, answers=False, by_assistant=True)
    assert lecture < own < answer


def test_a_doubtful_sentence_takes_its_values_along() -> None:
    doubtful, sure = worth_of_statement(0.03, {"42": 1.5}, "fact"), worth_of_statement(0.5, {"42": 1.5}, "fact")
    assert doubtful.values["42"] < 0.2
    assert sure.values == {"42": 1.5}
    assert sure.words_worth == 0.5 * MAX_WORTH_OF_WORDS


def test_what_binds_keeps_its_worth_however_unlikely_it_is() -> None:
    rule, fact, friend = "U Never deploy on a Friday.", "U The tortoise sleeps.", "U Ann: Never deploy on a Friday."
    with patch.object(importance, "LIKELIHOOD_WEIGHTS", {"constant": -9.0}):
        assert score_all(passages(f"A Hi.\nU Hello.\n{rule}"))[-1].words_worth > 2
        assert score_all(passages(f"A Hi.\nU Hello.\n{fact}"))[-1].words_worth < 0.1
        assert score_all(passages(f"A Bea: Hi.\nU Ann: Hello.\n{friend}"))[-1].words_worth < 0.1


def test_what_was_asked_to_be_kept_is_worth_more() -> None:
    found = passages("U The tortoise sleeps.\nA Noted.")
    assert score_all(found, "where does the tortoise sleep")[0].words_worth > score_all(found)[0].words_worth + 1
