"""Vectors as a feature of recall: what one is, how far a message stands out, and that without any nothing changes."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta

import pytest

from app.core.model.embedding import MAX_EMBEDDED_TOKENS, packed_vector, text_hash, text_to_embed, unpacked_vector
from app.core.retrieval.corpus import Corpus, Source
from app.core.retrieval.question import Question
from app.core.retrieval.question_completion import completed_question
from app.core.retrieval.ranking import Ranking
from app.core.retrieval.similarity import cosines, likeness_of_pieces, most_vectors
from app.core.text.token_counts import estimate_text

SAID = ["The zorblat sleeps.", "Bread is baked at dawn.", "Snow fell on Monday.", "The ship left.", "We had soup."]
THEN = datetime(2026, 1, 1, tzinfo=UTC)


def corpus_of(texts: list[str], *, times: int = 1) -> Corpus:
    return Corpus(
        [
            Source(seq=seq, role="user", text=text * times, at=THEN + timedelta(minutes=seq), tokens=6 * times)
            for seq, text in enumerate(texts, start=1)
        ]
    )


def asked(text: str, corpus: Corpus) -> Question:
    return completed_question(text, corpus)


@pytest.mark.parametrize("numbers", [[], [0.0, 0.0], [math.nan, 1.0], [math.inf, 1.0], [1e308, 1e308], [1.0] * 9_000])
def test_what_is_no_vector_is_none(numbers: list[float]) -> None:
    assert packed_vector(numbers) is None


def test_a_vector_has_unit_length_and_comes_back() -> None:
    vector = packed_vector([3.0, 4.0])
    assert vector == b"\x9a\x99\x19?\xcd\xccL?"
    assert list(unpacked_vector(vector)) == pytest.approx([0.6, 0.8])
    assert cosines(vector, {1: vector, 2: packed_vector([4.0, -3.0]) or b"", 3: b"1234"}) == pytest.approx(
        {1: 1.0, 2: 0.0}
    )


def test_a_model_is_given_the_beginning_of_a_text_in_one_form() -> None:
    assert text_to_embed(" Cafe\u0301 \n\n au\tlait ") == "Café au lait"
    assert text_hash(text_to_embed("a\nb")) == text_hash(text_to_embed("a  b"))
    for text in ("word " * 9_000, "火车" * 9_000, "x" * 99_000):
        assert 0 < estimate_text(text_to_embed(text)) <= MAX_EMBEDDED_TOKENS
    assert text_to_embed(" \n ") == ""


def test_only_what_stands_out_counts_whatever_the_range_of_the_cosines() -> None:
    corpus = corpus_of(SAID)
    high = likeness_of_pieces(corpus, {1: 0.99, 2: 0.90, 3: 0.90, 4: 0.90})
    low = likeness_of_pieces(corpus, {1: 0.19, 2: 0.10, 3: 0.10, 4: 0.10})
    assert high is not None
    assert high == pytest.approx(low)
    assert high[0] > 0.4
    assert high[1:] == [0.0] * 4, "the last one has no vector"
    assert likeness_of_pieces(corpus, {1: 0.9, 2: 0.1}) is None
    assert likeness_of_pieces(corpus, dict.fromkeys(range(1, 6), 0.5)) is None


def test_a_long_message_is_as_alike_in_each_of_its_pieces() -> None:
    corpus = corpus_of(SAID, times=60)
    found = likeness_of_pieces(corpus, {1: 0.9, 2: 0.1, 3: 0.1, 4: 0.2, 5: 0.1})
    assert found is not None
    assert len(found) == len(corpus.pieces) > len(SAID)
    assert len({value for value, piece in zip(found, corpus.pieces, strict=True) if piece.owner == 0}) == 1


def test_without_vectors_nothing_moves_and_with_them_what_shares_no_word_is_led_to() -> None:
    corpus = corpus_of([*SAID, *(f"Note {number} is on the table." for number in range(30))])
    question = asked("quimby?", corpus)
    assert Ranking(corpus, question).packed(200) == ()
    assert Ranking(corpus, question, cosines={}).packed(200) == ()
    near = {seq: 0.1 + seq % 3 / 100 for seq in range(1, 36)}
    assert Ranking(corpus, question, cosines=near).packed(200) == (), "the control: nothing stands out"
    chosen = Ranking(corpus, question, cosines=near | {1: 0.9}).packed(200)
    assert 1 in {one.source.seq for one in chosen}

    bread = asked("When is bread baked?", corpus)
    before, after = Ranking(corpus, bread), Ranking(corpus, bread, cosines=near | {2: 0.9})
    assert before.packed(40)[0].source.seq == after.packed(40)[0].source.seq == 2
    assert after.packed(40)[0].score > before.packed(40)[0].score
    assert before.best(3)[0] == 2


def test_the_work_for_a_question_is_bounded() -> None:
    assert most_vectors(768) * 768 <= 1_000_000
    assert most_vectors(10**9) == 3
