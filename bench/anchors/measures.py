"""Measures the rules against the labels (precision, recall), and how far the readers agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from app.core.anchors.detect import detect
from app.core.anchors.likelihood import WEIGHTS, WeightsBySpeaker
from app.core.model.anchors import FoundAnchor
from bench.anchors.corpus import NONE, Labelled, Sentence, messages


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A sentence with what the rules take it for."""

    sentence: Sentence
    found: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """The hits, how many anchors were found, and how many there are."""

    hits: int
    found: int
    there: int

    @property
    def precision(self) -> float | None:
        """The share of found anchors that are right; ``None`` if none was found."""
        return self.hits / self.found if self.found else None

    @property
    def recall(self) -> float | None:
        """The share of labelled anchors that were found; ``None`` if there are none."""
        return self.hits / self.there if self.there else None


def judged(sentences: Iterable[Sentence], weights: WeightsBySpeaker = WEIGHTS) -> list[Judged]:
    """Every sentence with the rules' judgement, including those on which the readers differ."""
    return [one for labelled in messages(sentences) for one in _of_message(labelled, weights)]


def score(rows: Iterable[Judged], type_: str | None = None) -> Score:
    """The score of one type, or of all types, where a hit must also have the right type.

    Sentences on which the readers differ are left out.
    """
    agreed = [(one.found, one.sentence.label) for one in rows if one.sentence.label is not None]
    wanted = [(found, label) for found, label in agreed if type_ in {None, found, label}]
    return Score(
        hits=sum(found == label != NONE for found, label in wanted),
        found=sum(found != NONE and type_ in {None, found} for found, _ in wanted),
        there=sum(label != NONE and type_ in {None, label} for _, label in wanted),
    )


def kappa(sentences: Sequence[Sentence]) -> float:
    """Cohen's kappa: the agreement of the readers beyond chance."""
    count = len(sentences)
    observed = sum(one.label is not None for one in sentences) / count
    first, second = Counter(one.label_a for one in sentences), Counter(one.label_b for one in sentences)
    chance = sum(first[label] * second[label] for label in first) / count**2
    return (observed - chance) / (1 - chance) if chance < 1 else 1.0


def _of_message(labelled: Labelled, weights: WeightsBySpeaker) -> list[Judged]:
    types = [NONE] * len(labelled.sentences)
    for anchor in detect(labelled.message, weights=weights):
        types[_place(anchor, labelled)] = anchor.type
    return [
        Judged(sentence=sentence, found=type_) for (_, sentence), type_ in zip(labelled.sentences, types, strict=True)
    ]


def _place(anchor: FoundAnchor, labelled: Labelled) -> int:
    """The sentence that an anchor counts for: if there are several, the one with its label, otherwise the first."""
    end = anchor.offset + len(anchor.content)
    over = [
        number
        for number, (start, sentence) in enumerate(labelled.sentences)
        if start < end and anchor.offset < start + len(sentence.text)
    ]
    return next((number for number in over if labelled.sentences[number][1].label == anchor.type), over[0])
