"""Learns from reported usage how many of the provider's tokens one estimated token is, for each conversation."""

from __future__ import annotations

import math
from typing import Final

MIN_FACTOR: Final = 0.7
MAX_FACTOR: Final = 1.5
"""The bounds of the factor: an estimate is never further off than the estimator's published error and a foreign
vocabulary together explain."""

MAX_STEP: Final = 0.05
"""The most that one report moves the factor: a usage reported ten times too high is one step, not a compaction."""

WEIGHT: Final = 0.2
"""The weight of the newest report in the average: ten honest reports bring the factor nine tenths of the way."""

MIN_TOKENS: Final = 200
"""Nothing is learnt from fewer tokens: there the frame that a provider puts around a request outweighs the text."""


_DIGITS: Final = 6
"""Decimal places to which products are rounded, so that ten tokens at 1.1 count as 11 and not as 12."""


def counted(estimated: int, factor: float) -> int:
    """Estimated tokens converted to the provider's tokens, rounded up: thresholds are compared with these."""
    return math.ceil(round(estimated * factor, _DIGITS))


def estimated_within(tokens: int, factor: float) -> int:
    """The most estimated tokens that count as at most ``tokens``."""
    most = math.floor(tokens / factor) + 1
    while counted(most, factor) > tokens:
        most -= 1
    return most


def adjusted_factor(factor: float, *, estimated: int, reported: int) -> float:
    """The factor after one report.

    Args:
        factor: What was learnt so far; 1.0 at first. A stored factor outside the bounds is brought back into them.
        estimated: Our own estimate of exactly the request that was sent, not multiplied by the factor.
        reported: The provider's count of that request's input tokens, cached ones included.

    Returns:
        A factor within ``MIN_FACTOR`` and ``MAX_FACTOR``, at most ``MAX_STEP`` from where it was; unchanged when
        either count is too small to say anything (0, negative, tiny).
    """
    present = _within(factor, MIN_FACTOR, MAX_FACTOR)
    if min(estimated, reported) < MIN_TOKENS:
        return present
    # An honest ratio lies within the bounds; a ratio beyond them moves the factor no more than the bound itself would.
    aim = _within(reported / estimated, MIN_FACTOR, MAX_FACTOR)
    return _within(present + _step(present, aim), MIN_FACTOR, MAX_FACTOR)


def _step(present: float, aim: float) -> float:
    return _within(WEIGHT * (aim - present), -MAX_STEP, MAX_STEP)


def _within(value: float, least: float, most: float) -> float:
    return min(max(value, least), most)
