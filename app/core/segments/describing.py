"""Describes a stretch of messages: topic, range, times, tokens, exact values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from app.core.model.conversation import Message
from app.core.model.provenance import language_or_locale
from app.core.model.redaction import REDACTED
from app.core.model.segments import CutSegment
from app.core.model.word_overlap import message_text
from app.core.segments.message_analysis import analysis_of
from app.core.text.escaping import clean
from app.core.text.identifiers import find_identifiers
from app.core.text.parts import has_tool_parts
from app.core.text.patterns import compiled
from app.core.text.scripts import EAST_ASIAN

MAX_IDENTIFIERS: Final = 200
"""The most exact values that are kept for a segment; the originals have the rest."""
_MAX_IDENTIFIER_LENGTH: Final = 300  # characters; a longer value is a document
_SIGN: Final = compiled(f"[{EAST_ASIAN}]")
_BEGINS: Final = compiled(rf"(?<=[{EAST_ASIAN}])(?=[A-Za-z0-9])")
_ENDS: Final = compiled(rf"(?<![A-Za-z0-9_.-])[A-Za-z][A-Za-z0-9_.-]{{0,60}}(?<![._-])(?=[{EAST_ASIAN}])")
_BETWEEN: Final = frozenset(":,;{}[]()")  # a match that begins with one of these was between two quoted texts of data
_FIELD: Final = compiled(r"\s{0,4}:")
_WORD: Final = compiled(r"[a-z_ ]*")
"""Lower-case data of a tool: the name of a field, or one of a few choices, but not an exact value."""
_SAMPLE: Final = 200_000  # the most characters of one message that are searched for exact values


def describe(messages: Sequence[Message]) -> CutSegment:
    """Describe a stretch that was cut; its messages must already be redacted.

    Raises:
        ValueError: There is no message.
    """
    if not messages:
        raise ValueError("a segment has at least one message")
    counted = [message for message in messages if message.is_part_of_talk]
    times = [message.created_at for message in messages]
    return CutSegment(
        from_seq=messages[0].seq,
        to_seq=messages[-1].seq,
        topic=analysis_of(counted, language_or_locale(counted)).terms.topic or f"{messages[0].seq}–{messages[-1].seq}",
        started_at=min(times),
        ended_at=max(times),
        messages=len(counted),
        tokens=sum(message.token_count for message in counted),
        identifiers=_identifiers(counted),
    )


def _identifiers(messages: Sequence[Message]) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for message in messages:
        if message.role != "system" and len(found) < MAX_IDENTIFIERS:
            text = REDACTED.sub(" ", clean(message_text(message)[:_SAMPLE]))
            is_data = has_tool_parts(message.role, message.parts)
            found.update(dict.fromkeys(_exact_values(text, is_data=is_data)))
    return tuple(found)[:MAX_IDENTIFIERS]


def _exact_values(text: str, *, is_data: bool) -> Iterator[str]:
    # Spaces are added, since Latin letters directly beside East Asian ones would not be recognised as a code.
    spaced = _ENDS.sub(r"\g<0> ", _BEGINS.sub(" ", text)) if _SIGN.search(text) else text
    for one in find_identifiers(spaced):
        value = one.text
        # In data, quotation marks do not belong to a value, and the name of a field is not a value.
        if is_data and one.kind == "quoted" and value[:1] == '"':
            value = value.strip('"')
            if _FIELD.match(spaced, one.start + len(one.text)) or _WORD.fullmatch(value):
                continue
        if 0 < len(value) <= _MAX_IDENTIFIER_LENGTH and value in text and value.lstrip("\"'«“")[:1] not in _BETWEEN:
            yield value
