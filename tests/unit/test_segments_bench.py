"""The bench of cutting: its two measures, and that topics do better than chance on talks with known borders."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import segments
from bench.recall_talks import Talk
from bench.segments import evenly, found_share, pk, table, window_diff

SEAMS = frozenset({4, 8})
NAMES = ("harbour", "bakery", "violin")


def made(subject: str) -> Talk:
    things = [f"{subject}{thing}" for thing in ("wall", "door", "lamp", "roof", "clock")]
    return Talk(
        id=subject,
        messages=tuple(
            {
                "role": "user" if number % 2 else "assistant",
                "content": f"Ann: {', '.join(things[(number + step) % 5] for step in range(4))} and so on.",
            }
            for number in range(60)
        ),
        questions=(),
    )


def test_the_truth_is_never_wrong() -> None:
    assert pk(SEAMS, SEAMS, 12) == window_diff(SEAMS, SEAMS, 12) == 0.0
    assert found_share(SEAMS, SEAMS) == 1.0


def test_a_miss_and_a_surplus_are_wrong() -> None:
    assert pk(SEAMS, frozenset(), 12) > 0.3
    assert window_diff(SEAMS, frozenset(range(1, 12)), 12) > pk(SEAMS, SEAMS, 12)
    assert window_diff(SEAMS, SEAMS | {5}, 12) > 0.0
    assert found_share(SEAMS, frozenset({5})) == 0.5
    assert found_share(SEAMS, frozenset({6})) == 0.0


def test_even_cuts_are_as_many_as_there_are_seams() -> None:
    assert evenly([], 0) == frozenset()
    assert len(evenly([None] * 100, 9)) == 9  # type: ignore[list-item]


def test_topics_beat_chance() -> None:
    rows = {name: (wrong, found) for name, wrong, _, found, _ in table([made(name) for name in NAMES], mixtures=3)}
    wrong, found = rows["by topic"]
    assert wrong < 0.15
    assert found > 0.6
    assert all(2 * wrong < rows[name][0] for name in ("evenly", "at random", "nowhere"))


def test_without_the_data_it_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    segments.main(tmp_path / "none.jsonl")
    assert "No conversations" in capsys.readouterr().out
