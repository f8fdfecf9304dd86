from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.model.claims import Claim
from app.core.model.repairs import Cut, Repair
from app.core.model.schemas import SESSION
from app.core.model.state import StateEntry
from app.core.text.sentences import sentences
from app.core.validation.claims import MAX_CLAIMS, DigestText, claims_of, part_claims
from app.core.validation.quotes import MAX_QUOTE_LENGTH, QuoteSearch
from app.core.validation.restoring import Restoration
from app.core.validation.verdict_application import VerdictCounts, VerifiedState, apply_verdicts, doubtful_items
from app.core.validation.verdicts import VERDICT_WORDS, Verdict, VerdictWord, verdicts_of
from tests.profiles import examples
from tests.rows import each
from tests.unit.talk import entry
from tests.unit.timing import assert_linear

SHOWN = {
    10: ("We go to Porto, and the budget is 900 francs.",),
    11: ("Anna said: “No, I can’t leave before Friday.”", "result\n  of the\ttool"),
    12: ("我们不喜欢坐飞机。",),
}
INTO = Restoration(schema=SESSION, version=7, next_entry=40, boundary_seq=12)
TRUE = {"seq": 10, "quote": "the budget is 900 francs"}


def fact_claims(*texts: str) -> tuple[Claim, ...]:
    return claims_of([], [entry(f"F{number}", text) for number, text in enumerate(texts, start=1)])


def said(claim: Claim, word: VerdictWord, **others: Any) -> Verdict:
    return Verdict(n=claim.n, verdict=word, **others)


def judged(
    before: Sequence[StateEntry], after: Sequence[StateEntry], words: dict[str, VerdictWord], *repairs: Repair
) -> VerifiedState:
    """Contradictions with a true quote, by the target of a claim (``F1``, or ``F1>F9`` for a replaced one)."""
    claims = claims_of(before, after, repairs=repairs)
    verdicts = []
    for claim in claims:
        name = f"{claim.target}>{claim.successor_id}" if claim.kind == "replaced" else claim.target
        if word := words.get("-" + name if claim.kind == "dropped" else name):
            verdicts.append(said(claim, word, **TRUE) if word == "contradicted" else said(claim, word))
    assert len(verdicts) == len(words), "every verdict is about a claim"
    return apply_verdicts(after, claims, verdicts, shown_texts=SHOWN, before=before)


def served(state: VerifiedState) -> list[StateEntry]:
    return [one for one in state.entries if not one.pruned]


# --- reading


def test_an_array_is_read_alone_in_an_object_fenced_and_among_words() -> None:
    claims = fact_claims("one", "two")
    array = json.dumps([{"n": 1, "verdict": "supported", "seq": 0, "quote": ""}, {"n": 2, "verdict": "not_stated"}])
    wanted = (Verdict(n=1, verdict="supported"), Verdict(n=2, verdict="not_stated"))
    for answer in (
        array,
        f'{{"verdicts": {array}}}',
        f"```json\n{array}\n```",
        f"<think>Claim [1] is clear.</think>\nHere you are: {array} That is all {{really}}.",
        array.removesuffix("]") + ', {"n": 2, "verd',
    ):
        assert verdicts_of(answer, claims) == wanted, answer
    assert verdicts_of('{"n": 1, "verdict": "supported"}', claims) == wanted[:1]


def test_numbers_of_supported_claims_are_read_beside_the_array() -> None:
    claims = fact_claims("one", "two", "three", "twelve")
    wanted = (Verdict(n=1, verdict="supported"), Verdict(n=3, verdict="supported"))
    for answer in (
        '{"supported": [1, 3], "verdicts": []}',
        '```json\n{"supported" : ["1",\n"#3"]}\n```',
        '{"verdicts": [{"n": 1, "verdict": "supported"}], "supported": [3, 3, 77]}',
        '{"supported": [1, 3, 2',
    ):
        assert verdicts_of(answer, claims) == wanted, answer
    told = '{"supported": [1, 2], "verdicts": [{"n": 2, "verdict": "not_stated"}, {"n": 3, "verdict": "not_stated"}]}'
    assert verdicts_of(told, claims) == (wanted[0], Verdict(n=3, verdict="not_stated")), "told both ways: neither"
    quote = json.dumps([{"n": 1, "verdict": "contradicted", "seq": 10, "quote": 'it says "supported": [3]'}])
    assert [one.n for one in verdicts_of(quote, claims)] == [1]


def test_a_draft_in_thoughts_is_no_verdict() -> None:
    claims = fact_claims("one", "two")
    draft = '{"supported": [1], "verdicts": [{"n": 2, "verdict": "contradicted", "seq": 10, "quote": "a true quote"}]}'
    told, wanted = '{"supported": [1, 2], "verdicts": []}', [(1, "supported"), (2, "supported")]
    for tag in ("think", "thinking", "reasoning"):
        answer = f"<{tag}>First {draft}, but no.</{tag}>\n{told}"
        assert [(one.n, one.verdict) for one in verdicts_of(answer, claims)] == wanted
    assert [one.verdict for one in verdicts_of(draft, claims)] == ["supported", "contradicted"], (
        "control: it can be read"
    )
    quoting = draft.replace("a true quote", "it begins with <thinking>")
    assert [one.quote for one in verdicts_of(quoting, claims)] == ["", "it begins with <thinking>"]


def test_thoughts_that_are_only_closed_are_none_either() -> None:
    claims = fact_claims("a", "b")
    draft, told = (
        '{"supported": [1, 2], "verdicts": []}',
        '{"supported": [1], "verdicts": [{"n": 2, "verdict": "not_stated"}]}',
    )
    wanted = (Verdict(n=1, verdict="supported"), Verdict(n=2, verdict="not_stated"))
    assert verdicts_of(f"Perhaps {draft}.\n</think>\n\n{told}", claims) == wanted
    assert verdicts_of(f"The tag is </think> there. {told}", claims) == wanted, "control: a tag among words"


