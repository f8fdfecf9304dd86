"""How likely a later question rests on a sentence: values, bounds, and what it does to a worth."""

from __future__ import annotations

from collections.abc import Sequence
from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from app.core.reading import later_use
from app.core.reading.later_use import NEUTRAL_ODDS, WEIGHTS, factors, features
from app.core.reading.passages import Passage, passages_of
from app.core.reading.scoring import Worth, score_all
from tests.unit.test_extractive import message, talk


def passages(text: str) -> Sequence[Passage]:
    return passages_of(talk(text), "en")


def test_every_feature_has_a_weight() -> None:
    (only,) = features(passages("U We meet."))
    assert list(only) == list(WEIGHTS)


def test_what_says_something_is_likelier_to_be_asked_for_than_small_talk() -> None:
    spans = {
        "en": "A Where do you live now?\nU We moved to Basel with the children last Friday.\nA That sounds great!",
        "de": "A Wo wohnt ihr?\nU Wir sind letzten Freitag mit den Kindern nach Basel gezogen.\nA Das klingt toll!",
        "zh": "A 你们现在住在哪里？\nU 我们上周五和孩子们一起搬到了巴塞尔的新房子。\nA 听起来很棒！",
    }
    for text in spans.values():
        _, told, small_talk = factors(passages(text))
        assert told > 2 * small_talk


def test_an_answer_is_likelier_than_the_same_words_behind_no_question() -> None:
    asked = factors(passages("A Who looks after the dog?\nU My brother Tom does on weekdays."))
    said = factors(passages("A I look after the dog.\nU My brother Tom does on weekdays."))
    assert asked[1] > said[1]


@given(st.lists(st.text(max_size=200), min_size=1, max_size=8))
def test_factors_have_bounds(contents: list[str]) -> None:
    found = passages_of([message(seq, "user", text) for seq, text in enumerate(contents, 1)], "en")
    assert all(0.1 <= factor <= 1 / NEUTRAL_ODDS for factor in factors(found))


def test_a_sentence_of_a_million_words_has_odds_too() -> None:
    (found,) = passages("U We meet.")
    with patch.object(later_use, "features", lambda _: [{"constant": 1.0, "content": 1e6}]):
        assert factors([found]) == [1 / NEUTRAL_ODDS]


def test_only_the_words_of_facts_and_choices_are_scaled() -> None:
    worth = Worth(rest=2.0, values={"42": 1.5})
    assert worth.with_later_use(0.5) == Worth(rest=1.0, values={"42": 1.5})
    for kind in ("wish", "rule", "aim"):
        followed = Worth(rest=2.0, values={}, about=kind)
        assert followed.with_later_use(0.5) == followed
    below = Worth(rest=-1.0, values={})
    assert below.with_later_use(0.5) == below


def test_what_was_asked_to_be_kept_loses_nothing_by_its_odds() -> None:
    found = passages("U The tortoise sleeps.\nA Noted.")
    with patch.object(later_use, "WEIGHTS", {"constant": -9.0}):
        scaled, kept = score_all(found)[0].rest, score_all(found, "where does the tortoise sleep")[0].rest
    with patch.object(later_use, "WEIGHTS", {"constant": 0.0}):
        assert kept >= score_all(found)[0].rest * NEUTRAL_ODDS > scaled
