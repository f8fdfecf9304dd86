"""Policies by the name of a preset, with a conversation's overrides; nothing branches on a preset's name."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from pydantic import BaseModel, ValidationError

from app.core.model.errors import UnknownPresetError
from app.core.model.policies.policy import CompactionPolicy
from app.core.model.policies.policy_errors import policy_invalid
from app.core.model.policies.presets import SEMANTIC, SHIPPED_PRESETS, Preset
from app.core.model.policies.short_forms import SHORT_FORMS, expanded, short_form_of

PRESETS: Mapping[str, Preset] = {preset.name: preset for preset in SHIPPED_PRESETS}
DEFAULT_PRESET = SEMANTIC.name


def preset_named(name: str) -> Preset:
    """The preset of that name.

    Raises:
        UnknownPresetError: There is no such preset; the error lists the presets.
    """
    preset = PRESETS.get(name)
    if preset is None:
        known = ", ".join(PRESETS)
        raise UnknownPresetError.of("preset", f"unknown preset {name!r}; known: {known}")
    return preset


def resolve(preset_name: str, overrides: Mapping[str, Any], version: int | None = None) -> CompactionPolicy:
    """The policy of a version of the preset with a conversation's overrides, short forms resolved.

    If the version is unknown or ``None``, it is the policy of the present version.

    Raises:
        UnknownPresetError: No such preset.
        PolicyInvalidError: A field is unknown or out of range, or the fields contradict each other.
    """
    # Results are kept: most conversations have one of a few policies, and each request needs its policy several times.
    known = preset_named(preset_name).known_version(version)
    return _resolved_policy(preset_name, known, json.dumps(dict(overrides), default=BaseModel.model_dump))


@lru_cache(maxsize=256)
def _resolved_policy(preset_name: str, version: int, written_overrides: str) -> CompactionPolicy:
    overrides = json.loads(written_overrides)
    values = preset_named(preset_name).policies[version].model_dump()
    short = {name: overrides[name] for name in SHORT_FORMS if name in overrides}
    values.update({name: value for name, value in overrides.items() if name not in short})
    written = expanded(values, short)
    try:
        return CompactionPolicy.model_validate(written)
    except ValidationError as error:
        raise policy_invalid(error, SHORT_FORMS, lambda place: _short_form_at(place, written, short)) from None


def _short_form_at(place: Sequence[str | int], written: Mapping[str, Any], short: Mapping[str, Any]) -> str | None:
    triggers = written.get("triggers")
    items = triggers if isinstance(triggers, list | tuple) else ()
    names = [str(item.get("name")) if isinstance(item, dict) else "" for item in items]
    return short_form_of(place, names, short)
