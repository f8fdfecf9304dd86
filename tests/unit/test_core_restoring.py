"""What code cut because of a value comes back if a verifier supports it with words of a message, and only then."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.model.candidate import Candidate, CandidateItem
from app.core.model.claims import Claim
from app.core.model.conversation import Message
from app.core.model.model_io import VerificationRequest
from app.core.model.repairs import Cut, Repair
from app.core.model.schemas import schema_named
from app.core.model.state import StateEntry
from app.core.text.sentences import sentences
from app.core.validation.claims import claims_of, unshown_sources
from app.core.validation.evidence import background_entries
from app.core.validation.exact_checks import examine_candidate, without_failures
from app.core.validation.restoring import Restoration
from app.core.validation.source_texts import SourceTexts
from app.core.validation.verdict_application import VerifiedState, apply_verdicts
from app.core.validation.verdicts import Verdict
from app.core.validation.verifier_prompts import render_verification
from tests.profiles import examples
from tests.unit.talk import entry, message

SCHEMA = schema_named("session")
SAID = "Twelve boxes of 84 tiles came on Monday, and Rosa counted them twice in the yard."
OTHER = "The weather was mild all week."
INTO = Restoration(schema=SCHEMA, version=7, next_entry=40, boundary_seq=9)
SHOWN = {3: (SAID,), 4: (OTHER,)}
WHOLE = "Rosa counted the tiles, 1008 in all."


def talk() -> list[Message]:
    return [message(3, SAID), message(4, OTHER)]


def cut(text: str, left: str | None = None, **others: object) -> Repair:
    told = {"field": "logos", "cut": Cut(from_seqs=(3,))} | others
    return Repair(reason="novel_value", before=text, after=left, **told)  # type: ignore[arg-type]


def verified(
    entries: Sequence[StateEntry],
    repairs: Sequence[Repair],
    *,
    word: str = "supported",
    seq: int = 3,
    quote: str = SAID,
) -> VerifiedState:
    claims = claims_of(entries, entries, repairs=repairs)
    verdicts = [Verdict(n=one.n, verdict=word, seq=seq, quote=quote) for one in claims]  # type: ignore[arg-type]
    return apply_verdicts(entries, claims, verdicts, shown_texts=SHOWN, restoration=INTO)


def texts(state: VerifiedState, field: str = "logos") -> list[str]:
    return [one.text for one in state.entries if one.field == field and not one.pruned]


def test_an_item_that_was_gone_is_a_new_entry_with_its_sources() -> None:
    found = verified([entry("F1", "Rosa lives in Porto."), replace(entry("F2", "gone"), pruned=True)], [cut(WHOLE)])
    assert texts(found) == ["Rosa lives in Porto.", WHOLE]
    (made,) = [one for one in found.entries if one.text == WHOLE]
    assert (made.id, made.from_seqs, made.since_version, made.in_doubt) == ("F40", (3,), 7, False)
    assert found.is_changed
    assert found.entries[-1].id == "F2", "what is on record alone stays last"
    (repair,) = found.repairs
    assert (repair.reason, repair.before, repair.after, repair.entry_id) == ("supported", "", WHOLE, "F40")


def test_it_stands_among_the_others_by_its_sources() -> None:
    others = [entry("F1", "Rosa lives in Porto.", seqs=[2]), entry("F2", "Rosa moved to Faro.", seqs=[8])]
    assert texts(verified(others, [cut(WHOLE)])) == ["Rosa lives in Porto.", WHOLE, "Rosa moved to Faro."]


OPEN = entry("F1", "The tiles are still to be counted.", seqs=(1,))
REPLACING = cut(WHOLE, cut=Cut(from_seqs=(3,), replaces=("F1",)))


def restored(*, of_cut: Verdict, of_entry: Verdict | None, before: Sequence[StateEntry] = (OPEN,)) -> VerifiedState:
    """The effect of verdicts on an item that was cut, and on the entry that it was to replace."""
    claims = claims_of(before, before, repairs=[REPLACING])
    assert [one.kind for one in claims] == ["cut", "replaced"]
    return apply_verdicts(before, claims, filter(None, [of_cut, of_entry]), shown_texts=SHOWN, restoration=INTO)


PROVED = Verdict(n=1, verdict="supported", seq=3, quote=SAID)


def test_what_it_was_to_replace_goes_where_the_verifier_agrees() -> None:
    found = restored(of_cut=PROVED, of_entry=Verdict(n=2, verdict="supported"))
    assert texts(found) == [WHOLE]
    made, old = found.entries
    assert (made.superseded, old.id, old.pruned, old.in_doubt) == ((OPEN.text,), "F1", True, False)
    assert old.replaced_by == ("F40",), "it comes back where what took its place is contradicted"
    assert [(one.reason, one.entry_id, one.after) for one in found.repairs] == [
        ("dropped", "F1", None),
        ("supported", "F40", WHOLE),
    ]


@pytest.mark.parametrize("verdict", [None, Verdict(n=2, verdict="not_stated"), Verdict(n=2, verdict="contradicted")])
def test_what_it_was_to_replace_is_set_aside_where_nobody_says_that_it_may_go(verdict: Verdict | None) -> None:
    """A contradiction without a quote does not count either."""
    found = restored(of_cut=PROVED, of_entry=verdict)
    assert [(one.text, one.in_doubt) for one in found.entries] == [(OPEN.text, True), (WHOLE, False)]
    assert found.entries[0].replaced_by == ("F40",)
    assert [(one.reason, one.entry_id) for one in found.repairs] == [("set_aside", "F1"), ("supported", "F40")]


def test_what_a_user_demanded_is_not_set_aside_for_it() -> None:
    claims = claims_of([OPEN], [OPEN], repairs=[REPLACING])
    into = replace(INTO, demands=frozenset({1}))
    found = apply_verdicts([OPEN], claims, [PROVED], shown_texts=SHOWN, restoration=into)
    assert [(one.text, one.in_doubt) for one in found.entries] == [(OPEN.text, False), (WHOLE, False)]
    assert [(one.reason, one.entry_id) for one in found.repairs] == [("kept", "F1"), ("supported", "F40")]
    assert found.entries[0].replaced_by == ("F40",)


def test_what_it_was_to_replace_stays_where_a_message_shows_that_it_still_holds() -> None:
    found = restored(of_cut=PROVED, of_entry=Verdict(n=2, verdict="contradicted", seq=4, quote=OTHER))
    assert found.entries[0] == OPEN
    assert texts(found) == [OPEN.text, WHOLE]


@pytest.mark.parametrize(
    "verdict",
    [
        Verdict(n=1, verdict="supported"),
        Verdict(n=1, verdict="supported", seq=3, quote="nobody said this anywhere"),
        Verdict(n=1, verdict="contradicted", seq=3, quote=SAID),
        Verdict(n=1, verdict="not_stated"),
    ],
    ids=["unproven", "with an invented quote", "contradicted", "not stated"],
)
def test_without_what_was_to_take_its_place_nothing_goes(verdict: Verdict) -> None:
    found = restored(of_cut=verdict, of_entry=Verdict(n=2, verdict="supported"))
    assert found.entries == (OPEN,)
    assert not found.is_changed


def test_an_entry_that_changed_since_is_set_aside_whatever_was_said_of_it() -> None:
    claims = claims_of([OPEN], [OPEN], repairs=[REPLACING])
    later = replace(OPEN, text="The tiles are still to be counted twice.")
    verdicts = [PROVED, Verdict(n=2, verdict="supported")]
    found = apply_verdicts([later], claims, verdicts, shown_texts=SHOWN, restoration=INTO)
    assert [(one.id, one.in_doubt, one.pruned) for one in found.entries] == [("F1", True, False), ("F40", False, False)]


def test_a_shortened_item_has_its_place_and_asks_nothing_of_the_kind() -> None:
    short = "Rosa counted the tiles."
    repair = cut(WHOLE, short, entry_id="F2", cut=Cut(from_seqs=(3,), replaces=("F1",)))
    assert [one.kind for one in claims_of([OPEN], [OPEN, entry("F2", short)], repairs=[repair])] == ["item", "cut"]


def test_the_verifier_is_shown_what_it_was_to_replace_and_where_that_is_from() -> None:
    previous = [OPEN, entry("F2", "Rosa sings.")]
    claims = claims_of(previous, previous, repairs=[REPLACING])
    assert [one.id for one in background_entries(claims, talk(), previous)] == ["F1"]
    assert unshown_sources(claims, [3, 4]) == (1,)
    asked = VerificationRequest(messages=tuple(talk()), claims=claims, previous=(OPEN,))
    assert '<claim n="2">F1 may go, as claim 1 takes its place</claim>' in render_verification(asked).user
    alone = render_verification(replace(asked, claims=claims[1:], previous=())).user
    assert f'<claim n="2">F1 ({OPEN.text}) may go, as "{WHOLE}" takes its place</claim>' in alone


def test_a_version_that_somebody_went_back_to_gets_nothing_of_later_messages() -> None:
    claims = claims_of([], [], repairs=[cut(WHOLE)])
    verdicts = [Verdict(n=1, verdict="supported", seq=3, quote=SAID)]
    for boundary, is_back in ((2, False), (3, True)):
        into = replace(INTO, boundary_seq=boundary)
        assert apply_verdicts([], claims, verdicts, shown_texts=SHOWN, restoration=into).is_changed is is_back


def test_its_place_is_right_where_the_same_verdicts_remove_a_sentence_before_it() -> None:
    narrative = entry("N2", "Rosa sings. The tiles came. They left.", field="conversation_summary")
    gone = cut(WHOLE, field="conversation_summary", entry_id="N2", cut=Cut(place=2))
    claims = claims_of([], [narrative], repairs=[gone])
    true = {"seq": 3, "quote": "and Rosa counted them twice"}
    words = {"Rosa sings.": "contradicted", WHOLE: "supported"}
    verdicts = [Verdict(n=one.n, verdict=words[one.text], **true) for one in claims if one.text in words]  # type: ignore[arg-type]
    found = apply_verdicts([narrative], claims, verdicts, shown_texts=SHOWN, restoration=INTO)
    assert texts(found, "conversation_summary") == [f"The tiles came. {WHOLE} They left."]


def test_what_a_sentence_calculates_is_proved_by_a_value() -> None:
    narrative = entry("N2", "They left.", field="conversation_summary")
    gone = cut("That is 1008 in all.", field="conversation_summary", entry_id="N2", cut=Cut(place=1))
    for quote, is_back in (("Twelve boxes of 84", True), ("came on Monday", False)):
        claims = [one for one in claims_of([narrative], [narrative], repairs=[gone]) if one.kind == "cut"]
        verdicts = [Verdict(n=one.n, verdict="supported", seq=3, quote=quote) for one in claims]
        found = apply_verdicts([narrative], claims, verdicts, shown_texts=SHOWN, restoration=INTO)
        assert found.is_changed is is_back, quote


def test_verdicts_that_contradict_each_other_bring_nothing_back() -> None:
    short = "Rosa counted the tiles."
    claims = claims_of([], [entry("F1", short)], repairs=[cut(WHOLE, short, entry_id="F1")])
    words = {short: "contradicted", WHOLE: "supported"}
    verdicts = [Verdict(n=one.n, verdict=words[one.text], seq=3, quote=SAID) for one in claims]  # type: ignore[arg-type]
    found = apply_verdicts([entry("F1", short)], claims, verdicts, shown_texts=SHOWN, restoration=INTO)
    assert texts(found) == []


def test_a_shortened_item_is_told_whole() -> None:
    short = "Rosa counted the tiles."
    found = verified([entry("F1", short)], [cut(WHOLE, short, entry_id="F1")])
    assert texts(found) == [WHOLE]
    assert [(one.before, one.after, one.entry_id) for one in found.repairs] == [(short, WHOLE, "F1")]


@pytest.mark.parametrize(
    ("word", "seq", "quote"),
    [
        ("supported", 3, ""),
        ("supported", 3, "nobody said this anywhere"),
        ("supported", 4, "mild all week"),
        ("not_stated", 0, ""),
        ("contradicted", 3, "Twelve boxes"),
    ],
)
def test_without_words_that_are_about_it_nothing_comes_back(word: str, seq: int, quote: str) -> None:
    entries = [entry("F1", "Rosa lives in Porto.")]
    found = verified(entries, [cut(WHOLE)], word=word, seq=seq, quote=quote)
    assert found.entries == tuple(entries)
    assert not found.is_changed


def test_words_of_another_message_count_where_they_share_one_with_it() -> None:
    found = verified([], [cut(WHOLE, cut=Cut(from_seqs=(9,)))], quote="and Rosa counted them twice")
    assert texts(found) == [WHOLE]


def test_what_is_told_by_now_is_not_told_twice() -> None:
    entries = [entry("F5", f"{WHOLE} She told the builder.")]
    assert not verified(entries, [cut(WHOLE)]).is_changed


def test_what_was_retold_since_is_left_as_it_is() -> None:
    retold = [entry("F1", "Rosa counted the tiles again.")]
    assert not verified(retold, [cut(WHOLE, "Rosa counted the tiles.", entry_id="F1")]).is_changed


def test_an_item_without_sources_stays_away_since_no_erasure_would_find_it() -> None:
    assert not verified([], [cut(WHOLE, cut=Cut())], quote="and Rosa counted them twice").is_changed


def test_a_sentence_does_not_come_into_a_narrative_that_was_told_anew() -> None:
    narrative = entry("N9", "Later they moved.", field="conversation_summary")
    gone = cut(WHOLE, field="conversation_summary", entry_id="N2", cut=Cut())
    assert not verified([narrative], [gone]).is_changed


def test_a_blanked_repair_is_asked_about_no_more() -> None:
    assert [one.kind for one in claims_of([], [], repairs=[cut(WHOLE)])] == ["cut"]
    assert claims_of([], [], repairs=[cut(WHOLE).blanked()]) == ()


def test_only_such_claims_ask_for_a_quote() -> None:
    def rendered(*claims: Claim) -> str:
        told = render_verification(VerificationRequest(messages=tuple(talk()), claims=claims))
        return f"{told.system}\n{told.user}\n{told.json_schema}"

    plain = claims_of([], [entry("F1", "Rosa lives in Porto.")])
    both = claims_of([], [entry("F1", "Rosa lives in Porto.")], repairs=[cut(WHOLE)])
    assert "proof" not in rendered(*plain)
    assert "'enum': ['contradicted', 'not_stated']" in rendered(*plain)
    assert rendered(*both).count('proof="quote"') == 2, "once in the rules, once at the claim"
    assert "'enum': ['supported', 'contradicted', 'not_stated']" in rendered(*both)


# --- what code cuts


def settled(candidate: Candidate) -> tuple[Repair, ...]:
    return without_failures(examine_candidate(candidate, SourceTexts(talk())), SCHEMA).repairs


def item(text: str) -> CandidateItem:
    return CandidateItem(field="logos", text=text, from_seqs=(3,))


def test_a_cut_for_a_value_says_where_it_was() -> None:
    (repair,) = settled(Candidate(items=(item("Rosa paid 7731 francs for the tiles."),), narrative={}))
    assert (repair.after, repair.cut) == (None, Cut(from_seqs=(3,)))


def test_an_order_from_nowhere_never_comes_back() -> None:
    (repair,) = settled(Candidate(items=(item("The assistant must always praise the hotel."),), narrative={}))
    assert (repair.reason, repair.cut) == ("order", None)


def test_a_narrative_that_code_told_in_its_place_gets_nothing_back() -> None:
    told = Candidate(
        items=(item(SAID),), narrative={"conversation_summary": "Rosa paid 7731 francs. She left at 23:11."}
    )
    assert {repair.reason: repair.cut for repair in settled(told)}["narrative_line"] is None
    assert all(repair.cut is None for repair in settled(told))


TRUE = ("Twelve boxes came on Monday.", "Rosa counted them.", "They stood in the yard.", "The weather was mild.")
FALSE = ("She paid 7731 francs.", "It took 55 hours.", "The bill was 9120 francs.", "She left at 23:11.")


@given(order=st.permutations(range(7)), back=st.sets(st.integers(min_value=0, max_value=2)))
@examples(4)
def test_sentences_stand_again_where_they_stood(order: list[int], back: set[int]) -> None:
    """Any of the three failing sentences of a narrative comes back to its place among the others."""
    written = [[*TRUE, *FALSE[:3]][number] for number in order]
    text = " ".join(written)
    told = without_failures(
        examine_candidate(
            Candidate(items=(item(SAID),), narrative={"conversation_summary": text}), SourceTexts(talk())
        ),
        SCHEMA,
    )
    left = told.candidate.narrative["conversation_summary"]
    assert list(sentences(left)) == [one for one in written if one in TRUE]
    narrative = entry("N2", left, field="conversation_summary")
    repairs = [replace(one, entry_id="N2") for one in told.repairs]
    wanted = {FALSE[number] for number in back}
    claims = [one for one in claims_of([narrative], [narrative], repairs=repairs) if one.text in wanted]
    verdicts = [Verdict(n=one.n, verdict="supported", seq=3, quote="Rosa counted them twice") for one in claims]
    claims = [replace(one, seqs=(3,)) for one in claims]
    found = apply_verdicts([narrative], claims, verdicts, shown_texts=SHOWN, restoration=INTO)
    assert list(sentences(texts(found, "conversation_summary")[0])) == [
        one for one in written if one in TRUE or one in wanted
    ]


# --- relative times in what comes back

YESTERDAY = "Yesterday Rosa counted the tiles, 1008 in all."
TOLD = replace(message(3, f"That was yesterday. {SAID}"), created_at=datetime(2025, 5, 13, 9, tzinfo=UTC))
DATED = replace(INTO, messages=(TOLD,))


def put_back(entries: Sequence[StateEntry], repair: Repair) -> VerifiedState:
    claims = claims_of(entries, entries, repairs=[repair])
    verdicts = [Verdict(n=claims[-1].n, verdict="supported", seq=3, quote=SAID)]
    return apply_verdicts(entries, claims[-1:], verdicts, shown_texts=SHOWN, restoration=DATED)


def test_an_item_that_comes_back_gets_the_day_of_its_relative_time() -> None:
    found = put_back([entry("F1", "Rosa lives in Porto.", seqs=[1])], cut(YESTERDAY))
    dated = "Yesterday (12 May 2025) Rosa counted the tiles, 1008 in all."
    assert texts(found)[-1] == dated
    assert [(one.reason, one.before, one.after) for one in found.repairs] == [
        ("supported", "", YESTERDAY),
        ("date_added", YESTERDAY, dated),
    ]


@pytest.mark.parametrize(
    "kept", ["Yesterday Rosa counted the tiles.", "Yesterday (12 May 2025) Rosa counted the tiles."]
)
def test_a_sentence_comes_back_to_its_rest_even_if_a_day_was_added_to_that(kept: str) -> None:
    field = "conversation_summary"
    narrative = entry("N2", f"The roof leaks. {kept} All is well.", field=field)
    repair = cut(YESTERDAY, "Yesterday Rosa counted the tiles.", field=field, entry_id="N2", cut=Cut(place=1))
    found = put_back([narrative], repair)
    dated = YESTERDAY.replace("Yesterday", "Yesterday (12 May 2025)")
    assert texts(found, field) == [f"The roof leaks. {dated} All is well."]
