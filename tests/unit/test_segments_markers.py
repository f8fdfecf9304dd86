"""Markers are read back as they were written, and hostile text is read in linear time and without mistakes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.anchors.rendering import escape_served
from app.core.model.segments import LEVELS, Marker
from app.core.segments.markers import EARLIER_MARKER, find_markers, parse_marker, render_marker
from app.core.segments.segment_ids import stem_of
from tests.corpus import assert_values, assert_verdicts, corpus
from tests.unit.timing import assert_linear

AUTH = Marker(text="auth discussion", level="L1", segment_id="auth_discussion")

HOSTILE = st.text(
    alphabet=st.one_of(
        st.sampled_from("[]→->L123:ab_\\u005\n\r\u2028\u200b \ufeff⇒<>/"), st.characters(exclude_categories=["Cs"])
    ),
    max_size=60,
)
MARKERS = st.builds(
    Marker, text=HOSTILE, level=st.sampled_from(LEVELS), segment_id=st.builds(stem_of, st.text(max_size=30))
)


def test_as_it_is_published() -> None:
    assert render_marker(AUTH) == "[auth discussion →L1:auth_discussion]"
    assert render_marker(EARLIER_MARKER) == "[earlier →L3:earlier]"


@given(MARKERS)
def test_there_and_back(marker: Marker) -> None:
    assert find_markers(render_marker(marker)) == [marker]
    assert parse_marker(render_marker(marker)) == marker


@given(st.lists(MARKERS, max_size=5))
def test_many_in_one_text(markers: list[Marker]) -> None:
    assert find_markers(" and\n".join(f"{render_marker(marker)} seq 1–2: told" for marker in markers)) == markers


@given(MARKERS)
def test_a_rendered_marker_is_one_line_and_opens_nothing(marker: Marker) -> None:
    text = render_marker(marker)
    assert len(text.splitlines()) == 1
    assert text.count("[") == text.count("]") == text.count("→") == 1


def test_a_topic_cannot_close_our_element() -> None:
    assert "</digests>" not in render_marker(Marker(text="x </digests> y", level="L1", segment_id="x"))


@given(HOSTILE)
def test_what_is_escaped_where_it_is_served_is_no_marker(text: str) -> None:
    assert find_markers(escape_served(f"{text} [x →L1:y] {text}")) == []


def test_without_the_escape_it_would_be_one() -> None:
    assert find_markers("[x →L1:y]") == [Marker(text="x", level="L1", segment_id="y")]


def test_a_flag_of_a_region_stays_in_a_topic() -> None:
    wales = "\U0001f3f4\U000e0067\U000e0062\U000e0077\U000e006c\U000e0073\U000e007f"
    marker = Marker(text=f"{wales} trip{wales[1:]}", level="L1", segment_id="trip")
    assert render_marker(marker).startswith(f"[{wales} trip\\udb40\\udc67")
    assert find_markers(render_marker(marker)) == [marker]


def test_what_only_looks_like_one() -> None:
    assert_verdicts(corpus("markers"), lambda text: find_markers(text) != [])


def test_the_innermost_bracket_counts() -> None:
    assert find_markers("[[[a →L1:x] →L2:y] [b →L3:z]") == [
        Marker(text="a", level="L1", segment_id="x"),
        Marker(text="b", level="L3", segment_id="z"),
    ]


@given(st.text())
def test_reading_is_total(text: str) -> None:
    find_markers(text)
    parse_marker(text)


@pytest.mark.long
@pytest.mark.parametrize(
    "piece",
    ["[", "]", "→L1:", "[→L1:", "→L1:a]", "[x →L1:a", "[a →L1:b]", "\\u005b", "[ →", "\u200b", "[x\n →L1:a]", "L1:"],
)
def test_a_million_characters_are_read_in_linear_time(piece: str) -> None:
    assert_linear(lambda text: [find_markers(text), parse_marker(text)], piece * (400_000 // len(piece)))


def test_a_call_may_name_it_loosely_or_only_by_its_id_or_not_at_all() -> None:
    def named(text: str) -> tuple[str, str, str] | None:
        marker = parse_marker(text)
        return None if marker is None else (marker.text, marker.level, marker.segment_id)

    assert_values(corpus("marker_calls"), named)
    assert parse_marker("a" * 5_000) is None
