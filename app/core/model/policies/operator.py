"""An operator's own numbers for presets: they replace those of a preset; a conversation's policy replaces them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from app.core.model.errors import FieldError, PolicyInvalidError
from app.core.model.policies.policy import CompactionPolicy
from app.core.model.policies.presets import Preset
from app.core.model.policies.resolving import PRESETS, preset_named, resolve
from app.core.model.policies.short_forms import SHORT_FORMS, THRESHOLDS

_KEEPS: Final = ("manual_keep", "keep_tail_messages", "keep_tail_turns")
_ALL: Final = "*"


@dataclass(frozen=True, slots=True)
class OperatorNumbers:
    """Overrides of policies, by the name of the preset and its version."""

    by_preset: Mapping[str, Mapping[int, Mapping[str, Any]]] = field(default_factory=dict)

    def completed_overrides(
        self, preset_name: str, overrides: Mapping[str, Any], version: int | None = None
    ) -> Mapping[str, Any]:
        """A conversation's overrides, completed with these numbers for fields that it does not set.

        ``version`` is that of the preset, as for ``resolve``.

        Raises:
            UnknownPresetError: No such preset.
        """
        known = preset_named(preset_name).known_version(version)
        numbers = dict(self.by_preset.get(preset_name, {}).get(known, {}))
        if "triggers" in overrides:
            _drop(numbers, ("triggers", *SHORT_FORMS))
        elif numbers.get("max_tokens") == -1 and any(overrides.get(name) is not None for name in THRESHOLDS):
            # Clear the preset's own triggers, but keep those that the conversation adds.
            numbers = {**numbers, "max_tokens": 0, "triggers": []}
        if any(name in overrides for name in _KEEPS):
            _drop(numbers, _KEEPS)
        if numbers.get("max_tokens") and not overrides.get("max_tokens"):
            overrides = {name: value for name, value in overrides.items() if name != "max_tokens"}
        return {**numbers, **overrides}


NO_OPERATOR_NUMBERS: Final = OperatorNumbers()


def operator_numbers(
    given: Mapping[str, Mapping[str, Any]], *, max_tokens: int = 0, keep_tail: int = 0
) -> OperatorNumbers:
    """What an operator set, checked for every version of every preset.

    Args:
        given: By preset, fields of its policy, or numbers under the names that its design has for them.
        max_tokens: The trigger in tokens, for all presets that have one; −1: no automatic compaction; 0: their own.
        keep_tail: How many messages these presets keep as they were; 0: their own number.

    Raises:
        UnknownPresetError: There is no preset of such a name.
        PolicyInvalidError: A field is unknown or out of range, or the fields contradict each other.
    """
    common = {name: value for name, value in (("max_tokens", max_tokens), ("keep_tail_messages", keep_tail)) if value}
    numbers: dict[str, dict[int, Mapping[str, Any]]] = {}
    for preset in (preset_named(name) for name in dict.fromkeys((*given, *PRESETS))):
        own = given.get(preset.name, {})
        for version, policy in preset.policies.items():
            values = _with_policy_field_names(preset, policy, own)
            if any(trigger.at.tokens is not None for trigger in policy.triggers):
                values = common | values
            if values:
                _check_operator_numbers(preset, version, values, _operator_names_by_field(preset, own))
                numbers.setdefault(preset.name, {})[version] = values
    return OperatorNumbers(numbers)


def _check_operator_numbers(
    preset: Preset, version: int, numbers: Mapping[str, Any], called: Mapping[str, str]
) -> None:
    """Raise ``PolicyInvalidError`` for numbers that cannot hold, under the names that the operator used."""
    try:
        resolve(preset.name, numbers, version)
    except PolicyInvalidError as error:
        where = "" if version == preset.version else f" (in version {version}, which older conversations have)"
        by_field = {one.field.removeprefix("policy."): one.message for one in error.errors}
        message_of_field = {
            f"presets.{preset.name}.{called.get(field, field)}": f"{message}{where}"
            for field, message in by_field.items()
        }
        errors = [FieldError(field=field, message=message) for field, message in message_of_field.items()]
        raise PolicyInvalidError("; ".join(f"{one.field}: {one.message}" for one in errors), errors=errors) from None


def _operator_names_by_field(preset: Preset, given: Mapping[str, Any]) -> dict[str, str]:
    names, given_names = preset.own_names, {name.lower(): name for name in given}
    return {place: given_names[name] for name, places in names.items() if name in given_names for place in places}


def _with_policy_field_names(preset: Preset, policy: CompactionPolicy, given: Mapping[str, Any]) -> dict[str, Any]:
    """The given numbers as fields of a policy. In the names of designs, case is ignored."""
    names = preset.own_names
    given = {lowered if (lowered := name.lower()) in names else name: value for name, value in given.items()}
    values = {name: value for name, value in given.items() if name not in names}
    triggers = [trigger.model_dump() for trigger in policy.triggers]
    for name, places in names.items():
        if name not in given:
            continue
        for place in places:
            head, *steps = place.split(".")
            if not steps:
                values.setdefault(head, given[name])
                continue
            if "triggers" in given:
                raise _given_twice_error(preset.name, name)
            values["triggers"] = _set_in_triggers(triggers, steps, given[name])
    return values


def _set_in_triggers(triggers: list[dict[str, Any]], steps: list[str], value: Any) -> list[dict[str, Any]]:
    which, *path, last = steps
    for trigger in triggers:
        if which in {_ALL, trigger["name"]}:
            place = trigger
            for step in path:
                place = place[step]
            place[last] = value
    return triggers


def _given_twice_error(preset_name: str, name: str) -> PolicyInvalidError:
    message = f"{name} is a number of the triggers, which presets.{preset_name} sets itself: give one of the two"
    return PolicyInvalidError.of(f"presets.{preset_name}.{name}", message)


def _drop(values: dict[str, Any], names: tuple[str, ...]) -> None:
    for name in names:
        values.pop(name, None)
