"""Writes a context in the format that a client names (``format=``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from app.core.context.formats.anthropic import anthropic_messages
from app.core.context.formats.gemini import gemini_contents
from app.core.context.formats.openai import openai_messages
from app.core.model.model_io import ContextMessage
from app.core.retrieval.rendering import split_elements
from app.core.text.localization.catalogue import FALLBACK, catalogue_of
from app.core.text.parts import own_content, without_repeats

Format = Literal["plain", "openai", "gemini", "anthropic"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Formatted:
    """A context as a provider's request has it."""

    messages: Sequence[Mapping[str, Any]]
    """The messages in the form of the provider's request."""
    system: str | None = None
    """The system text, for formats that separate it from the messages."""


def in_format(messages: Sequence[ContextMessage], format_: Format, locale: str = FALLBACK) -> Formatted:
    """The messages in a format; the same messages always give the same bytes.

    What a format has to put in words is written in the language of ``locale``.
    """
    catalogue = catalogue_of(locale)
    match format_:
        case "plain":
            return Formatted(messages=[_plain_message(message) for message in messages])
        case "openai":
            return Formatted(messages=openai_messages(messages, catalogue))
        case "gemini":
            system, contents = gemini_contents(messages, catalogue)
        case "anthropic":
            system, contents = anthropic_messages(messages, catalogue)
    return Formatted(messages=contents, system=system)


def _plain_message(message: ContextMessage) -> dict[str, Any]:
    own_text = split_elements(message.content)[1]
    parts = [dict(part) for part in without_repeats(own_text, message.parts)]
    content = own_content(message.role, message.content, message.parts)
    return {
        "role": message.role,
        "content": content,
        "parts": parts,
        "seq": message.seq,
        "turn": message.turn,
        "event_type": message.event_type,
        "is_protected": message.is_protected,
    }
