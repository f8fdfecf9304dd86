"""The bench of recall: what counts as served, what it is compared with, and that it measures the real assembly."""

from __future__ import annotations

from typing import Any

import pytest

from app.core.context.assembly import AssembledContext, ContextInputs
from app.core.retrieval.corpus import Corpus
from bench import fidelity_measures
from bench.fidelity import Found, evidence_table, interval, tables
from bench.fidelity_measures import CONTROL, OURS, SHARES, STATELESS, Conversation, Served, is_broad
from bench.recall_baselines import Baselines
from bench.recall_decided import covered, entries_of, is_in_entries
from bench.recall_follow import follow_ups, others, pointing, written
from bench.recall_mixed import mixed
from bench.recall_slips import mistyped, slipped
from bench.recall_talks import Talk, budget_of, context, corpus_of, folded, talk_of, with_long_answers
from tests.talks import made_talk

WRITTEN_FOR = ("friends_de", "friends_fr", "assistant_es", "assistant_pl", "friends_ru", "sisters_zh")
TOPICS = ("harbour", "bakery", "piano", "garden", "kitten", "violin", "museum", "bicycle", "orchard", "lantern")


def made(count: int = 80) -> Talk:
    messages: list[dict[str, Any]] = [
        {
            "role": "user" if seq % 2 else "assistant",
            "content": f"Note {seq} is about the {TOPICS[seq % 10]}, which Ivo{seq} painted in colour {seq} at dusk.",
            "created_at": f"2025-03-{seq % 28 + 1:02d}T10:00:00+00:00",
        }
        for seq in range(1, count + 1)
    ]
    questions = [
        {"question": f"What did Ivo{seq} paint?", "evidence": [seq], "category": 4, "answer": f"colour {seq}"}
        for seq in range(3, count, 7)
    ]
    return talk_of({"id": "made", "messages": messages, "questions": [*questions, {"question": "?", "evidence": []}]})


def test_questions_without_evidence_are_left_out() -> None:
    assert all(asked.evidence for asked in made().questions)


@pytest.mark.long
def test_ours_finds_what_a_context_without_a_query_does_not() -> None:
    found = list(Conversation(made()).served())
    hits = {
        name: sum(one.evidence for one in found if one.name == name and one.share == SHARES[1])
        for name in (OURS, CONTROL)
    }

    assert hits[OURS] == len(made().questions)
    assert hits[CONTROL] <= 3


def test_everything_that_is_served_counts() -> None:
    talk = made()
    material, corpus = folded(talk)
    room = budget_of(talk, 0.2)
    found = context(material, corpus, talk.questions[0].text, room)

    assert 0.5 * room < found.gauge.tokens - found.gauge.breakdown.system <= room


def test_a_context_over_its_budget_ends_the_measurement(monkeypatch: pytest.MonkeyPatch) -> None:
    def too_much(material: ContextInputs, corpus: Corpus, question: str, budget: int) -> AssembledContext:
        return context(material, corpus, question, 3 * budget)

    monkeypatch.setattr(fidelity_measures, "context", too_much)

    with pytest.raises(AssertionError, match="in a budget of"):
        list(Conversation(made()).served())


def test_the_baselines_fill_the_same_room() -> None:
    talk = made()
    baselines = Baselines(talk.texts).all()
    room = budget_of(talk, 0.1)

    assert max(baselines["newest first"]("", room)) == 80
    assert {1, 80} <= baselines["head and tail"]("", room)
    assert 3 in baselines["BM25"]("What did Ivo3 paint?", room)
    assert 0 < len(baselines["LexRank"]("", room)) < 20


def test_the_interval_holds_the_mean() -> None:
    mean, low, high = interval([True] * 30 + [False] * 10)

    assert low < mean == 0.75 < high
    assert interval([True] * 9) == (1.0, 1.0, 1.0)
    assert interval([]) == (0.0, 0.0, 0.0)


@pytest.mark.long
def test_the_table_has_a_line_per_method_and_per_category() -> None:
    text = evidence_table(list(Conversation(made(30)).served()))

    for name in (OURS, CONTROL, "BM25", "LexRank", "newest first", "head and tail", "random", "single hop"):
        assert f"| {name} |" in text


@pytest.mark.long
def test_the_answer_is_looked_for_by_its_words() -> None:
    found = list(Conversation(made()).served(shares=(0.2,)))
    ours = [one.answer for one in found if one.name == OURS]

    assert all(one.answer is not None for one in found)
    assert min(value for value in ours if value is not None) == 1.0


def test_a_segment_is_found_among_the_first_and_more_often_among_more() -> None:
    hits = list(Conversation(made()).hits())
    by_k = {k: [one.hit for one in hits if one.k == k and one.name == "by recall"] for k in (1, 3, 5)}

    assert sum(by_k[1]) <= sum(by_k[3]) <= sum(by_k[5])
    assert sum(by_k[5]) > 0.8 * len(by_k[5])


