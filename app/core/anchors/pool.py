"""The anchors that are active at one moment of a conversation, by position and by their words."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import Final
from uuid import UUID

from app.core.anchors.tables import Table
from app.core.anchors.topics import Topic, topic_of
from app.core.model.anchors import Anchor, AnchorType

_PER_WORD: Final = 24  # anchors with one word, the newest, that are looked at: bounds the work per statement
_OPEN: Final = frozenset({"unresolved_question"})
_REMEMBERED: Final = 4_096
_SHORTEST_STEM: Final = 3  # signs: shorter words are their own stems
_AS_IN_WORDS: Final = str.maketrans("’ё", "'е")


class Pool:
    """The anchors that are active now, by their rare words."""

    def __init__(self, active: Sequence[Anchor], tables: Sequence[Table]) -> None:
        self._tables = tuple(tables)
        self._old = _Old(sorted((anchor for anchor in active if anchor.status == "active"), key=position))
        self.anchors: dict[UUID, Anchor] = {anchor.id: anchor for anchor in self._old.anchors}
        self.open = sum(anchor.type in _OPEN for anchor in self.anchors.values())
        """How many of them wait for an answer."""
        self._by_word: defaultdict[str, list[Anchor]] = defaultdict(list)

    def topic(self, text: str) -> Topic:
        """What a text is about, by the languages of these tables."""
        return _topic(text, self._tables)

    def add(self, anchor: Anchor) -> None:
        """Take in one that is newer than all the others."""
        if anchor.id not in self.anchors:
            self.anchors[anchor.id] = anchor
            self.open += anchor.type in _OPEN
            for word in self.topic(anchor.content).every:
                self._by_word[word].append(anchor)

    def remove(self, anchor: Anchor) -> None:
        """It is not active any more."""
        del self.anchors[anchor.id]
        self.open -= anchor.type in _OPEN
        for word in self.topic(anchor.content).every:
            if word in self._by_word:
                self._by_word[word] = [one for one in self._by_word[word] if one is not anchor]

    def sharing(self, topic: Topic) -> list[Anchor]:
        """Those that share a word with a topic, newest first."""
        found = {id(anchor): anchor for word in topic.every for anchor in self._newest_with(word)}
        return sorted(found.values(), key=position, reverse=True)

    def _newest_with(self, word: str) -> list[Anchor]:
        found = self._by_word.get(word, [])[-_PER_WORD:]
        if len(found) < _PER_WORD:
            known = self._old.by_word.get(word)
            if known is None:
                looked = self._old.containing(word)
                known = self._old.by_word[word] = [one for one in looked if word in self.topic(one.content).every]
            still = [anchor for anchor in known if anchor.id in self.anchors]
            found = still[-(_PER_WORD - len(found)) :] + found
        return found

    def newest(self, *, before: int, within: int, types: frozenset[AnchorType]) -> Iterator[Anchor]:
        """Those of these types from just before a position, newest first."""
        for anchor in reversed(self.anchors.values()):
            if anchor.seq < before - within:
                return
            if anchor.type in types and anchor.seq <= before:
                yield anchor


class _Old:
    """The anchors that were there before: what each is about is found out when a word asks for it."""

    def __init__(self, anchors: Sequence[Anchor]) -> None:
        self.anchors = anchors
        self.by_word: dict[str, list[Anchor]] = {}
        """Those that were asked for, in order of position."""
        texts = [_line(anchor.content) for anchor in anchors]
        self._text = "".join(texts)
        self._starts = [0, *accumulate(map(len, texts))]

    def containing(self, word: str) -> Iterator[Anchor]:
        """Those that may have this stem, in order; a stem is the beginning of its words, but for its last letter."""
        probe = word if len(word) < _SHORTEST_STEM else word[:-1]
        place = self._text.find(probe)
        while place >= 0:
            index = bisect_right(self._starts, place) - 1
            yield self.anchors[index]
            place = self._text.find(probe, self._starts[index + 1])


@lru_cache(maxsize=_REMEMBERED)
def _line(text: str) -> str:
    return f"{text.lower().translate(_AS_IN_WORDS)}\n"


@lru_cache(maxsize=_REMEMBERED)
def _topic(text: str, tables: tuple[Table, ...]) -> Topic:
    text = without_label(text, tables)
    return topic_of(text, (day.group() for table in tables for day in table.times.all_in(text)))


@lru_cache(maxsize=_REMEMBERED)
def without_label(text: str, tables: tuple[Table, ...]) -> str:
    """What a label says it is, left out: ``Rule:`` is no subject."""
    labels = (rule.labelled for table in tables for rule in table.rules.values())
    label = next((found for cue in labels for found in cue.all_in(text)), None)
    return text[label.end() :] if label else text


def position(anchor: Anchor) -> tuple[int, int, int]:
    """Where an anchor stands; the id decides between two at one place."""
    return anchor.seq, anchor.offset, anchor.id.int
