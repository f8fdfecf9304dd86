"""The plan of a campaign: the same for the same seed, every kind in it, no two faults of one target at once."""

from __future__ import annotations

import itertools

from bench.chaos.faults import MISBEHAVIOUR
from bench.chaos.plan import MODEL, SHAPES, faults_of, plan
from tests.gemini_faults import BEHAVIOURS
from tests.rows import each


def test_the_same_seed_gives_the_same_faults_and_another_one_others() -> None:
    assert plan(7, 5, 50) == plan(7, 5, 50)
    assert plan(7, 5, 50) != plan(8, 5, 50)
    assert faults_of(5) == 50


@each("seed", range(20))
def test_every_kind_comes_and_no_target_has_two_at_once(seed: int) -> None:
    faults = plan(seed, 2, 2 * len(SHAPES))
    assert {fault.kind for fault in faults} == set(SHAPES)
    assert [fault.at for fault in faults] == sorted(fault.at for fault in faults)
    assert all(0 < fault.at < 180 for fault in faults)
    for target in {fault.target for fault in faults}:
        mine = [fault for fault in faults if fault.target == target]
        assert all(one.ends <= two.at for one, two in itertools.pairwise(mine))


def test_the_scripted_model_knows_every_misbehaviour() -> None:
    variants = [variant.split(":") for kind in MISBEHAVIOUR for variant in SHAPES[kind].variants]
    assert all(kind in {"chat", "compaction"} and name in BEHAVIOURS for kind, name in variants)
    assert all(tuple(SHAPES[kind].targets) == (MODEL,) for kind in MISBEHAVIOUR)
