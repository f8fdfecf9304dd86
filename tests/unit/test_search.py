"""What a query looks for, which messages fit it best, and which of their words are shown."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.retrieval import search
from app.core.retrieval.corpus import Source
from app.core.retrieval.search import SNIPPET_CHARACTERS, has_phrases, query_of, rank_messages, snippet
from tests.corpus import assert_values, corpus

BEGIN = datetime(2026, 1, 5, tzinfo=UTC)
LONG = "Filler about the weather and the harbour. " * 800


def sources(*texts: str) -> list[Source]:
    return [
        Source(seq=seq, role="user", text=text, at=BEGIN + timedelta(minutes=seq), tokens=len(text) // 4)
        for seq, text in enumerate(texts, start=1)
    ]


def ranked(query: str, *texts: str) -> list[int]:
    return [item.source.seq for item in rank_messages(query_of(query), sources(*texts))]


class TestQuery:
    def test_words_and_phrases(self) -> None:
        query = query_of('  the  copper\nkettles "in the  pantry" «медный чайник» “” ')
        assert query.text == 'the copper kettles "in the pantry" «медный чайник» “”'
        assert query.phrases == ("in the pantry", "медный чайник")
        assert query.stems == ("copper", "kettl", "pantri", "медн", "чайник")
        assert query.literal == query.phrases
        assert query.literal_stems == ("pantri", "медн", "чайник")

    def test_nothing_or_without_a_word_it_is_literal(self) -> None:
        def read(text: str) -> list[Any] | None:
            query = query_of(text)
            return [query.text, query.stems, query.literal, query.literal_stems] if query.text else None

        assert_values(corpus("queries"), read)

    def test_an_open_quote_is_no_phrase(self) -> None:
        assert query_of('the "copper kettle').phrases == ()

    def test_a_number_in_a_phrase_may_be_the_beginning_of_another(self) -> None:
        assert query_of('"version 3.1"').literal_stems == ("version",)

    @given(st.text(max_size=200))
    def test_any_text(self, text: str) -> None:
        query = query_of(text)
        assert "\n" not in query.text
        assert all(query.phrases)
        assert query.text or not (query.phrases or query.stems)


class TestSays:
    def test_case_and_blanks_are_alike(self) -> None:
        assert has_phrases("He  SAID\nso", ["he said so"])
        assert has_phrases("Медный Чайник", ["медный чайник", "МЕД"])
        assert has_phrases("ΣΟΦΟΣΑ", ["σοφος"])
        assert not has_phrases("Straße", ["strasse"])
        assert not has_phrases("He said, so", ["he said so"])


class TestRank:
    def test_only_what_holds_a_word_and_the_best_first(self) -> None:
        texts = ("The harbour.", "A kettle.", "The copper kettle is in the pantry.", "Copper prices.", "Rain.")
        found = ranked("copper kettle", *texts)
        assert found[0] == 3
        assert sorted(found) == [2, 3, 4]

    def test_a_speaker_s_name_finds_who_is_called_so_though_nothing_else_of_the_query_stands_anywhere(self) -> None:
        talk = ("Jon: Rain again.", "Gina: Hello Jon!", "Jon: Hello.", "Gina: Where were you?")
        assert ranked("Jon xylophone", *talk) == [2]

    def test_among_equals_the_newer_one(self) -> None:
        assert ranked("kettle", "A kettle.", "A kettle.", "A kettle.")[0] in {1, 2, 3}
        scores = [item.score for item in rank_messages(query_of("kettle"), sources(*["A kettle."] * 9))]
        assert all(one >= other for one, other in pairwise(scores))

    @pytest.mark.parametrize(
        ("query", "text"),
        [
            ("где медные чайники", "Медный чайник в кладовой."),
            ("储藏室", "铜水壶在储藏室里。"),
            ("倉庫", "銅のやかんは倉庫に"),
        ],
    )
    def test_other_scripts(self, query: str, text: str) -> None:
        assert ranked(query, "Rain again.", text, "Снова дождь.", "下雨了。") == [2]

    def test_nothing_fits(self) -> None:
        assert ranked("kettle", "Rain.", "More rain.") == []
        assert ranked("🎉", "Rain 🎉") == []
        assert rank_messages(query_of("kettle"), []) == []

    def test_control_the_words_of_the_query_decide(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Without the share of these words another message would be the best."""
        texts = (
            "When copper?",
            "You, your copper kettle, you?",
            "Yesterday I bought my kettle in Rome for my mother Anna.",
            "ok",
            "I got copper last year.",
        )
        assert ranked("copper kettle", *texts)[0] == 2
        monkeypatch.setattr(search, "WORD_SHARE", 0.0)
        assert ranked("copper kettle", *texts)[0] != 2

    @given(st.lists(st.sampled_from(["kettle", "copper kettle", "rain", "медный", "水壶在", ""]), max_size=12))
    def test_scores_are_within_bounds_and_fall(self, texts: list[str]) -> None:
        found = rank_messages(query_of("copper kettle медный 水壶"), sources(*texts))
        assert all(0 <= item.score <= 1 for item in found)
        assert all(one.score >= other.score for one, other in pairwise(found))
        assert len(found) == sum(text not in {"rain", ""} for text in texts)


