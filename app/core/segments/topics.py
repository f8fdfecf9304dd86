"""What a stretch is about, in two to six of its own words: the terms it returns to, names first, in any script."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import cached_property
from typing import Final

from app.core.reading.passages import Passage
from app.core.segments.terms import Word, runs
from app.core.text.escaping import clean
from app.core.text.shortening import clip
from app.core.text.word_lists import STOPWORDS
from app.core.text.words import FRAME_STEMS, stem

MOST_WORDS: Final = 6
LONGEST: Final = 60
"""Characters of a topic."""

_ENOUGH: Final = 3  # words: a topic that has as many is not made longer
_SENTENCES: Final = 60  # of one message: a pasted book must not name the talk
_LONGEST_TERM: Final = 3  # words
_ROLE: Final = {"user": 1.0, "assistant": 0.6, "tool": 0.2}
_NAMED: Final = 1.0
_PASTED: Final = 0.3
_OPENING: Final = 1.5  # for what the first message of a user says
_BESIDES: Final = 0.45  # of a further word's own worth that a longer term has beside its best one
_ONCE: Final = 0.8  # of a longer term that was said in one message only
_BOUND: Final = 0.6  # of the messages with its last word in which a term with a common word must stand as a whole
_AGAIN: Final = 0.35  # of the best term's worth, for one more to be told
_KEYWORDS: Final = 16  # words


class Terms:
    """The terms of a stretch with what they are worth; each message counts a term once."""

    def __init__(self, passages: Sequence[Passage], language: str) -> None:
        speakers = {word for one in passages for word in one.speaker.lower().split()}
        self._barred = {stem(word) for word in speakers} | FRAME_STEMS
        self._grammar = STOPWORDS.get(language, frozenset())
        self._speakers = speakers if any(one.is_named for one in passages) else set()
        self._single: Counter[str] = Counter()
        self._common: set[str] = set()
        self._joined: dict[tuple[str, ...], None] = {}
        self._turns: defaultdict[tuple[str, ...], set[int]] = defaultdict(set)
        self._spelled: defaultdict[str, Counter[str]] = defaultdict(Counter)
        opening = next((one.turn for one in passages if one.role == "user" and not one.is_pasted), -1)
        read_of: Counter[int] = Counter()
        for passage in passages:
            read_of[passage.turn] += 1
            if read_of[passage.turn] <= _SENTENCES:
                weight = _NAMED if passage.is_named else _ROLE.get(passage.role, 0.0)
                weight *= _PASTED if passage.is_pasted or passage.line else 1.0
                self._take(passage, weight * (_OPENING if passage.turn == opening else 1.0))

    def _take(self, passage: Passage, weight: float) -> None:
        for run in runs(passage, self._is_barred):
            for word in run:
                self._spelled[word.base][word.written] += 1
                if word.is_common:
                    self._common.add(word.base)
                elif passage.turn not in self._turns[word.base,]:
                    self._turns[word.base,].add(passage.turn)
                    self._single[word.base] += weight * word.factor  # type: ignore[assignment]
            for length in range(2, _LONGEST_TERM + 1):
                for place in range(len(run) - length + 1):
                    self._join(run[place : place + length], passage.turn)

    def _is_barred(self, word: str) -> bool:
        """Grammar; the speakers' names, their short forms too; and what only says that something was said."""
        return (
            word in self._grammar or stem(word) in self._barred or any(name.startswith(word) for name in self._speakers)
        )

    def _join(self, words: Sequence[Word], turn: int) -> None:
        key = tuple(word.base for word in words)
        if len(set(key)) == len(key) and not words[-1].is_common:
            self._joined[key] = None
            self._turns[key].add(turn)

    @cached_property
    def topic(self) -> str:
        """Two to six words in the language of the messages; fewer, or none, where they hold no more."""
        return clip(clean(", ".join(self.best(_ENOUGH))), LONGEST)

    @cached_property
    def keywords(self) -> tuple[str, ...]:
        """The most telling terms, best first; every level of a stretch looks at them."""
        return tuple(map(clean, self.best(_KEYWORDS)))

    def best(self, enough: int) -> list[str]:
        """The terms to be told, most telling first, until there are ``enough`` words."""
        scored: list[tuple[float, tuple[str, ...]]] = [
            (worth, (base,)) for base, worth in self._single.items() if base not in self._common
        ]
        scored += [(self._worth(key), key) for key in self._joined]
        chosen: list[str] = []
        used: set[str] = set()
        least = 0.0
        for worth, key in sorted(scored, key=lambda one: (-one[0], one[1])):
            if worth <= least or len(used) >= enough:
                break
            if used.isdisjoint(key) and len(used) + len(key) <= max(enough, MOST_WORDS):
                chosen.append(" ".join(self._spelling(base) for base in key))
                used.update(key)
                least = max(least, _AGAIN * worth)
        return chosen

    def _worth(self, key: tuple[str, ...]) -> float:
        parts = sorted((self._single[base] for base in key), reverse=True)
        turns = len(self._turns[key])
        if not self._common.isdisjoint(key) and (turns < len(key) or turns < _BOUND * len(self._turns[key[-1],])):
            return 0.0
        return (1.0 if turns > 1 else _ONCE) * (parts[0] + _BESIDES * sum(parts[1:]))

    def _spelling(self, base: str) -> str:
        return min(self._spelled[base].items(), key=lambda one: (-one[1], one[0]))[0]
