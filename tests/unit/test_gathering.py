"""Versions that gather until they are verified: their mark, what hastens the verification, and what they record."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

import pytest

from app.core.model.claims import Claim, ClaimKind
from app.core.model.conversation import Sums
from app.core.model.policies.policy import CompactionPolicy
from app.core.model.records import Verification
from app.core.model.state import StateEntry, StateVersion
from app.core.validation.lost_entries import lost_entries, without_lost_entries
from app.core.validation.verdict_application import VerdictCounts, VerifiedState, apply_verdicts
from app.core.validation.verdicts import Verdict
from app.usecases.verification import pending, rewriting
from app.usecases.verification.judging import _oldest_readable
from tests.builders import budgets, policy_of

NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)
MINUTES = timedelta(minutes=1)
SHELL = cast("Any", SimpleNamespace(verifies=True, verify_wait=10 * MINUTES, clock=SimpleNamespace(now=lambda: NOW)))
POLICY = CompactionPolicy()
DENIED = "We take neither the rent nor the old order"


def entry(id_: str, *, by: tuple[str, ...] = (), pruned: bool = False, doubted: bool = False) -> StateEntry:
    return StateEntry(
        id=id_,
        field="facts",
        role="fact",
        text=f"Fact {id_}.",
        since_version=1,
        pruned=pruned,
        in_doubt=doubted,
        replaced_by=by,
    )


def version(number: int, tokens: int, *entries: StateEntry, state: int = 0) -> StateVersion:
    return StateVersion(
        version=number,
        state_schema="session",
        state={},
        entries=entries,
        next_entry=9,
        boundary_seq=number,
        boundary_message_id=None,
        covered=Sums(tokens=tokens),
        layout=cast("Any", SimpleNamespace(tokens=state)),
        compaction_id=None,
        created_at=NOW,
    )


@pytest.mark.parametrize(
    ("by_model", "before", "mark"),
    [
        (True, "exact", "pending"),
        (False, "exact", "exact"),
        (False, "model", "exact"),
        (False, "pending", "pending"),
    ],
)
def test_what_code_quotes_waits_only_for_what_stood_before(by_model: bool, before: Any, mark: str) -> None:  # noqa: FBT001
    assert pending.initial_mark(SHELL, POLICY, by_language_model=by_model, before=before) == mark
    off = POLICY.model_copy(update={"verify": "off"})
    assert pending.initial_mark(SHELL, off, by_language_model=by_model, before=before) == "exact"


@pytest.mark.parametrize(
    ("by_hand", "doubted", "state", "presses"),
    [(True, False, 0, True), (False, True, 750, True), (False, True, 749, False), (False, False, 1_000, False)],
)
def test_a_client_or_the_doubts_of_a_state_that_is_nearly_full_press(
    by_hand: bool,  # noqa: FBT001
    doubted: bool,  # noqa: FBT001
    state: int,
    presses: bool,  # noqa: FBT001
) -> None:
    resolved = cast("Any", SimpleNamespace(budgets=SimpleNamespace(state_cap=1_000)))
    written = version(1, 10, entry("F1", doubted=doubted), state=state)
    assert pending.is_pressing(resolved, written, by_hand=by_hand) is presses


def test_control_what_one_text_told_earlier_does_not_press() -> None:
    """No verdict would take the doubt from this text."""
    resolved = cast("Any", SimpleNamespace(budgets=SimpleNamespace(state_cap=1_000)))
    earlier = replace(entry("F1", doubted=True), id="N1", role="narrative")
    assert not pending.is_pressing(resolved, version(1, 10, earlier, state=1_000), by_hand=False)


@pytest.mark.parametrize(
    ("reason", "last_message", "waits"),
    [
        ("gathering", 0.5, 0.5),
        ("gathering", 1, None),
        ("gathering", -60, 8),
        ("timeout", 0.5, None),
    ],
)
def test_it_gathers_until_a_pause_or_the_longest_wait(reason: str, last_message: float, waits: float | None) -> None:
    row = Verification(
        id=UUID(int=1), conversation_id=UUID(int=2), version=1, reason=reason, created_at=NOW - 2 * MINUTES
    )
    until = pending.gathering_end(SHELL, row, NOW - last_message * MINUTES)
    assert until == (None if waits is None else NOW + waits * MINUTES)


def test_the_oldest_that_one_request_may_read_come_first() -> None:
    base, *versions = [version(number, tokens) for number, tokens in enumerate((100, 150, 190, 400), start=1)]
    newest_first = tuple(reversed(versions))
    assert _oldest_readable(newest_first, base, 300) == newest_first
    assert [one.version for one in _oldest_readable(newest_first, base, 90)] == [3, 2]
    assert [one.version for one in _oldest_readable(newest_first, base, 1)] == [2], "one in any case"
    assert [one.version for one in _oldest_readable(newest_first, None, 150)] == [2]


def test_what_went_between_names_what_is_there_in_its_place() -> None:
    first = (entry("F1", by=("F2",), pruned=True), entry("F2"), entry("F7", pruned=True))
    second = (entry("F2", by=("F3",), pruned=True), entry("F3"), entry("F4", by=("F4",), pruned=True))
    present = (entry("F3"), entry("F7"))
    gone = lost_entries(present, [second, first])
    assert [(one.id, one.replaced_by) for one in gone] == [("F2", ("F3",)), ("F4", ()), ("F1", ("F3",))]
    assert lost_entries((*present, *gone), [second, first]) == ()


def test_what_was_contradicted_stays_on_record_though_it_was_gone_before() -> None:
    """The judged version served F1 and F2; the present one, two compactions later, has neither."""
    judged, present = (entry("F1"), entry("F2")), (entry("F9"),)
    gone = lost_entries(present, [judged], judged)
    assert [(one.id, one.pruned, one.replaced_by) for one in gone] == [("F1", True, ()), ("F2", True, ())]
    counts = VerdictCounts(contradicted=1)
    state = without_lost_entries(
        VerifiedState(entries=(*present, *gone), counts=counts, refuted_ids=frozenset({"F2"})), gone
    )
    assert [one.id for one in state.entries] == ["F9", "F2"]
    assert (state.is_changed, state.is_doubt_only) == (True, True)
    unmoved = VerifiedState(entries=(*present, *gone), counts=counts)
    assert without_lost_entries(unmoved, gone) == replace(unmoved, entries=present)


def test_what_was_served_at_the_judgement_is_named_once_and_no_narrative_is() -> None:
    judged = (entry("F1"), replace(entry("N1"), role="narrative"))
    gone = lost_entries((entry("F9"),), [(entry("F1", by=("F9",), pruned=True),), judged], judged)
    assert [(one.id, one.replaced_by) for one in gone] == [("F1", ("F9",))]


def logos(id_: str, words: str, **changes: Any) -> StateEntry:
    return replace(entry(id_), field="logos", text=f"{words} is what {id_} says, at length and in full.", **changes)


def filled(
    *more: StateEntry, by: Any = "compaction", returns: bool = True, about: Any = "item", verdict: Any = None
) -> list[str]:
    """What is served after verdicts removed F4 from a full state, whose cap had pushed out F2."""
    policy = policy_of(context_window=4_000)
    gone = [logos("F2", "The rent", pruned=True), logos("F3", "Boats", pruned=True, replaced_by=("F5",))]
    kept = [logos("F1", "The lease"), logos("F4", "The old order"), logos("F5", "The new order")]
    current = replace(version(3, 100, *kept, *gone), made_by=by)
    judged: list[tuple[ClaimKind, StateEntry]] = [("item", kept[1]), (about, gone[0])]
    claims = [
        Claim(n=n, kind=kind, field="logos", text=one.text, target=one.id) for n, (kind, one) in enumerate(judged, 1)
    ]
    given: dict[int, Any] = {1: "contradicted", 2: verdict}
    verdicts = [Verdict(n=n, verdict=word, seq=1, quote=DENIED) for n, word in given.items() if word]
    found = apply_verdicts([*kept, *more, *gone], claims, verdicts, shown_texts={1: (f"{DENIED}.",)})
    returning = rewriting.ids_pushed_out(current) - found.ended_ids if returns else frozenset()
    entries = rewriting._within_cap(found.entries, current, policy, replace(budgets(policy), state_cap=1), returning)
    assert {one.id for one in entries} == {one.id for one in found.entries}, "on record"
    return [one.id for one in entries if not one.pruned]


def test_what_the_cap_alone_pushed_out_returns_into_the_room_that_verdicts_make() -> None:
    """What a model gave up takes room until it is judged, and what still holds was pushed out for it."""
    assert filled() == ["F1", "F2", "F5"]
    assert filled(returns=False) == ["F1", "F5"]
    assert filled(logos("F6", "The third order")) == ["F1", "F5", "F6"], "there is no room"
    assert filled(by="verification") == ["F1", "F5"], "that version records what verdicts removed in the same way"


def test_what_was_contradicted_or_rightly_given_up_does_not_return() -> None:
    """The verdicts may be on an earlier version, after which the cap pushed the entry out."""
    assert filled(verdict="supported") == ["F1", "F2", "F5"]
    assert filled(verdict="contradicted") == ["F1", "F5"]
    assert filled(about="dropped", verdict="contradicted") == ["F1", "F2", "F5"]
    assert filled(about="dropped", verdict="supported") == ["F1", "F5"]
