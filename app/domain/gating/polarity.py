"""Statements that were turned round: "we will not use Kubernetes" told as "the team will use Kubernetes".

All of the words were said, so only what denies them can tell. Only the plain case is taken: a clause that denies
something, told with the same words and nothing that denies, or the other way about, and nobody near by who said it so.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from app.domain.gating.evidence import beginning
from app.domain.words.language_tables import alternatives, pattern_of, words_of
from app.domain.words.patterns import compiled
from app.domain.words.text import FRAME_STEMS, GENERIC_STEMS, stems

_DENIES: Final = pattern_of("contrary", "denies")
"""What denies the words after it."""
_HEDGES: Final = pattern_of("contrary", "hedges")
"""What may deny, limit, or put a condition, in words of its own: beside it nothing is said of a statement's sense."""
_YET: Final = pattern_of("contrary", "yet")
"""What does not limit a denial."""
_CLAUSE: Final = compiled(rf"[,;:，；、：()（）]|\s[—–-]\s|\s{alternatives('contrary', 'joins')}\s")
_QUESTION: Final = compiled(rf"(?:[?？]|{alternatives('contrary', 'asks')})\W*+\Z")
_END: Final = 80  # characters of a sentence in which its mark is looked for
_ANSWER: Final = compiled(rf"\W*{alternatives('contrary', 'answers')}", re.IGNORECASE)
_LEAST: Final = 2 / 3  # of the words that a clause denies: telling so many of them again is telling the clause
_HAN: Final = compiled(r"[\u3040-\u30ff\u3400-\u9fff]")
"""Pairs of signs, not words: one that is new says nothing."""
_PRONOUNS: Final = tuple(sorted(words_of("contrary", "pronouns")))


@dataclass(frozen=True, slots=True)
class _Denied:
    """What a clause denies: its first word of content, the others after it or else before it, and of whom."""

    head: str
    rest: frozenset[str]
    subject: frozenset[str]

    def stands_in(self, words: frozenset[str]) -> bool:
        every = self.rest | {self.head}
        return len(every & words) >= _LEAST * len(every)


def is_turned_round(text: str, said: Iterable[tuple[str, frozenset[str]]]) -> bool:
    """Whether a text says the contrary of what these sentences say, in their words.

    Args:
        text: What is told.
        said: Sentences with their stems.
    """
    told = _content(text)
    families = frozenset(stems(text))
    near = [
        sentence
        for sentence, words in said
        if not families.isdisjoint(words) and not _QUESTION.search(sentence[-_END:])
    ]
    if not told or not near:
        return False
    if _DENIES.search(text) is None:
        return _HEDGES.search(text) is None and _was_denied(told, near)
    return any(_was_affirmed(denied, near) for denied in _denied(text))


def _was_denied(told: frozenset[str], said: Sequence[str]) -> bool:
    """Whether a clause with these words denied them, and none without a denial says them."""
    found = [
        denied
        for sentence in said
        for denied in _denied(sentence)
        if denied.stands_in(told) and _is_of_the_same(denied, told, _content(sentence))
    ]
    return any(
        not any(denied.stands_in(_content(clause)) for sentence in said for clause in _affirming(sentence))
        for denied in found
    )


def _is_of_the_same(denied: _Denied, told: frozenset[str], words: frozenset[str]) -> bool:
    """Nothing new stands beside a word that alone is denied, nor in the place of whom it was denied of."""
    news = any(word.isalpha() and not _HAN.match(word) for word in told - words)
    return not news or (bool(denied.rest) and (not denied.subject or not denied.subject.isdisjoint(told)))


def _was_affirmed(denied: _Denied, said: Sequence[str]) -> bool:
    """Whether something says plainly what is denied here, and nothing that has to do with it denies anything."""
    is_said = False
    for sentence in said:
        words = _content(sentence)
        if _DENIES.search(sentence) or _HEDGES.search(sentence) or _ANSWER.match(sentence):
            if denied.head in words or denied.rest & words:
                return False
        elif denied.rest and denied.stands_in(words):
            is_said = True
    return is_said


@lru_cache(maxsize=4_096)
def _denied(sentence: str) -> tuple[_Denied, ...]:
    """What each clause of a sentence denies; one with conditions or limits denies nothing plainly."""
    found: list[_Denied] = []
    for clause in _CLAUSE.split(sentence):
        places = list(_DENIES.finditer(clause))
        if len(places) != 1 or _HEDGES.search(_YET.sub("", _DENIES.sub("", clause))):
            continue
        before, after = clause[: places[0].start()], stems(clause[places[0].end() :])
        if after:
            subject = frozenset(word for word in _content(before) - _GENERIC if not word.startswith(_PRONOUNS))
            rest = _families(after) - {beginning(after[0])} - _GENERIC
            found.append(_Denied(beginning(after[0]), rest or subject, subject))
    return tuple(found)


def _affirming(sentence: str) -> list[str]:
    return [clause for clause in _CLAUSE.split(sentence) if not _DENIES.search(clause) and not _HEDGES.search(clause)]


@lru_cache(maxsize=4_096)
def _content(text: str) -> frozenset[str]:
    """The families of a text's words; what denies left out, so that in Chinese the words on both sides meet."""
    return _families(stems(_DENIES.sub("", text))) - _FRAME


def _families(words: Iterable[str]) -> frozenset[str]:
    return frozenset(beginning(word) for word in words)


_FRAME: Final = _families(FRAME_STEMS)
_GENERIC: Final = _families(GENERIC_STEMS)
