"""Pages of a text and of lists together are the whole, whatever it holds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.segments.paging import page_end, rows_within
from app.core.text.token_counts import estimate_text

TEXTS = st.one_of(
    st.text(max_size=300),
    st.lists(
        st.sampled_from(["The kettle. ", "Окно? ", "铜水壶在储藏室里。", "word ", "\n", "1 234,5 ", "🗝"]), max_size=60
    ).map("".join),
)


def pages(text: str, max_tokens: int) -> list[str]:
    found: list[str] = []
    start = 0
    while start < len(text):
        end = page_end(text, start, max_tokens)
        found.append(text[start:end])
        start = end
    return found


@given(TEXTS, st.integers(1, 40))
def test_pages_put_together_are_the_text(text: str, max_tokens: int) -> None:
    found = pages(text, max_tokens)
    assert "".join(found) == text
    assert all(found)
    for page in found:
        assert estimate_text(page) <= max_tokens or len(page) == 1


@pytest.mark.parametrize(
    ("text", "ends"),
    [
        ("The first thing is this. The second is that one. And so on and on.", "."),
        ("Первое дело такое. Второе дело другое. И так далее, и так далее.", "."),
        ("第一件事是这样。第二件事是那样。第三件事也是如此。", "。"),
    ],
)
def test_a_page_ends_with_a_sentence(text: str, ends: str) -> None:
    first = pages(text, estimate_text(text) - 2)[0]
    assert first.rstrip().endswith(ends)
    assert first != text


def test_without_sentences_it_ends_with_a_word() -> None:
    text = "kettle " * 50
    assert all(page.endswith("kettle ") for page in pages(text, 7))


def test_a_long_word_is_cut() -> None:
    assert len(pages("x" * 4_000, 10)) > 10


@given(st.lists(st.integers(0, 50), max_size=30), st.integers(1, 100))
def test_rows_fit_or_are_one(weights: list[int], max_tokens: int) -> None:
    count = rows_within(weights, max_tokens)
    assert count <= len(weights)
    assert (count >= 1) is bool(weights)
    assert sum(weights[:count]) <= max_tokens or count == 1
    assert count == len(weights) or sum(weights[: count + 1]) > max_tokens
