"""From a candidate to a state: pruned to its cap, below the target, and never larger than what it replaces."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from app.domain.apply import Applied, Applying, apply_candidate
from app.domain.candidate import Candidate, parse_candidate
from app.domain.compaction import CompactionPlan
from app.domain.conversation import Message
from app.domain.layout import state_json
from app.domain.schemas.session import SESSION
from app.domain.tokens import estimate_text
from tests.builders import budgets, message, policy_of

POLICY = policy_of(context_window=4_000)
BUDGETS = budgets(POLICY)
SPAN = tuple(
    message(seq, f"Crate {seq} holds {seq * 3} lamps for pier {seq}, and it has to be opened with the flat iron bar.")
    for seq in range(1, 61)
)


def candidate(facts: Sequence[str]) -> Candidate:
    items = [{"text": text, "from": [seq], "replaces": []} for seq, text in enumerate(facts, start=1)]
    raw: dict[str, Any] = {
        "logos": items,
        "pathos": [],
        "abstract": [],
        "conversation_summary": "Crates.",
        "dropped": [],
    }
    return parse_candidate(json.dumps(raw), SESSION)


def apply(
    facts: Sequence[str], *, span: Sequence[Message] = SPAN, before: int = 3_000, last: bool = True
) -> Applied | None:
    folded = sum(one.token_count for one in span)
    plan = CompactionPlan(
        from_seq=1,
        to_seq=len(span),
        messages=len(span),
        folded_tokens=folded,
        goal_seq=len(span) if last else len(span) + 10,
        predicted_tokens=0,
        irreducible=False,
    )
    return apply_candidate(
        candidate(facts),
        Applying(
            schema=SESSION,
            policy=POLICY,
            budgets=BUDGETS,
            plan=plan,
            span=tuple(span),
            previous=(),
            next_entry=1,
            version=1,
            tokens_before=before,
            block_before=0,
            target=BUDGETS.target,
        ),
    )


def state_tokens(applied: Applied) -> int:
    return estimate_text(state_json(SESSION, applied.state))


def test_an_honest_candidate_is_applied_as_it_is() -> None:
    applied = apply([f"Crate {seq} goes to pier {seq}" for seq in range(1, 9)])

    assert applied is not None
    assert len(applied.state["logos"]) == 8
    assert applied.tokens_after < 3_000
    assert not [entry for entry in applied.entries if entry.pruned]


def test_the_input_given_back_is_refused_although_the_cap_would_cut_it_down() -> None:
    assert apply([one.content for one in SPAN]) is None


def test_a_state_over_its_cap_keeps_the_newest_facts_and_names_what_it_pushed_out() -> None:
    facts = [f"Crate {seq} holds {seq * 3} lamps for pier {seq}" for seq in range(1, 61)]
    applied = apply(facts, before=2_200)

    assert applied is not None
    assert state_tokens(applied) <= BUDGETS.state_cap
    assert applied.state["logos"][-1] == facts[-1]
    assert next(entry.text for entry in applied.entries if entry.pruned) == facts[0]
    assert len(applied.entries) >= len(facts)


@pytest.mark.parametrize(("last", "most"), [(True, BUDGETS.state_tokens), (False, BUDGETS.state_cap)])
def test_above_the_target_the_last_chunk_is_pruned_to_its_planned_size(*, last: bool, most: int) -> None:
    facts = [f"Crate {seq} holds {seq * 3} lamps for pier {seq}" for seq in range(1, 61)]
    applied = apply(facts, before=5_000, last=last)

    assert applied is not None
    assert BUDGETS.state_tokens * 0.8 < state_tokens(applied) <= most
    assert (state_tokens(applied) <= BUDGETS.state_tokens) is last
