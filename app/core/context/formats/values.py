"""The values of which the messages of every provider's format are made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Text:
    """Words; never blank."""

    text: str


@dataclass(frozen=True, slots=True)
class Media:
    """Inline data."""

    media_type: str
    data: str
    """Valid Base64."""
    words: str
    """A description in words, for a provider that does not read this media type."""


Piece = Text | Media


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A tool call as providers take it."""

    id: str
    """An id that is unique in the thread, with only letters that every provider accepts."""
    name: str
    arguments: Mapping[str, Any]
    signature: str | None = None
    """The signature that Gemini sent with the call and requires back with it (``thought_signature`` of the part)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The result of a tool call."""

    call_id: str
    name: str
    content: Any
    """A JSON value that is never blank."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemEntry:
    """Words of the operator: a message of role ``system``."""

    text: str
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class UserEntry:
    """An entry of the user's side: results of the calls just before, then pieces."""

    results: tuple[Result, ...] = ()
    pieces: tuple[Piece, ...] = ()
    name: str = ""
    """The name of the speaker of the pieces, for a provider that has a field for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AssistantEntry:
    """An entry of the model's side."""

    texts: tuple[str, ...] = ()
    calls: tuple[Call, ...] = ()
    name: str = ""


Entry = SystemEntry | UserEntry | AssistantEntry
