"""Policies by the name of a preset, with a conversation's overrides; nothing branches on a preset's name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from app.domain.errors import FieldError, UnknownPresetError
from app.domain.policies.designs import DESIGNS, SEMANTIC, Preset
from app.domain.policies.policy import CompactionPolicy
from app.domain.policies.policy_errors import field_error, policy_invalid

PRESETS: Mapping[str, Preset] = {preset.name: preset for preset in DESIGNS}
DEFAULT_PRESET = SEMANTIC.name

SHORT_FORMS = ("background_at", "sync_at", "max_tokens", "keep_tail_messages", "keep_tail_turns")


_KEEPS = ("manual_keep", "keep_tail_messages", "keep_tail_turns")


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenDefaults:
    """An operator's own numbers for the presets that compact above a number of tokens; 0 stands for the preset's."""

    max_tokens: int = 0
    """As the short form: −1 for no automatic trigger."""
    keep_tail: int = 0
    """Messages that stay as they were."""

    def beneath(self, preset_name: str, overrides: Mapping[str, Any]) -> Mapping[str, Any]:
        """A conversation's overrides, with these numbers where it says nothing of the kind.

        Raises:
            UnknownPresetError: No such preset.
        """
        triggers = preset_named(preset_name).policy.triggers
        if "triggers" in overrides or all(trigger.at.tokens is None for trigger in triggers):
            return overrides
        numbers: dict[str, Any] = {}
        if self.max_tokens and not overrides.get("max_tokens"):
            numbers["max_tokens"] = self.max_tokens
        if self.keep_tail and not any(name in overrides for name in _KEEPS):
            numbers["keep_tail_messages"] = self.keep_tail
        return {**overrides, **numbers}


PRESETS_OWN = TokenDefaults()


def preset_named(name: str) -> Preset:
    """The preset of that name.

    Raises:
        UnknownPresetError: There is none; the error lists those there are.
    """
    preset = PRESETS.get(name)
    if preset is None:
        known = ", ".join(PRESETS)
        message = f"unknown preset {name!r}; known: {known}"
        raise UnknownPresetError(message, errors=[FieldError(field="preset", message=message)])
    return preset


def resolve(preset_name: str, overrides: Mapping[str, Any]) -> CompactionPolicy:
    """The preset's policy with a conversation's overrides, short forms resolved.

    Raises:
        UnknownPresetError: No such preset.
        PolicyInvalidError: A field is unknown or out of range, or the fields contradict each other.
    """
    values = preset_named(preset_name).policy.model_dump()
    short = {name: overrides[name] for name in SHORT_FORMS if name in overrides}
    values.update({name: value for name, value in overrides.items() if name not in short})
    try:
        return CompactionPolicy.model_validate(_with_short_forms(values, short))
    except ValidationError as error:
        raise policy_invalid(error, SHORT_FORMS) from None


def _with_short_forms(values: dict[str, Any], short: Mapping[str, Any]) -> dict[str, Any]:
    """Write the short forms into the triggers that they stand for."""
    if not isinstance(values.get("triggers"), list | tuple) or not all(isinstance(t, dict) for t in values["triggers"]):
        return values  # the model's own validation says what is wrong
    triggers = [dict(trigger) for trigger in values["triggers"]]
    if "background_at" in short:
        _set_threshold(triggers, "background", "stored", {"share": _number(short, "background_at")})
    if "sync_at" in short:
        _set_threshold(triggers, "sync", "before_call", {"share": _number(short, "sync_at")})
    triggers = _with_max_tokens(triggers, short)
    for form, kept in (("keep_tail_messages", "messages"), ("keep_tail_turns", "turns")):
        if form in short:
            amount = _number(short, form)
            triggers = [{**trigger, f"keep_{kept}": amount} for trigger in triggers]
            values = {**values, "manual_keep": {kept: amount}}
    return {**values, "triggers": triggers}


def _with_max_tokens(triggers: list[dict[str, Any]], short: Mapping[str, Any]) -> list[dict[str, Any]]:
    """−1 clears every automatic trigger, 0 or absent leaves the preset's, a number sets or adds one.

    A share beside the preset's own number stays, so that a number made for a large model holds for a small one.
    """
    limit = 0 if short.get("max_tokens") is None else short["max_tokens"]
    if not isinstance(limit, int) or isinstance(limit, bool) or limit < -1:
        raise field_error(
            "max_tokens", "a number of tokens, 0 for the preset's default, or -1 for no automatic trigger"
        )
    if limit == -1:
        return []
    if limit:
        _set_threshold(triggers, "max_tokens", "before_call", {**_share_beside_tokens(triggers), "tokens": limit})
    return triggers


def _share_beside_tokens(triggers: list[dict[str, Any]]) -> dict[str, Any]:
    at = next((trigger.get("at") for trigger in triggers if trigger.get("name") == "max_tokens"), None)
    return {"share": at["share"]} if isinstance(at, dict) and "share" in at and at.get("tokens") is not None else {}


def _set_threshold(triggers: list[dict[str, Any]], name: str, on: str, at: Mapping[str, Any]) -> None:
    for trigger in triggers:
        if trigger.get("name") == name:
            trigger["at"] = at
            return
    triggers.append({"name": name, "on": on, "at": at, "run": "background" if on == "stored" else "inline"})


def _number(short: Mapping[str, Any], form: str) -> Any:
    value = short[form]
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise field_error(form, "must be a number")
    return value
