"""Parts of UI messages: what the title of a recalled passage quotes."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.http.ui.parts import TITLE_LENGTH, title_of
from tests.builders import message

DAY = datetime(2026, 5, 12, 9, 30, tzinfo=UTC)
LONG = "We chose Postgres because the ledger needs transactions, and because everyone here knows how to run it."


@pytest.mark.parametrize(
    ("content", "title"),
    [
        ("We chose Postgres.", "2026-05-12 · We chose Postgres."),
        ("We\n\n  chose\tPostgres.", "2026-05-12 · We chose Postgres."),
        (LONG, "2026-05-12 · We chose Postgres because the ledger needs transactions, and because everyone…"),
        ("x" * 200, f"2026-05-12 · {'x' * (TITLE_LENGTH - 1)}…"),
        (" \n", "2026-05-12"),
    ],
    ids=["short", "blanks", "ends at a word", "one long word", "nothing"],
)
def test_a_title_is_a_date_and_the_first_words(content: str, title: str) -> None:
    assert title_of(message(1, content, created_at=DAY)) == title


@given(st.text(max_size=400))
def test_a_title_is_one_short_line(content: str) -> None:
    title = title_of(message(1, content, created_at=DAY))
    assert len(title) <= len("2026-05-12 · ") + TITLE_LENGTH
    assert len(title.splitlines()) == 1
