"""Leaves out of digests what a later statement took back: a correction holds for every part of the block."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from app.core.model.segments import ServableSegment
from app.core.text.memo import FIGURE_GROWTH, memoized
from app.core.text.repeating import normalized_text
from app.core.text.sentences import sentences_read_once

_MIN_TEXT_LENGTH: Final = 12  # characters; a shorter text says nothing that could be taken back


def without_outdated(segments: Sequence[ServableSegment], quotes: Sequence[str]) -> list[ServableSegment]:
    """The segments without the sentences of their levels that repeat one of these statements.

    Args:
        segments: The segments with their levels.
        quotes: The statements, verbatim, that were superseded later.
    """
    outdated = _outdated_statements(tuple(quotes))
    return [_without_outdated(segment, outdated) for segment in segments] if outdated else list(segments)


@memoized()
def _outdated_statements(quotes: tuple[str, ...]) -> _OutdatedStatements | None:
    statements = [plain for quote in quotes if len(plain := normalized_text(quote)) >= _MIN_TEXT_LENGTH]
    return _OutdatedStatements(statements) if statements else None


def _without_outdated(segment: ServableSegment, outdated: _OutdatedStatements) -> ServableSegment:
    shortened = {
        level: kept
        for level, text in segment.texts.items()
        if (kept := _text_without_outdated(text, outdated)) is not None
    }
    return replace(segment, texts={**segment.texts, **shortened}) if shortened else segment


@memoized(FIGURE_GROWTH)
def _text_without_outdated(text: str, outdated: _OutdatedStatements) -> str | None:
    all_sentences = [_sentence(one) for one in sentences_read_once(text)]
    kept = [one.text for one in all_sentences if not outdated.repeated_by(one)]
    # ``None``: nothing is outdated.
    return " ".join(kept) if len(kept) < len(all_sentences) else None


@dataclass(frozen=True, slots=True)
class _Sentence:
    text: str
    plain: str
    words: frozenset[str]
    """The words of the plain text, split at spaces."""
    inner: frozenset[str]
    """The words that have a space on both sides."""


def _sentence(text: str) -> _Sentence:
    plain = normalized_text(text)
    words = plain.split(" ")
    return _Sentence(text, plain, frozenset(words), frozenset(words[1:-1]))


class _OutdatedStatements:
    """Statements that were taken back.

    A text that contains another one has all its inner words (those with a space on both sides) as words. So only few
    pairs of statement and sentence have to be compared letter by letter.
    """

    def __init__(self, statements: Sequence[str]) -> None:
        self._joined = "\n".join(statements)  # statements and sentences are on one line each
        counts = Counter(word for statement in statements for word in statement.split(" "))
        self._words = frozenset(counts)
        self._by_word: defaultdict[str, list[str]] = defaultdict(list)
        self._without_inner: list[str] = []
        for statement in statements:
            inner = statement.split(" ")[1:-1]
            rarest = min(inner, key=lambda word: (counts[word], -len(word)), default=None)
            holding = self._without_inner if rarest is None else self._by_word[rarest]
            holding.append(statement)
        self._rarest_words = frozenset(self._by_word)

    def repeated_by(self, sentence: _Sentence) -> bool:
        """Whether a sentence says one of them, or a part of one."""
        plain = sentence.plain
        if len(plain) < _MIN_TEXT_LENGTH:
            return False
        if sentence.inner <= self._words and plain in self._joined:
            return True
        near = [
            *self._without_inner,
            *(one for word in self._rarest_words & sentence.words for one in self._by_word[word]),
        ]
        return any(statement in plain for statement in near)
