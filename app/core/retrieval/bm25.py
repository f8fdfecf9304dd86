"""BM25 (Robertson and Zaragoza, 2009): how well texts fit words that are asked for."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final

_SATURATION: Final = 1.2
"""How quickly further occurrences of a word stop adding to the score."""
_BY_LENGTH: Final = 0.6
"""How strongly a text's length counts against it, from 0 (not at all) to 1."""


def rarity(text_count: int, holding_count: int) -> float:
    """The weight of a word that occurs in ``holding_count`` of ``text_count`` texts."""
    return math.log(1 + (text_count - holding_count + 0.5) / (holding_count + 0.5))


def scores(
    words: Iterable[tuple[float, Iterable[tuple[int, int]]]], lengths: Sequence[int], *, by_length: float = _BY_LENGTH
) -> list[float]:
    """The score of each text.

    Args:
        words: For each word its weight, and for each text that holds it the text's index and how often it occurs there.
        lengths: The lengths of all texts, in words.
        by_length: How strongly a text's length counts against it, from 0 (not at all) to 1.
    """
    mean = sum(lengths) / max(len(lengths), 1) or 1.0
    damping = [_SATURATION * (1 - by_length + by_length * length / mean) for length in lengths]
    totals = [0.0] * len(lengths)
    for weight, holding in words:
        for text, count in holding:
            totals[text] += weight * count * (_SATURATION + 1) / (count + damping[text])
    return totals
