"""How messages are ranked for a question, for benches and tests: the service keeps a ``Ranking`` of a question."""

from __future__ import annotations

import math
from collections.abc import Collection

from app.core.retrieval.corpus import Corpus
from app.core.retrieval.features import features
from app.core.retrieval.question import Question
from app.core.retrieval.ranking import Ranking, Recalled, piece_scores


def scores(corpus: Corpus, question: Question) -> list[float]:
    """How much speaks for each message: of a long one, for its best piece."""
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
) -> tuple[Recalled, ...]:
    """What ``Ranking.packed`` says, for a question that is packed once."""
    return Ranking(corpus, question).packed(room, served=served, margin=margin)