def test_values_are_counted_in_what_is_served_without_a_question() -> None:
    kept = list(Conversation(made()).kept(shares=(0.1, 0.5)))

    assert all(0 <= one.kept <= one.of for one in kept)
    assert {one.name for one in kept} >= {OURS, "newest first", "LexRank"}


@pytest.mark.parametrize(
    ("question", "asks"),
    [
        ("Can you summarize what we did?", True),
        ("In what order did the trips happen?", True),
        ("Перескажи кратко, что было", True),
        ("请总结一下", True),
        ("Who teaches the piano?", False),
        ("Кто учит играть?", False),
    ],
)
def test_broad_questions_are_told_apart(question: str, asks: bool) -> None:  # noqa: FBT001 - a table
    assert is_broad(question) is asks


def test_broad_questions_are_also_asked_without_the_state() -> None:
    talk = talk_of(
        {
            "id": "made",
            "messages": list(made().messages),
            "questions": [{"question": "Summarize the harbour notes", "evidence": [1, 11], "answer": "harbour"}],
        }
    )
    whole = Conversation(talk)
    served = tuple(whole.served(shares=(0.2,)))
    found = Found(talk="made", questions=1, served=served, kept=(), hits=(), joined=())

    assert {one.name for one in served} >= {OURS, STATELESS, CONTROL}
    assert "logos" in whole.served_text("", budget_of(talk, 0.2))
    assert "logos" not in whole.served_text("", budget_of(talk, 0.2), with_state=False)
    assert "1 questions." in tables([found])["broad"]


def test_joined_messages_keep_every_word_and_lead_to_the_evidence() -> None:
    talk = made()
    joined = with_long_answers(talk, size=100)

    assert len(joined.messages) < len(talk.messages)
    assert sum(map(len, joined.texts)) >= sum(map(len, talk.texts))
    for asked, before in zip(joined.questions, talk.questions, strict=True):
        for seq, was in zip(asked.evidence, before.evidence, strict=True):
            assert talk.texts[was - 1] in joined.texts[seq - 1]


def test_an_outcome_knows_its_question() -> None:
    one = next(iter(Conversation(made(30)).served(shares=(0.2,))))

    assert isinstance(one, Served)
    assert one.category == "single hop"
    assert not one.broad


def test_a_mistyped_question_has_one_other_word_and_those_without_a_longer_word_are_left_out() -> None:
    asked = "What did the neighbours repair yesterday?"
    typed = mistyped(asked)

    assert typed == mistyped(asked)
    assert sum(one != other for one, other in zip(asked.split(), typed.split(), strict=True)) == 1
    assert mistyped("Who is it?") == ""
    assert slipped(made()).questions == ()


def test_a_mixed_talk_holds_the_same_evidence_at_its_new_places() -> None:
    talk = made()
    found = mixed(talk, "retail")

    assert len(found.messages) > len(talk.messages)
    assert any(message["role"] == "tool" for message in found.messages)
    assert [found.texts[seq - 1] for asked in found.questions for seq in asked.evidence] == [
        talk.texts[seq - 1] for asked in talk.questions[::2] for seq in asked.evidence
    ]


def test_a_question_that_goes_on_has_no_word_of_the_one_before_and_its_answer_stands_near() -> None:
    talk = made()
    corpus = corpus_of(talk)

    assert (
        pointing("Who painted the harbour at dusk?", "What is at the harbour?", corpus) == "Who painted the it at dusk?"
    )
    assert pointing("Who painted it?", "What is at the harbour?", corpus) == "Who painted it?", "nothing in common"
    for asked in follow_ups(talk, corpus):
        first = next(one for one in talk.questions if one.text == asked.before[0])
        assert min(abs(here - there) for here in first.evidence for there in asked.asked.evidence) <= 6
    apart = list(others(talk))
    assert [one.asked for one in apart] == list(talk.questions), "the control asks each as it is"
    assert all(one.before[0] != one.asked.text for one in apart)


def test_each_written_question_goes_on_from_another_and_its_answer_is_a_message_of_the_talk() -> None:
    talks_with = [talk for name in WRITTEN_FOR if (talk := talk_of(made_talk(name)))]
    for talk in talks_with:
        asked = list(written(talk))
        assert asked
        assert all(len(one.before) == 2 and max(one.asked.evidence) <= len(talk.messages) for one in asked)
    assert list(written(made())) == []


def test_an_answer_is_told_where_one_entry_has_most_of_its_words() -> None:
    talk = made()
    material, corpus = folded(talk)
    entries = entries_of(material)
    (asked, *_) = talk.questions

    assert entries
    assert is_in_entries([talk.texts[seq - 1] for seq in asked.evidence], asked, corpus)
    assert not is_in_entries([], asked, corpus)
    assert not is_in_entries([talk.texts[asked.evidence[0]]], asked, corpus), "another message"
    assert all(isinstance(missed, bool) for missed in covered(talk))
