"""Corpora are well formed, a test judges each of them, and such a test fails when an answer changes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.corpus import FOLDER, Corpus, Row, assert_values, assert_verdicts, corpus, product_of

NAMES = sorted(path.stem for path in FOLDER.iterdir())
GREETINGS = Corpus(
    "greetings",
    (
        Row("hello", "Hello there", expected=True),
        Row("hi", "Hi!", expected=True),
        Row("house", "The hello house", expected=False),
        Row("bye", "Goodbye", expected=False),
    ),
)


def greets(text: str) -> bool:
    return text.startswith(("Hello", "Hi"))


def failure_of(judged: Corpus, judge: Any, **floors: Any) -> str:
    with pytest.raises(pytest.fail.Exception) as caught:
        assert_verdicts(judged, judge, **floors)
    return str(caught.value)


def test_every_corpus_is_judged_by_a_test() -> None:
    tests = "".join(path.read_text(encoding="utf-8") for path in Path(__file__).parent.glob("test_*.py"))
    assert NAMES
    assert [name for name in NAMES if f'corpus("{name}")' not in tests] == []


def test_every_row_is_new_to_its_corpus() -> None:
    """No text is in a corpus twice with the same answer; ids are checked when a corpus is read."""
    for name in NAMES:
        seen = [json.dumps([row.text, row.expected], sort_keys=True) for row in corpus(name).rows]
        assert len(seen) == len(set(seen)), name


def test_right_answers_pass() -> None:
    assert_verdicts(GREETINGS, greets)
    assert_values(GREETINGS, greets)


@pytest.mark.parametrize(
    ("judge", "measured", "changed"),
    [
        (lambda text: text.startswith("Hello"), "precision 1.000 (floor 1.000), recall 0.500 (floor 1.000)", ["hi"]),
        (lambda text: "ello" in text or "Hi" in text, "precision 0.667 (floor 1.000), recall 1.000", ["house"]),
        (lambda _: False, "precision 0.000 (floor 1.000), recall 0.000", ["hello", "hi"]),
        (lambda text: greets(text) and 1, "precision 0.000 (floor 1.000), recall 0.000", ["hello", "hi"]),
        (lambda text: {"Hi!": False}[text], "precision 0.000", ["hello", "hi", "house", "bye"]),
    ],
)
def test_control_a_wrong_answer_fails_and_its_row_is_named(judge: Any, measured: str, changed: list[str]) -> None:
    said = failure_of(GREETINGS, judge)
    assert said.startswith(f"greetings: 4 rows, {measured}")
    assert [row.id for row in GREETINGS.rows if f"\n  {row.id}: " in said] == changed


def test_control_a_wrong_answer_fails_though_the_floors_are_reached() -> None:
    said = failure_of(GREETINGS, lambda _: True, precision=0.5, recall=1.0)
    assert "precision 0.500 (floor 0.500), recall 1.000 (floor 1.000); 2 changed" in said


def test_a_row_that_is_known_to_be_wrong_counts_and_fails_only_when_its_answer_changes() -> None:
    known = Corpus("greetings", (*GREETINGS.rows, Row("hideous", "Hideous!", expected=False, known=True)))
    assert_verdicts(known, greets, precision=0.666)
    assert "; 0 changed, 1 known to be wrong" in failure_of(known, greets)
    better = failure_of(known, lambda text: greets(text) and text != "Hideous!", precision=0.666)
    assert "is right now, take `known` away" in better


def test_control_values_are_compared_as_they_are() -> None:
    numbers = product_of("numbers", [("a", "1", [1, 2]), ("b", "2", None)])
    assert_values(numbers, {"1": (1, 2), "2": None}.get)
    assert_values(numbers, {"1": {2, 1}, "2": None}.get)
    for answers in ({"1": [1], "2": None}, {"1": [2, 1], "2": None}, {"1": [1, 2], "2": 0}):
        with pytest.raises(pytest.fail.Exception, match=r"^numbers: 2 rows, right 0\.500"):
            assert_values(numbers, answers.get)


def test_a_corpus_of_one_verdict_or_with_an_id_twice_is_none() -> None:
    with pytest.raises(ValueError, match="texts for yes and texts for no"):
        assert_verdicts(product_of("one-sided", [("a", "x", True)]), bool)
    with pytest.raises(ValueError, match=r"twice: \['a'\]"):
        product_of("doubled", [("a", "x", True), ("a", "y", False)])
    with pytest.raises(ValueError, match="a corpus has rows"):
        product_of("empty", [])
