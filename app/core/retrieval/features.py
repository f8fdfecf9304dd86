"""Computes the features of pieces as answers to a question: each has one number per piece, mostly between 0 and 1."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import repeat
from operator import add, mul
from typing import Final

from app.core.retrieval import bm25
from app.core.retrieval.corpus import Corpus, has_number
from app.core.retrieval.question import Question
from app.core.retrieval.relating import relations

Values = list[float]
ECHO: Final = "echo"
"""The feature that is computed piece by piece, on demand. It can only lower a score."""

_KERNEL: Final = ((1, 0.6), (2, 0.4), (3, 0.2))
"""Distances with the share of a score that spreads so far. An answer often shares no word with its question, so scores
spread to messages nearby."""
_HOLDS_NEAR: Final = ((0, 1.0), (1, 0.7), (2, 0.45), (3, 0.25))
_MAX_LENGTH_LOGARITHM: Final = 2.0  # of a logarithm: a ratio of lengths above e² = 7 counts as 7
_HOP_FROM: Final = 8  # messages that the second hop starts from
_HOP_WORDS: Final = 12
_HOP_COMMON: Final = 0.05  # share of all messages: a more common word leads everywhere
_HOP_ENOUGH: Final = 0.2  # share of the best score: a higher score by common topics adds nothing


def features(corpus: Corpus, question: Question) -> dict[str, Sequence[float]]:
    """Every feature by name, each with one number per piece of the corpus."""
    return {**_Features(corpus, question).all(), ECHO: corpus.echoes}


class _Features:
    def __init__(self, corpus: Corpus, question: Question) -> None:
        self._corpus = corpus
        self._question = question
        self._count = len(corpus.pieces)
        self._none = [0.0] * self._count
        self._own = _scaled(self._match_scores(question.stems))
        self._named = [float(speaker in question.named) for speaker in corpus.piece_speakers]
        self._names_somebody = any(self._named)
        self._fixed = corpus.fixed_features
        self._first = self._spread_scores()

    def all(self) -> dict[str, Values]:
        """Every feature but ``ECHO``, in groups: words, surroundings, who speaks, what kind of answer it could be."""
        near = self._near_coverage()
        return {
            **self._match_features(),
            **self._surrounding_features(near),
            **self._speaker_features(near),
            **self._kind_features(near),
            **relations(self._corpus, self._question.stems),
        }

    def _match_features(self) -> dict[str, Values]:
        covered, hits = self._covered_and_hits
        own = self._own
        return {
            "own": own,
            "two_before": self._values_at(-2, own),
            "covered": covered,
            "hits": hits,
        }

    def _surrounding_features(self, near: Values) -> dict[str, Values]:
        asks, has_question = self._fixed["asks"], self._fixed["has_question"]
        return {
            "near": near,
            "spread": _scaled(self._first),
            "sitting": self._sitting_scores(),
            "second_hop": self._second_hop(),
            "asks": asks,
            "asks_own": _products(asks, self._own),
            "follows_match": self._values_at(-1, _products(has_question, self._own)),
        }

    def _speaker_features(self, near: Values) -> dict[str, Values]:
        fixed = self._fixed
        return {
            "named": self._named,
            "named_near": self._values_of_named_people(near),
            "information": fixed["information"],
            "mean_information": fixed["mean_information"],
            "named_information": self._values_of_named_people(fixed["information"]),
            "user_says": self._user_says(),
        }

    def _values_of_named_people(self, values: Values) -> Values:
        return _products(self._named, values) if self._names_somebody else self._none

    def _user_says(self) -> Values:
        # If the assistant answers at length, the facts of the user's life are in the user's own messages.
        corpus = self._corpus
        value = 0.0 if "assistant" in self._question.named else min(corpus.answers_at_length, _MAX_LENGTH_LOGARITHM)
        if not value:
            return self._none
        covered, _ = self._covered_and_hits
        return [
            value * (1.0 if speaker == "user" else held * held)  # without names the speakers are roles
            for speaker, held in zip(corpus.piece_speakers, covered, strict=True)
        ]

    def _kind_features(self, near: Values) -> dict[str, Values]:
        question, corpus = self._question, self._corpus
        return {
            "says_when": self._fixed["says_when"],
            "when_near": _products(self._fixed["says_when"], near) if question.asks_when else self._none,
            "date": self._date_nearness() if question.months or question.years else self._none,
            "number": [float(has_number(text)) for text in corpus.texts] if question.asks_number else self._none,
        }

    def _date_nearness(self) -> Values:
        by_message = [self._question.nearness(source.at.date()) for source in self._corpus.sources]
        return list(map(by_message.__getitem__, self._corpus.owners))

    def _match_scores(self, weights: Mapping[str, float]) -> Values:
        """BM25 over single pieces."""
        corpus = self._corpus
        return bm25.scores(
            (
                (
                    corpus.rarity(stem) * weight,
                    [(index, corpus.words[index].counts[stem]) for index in corpus.postings.get(stem, ())],
                )
                for stem, weight in weights.items()
            ),
            corpus.lengths,
        )

    def _values_at(self, distance: int, values: Sequence[float]) -> Values:
        (at_distance,) = self._values_at_each(values, distance)
        return list(at_distance)

    def _values_at_each(self, values: Sequence[float], *distances: int) -> Iterator[Iterator[float]]:
        value_at = [*values, 0.0].__getitem__  # index -1, "no neighbour", gives the 0.0 at the end
        return (map(value_at, self._corpus.neighbours(distance)) for distance in distances)

    def _spread_scores(self) -> Values:
        sides = (
            side
            for distance, share in _KERNEL
            for side in self._values_at_each(_scaled_by(share, self._own), -distance, distance)
        )
        return [
            (own + a + b + c + d + e + f) * (1 + 0.5 * named) * (1 - 0.4 * asks)
            for own, a, b, c, d, e, f, named, asks in zip(
                self._own, *sides, self._named, self._fixed["asks"], strict=True
            )
        ]

    @cached_property
    def _stem_shares(self) -> dict[str, float]:
        rarities = {stem: self._corpus.rarity(stem) * weight for stem, weight in self._question.stems.items()}
        total = sum(rarities.values()) or 1.0
        return {stem: rarity / total for stem, rarity in rarities.items()}

    @cached_property
    def _covered_and_hits(self) -> tuple[Values, Values]:
        covered, hits = [0.0] * self._count, [0.0] * self._count
        weights = self._stem_shares
        all_of_them = sum(self._question.stems.values())
        for stem, weight in weights.items():
            hit = self._question.stems[stem] / all_of_them
            for index in self._corpus.postings.get(stem, ()):
                covered[index] += weight
                hits[index] += hit
        return covered, hits

    def _near_coverage(self) -> Values:
        """The share of the question that each piece and those around it cover; pieces farther away count less."""
        near = [0.0] * self._count
        nowhere = [0.0] * (self._count + 1)  # the last place takes values of index -1
        around = [
            (share, self._corpus.neighbours(side))
            for distance, share in reversed(_HOLDS_NEAR)
            for side in {distance, -distance}
        ]
        for stem, weight in self._stem_shares.items():
            holding = self._corpus.postings.get(stem, ())
            best = nowhere.copy()
            for share, there in around:  # the nearest comes last and overwrites the others
                value = weight * share
                for index in holding:
                    best[there[index]] = value
            near = list(map(add, near, best)) if holding else near
        return near

    def _sitting_scores(self) -> Values:
        """BM25 over whole sittings."""
        corpus = self._corpus
        sittings, words, lengths = corpus.sittings, corpus.words, corpus.sitting_lengths
        asked: list[tuple[float, Iterable[tuple[int, int]]]] = []
        for stem in self._question.stems:
            holding: dict[int, int] = {}
            for index in corpus.postings.get(stem, ()):
                sitting = sittings[index]
                holding[sitting] = holding.get(sitting, 0) + words[index].counts[stem]
            asked.append((bm25.rarity(len(lengths), len(holding)), holding.items()))
        scaled = _scaled(bm25.scores(asked, lengths, by_length=0.5))
        return list(map(scaled.__getitem__, sittings))

    def _second_hop(self) -> Values:
        """Scores by the rare words of the best messages that the question lacks (pseudo relevance feedback)."""
        corpus = self._corpus
        best = sorted(range(self._count), key=self._first.__getitem__, reverse=True)[:_HOP_FROM]
        weights: dict[str, float] = {}
        for rank, index in enumerate(best, start=1):
            for stem in corpus.words[index].counts:
                if stem not in self._question.stems and 1 < corpus.documents(stem) < _HOP_COMMON * corpus.total:
                    weights[stem] = weights.get(stem, 0.0) + corpus.rarity(stem) * self._first[index] / math.sqrt(rank)
        chosen = sorted(weights.items(), key=lambda item: -item[1])[:_HOP_WORDS]
        top = chosen[0][1] if chosen else 0.0
        if top <= 0:
            return self._none
        found = _scaled(self._match_scores({stem: weight / top for stem, weight in chosen}))
        return [min(value, _HOP_ENOUGH) for value in found]


def _scaled(values: Sequence[float]) -> Values:
    top = max(values, default=0.0)
    return [value / top for value in values] if top > 0 else list(values)


def _products(left: Iterable[float], right: Iterable[float]) -> Values:
    return list(map(mul, left, right))  # takes half the time of a loop


def _scaled_by(share: float, values: Iterable[float]) -> Values:
    return list(map(mul, repeat(share), values))
