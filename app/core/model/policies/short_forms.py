"""Short forms: fields of a conversation's policy that stand for parts of its triggers."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from app.core.model.policies.policy_errors import field_error

SHORT_FORMS: Final = ("background_at", "sync_at", "max_tokens", "keep_tail_messages", "keep_tail_turns")

_TRIGGERS: Final = {"background": "background_at", "sync": "sync_at", "max_tokens": "max_tokens"}
"""The short form of the threshold of a trigger, by the trigger's name."""
_MOMENTS: Final = {"background": "stored", "sync": "before_call"}
THRESHOLDS: Final = tuple(_TRIGGERS[name] for name in _MOMENTS)
"""Short forms that set a trigger's share of the budget, or add the trigger."""
_KEEPS: Final = {"messages": "keep_tail_messages", "turns": "keep_tail_turns"}
"""The short forms for what all triggers and a manual compaction keep, by the name of what is counted."""


def expanded(values: dict[str, Any], short: Mapping[str, Any]) -> dict[str, Any]:
    """A policy's values with the short forms written into the triggers that they stand for.

    Raises:
        PolicyInvalidError: A short form is not a number.
    """
    if not isinstance(values.get("triggers"), list | tuple) or not all(isinstance(t, dict) for t in values["triggers"]):
        return values  # the validation of the policy reports what is wrong
    triggers = [dict(trigger) for trigger in values["triggers"]]
    for name, moment in _MOMENTS.items():
        triggers = _with_short_form(triggers, name, moment, short)
    triggers = _with_max_tokens(triggers, short)
    kept = {name: _checked_number(short, form) for name, form in _KEEPS.items() if form in short}
    triggers = [{**trigger, **{f"keep_{name}": amount for name, amount in kept.items()}} for trigger in triggers]
    return {**values, "triggers": triggers} | ({"manual_keep": kept} if kept else {})


def switched_off(overrides: Mapping[str, Any]) -> list[str]:
    """The short forms that switch their trigger off: those that are ``None``."""
    return [form for form in THRESHOLDS if form in overrides and overrides[form] is None]


def short_form_of(path: Sequence[str | int], triggers: Sequence[str], sent: Collection[str]) -> str | None:
    """The short form by which a client set the field at this place of a policy; ``None`` if by no short form.

    Args:
        path: The steps to the field, such as ``("triggers", 0, "at", "share")``.
        triggers: The names of the policy's triggers, in their order.
        sent: The fields that the client sent.
    """
    match tuple(path):
        case ("triggers", int(index), "at", *_):
            form = _TRIGGERS.get(triggers[index])
        case ("triggers", int(), str(keep)):
            form = _KEEPS.get(keep.removeprefix("keep_"))
        case ("manual_keep", str(kept)):
            form = _KEEPS.get(kept)
        case _:
            return None
    return form if form in sent else None


def _with_short_form(
    triggers: list[dict[str, Any]], name: str, moment: str, short: Mapping[str, Any]
) -> list[dict[str, Any]]:
    form = _TRIGGERS[name]
    if form not in short:
        return triggers
    if short[form] is None:
        return [trigger for trigger in triggers if trigger.get("name") != name]
    return _with_threshold(triggers, name, moment, {"share": _checked_number(short, form)})


def _with_max_tokens(triggers: list[dict[str, Any]], short: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The triggers with ``max_tokens`` applied: −1 removes every automatic one, 0 or none changes nothing.

    Another number sets or adds a trigger. A share that the preset has beside its own number is kept, so that a number
    made for a large model also holds for a small one.
    """
    limit = 0 if short.get("max_tokens") is None else short["max_tokens"]
    if not isinstance(limit, int) or isinstance(limit, bool) or limit < -1:
        raise field_error(
            "max_tokens", "a number of tokens, 0 for the preset's default, or -1 for no automatic trigger"
        )
    if limit == -1:
        return []
    if limit:
        at = {**_share_beside_tokens(triggers), "tokens": limit}
        return _with_threshold(triggers, "max_tokens", "before_call", at)
    return triggers


def _share_beside_tokens(triggers: list[dict[str, Any]]) -> dict[str, Any]:
    at = next((trigger.get("at") for trigger in triggers if trigger.get("name") == "max_tokens"), None)
    return {"share": at["share"]} if isinstance(at, dict) and "share" in at and at.get("tokens") is not None else {}


def _with_threshold(
    triggers: list[dict[str, Any]], name: str, moment: str, at: Mapping[str, Any]
) -> list[dict[str, Any]]:
    if any(trigger.get("name") == name for trigger in triggers):
        return [{**trigger, "at": at} if trigger.get("name") == name else trigger for trigger in triggers]
    run = "background" if moment == "stored" else "inline"
    return [*triggers, {"name": name, "on": moment, "at": at, "run": run}]


def _checked_number(short: Mapping[str, Any], form: str) -> Any:
    value = short[form]
    if isinstance(value, bool) or not isinstance(value, int | float):
        can_be_off = form in THRESHOLDS
        raise field_error(form, "must be a number, or null for no such trigger" if can_be_off else "must be a number")
    return value
