"""Measures what a compaction kept: which exact values of the folded messages are still served verbatim.

The measure is deterministic, and cheap enough for every compaction, so that a loss is seen when it happens.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from app.core.model.conversation import Layout, Message
from app.core.model.redaction import REDACTED
from app.core.model.state import texts_of
from app.core.model.word_overlap import message_text
from app.core.text.identifiers import identifiers
from app.core.text.values import is_of_word

MAX_VALUES: Final = 2_000
"""The most distinct values that are looked for. If there are more, only every n-th is: this bounds the work."""
MAX_CHARACTERS: Final = 60_000
"""The most characters that are probed, in a tenth of a second. Of a longer span only every n-th message is probed."""
_SURROUNDING_MARKS: Final = " \t\n\"'“”«»„`「」"


def exact_values(messages: Iterable[Message]) -> tuple[str, ...]:
    """Distinct exact values (numbers, money, dates, addresses, paths, symbols, names) of messages, in order."""
    texts = [message_text(one) for one in messages]
    probed = texts[:: _sampling_step(sum(map(len, texts)), MAX_CHARACTERS)]
    cleaned = (REDACTED.sub(" ", text[:MAX_CHARACTERS]) for text in probed)
    found = (value.strip(_SURROUNDING_MARKS) for text in cleaned for value in identifiers(text))
    values = list(filter(None, dict.fromkeys(found)))
    return tuple(values[:: _sampling_step(len(values), MAX_VALUES)])


def _sampling_step(count: int, most: int) -> int:
    return -(-count // most) or 1


def fidelity(
    values: Sequence[str], *, state: Mapping[str, Any], layout: Layout, span: Sequence[Message] = ()
) -> float | None:
    """The share of these values that is served; ``None`` without values.

    Args:
        values: The values of the folded messages (``exact_values``).
        state: The state as served. Its texts are searched, not its JSON, which escapes characters.
        layout: The anchors and digests served with it, and which messages are held.
        span: The folded messages: the held ones among them are served verbatim.
    """
    if not values:
        return None
    held_seqs = frozenset(layout.held)
    verbatim = [message_text(one) for one in span if one.seq in held_seqs]
    served = "\n".join([*texts_of(state), layout.anchors, layout.digests, *verbatim])
    return round(sum(is_whole_in(value, served) for value in values) / len(values), 4)


def is_whole_in(value: str, text: str) -> bool:
    """Whether the value is in the text as a whole: ``5`` is not in ``150``."""
    start = text.find(value)
    while start >= 0:
        end = start + len(value)
        if not (_belong_to_one_word(text, start - 1, value[0]) or _belong_to_one_word(text, end, value[-1])):
            return True
        start = text.find(value, end)
    return False


def _belong_to_one_word(text: str, position: int, edge: str) -> bool:
    return 0 <= position < len(text) and is_of_word(text[position]) and is_of_word(edge)
