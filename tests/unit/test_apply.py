"""From a candidate to a state: pruned to its cap, below the target, and never larger than what it replaces."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.anchors.rendering import anchor_line, line_tokens
from app.core.model.anchors import Anchor
from app.core.model.candidate import Candidate
from app.core.model.conversation import Message
from app.core.model.model_io import Proposal, SummaryRequest
from app.core.model.policies.policy import CompactionPolicy
from app.core.model.schemas.session import SESSION
from app.core.model.state import StateEntry
from app.core.planning.compaction import CompactionPlan
from app.core.state.apply import AppliedCandidate, ApplyContext, apply_candidate, certain_refusal
from app.core.state.layout import state_json
from app.core.summarizer.candidate import parse_candidate
from app.core.text.token_counts import estimate_text
from app.core.validation.gate import GateReport, judge
from tests.builders import budgets, message, policy_of
from tests.profiles import examples
from tests.unit.talk import answer, fact

POLICY = policy_of(context_window=4_000)
BUDGETS = budgets(POLICY)
SPAN = tuple(
    message(seq, f"Crate {seq} holds {seq * 3} lamps for pier {seq}, and it has to be opened with the flat iron bar.")
    for seq in range(1, 61)
)


def candidate(facts: Sequence[str], narrative: str = "Crates.") -> Candidate:
    items = [{"text": text, "from": [seq], "replaces": []} for seq, text in enumerate(facts, start=1)]
    raw: dict[str, Any] = {
        "logos": items,
        "pathos": [],
        "abstract": [],
        "conversation_summary": narrative,
        "dropped": [],
    }
    return parse_candidate(json.dumps(raw), SESSION)


def apply(
    facts: Sequence[str],
    *,
    span: Sequence[Message] = SPAN,
    before: int = 3_000,
    last: bool = True,
    narrative: str = "Crates.",
    by_model: bool = False,
) -> AppliedCandidate | str:
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
        GateReport(candidate=candidate(facts, narrative), by_model=by_model),
        ApplyContext(
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


def compacted(
    text: str,
    span: Sequence[Message],
    *previous: StateEntry,
    anchors: Sequence[Anchor] = (),
    policy: CompactionPolicy = POLICY,
    block_before: int = 0,
    version: int = 1,
    **changes: Any,
) -> AppliedCandidate | str:
    """The whole way of an answer: it is judged, then applied."""
    context = context_of(
        span, *previous, anchors=anchors, policy=policy, block_before=block_before, version=version, **changes
    )
    request = SummaryRequest(schema=SESSION, messages=tuple(span), previous=previous, anchors=tuple(anchors))
    report = judge(Proposal(text=text, finish="stop", model="scripted"), request)
    return apply_candidate(report, context)


def context_of(
    span: Sequence[Message],
    *previous: StateEntry,
    anchors: Sequence[Anchor] = (),
    policy: CompactionPolicy = POLICY,
    block_before: int = 0,
    version: int = 1,
    **changes: Any,
) -> ApplyContext:
    """The context in which an answer about these messages is applied."""
    shares = budgets(policy)
    folded = sum(one.token_count for one in span if not one.is_protected)
    plan = CompactionPlan(
        from_seq=span[0].seq,
        to_seq=span[-1].seq,
        messages=len(span),
        folded_tokens=folded,
        goal_seq=span[-1].seq,
        predicted_tokens=0,
        irreducible=False,
    )
    values: dict[str, Any] = {
        "schema": SESSION,
        "policy": policy,
        "budgets": shares,
        "plan": plan,
        "span": tuple(span),
        "previous": previous,
        "next_entry": 1 + max((int(entry.id[1:]) for entry in previous), default=0),
        "version": version,
        "tokens_before": 200 + folded + block_before,
        "block_before": block_before,
        "target": shares.target,
        "anchors": tuple(anchors),
    }
    return ApplyContext(**(values | changes))


def anchor(seq: int, content: str, number: int = 0) -> Anchor:
    return Anchor(
        id=UUID(int=9_000 + seq * 100 + number),
        conversation_id=UUID(int=1),
        message_id=UUID(int=seq),
        type="critical_fact",
        content=content,
        seq=seq,
        offset=0,
        importance=0.5,
        token_count=line_tokens(anchor_line("critical_fact", seq, content)),
        created_at=span_time(),
    )


def span_time() -> datetime:
    return SPAN[0].created_at


def state_tokens(applied: AppliedCandidate) -> int:
    return estimate_text(state_json(SESSION, applied.state))


def test_an_honest_candidate_is_applied_as_it_is() -> None:
    applied = apply([f"Crate {seq} goes to pier {seq}" for seq in range(1, 9)])

    assert isinstance(applied, AppliedCandidate)
    assert len(applied.state["logos"]) == 8
    assert applied.tokens_after < 3_000
    assert not [entry for entry in applied.entries if entry.pruned]


@pytest.mark.case("7")
def test_the_input_given_back_is_refused_although_the_cap_would_cut_it_down() -> None:
    assert apply([one.content for one in SPAN]) == "not_smaller"


def test_a_state_over_its_cap_keeps_the_newest_facts_and_names_what_it_pushed_out() -> None:
    facts = [f"Crate {seq} holds {seq * 3} lamps for pier {seq}" for seq in range(1, 61)]
    applied = apply(facts, before=2_200)

    assert isinstance(applied, AppliedCandidate)
    assert state_tokens(applied) <= BUDGETS.state_cap
    assert applied.state["logos"][-1] == facts[-1]
    assert next(entry.text for entry in applied.entries if entry.pruned) == facts[0]
    assert len(applied.entries) >= len(facts)


def test_a_narrative_that_the_cap_shortened_is_on_record() -> None:
    facts = [f"Crate {seq} holds {seq * 3} lamps for pier {seq}" for seq in range(1, 61)]
    told = "Crates were packed. They were counted. Now they leave."
    for by_model in (True, False):
        applied = apply(facts, before=2_200, narrative=told, by_model=by_model)
        assert isinstance(applied, AppliedCandidate)
        (repair,) = applied.repairs or (None,)
        assert (repair is not None) is by_model
        if repair is not None:
            assert (repair.reason, repair.before, repair.after) == ("shortened", told, "Crates were packed.")
    applied = apply(facts[:20], narrative=told, by_model=True)
    assert isinstance(applied, AppliedCandidate)
    assert applied.repairs == (), "control: there is room for all of it"


@pytest.mark.parametrize(("last", "most"), [(True, BUDGETS.state_tokens), (False, BUDGETS.state_cap)])
def test_above_the_target_the_last_chunk_is_pruned_to_its_planned_size(*, last: bool, most: int) -> None:
    facts = [f"Crate {seq} holds {seq * 3} lamps for pier {seq}" for seq in range(1, 61)]
    applied = apply(facts, before=5_000, last=last)

    assert isinstance(applied, AppliedCandidate)
    assert BUDGETS.state_tokens * 0.8 < state_tokens(applied) <= most
    assert (state_tokens(applied) <= BUDGETS.state_tokens) is last


def test_what_a_model_drops_from_a_full_state_stays_until_somebody_could_judge_it() -> None:
    facts = [f"Crate {seq} holds {seq * 3} lamps for pier {seq}" for seq in range(1, 61)]
    full = apply(facts, before=2_200)
    assert isinstance(full, AppliedCandidate)
    served = tuple(entry for entry in full.entries if not entry.pruned)
    dropped = next(entry for entry in served if entry.field == "logos" and entry.text == facts[-2])
    after = tuple(replace(one, seq=one.seq + 60) for one in SPAN)
    ships = [fact(f"Ship {seq} holds {seq * 3} lamps for pier {seq}", seq) for seq in (61, 62, 63, 64, 65)]
    drops = answer("Crates.", ships, dropped=[{"entry": dropped.id, "reason": "no_longer_relevant", "by_seq": 61}])

    once = compacted(drops, after, *served, version=2, block_before=900)
    assert isinstance(once, AppliedCandidate)
    left = {entry.id: entry for entry in once.entries if not entry.pruned}
    assert left[dropped.id].in_doubt
    assert {entry.id for entry in served} - left.keys(), "others had to go"

    later = tuple(replace(one, seq=one.seq + 60) for one in after)
    boats = [fact(f"Boat {seq} holds {seq * 3} lamps for pier {seq}", seq) for seq in (121, 122, 123, 124, 125)]
    twice = compacted(answer("Crates.", boats), later, *left.values(), version=3, block_before=900)
    assert isinstance(twice, AppliedCandidate)
    gone = next(entry for entry in twice.entries if entry.id == dropped.id)
    assert gone.pruned, "control: nobody judged it, so it goes first in the next round"


# --- I7: smaller, always


WORDS = "crate lamp pier iron bar open north wall green boat".split()  # noqa: SIM905
said = st.lists(st.sampled_from([*WORDS, "A-7781", "900 EUR", "12 May 2027"]), min_size=3, max_size=40).map(" ".join)


@pytest.mark.case("7")
@examples(0.6)
@given(
    st.lists(said, min_size=1, max_size=12),
    st.lists(said, min_size=1, max_size=8),
    st.lists(st.tuples(st.integers(1, 12), said), max_size=4),
    st.integers(0, 300),
)
def test_what_is_applied_is_smaller_than_what_it_replaces(
    contents: list[str], told: list[str], anchored: list[tuple[int, str]], block: int
) -> None:
    span = [message(seq, content) for seq, content in enumerate(contents, start=1)]
    anchors = [anchor(min(seq, len(span)), text, number) for number, (seq, text) in enumerate(anchored)]
    before = 200 + sum(one.token_count for one in span) + block
    applied = compacted(answer("Crates.", [fact(text, 1) for text in told]), span, anchors=anchors, block_before=block)
    if isinstance(applied, str):
        assert applied in {"not_smaller", "skeleton"}
    else:
        assert applied.tokens_after < before
        assert applied.tokens_after == before - sum(one.token_count for one in span) - block + applied.layout.tokens


def test_a_span_that_is_hardly_longer_than_its_record_is_not_smaller() -> None:
    span = [message(1, "Crate 7 goes to pier 9, please."), message(2, "Fine.")]
    assert compacted(answer("", [fact("Crate 7 goes to pier 9, please", 1)]), span) == "not_smaller"


# --- anchors


LONG = [
    message(
        seq, f"Crate {seq} holds {seq * 3} lamps for pier {seq}, and it has to be opened with the flat iron bar. " * 3
    )
    for seq in range(1, 41)
]
SHORT = answer("Crates with lamps.", [fact("The crates hold lamps for the piers", 1)])


def test_anchors_stand_in_the_block_and_are_weighed_but_not_counted_as_the_candidates_text() -> None:
    kept = [anchor(seq, f"Crate {seq} holds {seq * 3} lamps for pier {seq}") for seq in range(1, 11)]
    bare, applied = compacted(SHORT, LONG), compacted(SHORT, LONG, anchors=kept)
    assert isinstance(bare, AppliedCandidate)
    assert isinstance(applied, AppliedCandidate)
    assert all(one.content in applied.layout.anchors for one in kept)
    assert applied.layout.anchor_tokens > 0
    assert applied.tokens_after == bare.tokens_after + applied.layout.anchor_tokens


def test_anchors_beyond_their_room_stand_behind_the_marker() -> None:
    many = [
        anchor(seq, f"Crate {seq} holds {seq * 3} lamps for pier {seq}, remember that well") for seq in range(1, 41)
    ]
    applied = compacted(SHORT, LONG, anchors=many)
    assert isinstance(applied, AppliedCandidate)
    assert applied.layout.anchors_behind_marker > 0
    assert applied.layout.anchor_tokens <= (BUDGETS.anchor_tokens or 0) + 5


def test_a_short_conversation_of_little_but_anchors_is_still_compacted() -> None:
    """An honest record is not refused for what code adds; what a user anchored is still served."""
    said = [f"Crate {seq} holds {seq * 3} lamps for pier {seq}, and Priya opens it." for seq in range(1, 13)]
    span = [message(seq, text) for seq, text in enumerate(said, start=1)]
    anchors = [anchor(seq, text) for seq, text in enumerate(said, start=1)]
    anchors[3] = replace(anchors[3], proposed_by="user")
    facts = [fact(f"Crate {seq}: {seq * 3} lamps, pier {seq}", seq) for seq in range(1, 9)]
    told = answer("Crates with lamps.", facts)

    applied = compacted(told, span, anchors=anchors)

    assert isinstance(applied, AppliedCandidate)
    assert sum(one.token_count for one in anchors) < (BUDGETS.anchor_tokens or 0), "all of them had their room"
    assert applied.layout.anchors_behind_marker > 0
    assert applied.tokens_after < 200 + sum(one.token_count for one in span)
    assert applied.layout.anchor_tokens > (applied.anchor_room or 0) // 2, "no more go than have to"
    assert said[3] in applied.layout.anchors
    assert applied.state["logos"] == [item["text"] for item in facts]
    by_user = [replace(one, proposed_by="user") for one in anchors]
    assert compacted(told, span, anchors=by_user) == "not_smaller", "control"


def test_without_a_share_anchors_that_do_not_fit_reject_the_compaction() -> None:
    policy = replace_policy(anchor_share=None)
    many = [anchor(seq, LONG[seq - 1].content[:280], number) for number in range(2) for seq in range(1, 41)]
    assert compacted(SHORT, LONG, anchors=many, policy=policy) == "anchors_over_budget"
    few = compacted(SHORT, LONG, anchors=many[:3], policy=policy)
    assert isinstance(few, AppliedCandidate)
    assert few.layout.anchors_behind_marker == 0
    shared = compacted(SHORT, LONG, anchors=many)
    assert isinstance(shared, AppliedCandidate)


@pytest.mark.daily(1)
@pytest.mark.parametrize("held", [0, 1_500], ids=["by-size", "by-budget"])
def test_what_is_certainly_refused_is_refused_whatever_a_model_writes(held: int) -> None:
    """Else no model would be asked about a fold that might be applied. Controls: few anchors, and an allotment."""
    policy = replace_policy(anchor_share=None)
    many = [anchor(seq, LONG[seq - 1].content[:280], number) for number in range(2) for seq in range(1, 41)]
    certain = []
    for count in range(0, len(many) + 1, 4):
        given: dict[str, Any] = {"anchors": many[:count], "policy": policy, "lasting_tokens": held}
        refusal = certain_refusal(context_of(LONG, **given))
        answers = [compacted(text, LONG, **given) for text in (SHORT, answer("Crates.", [fact("Crate 1", 1)]))]
        if refusal is not None:
            assert {*answers} <= {refusal, "not_smaller"}, count
        certain.append(refusal)
    assert certain[0] is None
    assert certain[-1] == "anchors_over_budget"
    assert certain == sorted(certain, key=lambda one: one is not None), "no anchor makes room"
    assert certain_refusal(context_of(LONG, anchors=many, lasting_tokens=held)) is None, "control"


def replace_policy(**changes: Any) -> CompactionPolicy:
    return POLICY.model_copy(update=changes)


def test_a_models_proposals_are_taken_as_verbatim_quotes_only() -> None:
    raw = json.loads(SHORT)
    raw["anchors"] = [
        {"type": "critical_fact", "quote": "Crate 3 holds 9 lamps for pier 3", "seq": 3},
        {"type": "decision", "quote": "Crate 4 holds 99 lamps", "seq": 4},
    ]
    applied = compacted(json.dumps(raw), LONG)
    assert isinstance(applied, AppliedCandidate)
    assert [(one.seq, one.content) for one in applied.proposed_anchors] == [(3, "Crate 3 holds 9 lamps for pier 3")]
    assert "Crate 3 holds 9 lamps for pier 3" in applied.layout.anchors


# --- survival, and the state so far


EXACT = [
    *LONG,
    message(41, "By the way, the freight number is A-7781 and the invoice over 48 500 EUR is due on 3 May 2027."),
    message(42, "Noted."),
]


@pytest.mark.case("26")
def test_what_the_summary_lost_is_quoted_and_counted() -> None:
    applied = compacted(SHORT, EXACT)
    assert isinstance(applied, AppliedCandidate)
    assert any("A-7781" in text and "48 500 EUR" in text for text in applied.state["logos"])
    assert applied.counts.restored_by_code >= 1


@pytest.mark.control("26")
def test_control_without_survival_it_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.core.state.apply.lost_sentences", lambda *_, **__: [])
    applied = compacted(SHORT, EXACT)
    assert isinstance(applied, AppliedCandidate)
    assert not any("A-7781" in text for text in applied.state["logos"])


def test_compacting_the_same_span_again_adds_nothing() -> None:
    once = compacted(SHORT, EXACT)
    assert isinstance(once, AppliedCandidate)
    again = compacted(SHORT, EXACT, *once.entries, block_before=once.layout.tokens, version=2)
    assert isinstance(again, AppliedCandidate)
    assert [(one.id, one.text) for one in again.entries] == [(one.id, one.text) for one in once.entries]
    assert (again.counts.added, again.counts.restored_by_code) == (0, 0)


def test_ungrounded_items_are_counted_on_the_compaction() -> None:
    applied = compacted(
        answer("Crates.", [fact("The crates hold 99999 parrots", 1), fact("Crate 1 has 3 lamps", 1)]), LONG
    )
    assert isinstance(applied, AppliedCandidate)
    assert applied.counts.ungrounded == 1
    assert not any("parrots" in text for text in applied.state["logos"])


@pytest.mark.long
@pytest.mark.case("23")
def test_a_fact_of_the_first_turns_is_there_after_each_of_many_compactions() -> None:
    """Every round brings more facts than the state can hold, each with an exact value of its own."""
    states = after_rounds(30)
    assert len(states) == 30
    for state in states:
        assert "KD-20418" in state
        assert "ada@example.org" in state


@pytest.mark.control("23")
def test_control_without_sparing_the_first_facts_it_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.core.state.pruning._SPARED_FIRST_FACTS", 0)
    assert "KD-20418" not in after_rounds(5)[-1]


def after_rounds(rounds: int) -> list[str]:
    """The facts after each of this many compactions."""
    states: list[str] = []
    first = "My customer number is KD-20418 and my address is ada@example.org."
    entries: tuple[StateEntry, ...] = ()
    block = 0
    for number in range(rounds):
        start = number * 20 + 1
        span = [
            message(
                seq,
                first
                if seq == 1
                else f"Today crate {seq} left pier {seq % 9} at last, freight code FR-{seq * 7}, {seq * 11} EUR, "
                f"and the men there opened the north wall number {seq} with the flat iron bar.",
                "user" if seq % 2 else "assistant",
            )
            for seq in range(start, start + 20)
        ]
        told = [
            fact(f"Freight FR-{one.seq * 7} for crate {one.seq}: {one.seq * 11} EUR", one.seq) for one in span[1::2]
        ]
        if number == 0:
            told = [fact("Customer number KD-20418, mail ada@example.org", 1), *told]
        applied = compacted(answer("Crates leave.", told), span, *entries, block_before=block, version=number + 1)
        assert isinstance(applied, AppliedCandidate)
        entries, block = tuple(one for one in applied.entries if not one.pruned), applied.layout.tokens
        assert state_tokens(applied) <= BUDGETS.state_cap
        states.append(" ".join(applied.state["logos"]))
    return states


def test_what_a_model_quotes_itself_stays_before_what_rules_found() -> None:
    said = [f"Crate {seq} holds {seq * 3} lamps for pier {seq}, and Priya opens it." for seq in range(1, 13)]
    said[4] = "By the way, she does not eat nuts, really badly allergic."
    span = [message(seq, text) for seq, text in enumerate(said, start=1)]
    anchors = [anchor(seq, text) for seq, text in enumerate(said, start=1) if seq != 5]
    facts = [fact(f"Crate {seq}: {seq * 3} lamps, pier {seq}", seq) for seq in range(1, 9)]
    quote = {"type": "commitment", "quote": "she does not eat nuts, really badly allergic.", "seq": 5}
    told = json.dumps(json.loads(answer("Crates with lamps.", facts)) | {"anchors": [quote]})

    applied = compacted(told, span, anchors=anchors)

    assert isinstance(applied, AppliedCandidate)
    assert applied.layout.anchors_behind_marker > 0
    assert str(quote["quote"]) in applied.layout.anchors
    assert applied.tokens_after < 200 + sum(one.token_count for one in span)
    assert [one.content for one in applied.proposed_anchors] == [quote["quote"]], "it is stored"
