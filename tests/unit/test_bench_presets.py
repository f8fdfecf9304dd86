"""The side-by-side bench: every preset is replayed with its own triggers, and what counts as kept is served."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from app.core.model.policies.resolving import PRESETS
from bench import presets
from bench.replay import Replay


def test_every_preset_stands_in_the_table_and_on_the_page() -> None:
    table = presets.PAGE.read_text(encoding="utf-8").partition("<!-- bench:presets -->")[2]
    shown = table.partition("<!-- /bench:presets -->")[0]
    missing = [name for name in PRESETS if f"| `{name}` |" not in shown]
    assert not missing, f"docs/presets.md has no figures of {missing}: see 'Add a preset' in CONTRIBUTING.md"


@pytest.mark.long
@pytest.mark.daily(1)
@pytest.mark.parametrize(
    "preset",
    ["handoff", pytest.param("semantic", marks=pytest.mark.long), pytest.param("turn_end", marks=pytest.mark.long)],
)
def test_a_generated_talk_is_folded_and_most_of_its_opening_is_kept(preset: str, tmp_path: Path) -> None:
    named, lines = presets.lines_of(tmp_path / "none.jsonl", 0)
    assert (named, len(lines)) == ("a generated talk", 400)
    row = presets.replayed(preset, lines[:240], 4_000)
    assert row.compactions >= 1
    assert row.refused == 0
    assert row.tokens_after < row.tokens_before
    assert 0 < row.values_kept < 1
    assert row.served_last <= 4_000


@pytest.mark.long
def test_control_what_is_forgotten_is_not_counted_as_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    _, lines = presets.lines_of(tmp_path / "none.jsonl", 0)
    honest = presets.replayed("semantic", lines[:200], 4_000)
    monkeypatch.setattr(Replay, "block", lambda self: "")
    assert presets.replayed("semantic", lines[:200], 4_000).values_kept < 0.6 * honest.values_kept


def test_the_page_gets_no_figures_of_another_talk(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        presets.main(["--data", str(tmp_path / "none.jsonl"), "--write"])
    assert "name its file with --data" in capsys.readouterr().err


@pytest.mark.long
def test_the_command_writes_its_figures(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(presets, "_GENERATED", 60)
    presets.main(["--data", str(tmp_path / "none.jsonl"), "--window", "4000"])
    written = json.loads((tmp_path / ".data" / "bench" / "presets.json").read_text())
    assert [row["preset"] for row in written["rows"]] == list(PRESETS)
