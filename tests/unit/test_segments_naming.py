"""Ids of segments are readable, unique, and fit for a URL and a marker."""

from __future__ import annotations

from urllib.parse import quote, unquote

from hypothesis import given
from hypothesis import strategies as st

from app.core.model.segments import RESERVED_IDS, Marker
from app.core.segments.markers import find_markers, render_marker
from app.core.segments.segment_ids import MAX_STEM_LENGTH, ids_for, is_id, stem_of
from tests.corpus import assert_values, assert_verdicts, corpus


def test_a_topic_gives_its_stem() -> None:
    assert_values(corpus("segment_stems"), stem_of)


def test_ids_are_numbered_where_they_are_taken() -> None:
    taken = {"auth", "auth_2"}
    assert ids_for(["auth", "Auth!", "tax", "tax"], taken) == ["auth_3", "auth_4", "tax", "tax_2"]
    assert ids_for(["x 2", "x", "x"], ()) == ["x_2", "x", "x_3"]


def test_reserved_words_are_nobodys() -> None:
    assert ids_for(["Earlier", "anchors"], ()) == ["earlier_2", "anchors_2"]


def test_no_topics() -> None:
    assert ids_for([], ()) == []


TOPICS = st.lists(
    st.one_of(st.text(max_size=80), st.sampled_from(["a", "A", "a 2", "earlier", "", "日本"])), max_size=12
)


@given(TOPICS, st.frozensets(st.sampled_from(["a", "a_2", "segment", "日本"])))
def test_ids_stand_anywhere_and_are_one_each(topics: list[str], taken: frozenset[str]) -> None:
    ids = ids_for(topics, taken)
    assert ids == ids_for(topics, taken)
    assert len(ids) == len(topics) == len(set(ids))
    assert not (set(ids) & (RESERVED_IDS | taken))
    for topic, id_ in zip(topics, ids, strict=True):
        assert is_id(id_)
        assert id_ == id_.lower()
        assert id_.startswith(stem_of(topic))
        assert 0 < len(id_) <= MAX_STEM_LENGTH + 4
        assert unquote(quote(id_, safe="")) == id_
        marker = Marker(text=topic, level="L2", segment_id=id_)
        assert [found.segment_id for found in find_markers(f"see [{render_marker(marker)}] there")] == [id_]


def test_what_is_an_id() -> None:
    assert_verdicts(corpus("segment_ids"), is_id)
