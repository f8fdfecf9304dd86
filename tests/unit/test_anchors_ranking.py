"""A language model's answer about the anchors that it was shown: an order of service, and claims."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from app.core.anchors.prompt_ids import prompt_ids_of
from app.core.anchors.ranking import ranked, ranking_of, repairs_of
from app.core.anchors.selection import serve
from app.core.model.anchors import Anchor, AnchorClaim, Ranking
from app.core.model.candidate import AnchorAnswer
from app.core.model.schemas import SESSION
from app.core.summarizer.candidate import parse_candidate
from app.core.validation.claims import claims_of
from app.core.validation.verdict_application import apply_verdicts
from app.core.validation.verdicts import verdicts_of
from tests.rows import each
from tests.unit.talk import fact
from tests.unit.test_anchors_transitions import anchors_of, said

SPAN = said(
    "Let's use Postgres for the orders database. My budget is 12,400 euros.",
    "A: I'll migrate the billing tables tonight.",
    "When do we ship the parser?",
    "A: I'll check the 12,400 euros with the bank.",
    "A: We'll use MySQL for the sessions.",
)
ANCHORS = anchors_of(SPAN)
NAMES = {anchor.content: name for name, anchor in prompt_ids_of(ANCHORS)}
POSTGRES, BUDGET, MIGRATE, SHIP, BANK, SESSIONS = ANCHORS


def ranking(*, anchors: list[Any] = (), dropped: list[Any] = (), known: list[Anchor] = ANCHORS) -> Ranking:  # type: ignore[assignment]
    answer = {"logos": [fact("Something", 1)], "anchors": list(anchors), "dropped": list(dropped)}
    candidate = parse_candidate(json.dumps(answer), SESSION)
    return ranking_of(candidate, known, SPAN, {one.seq: one for one in SPAN})


def keep(name: str) -> dict[str, Any]:
    return {"type": "decision", "quote": name, "seq": 1}


def drop(anchor: Anchor, reason: str, seq: int = 5) -> dict[str, Any]:
    return {"entry": NAMES[anchor.content], "reason": reason, "by_seq": seq}


def test_names_are_places_and_stay_whatever_is_left_out() -> None:
    assert [name for name, _ in prompt_ids_of(ANCHORS)] == ["P1-1", "P1-2", "P2-1", "P3-1", "P4-1", "P5-1"]
    assert [name for name, _ in prompt_ids_of(ANCHORS[2:])] == ["P2-1", "P3-1", "P4-1", "P5-1"]


def test_an_answer_names_passages_by_id_or_by_their_words() -> None:
    dropped = [{"entry": " [p2-1] ", "reason": "resolved", "by_seq": "#4"}, {"entry": "F3", "reason": "resolved"}]
    answer = {
        "logos": [fact("Something", 1)],
        "anchors": [keep("P1-1"), keep("P1-1 or so"), "p1-2"],
        "dropped": dropped,
    }
    candidate = parse_candidate(json.dumps(answer), SESSION)
    assert candidate.anchor_answers == (
        AnchorAnswer(id="P1-1", claims=None),
        AnchorAnswer(id="P1-2", claims=None),
        AnchorAnswer(id="P2-1", claims="resolved", by_seq=4),
    )
    assert [one.entry for one in candidate.dropped] == ["F3"], "a passage is no entry"
    assert [one.quote for one in candidate.anchors] == ["P1-1 or so"]


def test_what_is_named_is_confirmed_and_the_rest_passed_over() -> None:
    quote = {"type": "critical_fact", "quote": "budget is 12,400 euros", "seq": 1}
    found = ranking(anchors=[keep(NAMES[POSTGRES.content]), quote], dropped=[drop(MIGRATE, "resolved")])
    assert found.confirmed == (POSTGRES.id, BUDGET.id)
    assert found.passed_over == (SHIP.id, BANK.id, SESSIONS.id)
    assert found.claims == (AnchorClaim(anchor_id=MIGRATE.id, status="resolved", seq=5),)


def test_silence_on_all_of_them_ranks_nothing() -> None:
    assert ranking() == Ranking()
    assert ranking(anchors=[keep("P99-1")]) == Ranking()


def test_what_was_not_shown_or_came_from_elsewhere_is_not_passed_over() -> None:
    candidate = parse_candidate(json.dumps({"logos": [fact("x", 1)], "anchors": [keep("P1-1")]}), SESSION)
    shown = {one.seq: one if one.seq < 4 else replace(one, content="[withheld]") for one in SPAN}
    known = [replace(one, proposed_by="model") if one is MIGRATE else one for one in ANCHORS]
    assert ranking_of(candidate, known, SPAN, shown).passed_over == (BUDGET.id, SHIP.id)


@each(
    ("anchor", "reason", "seq", "claims"),
    [
        (SHIP, "no_longer_relevant", 0, "withdrawn"),
        (SHIP, "resolved", 5, "resolved"),
        (POSTGRES, "contradicted", 5, "superseded"),
        (SHIP, "no_longer_relevant", 3, "withdrawn"),  # no later message makes it so
        (SHIP, "no_longer_relevant", 99, "withdrawn"),
        (BUDGET, "no_longer_relevant", 1, None),  # a value that a user gave
        (BANK, "no_longer_relevant", 4, None),  # the same value, said by the assistant
        (SHIP, "no_longer_relevant", 5, "resolved"),
        (BUDGET, "no_longer_relevant", 5, "resolved"),  # until then it was an anchor
        (SHIP, "resolved", 2, None),  # only later messages can settle it
        (SHIP, "resolved", 99, None),  # this is not a message of the span
        (SHIP, "boring", 5, None),
    ],
)
def test_what_may_be_claimed(anchor: Anchor, reason: str, seq: int, claims: str | None) -> None:
    found = ranking(dropped=[drop(anchor, reason, seq)])
    shown_by = None if claims == "withdrawn" else seq
    assert [(claim.status, claim.seq) for claim in found.claims] == ([(claims, shown_by)] if claims else [])


def test_a_pasted_value_is_no_value_that_a_user_gave() -> None:
    pasted = replace(SHIP, content="When do we pay 9,999 euros?", pasted=True)
    known = [pasted if one is SHIP else one for one in ANCHORS]
    assert ranking(dropped=[drop(SHIP, "no_longer_relevant", 3)], known=known).claims
    own = [replace(one, pasted=False) for one in known]
    assert not ranking(dropped=[drop(SHIP, "no_longer_relevant", 3)], known=own).claims


def test_of_what_a_user_set_nothing_is_claimed() -> None:
    known = [replace(one, proposed_by="user") for one in ANCHORS]
    found = ranking(dropped=[drop(SHIP, "no_longer_relevant"), drop(MIGRATE, "resolved")], known=known)
    assert (found.claims, found.passed_over) == ((), ())


def test_what_was_passed_over_goes_behind_the_marker_first() -> None:
    anchors = [replace(one, importance=0.9 if one is SHIP else 0.2, passed_over=False) for one in ANCHORS]
    room = sum(one.token_count for one in anchors)
    before = serve(anchors, through_seq=9, held_seqs=(), token_limit=room)
    after = serve(ranked(anchors, Ranking(passed_over=(SHIP.id,))), through_seq=9, held_seqs=(), token_limit=room)
    assert SHIP.content in [one.content for one in before.shown]
    assert SHIP.content not in [one.content for one in after.shown]
    assert before.behind_marker
    again = serve(ranked(anchors, Ranking(passed_over=(SHIP.id,))), through_seq=9, held_seqs=(), token_limit=None)
    assert SHIP.content in [one.content for one in again.shown], "while there is room it stays"


def test_what_is_said_to_be_over_goes_first_of_all_until_it_is_named_again() -> None:
    known = [replace(one, importance=0.9 if one is SHIP else 0.2, passed_over=one is not SHIP) for one in ANCHORS]
    after = ranked(known, ranking(dropped=[drop(SHIP, "resolved")]))
    assert [one.content for one in after if one.claimed_status] == [SHIP.content]
    room = sum(one.token_count for one in after)
    shown = [one.content for one in serve(after, through_seq=9, held_seqs=(), token_limit=room).shown]
    assert SHIP.content not in shown
    assert shown, "though it weighs most, and all others were passed over"
    again = ranked(after, ranking(anchors=[keep(NAMES[SHIP.content])]))
    assert [one.claimed_status for one in again] == [None] * len(again)
    assert SHIP.content in [one.content for one in serve(again, through_seq=9, held_seqs=(), token_limit=room).shown]


def test_what_may_not_be_claimed_is_passed_over_also_when_it_is_of_an_earlier_message() -> None:
    candidate = parse_candidate(
        json.dumps({"logos": [fact("x", 5)], "dropped": [drop(BUDGET, "no_longer_relevant", 0)]}), SESSION
    )
    found = ranking_of(candidate, ANCHORS, SPAN[4:], {one.seq: one for one in SPAN[4:]})
    assert (found.claims, found.passed_over) == ((), (BUDGET.id, SESSIONS.id))


def test_what_is_given_up_is_on_record_as_entries_are() -> None:
    known = [replace(one, proposed_by="user") if one is MIGRATE else one for one in ANCHORS]
    dropped = [drop(SHIP, "resolved"), drop(BUDGET, "no_longer_relevant"), drop(MIGRATE, "resolved")]
    found = ranking(dropped=[*dropped, drop(POSTGRES, "contradicted", 99), drop(BANK, "boring")], known=known)
    told = [(one.field, one.reason, one.before, one.after, one.entry_id) for one in repairs_of(known, found)]
    assert told == [
        ("anchors", "set_aside", BUDGET.content, BUDGET.content, None),
        ("anchors", "kept", MIGRATE.content, MIGRATE.content, None),
        ("anchors", "set_aside", SHIP.content, SHIP.content, None),
    ]
    assert MIGRATE.id not in found.passed_over
    assert list(repairs_of(known, ranking())) == []


@pytest.mark.parametrize(
    ("verdict", "agreed", "refused"),
    [("supported", 1, 0), ("not_stated", 0, 1), ("contradicted", 0, 1), ("what?", 0, 0)],
)
def test_a_claim_takes_effect_only_when_it_is_supported(verdict: str, agreed: int, refused: int) -> None:
    claimed = replace(MIGRATE, claimed_status="resolved", claimed_seq=5)
    (claim,) = claims_of((), (), anchors=[claimed, SHIP])
    assert (claim.kind, claim.target, claim.seqs) == ("anchor", str(MIGRATE.id), (2, 5))
    assert claim.statement == f"What #2 says ({MIGRATE.content}) is answered, done or settled by #5"
    told = json.dumps([{"n": 1, "verdict": verdict, "seq": 5, "quote": SESSIONS.content}])
    shown = {one.seq: (one.content,) for one in SPAN}
    found = apply_verdicts((), [claim], verdicts_of(told, [claim]), shown_texts=shown)
    assert (len(found.supported_anchor_claims), len(found.unsupported_anchor_claims), found.is_changed) == (
        agreed,
        refused,
        False,
    )
