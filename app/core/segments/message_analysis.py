"""Analyses the messages of a stretch: its sentences, the worth of each, and the terms that recur in it."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from app.core.model.conversation import Message
from app.core.reading.passages import Passage, passages_of
from app.core.reading.scoring import Worth, score_all
from app.core.segments.hashing import content_hash
from app.core.segments.topics import Terms
from app.core.text.memo import memoized
from app.core.text.speakers import name_in


class MessageAnalysis:
    """The messages from which a topic and all levels of detail are made; each part is computed when first needed."""

    def __init__(self, messages: Sequence[Message], language: str) -> None:
        self._messages = messages
        self._language = language

    @cached_property
    def passages(self) -> list[Passage]:
        """All sentences in order, each with its speaker."""
        return passages_of(self._messages, self._language)

    @cached_property
    def worths(self) -> list[Worth]:
        """The worth of each of these sentences."""
        return score_all(self.passages)

    @cached_property
    def terms(self) -> Terms:
        """The terms that recur in the sentences."""
        return Terms(self.passages, self._language)


def analysis_of(messages: Sequence[Message], language: str) -> MessageAnalysis:
    """The stretch that consists of these messages. As long as the messages are the same, so is the returned object."""
    flags = "".join(f"{message.is_command:d}{message.is_protected:d}" for message in messages)
    names = tuple(name_in(message.metadata) for message in messages)  # the same words may be another person's
    return _analysis(Messages((content_hash(messages, "L3", flags, ""), names), messages), language)


@dataclass(frozen=True)
class Messages:
    """Messages with a key, so that results for them can be kept."""

    key: Hashable
    messages: Sequence[Message] = field(compare=False)

    def __len__(self) -> int:
        return sum(message.byte_length for message in self.messages)


@memoized()
def _analysis(span: Messages, language: str) -> MessageAnalysis:
    return MessageAnalysis(span.messages, language)
