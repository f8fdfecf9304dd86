"""Words that could name a topic: runs of content words without grammar or punctuation between them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Final

from app.core.reading.passages import Passage
from app.core.text.languages.joined import alternatives, words_of
from app.core.text.patterns import compiled
from app.core.text.word_lists import GENERIC, NOISE, TECHNOLOGY, respelled
from app.core.text.words import GENERIC_STEMS, stem

_NAME: Final = 1.5
_TECHNOLOGY: Final = 1.3
_NOUN: Final = 1.3
_VERB: Final = 0.5
_ACRONYM: Final = 6  # letters
_SHORTEST_WORD: Final = 3  # Latin letters
_NO_WORDS: Final = frozenset({"code", "url", "email", "uuid", "path", "time", "version", "date", "money", "number"})

_REDACTED: Final = compiled(r"\[REDACTED:\w{1,40}\]")
_CJK: Final = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
_MARKS: Final = (
    "\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0900-\u0dff\u0e31-\u0e4e\u1000-\u109f\u1780-\u17d3"
)
_LETTER: Final = rf"(?:[^\W_{_CJK}]|[{_MARKS}])"
_TOKEN: Final = compiled(rf"[{_CJK}]+|[^\W\d_{_CJK}]{_LETTER}{{0,40}}(?:[’'-]{_LETTER}{{1,40}}){{0,3}}|\S")
_RUN: Final = compiled("[\u4e00-\u9fff\u3400-\u4dbf\uf900-\ufaff々]+|[\u30a1-\u30ffー]+")
"""Chinese and Japanese: signs that carry meaning; hiragana ends a term."""
_LONGEST_RUN: Final = 6  # signs of a term
_SHORTEST_RUN: Final = 2
_HAN_NOISE: Final = frozenset("".join(words_of("terms", "grammar_signs")))
"""Signs of grammar and number: a Chinese term holds none of them."""

_NOISE: Final = NOISE | words_of("terms", "function")
_PREDICATE: Final = compiled(rf"(?:{alternatives('terms', 'predicate_endings')})$")
_DETERMINERS: Final = words_of("terms", "determiners")
_BEFORE_VERBS: Final = words_of("terms", "before_verbs")
_VERBAL: Final = compiled(f"{alternatives('terms', 'verbs')}|{alternatives('terms', 'adjectives')}")
"""Words that are hardly nouns."""


@dataclass(frozen=True, slots=True)
class Word:
    """One word of a run."""

    base: str
    written: str
    """In small letters, but for names and abbreviations."""
    factor: float
    """How much it looks like a term."""
    is_common: bool = False
    """Too common to name a topic by itself."""


def runs(passage: Passage, is_barred: Callable[[str], bool]) -> Iterator[list[Word]]:
    """The runs of a sentence, in order; exact values and barred words part them."""
    text = _REDACTED.sub(" | ", passage.text)
    for item in passage.identifiers:
        if item.kind in _NO_WORDS:
            text = text.replace(item.text, " | ")
    names = {word for item in passage.identifiers if item.kind == "name" for word in item.text.split()}
    run: list[Word] = []
    before = ""
    for token in _TOKEN.findall(text):
        is_run = _RUN.search(token) is not None
        word = None if is_run else _word(token, before, names, is_barred)
        before = token.lower()
        if word is not None:
            run.append(word)
            continue
        yield run
        run = []
        if is_run:
            yield from ([Word(term, term, 1.0)] for term in _signs(token))
    yield run


def _word(token: str, before: str, names: Collection[str], is_barred: Callable[[str], bool]) -> Word | None:
    lower = respelled(token.lower()).removesuffix("'s")
    is_short = len(lower) < (_SHORTEST_WORD if lower.isascii() else 2)
    if is_short or lower in _NOISE or _PREDICATE.search(lower):
        return None
    if not lower[:1].isalpha() or is_barred(lower):
        return None
    base, is_name = stem(lower), token in names
    written = token.removesuffix("'s").removesuffix("’s")
    keeps = is_name or (token.isupper() and len(token) <= _ACRONYM)
    return Word(
        base,
        written if keeps else lower,
        _factor(lower, before, is_name=is_name),
        is_common=not is_name and (lower in GENERIC or base in GENERIC_STEMS),
    )


def _factor(lower: str, before: str, *, is_name: bool) -> float:
    factor = _TECHNOLOGY if lower in TECHNOLOGY else 1.0
    if is_name:
        return factor * _NAME
    if _VERBAL.fullmatch(lower):
        factor *= _VERB
    if before in _DETERMINERS:
        factor *= _NOUN
    return factor * _VERB if before in _BEFORE_VERBS else factor


def _signs(token: str) -> Iterator[str]:
    """What stands between signs of grammar; of a long run its pieces."""
    for found in _RUN.findall(token):
        piece = ""
        for sign in [*found, "的"]:
            if sign not in _HAN_NOISE:
                piece += sign
                continue
            if len(piece) >= _SHORTEST_RUN:
                size = min(len(piece), _LONGEST_RUN)
                yield from (piece[place : place + size] for place in range(0, len(piece) - 1, size))
            piece = ""
