"""Which words of a piece are related to the question's: other forms, words of the kind asked for."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Final

from app.core.retrieval.corpus import Corpus
from app.core.retrieval.kinds import forms_of, of_kind
from app.core.text.languages.loading import languages

Values = list[float]
Related = Callable[[str], Iterable[str]]
"""The related stems of a stem, whether or not they stand in the conversation."""

_AROUND: Final = ((1, 0.6), (2, 0.3))
"""What is related speaks for messages nearby, as the words themselves do."""
_RARITY: Final = 5.0  # about the most that a word has; keeps the features within 0–1
_BEGINNING: Final = 5  # letters that words of one family share at least
_ENDINGS: Final = 3  # letters by which a longer word of the family may differ from what is shared
_APART: Final = 4  # letters of difference in length
_NAME: Final = 3  # letters; the endings of longer ones are folded
_ENDING_VOWELS: Final = "".join(one.terms.ending_vowels for one in languages())
_MOST: Final = 48  # stems of a question; what has more is a text


def relations(corpus: Corpus, asked: Mapping[str, float]) -> dict[str, Values]:
    """Features by name.

    Args:
        corpus: The pieces.
        asked: The question's stems with their weights.
    """
    weights = _stem_shares(corpus, islice(asked.items(), _MOST))
    kind = _related_scores(corpus, weights, of_kind)
    form = _related_scores(corpus, weights, lambda stem: (*forms_of(stem), *_short_name_cases(stem)))
    family = _related_scores(corpus, weights, lambda stem: _stems_of_same_beginning(corpus, stem))
    return {
        "kind": kind,
        "form": form,
        "kind_near": _spread_to_neighbours(corpus, kind),
        "form_near": _spread_to_neighbours(corpus, form),
        "family_near": _spread_to_neighbours(corpus, family),
    }


def _stem_shares(corpus: Corpus, asked: Iterable[tuple[str, float]]) -> dict[str, float]:
    # A stem that stands nowhere is the rarest, and only what is related to it can answer.
    nowhere = math.log(2 * (corpus.total + 1))
    rarities = {stem: weight * (corpus.rarity(stem) if corpus.documents(stem) else nowhere) for stem, weight in asked}
    total = sum(rarities.values()) or 1.0
    return {stem: rarity / total for stem, rarity in rarities.items()}


def _related_scores(corpus: Corpus, weights: Mapping[str, float], related: Related) -> Values:
    """For each piece: the rarest related stem that it has, for each stem of the question."""
    total = [0.0] * len(corpus.pieces)
    for stem, weight in weights.items():
        best: dict[int, float] = {}
        for other in filter(corpus.postings.holding.__contains__, related(stem)):  # hardly any
            rarity = corpus.rarity(other)
            for index in corpus.postings.get(other):
                best[index] = max(rarity, best.get(index, 0.0))
        for index, rarity in best.items():
            total[index] += weight * rarity / _RARITY
    return total


def _spread_to_neighbours(corpus: Corpus, values: Values) -> Values:
    total = list(values)
    holding = [(index, value) for index, value in enumerate(values) if value]  # few do
    for distance, share in _AROUND:
        for side in (-distance, distance):
            there = corpus.neighbours(side)
            for index, value in holding:
                if there[index] >= 0:
                    total[there[index]] += share * value
    return total


def _short_name_cases(stem: str) -> Iterator[str]:
    # A short Russian name keeps its ending in the stem.
    if len(stem) == _NAME and stem[-1] in _ENDING_VOWELS:
        yield from (stem[:-1] + vowel for vowel in _ENDING_VOWELS if vowel != stem[-1])


def _stems_of_same_beginning(corpus: Corpus, stem: str) -> Iterator[str]:
    """Other stems that begin alike: "paint" and "painter", "celebrat" and "celebration"."""
    if len(stem) < _BEGINNING or not stem.isalpha():
        return
    beginning = stem[: max(_BEGINNING, len(stem) - _ENDINGS)]
    vocabulary = corpus.vocabulary
    place = vocabulary.find(f"\n{beginning}")
    while place >= 0:
        end = vocabulary.index("\n", place + 1)
        other = vocabulary[place + 1 : end]
        if other != stem and abs(len(other) - len(stem)) <= _APART:
            yield other
        place = vocabulary.find(f"\n{beginning}", end)
