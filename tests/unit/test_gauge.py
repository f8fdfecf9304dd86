"""The gauge: O(1) from the row, and the same numbers as the assembled context."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any, get_args

import pytest

from app.core.anchors.selection import ServedAnchors
from app.core.context.assembly import ContextInputs
from app.core.model.calibration import counted
from app.core.model.gauge import Breakdown, Gauge, GaugeStatus, breakdown_of, gauge_of
from app.core.model.policies.policy import CompactionPolicy
from app.core.model.policies.resolving import resolve
from app.core.model.schemas import SESSION
from app.core.state.layout import layout_of
from app.core.text.localization.catalogue import CATALOGUES
from app.usecases.history.appending import RANKS
from tests.builders import budgets, material, message, policy_of
from tests.corpus import assert_values, corpus
from tests.unit.test_anchors_selection import anchor
from tests.unit.test_assembly import STATE, put_together

POLICY = policy_of(context_window=4_000)


def test_state_and_anchors_are_told_apart_from_the_stored_layout_alone() -> None:
    served = ServedAnchors(shown=(anchor(2), anchor(4)), behind_marker=3)
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


@pytest.mark.parametrize("factor", [0.7, 1.0, 1.27])
def test_a_context_and_its_sections_count_what_the_provider_taught(factor: float) -> None:
    layout = layout_of(SESSION, STATE, served_as="pair", estimator="script", anchors=ServedAnchors(shown=(anchor(2),)))
    messages = [message(seq, f"message {seq}", policy=POLICY) for seq in range(1, 9)]
    source = material(messages, policy=POLICY, state=STATE, boundary=6)
    source = replace(source, conversation=replace(source.conversation, layout=layout, token_factor=factor))
    found = put_together(source)
    estimated = breakdown_of(source.conversation, "script", system=_system_of(source))
    tokens = counted(estimated.total, factor)

    assert found.estimated == estimated.total
    assert found.gauge == gauge_of(POLICY, source.budgets, estimated.scaled(tokens))
    assert sum(section.tokens for section in found.sections) == found.gauge.tokens == tokens
    parts = asdict(found.gauge.breakdown)
    assert {one.kind: one.tokens for one in found.sections} == {name: part for name, part in parts.items() if part}


@pytest.mark.parametrize("factor", [0.7, 1.0, 1.5])
def test_a_context_that_is_cut_fills_its_budget_as_the_provider_counts(factor: float) -> None:
    messages = [message(seq, f"message {seq} " + "and more of it " * 20, policy=POLICY) for seq in range(1, 99)]
    source = material(messages, policy=POLICY)
    source = replace(source, conversation=replace(source.conversation, token_factor=factor))
    found = put_together(source)

    assert found.truncated is not None
    assert 0.6 * source.budgets.budget < found.gauge.tokens <= source.budgets.budget


def _system_of(source: ContextInputs) -> int:
    neutral = replace(source, conversation=replace(source.conversation, token_factor=1.0))
    return put_together(neutral).gauge.breakdown.system


def test_without_a_layout_there_is_neither() -> None:
    source = material([message(1, "Hello", policy=POLICY)], policy=POLICY)
    breakdown = breakdown_of(source.conversation, "script", system=10)

    assert (breakdown.state, breakdown.anchors) == (0, 0)
    assert gauge_of(POLICY, source.budgets, breakdown).anchors_behind_marker == 0


def gauge_at(policy: CompactionPolicy, tokens: int) -> Gauge:
    return gauge_of(policy, budgets(policy), Breakdown(tail=tokens))


@pytest.mark.parametrize(
    ("tokens", "status"),
    [
        (0, "ok"),
        (749, "ok"),
        (750, "warning"),
        (899, "warning"),
        (900, "critical"),
        (1_000, "critical"),
        (1_001, "over"),
    ],
)
def test_where_turns_end_in_a_full_window_it_warns_first(tokens: int, status: str) -> None:
    """Window and budget are 1 000. The trigger before a call is critical too, since it has the same threshold."""
    policy = resolve("turn_end", {"context_window": 1_000})
    assert budgets(policy).window == budgets(policy).budget == 1_000
    assert gauge_at(policy, tokens).status == status


def test_critical_is_the_lowest_trigger_whatever_it_waits_for() -> None:
    """In the window of 3 600, 0.75 is 2 700, while 0.9 is 3 240 and thus above the budget of 3 060."""

    def status(text: dict[str, Any]) -> GaugeStatus:
        end = {
            "name": "completion" if text["moment"] == "completed" else "interrupted",
            "on": text["moment"],
            "at": {"window": 0.9},
            "run": "background",
        }
        policy = policy_of(context_window=4_000, triggers=[*text["triggers"], end])
        return gauge_at(policy, text["tokens"]).status

    assert_values(corpus("critical_gauges"), status)


def test_a_turns_end_that_counts_messages_warns_and_is_never_critical() -> None:
    by_number = {"name": "max_messages", "on": "completed", "at": {"messages": 30}, "run": "background"}
    policy = policy_of(context_window=4_000, triggers=[by_number])
    assert [gauge_at(policy, tokens).status for tokens in (2_699, 2_700, 3_060, 3_061)] == [
        "ok",
        "warning",
        "warning",
        "over",
    ]


@pytest.mark.parametrize(
    ("tokens", "status"),
    [(2_141, "ok"), (2_142, "background"), (2_600, "background"), (2_601, "sync"), (3_060, "sync"), (3_061, "over")],
)
def test_without_a_turns_end_nothing_warns(tokens: int, status: str) -> None:
    """The control: 0.75 of this window is 2 700."""
    assert gauge_at(POLICY, tokens).status == status


def test_every_status_has_a_rank_and_a_label() -> None:
    statuses = set(get_args(GaugeStatus))
    assert set(RANKS) == statuses
    assert all(RANKS["ok"] < RANKS[status] < RANKS["over"] for status in statuses - {"ok", "over"})
    assert RANKS["warning"] < RANKS["critical"]
    for catalogue in CATALOGUES.values():
        labels = {catalogue.word("gauge", status) for status in statuses}
        assert len(labels) == len(statuses)
        assert not labels & statuses
