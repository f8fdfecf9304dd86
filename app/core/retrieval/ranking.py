"""Ranks the messages that may be recalled, and packs the best of them into an allotment."""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from itertools import chain, compress, repeat
from operator import itemgetter, mul, sub
from types import MappingProxyType
from typing import Final

from app.core.retrieval.corpus import Corpus, Source
from app.core.retrieval.features import ECHO, features
from app.core.retrieval.question import Question
from app.core.retrieval.similarity import SIMILARITY_FEATURE, best_by_words, likeness_of_pieces
from app.core.retrieval.weights import WEIGHTS

LENGTH_PRICE: Final = 0.5
"""A message loses this times the logarithm of its tokens: a milder price of length than a score per token."""
DATE_LINE_TOKENS: Final = 5
"""Tokens of the line with the date of a day's messages."""
EXCERPT_FRAME_TOKENS: Final = 16
"""Tokens around a part of a message, rounded up."""
SCORE_MARGIN: Final = 6.0
"""In a turn, no message is recalled whose score is this far below the best: it is e⁶ = 400 times less likely.

On LoCoMo this margin keeps all evidence of 94 % of the questions, and leaves out four fifths of a talk.
"""
_TOO_SHORT: Final = 8  # tokens; packing ends when less than this is left of the allotment
_SHOWN_REASONS: Final = 3
_LEADING: Final = ("near", "date", "kind", "form", "family_near")
"""Features that lead to a message. If no message has any of them, nothing is recalled for the question."""
_STANDS_OUT: Final = 0.75
"""From this likeness on a message may be recalled even without a common word: it is three standard deviations above
the other messages."""
_EXCERPTED: Final = 2  # best messages that are served in part where they do not fit as a whole


@dataclass(frozen=True, slots=True, kw_only=True)
class RecalledMessage:
    """A message that was chosen for recall, and why."""

    source: Source
    score: float
    reasons: Mapping[str, float]
    """The features that raised its score most, each with what it added."""
    excerpt: str = ""
    """The part that is served of a message that does not fit as a whole, verbatim; empty: the message is whole."""


