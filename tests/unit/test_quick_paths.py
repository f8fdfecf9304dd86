"""A quick path gives the same answer as the usual one."""

from __future__ import annotations

import re
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.anchors import replacement
from app.core.anchors.topics import technology_kinds_in, topic_of, without_label
from app.core.reading import passages
from app.core.retrieval import corpus
from app.core.text import identifiers, language, memo, pasted, sentences, token_counts, words
from app.core.text.patterns import compiled
from app.core.text.required_literals import PatternIndex, normalized

BLANKS = " \t\u00a0\u2003"
PIECES = st.text(alphabet=f"abя图.'{BLANKS}", min_size=1, max_size=7).map(normalized)
SAID = st.text(alphabet=f"abAяЯ图.’İ\n{BLANKS}", max_size=40)
ANY = st.text(alphabet=st.characters(max_codepoint=sys.maxunicode), max_size=30)
WEIGHED = st.lists(
    st.one_of(
        st.sampled_from(
            [" ", "  ", "\n", "ORD-10482,", "<b>", "</td>", "Ⱥ", "Ɔ", "Ⴀ", "ㄅ", "图", "7", "😀", "ΑΣ", "—"]
        ),
        ANY,
    ),
    max_size=12,
).map("".join)
WRITTEN = st.text(alphabet="ab1Я._(*>#`~<-•| \t\n\r\u2028\x0b", max_size=40)
STATEMENTS = st.builds(
    "{}{} {} {}{}".format,
    st.sampled_from(["", "Rule: ", " "]),
    st.sampled_from(["the branch", "The branch", "ßranch", "Sbranch", "порт", "our"]),
    st.sampled_from(["is", "is now", "=", "—", "was"]),
    st.sampled_from(["12", "€40", "fix/cache-2", "8080", "blue"]),
    st.sampled_from(["", ".", " in May"]),
)
VALUES = st.lists(
    st.one_of(
        st.sampled_from(
            ["Postgres", "Redis,", "New York", "March 5", "12 May", "(Dana)", "end.", "a/b.py", "x_y", "it’s"]
        ),
        st.sampled_from(
            ["€40", "3rd", "13th", "e2e", "f(x)", "Node.js", "ORD-1", "“We", "a@b.io", "`cache`", "–", "Я"]
        ),
        st.sampled_from(["I", "june", "may 5", "in 40 k", "xhttps://a.io", "?)", "\n"]),
        st.text(alphabet="aBé1.,'’€-:(@/ ", max_size=6),
    ),
    max_size=8,
).flatmap(lambda parts: st.sampled_from([" ", "", ". "]).map(lambda blank: blank.join(parts)))
SCAN = compiled(rf"(?<!\w)(?P<by_month>{identifiers._BY_MONTH})|{identifiers._MAY_BEGIN}(?:{identifiers._ANY})")
PROSE = compiled(language._NOT_PROSE.pattern.replace(rf"{language._PLAIN}|", ""), language._NOT_PROSE.flags)


@given(VALUES)
def test_what_is_passed_over_holds_no_value(text: str) -> None:
    quick, usual = (
        [(identifiers._KIND_OF[one.lastgroup], one.span()) for one in pattern.finditer(text) if one.lastgroup]
        for pattern in (identifiers._SCAN, SCAN)
    )
    assert quick == usual


@given(VALUES)
def test_words_are_the_same_beside_signs(text: str) -> None:
    assert list(words.words(text)) == words._words(unicodedata.normalize("NFC", text))


@given(VALUES)
def test_plain_words_are_prose(text: str) -> None:
    quick, usual = language._NOT_PROSE.sub(r"\1 ", text), PROSE.sub(" ", text)
    assert language._weigh(quick) == language._weigh(usual)


@given(VALUES)
def test_kinds_are_those_of_the_topic(text: str) -> None:
    assert technology_kinds_in(text) == topic_of(text).kinds