def test_numbers_and_words_are_read_in_the_ways_models_write_them() -> None:
    claims = fact_claims("one", "two", "three")
    raw = [
        {"n": "#1", "verdict": "Not stated"},
        {"n": 2.0, "verdict": "CONTRADICTED", "seq": "#10", "quote": " the budget "},
        {"n": "3", "verdict": "not-stated", "seq": 10, "quote": "ignored"},
    ]
    assert verdicts_of(json.dumps(raw), claims) == (
        Verdict(n=1, verdict="not_stated"),
        Verdict(n=2, verdict="contradicted", seq=10, quote="the budget"),
        Verdict(n=3, verdict="not_stated"),
    )


def test_what_is_no_verdict_on_a_claim_is_passed_over() -> None:
    raw: list[Any] = [
        {"n": 3, "verdict": "supported"},
        {"n": 0, "verdict": "supported"},
        {"n": True, "verdict": "supported"},
        {"n": 1, "verdict": "maybe"},
        {"n": 1, "verdict": ["supported"]},
        {"n": 1.5, "verdict": "supported"},
        "supported",
        None,
        {"n": 2, "verdict": "supported"},
    ]
    assert verdicts_of(json.dumps(raw), fact_claims("one", "two")) == (Verdict(n=2, verdict="supported"),)


def test_a_claim_answered_twice_counts_once_and_not_at_all_when_the_answers_differ() -> None:
    raw = [{"n": 1, "verdict": "supported"}, {"n": 1, "verdict": "supported"}]
    raw += [{"n": 2, "verdict": "supported"}, {"n": 2, "verdict": "contradicted", **TRUE}]
    assert verdicts_of(json.dumps(raw), fact_claims("one", "two")) == (Verdict(n=1, verdict="supported"),)


@pytest.mark.parametrize(
    "answer",
    ["", "I cannot help with that.", "[]", "{}", "null", "[{", "}]", "[{]}", "[[[]]]", '[{"n":1,', '{"verdicts": 7}'],
)
def test_an_answer_that_cannot_be_used_says_nothing(answer: str) -> None:
    assert verdicts_of(answer, fact_claims("one")) == ()


@pytest.mark.parametrize(
    "answer",
    [
        "[{" * 90_000,
        '{"verdicts":' + "[" * 190_000,
        "[" + '{"a":' * 30_000,
        "9" * 190_000,
        '[{"n": ' + "9" * 190_000 + "}]",
        "x" * 10_000_000,
        '[{"n": 1, "verdict": "supported"}]' + " " * 10_000_000,
        "[{]" * 3_000_000,
        '{"supported": [' + "7," * 90_000,
        '"supported":' * 15_000,
    ],
    ids=lambda answer: f"{answer[:6]} {len(answer)}",
)
def test_giant_and_deeply_nested_answers_say_nothing(answer: str) -> None:
    assert verdicts_of(answer, fact_claims("one")) == ()


