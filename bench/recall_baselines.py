"""The baselines of recall: plain selections of whole messages of the same size."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Final

from app.core.text.stemming import stem_language, stems_in
from app.core.text.token_counts import estimate_text
from bench.survival import _centrality

_K1: Final = 1.2
_B: Final = 0.75
_SEED: Final = 1

Baseline = Callable[[str, int], set[int]]
"""Gives the positions of the messages to serve, for a question and a budget in tokens."""


class Baselines:
    """Selections of one talk's messages; orders that do not depend on the question are computed once."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._costs = [estimate_text(f"{text}\n") for text in texts]
        self._language = stem_language(texts)
        self._bags = [Counter(stems_in(text, self._language)) for text in texts]
        self._documents = Counter(stem for bag in self._bags for stem in bag)
        self._mean = sum(bag.total() for bag in self._bags) / max(len(texts), 1)
        central = _centrality(self._bags)
        self._central = sorted(range(len(texts)), key=lambda index: (-central[index], index))
        self._drawn = list(range(len(texts)))
        random.Random(_SEED).shuffle(self._drawn)
        self._matched = lru_cache(maxsize=8)(self.by_match)  # the same question at several sizes

    def all(self) -> dict[str, Baseline]:
        """All baselines by name."""
        return {
            "newest first": self._newest,
            "head and tail": self._head_and_tail,
            "LexRank": lambda _, room: self._filled(self._central, room),
            "random": lambda _, room: self._filled(self._drawn, room),
            "BM25": lambda question, room: self._filled(self._matched(question), room),
        }

    def _newest(self, question: str, room: int) -> set[int]:  # noqa: ARG002 - one shape for all
        return self._filled(reversed(range(len(self._costs))), room)

    def _head_and_tail(self, question: str, room: int) -> set[int]:
        head = self._filled(range(len(self._costs)), room // 2)
        return head | self._newest(question, room - room // 2)

    def by_match(self, question: str) -> list[int]:
        """Positions from 0, ranked by BM25, best first."""
        asked, total = set(stems_in(question, self._language)), len(self._bags)
        scores = [0.0] * total
        for stem in asked:
            holding = self._documents[stem]
            rarity = math.log(1 + (total - holding + 0.5) / (holding + 0.5))
            for index, bag in enumerate(self._bags):
                if count := bag[stem]:
                    weight = count + _K1 * (1 - _B + _B * bag.total() / self._mean)
                    scores[index] += rarity * count * (_K1 + 1) / weight
        return sorted(range(total), key=lambda index: (-scores[index], index))

    def _filled(self, order: Iterable[int], room: int) -> set[int]:
        """The positions of the messages that fit, taken in this order."""
        chosen: set[int] = set()
        for index in order:
            if self._costs[index] <= room:
                room -= self._costs[index]
                chosen.add(index + 1)
        return chosen
