"""The gauge: O(1) from the row, and the same numbers as the assembled context."""

from __future__ import annotations

from dataclasses import replace

from app.domain.anchors.serving import Served
from app.domain.assembling.layout import layout_of
from app.domain.schemas import SESSION
from app.domain.weighing.gauge import breakdown_of, gauge_of
from tests.builders import material, message, policy_of
from tests.unit.test_anchors_serving import anchor
from tests.unit.test_assembly import STATE, put_together

POLICY = policy_of(context_window=4_000)


def test_state_and_anchors_are_told_apart_from_the_stored_layout_alone() -> None:
    served = Served(shown=(anchor(2), anchor(4)), behind_marker=3)
    layout = layout_of(SESSION, STATE, served_as="pair", estimator="script", anchors=served)
    messages = [message(seq, f"message {seq}", policy=POLICY) for seq in range(1, 9)]
    source = material(messages, policy=POLICY, state=STATE, boundary=6)
    source = replace(source, conversation=replace(source.conversation, layout=layout))
    found = put_together(source)
    breakdown = breakdown_of(source.conversation, "script", system=found.gauge.breakdown.system)

    assert breakdown == found.gauge.breakdown
    assert (breakdown.state, breakdown.anchors) == (layout.tokens - layout.anchor_tokens, layout.anchor_tokens)
    assert breakdown.anchors > 0
    assert found.gauge.anchors_behind_marker == 3
    assert gauge_of(POLICY, source.budgets, breakdown, anchors_behind_marker=3) == found.gauge
    assert breakdown.total == found.gauge.tokens


def test_without_a_layout_there_is_neither() -> None:
    source = material([message(1, "Hello", policy=POLICY)], policy=POLICY)
    breakdown = breakdown_of(source.conversation, "script", system=10)

    assert (breakdown.state, breakdown.anchors) == (0, 0)
    assert gauge_of(POLICY, source.budgets, breakdown).anchors_behind_marker == 0
