"""An operator's own numbers for the presets."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from app.core.model.errors import PolicyInvalidError
from app.core.model.policies.operator import OperatorNumbers, operator_numbers
from app.core.model.policies.policy import CompactionPolicy
from app.core.model.policies.resolving import PRESETS, resolve
from app.settings import Settings
from tests.builders import changed_preset, replaced_preset
from tests.corpus import assert_values, corpus

OWN = operator_numbers({}, max_tokens=50_000, keep_tail=5)


def resolved(preset: str, overrides: dict[str, Any], defaults: OperatorNumbers = OWN) -> CompactionPolicy:
    return resolve(preset, defaults.completed_overrides(preset, overrides))


def numbers(policy: CompactionPolicy) -> list[tuple[int | None, float | None, int]]:
    return [(trigger.at.tokens, trigger.at.share, trigger.keep_messages) for trigger in policy.triggers]


def test_they_take_the_place_of_the_presets() -> None:
    policy = resolved("handoff", {})
    assert numbers(policy) == [(50_000, 0.85, 5)]
    assert policy.manual_keep.messages == 5


def test_without_them_the_presets_own_hold() -> None:
    assert resolved("handoff", {}, operator_numbers({})) == PRESETS["handoff"].policy
    assert numbers(PRESETS["handoff"].policy) == [(80_000, 0.85, 20)]


def test_minus_one_switches_automatic_compaction_off_and_leaves_the_manual_one() -> None:
    policy = resolved("handoff", {}, operator_numbers({}, max_tokens=-1, keep_tail=7))
    assert policy.triggers == ()
    assert policy.manual_keep.messages == 7


@pytest.mark.parametrize(
    ("own", "shares"),
    [
        ({"sync_at": 0.8}, [0.8]),
        ({"sync_at": 0.8, "background_at": 0.7}, [0.7, 0.8]),
        ({"sync_at": None}, []),
        ({"sync_at": 0.8, "max_tokens": -1}, []),
        ({}, []),
    ],
)
def test_minus_one_leaves_a_trigger_that_the_conversation_adds(own: dict[str, Any], shares: list[float]) -> None:
    policy = resolved("handoff", own, operator_numbers({}, max_tokens=-1))
    assert [trigger.at.share for trigger in policy.triggers] == shares


def test_a_conversations_own_come_first() -> None:
    def limits(overrides: dict[str, Any]) -> tuple[Any, int]:
        policy = resolved("handoff", overrides)
        return numbers(policy), policy.manual_keep.messages

    assert_values(corpus("wished_limits"), limits)


def test_presets_that_know_no_number_of_tokens_are_untouched() -> None:
    others = [name for name, preset in PRESETS.items() if all(one.at.tokens is None for one in preset.policy.triggers)]
    assert len(others) == len(PRESETS) - 1
    assert all(resolved(name, {}) == PRESETS[name].policy for name in others)


def settings(folder: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> Settings:
    (folder / "throughline.yaml").write_text(text)
    monkeypatch.chdir(folder)
    return Settings(_env_file=None)


@pytest.mark.parametrize(
    ("text", "max_tokens", "keep_tail"),
    [
        ("runner:\n  compaction:\n    max_tokens: 80000\n    keep_tail: 20\n", 80_000, 20),
        ("runner:\n  compaction:\n    max_tokens: -1\n", -1, 0),
        ("runner:\n  type: pi\n  compaction:\n    max_tokens:\n", 0, 0),
        ("runner:\n  compaction:\n", 0, 0),
        ("runner:\n", 0, 0),
        ("port: 8000\n", 0, 0),
    ],
)
def test_the_designs_own_configuration_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, max_tokens: int, keep_tail: int
) -> None:
    given = settings(tmp_path, text, monkeypatch).runner.compaction
    assert (given.max_tokens, given.keep_tail) == (max_tokens, keep_tail)


@pytest.mark.parametrize("line", ["max_tokens: -2", "keep_tail: -1", "max_token: 5", "max_tokens: many"])
def test_what_is_wrong_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str) -> None:
    with pytest.raises(ValidationError, match=line.partition(":")[0]):
        settings(tmp_path, f"runner:\n  compaction:\n    {line}\n", monkeypatch)


def test_the_environment_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THROUGHLINE_RUNNER", '{"compaction": {"max_tokens": 900}}')
    given = settings(tmp_path, "runner:\n  compaction:\n    max_tokens: 800\n    keep_tail: 6\n", monkeypatch)
    assert (given.runner.compaction.max_tokens, given.runner.compaction.keep_tail) == (900, 6)


DESIGNS: dict[str, dict[str, Any]] = {
    "sessions": {"max_tokens": 6_000, "compression_threshold": 0.9},
    "turn_end": {
        "history_compression_target_tokens_pct": 0.2,
        "history_compression_keep_recent_turns_success": 1,
        "history_compression_keep_recent_turns_mid_turn": 2,
        "history_compression_mid_turn_threshold": 0.7,
    },
}


def test_the_names_of_designs_may_stand_in_capitals_as_their_constants_do() -> None:
    capitals = {name: {key.upper(): value for key, value in numbers.items()} for name, numbers in DESIGNS.items()}
    own, same = operator_numbers(DESIGNS), operator_numbers(capitals)
    assert {name: resolved(name, {}, same) for name in DESIGNS} == {name: resolved(name, {}, own) for name in DESIGNS}
    threshold = operator_numbers({"sessions": {"trigger_threshold": 0.9}})
    assert resolved("sessions", {}, threshold) == resolved(
        "sessions", {}, operator_numbers({"sessions": {"compression_threshold": 0.9}})
    )


def test_every_preset_takes_numbers_and_those_of_designs_under_their_own_names() -> None:
    own = operator_numbers({**DESIGNS, "semantic": {"background_at": 0.5, "state_tokens": 900}})
    sessions = resolved("sessions", {}, own)
    assert (sessions.context_window, [one.at.share for one in sessions.triggers]) == (6_000, [0.9, 0.9])
    turn_end = resolved("turn_end", {}, own)
    assert turn_end.state_share == 0.2
    assert {one.name: (one.keep_turns, one.at.window) for one in turn_end.triggers} == {
        "completion": (1, 0.9),
        "interrupted": (2, 0.9),
        "sync": (2, 0.7),
        "mid_turn": (2, 0.7),
    }
    semantic = resolved("semantic", {"sync_at": 0.6}, own)
    assert (semantic.state_tokens, [one.at.share for one in semantic.triggers]) == (900, [0.5, 0.6])
    assert resolved("hierarchical", {}, own) == PRESETS["hierarchical"].policy


def test_what_a_conversation_says_of_its_triggers_replaces_all_of_the_operators() -> None:
    own = operator_numbers(DESIGNS)
    asked = [{"name": "background", "on": "stored", "at": {"share": 0.4}, "run": "background"}]
    assert [one.at.share for one in resolved("sessions", {"triggers": asked}, own).triggers] == [0.4]
    assert [one.keep_turns for one in resolved("turn_end", {"keep_tail_turns": 3}, own).triggers] == [3, 3, 3, 3]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("default_preset: semantics\n", "unknown preset 'semantics'; known: semantic"),
        ("presets:\n  session: {state_tokens: 5}\n", "unknown preset 'session'"),
        ("presets:\n  sessions: {background_at: 1.5}\n", "presets.sessions.background_at: must be more than 0"),
        (
            "presets:\n  sessions: {compression_threshold: 1.5}\n",
            "presets.sessions.compression_threshold: must be more",
        ),
        ("presets:\n  sessions: {TRIGGER_THRESHOLD: 1.5}\n", "presets.sessions.TRIGGER_THRESHOLD: must be more"),
        ("presets:\n  research: {state_token: 5}\n", "presets.research.state_token: there is no such field"),
        (
            "presets:\n  turn_end: {triggers: [], token_status_critical_threshold: 0.8}\n",
            "token_status_critical_threshold is a number of the triggers",
        ),
    ],
)
def test_a_number_that_cannot_hold_is_refused_at_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, told: str
) -> None:
    with pytest.raises(ValidationError) as refused:
        settings(tmp_path, text, monkeypatch)
    assert told in str(refused.value)


def test_they_hold_for_every_version_of_a_preset_and_keep_the_rest_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers under a design's own names are a part of triggers, whose other parts each version has for itself."""
    shipped = PRESETS["turn_end"]
    triggers = [one.model_copy(update={"keep_turns": 3}) for one in shipped.policy.triggers]
    changed = changed_preset(monkeypatch, "turn_end", triggers=[one.model_dump() for one in triggers])
    own = operator_numbers({"turn_end": {"token_status_critical_threshold": 0.8}})
    for version, policy in (
        (shipped.version, shipped.policy),
        (changed.version, changed.policy),
        (None, changed.policy),
    ):
        found = resolve("turn_end", own.completed_overrides("turn_end", {}, version), version)
        assert {one.at.window for one in found.triggers} == {0.8}
        assert [one.keep_turns for one in found.triggers] == [one.keep_turns for one in policy.triggers]


def test_common_numbers_hold_for_the_versions_that_compact_above_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    shipped, share = PRESETS["handoff"], [PRESETS["semantic"].policy.triggers[0].model_dump()]
    changed = changed_preset(monkeypatch, "handoff", triggers=share)
    own = operator_numbers({}, max_tokens=50_000)
    before, now = (
        resolve("handoff", own.completed_overrides("handoff", {}, version), version)
        for version in (shipped.version, changed.version)
    )
    assert [one.at.tokens for one in before.triggers] == [50_000]
    assert now == changed.policy


def test_a_number_that_only_an_earlier_version_refuses_says_which(monkeypatch: pytest.MonkeyPatch) -> None:
    shipped = PRESETS["semantic"]
    wrong = shipped.policy.model_copy(update={"target": 2.0})  # no policy that was ever valid: to be seen by the check
    replaced_preset(monkeypatch, replace(shipped, version=shipped.version + 1, earlier={shipped.version: wrong}))
    with pytest.raises(PolicyInvalidError, match=rf"presets\.semantic\.target: .*in version {shipped.version}, which"):
        operator_numbers({"semantic": {"state_tokens": 900}})
