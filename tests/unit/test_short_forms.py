"""Short forms: null switches a trigger off, and an error names the form that the client sent."""

from __future__ import annotations

from typing import Any

import pytest

from app.core.model.errors import PolicyInvalidError
from app.core.model.policies.budgets import budgets_of
from app.core.model.policies.contradictions import contradictions, without_triggers
from app.core.model.policies.resolving import PRESETS, resolve
from tests.rows import each

TRIGGERS = [{"name": "sync", "on": "before_call", "at": {"share": 0.8}, "run": "inline"}]


def found(overrides: dict[str, Any], preset: str = "semantic") -> list[str]:
    """The fields that an error about these overrides names."""
    try:
        policy = resolve(preset, overrides)
    except PolicyInvalidError as error:
        return [item.field.removeprefix("policy.") for item in error.errors]
    wrong = contradictions(policy, budgets_of(policy, 8_000), 100, overrides)
    return [item.field.removeprefix("policy.") for item in (*wrong, *without_triggers(policy, overrides))]


@each(
    ("preset", "overrides", "fields"),
    [
        ("semantic", {"background_at": 1.5}, ["background_at"]),
        ("semantic", {"background_at": 0}, ["background_at"]),
        ("semantic", {"sync_at": -1}, ["sync_at"]),
        ("semantic", {"background_at": 2, "sync_at": 3}, ["background_at", "sync_at"]),
        ("semantic", {"sync_at": "high"}, ["sync_at"]),
        ("semantic", {"keep_tail_messages": -1}, ["keep_tail_messages"]),
        ("semantic", {"keep_tail_messages": 1.5}, ["keep_tail_messages"]),
        ("semantic", {"keep_tail_turns": 100_000}, ["keep_tail_turns"]),
        ("handoff", {"max_tokens": -2}, ["max_tokens"]),
        ("semantic", {"background_at": 0.5}, ["background_at", "target"]),
        ("semantic", {"max_tokens": 1_000}, ["max_tokens", "target"]),
        ("semantic", {"background_at": 0.5, "sync_at": 0.4}, ["background_at", "target", "sync_at", "target"]),
        ("turn_end", {"sync_at": 0.01}, ["sync_at"]),
        ("handoff", {"max_tokens": 200}, ["max_tokens"]),
        ("semantic", {"background_at": 0.7, "target": 0.9}, ["background_at", "target", "target"]),
        ("semantic", {"target": 0.9}, ["target", "target"]),
    ],
)
def test_an_error_names_what_was_sent(preset: str, overrides: dict[str, Any], fields: list[str]) -> None:
    assert found(overrides, preset) == fields


@pytest.mark.parametrize(
    ("overrides", "fields"),
    [
        ({"triggers": [TRIGGERS[0] | {"at": {"share": 1.5}}]}, ["triggers.0.at.share"]),
        ({"triggers": [TRIGGERS[0] | {"keep_messages": -1}]}, ["triggers.0.keep_messages"]),
        ({"manual_keep": {"messages": -1}}, ["manual_keep.messages"]),
        ({"triggers": [TRIGGERS[0] | {"at": {"share": 0.3}}]}, ["target"]),
        ({"keep_tail_turns": 1, "triggers": [TRIGGERS[0] | {"keep_messages": -1}]}, ["triggers.0.keep_messages"]),
        ({"sync_at": 0.8, "triggers": [{"name": "later"}]}, ["triggers.0.name"]),
    ],
)
def test_control_a_long_form_is_named_as_it_was_sent(overrides: dict[str, Any], fields: list[str]) -> None:
    assert found(overrides)[: len(fields)] == fields


def test_a_message_says_what_to_do_with_the_short_form() -> None:
    overrides = {"background_at": 0.5}
    policy = resolve("semantic", overrides)
    wrong, same = contradictions(policy, budgets_of(policy, 8_000), 100, overrides)
    assert same.message in wrong.message
    assert wrong.message.endswith("raise background_at, or lower target")


@pytest.mark.parametrize("preset", sorted(PRESETS))
@pytest.mark.parametrize(("form", "name"), [("background_at", "background"), ("sync_at", "sync")])
def test_null_takes_one_trigger_away_and_no_other(preset: str, form: str, name: str) -> None:
    before, after = (resolve(preset, overrides).triggers for overrides in ({}, {form: None}))
    assert after == tuple(trigger for trigger in before if trigger.name != name)


def test_null_beside_triggers_of_ones_own() -> None:
    assert resolve("semantic", {"triggers": TRIGGERS, "sync_at": None}).triggers == ()


@pytest.mark.parametrize(
    ("preset", "overrides", "fields"),
    [
        ("semantic", {"background_at": None, "sync_at": None, "on_failure": "keep_full"}, ["background_at", "sync_at"]),
        ("handoff", {"sync_at": None, "max_tokens": -1}, ["sync_at"]),
        ("semantic", {"background_at": None, "sync_at": None}, []),
        ("semantic", {"background_at": None, "on_failure": "keep_full"}, []),
        ("handoff", {"sync_at": None}, []),
        ("handoff", {"max_tokens": -1}, []),
        ("semantic", {"max_tokens": -1, "on_failure": "keep_full"}, []),
    ],
)
def test_the_last_trigger_stays_where_everything_is_kept(
    preset: str, overrides: dict[str, Any], fields: list[str]
) -> None:
    wrong = without_triggers(resolve(preset, overrides), overrides)
    assert [item.field for item in wrong] == [f"policy.{field}" for field in fields]