class Ranking:
    """The score of each message, computed once and packed as often as the room changes.

    Args:
        corpus: The messages, served ones included: a message's score depends on those around it.
        question: What is asked.
        cosines: The cosine of the question's and the message's vectors by ``seq``, for messages that have a vector.
    """

    def __init__(
        self, corpus: Corpus, question: Question, *, cosines: Mapping[int, float] = MappingProxyType({})
    ) -> None:
        self._corpus = corpus
        asks = bool(question.stems or question.months or question.years)
        self._features = features(corpus, question) if asks else {}
        likeness = likeness_of_pieces(corpus, cosines) if asks and cosines else None
        if likeness is not None:
            self._features[SIMILARITY_FEATURE] = likeness
        self._scores = _Scores(self._features, len(corpus.pieces))
        self._known_reasons: dict[int, Mapping[str, float]] = {}
        self._limits: dict[tuple[frozenset[int], float], tuple[float, int]] = {}
        self._ordered: list[int] = []
        self._following = _by_score_less_price(corpus.costs, self._best_pieces, self._scores)

    def best(self, count: int) -> list[int]:
        """The ``seq`` of the ``count`` messages with the best scores, best first."""
        return best_by_words(self._corpus, list(map(self._scores.of, range(len(self._scores.most)))), count)

    @property
    def closeness(self) -> dict[int, float]:
        """How near each message's score is to the best, by ``seq``: 1 for the best, 0 at ``SCORE_MARGIN`` below.

        Messages farther below are left out.
        """
        corpus, found = self._corpus, self._features
        if not found or not any(any(found[name]) for name in _LEADING):
            return {}
        best = self._scores.best_of(range(len(self._scores.most)))
        near: dict[int, float] = {}
        for index, most in enumerate(self._scores.most):
            seq = corpus.source(index).seq
            before = near.get(seq, 0.0)
            if (
                1 - (best - most) / SCORE_MARGIN > before
                and (close := 1 - (best - self._scores.of(index)) / SCORE_MARGIN) > before
            ):
                near[seq] = close
        return near

    def packed(
        self, max_tokens: int, *, served: Collection[int] = (), margin: float = math.inf
    ) -> tuple[RecalledMessage, ...]:
        """The messages that fit into ``max_tokens`` tokens, best value first; empty when nothing matches.

        They are taken in order of their scores less the price of their lengths. A message that does not fit is passed
        over for a shorter one; of the very best messages, the best part is taken instead.

        Args:
            max_tokens: Tokens for the messages with their lines and dates.
            served: Positions that are not to be recalled.
            margin: How far below the best score a message may be.
        """
        if not self._has_unserved_leads(served):
            return ()
        least, shortest = self._packing_limits(frozenset(served), margin)
        packing = _Packing(self._corpus, self._scores.of, self._reasons, max_tokens)
        sources, best, rank = self._corpus.sources, self._best_pieces, 0
        for message in self._messages_in_order():
            if sources[message].seq in served or self._scores.of(best[message]) < least:
                continue
            if packing.tokens_left < shortest and rank >= _EXCERPTED:
                break
            packing.add(message, best[message], may_cut=rank < _EXCERPTED)
            rank += 1
        return tuple(packing.chosen)

    def _packing_limits(self, served: frozenset[int], margin: float) -> tuple[float, int]:
        """The lowest score of a message that may be packed, and the least room in which any such message fits."""
        found = self._limits.get((served, margin))
        if found is None:
            costs, best, least = self._corpus.costs, self._best_pieces, -math.inf
            left = [index for index, source in enumerate(self._corpus.sources) if source.seq not in served]
            if margin < math.inf:
                least = self._scores.best_of([best[message] for message in left]) - margin
                left = [message for message in left if self._scores.most[best[message]] >= least]
            found = least, max(min(map(costs.__getitem__, left)), _TOO_SHORT)
            self._limits[served, margin] = found
        return found

    def _has_unserved_leads(self, served: Collection[int]) -> bool:
        corpus, found = self._corpus, self._features
        places = range(len(corpus.pieces))
        led = chain.from_iterable(compress(places, found[name]) for name in _LEADING if found)
        alike = (index for index, value in enumerate(found.get(SIMILARITY_FEATURE, ())) if value >= _STANDS_OUT)
        return any(corpus.source(index).seq not in served for index in chain(led, alike))

    @cached_property
    def _best_pieces(self) -> list[int]:
        owners = self._corpus.owners
        if len(owners) == len(self._corpus.sources):  # each message is one piece
            return owners
        best: dict[int, int] = {}
        most = self._scores.most
        for index, message in enumerate(owners):
            if message not in best or most[index] > most[best[message]]:
                best[message] = index
        return list(best.values())

    def _messages_in_order(self) -> Iterator[int]:
        for place in range(len(self._best_pieces)):
            if place == len(self._ordered):
                self._ordered.append(next(self._following))
            yield self._ordered[place]

    def _reasons(self, index: int) -> Mapping[str, float]:
        # Packing again mostly chooses the same messages.
        if index not in self._known_reasons:
            self._known_reasons[index] = _strongest_reasons(self._positive_features, index)
        return self._known_reasons[index]

    @cached_property
    def _positive_features(self) -> list[tuple[str, float, Sequence[float]]]:
        columns = ((name, WEIGHTS[name], column) for name, column in self._features.items())
        return [(name, weight, column) for name, weight, column in columns if weight > 0 and any(column)]


class _Scores:
    """The score of each piece. Its echo takes long to find, and is looked for only where it may matter."""

    def __init__(self, found: Mapping[str, Sequence[float]], count: int) -> None:
        self.most = piece_scores({name: column for name, column in found.items() if name != ECHO}, count)
        """The scores before echoes are subtracted: no piece has more."""
        self._echoes = found.get(ECHO)
        self._known: dict[int, float] = {}

    def of(self, index: int) -> float:
        """The score of a piece."""
        found = self._known.get(index)
        if found is None:
            echo = self._echoes[index] if self._echoes else 0.0
            found = self._known[index] = self.most[index] + WEIGHTS[ECHO] * echo
        return found

    def best_of(self, indexes: Iterable[int]) -> float:
        """The best score of these pieces."""
        best = -math.inf
        for index in indexes:
            if self.most[index] > best:
                best = max(best, self.of(index))
        return best


