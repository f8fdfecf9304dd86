"""Ranks messages for a question, for benches and tests; the service itself keeps a ``Ranking`` of a question."""

from __future__ import annotations

import math
from collections.abc import Collection

from app.core.retrieval.corpus import Corpus
from app.core.retrieval.features import features
from app.core.retrieval.question import Question
from app.core.retrieval.ranking import Ranking, RecalledMessage, piece_scores


def scores(corpus: Corpus, question: Question) -> list[float]:
    """The score of each message; a long message has the score of its best piece."""
    by_piece = piece_scores(features(corpus, question), len(corpus.pieces))
    best = [-math.inf] * len(corpus.sources)
    for piece, score in zip(corpus.pieces, by_piece, strict=True):
        best[piece.owner] = max(best[piece.owner], score)
    return best


def choose(
    corpus: Corpus,
    question: Question,
    *,
    room: int,
    served: Collection[int] = (),
    margin: float = math.inf,
) -> tuple[RecalledMessage, ...]:
    """The result of ``Ranking.packed`` for a question that is packed once."""
    return Ranking(corpus, question).packed(room, served=served, margin=margin)
