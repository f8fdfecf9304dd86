"""The state block: what stands in it, in which order, and what it weighs."""

from __future__ import annotations

import json

import pytest

from app.domain.anchors.serving import Served
from app.domain.assembling.layout import LeftOut, block_messages, layout_of
from app.domain.schemas import SESSION
from tests.unit.test_anchors_serving import anchor

STATE = {"logos": ["PostgreSQL 18"], "pathos": [], "abstract": [], "conversation_summary": ""}


def test_state_then_anchors_then_what_was_left_out() -> None:
    layout = layout_of(
        SESSION,
        STATE,
        served_as="pair",
        estimator="script",
        held=[1],
        anchors=Served(shown=(anchor(3), anchor(5, "Ship on 12 March")), behind_marker=2),
    )
    left_out = LeftOut(from_seq=6, to_seq=9, digest="small talk")
    block, acknowledgement = block_messages(layout.text, served_as="pair", anchors=layout.anchors, left_out=left_out)

    assert block.content.splitlines() == [
        "<session_state>",
        json.dumps(STATE, separators=(",", ":")),
        "<anchors>",
        "- decision #3: Use Postgres",
        "- decision #5: Ship on 12 March",
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
        layout_of(SESSION, STATE, served_as="pair", estimator=estimator, anchors=Served(shown=shown))  # type: ignore[arg-type]
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
