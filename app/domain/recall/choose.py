"""Ranking what may be recalled, and packing the best of it into an allotment."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Final

from app.domain.recall.corpus import Corpus, Source
from app.domain.recall.features import Values, features
from app.domain.recall.question import Question
from app.domain.recall.weights import WEIGHTS
from app.domain.weighing.tokens import MESSAGE_OVERHEAD

PRICE: Final = 0.5
"""What a message's length costs it, per natural logarithm of its tokens: value per token, softened."""
LINE: Final = 2
"""Tokens around a recalled message, rounded up."""
DAY: Final = 3
"""Tokens of the line that dates the messages of a day."""
MARGIN: Final = 6.0
"""In a turn nothing is recalled whose score is so far below the best: the model deems it e⁶ = 400 times less likely.

On LoCoMo all evidence of 95 % of the questions is within it, and three quarters of a talk are not.
"""
_TOO_SHORT: Final = 8  # tokens; what is left of an allotment below that holds no message
_SHOWN_REASONS: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalled:
    """A message that was chosen, and why."""

    source: Source
    score: float
    reasons: Mapping[str, float]
    """The features that spoke most for it, with what each added to its score."""


def scores(corpus: Corpus, question: Question) -> list[float]:
    """How much speaks for each message, by a linear model over ``features``."""
    return _scores(features(corpus, question), len(corpus.sources))


def choose(
    corpus: Corpus,
    question: Question,
    *,
    room: int,
    served: Collection[int] = (),
    margin: float = math.inf,
) -> tuple[Recalled, ...]:
    """The messages that fit into ``room`` tokens, best value first; empty when nothing matches.

    A greedy packing by score less the price of length: what does not fit is passed over for something shorter.

    Args:
        corpus: The messages, also those that are served: what stands around a message speaks for it.
        question: What is asked.
        room: Tokens for the messages with their lines and dates.
        served: Positions that are not to be recalled.
        margin: How far below the best score a message may be.
    """
    candidates = [index for index, source in enumerate(corpus.sources) if source.seq not in served]
    if not question.stems and not question.months and not question.years:
        return ()
    found = features(corpus, question)
    if not any(found["near"][index] or found["date"][index] for index in candidates):
        return ()
    values = _scores(found, len(corpus.sources))
    least = max(values[index] for index in candidates) - margin
    worth = {index: values[index] - PRICE * math.log(_cost(corpus.sources[index])) for index in candidates}
    chosen: list[Recalled] = []
    days: set[date] = set()
    for index in sorted(candidates, key=lambda place: (-worth[place], place)):
        source = corpus.sources[index]
        cost = _cost(source) + (0 if source.at.date() in days else DAY)
        if cost > room or values[index] < least:
            continue
        room -= cost
        days.add(source.at.date())
        chosen.append(Recalled(source=source, score=round(values[index], 3), reasons=_reasons(found, index)))
        if room < _TOO_SHORT:
            break
    return tuple(chosen)


def _scores(found: Mapping[str, Values], count: int) -> list[float]:
    total = [0.0] * count
    for name, column in found.items():
        weight = WEIGHTS[name]
        total = [score + weight * value for score, value in zip(total, column, strict=True)]
    return total


def _cost(source: Source) -> int:
    return max(source.tokens - MESSAGE_OVERHEAD, 1) + LINE


def _reasons(found: Mapping[str, Values], index: int) -> dict[str, float]:
    weighted = {name: WEIGHTS[name] * column[index] for name, column in found.items()}
    best = sorted(weighted.items(), key=lambda item: -item[1])[:_SHOWN_REASONS]
    return {name: round(value, 3) for name, value in best if value > 0}
