"""What a text must contain for a pattern to fit: never too much, and enough to be useful."""

from __future__ import annotations

import re
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.text import required_literals
from app.core.text.languages.loading import languages
from app.core.text.required_literals import PatternIndex, alternatives, normalized, pieces
from tests.corpus import assert_values, corpus

LETTERS = "abi"
ATOMS = st.sampled_from(
    ["a", "b", "i", "ab", "'", "’", r"\b", ".", "[ab]", "[^a]", r"\w", r"\.", "(?!a)", "(?<=b)", "^", "$"]
)
PATTERNS = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map("".join),
        st.lists(inner, min_size=2, max_size=3).map(lambda some: f"(?:{'|'.join(some)})"),
        st.tuples(inner, st.sampled_from(["?", "*", "+", "{2}", "{0,2}", "{1,3}?"])).map(
            lambda given: f"(?:{given[0]}){given[1]}"
        ),
    ),
    max_leaves=8,
)
TEXTS = st.text(alphabet=f"{LETTERS}ABIİıſ.'’", max_size=12)


def rules_out(pattern: str, text: str) -> bool:
    needed = pieces(pattern)
    return needed is not None and not any(piece in normalized(text) for piece in needed)


def test_what_a_pattern_needs() -> None:
    def needed(pattern: str) -> AbstractSet[str] | None:
        assert re.compile(pattern)
        return pieces(pattern)

    assert_values(corpus("pattern_factors"), needed)


def test_alternatives_meet_outside_all_brackets() -> None:
    assert [part for part, _ in alternatives(r"a|b(?:c|d)[|]|\|e|")] == ["a", "b(?:c|d)[|]", r"\|e", ""]


def test_a_pattern_may_come_when_texts_were_looked_at_already() -> None:
    index = PatternIndex()
    early = index.add("harbour")
    assert index.may_match_text("The Harbour isn’t far, 不对.") == early
    late, short, bare = index.add("isn't"), index.add("不对"), index.add("far away")
    assert index.may_match_text("The Harbour isn’t far, 不对.") == early | late | short
    assert index.may_match_text("Far away") == bare


@given(PATTERNS, TEXTS)
def test_no_text_that_a_pattern_fits_is_ruled_out(pattern: str, text: str) -> None:
    if re.search(pattern, text, re.IGNORECASE):
        assert not rules_out(pattern, text)


@given(st.lists(PATTERNS, min_size=1, max_size=3).map("|".join), TEXTS)
def test_a_pattern_fits_where_an_alternative_does(pattern: str, text: str) -> None:
    parts = [re.search(part, text, re.IGNORECASE) for part, _ in alternatives(pattern)]
    assert any(parts) == (re.search(pattern, text, re.IGNORECASE) is not None)


def test_control_a_look_ahead_read_as_text_rules_out_what_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    pattern, text = r"(?!needed)free", "free"
    assert not rules_out(pattern, text)
    monkeypatch.setattr(required_literals, "_GROUP", re.compile(r"\?(?:(?P<around>never)|(?P<inside>:|<?[=!]))"))
    assert rules_out(pattern, text)


def test_the_tables_are_ruled_out_by_most_texts() -> None:
    """Almost every pattern needs something; one that needs nothing is tried on every sentence."""
    tables = [language.anchors.model_dump() for language in languages() if language.anchors is not None]
    patterns = [part for table in tables for pattern in strings(table) for part, _ in alternatives(pattern)]
    assert len(tables) > 1
    idle = [part for part in patterns if not rules_out(part, "The gulls sat there.")]
    assert len(idle) < len(patterns) / 50


def strings(given: Any) -> Iterator[str]:
    """Every pattern of a table."""
    if isinstance(given, str):
        yield given
    elif isinstance(given, tuple):
        yield from given
    elif given is not None:
        for key, inner in given.items():
            if key != "opening":
                yield from strings(inner)
