"""A version of a preset that conversations may have never changes: the file beside this one says what each version is.

``python -m tests.unit.test_preset_versions`` adds to the file what the code has more: versions, presets, fields.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from app.core.model.policies.policy import CompactionPolicy
from app.core.model.policies.resolving import PRESETS, resolve
from tests.builders import changed_preset, replaced_preset

Json = dict[str, Any]

FILE: Final = Path(__file__).parents[1] / "fixtures" / "preset_policies.json"
DEFAULTS: Final[Json] = CompactionPolicy().model_dump(mode="json")
WHAT_TO_DO: Final = """
Conversations that exist would silently be compacted in another way. Leave this version as it was: copy its policy into
`earlier` of the preset in app/core/model/policies/presets.py, raise its `version`, and run
`python -m tests.unit.test_preset_versions` (CONTRIBUTING.md, "Change a preset").
"""
WHAT_TO_ADD: Final = (
    "run `python -m tests.unit.test_preset_versions`: the code has versions or fields that the file lacks"
)


def of_code() -> Json:
    """The resolved policy of each version of each preset."""
    return {
        name: {str(version): resolve(name, {}, version).model_dump(mode="json") for version in sorted(preset.policies)}
        for name, preset in PRESETS.items()
    }


def of_file() -> Json:
    found: Json = json.loads(FILE.read_text(encoding="utf-8"))
    return found


def differences(known: Any, now: Any, place: str) -> Iterator[str]:
    """Where what is known is no longer so; what the code has besides is no difference."""
    if isinstance(known, dict) and isinstance(now, dict):
        for name, value in known.items():
            yield from differences(value, now.get(name, "nothing"), f"{place} {name}".lstrip())
    elif isinstance(known, list) and isinstance(now, list) and len(known) == len(now):
        for number, (one, other) in enumerate(zip(known, now, strict=True)):
            yield from differences(one, other, f"{place} {number}")
    elif known != now:
        yield f"{place}: was {known}, is {now}"


def changes(known: Json, now: Json) -> list[str]:
    """What is different for existing conversations, also where a version has more than the default of a new field."""
    fields = (
        (f"{name} {version} {field}", DEFAULTS[field], value)
        for name, versions in known.items()
        for version, policy in versions.items()
        for field, value in now.get(name, {}).get(version, {}).items()
        if field not in policy
    )
    added = [found for place, default, value in fields for found in differences(default, value, place)]
    return [*differences(known, now, ""), *added]


def completed(known: Any, now: Any) -> Any:
    """What is known, with what the code has besides."""
    if isinstance(known, dict) and isinstance(now, dict):
        kept = {name: completed(value, now[name]) if name in now else value for name, value in known.items()}
        return kept | {name: value for name, value in now.items() if name not in known}
    if isinstance(known, list) and isinstance(now, list) and len(known) == len(now):
        return [completed(one, other) for one, other in zip(known, now, strict=True)]
    return known


def test_no_version_of_a_preset_changes() -> None:
    known, now = of_file(), of_code()
    found = changes(known, now)
    assert not found, "\n".join([*found, WHAT_TO_DO])
    assert completed(known, now) == known, WHAT_TO_ADD


def test_versions_are_numbered_without_gaps() -> None:
    for name, preset in PRESETS.items():
        assert sorted([*preset.earlier, preset.version]) == list(range(1, preset.version + 1)), name


def test_control_a_change_without_a_new_version_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    shipped = PRESETS["semantic"]
    policy = shipped.policy.model_copy(update={"target": 0.5})
    replaced_preset(monkeypatch, replace(shipped, policy=policy))
    assert changes(of_file(), of_code()) == [f"semantic {shipped.version} target: was 0.6, is 0.5"]


def test_control_a_version_that_is_not_kept_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    shipped = PRESETS["semantic"]
    replaced_preset(monkeypatch, replace(shipped, version=shipped.version + 1))
    (found,) = changes(of_file(), of_code())
    assert found.startswith(f"semantic {shipped.version}: was {{")


def test_control_a_new_version_changes_nothing_and_is_added(monkeypatch: pytest.MonkeyPatch) -> None:
    version = changed_preset(monkeypatch, "semantic", target=0.5).version
    known, now = of_file(), of_code()
    assert changes(known, now) == []
    written = completed(known, now)
    assert written != known
    assert [written["semantic"][str(number)]["target"] for number in (version - 1, version)] == [0.6, 0.5]


@pytest.mark.parametrize(
    ("preset", "field", "found"),
    [("handoff", "state_tokens", ["handoff 1 state_tokens: was 800, is 2000"]), ("semantic", "state_tokens", [])],
)
def test_control_a_field_that_is_new_keeps_its_default_in_the_versions_that_exist(
    preset: str, field: str, found: list[str]
) -> None:
    known = {preset: of_file()[preset]}
    for policy in known[preset].values():
        del policy[field]
    now = of_code()
    assert changes(known, now) == found
    assert completed(known, now)[preset] == now[preset]


def write() -> None:
    """Add to the file; never change what it has."""
    known, now = of_file() if FILE.exists() else {}, of_code()
    if found := changes(known, now):
        raise SystemExit("\n".join([*found, WHAT_TO_DO]))
    FILE.write_text(json.dumps(completed(known, now), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write()
