"""Marks next to ASCII words change nothing in what a text says of itself, and are read by the short way."""

from __future__ import annotations

import inspect

import pytest

from app.core.retrieval import corpus
from app.core.retrieval.corpus import words_of
from app.core.text import words as words_text
from bench.growth import talk

TEXTS = [message.content for message in talk(80, seed=5)]


@pytest.mark.parametrize("mark", ["€", "£", "–", "—", "…", "“", "”", "„", "«", "»", "•"])
def test_a_text_says_the_same_with_the_mark_read_either_way(mark: str, monkeypatch: pytest.MonkeyPatch) -> None:
    marked = [text.replace(" ", f" {mark}", 3).replace("e", f"e{mark}", 1) for text in TEXTS]
    short = [inspect.unwrap(words_of)(text) for text in marked]
    monkeypatch.setattr(corpus, "_MARKS", {})
    assert short == [inspect.unwrap(words_of)(text) for text in marked]


def test_a_text_with_a_price_is_read_as_ascii(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    ascii_tokens = words_text.ascii_tokens

    def noted(text: str) -> list[str]:
        read.append(text)
        return ascii_tokens(text)

    monkeypatch.setattr(corpus, "ascii_tokens", noted)
    inspect.unwrap(words_of)("It must not cost more than €40 – or so.")
    assert len(read) == 1
    assert read[0].isascii()
