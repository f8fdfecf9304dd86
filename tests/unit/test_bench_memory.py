"""What ``bench.memory`` would show of objects that requests leave behind."""

from __future__ import annotations

from bench.memory import Counted, rows_of


class _LeftBehind:
    """An object that a request would leave behind."""


def test_objects_that_each_round_leaves_behind_are_shown_with_their_growth() -> None:
    found, kept = [], []
    for _ in range(3):
        kept += [_LeftBehind() for _ in range(2_000)]
        found.append(Counted())
    rows = {row[0]: row[1:] for row in rows_of(found, rounds=30)}
    assert rows[f"{__name__}._LeftBehind"] == ["2000", "4000", "6000", "200.00"]
    assert len(kept) == 6_000
