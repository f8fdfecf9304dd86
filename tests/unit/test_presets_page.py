"""The page about presets says what the code says."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

from app.core.model.policies.policy import CompactionPolicy, Moment, Threshold, Trigger, TriggerName
from app.core.model.policies.resolving import PRESETS

HEADINGS = ("When to choose it", "When not to choose it", "What it does")
DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "presets.md").read_text(encoding="utf-8")


def test_every_preset_has_a_page_with_its_parts() -> None:
    shown = {path.stem: path.read_text(encoding="utf-8") for path in (DOCS / "presets").glob("*.md")}

    without = [name for name in PRESETS if name not in shown]
    assert not without, f"docs/presets/ has no page for {without}"
    assert shown.keys() == PRESETS.keys()
    for name, preset in PRESETS.items():
        assert shown[name].startswith(f"# `{name}`: {preset.title}\n\n{preset.description}\n"), name
        parts = dict(part.split("\n", 1) for part in shown[name].split("\n## ")[1:])
        missing = {*HEADINGS, "Its settings"} - parts.keys()
        assert not missing, f"docs/presets/{name}.md lacks the headings {missing}"
        told = [len(parts[part].split()) for part in HEADINGS]
        assert min(told) > 10, name
        assert f"the column `{name}` of [the presets" in parts["Its settings"], name


def test_the_overview_names_every_preset() -> None:
    rows = [
        f"| [`{item.name}`](presets/{item.name}.md) | {item.title} | {item.description} |" for item in PRESETS.values()
    ]

    missing = [row for row in rows if row not in PAGE]
    assert not missing, "docs/presets.md lacks these rows:\n" + "\n".join(missing)
    assert "\n".join(rows) in PAGE, "its rows stand in the order of the presets"


def test_every_field_is_explained() -> None:
    table = PAGE.split("## The fields")[1]

    assert [name for name in CompactionPolicy.model_fields if f"`{name}`" not in table] == []


def test_every_field_of_a_trigger_is_explained() -> None:
    table = PAGE.split("A trigger has")[1]
    words = [*Trigger.model_fields, *Threshold.model_fields, *get_args(Moment), *get_args(TriggerName)]

    assert [word for word in words if f"`{word}`" not in table] == []
