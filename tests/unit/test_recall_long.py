"""Recall with long messages and with speakers without names: pieces, served parts, and who is meant."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from app.core.retrieval.corpus import LONG_MESSAGE_TOKENS, Corpus, Postings, Source
from app.core.retrieval.question import question_of
from app.core.retrieval.ranking import RecalledMessage
from app.core.retrieval.rendering import recalled_element, recalled_in
from app.core.text.token_counts import weigh
from app.core.text.words import ascii_tokens, stem, stems, stems_of_tokens
from bench.ranking import choose
from tests.corpus import assert_values, corpus

DAY = datetime(2025, 5, 8, 10, tzinfo=UTC)
FILLING = {
    "en": "The valley is quiet in autumn and the mills along the stream turn slowly. ",
    "ru": "Осенью в долине тихо, и мельницы вдоль ручья вращаются медленно. ",
    "zh": "秋天的山谷很安静，小溪边的水车慢慢地转着。",
}
ANSWER = {
    "en": "The password of the harbour office is Quenelle-77. ",
    "ru": "Пароль конторы в порту: Кнель-77. ",
    "zh": "港口办公室的密码是千层-77。",
}
QUESTION = {
    "en": "What is the password of the harbour office?",
    "ru": "Какой пароль у конторы в порту?",
    "zh": "港口办公室的密码是什么？",
}


def corpus_of(said: Sequence[tuple[str, str]]) -> Corpus:
    return Corpus(
        [
            Source(
                seq=seq,
                role=role,
                text=text,
                at=DAY + seq * timedelta(minutes=1),
                tokens=weigh(role, text).tokens,
            )
            for seq, (role, text) in enumerate(said, start=1)
        ]
    )


def talk(language: str) -> Corpus:
    """Five long answers, one of which has the wanted statement in its middle."""
    filling, answer = FILLING[language], ANSWER[language]
    long = [("assistant", filling * 40) for _ in range(4)]
    long.insert(2, ("assistant", filling * 20 + answer + filling * 20))
    return corpus_of([turn for reply in long for turn in (("user", filling), reply)])


def found(corpus: Corpus, asked: str, room: int) -> list[RecalledMessage]:
    return list(choose(corpus, question_of(asked, corpus.speakers), room=room))


@pytest.mark.parametrize("language", ["en", "ru", "zh"])
def test_pieces_are_the_whole_text_in_order(language: str) -> None:
    corpus = talk(language)
    for index, source in enumerate(corpus.sources):
        pieces = [piece for piece in corpus.pieces if piece.owner == index]

        assert "".join(source.text[piece.start : piece.end] for piece in pieces) == source.text
        assert (len(pieces) > 1) == (source.tokens > LONG_MESSAGE_TOKENS)


def test_a_long_message_is_no_echo_but_what_repeats_it_is() -> None:
    long, short = ("assistant", FILLING["en"] * 40), ("user", "The mills!")

    assert not any(corpus_of([short, long]).echoes)
    assert corpus_of([long, short]).echoes[-1] > 0


@pytest.mark.parametrize("language", ["en", "ru", "zh"])
def test_the_message_whose_midst_answers_comes_first_and_whole_where_it_fits(language: str) -> None:
    corpus = talk(language)
    best = found(corpus, QUESTION[language], room=corpus.sources[5].tokens + 20)[0]

    assert best.source.seq == 6
    assert best.excerpt == ""


@pytest.mark.parametrize("language", ["en", "ru", "zh"])
def test_of_a_message_that_does_not_fit_the_part_that_answers_is_served(language: str) -> None:
    corpus = talk(language)
    recalled = found(corpus, QUESTION[language], room=260)
    (part,) = [one for one in recalled if one.source.seq == 6]

    assert ANSWER[language].strip() in part.excerpt
    assert part.excerpt in part.source.text
    assert len(part.excerpt) < len(part.source.text) / 2


def test_a_part_says_that_it_is_one_and_reads_back() -> None:
    corpus = talk("en")
    element = recalled_element(found(corpus, QUESTION["en"], room=260))

    assert '<message role="assistant" part="1">' in element
    assert ("assistant", ANSWER["en"].strip()) in {
        (role, sentence)
        for role, text in recalled_in(element)
        for sentence in [ANSWER["en"].strip()]
        if sentence in text
    }


def test_a_part_is_told_with_the_one_beside_it_where_both_fit() -> None:
    corpus = talk("en")
    roomy, narrow = (
        next(one.excerpt for one in found(corpus, QUESTION["en"], room=room) if one.source.seq == 6)
        for room in (260, 100)
    )

    assert narrow in roomy
    assert weigh("user", roomy).tokens > 1.5 * weigh("user", narrow).tokens
    assert ANSWER["en"].strip() in narrow


def test_a_question_points_to_one_side() -> None:
    assert_values(corpus("recall_sides"), lambda asked: question_of(asked, ()).named)


@pytest.mark.parametrize(
    ("asked", "first"),
    [
        ("What did I say about the lighthouse?", 1),
        ("What did you tell me about the lighthouse?", 2),
    ],
)
def test_who_is_meant_comes_first(asked: str, first: int) -> None:
    corpus = corpus_of(
        [
            ("user", "The lighthouse at the cape has a red door and ninety steps."),
            ("assistant", "The lighthouse at the cape was built of granite in two years."),
            ("user", "Tomorrow the baker opens late."),
            ("assistant", "Then breakfast will be late too."),
        ]
    )

    assert found(corpus, asked, room=200)[0].source.seq == first


def test_a_heading_is_no_speaker() -> None:
    corpus = corpus_of(
        [("user", "Note: the gate is locked."), ("assistant", "Understood, it is locked."), ("user", "Thanks.")] * 3
    )

    assert corpus.speakers == frozenset()
    assert stem("note") in corpus.postings


def test_pieces_that_hold_a_word_are_the_same_found_one_by_one_and_all_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = [{"gate": 2, "key": 1}, {"key": 1}, {}, {"gate": 1, "lamp": 3}]
    singly = Postings(counts)
    monkeypatch.setattr("app.core.retrieval.corpus._SINGLY", 1)
    together = Postings(counts)

    for postings in (singly, together):
        assert dict(postings.holding) == {"gate": 2, "key": 2, "lamp": 1}
        assert [list(postings.get(word)) for word in ("gate", "key", "lamp", "owl")] == [[0, 3], [0, 1], [3], []]


@pytest.mark.parametrize("text", ["I'm 5.5, it's Bob's; they've re-read A/B, don't ask 10:30 'twas", "UPPER lower's x"])
def test_the_short_way_to_stems_finds_the_same(text: str) -> None:
    assert tuple(stems_of_tokens(ascii_tokens(text))) == stems(text)
