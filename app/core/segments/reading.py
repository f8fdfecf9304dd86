"""The messages of one stretch as sentences, each with who said it, however few there are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from app.core.model.conversation import Message
from app.core.reading.passages import Passage, passages_of
from app.core.reading.scoring import Worth, score_all
from app.core.segments.hashing import content_hash

_REMEMBERED: Final = 64  # stretches: a chunk is described whole before any of it is told


@dataclass(frozen=True, slots=True)
class _Span:
    """Messages that can be remembered: the same when they read the same."""

    key: str
    messages: Sequence[Message] = field(compare=False)


def read(messages: Sequence[Message], language: str) -> tuple[Passage, ...]:
    """All sentences in order."""
    return _read(_span(messages), language)


def scored(messages: Sequence[Message], language: str) -> tuple[Worth, ...]:
    """What each of these sentences is worth."""
    return _scored(_span(messages), language)


def _span(messages: Sequence[Message]) -> _Span:
    flags = "".join(f"{message.is_command:d}{message.is_protected:d}" for message in messages)
    return _Span(content_hash(messages, "L3", flags, ""), messages)


@lru_cache(maxsize=_REMEMBERED)
def _scored(span: _Span, language: str) -> tuple[Worth, ...]:
    return tuple(score_all(_read(span, language)))


@lru_cache(maxsize=_REMEMBERED)
def _read(span: _Span, language: str) -> tuple[Passage, ...]:
    return tuple(passages_of(span.messages, language))
