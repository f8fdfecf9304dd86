"""The bench of the Sessions Pattern's figures counts what its text says."""

from __future__ import annotations

import pytest

from app.core.text.token_counts import estimate_text
from bench import designs

TEXTS = [f"On day {number} we counted {number * 7} crates in the harbour and wrote it down." for number in range(40)]


def test_texts_are_joined_to_their_size() -> None:
    made = designs.joined(TEXTS, 10, 100)
    assert len(made) == 10
    assert all(100 <= estimate_text(text) < 130 for text in made)


@pytest.mark.long
def test_what_is_folded_is_saved(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = designs.joined(TEXTS, 60, 160)
    row = designs.measured("a talk", texts)
    assert row.compactions >= 1
    assert row.cpu_ms >= row.slowest_ms > 0
    assert 0 < row.saved < 1 - row.served / row.tokens

    monkeypatch.setattr(designs, "WINDOW", 100_000)
    control = designs.measured("a talk", texts)
    assert (control.compactions, control.served, round(control.saved, 9)) == (0, control.tokens, 0)
