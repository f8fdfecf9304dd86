"""The page about presets says what the code says."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import get_args

from app.domain.policies.policy import CompactionPolicy, Moment, Threshold, Trigger, TriggerName
from app.domain.policies.presets import PRESETS

PAGE = (Path(__file__).parents[2] / "docs" / "presets.md").read_text(encoding="utf-8")


def test_every_preset_stands_there_with_its_policy() -> None:
    found = re.findall(r"^## `(\w+)`: (.+)\n\n(.+)\n\n```json\n(.+?)\n```", PAGE, flags=re.MULTILINE | re.DOTALL)
    shown = {name: (title, description, json.loads(policy)) for name, title, description, policy in found}

    assert shown == {
        preset.name: (preset.title, preset.description, preset.policy.model_dump(mode="json"))
        for preset in PRESETS.values()
    }


def test_every_field_is_explained() -> None:
    table = PAGE.split("## The fields")[1]

    assert [name for name in CompactionPolicy.model_fields if f"`{name}`" not in table] == []


def test_every_field_of_a_trigger_is_explained() -> None:
    table = PAGE.split("A trigger has")[1]
    words = [*Trigger.model_fields, *Threshold.model_fields, *get_args(Moment), *get_args(TriggerName)]

    assert [word for word in words if f"`{word}`" not in table] == []
