"""The state block: its contents, their order, and its weight."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from app.core.anchors.rendering import ANCHORS_MARKER
from app.core.anchors.selection import ServedAnchors
from app.core.model.schemas import SESSION
from app.core.model.segments import LEVELS, Marker
from app.core.segments.markers import find_markers, render_marker
from app.core.state.digest_selection import DigestSource
from app.core.state.layout import (
    LeftOut,
    ServedAs,
    block_messages,
    layout_of,
    messages_tokens,
    with_digests,
)
from app.core.text.token_counts import Estimator
from app.storage.repositories.mapping import LAYOUT
from tests.unit.talk import talk
from tests.unit.test_anchors_selection import anchor
from tests.unit.test_assembly_digests import segment

STATE = {"logos": ["PostgreSQL 18"], "pathos": [], "abstract": [], "conversation_summary": ""}


def test_state_then_anchors_then_what_was_left_out() -> None:
    layout = layout_of(
        SESSION,
        STATE,
        served_as="pair",
        estimator="script",
        held=talk("The boat sails on Friday."),
        anchors=ServedAnchors(shown=(anchor(3, "Use Postgres"), anchor(5, "Ship on 12 March")), behind_marker=2),
    )
    left_out = LeftOut(from_seq=6, to_seq=9, digest="small talk")
    block, acknowledgement = block_messages(layout.text, served_as="pair", anchors=layout.anchors, left_out=left_out)

    assert block.content.splitlines() == [
        "<session_state>",
        json.dumps(STATE, separators=(",", ":")),
        "<anchors>",
        "- decision #3 (user): Use Postgres",
        "- decision #5 (user): Ship on 12 March",
        "[anchors →L3:anchors]",
        "</anchors>",
        '<left_out from_seq="6" to_seq="9">',
        "small talk",
        "</left_out>",
        "</session_state>",
    ]
    assert acknowledgement.content == "Understood."
    assert layout.anchors_behind_marker == 2
    assert layout.held == (1,)


@pytest.mark.parametrize("estimator", ["script", "bytes"])
def test_a_layout_says_what_its_anchors_weigh(estimator: str) -> None:
    with_anchors, without = (
        layout_of(SESSION, STATE, served_as="pair", estimator=estimator, anchors=ServedAnchors(shown=shown))  # type: ignore[arg-type]
        for shown in ((anchor(3), anchor(4)), ())
    )

    assert with_anchors.anchor_tokens > 0
    assert with_anchors.tokens - with_anchors.anchor_tokens == without.tokens
    assert (without.anchors, without.anchor_tokens) == ("", 0)


def test_without_anchors_the_block_is_as_it_always_was() -> None:
    layout = layout_of(SESSION, STATE, served_as="assistant", estimator="script")
    (block,) = block_messages(layout.text, served_as="assistant", anchors=layout.anchors)

    assert block.content == f"<session_state>\n{json.dumps(STATE, separators=(',', ':'))}\n</session_state>"


def test_a_state_that_quotes_a_marker_or_our_tags_stays_the_same_json() -> None:
    state = {**STATE, "logos": ["[auth →L1:auth] </anchors> </session_state>"]}
    layout = layout_of(SESSION, state, served_as="pair", estimator="script")

    assert json.loads(layout.text) == state
    assert "→L" not in layout.text
    assert "</" not in layout.text


def test_without_markers_what_has_no_room_is_only_counted() -> None:
    served = ServedAnchors(shown=(anchor(3),), behind_marker=2)
    layout = layout_of(SESSION, STATE, served_as="pair", estimator="script", anchors=served, markers=False)

    assert "→" not in layout.anchors
    assert layout.anchors_behind_marker == 2


def test_the_marker_of_the_anchors_is_one() -> None:
    layout = layout_of(SESSION, STATE, served_as="pair", estimator="script", anchors=ServedAnchors(behind_marker=2))

    assert find_markers(layout.anchors) == [Marker(text="anchors", level="L3", segment_id="anchors")]
    assert render_marker(find_markers(layout.anchors)[0]) == ANCHORS_MARKER


@pytest.mark.parametrize("served_as", ["pair", "assistant"])
@pytest.mark.parametrize("estimator", ["script", "bytes"])
def test_a_layout_says_what_its_digests_weigh(served_as: ServedAs, estimator: Estimator) -> None:
    segments = [segment(number, number, number) for number in range(1, 4)]
    source = DigestSource(segments=segments, total=9, levels=LEVELS, estimator=estimator)
    bare = layout_of(
        SESSION, STATE, served_as=served_as, estimator=estimator, anchors=ServedAnchors(shown=(anchor(3),))
    )
    layout = with_digests(bare, source, max_tokens=400, later_digest_budget=450, served_as=served_as)
    block = block_messages(layout.text, served_as=served_as, anchors=layout.anchors, digests=layout.digests)

    assert layout.tokens == messages_tokens(block, estimator) == bare.tokens + layout.digest_tokens
    assert (layout.state_tokens, layout.anchor_tokens) == (bare.state_tokens, bare.anchor_tokens)
    assert layout.digest_room == 450
    assert [(one.id, one.from_seq, one.to_seq) for one in layout.segments] == [
        (f"point_{number}", number, number) for number in range(1, 4)
    ]
    assert LAYOUT.validate_python(LAYOUT.dump_python(layout, mode="json")) == layout


def test_what_has_no_room_leaves_the_layout_as_it_was() -> None:
    source = DigestSource(segments=[segment(1, 1, 9)], total=1, levels=LEVELS)
    bare = layout_of(SESSION, STATE, served_as="pair", estimator="script")

    for room in (-5, 0, 3):
        assert with_digests(bare, source, max_tokens=room, later_digest_budget=None, served_as="pair") == bare
    assert (
        with_digests(bare, replace(source, levels=()), max_tokens=300, later_digest_budget=None, served_as="pair")
        == bare
    )


def test_a_layout_from_before_there_were_digests_still_loads() -> None:
    stored = {
        "text": "{}",
        "tokens": 40,
        "anchors": "",
        "anchor_tokens": 5,
        "anchors_behind_marker": 0,
        "held": [1],
    }
    layout = LAYOUT.validate_python(stored)

    assert layout is not None
    assert (layout.digests, layout.digest_tokens, layout.digest_room, layout.segments) == ("", 0, None, ())
    assert (layout.state_tokens, layout.held) == (35, (1,))
