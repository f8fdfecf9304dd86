"""The messages that recall chooses from, taken apart once: words, speakers, sittings."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Final

from app.domain.recall.words import any_of
from app.domain.words.text import stems

PAUSE: Final = timedelta(hours=3)  # a longer silence begins a new sitting
SITTING: Final = 60  # messages; a longer run of talk is several sittings, or "the same sitting" would say nothing

LABEL: Final = re.compile(r"([^\W\d_][\w.'’-]{0,23}): |([\u3400-\u9fff]{2,4})：")
"""The name of who speaks, before what is said."""
_SIGN: Final = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")
_CAPITALISED: Final = re.compile(r"(?<=\s)[A-ZА-ЯЁ][a-zа-яё]{2,}")
_TIME, _PEOPLE, _PLACE, _NUMBER = any_of("time"), any_of("people"), any_of("place"), any_of("number")
_FIRST, _SECOND = any_of("first_person"), any_of("second_person")
_QUOTED: Final = re.compile(r"[\"“«„]([^\"”»“]{2,80})[\"”»]")
_REMEMBERED: Final = 8_192  # messages taken apart; questions about one conversation come one after the other


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A message that may be recalled."""

    seq: int
    role: str
    text: str
    at: datetime
    tokens: int


@dataclass(frozen=True, slots=True)
class Words:
    """What a text says of itself, whatever is asked."""

    speaker: str
    counts: Mapping[str, int]
    length: int
    is_question: bool
    has_question: bool
    says_when: bool
    names_people: bool
    names_place: bool
    has_number: bool
    has_title: bool
    names: int
    first_person: float
    second_person: float


@lru_cache(maxsize=_REMEMBERED)
def words_of(text: str) -> Words:
    """Take a text apart."""
    label = LABEL.match(text)
    body = text[label.end() :] if label else text
    counts = Counter(stems(body))
    blanks = body.count(" ") + len(_SIGN.findall(body)) // 2 + 2  # a word of Chinese is two signs, and no blank
    return Words(
        speaker=(label[1] or label[2]).lower() if label else "",
        counts=counts,
        length=max(sum(counts.values()), 1),
        is_question=body.rstrip().endswith(("?", "？")),
        has_question="?" in body or "？" in body,
        says_when=_TIME.search(body) is not None,
        names_people=_PEOPLE.search(body) is not None,
        names_place=_PLACE.search(body) is not None,
        has_number=_NUMBER.search(body) is not None,
        has_title=_QUOTED.search(body) is not None,
        names=len(set(_CAPITALISED.findall(body))),
        first_person=len(_FIRST.findall(body)) / blanks,
        second_person=len(_SECOND.findall(body)) / blanks,
    )


class Corpus:
    """Messages in order, with the statistics of the whole conversation where they are known.

    Args:
        sources: By ``seq``; gaps are allowed, and nothing spreads over them.
        documents: In how many messages each stem stands, over the whole conversation; ``None``: counted here.
        total: Messages in the whole conversation; ``None``: those given.
    """

    def __init__(
        self, sources: Sequence[Source], *, documents: Mapping[str, int] | None = None, total: int | None = None
    ) -> None:
        self.sources = tuple(sources)
        self.words = [words_of(source.text) for source in sources]
        self.total = max(total or 0, len(self.sources))
        self.postings: defaultdict[str, list[int]] = defaultdict(list)
        for index, words in enumerate(self.words):
            for stem in words.counts:
                self.postings[stem].append(index)
        self._documents = documents or {}
        self.average = sum(words.length for words in self.words) / max(len(self.words), 1)
        self.speakers = frozenset(words.speaker for words in self.words if words.speaker)
        self.sittings = self._sittings()
        self.sitting_counts = self._sitting_counts()
        self.information = [self._information(words) for words in self.words]

    def rarity(self, stem: str) -> float:
        """Inverse document frequency, never negative."""
        holding = max(self._documents.get(stem, 0), len(self.postings.get(stem, ())))
        return math.log(1 + (self.total - holding + 0.5) / (holding + 0.5)) if holding else 0.0

    def documents(self, stem: str) -> int:
        """Messages that hold a stem."""
        return max(self._documents.get(stem, 0), len(self.postings.get(stem, ())))

    def at(self, index: int, distance: int) -> int | None:
        """The index of the message so many places on, in the same sitting; ``None`` where there is none."""
        there = index + distance
        if not 0 <= there < len(self.sources):
            return None
        near = self.sources[there].seq - self.sources[index].seq == distance
        return there if near and self.sittings[there] == self.sittings[index] else None

    def _sittings(self) -> list[int]:
        numbers: list[int] = []
        number, length = 0, 0
        for before, source in zip([None, *self.sources], self.sources, strict=False):
            length += 1
            if before is not None and (abs(source.at - before.at) > PAUSE or length > SITTING):
                number, length = number + 1, 1
            numbers.append(number)
        return numbers

    def _sitting_counts(self) -> list[Counter[str]]:
        counts: list[Counter[str]] = [Counter() for _ in range((self.sittings[-1] + 1) if self.sittings else 0)]
        for sitting, words in zip(self.sittings, self.words, strict=True):
            counts[sitting].update(words.counts)
        return counts

    def _information(self, words: Words) -> float:
        return sum(self.rarity(stem) for stem in words.counts)
