"""Sheets for readers of offline states, and the count of what they say."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from bench.summary_readers import agreement, chosen_narratives, kept_shares, sheet_of

STATES = {
    "before": {"entries": ["Ana: I moved to Basel.", "Ana: Ha ha."], "narrative": "About Basel."},
    "today": {"entries": ["Ana: I moved to Basel.", "Ana: The lease ends in May."], "narrative": "Ana moved to Basel."},
}


def _folder(tmp_path: Path, **said: dict[str, Any]) -> Path:
    sheet = sheet_of(STATES, random.Random(1))
    key = {"talk": {"entries": [versions for _, versions in sheet.entries], "narratives": sheet.narratives}}
    (tmp_path / "key.json").write_text(json.dumps(key), encoding="utf-8")
    for reader, told in said.items():
        (tmp_path / f"talk.{reader}.json").write_text(json.dumps(told), encoding="utf-8")
    return tmp_path


def _number(text: str) -> int:
    entries = [entry for entry, _ in sheet_of(STATES, random.Random(1)).entries]
    return entries.index(text) + 1


def test_an_entry_of_both_states_stands_on_the_sheet_once_and_counts_for_both(tmp_path: Path) -> None:
    folder = _folder(tmp_path, one={"keep": [_number("Ana: I moved to Basel.")], "narrative": "neither"})
    assert len(sheet_of(STATES, random.Random(1)).entries) == 3
    assert kept_shares(folder) == {("talk", "one", "before"): (1, 2), ("talk", "one", "today"): (1, 2)}


def test_each_version_gets_what_was_kept_of_it(tmp_path: Path) -> None:
    kept = [_number("Ana: I moved to Basel."), _number("Ana: The lease ends in May.")]
    shares = kept_shares(_folder(tmp_path, one={"keep": kept, "narrative": "A"}))
    assert shares["talk", "one", "today"] == (2, 2)
    assert shares["talk", "one", "before"] == (1, 2)


def test_a_chosen_letter_is_the_version_whose_narrative_stands_there(tmp_path: Path) -> None:
    narratives = sheet_of(STATES, random.Random(1)).narratives
    folder = _folder(tmp_path, one={"keep": [], "narrative": "A"}, two={"keep": [], "narrative": "neither"})
    assert chosen_narratives(folder) == {("talk", "one"): narratives["A"], ("talk", "two"): "neither"}


def test_readers_who_agree_have_a_higher_kappa_than_readers_who_do_not(tmp_path: Path) -> None:
    same = agreement(_folder(tmp_path, one={"keep": [1], "narrative": "A"}, two={"keep": [1], "narrative": "A"}))
    other = agreement(_folder(tmp_path, one={"keep": [1], "narrative": "A"}, two={"keep": [2, 3], "narrative": "A"}))
    assert same is not None
    assert other is not None
    assert same == 1 > other


def test_a_number_that_is_on_no_line_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no such entry"):
        kept_shares(_folder(tmp_path, one={"keep": [4], "narrative": "A"}))
