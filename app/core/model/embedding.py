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
from app.core.model.errors import ModelUnavailableError
from app.core.text.token_counts import estimate_text

MAX_EMBEDDED_TOKENS: Final = 1_500
"""The most tokens of a text that are embedded: the smallest of today's models take 2 048 by their own count."""
MAX_DIMENSIONS: Final = 8_192
_BYTES_PER_NUMBER: Final = 4
_MAX_CHARACTERS: Final = 12_000  # no text of MAX_EMBEDDED_TOKENS tokens is longer: only so many characters are counted

InputKind = Literal["query", "document"]
"""A question, or a text that may answer it: some models treat the two differently."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Embedded:
    """A model's answer: a vector for each text, in their order."""

    vectors: tuple[bytes, ...]
    """The vectors, each of unit length, as ``packed_vector`` writes them."""
    usage: Usage = field(default_factory=Usage)


class BadVectorsError(ModelUnavailableError):
    """Raised by embedding models: the answer is not a vector for each text, of the wanted length.

    Args:
        usage: What the answer cost all the same.
    """

    def __init__(self, usage: Usage) -> None:
        super().__init__("bad_vectors")
        self.usage = usage


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageVector:
    """The vector of a message, with the hash of the text that it was made from."""

    conversation_id: UUID
    seq: int
    model: str
    """The name of the model, with the dimensions if they are chosen. Vectors of different names are never compared."""
    sha256: bytes
    vector: bytes

    @property
    def dimensions(self) -> int:
        """How many numbers the vector has."""
        return len(self.vector) // _BYTES_PER_NUMBER


def text_to_embed(text: str) -> str:
    """The form of a text that a model is given: composed letters, single spaces, no longer than every model takes.

    It is empty if the text says nothing.
    """
    composed = " ".join(unicodedata.normalize("NFC", text[:_MAX_CHARACTERS]).split())
    tokens = estimate_text(composed)
    return (
        composed
        if tokens <= MAX_EMBEDDED_TOKENS
        else composed[: len(composed) * MAX_EMBEDDED_TOKENS // tokens].rstrip()
    )


def text_hash(text: str) -> bytes:
    """The SHA-256 of what a model is given: the same text needs no second call."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def packed_vector(numbers: Sequence[float]) -> bytes | None:
    """A vector scaled to unit length as 32-bit floats, lowest byte first; ``None`` if that cannot be done.

    It cannot be done without numbers, with too many, with one that is not finite or no number, or if all are zero.
    """
    if not 0 < len(numbers) <= MAX_DIMENSIONS:
        return None
    try:
        length = math.sqrt(math.fsum(number * number for number in numbers))
    except (TypeError, OverflowError):  # some servers write null where a number is not finite
        return None
    if not math.isfinite(length) or length == 0:
        return None
    return _little_endian(array("f", (number / length for number in numbers))).tobytes()


def unpacked_vector(vector: bytes) -> array[float]:
    """The numbers of a packed vector."""
    numbers: array[float] = array("f")
    numbers.frombytes(vector)
    return _little_endian(numbers)


def _little_endian(numbers: array[float]) -> array[float]:
    if array("H", [1]).tobytes() != b"\x01\x00":
        numbers.byteswap()
    return numbers
