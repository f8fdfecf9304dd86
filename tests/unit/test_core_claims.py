from __future__ import annotations

from dataclasses import replace

import pytest

from app.core.model.claims import Claim
from app.core.model.repairs import Repair
from app.core.validation.claims import MAX_CLAIMS, DigestText, claim_batches, claims_of, unshown_sources
from tests.unit.talk import entry


def aside(name: str) -> Repair:
    return Repair(field="logos", reason="set_aside", before="x", after="x", entry_id=name)


def told(claims: tuple[Claim, ...]) -> list[tuple[str, str, str]]:
    return [(claim.kind, claim.target, claim.text) for claim in claims]


def test_new_and_changed_items_are_claims_and_what_stays_is_none() -> None:
    before = [entry("F1", "Lives in Riga"), entry("F2", "Likes tea", seqs=(2,))]
    after = [before[0], replace(before[1], text="Likes tea with milk", from_seqs=(2, 9)), entry("F3", "Has a dog")]
    claims = claims_of(before, after)
    assert told(claims) == [("item", "F2", "Likes tea with milk"), ("item", "F3", "Has a dog")]
    assert [claim.n for claim in claims] == [1, 2]
    assert claims[0].seqs == (2, 9)


def test_what_was_told_again_of_later_messages_is_a_claim() -> None:
    before = [entry("F1", "Lives in Riga", seqs=(1, 2))]
    assert told(claims_of(before, [replace(before[0], from_seqs=(1, 2, 9))])) == [("item", "F1", "Lives in Riga")]
    assert claims_of(before, [replace(before[0], from_seqs=(2,))]) == (), "one of its messages was erased"


def test_a_version_like_the_one_before_makes_no_claims() -> None:
    entries = [entry("F1", "Lives in Riga"), entry("N2", "They met. They talked.")]
    assert claims_of(entries, entries) == ()


def test_each_sentence_of_a_narrative_that_changed_is_a_claim() -> None:
    claims = claims_of([entry("N1", "They met.")], [entry("N7", "They met. Dr. Orr paid 4.50 euros!  He left.")])
    assert [claim.text for claim in claims] == ["They met.", "Dr. Orr paid 4.50 euros!", "He left."]
    assert {(claim.kind, claim.target, claim.seqs) for claim in claims} == {("sentence", "N7", ())}


def test_what_has_a_borrowed_value_comes_first() -> None:
    after = [entry("F1", "one"), entry("F2", "two"), entry("F3", "three")]
    borrowed = [
        Repair(field="logos", reason="borrowed_value", before="three", after="three"),
        Repair(field="logos", reason="borrowed_value", before="two", after="two", entry_id="F2"),
    ]
    assert [claim.target for claim in claims_of([], after, repairs=borrowed)] == ["F2", "F3", "F1"]


def test_a_replaced_entry_is_claimed_with_what_took_its_place() -> None:
    old, new = entry("F1", "The budget is 900", seqs=(3,)), entry("F9", "The budget is 700", seqs=(3, 12))
    after = [new, replace(old, pruned=True, replaced_by=("F9",))]
    item, replaced = claims_of([old], after)
    assert (item.kind, replaced.kind) == ("item", "replaced")
    assert replaced.statement == "F1 (The budget is 900) may go, as F9 (The budget is 700) takes its place"
    assert (replaced.text, replaced.target, replaced.successor_id, replaced.seqs) == (old.text, "F1", "F9", (3,))


def test_one_entry_that_two_items_replaced_is_claimed_with_each() -> None:
    old = entry("F1", "Likes tea and coffee")
    after = [entry("F8", "Tea"), entry("F9", "Coffee"), replace(old, pruned=True, replaced_by=("F8", "F9"))]
    assert [claim.successor_id for claim in claims_of([old], after) if claim.kind == "replaced"] == ["F8", "F9"]


def test_what_an_older_version_replaced_is_found_by_the_text_on_record() -> None:
    """The version between the two still had the entry on record; the next one has only its text."""
    before = [entry("F1", "The budget is 900"), entry("F2", "Has a cat", superseded=["Has a kitten"])]
    after = [before[1], entry("F9", "The budget is 700", superseded=["The budget is 900"])]
    assert [(one.target, one.successor_id) for one in claims_of(before, after) if one.kind == "replaced"] == [
        ("F1", "F9")
    ]


