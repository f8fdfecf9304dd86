"""The anchors that are active at one moment of a conversation, found by position or by a word they contain."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, islice
from typing import Final
from uuid import UUID

from app.core.anchors.topics import Topic, topic_of
from app.core.model.anchors import Anchor, AnchorType
from app.core.text.memo import memoized
from app.core.text.word_lists import respelled

_MAX_ANCHORS_PER_WORD: Final = 24
"""The most anchors with one word that are looked at, the newest first. It bounds the work per statement."""
_OPEN_TYPES: Final = frozenset({"unresolved_question"})
_MIN_STEM_LENGTH: Final = 3  # characters: shorter words are their own stems


class AnchorPool:
    """The anchors that are active now, found by position or by a word they contain.

    New anchors are indexed by their words; older ones are searched from the newest back, as far as needed.
    """

    def __init__(self, active: Sequence[Anchor]) -> None:
        self._old_anchors = sorted((anchor for anchor in active if anchor.status == "active"), key=position)
        self._old = _OlderTexts([anchor.content for anchor in self._old_anchors])
        self.anchors: dict[UUID, Anchor] = {anchor.id: anchor for anchor in self._old_anchors}
        self.open = sum(anchor.type in _OPEN_TYPES for anchor in self.anchors.values())
        """How many of the anchors wait for an answer."""
        self._by_word: defaultdict[str, list[Anchor]] = defaultdict(list)

    def add(self, anchor: Anchor) -> None:
        """Add an anchor that is newer than all the others."""
        if anchor.id not in self.anchors:
            self.anchors[anchor.id] = anchor
            self.open += anchor.type in _OPEN_TYPES
            for word in topic_of(anchor.content).all_stems:
                self._by_word[word].append(anchor)

    def remove(self, anchor: Anchor) -> None:
        """Remove an anchor that is no longer active."""
        del self.anchors[anchor.id]
        self.open -= anchor.type in _OPEN_TYPES
        for word in topic_of(anchor.content).all_stems:
            if word in self._by_word:
                self._by_word[word] = [one for one in self._by_word[word] if one is not anchor]

    def sharing_words(self, topic: Topic) -> list[Anchor]:
        """The anchors that share a word with a topic, newest first."""
        found = {id(anchor): anchor for word in topic.all_stems for anchor in self._newest_with(word)}
        return sorted(found.values(), key=position, reverse=True)

    def _newest_with(self, word: str) -> list[Anchor]:
        found = self._by_word.get(word, [])[-_MAX_ANCHORS_PER_WORD:]
        if len(found) < _MAX_ANCHORS_PER_WORD:
            old = (self._old_anchors[place] for place in self._old.newest_with(word))
            found += islice((anchor for anchor in old if anchor.id in self.anchors), _MAX_ANCHORS_PER_WORD - len(found))
        return found

    def newest(self, *, before: int, within: int, types: frozenset[AnchorType]) -> Iterator[Anchor]:
        """The anchors of these types at most ``within`` positions before a position, newest first."""
        for anchor in reversed(self.anchors.values()):
            if anchor.seq < before - within:
                return
            if anchor.type in types and anchor.seq <= before:
                yield anchor


class _OlderTexts:
    """The texts of older anchors, in order; the topic of each is only computed when a word is looked up."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = texts
        lines = [_searchable_line(text) for text in texts]
        self._text = "".join(lines)
        self._starts = [0, *accumulate(map(len, lines))]
        self._found: dict[str, list[int]] = {}
        self._searched_from: dict[str, int] = {}
        """For each word, the place in characters from which on it was already searched."""

    def newest_with(self, word: str) -> Iterator[int]:
        """The places of the texts with a stem, the newest first; texts are only searched as far as needed."""
        found = self._found.setdefault(word, [])
        number = 0
        while number < len(found) or self._search_further(word, found):
            yield found[number]
            number += 1

    def _search_further(self, word: str, found: list[int]) -> bool:
        """Search further for words that begin like the stem without its last letter."""
        probe = word if len(word) < _MIN_STEM_LENGTH else word[:-1]
        end = self._searched_from.get(word, len(self._text))
        while (at := self._text.rfind(probe, 0, end)) >= 0:
            place = bisect_right(self._starts, at) - 1
            end = self._searched_from[word] = self._starts[place]
            if word in topic_of(self._texts[place]).all_stems:
                found.append(place)
                return True
        self._searched_from[word] = 0
        return False


def places_with_stems(texts: Sequence[str], words: Iterable[str]) -> list[int]:
    """The places, in order, of anchors' texts that an anchor with these stems could change.

    For each stem these are the newest, twice as many as a pool looks at, since an append may supersede some of them.
    """
    old = _OlderTexts(texts)
    return sorted({place for word in words for place in islice(old.newest_with(word), 2 * _MAX_ANCHORS_PER_WORD)})


@memoized()
def _searchable_line(text: str) -> str:
    return f"{respelled(text.lower())}\n"


def position(anchor: Anchor) -> tuple[int, int, int]:
    """The sorting key of an anchor: its place, then its id, as two may have the same place."""
    return anchor.seq, anchor.offset, anchor.id.int
