"""The published figures of the estimator's error, as far as they can be checked without the vocabulary; its bench."""

from __future__ import annotations

import inspect
import json
import re
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.text import token_counts as tokens
from app.core.text.token_counts import PRICE_NAMES, class_of, counts, estimate_text
from app.core.text.token_prices import LETTERS, PRICES
from bench.growth import exponent, talk
from bench.tokens import error, readers
from bench.tokens.corpus import LANGUAGES, Page
from bench.tokens.error import CLAIMED, errors
from bench.tokens.fitting import Shrinkage, fit
from bench.tokens.prices import FIXED, as_module
from bench.tokens.sources import SOURCES
from tests.profiles import examples
from tests.rows import each
from tests.unit.token_samples import SAMPLES

DOCS = Path(__file__).resolve().parent.parent.parent / "docs" / "tokens.md"


def off(kind: str) -> float:
    text, real = SAMPLES[kind]
    return estimate_text(text) / real - 1


@pytest.mark.case("28")
@each("kind", SAMPLES)
def test_every_kind_is_within_ten_percent_on_text_it_was_not_fitted_on(kind: str) -> None:
    assert abs(off(kind)) <= CLAIMED


@pytest.mark.parametrize("rule", ["characters / 4", "bytes / 4"])
def test_the_rules_of_thumb_are_not(rule: str) -> None:
    estimate = error.ESTIMATORS[rule]
    outside = [kind for kind, (text, real) in SAMPLES.items() if abs(estimate(text) / real - 1) > CLAIMED]
    assert len(outside) > len(SAMPLES) / 2


@pytest.mark.control("28")
def test_the_check_fails_for_prices_that_are_off(monkeypatch: pytest.MonkeyPatch) -> None:
    dear = {name: price * 1.25 for name, price in tokens.ALL_PRICES.items()}
    monkeypatch.setattr(tokens, "ALL_PRICES", dear)
    monkeypatch.setattr(tokens, "_HUNDREDTHS", {name: round(100 * price) for name, price in dear.items()})
    monkeypatch.setattr(tokens, "_script_tokens", inspect.unwrap(tokens._script_tokens))
    monkeypatch.setattr(tokens, "_hundredths_of_tokens", tokens._hundredths_of)
    assert all(off(kind) > CLAIMED for kind in SAMPLES)


def published() -> dict[str, float]:
    rows = re.findall(r"^\| ([^|]+?) +\| +\d+ \| +\d+ \| +([+-][\d.]+)% \|", DOCS.read_text(), flags=re.MULTILINE)
    return {kind: float(total) / 100 for kind, total in rows}


@pytest.mark.case("28")
def test_the_published_table_has_every_kind_within_what_is_claimed() -> None:
    table = published()
    named = {"English chat", "English prose", "markdown", "JSON", "mixed", "emoji-rich chat"}
    assert named | {"Russian", "Chinese", "Japanese", "Arabic", "code: python", "code: java"} <= table.keys()
    assert not {kind: total for kind, total in table.items() if abs(total) > CLAIMED}


def test_every_name_has_a_price_and_no_price_is_negative() -> None:
    assert set(PRICES) == PRICE_NAMES
    assert min(*PRICES.values(), *LETTERS) >= 0
    assert {name: PRICES[name] for name in FIXED} == dict(FIXED)


def test_a_letter_has_one_price() -> None:
    letters = "".join(LETTERS.values())
    assert len(letters) == len(set(letters))


@given(st.text())
def test_whatever_stands_in_a_text_has_a_price(text: str) -> None:
    assert counts(text).keys() <= tokens.ALL_PRICES.keys()


@given(st.text(), st.lists(st.text(min_size=1, max_size=1)))
def test_counting_apart_moves_characters_and_loses_none(text: str, apart: list[str]) -> None:
    plain, split = Counter(counts(text, ())), Counter(counts(text, frozenset(apart)))
    for letter in apart:
        split[class_of(letter)] += split.pop(letter, 0)
    assert +split == +plain


def test_no_source_is_on_both_sides_for_one_kind() -> None:
    sides: dict[tuple[str, str], set[str]] = {}
    for source in SOURCES:
        sides.setdefault((source.package.name, source.kind), set()).add(source.split)
    assert not [key for key, splits in sides.items() if len(splits) > 1]


@examples(0.3)
@given(st.lists(st.floats(0.05, 2), min_size=3, max_size=3))
def test_the_fit_finds_the_prices_that_made_the_counts(prices: list[float]) -> None:
    true = dict(zip("abc", prices, strict=True))
    rows = []
    for number in range(1, 25):
        amounts = {"a": number, "b": number * number % 17 + 1, "c": number % 5 + 1, "fixed": 2}
        total = sum(true.get(name, 0.5) * amount for name, amount in amounts.items())
        rows.append((1.0, {name: amount / total for name, amount in amounts.items()}))
    found = fit(rows, {"fixed": 0.5}, Shrinkage(towards={}, strength={}, otherwise=1e-9))
    assert found == pytest.approx({**true, "fixed": 0.5}, abs=0.08)


def test_what_fit_prints_is_python_that_says_the_same() -> None:
    letters = {"a": 0.1, '"': 0.2, "\\": 0.2, "\u0301": 0.2, "字": 0.3}
    made: dict[str, object] = {}
    exec(as_module({"digit": 1.0}, letters, ["digit", "unseen"]), made)  # noqa: S102 - our own output
    assert made["PRICES"] == {"digit": 1.0, "unseen": 1.0}
    assert made["LETTERS"] == {0.1: "a", 0.2: '"\\\u0301', 0.3: "字"}


def test_errors_of_known_counts() -> None:
    pages = [Page("held", "x", "x", "abcd" * 10, 10), Page("held", "x", "x", "abcd" * 10, 20)]
    found = errors(pages)["characters / 4"]
    assert found.total == pytest.approx(20 / 30 - 1)
    assert found.median == pytest.approx(-0.25)


def test_readers_give_running_text() -> None:
    head = 'msgid ""\nmsgstr ""\n"Language: de\\n"\n\n'
    po = head + 'msgid "Long"\nmsgstr ""\n"Ein ziemlich langer Satz, der über "\n"zwei Zeilen geht."\n'
    assert list(readers.catalogue(po)) == ["Ein ziemlich langer Satz, der über zwei Zeilen geht."]
    assert list(readers.markup("<body><h1>A&amp;B</h1>\n<script>no()</script><p>text</p></body>")) == ["A&B\ntext"]
    assert list(readers.dialogue("categories:\n- x\nconversations:\n- - Hi\n  - Hello, you.\n")) == [
        "Hi",
        "Hello, you.",
    ]
    assert list(readers.strings("text")('{"text": "yes", "id": "no", "rows": [{"text": ["a"]}]}')) == ["yes", "a"]
    assert [json.loads(row) for row in readers.data('[{"a": 1}, {"a": 2}]')] == [{"a": 1}, {"a": 2}]


def test_no_code_names_two_languages() -> None:
    codes = " ".join(LANGUAGES.values()).split()
    assert len(codes) == len(set(codes))


def test_growth_knows_linear_from_quadratic() -> None:
    sizes = [100, 200, 400]
    assert exponent(sizes, [1.0, 2.0, 4.0]) == pytest.approx(1)
    assert exponent(sizes, [1.0, 4.0, 16.0]) == pytest.approx(2)


def test_a_longer_talk_begins_with_the_shorter_one() -> None:
    assert talk(40)[:20] == talk(20)