class TestSnippet:
    def test_the_sentence_that_fits(self) -> None:
        text = "I like rain.\n\nThe copper kettle is in the pantry. " + "And so on it goes. " * 40
        found = snippet(text, query_of("copper kettle"))
        assert found.startswith("The copper kettle is in the pantry.")
        assert found in text
        assert len(found) <= SNIPPET_CHARACTERS

    def test_a_short_message_is_shown_whole(self) -> None:
        assert snippet("One. The kettle. Two.", query_of("kettle")) == "The kettle. Two."
        assert snippet("The kettle.", query_of("nothing")) == "The kettle."

    def test_a_phrase_goes_before_words(self) -> None:
        text = "Copper, kettle, pantry, copper. " + "Nothing here at all. " * 30 + "It is IN the  Pantry now."
        assert "IN the  Pantry" in snippet(text, query_of('copper kettle "in the pantry"'))

    def test_a_long_sentence_is_cut_around_the_word(self) -> None:
        text = "word " * 400 + "kettle " + "word " * 400
        found = snippet(text, query_of("kettle"))
        assert "kettle" in found
        assert found in text
        assert SNIPPET_CHARACTERS // 2 < len(found) <= SNIPPET_CHARACTERS

    @pytest.mark.parametrize("word", ["kettles", "чайники", "水壶"])
    def test_far_in_a_long_message(self, word: str) -> None:
        text = f"{LONG}There: {word}. {LONG}"
        assert word in snippet(text, query_of(word))

    @pytest.mark.parametrize(
        ("around", "word", "asked"),
        [
            ("İSTANBUL İÇİN İLK İŞ. ", "kettles", "kettles"),
            ("İSTANBUL İÇİN İLK İŞ ", "kettles", '"kettles"'),
            ("Nothing here. ", "İSTANBUL", "istanbul"),
            ("Nothing here. ", "cafe\u0301", "café"),
            ("Ничего нет. ", "ёлка", "елка"),
        ],
        ids=["capitals", "phrase", "dotted", "decomposed", "respelled"],
    )
    def test_far_in_a_long_message_whatever_its_letters_become_in_lower_case(
        self, around: str, word: str, asked: str
    ) -> None:
        assert word in snippet(f"{around * 2_000}There: {word}. {around * 2_000}", query_of(asked))

    def test_control_the_beginning_alone_would_not_show_it(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(search, "_first_hit", lambda *_: 0)
        assert "kettles" not in snippet(f"{LONG}There: kettles. {LONG}", query_of("kettles"))

    @given(st.text(max_size=2_000), st.text(max_size=40))
    def test_any_text_is_shown_as_it_stands(self, text: str, query: str) -> None:
        found = snippet(text, query_of(query))
        assert found in text
        assert len(found) <= SNIPPET_CHARACTERS
