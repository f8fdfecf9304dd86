"""Presets changed in the middle of a conversation: the change itself loses nothing, for any pair and back again.

By the pure core, with talk in which each sentence has exact values, so that every state is full.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from functools import cache
from itertools import pairwise, permutations
from typing import Final

import pytest

from app.core.model.conversation import Role
from app.core.model.policies.resolving import PRESETS
from app.core.model.records import FoldRequest
from app.core.model.schemas import schema_named
from app.core.model.state import StateEntry
from app.core.state import apply as applying
from app.core.state.pruning import state_token_limit
from app.core.summarizer.offline.narrative_states import (
    is_narrative_only,
    is_topic_statement,
    statements,
    without_frame,
)
from bench.replay import Replay
from tests.unit.test_extractive_memory import FACTS, FILLERS

WINDOW: Final = 8_000
ROUNDS: Final = 20
EVERYTHING: Final = FoldRequest(fold="all")
ALONE: Final = {"anchor_share": 0, "protect": []}
"""Without anchors everything that is known is in the state, or is lost."""
PAIRS: Final = list(permutations(sorted(PRESETS), 2))
EVERYDAY: Final = ("en", 1)
"""The language, and the number of steps from the first preset to the second in alphabetical order, in a circle."""
FIRST: Final = frozenset(sorted(PRESETS)[::2])


def steps(one: str, other: str) -> int:
    names = sorted(PRESETS)
    return (names.index(other) - names.index(one)) % len(names)


def is_everyday(language: str, one: str, other: str) -> bool:
    return (language, steps(one, other)) == EVERYDAY and one in FIRST


def schema_of(preset: str) -> str:
    return PRESETS[preset].policy.state_schema


def talk_on(talk: Replay, language: str, rounds: int) -> None:
    for number in range(len(talk.messages), len(talk.messages) + rounds):
        for place, filler in enumerate(FILLERS[language]):
            role: Role = "assistant" if place == len(FILLERS[language]) - 1 else "user"
            talk.say(role, filler.format(n=number + 10, m=number % 7 + 2, d=number % 27 + 1))


def fold(talk: Replay) -> None:
    before = talk.compactions
    talk.fold(EVERYTHING)
    assert talk.compactions == before + 1, talk.refused


def begun(language: str, preset: str) -> Replay:
    """A conversation whose state is as full as its preset allows."""
    return deepcopy(_begun(language, preset))


@cache
def _begun(language: str, preset: str) -> Replay:
    talk = Replay.in_window(WINDOW, preset, **ALONE)
    talk.say("user", FACTS[language][0])
    for _ in range(2):
        talk_on(talk, language, ROUNDS)
        fold(talk)
    return talk


def changed(talk: Replay, language: str, preset: str) -> None:
    talk.change(WINDOW, preset, **ALONE)
    talk_on(talk, language, ROUNDS)
    fold(talk)


def told(talk: Replay, *, pruned: bool = False) -> list[StateEntry]:
    return [entry for entry in talk.entries if entry.pruned == pruned]


def pieces(entries: list[StateEntry], schema: str) -> Iterator[str]:
    """The texts of a state: its entries, or the statements of its text, without a story that is told anew."""
    whole = is_narrative_only(schema_named(schema))
    for entry in entries:
        texts = statements(entry.text) if whole else [entry.text] if entry.role != "narrative" else []
        yield from (without_frame(text).rstrip(".") for text in texts if not is_topic_statement(text))


def missing(before: list[str], talk: Replay) -> list[str]:
    now = "\n".join(entry.text for entry in told(talk))
    return [text for text in before if text not in now]


CHANGES = [
    pytest.param(language, one, other, marks=() if is_everyday(language, one, other) else pytest.mark.long)
    for language in ("en", "ru")
    for one, other in PAIRS
]
"""Every pair; each day each preset is in one of the pairs, and the other pairs are in the long tests."""


@pytest.mark.long
@pytest.mark.parametrize(("language", "one", "other"), CHANGES)
def test_every_entry_is_there_after_the_change_and_after_the_way_back(language: str, one: str, other: str) -> None:
    talk = begun(language, one)
    presets = [one, other, one]
    for source, target in pairwise(presets):
        before = list(pieces(told(talk), schema_of(source)))
        assert len(before) > 5, "control: there is something to lose"
        changed(talk, language, target)
        lost = missing(before, talk)
        if schema_of(source) == schema_of(target):
            recorded = [entry.text.rstrip(".") for entry in told(talk, pruned=True)]
            assert set(lost) <= set(recorded), "a compaction like any other: what goes is on record"
        else:
            assert lost == []

    before = list(pieces(told(talk), schema_of(one)))
    talk_on(talk, language, ROUNDS)
    fold(talk)
    on_record = "\n".join(entry.text for entry in told(talk, pruned=True))
    older = "\n".join(text for entry in talk.entries for text in entry.superseded)
    assert [text for text in missing(before, talk) if text not in on_record and text not in older] == []
    state = talk.breakdown().state
    assert state <= (talk.budgets.state_tokens if is_narrative_only(talk.schema) else talk.budgets.state_cap), (
        "within it again"
    )


@pytest.mark.daily(1)
@pytest.mark.parametrize(
    ("one", "other"), [("turn_end", "semantic"), ("research", "turn_end"), ("handoff", "sessions")]
)
def test_control_as_a_compaction_like_any_other_it_loses(monkeypatch: pytest.MonkeyPatch, one: str, other: str) -> None:
    monkeypatch.setattr(applying, "_most_state_tokens", lambda to: state_token_limit(to.schema, to.budgets))
    monkeypatch.setattr(applying, "without_drops_for_space", lambda candidate: candidate)
    monkeypatch.setattr("bench.replay.requested_state_tokens", lambda budgets, entries, carried: budgets.state_tokens)
    talk = begun("en", one)
    before = list(pieces(told(talk), schema_of(one)))
    changed(talk, "en", other)
    assert missing(before, talk)