@given(st.lists(st.frozensets(PIECES, min_size=1, max_size=4), max_size=6), SAID)
def test_patterns_are_looked_up_word_by_word(needed: list[frozenset[str]], said: str) -> None:
    index = PatternIndex()
    bits = [index.add_needing(one) for one in needed]
    text = normalized(said)
    found = index.may_match(text)
    for bit, pieces in zip(bits, needed, strict=True):
        assert bit & found or not any(piece in text for piece in pieces)
        assert not bit & found or any("".join(piece.split()[:1]) in text for piece in pieces)


@given(WEIGHED)
def test_a_text_weighs_what_its_words_do(text: str) -> None:
    assert token_counts._hundredths_of_tokens(text) == token_counts._hundredths_of(text)


@given(st.text(alphabet=st.characters() | st.sampled_from("0123456789\ud800"), max_size=20))
def test_all_digits_become_the_same_and_nothing_else_does(text: str) -> None:
    assert memo.with_same_digits(text) == "".join("0" if sign in "123456789" else sign for sign in text)


@given(st.text(alphabet="abzXY.,:;!?'é0", max_size=12) | st.text(alphabet="ab", min_size=60, max_size=70))
def test_a_plain_word_weighs_what_its_letters_and_their_run_do(word: str) -> None:
    assert token_counts._hundredths_behind_blank(word) == token_counts._hundredths_of(f" {word}")


@given(st.from_regex(r"\A(?:[0-9]+([.,:][0-9]+)*|[a-z]{1,4}('[a-z]{1,3})?|(it|that|here)'s)\Z"))
def test_a_token_of_ascii_has_the_usual_word_and_stem(token: str) -> None:
    (word,) = words._words(token) or ("",)
    assert words._content_of_token(token) == word
    assert words._stem_of_token(token) == words.stem(word)


@given(st.text(alphabet="abT15.,:'_ -\n", max_size=30))
def test_tokens_of_ascii_are_the_usual_ones(text: str) -> None:
    assert words.ascii_tokens(text) == words._ASCII_TOKEN.findall(text.lower())


@given(st.text(alphabet="12ay_ .é", max_size=12))
def test_a_year_is_four_digits_alone(text: str) -> None:
    assert (corpus._YEAR.search(text) is None) == (re.search(r"\b\d{4}\b", text, re.ASCII) is None)


@pytest.mark.long
def test_words_weigh_apart_unless_their_runs_depend_on_what_stands_beside_them() -> None:
    together = [
        sign
        for sign in map(chr, range(sys.maxunicode + 1))
        for classes in [{token_counts.class_of(one) for one in sign.lower()}]
        if any(
            run.needs.isdisjoint(classes) and (run.pattern.search(2 * sign) or run.pattern.search(f" {sign}"))
            for run in token_counts._RUNS
        )
    ]
    assert together
    assert all(map(token_counts._NOT_SUM_OF_WORDS.search, together))


@given(WRITTEN)
def test_a_plain_line_was_not_pasted(content: str) -> None:
    assert pasted.pasted_and_own_text(content) == pasted._pasted_and_own_blocks(content)


@given(WRITTEN)
def test_the_last_words_are_two_at_most(text: str) -> None:
    before = f"{text}."[-41:]
    quick, whole = sentences._last_words(before), sentences._LAST_WORDS.search(before)
    assert (quick and quick.groups()) == (whole and whole.groups())


@given(WRITTEN)
def test_plain_text_has_no_markup(text: str) -> None:
    assert passages._without_markup(text) == passages._MARKUP.sub("", text)


@given(STATEMENTS, STATEMENTS)
def test_statements_of_one_form_begin_alike(new: str, old: str) -> None:
    (form, values), (known, before) = (replacement._stated_form_and_values(without_label(text)) for text in (new, old))
    said = form is not None and form == known and sum(map(str.__ne__, values, before)) == 1
    assert replacement.restates_with_new_value(new, old) == said
