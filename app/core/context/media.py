"""Media of a request to a model: the newest have their data, as many as a provider takes; others become words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

from app.core.context.formats.words import media_type_and_name, part_as_text
from app.core.text.contents import data_bytes
from app.core.text.localization.catalogue import Catalogue, catalogue_of
from app.core.text.parts import Part


class MessageWithParts(Protocol):
    """A message, stored or about to be sent."""

    @property
    def parts(self) -> tuple[Part, ...]:
        """The message's parts, apart from its content."""

    @property
    def seq(self) -> int | None:
        """The message's position; ``None`` if it is not stored."""


_UNITS: Final = ((1_000_000, "MB"), (1_000, "kB"))


def parts_within_bytes(messages: Sequence[MessageWithParts], limit: int, locale: str) -> list[tuple[Part, ...]]:
    """The parts of each message. The oldest media become words, so that all data has at most ``limit`` characters.

    The words for a part give its type, its size, its name if it has one, and its message.
    """
    catalogue, remaining_bytes = catalogue_of(locale), limit
    kept: list[tuple[Part, ...]] = []
    for message in reversed(messages):
        parts: list[Part] = []
        for part in reversed(message.parts):
            size = data_bytes(part)
            is_full = size > remaining_bytes
            remaining_bytes = 0 if is_full else remaining_bytes - size  # if one has no room, no older one gets any
            parts.append(_part_in_words(part, size, message.seq, catalogue) if is_full else part)
        kept.append(tuple(reversed(parts)))
    return kept[::-1]


def parts_with_newest_media(messages: Sequence[MessageWithParts], most: int, locale: str) -> list[tuple[Part, ...]]:
    """The parts of each message. Only the ``most`` newest messages with data keep it; in others it becomes words."""
    catalogue, left = catalogue_of(locale), most
    kept: list[tuple[Part, ...]] = []
    for message in reversed(messages):
        is_described = has_media_data(message) and left == 0
        left -= has_media_data(message) and not is_described
        kept.append(
            tuple(_described_part(part, catalogue) for part in message.parts) if is_described else message.parts
        )
    return kept[::-1]


def has_media_data(message: MessageWithParts) -> bool:
    """Whether a message carries data of media."""
    return any(map(data_bytes, message.parts))


def _described_part(part: Part, catalogue: Catalogue) -> Part:
    return {"type": "text", "text": part_as_text(part, catalogue)} if data_bytes(part) else part


def _part_in_words(part: Part, size: int, seq: int | None, catalogue: Catalogue) -> Part:
    kind, *name = media_type_and_name(part, catalogue)
    what = [kind, formatted_size(size * 3 // 4), *name]
    key = "context.part.too_large" if seq is None else "context.part.too_large_at"
    return {"type": "text", "text": catalogue.text(key, what=", ".join(what), seq=str(seq))}


def formatted_size(size: int) -> str:
    """A number of bytes in words, in the largest unit in which it is at least 1."""
    return next((f"{size / unit:.1f} {name}" for unit, name in _UNITS if size >= unit), f"{size} B")