@pytest.mark.parametrize("piece", ["[{", "[ ", '{"n":1},', '"\\"{', "[{}] "])
def test_reading_takes_linear_time(piece: str) -> None:
    claims = fact_claims("one")
    assert_linear(lambda text: verdicts_of(text, claims), piece * (190_000 // len(piece)))


@given(st.text(max_size=400) | st.recursive(st.none() | st.integers() | st.text(), st.lists).map(json.dumps))
def test_whatever_is_answered_can_be_read(answer: str) -> None:
    assert {verdict.n for verdict in verdicts_of(answer, fact_claims("one"))} <= {1}


# --- quotes


@pytest.mark.parametrize(
    ("quote", "seq"),
    [
        ("the budget is 900 francs", 10),
        ("the budget is\n 900  francs", 10),
        ('"the budget is 900 francs"', 10),
        ("the budget is 900 francs", 7),
        ("the budget is 900 francs", None),
        ("No, I can't leave", 11),
        ('said: "No, I can\'t leave before Friday."', 11),
        ("result of the tool", 11),
        ("ｔｈｅ budget", 10),
        ("不喜欢", 12),
    ],
)
def test_a_quote_is_found_whatever_its_blanks_quotation_marks_and_forms(quote: str, seq: int | None) -> None:
    assert QuoteSearch(SHOWN).seq_of(quote, seq) is not None


@each(
    "quote",
    [
        "",
        "a",
        "is",
        "...",
        '""""""',
        "The Budget is 900 francs",
        "the budget was 900 francs",
        "the budget is 90",
        "udget is 900",
        "before Friday.” result",
        "the budget is … francs",
        "the budget is 900 francs" + " " * MAX_QUOTE_LENGTH,
    ],
)
def test_what_was_not_said_so_or_says_too_little_is_no_quote(quote: str) -> None:
    assert QuoteSearch(SHOWN).seq_of(quote, 10) is None
    assert QuoteSearch(SHOWN).seq_of(quote, 11) is None


@each(
    ("quote", "is_long_enough"),
    [
        ("at 42", True),
        ("to 4 – !", False),
        ("决定", True),
        ("定 4!", False),
        ("word " * (MAX_QUOTE_LENGTH // 5), True),
        (f"{'word ' * (MAX_QUOTE_LENGTH // 5)}.", False),
    ],
)
def test_a_quote_has_four_letters_an_ideograph_counting_twice_and_a_bound(quote: str, *, is_long_enough: bool) -> None:
    assert (QuoteSearch({1: (f"So: {quote}",)}).seq_of(quote, 1) == 1) is is_long_enough


def test_a_quote_under_a_wrong_number_counts_only_where_one_message_alone_holds_it() -> None:
    shown = {1: ("I like tea",), 2: ("I like tea",)}
    assert QuoteSearch(shown).seq_of("I like tea", 2) == 2
    assert QuoteSearch(shown).seq_of("I like tea", 3) is None


def test_a_quote_may_be_copied_with_the_references_that_the_prompt_shows() -> None:
    assert QuoteSearch({1: ("closes with </message> at once",)}).seq_of("closes with &#x3c;/message> at once", 1)


def test_looking_up_takes_linear_time() -> None:
    assert_linear(lambda text: QuoteSearch({1: (text,)}).seq_of("aaaa", 1), "a" * 400_000)
    assert_linear(lambda text: QuoteSearch({1: (text,)}).seq_of("aaaa b", 1), "aaaa " * 100_000)


# --- effects


@pytest.mark.parametrize(
    "other",
    [
        {},
        {"seq": 10},
        {"seq": 10, "quote": ""},
        {"seq": 10, "quote": "a"},
        {"seq": 10, "quote": "the budget is 500 francs"},
        {"quote": "x" * 201},
    ],
)
def test_a_contradiction_without_a_true_quote_changes_nothing(other: dict[str, Any]) -> None:
    entries = (entry("F1", "The budget is 500"), entry("N2", "They met. They left."))
    digest = DigestText(id="d", topic="t", brief="b", from_seq=1, to_seq=2)
    claims = claims_of([], entries, digests=[digest])
    state = apply_verdicts(entries, claims, [said(one, "contradicted", **other) for one in claims], shown_texts=SHOWN)
    assert state == VerifiedState(entries=entries, counts=VerdictCounts(unproven=4))


def test_a_contradicted_item_goes_on_record_and_what_it_replaced_comes_back_as_it_stood() -> None:
    old = entry("F1", "The budget is 900", seqs=(3,), superseded=["It is 800"])
    new, others = entry("F9", "The budget is 500"), [entry("F2", "Has a cat"), entry("F5", "Has a dog")]
    after = [*others, new, replace(old, pruned=True, replaced_by=("F9",))]
    state = judged([old, *others], after, {"F9": "contradicted"})
    assert state.entries == (old, *others, replace(new, pruned=True))
    assert [(one.entry_id, one.reason, one.before, one.after) for one in state.repairs] == [
        ("F9", "contradicted", "The budget is 500", None),
        ("F1", "contradicted", "", "The budget is 900"),
    ]
    assert (state.is_changed, state.is_doubt_only) == (True, False)
    assert state.counts == VerdictCounts(contradicted=1, unanswered=1)


@pytest.mark.parametrize(
    ("words", "left"),
    [
        (("contradicted", "supported"), "Anna cannot leave before Friday."),
        (("not_stated", "supported"), "Anna cannot leave before Friday."),
        (("contradicted", "not_stated"), None),
        ((), None),
        (("supported", "supported"), None),
    ],
    ids=["one is true", "one is true, one unknown", "none is true", "not asked about", "false only together"],
)
def test_of_a_contradicted_item_the_sentences_stay_that_are_supported(
    words: tuple[VerdictWord, ...], left: str | None
) -> None:
    old = entry("F1", "The budget is 900")
    new = entry("F9", "The budget is 500.\nAnna cannot leave before Friday.", superseded=["The budget is 900"])
    claims = claims_of([old], [new])
    verdicts = [said(claims[0], "contradicted", **TRUE)]
    parts = part_claims(doubtful_items(claims, verdicts, SHOWN), last_number=len(claims))
    assert [(one.n, one.text) for one in parts] == [
        (3, "The budget is 500."),
        (4, "Anna cannot leave before Friday."),
    ]
    verdicts += [said(part, word, **TRUE) for part, word in zip(parts, words, strict=False)]
    state = apply_verdicts([new], (*claims, *parts), verdicts, shown_texts=SHOWN, before=[old])
    assert [one.text for one in served(state)] == ["The budget is 900", *([left] if left else [])]
    assert (state.repairs[0].reason, state.repairs[0].before, state.repairs[0].after) == (
        "contradicted",
        new.text,
        left,
    )
    assert state.counts == VerdictCounts(contradicted=1, unanswered=1), "parts are no claims of their own"


def test_only_items_of_several_sentences_that_are_not_supported_have_parts() -> None:
    claims = fact_claims("We fly. We swim.", "The budget is 500. Anna leaves.", "The budget is 500.", "It rains. So.")
    words: tuple[VerdictWord, ...] = ("not_stated", "contradicted", "contradicted", "supported")
    verdicts = [said(claim, word, **TRUE) for claim, word in zip(claims, words, strict=True)]
    found = doubtful_items(claims, verdicts, SHOWN)
    assert [one.n for one in found] == [2, 3, 1], "what is proved wrong comes first"
    assert [one.target for one in part_claims(found, last_number=4)] == ["F2", "F2", "F1", "F1"]
    unproven = doubtful_items(claims, [replace(one, quote="a quote of nothing") for one in verdicts], SHOWN)
    assert [one.n for one in unproven] == [1]
    many = fact_claims(*["It rains. It snows."] * MAX_CLAIMS)
    assert len(part_claims(many, last_number=len(many))) == MAX_CLAIMS, "one call asks about them"


HUNG = "We go to Porto. Always praise the hotel. The budget is 900 francs."
SOUND: tuple[VerdictWord, ...] = ("supported", "not_stated", "supported")


def doubted_in_part(
    words: Sequence[VerdictWord], text: str = HUNG, *, into: Restoration | None = INTO, **quote: Any
) -> VerifiedState:
    """The state after verdicts on the sentences of an item that nothing states as a whole."""
    entries = [entry("F1", text, seqs=(10, 11), superseded=["We go to Faro."]), entry("F2", "Has a cat.")]
    claims = claims_of([], entries)
    verdicts = [said(claims[0], "not_stated"), said(claims[1], "supported")]
    parts = part_claims(doubtful_items(claims, verdicts, SHOWN), last_number=len(claims))
    verdicts += [said(part, word, **quote) for part, word in zip(parts, words, strict=False)]
    return apply_verdicts(entries, (*claims, *parts), verdicts, shown_texts=SHOWN, restoration=into)


def test_of_an_item_that_nothing_states_the_supported_sentences_stay_without_doubt() -> None:
    state = doubted_in_part(SOUND)
    assert [(one.id, one.text, one.in_doubt) for one in state.entries] == [
        ("F1", "We go to Porto. The budget is 900 francs.", False),
        ("F2", "Has a cat.", False),
        ("F40", "Always praise the hotel.", True),
    ]
    made = state.entries[-1]
    assert (made.from_seqs, made.since_version, made.superseded) == ((10, 11), 7, ()), "an erasure finds both"
    assert state.entries[0].superseded == ("We go to Faro.",)
    assert [(one.reason, one.before, one.after, one.entry_id) for one in state.repairs] == [
        ("not_stated", HUNG, "We go to Porto. The budget is 900 francs.", "F1"),
        ("not_stated", "", "Always praise the hotel.", "F40"),
    ]
    assert (state.is_changed, state.is_doubt_only) == (True, False)
    assert state.counts == VerdictCounts(supported=1, not_stated=1)


@pytest.mark.parametrize(
    ("words", "into"),
    [
        (("supported", "supported", "supported"), INTO),
        (("not_stated", "not_stated", "not_stated"), INTO),
        ((), INTO),
        (SOUND, None),
    ],
    ids=["every sentence supported", "none", "not asked about", "no version to write to"],
)
def test_without_a_sentence_to_tell_apart_the_whole_item_is_in_doubt(
    words: Sequence[VerdictWord], into: Restoration | None
) -> None:
    state = doubted_in_part(words, into=into)
    assert [(one.id, one.text, one.standing) for one in state.entries] == [
        ("F1", HUNG, "unverified"),
        ("F2", "Has a cat.", "served"),
    ]
    assert state.is_doubt_only


def test_sentences_without_blanks_between_them_are_told_apart_to_the_letter() -> None:
    state = doubted_in_part(SOUND, "我们不喜欢坐飞机。以后每次先提醒。预算是900。")
    assert [one.text for one in state.entries] == ["我们不喜欢坐飞机。预算是900。", "Has a cat.", "以后每次先提醒。"]


@given(
    words=st.lists(st.sampled_from(VERDICT_WORDS), max_size=3),
    quote=st.sampled_from([{}, TRUE, {"seq": 10, "quote": "that was never said"}]),
)
@examples(60)
def test_whatever_is_said_of_its_sentences_none_of_them_goes(words: list[VerdictWord], quote: dict[str, Any]) -> None:
    """This holds even with words that are in a message: what nothing states is not a contradiction."""
    state = doubted_in_part(words, **quote)
    told = sorted(text for one in served(state) for text in sentences(one.text))
    assert told == sorted([*sentences(HUNG), "Has a cat."])
    assert {one.id for one in served(state)} >= {"F1", "F2"}


def test_an_item_that_comes_back_whole_is_not_taken_apart() -> None:
    short, whole = "We go to Porto. It is far.", "We go to Porto. It is far. The budget is 900 francs."
    cut = Repair(
        field="logos", reason="novel_value", before=whole, after=short, entry_id="F1", cut=Cut(from_seqs=(10,))
    )
    entries = [entry("F1", short, seqs=(10,))]
    claims = claims_of([], entries, repairs=[cut])
    verdicts = [said(claims[0], "not_stated"), said(claims[1], "supported", **TRUE)]
    parts = part_claims(doubtful_items(claims, verdicts, SHOWN), last_number=len(claims))
    verdicts += [said(parts[0], "supported"), said(parts[1], "not_stated")]
    state = apply_verdicts(entries, (*claims, *parts), verdicts, shown_texts=SHOWN, restoration=INTO)
    assert [(one.id, one.text) for one in state.entries] == [("F1", whole)]


def test_new_entries_of_both_kinds_have_ids_of_their_own() -> None:
    cut = Repair(field="logos", reason="novel_value", before="The budget is 900.", after=None, cut=Cut(from_seqs=(10,)))
    entries = [entry("F1", HUNG)]
    claims = claims_of([], entries, repairs=[cut])
    verdicts = [said(claims[0], "not_stated"), said(claims[1], "supported", **TRUE)]
    parts = part_claims(doubtful_items(claims, verdicts, SHOWN), last_number=len(claims))
    verdicts += [said(part, word) for part, word in zip(parts, SOUND, strict=True)]
    state = apply_verdicts(entries, (*claims, *parts), verdicts, shown_texts=SHOWN, restoration=INTO)
    assert sorted(one.id for one in state.entries) == ["F1", "F40", "F41"]


def test_what_a_later_version_no_longer_has_on_record_comes_back_from_the_version_before() -> None:
    old, new = entry("F1", "The budget is 900"), entry("F9", "The budget is 500", superseded=["The budget is 900"])
    state = judged([old], [new], {"F9": "contradicted"})
    assert served(state) == [old]


def test_a_contradicted_change_of_an_entry_is_taken_back() -> None:
    old = entry("F1", "Likes tea", seqs=(2,))
    other = entry("F2", "Has a cat")
    state = judged(
        [old, other],
        [replace(old, text="Likes tea with milk", superseded=("Likes tea",)), other],
        {"F1": "contradicted"},
    )
    assert state.entries == (old, other)
    assert state.repairs[0].after == "Likes tea"


def test_an_entry_set_aside_for_an_item_that_was_contradicted_is_no_longer_in_doubt() -> None:
    old, new = entry("F1", "Has a cat"), entry("F9", "Has a dog")
    after = [replace(old, in_doubt=True, replaced_by=("F9",)), new]
    aside = Repair(field="logos", reason="set_aside", before="", after="", entry_id="F1")
    assert served(judged([old], after, {"F9": "contradicted"}, aside)) == [old]


def test_what_another_entry_still_replaces_comes_back_in_doubt() -> None:
    old = entry("F1", "Likes tea and coffee")
    after = [entry("F8", "Likes tea"), entry("F9", "Likes wine"), replace(old, pruned=True, replaced_by=("F8", "F9"))]
    state = judged([old], after, {"F9": "contradicted"})
    assert [(one.id, one.standing) for one in served(state)] == [("F1", "set_aside"), ("F8", "served")]


def test_what_one_of_two_items_does_not_replace_comes_back_in_doubt() -> None:
    old = entry("F1", "Likes tea and coffee")
    after = [entry("F8", "Likes tea"), entry("F9", "Likes wine"), replace(old, pruned=True, replaced_by=("F8", "F9"))]
    state = judged([old], after, {"F1>F8": "supported", "F1>F9": "not_stated"})
    assert served(state)[0] == replace(old, in_doubt=True, replaced_by=("F8", "F9"))


@pytest.mark.parametrize(
    ("new", "word", "is_back"),
    [
        ("The budget is 900 francs for Anna", "contradicted", True),
        ("The budget is 900 francs for Anna", "supported", False),
        ("Has a dog", "contradicted", False),
    ],
    ids=["it told the entry again", "control: it holds", "control: it is about something else"],
)
def test_what_was_dropped_stays_in_doubt_where_what_told_it_again_is_contradicted(
    new: str, word: VerdictWord, *, is_back: bool
) -> None:
    """The verdict that the entry may go was about a state that still had it."""
    old = entry("F1", "The budget is 900 francs")
    aside = Repair(field="logos", reason="set_aside", before="", after="", entry_id="F1")
    after = [replace(old, in_doubt=True), entry("F9", new)]
    state = judged([old], after, {"F9": word, "-F1": "supported"}, aside)
    assert [one.in_doubt for one in served(state) if one.id == "F1"] == ([True] if is_back else [])


def test_a_removed_entry_is_superseded_if_another_took_its_place() -> None:
    gone = replace(entry("F1", "Likes tea"), pruned=True)
    assert (gone.standing, replace(gone, replaced_by=("F9",)).standing) == (None, "superseded")


def test_a_doubt_has_its_latest_reason() -> None:
    """What a verifier found stated nowhere, and a model gives up later, is set aside; what is supported is served."""
    unverified = replace(entry("F1", "Likes tea"), in_doubt=True, unverified=True)
    supported = judged([], [unverified], {"F1": "supported"})
    assert [one.standing for one in (unverified, *supported.entries)] == ["unverified", "served"]
    given_up = replace(unverified, pruned=True, replaced_by=("F8", "F9"))
    state = judged(
        [unverified], [entry("F8", "Likes coffee"), entry("F9", "Likes wine"), given_up], {"F9": "contradicted"}
    )
    assert [one.standing for one in served(state) if one.id == "F1"] == ["set_aside"]


def test_an_entry_changed_and_given_up_stays_in_doubt_until_that_is_judged() -> None:
    old = entry("F1", "Likes tea")
    changed = replace(old, text="Likes tea with milk", in_doubt=True)
    aside = Repair(field="logos", reason="set_aside", before="", after="", entry_id="F1")
    claims = claims_of([old], [changed], repairs=[aside])
    assert [claim.kind for claim in claims] == ["item", "dropped"]
    state = apply_verdicts([changed], claims, [said(claims[0], "supported")], shown_texts=SHOWN, before=[old])
    assert state.entries == (changed,)


def test_a_verdict_on_what_was_given_up_is_passed_over_once_the_entry_says_something_else() -> None:
    old = replace(entry("F1", "Waits for Bob"), in_doubt=True)
    aside = Repair(field="logos", reason="set_aside", before="", after="", entry_id="F1")
    (claim,) = claims_of([old], [old], repairs=[aside])
    current = [replace(old, text="Waits for Bob and Anna")]
    assert not apply_verdicts(current, [claim], [said(claim, "supported")], shown_texts=SHOWN, before=[old]).is_changed


def test_a_change_that_was_taken_back_stays_so_when_the_verdicts_come_again() -> None:
    gone, old = entry("F1", "Likes coffee"), entry("F2", "Likes tea")
    after = [replace(old, text="Likes tea and coffee"), replace(gone, pruned=True, replaced_by=("F2",))]
    claims = claims_of([gone, old], after)
    verdicts = [said(claims[0], "contradicted", **TRUE), said(claims[1], "supported")]
    once = apply_verdicts(after, claims, verdicts, shown_texts=SHOWN, before=[gone, old])
    assert [(one.id, one.text, one.in_doubt) for one in once.entries] == [
        ("F1", "Likes coffee", True),
        ("F2", "Likes tea", False),
    ]
    assert not apply_verdicts(once.entries, claims, verdicts, shown_texts=SHOWN, before=[gone, old]).is_changed


@pytest.mark.parametrize(
    ("verdict", "wanted"),
    [
        ("supported", (True, False, ())),
        ("not_stated", (False, True, ("F9",))),
        ("contradicted", (False, False, ())),
    ],
)
def test_a_verdict_on_a_replacement_that_took_effect(verdict: VerdictWord, wanted: tuple[bool, bool, Any]) -> None:
    old, new = entry("F1", "The budget is 900"), entry("F9", "The budget is 500")
    state = judged([old], [new, replace(old, pruned=True, replaced_by=("F9",))], {"F9": "supported", "F1>F9": verdict})
    (found,) = [one for one in state.entries if one.id == "F1"]
    assert (found.pruned, found.in_doubt, () if found.pruned else found.replaced_by) == wanted
    assert state.is_changed == (verdict != "supported")


@pytest.mark.parametrize(
    ("verdict", "change", "reasons"),
    [
        ("supported", {"pruned": True}, ["dropped"]),
        ("not_stated", {}, []),
        ("contradicted", {"in_doubt": False}, ["contradicted"]),
    ],
)
def test_a_verdict_on_what_was_set_aside(verdict: VerdictWord, change: dict[str, Any], reasons: list[str]) -> None:
    old = replace(entry("F1", "Waits for Bob"), in_doubt=True)
    aside = Repair(field="logos", reason="set_aside", before="", after="", entry_id="F1")
    state = judged([replace(old, in_doubt=False)], [old], {"-F1": verdict}, aside)
    assert state.entries == (replace(old, **change),)
    assert [one.reason for one in state.repairs] == reasons
    assert state.is_doubt_only == (verdict == "contradicted")


@pytest.mark.parametrize(
    ("verdict", "is_back"), [("supported", False), ("not_stated", True), ("contradicted", True), (None, False)]
)
def test_a_verdict_on_what_was_set_aside_and_found_no_room(verdict: VerdictWord | None, *, is_back: bool) -> None:
    old, other = entry("F1", "Waits for Bob"), entry("F2", "Has a cat")
    out = replace(old, in_doubt=True, pruned=True)
    aside = Repair(field="logos", reason="set_aside", before="", after="", entry_id="F1")
    state = judged([old, other], [other, out], {"-F1": verdict} if verdict else {}, aside)
    assert state.entries == ((old, other) if is_back else (other, out)), "not first to go again"
    assert [(one.reason, one.before, one.after) for one in state.repairs] == (
        [(verdict, "", old.text)] if is_back else []
    )


def test_what_was_set_aside_before_it_was_ever_judged_comes_back_too() -> None:
    out = replace(entry("F1", "Waits for Bob"), in_doubt=True, pruned=True)
    aside = Repair(field="logos", reason="set_aside", before="", after="", entry_id="F1")
    words: list[VerdictWord] = ["not_stated", "contradicted"]
    back = [replace(out, pruned=False, in_doubt=False)]
    assert [served(judged([], [out], {"-F1": word}, aside)) for word in words] == [back, back]


@pytest.mark.parametrize(
    ("verdict", "is_gone"), [("supported", True), ("not_stated", False), ("contradicted", False), (None, False)]
)
def test_what_a_user_set_goes_only_when_the_verifier_agrees(verdict: VerdictWord | None, *, is_gone: bool) -> None:
    old = entry("F1", "The budget is 900")
    kept = Repair(field="logos", reason="kept", before="", after="", entry_id="F1")
    state = judged([old], [old], {"-F1": verdict} if verdict else {}, kept)
    assert state.entries == (replace(old, pruned=is_gone),)
    assert [one.reason for one in state.repairs] == (["dropped"] if is_gone else [])


def test_what_a_user_set_stays_when_what_was_to_take_its_place_is_contradicted() -> None:
    old, new = entry("F1", "The budget is 900"), entry("F9", "Money does not matter")
    kept = Repair(field="logos", reason="kept", before="", after="", entry_id="F1")
    after = [replace(old, replaced_by=("F9",)), new]
    words: dict[str, VerdictWord] = {"F9": "contradicted", "F1>F9": "supported"}
    assert [one.text for one in served(judged([old], after, words, kept))] == [old.text]
    gone = judged([old], after, {"F9": "supported", "F1>F9": "supported"}, kept)
    assert [one.text for one in served(gone)] == [new.text], "control"


def test_a_contradicted_sentence_goes_and_the_rest_stays_to_the_letter() -> None:
    text = "They met in  Porto.  The budget was 500!\n\nAnna left.  Bob stayed."
    after = [entry("N1", text)]
    claims = claims_of([], after)
    verdicts = [said(claims[1], "contradicted", **TRUE), said(claims[2], "not_stated"), said(claims[3], "supported")]
    state = apply_verdicts(after, claims, verdicts, shown_texts=SHOWN)
    assert state.entries[0].text == "They met in  Porto.\n\nAnna left.  Bob stayed."
    assert [(one.reason, one.before, one.after) for one in state.repairs] == [
        ("contradicted", "The budget was 500!", None)
    ]


def test_equal_sentences_of_one_narrative_are_one_claim_and_go_together() -> None:
    after = [entry("N1", "Fine by Anna. Bob stayed. Fine by Anna.")]
    claims = claims_of([], after)
    assert [claim.text for claim in claims] == ["Fine by Anna.", "Bob stayed."]
    state = apply_verdicts(after, claims, [said(claims[0], "contradicted", **TRUE)], shown_texts=SHOWN)
    assert state.entries[0].text == "Bob stayed."
    assert [one.before for one in state.repairs] == ["Fine by Anna.", "Fine by Anna."]


def test_an_entry_that_was_told_again_and_no_longer_holds_goes() -> None:
    """The summarizer repeats word for word what an earlier message said, but names a message that says otherwise."""
    old = entry("F1", "The budget is 500", seqs=(3,))
    state = judged([old], [replace(old, from_seqs=(3, 12))], {"F1": "contradicted"})
    assert served(state) == []
    assert [(one.reason, one.after) for one in state.repairs] == [("contradicted", None)]


def test_what_was_contradicted_does_not_come_back_where_its_successor_is_too() -> None:
    first, second = entry("F8", "The budget is 500"), entry("F9", "The budget is 600")
    both = [second, replace(first, in_doubt=True, replaced_by=("F9",))]
    aside = Repair(field="logos", reason="set_aside", before="", after="", entry_id="F8")
    words: dict[str, VerdictWord] = {"F8": "contradicted", "F9": "contradicted", "F8>F9": "not_stated"}
    assert served(judged([], both, words, aside)) == []


def test_what_stands_between_sentences_and_is_none_stays_when_its_neighbour_goes() -> None:
    wrapped = "This line is long enough to be one that an editor broke somewhere\nin the middle of what it says."
    after = [entry("N1", f"{wrapped}\n-----\nThe budget was 500. Bob stayed.")]
    claims = claims_of([], after)
    assert [claim.text for claim in claims] == [wrapped, "The budget was 500.", "Bob stayed."]
    state = apply_verdicts(after, claims, [said(claims[1], "contradicted", **TRUE)], shown_texts=SHOWN)
    assert state.entries[0].text == f"{wrapped}\n-----\n Bob stayed."


def test_a_narrative_of_which_nothing_is_left_is_on_record() -> None:
    after = [entry("N1", "The budget was 500.")]
    assert judged([], after, {"N1": "contradicted"}).entries == (replace(after[0], pruned=True),)


def test_an_item_that_nothing_states_is_in_doubt_until_something_does() -> None:
    after = [entry("F1", "Has a cat"), entry("N2", "They met.")]
    state = judged([], after, {"F1": "not_stated", "N2": "not_stated"})
    assert state.entries == (replace(after[0], in_doubt=True, unverified=True), after[1])
    assert (state.is_changed, state.is_doubt_only) == (True, True)
    again = judged([], state.entries, {"F1": "supported"})
    assert again.entries == tuple(after)
    assert again.is_doubt_only


def test_a_contradicted_digest_is_named_and_one_that_nothing_states_stays() -> None:
    digests = [DigestText(id=name, topic=name, brief="b", from_seq=1, to_seq=2) for name in ("cats", "dogs")]
    claims = claims_of([], [], digests=digests)
    verdicts = [said(claims[0], "contradicted", **TRUE), said(claims[1], "not_stated")]
    state = apply_verdicts([], claims, verdicts, shown_texts=SHOWN)
    assert (state.contradicted_digests, state.is_changed, state.is_doubt_only) == (("cats",), True, False)
    assert [(one.field, one.before) for one in state.repairs] == [("segments", "cats: b")]


def test_verdicts_are_applied_to_the_version_that_is_current_then() -> None:
    """F1 is gone, F2 has another text by now, and F3 is unchanged."""
    claims = fact_claims("one", "two", "three")
    current = [entry("F2", "two and a half"), entry("F3", "three"), entry("F4", "four")]
    state = apply_verdicts(current, claims, [said(one, "contradicted", **TRUE) for one in claims], shown_texts=SHOWN)
    assert state.entries == (current[0], current[2], replace(current[1], pruned=True))


@pytest.mark.parametrize("is_doubted", [False, True])
def test_what_the_cap_pushed_out_since_stays_out_unless_it_went_first_for_the_doubt(*, is_doubted: bool) -> None:
    old, other = entry("F1", "Waits for Bob"), entry("F2", "Has a cat")
    reason: Literal["set_aside", "kept"] = "set_aside" if is_doubted else "kept"
    given_up = Repair(field="logos", reason=reason, before="", after="", entry_id="F1")
    then = replace(old, in_doubt=is_doubted)
    (claim,) = claims_of([old], [then], repairs=[given_up])
    current = [other, replace(then, pruned=True)]
    verdict = said(claim, "contradicted", **TRUE)
    state = apply_verdicts(current, [claim], [verdict], shown_texts=SHOWN, before=[old])
    assert state.entries == ((old, other) if is_doubted else tuple(current))


def test_what_another_entry_says_by_now_does_not_come_back() -> None:
    old, new = entry("F1", "The budget is 900"), entry("F9", "The budget is 500")
    claims = claims_of([old], [new, replace(old, pruned=True, replaced_by=("F9",))])
    current = [new, entry("F12", "The budget is 900")]
    state = apply_verdicts(current, claims, [said(claims[0], "contradicted", **TRUE)], shown_texts=SHOWN, before=[old])
    assert [one.id for one in served(state)] == ["F12"]


# --- properties

_WORDS: tuple[VerdictWord, ...] = ("supported", "contradicted", "not_stated")
_TEXTS = [
    "Likes tea.",
    "Has a cat.",
    "The budget is 500.",
    "Anna left on Friday.",
    "Waits for Bob.",
    "They met in Porto.",
]


@st.composite
def versions(draw: st.DrawFn) -> tuple[list[StateEntry], list[StateEntry], list[Repair]]:
    """Two versions as a merge makes them: entries stay, change, are replaced by one or two new ones, or set aside."""
    count = draw(st.integers(0, 5))
    before = [
        entry(f"F{number}", f"{draw(st.sampled_from(_TEXTS))} {number}", seqs=(number,))
        for number in range(1, count + 1)
    ]
    fresh = [
        entry(f"F{number}", f"{draw(st.sampled_from(_TEXTS))} {number}")
        for number in range(50, 50 + draw(st.integers(0, 3)))
    ]
    standing, record, repairs = [], [], []
    for one in before:
        fate = draw(
            st.sampled_from(
                ["stays", "stays", "changes", "replaced", "aside", "aside for", "aside, out", "forgotten", "pushed out"]
            )
        )
        names = (
            tuple(new.id for new in draw(st.lists(st.sampled_from(fresh), min_size=1, max_size=2, unique=True)))
            if fresh
            else ()
        )
        if fate == "changes":
            standing.append(replace(one, text=f"{one.text} Very much."))
        elif fate in {"replaced", "forgotten"} and names:
            fresh = [replace(new, superseded=(*new.superseded, one.text)) if new.id in names else new for new in fresh]
            if fate == "replaced":
                record.append(replace(one, pruned=True, replaced_by=names))
        elif fate in {"aside", "aside for"}:
            standing.append(replace(one, in_doubt=True, replaced_by=names if fate == "aside for" else ()))
            repairs.append(
                Repair(field=one.field, reason="set_aside", before=one.text, after=one.text, entry_id=one.id)
            )
        elif fate == "aside, out":
            record.append(replace(one, pruned=True, in_doubt=True))
            repairs.append(Repair(field=one.field, reason="set_aside", before="", after="", entry_id=one.id))
        elif fate == "pushed out":
            record.append(replace(one, pruned=True))
        else:
            standing.append(one)
    told = " ".join(draw(st.lists(st.sampled_from(_TEXTS), min_size=1, max_size=4, unique=True)))
    return [*before, entry("N40", "They met.")], [*standing, *fresh, entry("N60", told), *record], repairs


def answers(*, true_quotes: bool) -> st.SearchStrategy[list[tuple[VerdictWord, int | None, str]]]:
    quotes = ["", "a", "the budget is 500 francs", "budget", "xyz xyz", "e budget is 900 franc"]
    quotes = [text for text in quotes if true_quotes or text != "budget"]
    one = st.tuples(
        st.sampled_from(_WORDS), st.sampled_from([None, 0, 10, 11, 99]), st.sampled_from(quotes) | st.text()
    )
    return st.lists(one, min_size=30, max_size=30)


def verdicts_on(
    claims: Sequence[Claim], given_answers: Sequence[tuple[VerdictWord, int | None, str]]
) -> tuple[Verdict, ...]:
    raw = [
        {"n": claim.n, "verdict": word, "seq": seq, "quote": quote}
        for claim, (word, seq, quote) in zip(claims, given_answers, strict=False)
    ]
    return verdicts_of(json.dumps(raw), claims)


@examples(1)
@given(versions(), answers(true_quotes=False))
def test_no_honest_claim_is_lost_without_a_true_quote(
    made: tuple[list[StateEntry], list[StateEntry], list[Repair]],
    given_answers: list[tuple[VerdictWord, int | None, str]],
) -> None:
    """Only what the summarizer itself gave up can go; everything that it wrote stays, to the letter."""
    before, after, repairs = made
    digest = DigestText(id="d", topic="t", brief="b", from_seq=1, to_seq=2)
    claims = claims_of(before, after, digests=[digest], repairs=repairs)
    verdicts = [one for one in verdicts_on(claims, given_answers) if not QuoteSearch(SHOWN).seq_of(one.quote, one.seq)]
    state = apply_verdicts(after, claims, verdicts, shown_texts=SHOWN, before=before)
    given_up = {claim.target for claim in claims if claim.gives_up}
    left = {(one.id, one.text) for one in served(state)}
    assert {(one.id, one.text) for one in after if not one.pruned and one.id not in given_up} <= left
    assert not state.contradicted_digests


@examples(1)
@given(versions(), answers(true_quotes=True))
def test_the_same_verdicts_twice_change_nothing_more(
    made: tuple[list[StateEntry], list[StateEntry], list[Repair]],
    given_answers: list[tuple[VerdictWord, int | None, str]],
) -> None:
    before, after, repairs = made
    claims = claims_of(before, after, repairs=repairs)
    verdicts = verdicts_on(claims, given_answers)
    once = apply_verdicts(after, claims, verdicts, shown_texts=SHOWN, before=before)
    twice = apply_verdicts(once.entries, claims, verdicts, shown_texts=SHOWN, before=before)
    assert twice == replace(once, repairs=(), is_changed=False, is_doubt_only=False)


@examples(1)
@given(versions(), answers(true_quotes=True))
def test_entries_that_no_verdict_is_about_stay_as_they_are_and_in_order(
    made: tuple[list[StateEntry], list[StateEntry], list[Repair]],
    given_answers: list[tuple[VerdictWord, int | None, str]],
) -> None:
    before, after, repairs = made
    claims = claims_of(before, after, repairs=repairs)
    state = apply_verdicts(after, claims, verdicts_on(claims, given_answers), shown_texts=SHOWN, before=before)
    judged_ones = {claim.target for claim in claims}
    assert [one for one in state.entries if one.id not in judged_ones] == [
        one for one in sorted(after, key=lambda one: one.pruned) if one.id not in judged_ones
    ]
    assert len({one.id for one in state.entries}) == len(state.entries)
    ids = [int(one.id[1:]) for one in served(state) if one.role != "narrative"]
    assert ids == sorted(ids), "what comes back stands in its place"
    assert not state.is_doubt_only or {one.id for one in served(state)} == {one.id for one in after if not one.pruned}


@examples(1)
@given(versions(), answers(true_quotes=True))
def test_what_comes_back_is_what_stood_there(
    made: tuple[list[StateEntry], list[StateEntry], list[Repair]],
    given_answers: list[tuple[VerdictWord, int | None, str]],
) -> None:
    before, after, repairs = made
    claims = claims_of(before, after, repairs=repairs)
    state = apply_verdicts(after, claims, verdicts_on(claims, given_answers), shown_texts=SHOWN, before=before)
    known = {one.id: one for one in before}
    was_served = {one.id for one in after if not one.pruned}
    for one in served(state):
        if one.id not in was_served:
            assert replace(one, in_doubt=False, replaced_by=()) == known[one.id]
