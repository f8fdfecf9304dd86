"""How similar a question and the messages are by their vectors: one more feature of recall.

Cosines of different models lie in different ranges. The feature is how far a message stands out from the others, so
that one weight fits all models.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from operator import mul
from typing import Final

from app.core.model.embedding import unpacked_vector
from app.core.retrieval.corpus import Corpus

SIMILARITY_FEATURE: Final = "alike"
MAX_NUMBERS: Final = 1_000_000
"""The most numbers that are multiplied for one question: this takes some hundredths of a second."""
OUTSTANDING: Final = 4.0
"""Standard deviations above the mean at which likeness reaches its maximum of 1."""
MIN_VECTORS: Final = 3
"""The fewest vectors that are compared: among fewer no message stands out."""


def cosines(question: bytes, vectors: Mapping[int, bytes]) -> dict[int, float]:
    """The cosine of each vector with the question's, by ``seq``; vectors of another length are left out."""
    asked = unpacked_vector(question)
    return {
        seq: math.fsum(map(mul, asked, unpacked_vector(vector)))
        for seq, vector in vectors.items()
        if len(vector) == len(question)
    }


def likeness_of_pieces(corpus: Corpus, cosine_by_seq: Mapping[int, float]) -> list[float] | None:
    """For each piece, how far the cosine of its message is above the mean of all, from 0 to 1; 0 without a vector.

    It is ``None`` if there are too few vectors, or all cosines are the same.
    """
    known = [cosine_by_seq[source.seq] for source in corpus.sources if source.seq in cosine_by_seq]
    if len(known) < MIN_VECTORS:
        return None
    mean, spread = statistics.fmean(known), statistics.pstdev(known)
    if spread == 0:
        return None
    by_message = [_outstanding_share(cosine_by_seq.get(source.seq), mean, spread) for source in corpus.sources]
    return [by_message[piece.owner] for piece in corpus.pieces]


def most_vectors(dimensions: int) -> int:
    """How many vectors may be compared with a question's."""
    return max(MAX_NUMBERS // max(dimensions, 1), MIN_VECTORS)


def best_by_words(corpus: Corpus, values: Sequence[float], count: int) -> list[int]:
    """The ``seq`` of the ``count`` messages with the best scores without vectors."""
    best: dict[int, float] = {}
    for index, value in enumerate(values):
        seq = corpus.source(index).seq
        best[seq] = max(best.get(seq, -math.inf), value)
    return sorted(best, key=lambda seq: (-best[seq], seq))[:count]


def _outstanding_share(cosine: float | None, mean: float, spread: float) -> float:
    if cosine is None:
        return 0.0
    return min(max((cosine - mean) / spread, 0.0), OUTSTANDING) / OUTSTANDING
