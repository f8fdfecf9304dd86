"""The bench of recall: what counts as served, what it is compared with, and that it measures the real assembly."""

from __future__ import annotations

from typing import Any

import pytest

from app.domain.assembling.assembly import AssembledContext, Material
from app.domain.recall.corpus import Corpus
from bench import recall
from bench.recall import CONTROL, OURS, SHARES, interval, outcomes, table
from bench.recall_baselines import Baselines
from bench.recall_talks import Talk, context, folded, room_of, talk_of

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
        {"question": f"What did Ivo{seq} paint?", "evidence": [seq], "category": 4, "answer": ""}
        for seq in range(3, count, 7)
    ]
    return talk_of({"id": "made", "messages": messages, "questions": [*questions, {"question": "?", "evidence": []}]})


def test_questions_without_evidence_are_left_out() -> None:
    assert all(asked.evidence for asked in made().questions)


def test_ours_finds_what_a_context_without_a_query_does_not() -> None:
    found = list(outcomes(made()))
    hits = {
        name: sum(one.served for one in found if one.name == name and one.share == SHARES[1])
        for name in (OURS, CONTROL)
    }

    assert hits[OURS] == len(made().questions)
    assert hits[CONTROL] <= 3


def test_everything_that_is_served_counts() -> None:
    talk = made()
    material, corpus = folded(talk)
    room = room_of(talk, 0.2)
    found = context(material, corpus, talk.questions[0].text, room)

    assert 0.5 * room < found.gauge.tokens - found.gauge.breakdown.system <= room


def test_a_context_over_its_budget_ends_the_measurement(monkeypatch: pytest.MonkeyPatch) -> None:
    def too_much(material: Material, corpus: Corpus, question: str, budget: int) -> AssembledContext:
        return context(material, corpus, question, 3 * budget)

    monkeypatch.setattr(recall, "context", too_much)

    with pytest.raises(AssertionError, match="in a budget of"):
        list(outcomes(made()))


def test_the_baselines_fill_the_same_room() -> None:
    talk = made()
    baselines = Baselines(talk.texts).all()
    room = room_of(talk, 0.1)

    assert max(baselines["newest first"]("", room)) == 80
    assert {1, 80} <= baselines["head and tail"]("", room)
    assert 3 in baselines["BM25"]("What did Ivo3 paint?", room)
    assert 0 < len(baselines["LexRank"]("", room)) < 20


def test_the_interval_holds_the_mean() -> None:
    mean, low, high = interval([True] * 30 + [False] * 10)

    assert low < mean == 0.75 < high
    assert interval([True] * 9) == (1.0, 1.0, 1.0)
    assert interval([]) == (0.0, 0.0, 0.0)


def test_the_table_has_a_line_per_method_and_per_category() -> None:
    text = table(list(outcomes(made(30))))

    for name in (OURS, CONTROL, "BM25", "LexRank", "newest first", "head and tail", "single hop"):
        assert f"| {name} |" in text
