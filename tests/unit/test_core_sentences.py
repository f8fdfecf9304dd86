"""The one splitter of sentences: examples, places, and hostile texts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.text.sentences import sentence_spans, sentences
from tests.corpus import assert_values, corpus
from tests.unit.timing import assert_linear


def test_sentences() -> None:
    assert_values(corpus("sentences"), lambda text: [*sentences(text)])
    assert_values(corpus("core_sentences"), lambda text: [*sentences(text)])


@pytest.mark.parametrize("degrees", ["50°F", "20 °C", "20 ° C"])
def test_a_sentence_may_end_with_degrees(degrees: str) -> None:
    assert sentences(f"It stays under {degrees}. Always tell Anna.") == (
        f"It stays under {degrees}.",
        "Always tell Anna.",
    )


def test_control_a_letter_that_is_no_degree_is_an_initial() -> None:
    assert sentences("It stays with F. Always.") == ("It stays with F. Always.",)


@pytest.mark.parametrize(
    "text",
    [
        'The user wrote: "We pay 900 euros tomorrow." (said 5 January 2026).',
        "Clara schrieb: „Kommst du morgen?“ (gesagt am 5. Januar 2026)",
        "Она сказала: «Приду завтра.» (сказано 5 января 2026)",
        "他说：「我们明天付款。」（说于2026年1月5日）。",
    ],
)
def test_the_day_on_which_something_was_said_belongs_to_it(text: str) -> None:
    assert sentences(f"{text} The boat is red.") == (text, "The boat is red.")


def test_control_other_brackets_after_a_sentence_are_apart() -> None:
    assert sentences('He wrote: "We pay." (He did.)') == ('He wrote: "We pay."', "(He did.)")


def test_code_fences_stay_whole() -> None:
    code = "```py\nx = 1. + 2\nprint(x)\n```"
    assert [*sentences(f"Look. See:\n{code}\nDone. Fine.")] == ["Look.", "See:", code, "Done.", "Fine."]
    assert sentences("Open:\n```\na. b. c")[-1] == "```\na. b. c"


def test_a_long_line_goes_on_in_the_next_and_its_place_is_in_the_text() -> None:
    first = "This line was wrapped by a mail program at some fixed column and"
    text = f"{first}\n  goes on here. New one."
    assert [*sentences(text)] == [f"{first} goes on here.", "New one."]
    assert [text[start:end] for start, end in sentence_spans(text)] == [f"{first}\n  goes on here.", "New one."]


@given(st.text())
def test_sentences_lose_no_visible_sign(text: str) -> None:
    kept = "".join("".join(sentences(text)).split())
    lost = [sign for sign in "".join(text.split()) if sign.isalnum()]
    assert [sign for sign in kept if sign.isalnum()] == lost


@given(st.text())
def test_spans_are_in_order_and_hold_no_blank_ends(text: str) -> None:
    last = 0
    for start, end in sentence_spans(text):
        assert last <= start < end <= len(text)
        assert text[start:end] == text[start:end].strip()
        last = end


HOSTILE = ["a", "A", "Aa ", "1", "1. ", "a. ", ". ", ".", "…", "?!", "```", "```\n", "。", "\n",
"| ", "- ", "a\n", "z.B. ",
           "\x00", "\ud800", "а.", "\x1c", "\u2028", " "]  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("unit", HOSTILE)
def test_linear_time_on_hostile_text(unit: str) -> None:
    assert_linear(sentences, unit * (80_000 // len(unit)))
