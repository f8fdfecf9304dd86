"""Finds the message that a text was drawn from, by the content words they share."""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Final

from app.core.model.conversation import Message
from app.core.text.parts import TOOL_PART_TYPES, Part, own_parts
from app.core.text.words import stems

_MIN_SHARE: Final = 0.3  # share of a text's weight; two texts on one topic share less by chance
_UNSEEN_WORD_WEIGHT: Final = 0.5
"""The weight of a word that the span lacks (paraphrases have some), as a share of the rarest word's."""
_TIED_SHARE: Final = 0.85  # share of the best message's weight; a message that shares as much is a source too
_MAX_SOURCES: Final = 3


class Overlap:
    """Content words of a span, weighted by how rare they are in it."""

    def __init__(self, messages: Sequence[Message]) -> None:
        self._messages_with: dict[str, list[int]] = defaultdict(list)
        for message in messages:
            for word in set(stems(message_text(message))):
                self._messages_with[word].append(message.seq)
        self._count = len(messages)

    def sources(self, text: str) -> tuple[int, ...]:
        """The messages that share most of the text's weight, in order; none when no message shares enough."""
        # The words are sorted, since sums of fractions depend on the order.
        weights = {word: self._rarity(word) for word in sorted(set(stems(text)))}
        total = sum(weights.values())
        shared = self._shared_weights(weights)
        best = max(shared.values(), default=0.0)
        if not total or best < _MIN_SHARE * total:
            return ()
        close = [seq for seq, weight in shared.items() if weight >= _TIED_SHARE * best]
        close.sort(key=lambda seq: (-shared[seq], seq))
        return tuple(sorted(close[:_MAX_SOURCES]))

    def _shared_weights(self, weights: Mapping[str, float]) -> Counter[int]:
        shared: Counter[int] = Counter()
        for word, weight in weights.items():
            for seq in self._messages_with.get(word, ()):
                shared[seq] += weight  # type: ignore[assignment]
        return shared

    def _rarity(self, word: str) -> float:
        holding = len(self._messages_with.get(word, ()))
        return math.log(1 + self._count / holding) if holding else _UNSEEN_WORD_WEIGHT * math.log(1 + self._count)


def message_text(message: Message) -> str:
    """All that a message says: its content and the text of its parts, including arguments and results of tools.

    Text that is in both is given once.
    """
    return text_with_parts(message.content, message.parts)


def text_with_parts(content: str, parts: Sequence[Part]) -> str:
    """The ``message_text`` of a message with this content and these parts."""
    return "\n".join(filter(None, [content, *map(_part_text, own_parts(content, parts))]))


def _part_text(part: Part) -> str:
    is_tool = part.get("type") in TOOL_PART_TYPES
    text = part.get("text") or part.get("content") or part.get("arguments") or ""
    if not isinstance(text, str):
        text = json.dumps(text, ensure_ascii=False, default=str) if is_tool else ""
    name = part.get("name")
    return f"{name} {text}" if is_tool and isinstance(name, str) else text
