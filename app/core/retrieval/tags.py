"""What only the tags of a segment say: the words by which a summarizer called what was talked of in other ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from app.core.model.segments import Segment
from app.core.retrieval.corpus import Source, words_of
from app.core.retrieval.terms import terms

MOST: Final = 4
"""Segments: what stands in the tags of more leads everywhere."""


def tagged(
    segments: Iterable[Segment], wanted: Collection[str], sources: Sequence[Source], *, known: Mapping[str, int]
) -> list[tuple[Segment, frozenset[str]]]:
    """The segments whose L3 holds words that no message does, each with these words; those with most of them first.

    A question that holds a word answers nothing about it: this one, and the same one asked before.

    Args:
        segments: With their L3.
        wanted: Stems of a question.
        sources: Messages of the conversation.
        known: In how many messages stems stand, where ``sources`` are not all of them.
    """
    asked: Counter[str] = Counter()
    said: set[str] = set()
    for words in (words_of(source.text) for source in sources):
        if words.is_question:
            asked.update(words.counts.keys())
        else:
            said.update(words.counts)
    missing = {stem for stem in wanted if stem not in said and known.get(stem, 0) <= asked[stem]}
    if not missing:
        return []
    found = [(segment, frozenset(missing.intersection(_tags(segment)))) for segment in segments]
    holding = sorted((one for one in found if one[1]), key=lambda one: (-len(one[1]), -one[0].from_seq))
    return holding if len(holding) <= MOST else [one for one in holding if len(one[1]) > len(holding[MOST][1])]


def by_seq(found: Iterable[tuple[Segment, frozenset[str]]]) -> dict[int, frozenset[str]]:
    """The words that each message has from its segment's tags."""
    return {seq: stems for segment, stems in found for seq in range(segment.from_seq, segment.to_seq + 1)}


def _tags(segment: Segment) -> Sequence[str]:
    level = segment.levels.get("L3")
    return terms(f"{segment.topic}\n{level.text}" if level else segment.topic)
