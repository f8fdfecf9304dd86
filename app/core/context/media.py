"""Media of a request to a model: the newest with their data, as many as a provider takes; the others in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

from app.core.context.formats.words import in_words, type_and_name
from app.core.text.contents import data_bytes
from app.core.text.localization.catalogue import Catalogue, catalogue_of
from app.core.text.parts import Part

MEDIA_BYTES: Final = 15_000_000
"""Characters of Base64 in one request; the narrowest of the providers takes 20 MB in all."""


class Spoken(Protocol):
    """A message, stored or about to be sent."""

    @property
    def parts(self) -> tuple[Part, ...]:
        """The message's parts, beside its content."""

    @property
    def seq(self) -> int | None:
        """The message's position; ``None`` of one that is not stored."""


_UNITS: Final = ((1_000_000, "MB"), (1_000, "kB"))


def within_bytes(messages: Sequence[Spoken], limit: int, locale: str) -> list[tuple[Part, ...]]:
    """The parts of each message, with the oldest media told in words so that all data has at most ``limit`` characters.

    A part that is put into words names its type, its size, its name where it has one, and the message that has it.
    """
    say, room = catalogue_of(locale), limit
    kept: list[tuple[Part, ...]] = []
    for message in reversed(messages):
        parts: list[Part] = []
        for part in reversed(message.parts):
            size = data_bytes(part)
            is_full = size > room
            room = 0 if is_full else room - size  # what is older than one that has no room has none either
            parts.append(_part_in_words(part, size, message.seq, say) if is_full else part)
        kept.append(tuple(reversed(parts)))
    return kept[::-1]


def with_newest_media(messages: Sequence[Spoken], most: int, locale: str) -> list[tuple[Part, ...]]:
    """The parts of each message, so that only the ``most`` newest messages that have data carry it, others words."""
    say, left = catalogue_of(locale), most
    kept: list[tuple[Part, ...]] = []
    for message in reversed(messages):
        is_told = has_data(message) and left == 0
        left -= has_data(message) and not is_told
        kept.append(tuple(_told(part, say) for part in message.parts) if is_told else message.parts)
    return kept[::-1]


def has_data(message: Spoken) -> bool:
    """Whether a message carries data of media."""
    return any(map(data_bytes, message.parts))


def _told(part: Part, say: Catalogue) -> Part:
    return {"type": "text", "text": in_words(part, say)} if data_bytes(part) else part


def _part_in_words(part: Part, size: int, seq: int | None, say: Catalogue) -> Part:
    kind, *name = type_and_name(part, say)
    what = [kind, told_size(size * 3 // 4), *name]
    key = "context.part.too_large" if seq is None else "context.part.too_large_at"
    return {"type": "text", "text": say.text(key, what=", ".join(what), seq=str(seq))}


def told_size(size: int) -> str:
    """A number of bytes in words, in the largest unit of which it has at least one."""
    return next((f"{size / unit:.1f} {name}" for unit, name in _UNITS if size >= unit), f"{size} B")
