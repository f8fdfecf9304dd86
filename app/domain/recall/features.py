"""What speaks for a message as an answer: each feature a number per message, most of them within 0–1."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from app.domain.recall.corpus import Corpus
from app.domain.recall.question import Question

Values = list[float]

_K1: Final = 1.2
_B: Final = 0.6
_KERNEL: Final = ((1, 0.6), (2, 0.4), (3, 0.2))
"""An answer often shares no word with its question: scores spread to messages nearby."""
_HOLDS_NEAR: Final = ((0, 1.0), (1, 0.7), (2, 0.45), (3, 0.25))
_FAR: Final = range(4, 9)
_HOP_FROM: Final = 8  # messages that the second hop starts from
_HOP_WORDS: Final = 12
_HOP_COMMON: Final = 0.05  # of all messages: a commoner word leads everywhere


def features(corpus: Corpus, question: Question) -> dict[str, Values]:
    """Every feature by name, each with one number per message of the corpus."""
    return _Features(corpus, question).all()


class _Features:
    def __init__(self, corpus: Corpus, question: Question) -> None:
        self._corpus = corpus
        self._question = question
        self._count = len(corpus.sources)
        self._own = _scaled(self._match(dict.fromkeys(question.stems, 1.0)))
        self._named = [float(words.speaker in question.named) for words in corpus.words]
        self._asks = [float(words.is_question) for words in corpus.words]
        self._first = self._spread()

    def all(self) -> dict[str, Values]:
        """Every feature, in groups: words, surroundings, who speaks, and what kind of answer it could be."""
        near = self._near()
        return {**self._matches(), **self._surroundings(near), **self._speaking(near), **self._kinds(near)}

    def _matches(self) -> dict[str, Values]:
        covered, hits = self._covered()
        own = self._own
        return {
            "own": own,
            "before": self._from(-1, own),
            "after": self._from(1, own),
            "two_before": self._from(-2, own),
            "two_after": self._from(2, own),
            "covered": covered,
            "hits": hits,
        }

    def _surroundings(self, near: Values) -> dict[str, Values]:
        has_question = [float(item.has_question) for item in self._corpus.words]
        return {
            "near": near,
            "spread": _scaled(self._first),
            "sitting": self._sitting_match(),
            "sitting_covered": self._sitting_covered(),
            "second_hop": self._second_hop(),
            "far": self._far(),
            "asks": self._asks,
            "asks_own": _times(self._asks, self._own),
            "follows_question": self._from(-1, has_question),
            "follows_match": self._from(-1, _times(has_question, self._own)),
        }

    def _speaking(self, near: Values) -> dict[str, Values]:
        corpus, named, own = self._corpus, self._named, self._own
        somebody = float(bool(self._question.named) and any(named))
        information = [value / 30 for value in corpus.information]
        first_person = [item.first_person for item in corpus.words]
        return {
            "named": named,
            "named_near": _times(named, near),
            "unnamed_own": [somebody * (1 - is_named) * value for is_named, value in zip(named, own, strict=True)],
            "named_length": _times(named, [math.log1p(source.tokens) / 4 for source in corpus.sources]),
            "information": information,
            "mean_information": [
                value / max(len(item.counts), 1) / 6
                for value, item in zip(corpus.information, corpus.words, strict=True)
            ],
            "named_information": _times(named, information),
            "second_person": [item.second_person for item in corpus.words],
            "first_person": first_person,
            "named_first_person": _times(named, first_person),
        }

    def _kinds(self, near: Values) -> dict[str, Values]:
        question, words = self._question, self._corpus.words
        return {
            "says_when": [float(item.says_when) for item in words],
            "when_near": [question.asks_when * item.says_when * value for item, value in zip(words, near, strict=True)],
            "date": [question.nearness(source.at.date()) for source in self._corpus.sources],
            "who": [question.asks_who * max(float(item.names_people), min(item.names / 3, 1.0)) for item in words],
            "title": [question.asks_title * max(float(item.has_title), min(item.names / 6, 0.5)) for item in words],
            "number": [float(question.asks_number and item.has_number) for item in words],
            "place": [float(question.asks_where and item.names_place) for item in words],
            "names": [min(item.names / 3, 1.0) for item in words],
        }

    def _match(self, weights: Mapping[str, float]) -> Values:
        """BM25 (Robertson and Zaragoza, 2009) over single messages."""
        corpus, scores = self._corpus, [0.0] * self._count
        for stem, weight in weights.items():
            rarity = corpus.rarity(stem) * weight
            for index in corpus.postings.get(stem, ()):
                item = corpus.words[index]
                count = item.counts[stem]
                scores[index] += (
                    rarity * count * (_K1 + 1) / (count + _K1 * (1 - _B + _B * item.length / corpus.average))
                )
        return scores

    def _from(self, distance: int, values: Sequence[float]) -> Values:
        """For each message the value of the one at that distance, 0 where there is none."""
        places = (self._corpus.at(index, distance) for index in range(self._count))
        return [0.0 if place is None else values[place] for place in places]

    def _spread(self) -> Values:
        scores = list(self._own)
        for distance, share in _KERNEL:
            for side in (-distance, distance):
                scores = [
                    score + share * value for score, value in zip(scores, self._from(side, self._own), strict=True)
                ]
        return [
            score * (1 + 0.5 * named) * (1 - 0.4 * asks)
            for score, named, asks in zip(scores, self._named, self._asks, strict=True)
        ]

    def _weights(self) -> dict[str, float]:
        """Each stem's share of what the question asks."""
        rarities = {stem: self._corpus.rarity(stem) for stem in self._question.stems}
        total = sum(rarities.values()) or 1.0
        return {stem: rarity / total for stem, rarity in rarities.items()}

    def _covered(self) -> tuple[Values, Values]:
        covered, hits = [0.0] * self._count, [0.0] * self._count
        weights = self._weights()
        for stem, weight in weights.items():
            for index in self._corpus.postings.get(stem, ()):
                covered[index] += weight
                hits[index] += 1 / len(weights)
        return covered, hits

    def _near(self) -> Values:
        """Like ``covered``, by the message and those around it, less by those farther away."""
        near = [0.0] * self._count
        for stem, weight in self._weights().items():
            best: dict[int, float] = {}
            for index in self._corpus.postings.get(stem, ()):
                for distance, share in _HOLDS_NEAR:
                    for place in {self._corpus.at(index, distance), self._corpus.at(index, -distance)} - {None}:
                        best[place] = max(best.get(place, 0.0), share)  # type: ignore[index, arg-type]
            for place, share in best.items():
                near[place] += weight * share
        return near

    def _sitting_match(self) -> Values:
        """BM25 over whole sittings."""
        corpus = self._corpus
        counts = corpus.sitting_counts
        lengths = [max(sum(item.values()), 1) for item in counts]
        mean = sum(lengths) / max(len(lengths), 1)
        scores = [0.0] * len(counts)
        for stem in self._question.stems:
            holding = [index for index, item in enumerate(counts) if item[stem]]
            rarity = math.log(1 + (len(counts) - len(holding) + 0.5) / (len(holding) + 0.5))
            for index in holding:
                count = counts[index][stem]
                scores[index] += rarity * count * (_K1 + 1) / (count + _K1 * (0.5 + 0.5 * lengths[index] / mean))
        scaled = _scaled(scores)
        return [scaled[sitting] for sitting in corpus.sittings]

    def _sitting_covered(self) -> Values:
        weights = self._weights()
        shares = [sum(weight for stem, weight in weights.items() if item[stem]) for item in self._corpus.sitting_counts]
        return [shares[sitting] for sitting in self._corpus.sittings]

    def _second_hop(self) -> Values:
        """What the best messages talk of beside the question leads to others (pseudo relevance feedback)."""
        corpus = self._corpus
        best = sorted(range(self._count), key=lambda index: -self._first[index])[:_HOP_FROM]
        weights: Counter[str] = Counter()
        for rank, index in enumerate(best, start=1):
            for stem in corpus.words[index].counts:
                holding = corpus.documents(stem)
                if stem not in self._question.stems and 1 < holding < _HOP_COMMON * corpus.total:
                    weights[stem] += corpus.rarity(stem) * self._first[index] / math.sqrt(rank)  # type: ignore[assignment]
        chosen = dict(weights.most_common(_HOP_WORDS))
        top = max(chosen.values(), default=0.0)
        if top <= 0:
            return [0.0] * self._count
        return _scaled(self._match({stem: weight / top for stem, weight in chosen.items()}))

    def _far(self) -> Values:
        """The best score some messages away, less with the distance."""
        far = [0.0] * self._count
        for distance in _FAR:
            share = 1 - distance / 10
            for side in (-distance, distance):
                far = [
                    max(value, share * other) for value, other in zip(far, self._from(side, self._first), strict=True)
                ]
        return far


def _scaled(values: Sequence[float]) -> Values:
    top = max(values, default=0.0)
    return [value / top for value in values] if top > 0 else list(values)


def _times(left: Iterable[float], right: Iterable[float]) -> Values:
    return [a * b for a, b in zip(left, right, strict=True)]
