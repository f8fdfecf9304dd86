"""Choosing passages within a budget: the most worth per token, never the same thing twice."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Final

from app.domain.extraction.passages import Passage
from app.domain.tokens import estimate_text

ITEM_OVERHEAD: Final = 1
"""Tokens of the marks between two items of a list."""

_SAME: Final = 0.7  # of the smaller one's words shared: the same thing said again
_WORTH_A_PLACE: Final = 0.8
_DAMPED: Final = 0.8
_SMALLEST: Final = 8  # tokens; with less room nothing is worth trying


class Seen:
    """Texts that are already kept, by their words, to tell repetition from news."""

    def __init__(self, texts: Iterable[Collection[str]] = ()) -> None:
        self._postings: defaultdict[str, list[int]] = defaultdict(list)
        self._texts: list[frozenset[str]] = []
        for text in texts:
            self.add(text)

    def add(self, stems: Collection[str]) -> None:
        """Keep one more text."""
        for stem in stems:
            self._postings[stem].append(len(self._texts))
        self._texts.append(frozenset(stems))

    def repeats(self, stems: Collection[str]) -> bool:
        """Whether one kept text already says these words, or nearly; another number is another fact."""
        shared = Counter(number for stem in stems for number in self._postings.get(stem, ()))
        exact = {stem for stem in stems if any(character.isdigit() for character in stem)}
        return any(
            count >= _SAME * min(len(stems), len(self._texts[number]))
            and count >= _SAME * len(stems)
            and exact <= self._texts[number]
            for number, count in shared.items()
        )

    def share(self, stems: Collection[str]) -> float:
        """The share of these words that stand in any kept text."""
        return sum(stem in self._postings for stem in stems) / len(stems) if stems else 1.0


def choose(
    passages: Sequence[Passage],
    scores: Sequence[float],
    *,
    room: int,
    seen: Seen,
    render: Callable[[Passage], str],
    at_least_one: bool = False,
) -> list[Passage]:
    """The best passages whose rendered texts fit into ``room`` tokens, in order.

    A passage is worth less the more of its words were already kept; what only repeats is left out. With
    ``at_least_one``, something that holds an exact value or a name is taken even when nothing is worth a place.
    """
    ranked = sorted(
        (
            passage
            for passage in passages
            if scores[passage.index] >= _WORTH_A_PLACE or (at_least_one and passage.identifiers)
        ),
        key=lambda passage: (-_value(passage, scores), passage.index),
    )
    chosen: list[Passage] = []
    waiting: list[tuple[float, Passage]] = []
    left = room
    for passage in ranked:
        if left < _SMALLEST or (scores[passage.index] < _WORTH_A_PLACE and chosen):
            break
        if seen.repeats(passage.stems):
            continue
        stale = seen.share(passage.stems)
        if stale > 0.6 and chosen:  # noqa: PLR2004 - mostly said already: news first
            waiting.append((scores[passage.index] * (1.2 - stale), passage))
            continue
        left -= _take(passage, left, chosen, seen, render)
    for _, passage in sorted(waiting, key=lambda item: (-item[0], item[1].index)):
        if left < _SMALLEST:
            break
        if not seen.repeats(passage.stems):
            left -= _take(passage, left, chosen, seen, render)
    return sorted(chosen, key=lambda passage: passage.index)


def _take(passage: Passage, left: int, chosen: list[Passage], seen: Seen, render: Callable[[Passage], str]) -> int:
    cost = estimate_text(render(passage)) + ITEM_OVERHEAD
    if cost > left:
        return 0
    chosen.append(passage)
    seen.add(passage.stems)
    return cost


def _value(passage: Passage, scores: Sequence[float]) -> float:
    """Worth per token, damped so that a telling long sentence beats two empty short ones."""
    score = scores[passage.index]
    return score / (12 + len(passage.core) / 4) ** _DAMPED if score > 0 else score
