"""Vectors that an embedding model made of texts: what is given to it, and what is taken from it."""

from __future__ import annotations

import hashlib
import math
import unicodedata
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Literal
from uuid import UUID

from app.core.model.conversation import Usage
from app.core.text.token_counts import estimate_text

EMBEDDED_TOKENS: Final = 1_500
"""Only so much of a text is embedded: the smallest of today's models take 2 048 tokens by their own count."""
MOST_DIMENSIONS: Final = 8_192
_BYTES: Final = 4
_CHARACTERS: Final = 12_000  # no text of that many tokens is longer; bounds what is counted

InputKind = Literal["query", "document"]
"""A question, or what may answer it: some models tell them apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Embedded:
    """A model's answer: a vector for each text, in their order."""

    vectors: tuple[bytes, ...]
    """Each of unit length, as ``packed`` writes it."""
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageVector:
    """The vector of a message, and of what text it was made."""

    conversation_id: UUID
    seq: int
    model: str
    """The name of the model, with the dimensions if they are chosen. Vectors of different names are never compared."""
    sha256: bytes
    vector: bytes

    @property
    def dimensions(self) -> int:
        """Numbers of the vector."""
        return len(self.vector) // _BYTES


def embeddable(text: str) -> str:
    """What a model is given of a text: composed letters, spaces as one, and only as long as every model takes.

    Empty where nothing is said.
    """
    told = " ".join(unicodedata.normalize("NFC", text[:_CHARACTERS]).split())
    tokens = estimate_text(told)
    return told if tokens <= EMBEDDED_TOKENS else told[: len(told) * EMBEDDED_TOKENS // tokens].rstrip()


def hash_of(text: str) -> bytes:
    """SHA-256 of what a model is given: the same text needs no second call."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def packed(numbers: Sequence[float]) -> bytes | None:
    """A vector at unit length as 32-bit floats, lowest byte first; ``None`` if it has no length.

    It is none without a number, with too many, with one that is not finite, and where all are zero.
    """
    if not 0 < len(numbers) <= MOST_DIMENSIONS:
        return None
    length = math.sqrt(math.fsum(number * number for number in numbers))
    if not math.isfinite(length) or length == 0:
        return None
    return _little_endian(array("f", (number / length for number in numbers))).tobytes()


def unpacked(vector: bytes) -> array[float]:
    """The numbers of a packed vector."""
    numbers: array[float] = array("f")
    numbers.frombytes(vector)
    return _little_endian(numbers)


def _little_endian(numbers: array[float]) -> array[float]:
    if array("H", [1]).tobytes() != b"\x01\x00":
        numbers.byteswap()
    return numbers
