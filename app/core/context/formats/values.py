"""The values that the messages of every provider's format are made of."""

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
    """Base64, checked."""
    words: str
    """What it is, for a provider that does not read its type."""


Piece = Text | Media


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A tool call as providers take it."""

    id: str
    """Unique in the thread, of letters that every provider accepts."""
    name: str
    arguments: Mapping[str, Any]
    signature: str | None = None
    """What Gemini gave with the call, and wants back with it (``thought_signature`` of the part)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The result of a tool call."""

    call_id: str
    name: str
    content: Any
    """JSON; never blank."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What the operator says: a message of role ``system``."""

    text: str
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The user's side: results of the calls just before, then pieces."""

    results: tuple[Result, ...] = ()
    pieces: tuple[Piece, ...] = ()
    name: str = ""
    """The name of who says the pieces, for a provider that has a field for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """The model's side."""

    texts: tuple[str, ...] = ()
    calls: tuple[Call, ...] = ()
    name: str = ""


Entry = Told | Asked | Said
