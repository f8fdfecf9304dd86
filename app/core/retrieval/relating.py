"""Computes features of pieces by words that are related to the question's: other forms, and things of a kind."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Final

from app.core.retrieval.corpus import Corpus
from app.core.retrieval.related_words import forms_of, stems_of_kind
from app.core.text.languages.loading import languages

Values = list[float]
Related = Callable[[str], Iterable[str]]
"""Gives the related stems of a stem, whether or not the conversation has them."""

_AROUND: Final = ((1, 0.6), (2, 0.3))
"""Distances with the share of a value that spreads so far: related words also raise the messages nearby."""
_RARITY: Final = 5.0  # about the highest rarity of a word; dividing by it keeps the features within 0–1
_BEGINNING: Final = 5  # letters that two words of a family have in common at the beginning, at least
_ENDINGS: Final = 3  # letters at the end of a longer word that need not be in common
_APART: Final = 4  # letters by which the lengths of two words of a family may differ
_NAME: Final = 3  # letters of a short name; a longer one loses its ending in its stem
_ENDING_VOWELS: Final = "".join(one.terms.ending_vowels for one in languages())
_MAX_STEMS: Final = 48  # stems of a question that are looked up; a question with more is a text


def relations(corpus: Corpus, asked: Mapping[str, float]) -> dict[str, Values]:
    """The features of related words, by name; each has one number per piece.

    Args:
        corpus: The pieces.
        asked: The question's stems with their weights.
    """
    weights = _stem_shares(corpus, islice(asked.items(), _MAX_STEMS))
    kind = _related_scores(corpus, weights, stems_of_kind)
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
    # A stem that no message holds counts as the rarest: only words related to it can answer the question.
    nowhere = math.log(2 * (corpus.total + 1))
    rarities = {stem: weight * (corpus.rarity(stem) if corpus.documents(stem) else nowhere) for stem, weight in asked}
    total = sum(rarities.values()) or 1.0
    return {stem: rarity / total for stem, rarity in rarities.items()}


def _related_scores(corpus: Corpus, weights: Mapping[str, float], related: Related) -> Values:
    """For each piece the sum, over the question's stems, of the rarity of the rarest related stem in the piece."""
    total = [0.0] * len(corpus.pieces)
    for stem, weight in weights.items():
        best: dict[int, float] = {}
        for other in filter(corpus.postings.holding.__contains__, related(stem)):  # few of them are held
            rarity = corpus.rarity(other)
            for index in corpus.postings.get(other):
                best[index] = max(rarity, best.get(index, 0.0))
        for index, rarity in best.items():
            total[index] += weight * rarity / _RARITY
    return total


def _spread_to_neighbours(corpus: Corpus, values: Values) -> Values:
    total = list(values)
    holding = [(index, value) for index, value in enumerate(values) if value]  # few pieces
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
