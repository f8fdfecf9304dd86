"""A local model that makes vectors of texts, trained only on these texts: latent semantic analysis.

The stems of the texts, weighted by rarity, are projected on the directions in which the texts differ most
(Deerwester and others, 1990). Needs numpy.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from app.core.model.embedding import packed_vector
from app.core.retrieval.corpus import words_of

DIMENSIONS: Final = 100


class Lsa:
    """The model of some texts.

    Args:
        texts: The texts that it is trained on.
        dimensions: The most dimensions of its vectors; there are fewer for few texts.
    """

    def __init__(self, texts: Sequence[str], dimensions: int = DIMENSIONS) -> None:
        counts = [words_of(text).counts for text in texts]
        holding = Counter(stem for one in counts for stem in one)
        self._places = {stem: place for place, stem in enumerate(sorted(holding))}
        self._rarities = {stem: math.log((len(texts) + 1) / (count + 0.5)) for stem, count in holding.items()}
        matrix = np.array([self._weighed(text) for text in texts])
        _, values, directions = np.linalg.svd(matrix, full_matrices=False)
        self._directions = directions[: min(dimensions, int((values > 1e-9).sum()))].T
        self.vectors = [self._vector(line) for line in matrix]
        """The vectors of the texts, in order."""

    def question(self, text: str) -> bytes:
        """The vector of another text."""
        return self._vector(self._weighed(text))

    def _weighed(self, text: str) -> Any:
        line = np.zeros(len(self._places))
        for stem, count in words_of(text).counts.items():
            if stem in self._places:
                line[self._places[stem]] = (1 + math.log(count)) * self._rarities[stem]
        return line / (np.linalg.norm(line) or 1.0)

    def _vector(self, line: Any) -> bytes:
        numbers = [float(number) for number in line @ self._directions]
        return packed_vector(numbers) or packed_vector([1e-6, *[0.0] * (len(numbers) - 1)]) or b""
