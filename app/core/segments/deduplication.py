"""Leaves out of digests what the state and the anchors in the same block already say."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from app.core.model.segments import Level, ServableSegment
from app.core.text.memo import memoized
from app.core.text.sentences import sentences
from app.core.text.values import Value, ValueIndex, values
from app.core.text.words import FRAME_STEMS, GENERIC_STEMS, stems

REPEATED_SHARE: Final = 0.75
"""A sentence counts as said if an entry or anchor has this share of its content words."""
_MIN_WORDS: Final = 2  # content words: a sentence with fewer says nothing that could be missing
_SAMPLE: Final = 4_000  # the most characters of a level that are looked at; more are never served


@dataclass(frozen=True, slots=True)
class _TextContents:
    """A text's exact values and sentences."""

    values: tuple[Value, ...]
    sentences: tuple[frozenset[str], ...]
    """The content words of each sentence."""


class StateWords:
    """The words that the state block holds outside its digests."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._given = ValueIndex()
        self._entries: defaultdict[str, list[int]] = defaultdict(list)
        for number, text in enumerate(texts):
            self._given.add(number, text)
            for word in frozenset(stems(text)):
                self._entries[word].append(number)

    def repeats(self, level: Level, text: str) -> bool:
        """Whether a level of a segment adds nothing: no exact value, and no sentence (for L3: no list of words)."""
        contents = _contents_of(text)
        if not all(map(self._given.holds, contents.values)):
            return False
        if level == "L3":
            words = frozenset[str]().union(*contents.sentences)
            return sum(word in self._entries for word in words) >= REPEATED_SHARE * len(words)
        return all(self._repeats_sentence(words) for words in contents.sentences)

    def lacks_value_of(self, text: str) -> bool:
        """Whether a text has an exact value that these words lack."""
        return not all(map(self._given.holds, _contents_of(text).values))

    def _repeats_sentence(self, words: frozenset[str]) -> bool:
        if len(words) < _MIN_WORDS:
            return True
        shared = Counter(number for word in words for number in self._entries.get(word, ()))
        return max(shared.values(), default=0) >= REPEATED_SHARE * len(words)


def without_repeated_levels(segments: Sequence[ServableSegment], state_words: StateWords) -> list[ServableSegment]:
    """The segments without the levels that add nothing: for them the marker with the topic is enough."""
    return [
        _with_levels(one, [level for level, text in one.texts.items() if not state_words.repeats(level, text)])
        for one in segments
    ]


def with_unique_values(segments: Sequence[ServableSegment], state_words: StateWords) -> list[ServableSegment]:
    """The segments with exact values that are nowhere else, each with only the levels that have them."""
    found = (
        _with_levels(one, [level for level, text in one.texts.items() if state_words.lacks_value_of(text)])
        for one in segments
    )
    return [one for one in found if one.texts]


def _with_levels(segment: ServableSegment, levels: Sequence[Level]) -> ServableSegment:
    if len(levels) == len(segment.texts):
        return segment
    return replace(segment, texts={level: segment.texts[level] for level in levels})


@memoized()
def _contents_of(text: str) -> _TextContents:
    sample = text[:_SAMPLE]
    content = (frozenset(stems(one)) - FRAME_STEMS - GENERIC_STEMS for one in sentences(sample))
    return _TextContents(values(sample), tuple(content))
