"""The survival bench: what it counts, and that the selections that it compares with ours do what they claim."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.survival import Talk, at_random, folded, lexrank, measured, newest, survival, talks, values_of

TEXTS = [
    "Ann: I met Carla Bruns in Ghent on 4 May 2025, and we paid $120 for 3 lamps.",
    "Ben: That sounds lovely, I like lamps and I like Ghent as well.",
    "Ann: The reading is on Friday at 7 pm in the Old Mill.",
    "Ben: I like lamps a lot, and lamps like that are rare.",
] * 6


def told(texts: list[str]) -> Talk:
    messages = [{"role": ("user", "assistant")[place % 2], "content": text} for place, text in enumerate(texts)]
    return Talk(id="made-up", messages=tuple(messages))


def test_values_are_told_apart_without_the_services_own_detectors() -> None:
    values = values_of(TEXTS[:3])
    assert {"carla bruns", "ghent", "old mill"} <= values["names"]
    assert {"4 may 2025", "friday", "7 pm"} <= values["dates"]
    assert {"$120", "3"} <= values["numbers"]
    assert "ann" not in values["names"]


def test_a_value_survives_only_as_a_whole_word() -> None:
    values = {"numbers": {"3", "120"}, "names": {"ghent"}}
    assert survival(values, "We paid $120 in Ghent.").kept == {"names": 1, "numbers": 1}
    assert survival(values, "Room 13 has 1203 seats.").total == 0


@pytest.mark.parametrize("room", [0, 20, 60])
def test_selections_stay_within_the_room(room: int) -> None:
    for text in (newest(TEXTS, room), at_random(TEXTS, room, 1), lexrank(TEXTS, room)):
        assert survival({}, text).tokens <= room + 1
    assert newest(TEXTS, 30) == TEXTS[-1] or newest(TEXTS, 30).endswith(TEXTS[-1])
    assert "lamps" in lexrank(TEXTS, 30)


def test_ours_stays_within_the_share_and_beats_the_others() -> None:
    rare = [
        f"Ann: I like that a lot, and my days at the {'sea' if n % 2 else 'lake'} went well."
        if n % 9
        else f"Ann: I bought crate QX-{n}-7 from Dora Kuhn{chr(97 + n % 26)} for ${n}5."
        for n in range(1, 120)
    ]
    row = measured(told(rare), 0.2, seeds=3)
    assert row.ours.tokens <= row.room
    assert row.ours.total > max(row.newest.total, row.lexrank.total, *(one.total for one in row.random))


def test_nothing_is_held_and_everything_is_folded() -> None:
    replay, _ = folded(told(TEXTS), 0.3)
    assert replay.held() == []
    assert replay.boundary == len(TEXTS)


def test_without_the_data_there_is_nothing_to_measure(tmp_path: Path) -> None:
    assert talks(tmp_path / "none.jsonl") == []
