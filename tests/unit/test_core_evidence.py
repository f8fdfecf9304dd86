from __future__ import annotations

from dataclasses import replace

from app.core.validation.claims import DigestText, claims_of
from app.core.validation.evidence import background_entries, evidence_messages
from tests.unit.talk import entry, message

CHUNK = [
    message(1, "Good morning to you all."),
    message(2, "Where does the choir rehearse?"),
    message(3, "In the old chapel, with forty chairs."),
    message(4, "Fine by me."),
    message(5, "My bicycle has a flat tyre again."),
    message(6, "Try another pump, this one leaks."),
    message(7, "Lunch was excellent."),
    message(8, "By the way, the chapel is closed, so the choir rehearses in the school."),
    message(9, "Noted."),
]


def seqs(*texts: tuple[str, tuple[int, ...]]) -> list[int]:
    claims = claims_of([], [entry(f"F{number}", text, seqs=named) for number, (text, named) in enumerate(texts, 1)])
    return [one.seq for one in evidence_messages(claims, CHUNK)]


def test_what_a_claim_names_is_shown_with_what_it_answers_and_how_it_was_answered() -> None:
    assert seqs(("The bicycle has a flat tyre", (5,))) == [4, 5, 6]
    assert seqs(("Nothing of this was said", (9,))) == [8, 9]
    assert seqs() == []


def test_what_says_otherwise_is_shown_though_no_claim_names_it() -> None:
    assert 8 in seqs(("The choir rehearses in the chapel", (3,)))
    assert 8 in seqs(("The choir rehearses in the chapel", (5,))), "also where the sources are wrong"
    assert 8 not in seqs(("The chairs are forty", (3,))), "control: what shares no word is left out"


def test_every_sentence_of_a_claim_is_looked_for() -> None:
    assert {5, 6} <= set(seqs(("The choir rehearses in the chapel. The bicycle needs a pump.", (3,))))


def test_of_what_a_narrative_tells_the_answer_is_shown_too() -> None:
    narrative = claims_of([], [entry("N1", "The choir rehearses in the school.")])
    assert [one.seq for one in evidence_messages(narrative, CHUNK)] == [2, 8, 9]


def test_one_sentence_that_joins_what_three_messages_say_is_judged_by_all_of_them() -> None:
    talk = [
        message(1, "I swam 1000 metres in 32 minutes. Should I buy the card for 20 swims at 680 francs?"),
        message(2, "The card for 20 swims makes 34 francs each, 11 francs cheaper than a single swim."),
        message(4, "Weighed 82.3 kilograms on the scale this morning."),
        message(7, "Bought. Validity ends on 30 November, at Midnight Baths."),
    ]
    told = (
        "Swam 1000 metres in 32 minutes and bought the card for 20 swims at 680 francs, 34 francs each, 11 francs "
        "cheaper than a single swim, and its validity ends on 30 November at Midnight Baths."
    )
    assert [one.seq for one in evidence_messages(claims_of([], [entry("N1", told)]), talk)] == [1, 2, 7]


def test_a_digest_is_judged_by_its_stretch() -> None:
    digest = DigestText(id="d", topic="The choir", brief="It rehearses in the chapel.", from_seq=1, to_seq=4)
    assert [one.seq for one in evidence_messages(claims_of([], [], digests=[digest]), CHUNK)] == [2, 3]
    whole = replace(digest, to_seq=9)
    assert [one.seq for one in evidence_messages(claims_of([], [], digests=[whole]), CHUNK)][-1] == 8
    nowhere = replace(digest, from_seq=70, to_seq=80)
    assert evidence_messages(claims_of([], [], digests=[nowhere]), CHUNK) == ()


class TestBackground:
    def test_what_is_given_up_or_changed_is_told_and_what_no_claim_touches_is_not(self) -> None:
        old, kept, other = entry("F1", "The budget is 900"), entry("F2", "Has a cat"), entry("F3", "Likes tea")
        changed = replace(other, text="Likes tea with milk")
        after = [changed, kept, entry("F9", "The budget is 700"), replace(old, pruned=True, replaced_by=("F9",))]
        found = background_entries(claims_of([old, kept, other], after), CHUNK, [old, kept, other])
        assert found == (old, other)

    def test_words_that_no_message_holds_are_told_where_an_entry_holds_them(self) -> None:
        before = [entry("F1", "The user is Orla Byrne"), entry("F2", "Orla has a cat"), entry("F3", "The choir is old")]
        claims = claims_of(before, [*before, entry("F9", "Orla Byrne sings in the choir")])
        assert background_entries(claims, CHUNK, before) == (before[0],)

    def test_of_a_narrative_only_the_sentences_that_hold_them(self) -> None:
        told = entry("N1", "Orla plans a trip. They met in May. A dog was bought.")
        claims = claims_of([told], [told, entry("F9", "The dog belongs to Orla")])
        (found,) = background_entries(claims, CHUNK, [told])
        assert (found.id, found.text) == ("N1", "Orla plans a trip. A dog was bought.")
