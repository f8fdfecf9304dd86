"""Ids of segments: readable, unique, fit for a URL and for a marker."""

from __future__ import annotations

from urllib.parse import quote, unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.segments.markers import find, render
from app.domain.segments.naming import LONGEST_STEM, ids_for, is_id, stem_of
from app.domain.segments.values import RESERVED, Marker


@pytest.mark.parametrize(
    ("topic", "stem"),
    [
        ("Auth discussion", "auth_discussion"),
        ("reset email, two-factor authentication", "reset_email_two_factor"),
        ("the team's budget", "the_teams_budget"),
        ("Перенос базы данных, Postgres", "перенос_базы_данных_postgres"),
        ("航班, 东京", "航班_东京"),
        ("ＦＵＬＬ　Ｗidth", "full_width"),
        ("सुरक्षा नीति", "सुरक्षा_नीति"),
        ("İstanbul", "istanbul"),
        ("a/b?c#d [x →L1:y]", "a_b_c_d_x_l1_y"),
        ("__x__", "x"),
        ("", "segment"),
        ("123 – 456", "segment"),
        ("🎉🎉", "segment"),
        ("\u0301\u200b\ufe0f", "segment"),
    ],
)
def test_a_topic_gives_its_stem(topic: str, stem: str) -> None:
    assert stem_of(topic) == stem


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
    assert not (set(ids) & (RESERVED | taken))
    for topic, id_ in zip(topics, ids, strict=True):
        assert is_id(id_)
        assert id_ == id_.lower()
        assert id_.startswith(stem_of(topic))
        assert 0 < len(id_) <= LONGEST_STEM + 4
        assert unquote(quote(id_, safe="")) == id_
        marker = Marker(text=topic, level="L2", segment_id=id_)
        assert [found.segment_id for found in find(f"see [{render(marker)}] there")] == [id_]


@pytest.mark.parametrize("text", ["", "A", "a b", "a-b", "a/b", "x" * 65, "a]", "ﬁ", "\u0301a", "a\u200bb"])
def test_what_is_no_id(text: str) -> None:
    assert not is_id(text)
