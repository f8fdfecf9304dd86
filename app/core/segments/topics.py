"""Finds the topic of a stretch in two to six of its own words: recurring terms, names first, in any script.

A term consists of content words without grammar or punctuation between them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

from app.core.model.redaction import REDACTED
from app.core.reading.passages import Passage
from app.core.text.escaping import clean
from app.core.text.languages.combined_words import alternatives, words_of
from app.core.text.memo import word_memo
from app.core.text.patterns import compiled
from app.core.text.scripts import CHINESE_JAPANESE, MARKS
from app.core.text.shortening import clip
from app.core.text.word_lists import GENERIC, NOISE, STOPWORDS, TECHNOLOGY, respelled
from app.core.text.words import FRAME_STEMS, GENERIC_STEMS, stem

MAX_WORDS: Final = 6
MAX_TOPIC_LENGTH: Final = 60
"""The most characters of a topic."""

_ENOUGH: Final = 3  # words: a topic with as many gets no further term
_SENTENCES: Final = 60  # the most sentences of one message that count: a pasted book must not name the talk
_MAX_TERM_WORDS: Final = 3  # the most words of a term
_ROLE: Final = {"user": 1.0, "assistant": 0.6, "tool": 0.2}
_NAMED: Final = 1.0
_PASTED: Final = 0.3
_OPENING: Final = 1.5  # the factor for terms in the first message of a user
_BESIDES: Final = 0.45  # the share of each further word's worth that is added to that of a longer term's best word
_ONCE: Final = 0.8  # the factor for a longer term that only one message has
_BOUND: Final = 0.6  # if a term has a common word, the least share of messages with its last word that have all of it
_AGAIN: Final = 0.35  # the least share of the best term's worth for a further term
_KEYWORDS: Final = 16  # words

_NAME: Final = 1.5
_TECHNOLOGY: Final = 1.3
_NOUN: Final = 1.3
_VERB: Final = 0.5
_ACRONYM: Final = 6  # letters
_MIN_WORD_LENGTH: Final = 3  # Latin letters
_NO_WORDS: Final = frozenset({"code", "url", "email", "uuid", "path", "time", "version", "date", "money", "number"})

_MARKS: Final = f"{MARKS}\u0e31-\u0e4e\u1000-\u109f\u1780-\u17d3"
_LETTER: Final = rf"(?:[^\W_{CHINESE_JAPANESE}]|[{_MARKS}])"
_TOKEN: Final = compiled(
    rf"[{CHINESE_JAPANESE}]+|[^\W\d_{CHINESE_JAPANESE}]{_LETTER}{{0,40}}(?:[’'-]{_LETTER}{{1,40}}){{0,3}}|\S"
)
_RUN: Final = compiled("[\u4e00-\u9fff\u3400-\u4dbf\uf900-\ufaff々]+|[\u30a1-\u30ffー]+")
"""Chinese and Japanese characters that carry meaning; hiragana ends a term."""
_MAX_TERM_LENGTH: Final = 6  # the most characters of a term
_MIN_TERM_LENGTH: Final = 2
_HAN_NOISE: Final = frozenset("".join(words_of("terms", "grammar_signs")))
"""Characters for grammar and number, which no Chinese term contains."""

_NOISE: Final = NOISE | words_of("terms", "function")
_PREDICATE: Final = compiled(rf"(?:{alternatives('terms', 'predicate_endings')})$")
_DETERMINERS: Final = words_of("terms", "determiners")
_BEFORE_VERBS: Final = words_of("terms", "before_verbs")
_VERBAL: Final = compiled(f"{alternatives('terms', 'verbs')}|{alternatives('terms', 'adjectives')}")
"""Words that are hardly ever nouns."""


@dataclass(frozen=True, slots=True)
class _Word:
    """One word of a run."""

    base: str
    written: str
    """The spelling: in lower case, except for names and abbreviations."""
    factor: float
    """How much it looks like a term."""
    is_common: bool = False
    """Whether it is too common to name a topic by itself."""


def _word_runs(passage: Passage, is_barred: Callable[[str], bool]) -> Iterator[list[_Word]]:
    """The runs of words of a sentence, in order, separated by exact values and barred words."""
    text = REDACTED.sub(" | ", passage.text)
    for item in passage.identifiers:
        if item.kind in _NO_WORDS:
            text = text.replace(item.text, " | ")
    names = {word for item in passage.identifiers if item.kind == "name" for word in item.text.split()}
    run: list[_Word] = []
    before = ""
    for token in _TOKEN.findall(text):
        is_run = not token.isascii() and _RUN.search(token) is not None
        word = None if is_run else _word(token, before, names, is_barred)
        before = token.lower()
        if word is not None:
            run.append(word)
            continue
        yield run
        run = []
        if is_run:
            yield from ([_Word(term, term, 1.0)] for term in _pieces_between_grammar(token))
    yield run


def _word(token: str, before: str, names: Collection[str], is_barred: Callable[[str], bool]) -> _Word | None:
    known = _known_word(token)
    if known is None or is_barred(known.lower):
        return None
    is_name = token in names
    written = token.removesuffix("'s").removesuffix("’s")
    keeps = is_name or (token.isupper() and len(token) <= _ACRONYM)
    if is_name:
        factor = known.name_factor
    else:
        factor = known.factor * _NOUN if before in _DETERMINERS else known.factor
        factor = factor * _VERB if before in _BEFORE_VERBS else factor
    return _Word(known.base, written if keeps else known.lower, factor, known.is_common and not is_name)


class _KnownWord(NamedTuple):
    """What a word says about itself, wherever it stands."""

    lower: str
    base: str
    factor: float
    name_factor: float
    is_common: bool


@word_memo
def _known_word(token: str) -> _KnownWord | None:
    """The word; ``None`` if it can be no part of a term."""
    lower = respelled(token.lower()).removesuffix("'s")
    is_short = len(lower) < (_MIN_WORD_LENGTH if lower.isascii() else 2)
    if is_short or lower in _NOISE or _PREDICATE.search(lower) or not lower[:1].isalpha():
        return None
    base, factor = stem(lower), _TECHNOLOGY if lower in TECHNOLOGY else 1.0
    is_common = lower in GENERIC or base in GENERIC_STEMS
    return _KnownWord(lower, base, factor * _VERB if _VERBAL.fullmatch(lower) else factor, factor * _NAME, is_common)


def _pieces_between_grammar(token: str) -> Iterator[str]:
    """The runs of characters between characters of grammar; long runs are divided into pieces."""
    for found in _RUN.findall(token):
        piece = ""
        for sign in [*found, "的"]:
            if sign not in _HAN_NOISE:
                piece += sign
                continue
            if len(piece) >= _MIN_TERM_LENGTH:
                size = min(len(piece), _MAX_TERM_LENGTH)
                yield from (piece[place : place + size] for place in range(0, len(piece) - 1, size))
            piece = ""


class Terms:
    """The terms of a stretch with their worth; a term counts once in each message."""

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
                self._take_passage(passage, weight * (_OPENING if passage.turn == opening else 1.0))

    def _take_passage(self, passage: Passage, weight: float) -> None:
        for run in _word_runs(passage, self._is_barred):
            for word in run:
                self._spelled[word.base][word.written] += 1
                if word.is_common:
                    self._common.add(word.base)
                elif passage.turn not in self._turns[word.base,]:
                    self._turns[word.base,].add(passage.turn)
                    self._single[word.base] += weight * word.factor  # type: ignore[assignment]
            for length in range(2, _MAX_TERM_WORDS + 1):
                for place in range(len(run) - length + 1):
                    self._add_term(run[place : place + length], passage.turn)

    def _is_barred(self, word: str) -> bool:
        return (
            word in self._grammar or stem(word) in self._barred or any(name.startswith(word) for name in self._speakers)
        )

    def _add_term(self, words: Sequence[_Word], turn: int) -> None:
        key = tuple(word.base for word in words)
        if len(set(key)) == len(key) and not words[-1].is_common:
            self._joined[key] = None
            self._turns[key].add(turn)

    @cached_property
    def topic(self) -> str:
        """The topic in two to six words of the messages' language; in fewer, or empty, if they have no more terms."""
        return clip(clean(", ".join(self.best(_ENOUGH))), MAX_TOPIC_LENGTH)

    @cached_property
    def keywords(self) -> tuple[str, ...]:
        """The most important terms, best first; every level of a stretch uses them."""
        return tuple(map(clean, self.best(_KEYWORDS)))

    @cached_property
    def _by_worth(self) -> list[tuple[float, tuple[str, ...]]]:
        scored: list[tuple[float, tuple[str, ...]]] = [
            (worth, (base,)) for base, worth in self._single.items() if base not in self._common
        ]
        scored += [(self._worth(key), key) for key in self._joined]
        return sorted(scored, key=lambda one: (-one[0], one[1]))

    def best(self, enough: int) -> list[str]:
        """The terms of a topic, the most important first, until there are ``enough`` words."""
        chosen: list[str] = []
        used: set[str] = set()
        least = 0.0
        for worth, key in self._by_worth:
            if worth <= least or len(used) >= enough:
                break
            if used.isdisjoint(key) and len(used) + len(key) <= max(enough, MAX_WORDS):
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
