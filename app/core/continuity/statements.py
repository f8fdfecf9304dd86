"""Splits a context into statements: sentences that can be looked up by their words and values."""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, Final

from app.core.anchors.topics import stems_of
from app.core.model.conversation import Layout, Message
from app.core.model.state import texts_of
from app.core.model.word_overlap import message_text
from app.core.text.budget import first_fitting
from app.core.text.identifiers import find_identifiers
from app.core.text.patterns import compiled
from app.core.text.sentences import sentences
from app.core.text.speakers import labels_of, name_in
from app.core.text.values import NAMING_KINDS, Value, ValueIndex, values
from app.core.validation.dates import text_with_dates

MAX_CHARACTERS: Final = 40_000
"""The most characters that are read of a stretch, of a state block and of the tail. Of a longer stretch only every n-th
message is read."""
_MAX_SENTENCE_LENGTH: Final = 1_000  # the most characters of a sentence that are looked at
_SIGN_OF_VALUE: Final = compiled(r"[\d@/\\零〇一二两三四五六七八九十百千万]")


@dataclass(frozen=True)
class ContextStatement:
    """One sentence of a context."""

    text: str
    at: datetime | None = None
    """When its message was said; ``None`` in a state block."""
    seq: int | None = None
    """The message; ``None`` in a state block."""
    speaker: str = ""
    """The speaker's name, if the messages begin with names or have them in their metadata."""
    is_spoken: bool = False
    """Whether a user or the assistant says it, not a tool or the system."""

    @cached_property
    def stems(self) -> frozenset[str]:
        """The statement's content words, each as its stem."""
        return stems_of(self.text)

    @cached_property
    def values(self) -> tuple[Value, ...]:
        """The exact values in the statement."""
        return values(self.text, self.at) if self.may_hold_values else ()

    @property
    def may_hold_values(self) -> bool:
        """Whether it may have values: a fast test that misses only numbers written as words."""
        return _SIGN_OF_VALUE.search(self.text) is not None

    def holds(self, value: Value) -> bool:
        """Whether it contains a value in any form; a path or a URL has to be there as a whole."""
        if value.kind in NAMING_KINDS:
            return value.text.casefold() in self.text.casefold()
        return self._given_values.holds(value)

    @cached_property
    def _given_values(self) -> ValueIndex:
        given = ValueIndex()
        given.add(1, self.text, self.at)
        return given

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names in it, in lower case."""
        return tuple(dict.fromkeys(one.text.lower() for one in find_identifiers(self.text) if one.kind == "name"))


def message_statements(messages: Sequence[Message]) -> tuple[ContextStatement, ...]:
    """The statements of messages, with days added to "yesterday"; commands, erased and replaced messages have none."""
    served = [one for one in messages if not one.is_command and one.status not in {"erased", "superseded"}]
    labels = labels_of([(one.role, one.content) for one in served])
    return tuple(
        ContextStatement(
            text_with_dates(text[:_MAX_SENTENCE_LENGTH], [message], may_append_day=False),
            message.created_at,
            message.seq,
            label.name if label else name_in(message.metadata),
            message.role in {"user", "assistant"},
        )
        for message, label in zip(served, labels, strict=True)
        for text in sentences(message_text(message)[:MAX_CHARACTERS])
    )


def block_statements(state: Mapping[str, Any], layout: Layout) -> tuple[ContextStatement, ...]:
    """The statements of a state block: of its entries, anchors and digests."""
    lines = [*texts_of(state), *layout.anchors.splitlines(), *layout.digests.splitlines()]
    left, found = MAX_CHARACTERS, []
    for line in lines:
        if left <= 0:
            break
        found += [
            ContextStatement(text[:_MAX_SENTENCE_LENGTH]) for text in sentences(line[:left]) if not text.startswith("<")
        ]
        left -= len(line)
    return tuple(found)


def stored_block_statements(layout: Layout) -> tuple[ContextStatement, ...]:
    """The statements of a stored state block."""
    return block_statements(json.loads(layout.text) if layout.text else {}, layout)


def sampled_messages(messages: Sequence[Message], most: int = MAX_CHARACTERS) -> tuple[Message, ...]:
    """Every n-th message, so that all together have about ``most`` characters; this bounds the work."""
    length = sum(max(message.byte_length, len(message.content)) for message in messages)
    return tuple(messages[:: max(1, math.ceil(length / most))])


def newest_messages(messages: Sequence[Message]) -> tuple[Message, ...]:
    """The last messages, as many as have at most ``MAX_CHARACTERS`` together."""
    return tuple(first_fitting(reversed(messages), MAX_CHARACTERS, lambda message: len(message.content)))[::-1]


class StatementPool:
    """The numbered statements of several contexts, which can be looked up by their words."""

    def __init__(self) -> None:
        self.statements: Final[list[ContextStatement]] = []
        self._with_stem: Final[defaultdict[str, list[int]]] = defaultdict(list)
        self._values: Final = ValueIndex()
        self._indexed: Final[set[int]] = set()
        """The statements whose values were looked for."""

    def add(self, statements: Sequence[ContextStatement]) -> range:
        """Add statements; returns their numbers."""
        first = len(self.statements)
        for number, statement in enumerate(statements, start=first):
            self.statements.append(statement)
            for stem in statement.stems:
                self._with_stem[stem].append(number)
        return range(first, len(self.statements))

    def holding(self, value: Value, numbers: Collection[int]) -> list[int]:
        """Those of these statements that hold a value, each by itself."""
        if value.kind not in NAMING_KINDS:
            for number in frozenset(numbers) - self._indexed:
                self._values.add(number, self.statements[number].text, self.statements[number].at)
            self._indexed.update(numbers)
            numbers = list(filter(self._values.possible_sources(value).__contains__, numbers))
        return [number for number in numbers if self.statements[number].holds(value)]

    def weight(self, stem: str) -> float:
        """How much a word says: more if fewer statements hold it."""
        return math.log(1 + len(self.statements) / max(len(self._with_stem.get(stem, ())), 1))

    def with_stem(self, stem: str) -> Sequence[int]:
        """The numbers of the statements that hold this word."""
        return self._with_stem.get(stem, ())


class Context:
    """The statements of a pool that one context serves."""

    def __init__(self, pool: StatementPool, *parts: range) -> None:
        self.pool: Final = pool
        self._served: Final = frozenset(number for part in parts for number in part)

    def holding_text(self, text: str) -> list[int]:
        """The numbers of the statements that contain a text as it is, in small or capital letters."""
        wanted = text.casefold()
        return [number for number in self._served if wanted in self.pool.statements[number].text.casefold()]

    def shared_words(self, cues: Mapping[str, float]) -> dict[int, tuple[float, int]]:
        """Each statement with any of these words, by its number: the sum of their weights, and their count."""
        weights: defaultdict[int, float] = defaultdict(float)
        counts: Counter[int] = Counter()
        for stem, weight in cues.items():
            holding = self._served.intersection(self.pool.with_stem(stem))
            counts.update(holding)
            for number in holding:
                weights[number] += weight
        return {number: (weights[number], count) for number, count in counts.items()}