def _by_score_less_price(costs: Sequence[int], best: Sequence[int], scores: _Scores) -> Iterator[int]:
    # Messages are sorted only as far as the caller reads, since an echo takes long to find.
    prices = list(map(mul, repeat(LENGTH_PRICE), map(math.log, costs)))
    least = list(map(sub, prices, map(scores.most.__getitem__, best)))
    waiting: list[tuple[float, int]] = []  # only a few: those with an echo, the best one last
    for message in sorted(range(len(least)), key=least.__getitem__):
        while waiting and -waiting[-1][0] < least[message]:
            yield -waiting.pop()[1]
        insort(waiting, (scores.of(best[message]) - prices[message], -message))
    while waiting:
        yield -waiting.pop()[1]


class _Packing:
    def __init__(
        self,
        corpus: Corpus,
        value: Callable[[int], float],
        reasons: Callable[[int], Mapping[str, float]],
        tokens_left: int,
    ) -> None:
        self._corpus = corpus
        self._value = value
        self._reasons = reasons
        self._days: set[date] = set()
        self.tokens_left = tokens_left
        self.chosen: list[RecalledMessage] = []

    def add(self, message: int, index: int, *, may_cut: bool) -> None:
        """Take a message if it fits, or, where it may be cut, its best piece."""
        source = self._corpus.sources[message]
        dated = 0 if source.at.date() in self._days else DATE_LINE_TOKENS
        cost, excerpt = self._corpus.costs[message] + dated, ""
        if cost > self.tokens_left:
            cost, excerpt = self._piece_with_neighbour(index, self.tokens_left - EXCERPT_FRAME_TOKENS - dated)
            cost += EXCERPT_FRAME_TOKENS + dated
            if not may_cut or cost > self.tokens_left or len(excerpt) >= len(source.text) or not excerpt:
                return
        self.tokens_left -= cost
        self._days.add(source.at.date())
        self.chosen.append(
            RecalledMessage(
                source=source,
                score=round(self._value(index), 3),
                reasons=self._reasons(index),
                excerpt=excerpt,
            )
        )

    def _piece_with_neighbour(self, index: int, max_tokens: int) -> tuple[int, str]:
        pieces, piece = self._corpus.pieces, self._corpus.pieces[index]
        neighbours = [place for place in (index + 1, index - 1) if 0 <= place < len(pieces)]
        neighbours = [place for place in neighbours if pieces[place].owner == piece.owner]
        start, end, tokens = piece.start, piece.end, piece.tokens
        if neighbours:
            other = pieces[max(neighbours, key=self._value)]
            if tokens + other.tokens <= max_tokens:
                start, end, tokens = min(start, other.start), max(end, other.end), tokens + other.tokens
        return tokens, self._corpus.sources[piece.owner].text[start:end].strip()


def piece_scores(feature_values: Mapping[str, Sequence[float]], count: int) -> list[float]:
    """The score of each of ``count`` pieces, by a linear model over ``features``."""
    nothing = [0.0] * count
    columns = [(WEIGHTS[name], column) for name, column in feature_values.items() if WEIGHTS[name] and any(column)]
    columns += [(0.0, nothing)] * (-len(columns) % 4)
    total = nothing
    for place in range(0, len(columns), 4):  # four at a time take two thirds of the time
        (a, first), (b, second), (c, third), (d, fourth) = columns[place : place + 4]
        rows = zip(total, first, second, third, fourth, strict=True)
        total = [before + a * one + b * two + c * three + d * four for before, one, two, three, four in rows]
    return total


def _strongest_reasons(positive_features: Iterable[tuple[str, float, Sequence[float]]], index: int) -> dict[str, float]:
    weighted = [(name, value) for name, weight, column in positive_features if (value := weight * column[index]) > 0]
    best = sorted(weighted, key=itemgetter(1), reverse=True)[:_SHOWN_REASONS]
    return {name: round(value, 3) for name, value in best}
