"""A short campaign of faults, played by its own bench; every property holds (docs/reliability.md)."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.chaos.plan import plan
from bench.chaos.report import print_outcome
from bench.chaos.running import run

pytestmark = [pytest.mark.long]

SEED = 17


@pytest.mark.parametrize(
    ("minutes", "faults"), [(0.5, 8), pytest.param(5, 50, marks=pytest.mark.case("34-clocks", "35-disk"))]
)
def test_a_campaign_breaks_nothing(
    minutes: float, faults: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bench.chaos.running.FOLDER", tmp_path)
    outcome = run(SEED, minutes, plan(SEED, minutes, faults), print)
    print_outcome(outcome)
    assert outcome.violations == []
    assert len(outcome.campaign.log.said) > 10 * minutes, "the clients were at work"
