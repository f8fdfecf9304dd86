"""Recall by related words: kinds, forms, families, slips of the pen."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.retrieval import relating
from app.core.retrieval.corpus import Corpus, Source
from app.core.retrieval.features import features
from app.core.retrieval.question import question_of
from app.core.retrieval.question_completion import completed_question
from app.core.retrieval.recall_decision import decide_recall
from app.core.retrieval.related_words import forms_of, stems_of_kind
from app.core.text.token_counts import weigh
from app.core.text.words import stem, stems
from bench.ranking import choose, scores
from tests.corpus import assert_values, assert_verdicts, corpus
from tests.unit.timing import assert_linear

FIRST = datetime(2025, 5, 8, 10, tzinfo=UTC)


def corpus_of(said: Sequence[tuple[str, str]]) -> Corpus:
    return Corpus(
        [
            Source(seq=seq, role=role, text=text, at=FIRST + timedelta(hours=8) * seq, tokens=weigh(role, text).tokens)
            for seq, (role, text) in enumerate(said, start=1)
        ]
    )


def talk(*texts: str) -> Corpus:
    return corpus_of([("user", text) for text in texts])


ENGLISH = ("The weather was fine all week.", "I bought a violin on Monday.", "A kitten sat on the stairs.")
RUSSIAN = ("Погода была хорошая.", "Я взял скрипку в понедельник.", "На лестнице сидел щенок.")
CHINESE = ("天气一直很好。", "我在练小提琴。", "楼梯上有一只小猫。")


@pytest.mark.parametrize(
    ("texts", "asked", "answer"),
    [
        (ENGLISH, "Which pets are there?", 3),
        (ENGLISH, "Which instruments are there?", 2),
        (ENGLISH, "What did she buy?", 2),
        (RUSSIAN, "Какие есть питомцы?", 3),
        (RUSSIAN, "Какой инструмент?", 2),
        (CHINESE, "有什么宠物？", 3),
        (CHINESE, "什么乐器？", 2),
    ],
)
def test_a_word_of_the_kind_or_another_form_speaks_for_an_answer(
    texts: Sequence[str], asked: str, answer: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = talk(*texts)
    question = question_of(asked, corpus.speakers)
    assert all(question.stems.keys().isdisjoint(words.counts) for words in corpus.words)

    found = scores(corpus, question)
    chosen = choose(corpus, question, room=1_000)
    for name in ("stems_of_kind", "forms_of"):
        monkeypatch.setattr(relating, name, lambda _: frozenset())
    gained = [with_it - without for with_it, without in zip(found, scores(corpus, question), strict=True)]

    assert gained.index(max(gained)) == answer - 1
    assert gained[answer - 1] > sorted(gained)[-2]
    assert chosen
    assert choose(corpus, question, room=1_000) == (), "the control: nothing else leads anywhere"


def test_in_a_turn_what_is_of_the_kind_is_looked_for() -> None:
    def decided(text: dict[str, str]) -> str:
        said, asked = talk(*{"en": ENGLISH, "ru": RUSSIAN, "zh": CHINESE}[text["talk"]]), text["asked"]
        question = question_of(asked, said.speakers)
        assert decide_recall(asked, question, said, served=(), seqs=(1, 2, 3)) == "unknown", (
            "what is served needs no recall"
        )
        return decide_recall(asked, question, said, served=(), seqs=())

    assert_values(corpus("recall_kinds"), decided)


def test_a_slip_or_another_word_of_the_family_is_seen_and_other_words_are_none() -> None:
    def is_seen(text: dict[str, str]) -> bool:
        said = talk("nothing of that", text["said"])
        found = features(said, completed_question(text["asked"], said))
        assert found["own"][0] == 0.0
        return found["family_near"][1] > 0.0 or found["own"][1] > 0.0

    assert_verdicts(corpus("recall_families"), is_seen)


@pytest.mark.parametrize(
    ("said", "asked", "meant"),
    [
        ("we were celebrating late", "What was celbrated?", "celebrat"),
        ("the painting is in the hall", "Where is the paitning?", "paint"),
        ("pottery is on Thursdays", "When is potery?", "potteri"),
        ("мы ходили в ресторан", "Какой рестаран?", "ресторан"),
    ],
)
def test_a_mistyped_word_of_a_question_means_the_word_that_was_said(said: str, asked: str, meant: str) -> None:
    corpus = talk(said, "It rained.")

    assert meant not in question_of(asked, ()).stems, "the control: it is mistyped"
    assert meant in completed_question(asked, corpus).stems
    assert meant not in completed_question(asked, talk("It rained.")).stems


def test_a_word_that_was_said_is_never_taken_for_a_mistyped_one() -> None:
    asked = "Which concert was it?"

    assert completed_question(asked, talk("the conceit of it")).stems.keys() == {"conceit"}
    assert completed_question(asked, talk("the conceit of it", "a concert")).stems.keys() == {"concert"}


@pytest.mark.parametrize(
    ("said", "asked", "known"),
    [("the stage was small", "Which state?", "state"), ("I think so", "Which thing?", "thing")],
)
def test_a_word_that_is_known_is_not_taken_for_another_with_a_letter_replaced(
    said: str, asked: str, known: str
) -> None:
    assert completed_question(asked, talk(said)).stems.keys() == {known}
    assert completed_question("Which quorlan?", talk("a quorlon")).stems.keys() == {"quorlon"}, (
        "the control: nobody knows it"
    )
    assert completed_question("Which restaurant?", talk("that restuarant")).stems.keys() == {"restuarant"}, (
        "exchanged letters"
    )


def test_of_a_text_only_the_first_unknown_words_are_looked_for() -> None:
    words = [f"bxz{letter}q{other}y" for letter in "abcde" for other in "abcde"]
    said = talk("the terminal")

    assert "terminal" in completed_question(" ".join(["termnal", *words]), said).stems
    assert "terminal" not in completed_question(" ".join([*words, "termnal"]), said).stems


def test_tables_relate_by_stems_and_never_a_word_to_itself() -> None:
    assert stem("dog") in stems_of_kind(stem("pets"))
    assert stem("pets") not in stems_of_kind(stem("pets"))
    assert stems_of_kind("zebra") == frozenset()
    assert stem("bought") in forms_of(stem("buy"))
    assert set(stems("щенок")) <= stems_of_kind(stems("питомец")[0])


@given(st.lists(st.tuples(st.sampled_from(["user", "assistant"]), st.text(max_size=40)), max_size=12), st.text())
def test_every_feature_is_a_number_per_piece(said: list[tuple[str, str]], asked: str) -> None:
    corpus = corpus_of(said)
    found = features(corpus, question_of(asked, corpus.speakers))

    assert {len(column) for column in found.values()} == {len(corpus.pieces)}


@pytest.mark.parametrize("unit", ["a", "я", "好", "abcdefghij ", "цветок", "x1"])
def test_a_hostile_question_takes_linear_time(unit: str) -> None:
    def looked(text: str) -> None:
        features(talk(*ENGLISH, text), completed_question(text, talk(*ENGLISH)))

    assert_linear(looked, unit * (4_000 // len(unit)))


@pytest.mark.parametrize(
    ("texts", "asked", "answer"),
    [
        (("今天天气很好。", "昨天的雪真大。", "我在练琴。"), "哪天雪大？", 2),
        (("我们去了山上。", "书架送人了。", "他每晚陪她散步。"), "那个架子给谁了？", 2),
        (("Погода была хорошая.", "Вчера Олю положили в больницу.", "Я устал."), "Что случилось с Олей?", 2),
        (("Погода была хорошая.", "Юля звонила.", "Я устал."), "Что сказала Юле мама?", 2),
    ],
)
def test_a_sign_of_chinese_and_a_case_of_a_short_russian_name_lead_to_the_answer(
    texts: Sequence[str], asked: str, answer: int
) -> None:
    corpus = talk(*texts)
    values = scores(corpus, question_of(asked, corpus.speakers))

    assert values.index(max(values)) + 1 == answer


def test_function_words_of_chinese_are_no_content() -> None:
    assert not question_of("这是什么？", ()).stems.keys() & set("这是什么")
    assert {"雪", "大"} <= question_of("哪天雪大？", ()).stems.keys()


@pytest.mark.parametrize("asked", ["Где Михаил был зимой?", "О чём Миша рассказал?", "Что подарили Михаилу?"])
def test_a_full_name_names_who_is_called_by_a_short_one(asked: str) -> None:
    assert question_of(asked, ("миша", "лена")).named == {"миша"}
