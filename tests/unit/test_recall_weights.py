"""Recall has a weight for each of its features, and no other weights."""

from __future__ import annotations

from datetime import UTC, datetime

from app.core.retrieval.corpus import Corpus, Source
from app.core.retrieval.features import features
from app.core.retrieval.question import question_of
from app.core.retrieval.weights import FITTED, SIMILARITY, WEIGHTS


def test_each_feature_has_a_weight_and_each_weight_a_feature() -> None:
    corpus = Corpus([Source(seq=1, role="user", text="a lantern", at=datetime(2026, 1, 1, tzinfo=UTC), tokens=4)])
    found = features(corpus, question_of("Where is the lantern?", ()))

    assert found.keys() == FITTED.keys()
    assert WEIGHTS.keys() == found.keys() | SIMILARITY.keys()
    assert len(found) == 27, "docs/recall.md says how many"