def test_an_entry_set_aside_is_claimed_as_dropped_or_as_replaced() -> None:
    before = [entry("F1", "Waits for Bob"), entry("F2", "Has a cat")]
    after = [
        replace(before[0], in_doubt=True),
        replace(before[1], in_doubt=True, replaced_by=("F9",)),
        entry("F9", "Wants a dog"),
    ]
    claims = claims_of(before, after, repairs=[aside("F1"), aside("F2")])
    assert [(claim.kind, claim.target, claim.successor_id) for claim in claims if claim.gives_up] == [
        ("dropped", "F1", None),
        ("replaced", "F2", "F9"),
    ]
    assert claims[1].statement == "F1 (Waits for Bob) may go, as untrue, settled or useless now"


def test_an_entry_that_was_kept_as_it_is_is_claimed_too() -> None:
    before = [entry("F1", "Waits for Bob"), entry("F2", "Has a cat")]
    after = [before[0], replace(before[1], replaced_by=("F9",)), entry("F9", "Wants a dog")]
    kept = [replace(aside(name), reason="kept") for name in ("F1", "F2")]
    claims = claims_of(before, after, repairs=kept)
    assert [(claim.kind, claim.target, claim.successor_id) for claim in claims if claim.gives_up] == [
        ("dropped", "F1", None),
        ("replaced", "F2", "F9"),
    ]
    assert not any(claim.gives_up for claim in claims_of(before, after)), "control: without that repair"


def test_an_entry_that_an_earlier_verification_left_in_doubt_was_not_given_up() -> None:
    before = [entry("F1", "Waits for Bob")]
    assert claims_of(before, [replace(before[0], in_doubt=True)]) == ()


def test_what_only_the_cap_pushed_out_is_no_claim() -> None:
    old, new = entry("F1", "Waits for Bob"), entry("F2", "Has a cat")
    assert claims_of([old], [replace(old, pruned=True), replace(new, pruned=True)]) == ()
    both_gone = [replace(old, pruned=True, replaced_by=("F2",)), replace(new, pruned=True)]
    assert claims_of([old], both_gone) == ()


def test_what_was_pushed_out_for_the_doubt_in_which_it_was_set_aside_is_a_claim() -> None:
    old, new = entry("F1", "Waits for Bob"), entry("F9", "Waits for Anna")
    out = replace(old, in_doubt=True, pruned=True)
    (claim,) = claims_of([old], [out], repairs=[aside("F1")])
    assert (claim.kind, claim.target, claim.seqs) == ("dropped", "F1", old.from_seqs)
    since = claims_of([], [out], repairs=[aside("F1")])
    assert [one.kind for one in since] == ["dropped"], "it was written after the version that was verified last"
    lost_both = [replace(out, replaced_by=("F9",)), replace(new, pruned=True)]
    assert [one.kind for one in claims_of([old], lost_both, repairs=[aside("F1")])] == ["dropped"]
    assert claims_of([old], [out]) == (), "control: it was in doubt for another reason"
    kept = replace(aside("F1"), reason="kept")
    assert claims_of([old], [replace(old, pruned=True)], repairs=[kept]) == (), "control: the cap pushed it out"


def test_each_digest_is_a_claim_about_its_stretch() -> None:
    digests = [
        DigestText(id="trip", topic="The trip", brief="They chose Porto. By train.", from_seq=4, to_seq=20),
        DigestText(id="bare", topic="Cats", brief="", from_seq=21, to_seq=30),
        DigestText(id="none", topic="", brief="", from_seq=31, to_seq=40),
    ]
    claims = claims_of([], [], digests=digests)
    assert told(claims) == [("digest", "trip", "The trip: They chose Porto. By train."), ("digest", "bare", "Cats")]
    assert claims[0].seqs == (4, 20)


def test_the_older_messages_on_which_claims_rest_are_named() -> None:
    old = entry("F1", "The budget is 900", seqs=(3, 5))
    after = [entry("F9", "The budget is 700", seqs=(3, 41)), replace(old, pruned=True, replaced_by=("F9",))]
    digest = DigestText(id="d", topic="t", brief="b", from_seq=1, to_seq=60)
    assert unshown_sources(claims_of([old], after, digests=[digest]), range(40, 61)) == (3, 5)


@pytest.mark.parametrize(("count", "sizes"), [(0, []), (1, [1]), (60, [60]), (61, [31, 30]), (121, [41, 41, 39])])
def test_many_claims_are_put_in_calls_of_about_the_same_size(count: int, sizes: list[int]) -> None:
    claims = claims_of([], [entry(f"F{number}", f"fact {number}") for number in range(1, count + 1)])
    calls = claim_batches(claims)
    assert [len(call) for call in calls] == sizes
    assert [claim for call in calls for claim in call] == list(claims)
    assert all(len(call) <= MAX_CLAIMS for call in calls)
