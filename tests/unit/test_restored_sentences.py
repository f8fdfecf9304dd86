"""Values that users gave come back in whole sentences, with the name of who said them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.model.anchors import FoundAnchor
from app.core.model.conversation import Message
from app.core.model.model_io import SummaryRequest
from app.core.model.policies.policy import CompactionPolicy
from app.core.model.repairs import Cut, Repair, RepairReason
from app.core.model.schemas import SESSION, SUMMARY
from app.core.model.state import StateEntry, StateSchema
from app.core.planning.compaction import CompactionPlan
from app.core.state import pruning
from app.core.state.apply import AppliedCandidate, ApplyContext, apply_candidate, repairs_on_record
from app.core.state.restored_sentences import with_restored_sentences
from app.core.text.budget import Budget
from app.core.text.language import detect
from app.core.text.sentences import sentences
from app.core.text.token_counts import estimate_text, least_tokens
from app.core.validation import lost_values
from app.core.validation.claims import claims_of
from app.core.validation.gate import judge
from app.core.validation.lost_values import LostSentence, lost_sentences
from app.core.validation.verdict_application import VerdictCounts, VerifiedState
from tests.builders import budgets, policy_of
from tests.builders import message as weighed
from tests.rows import each
from tests.unit.talk import answer, fact, message, proposal, talk
from tests.unit.timing import assert_linear

INVOICE: Final = "The invoice over 48,500 euros is due on 3 May 2027."
SPAN: Final = talk("Hello!", "Hi there.", f"I slept badly. {INVOICE} And I am tired.", "Noted.", "Good.", "Fine.")


def anchor(seq: int, content: str) -> FoundAnchor:
    return FoundAnchor(type="critical_fact", content=content, seq=seq, offset=0, importance=0.5, token_count=10)


def lost(
    span: Sequence[Message], *served: str, shown: Sequence[FoundAnchor] = (), hidden: Sequence[FoundAnchor] = ()
) -> list[LostSentence]:
    return list(lost_sentences(span, served, served_anchors=shown, unserved_anchors=hidden))


def texts(found: Sequence[LostSentence]) -> list[tuple[int, str]]:
    return [(one.seq, one.text) for one in found]


def test_a_lost_value_comes_back_as_its_whole_sentence_with_its_speaker() -> None:
    (one,) = lost(SPAN, "There is an invoice.")
    assert (one.seq, one.text) == (3, INVOICE)
    assert one.attributed_text == f'The user wrote: "{INVOICE}"'


@pytest.mark.parametrize(("text", "said"), [
    ("We open with The Salt Clock. It's 84 kg of film.", "We open with The Salt Clock. It's 84 kg of film."),
    ("Электрика 120, плитка 110. Это всё 230 евро.", "Электрика 120, плитка 110. Это всё 230 евро."),
])  # fmt: skip
def test_a_sentence_that_points_back_comes_back_with_the_one_before_it(text: str, said: str) -> None:
    (one,) = lost(talk(text))
    assert one.attributed_text.endswith(f'wrote: "{said}"') or one.attributed_text.endswith(f'написал: "{said}"')
    assert one.text == sentences(text)[1], "a model is asked for the sentence alone"


@pytest.mark.parametrize("text", [
    "We open with The Salt Clock. The film has 84 kg.",
    "* We open with The Salt Clock.\n* It's 84 kg of film.",
    f"{'We open with The Salt Clock ' * 8}. It's 84 kg of film.",
    "It's 84 kg of film.",
])  # fmt: skip
def test_control_no_other_sentence_takes_one_along(text: str) -> None:
    (one,) = lost(talk(text))
    assert one.attributed_text == f'The user wrote: "{one.text}"'


def test_what_no_longer_holds_or_comes_back_itself_leads_to_nothing() -> None:
    span = talk("The Salt Clock is BK-2291. It's 84 kg of film.", "Noted.", "We open with Red. It's 70 kg of film.")
    gone = {"We open with Red.": None}
    found = list(
        lost_sentences(
            span,
            (),
            served_anchors=(),
            unserved_anchors=(),
            stale_values=lambda sentence, _: gone.get(sentence, frozenset()),
        )
    )
    assert [one.attributed_text for one in found] == [f'The user wrote: "{one.text}"' for one in found]
    assert len(found) == 3


def test_leads_are_found_in_linear_time() -> None:
    assert_linear(lambda text: lost(talk(text)), "It's film. " * 1_500)


@pytest.mark.parametrize(
    "served",
    ["Invoice: €48,500 by 2027-05-03", "48.5k euros are due on May 3rd, 2027", "Счёт на 48 500 евро до 3 мая 2027"],
)
def test_control_what_is_served_in_any_form_is_not_lost(served: str) -> None:
    assert lost(SPAN, served) == []


def test_served_in_parts_it_is_not_lost_and_one_missing_value_is_enough() -> None:
    assert lost(SPAN, "An invoice over 48,500 euros", "Due on 3 May 2027") == []
    assert texts(lost(SPAN, "An invoice over 48,500 euros")) == [(3, INVOICE)]


@each(
    "value",
    [
        "900 euros",
        "$1,200",
        "12 March 2027",
        "jo@example.org",
        "https://example.org/cabin",
        "/srv/papers/cabin.pdf",
        "BK-2291",
        "v2.4.1",
        "123e4567-e89b-12d3-a456-426614174000",
        "45 kg",
        "15 %",
        "4471923",
        "900 франков",
        "12 марта 2027",
    ],
)
def test_what_must_not_get_lost(value: str) -> None:
    text = f"Please remember {value} for later."
    assert texts(lost(talk(text))) == [(1, text)]
    assert lost(talk("Please remember.", text)) == [], "an assistant's word alone is no user's"


@pytest.mark.parametrize("text", ["See you at 18:34.", "We were 12 at the table.", "Chapter 27 is fun.", "No values."])
def test_times_and_bare_numbers_may(text: str) -> None:
    assert lost(talk(text)) == []


def test_of_anchors_that_nothing_serves_the_values_come_back_whoever_said_them() -> None:
    said = "TGV 9766 costs 59 francs."
    span = talk("And the train?", f"I looked it up. {said} Anything else?")
    assert lost(span) == []
    (one,) = lost(span, hidden=[anchor(2, said)])
    assert (one.seq, one.text, one.attributed_text) == (2, said, f'The assistant wrote: "{said}"')
    assert lost(span, shown=[anchor(2, said)], hidden=[anchor(2, said)]) == []


def test_what_held_messages_and_system_messages_say_is_served() -> None:
    held = [replace(one, protected_reason="pinned") if one.seq == 3 else one for one in SPAN]
    assert lost(held) == []
    assert lost([message(1, INVOICE, "system"), *SPAN[1:]]) == []


def test_erased_messages_and_commands_have_nothing_to_lose() -> None:
    assert lost(talk(INVOICE)) != []
    assert lost([replace(message(1, INVOICE), status="erased")]) == []
    assert lost([replace(message(1, INVOICE), is_command=True)]) == []


def test_said_twice_it_is_lost_once() -> None:
    span = talk(INVOICE, "Noted.", f"As I said: {INVOICE}", "Yes.", "So 48,500 euros, and 777 euros for the lawyer.")
    assert texts(lost(span)) == [(1, INVOICE), (5, "So 48,500 euros, and 777 euros for the lawyer.")]


def test_what_opened_the_talk_comes_first_then_anchors_then_own_words_then_long_messages() -> None:
    pasted = "word " * 900 + "The total is 8,000 euros."
    told = ["Fine."] * 20
    told[0] = "The budget is 900 euros."
    told[6] = pasted
    told[8] = "The deposit is 250 euros."
    told[11] = "The lawyer wants 1,250 euros."
    found = lost(talk(*told), hidden=[anchor(12, told[11])])
    assert [one.seq for one in found] == [1, 12, 9, 7]
    assert found[-1].text.endswith("The total is 8,000 euros.")


def test_code_comes_back_whole_or_not_at_all() -> None:
    setting = "```\nDATABASE_URL=postgres://db-7.example.org:5432/orders\n```"
    trace = "\n".join(f"worker.run(0xc0001a2{line}) /srv/app/worker.py:{line} +0x1a{line}" for line in range(10, 30))
    span = talk("It fails.", "How?", f"{setting}\nIt says:\n```\n{trace}\n```\nSince v2.4.1 it does.")
    assert texts(lost(span)) == [(3, " ".join(setting.split())), (3, "Since v2.4.1 it does.")]


def test_of_a_long_sentence_the_clauses_with_its_values_are_kept() -> None:
    rambling = ", and then we talked about the weather of the coast" * 4
    text = f"We met on the pier{rambling}, the deposit is 250 euros{rambling}; the rent is 900 euros{rambling}."
    (one,) = lost(talk(text))
    pieces = [piece.strip(",;") for piece in one.text.split(" … ")]
    assert pieces == ["the deposit is 250 euros", "the rent is 900 euros"]
    short = "We met on the pier, the deposit is 250 euros, and the weather was fine."
    assert [found.text for found in lost(talk(short))] == [short], "control: a sentence of usual length is whole"


def test_secrets_are_not_brought_back() -> None:
    key = "sk-abcdefghijklmnopqrstuvwxyz0123456789ABCD"
    (one,) = lost(talk(f"The deposit is 250 euros and the key is {key}."))
    assert "250 euros" in one.text
    assert key not in one.text + one.attributed_text


@pytest.mark.parametrize(
    ("text", "speaker"),
    [
        ("Пожалуйста, запомни, что бюджет составляет 900 евро на всю поездку.", "Пользователь написал"),
        ("请记住整个旅行的预算是900欧元，不能再多了。", "用户写道"),
        ("Bitte merke dir, dass das Budget für die ganze Reise 900 Euro beträgt.", "Der Nutzer schrieb"),
        ("Prosím zapamatuj si, že rozpočet na celou cestu je 900 eur a více není.", "Uživatel napsal"),
    ],
)
def test_the_speaker_is_named_in_the_talks_language(text: str, speaker: str) -> None:
    (one,) = lost(talk(text))
    assert one.attributed_text == f'{speaker}: "{text}"'


def test_a_message_too_short_to_tell_its_language_is_quoted_in_that_of_the_talk() -> None:
    short, talked = "Бюджет 48 500 евро.", "Мы с женой давно хотели поехать на море, и теперь у нас есть деньги на это."
    assert detect(short) is None, "control"
    (one,) = lost(talk(talked, "Понимаю.", short))
    assert one.attributed_text == f'Пользователь написал: "{short}"'


sayings = st.sampled_from(
    [
        "The deposit is 250 euros.",
        "The ticket is BK-2291!",
        "We leave on 12 June 2027.",
        "Write to jo@example.org, please.",
        "I am tired.",
        "See you at 18:34.",
        "Is it 45 kg?",
    ]
)


@given(st.lists(st.lists(sayings, min_size=1, max_size=4).map(" ".join), min_size=1, max_size=10))
def test_whole_sentences_of_users_and_each_value_once(told: list[str]) -> None:
    span = talk(*told)
    found = lost(span)
    users = {sentence for one in span if one.role == "user" for sentence in sentences(one.content)}
    assert {one.text for one in found} <= users
    assert len({one.text for one in found}) == len(found), "said twice, lost once"
    expected = {text for text in users if text not in {"I am tired.", "See you at 18:34."}}
    assert {one.text for one in found} == expected
    assert lost(span, *[one.attributed_text for one in found]) == [], "what is brought back is served"


def test_so_many_values_are_looked_after(monkeypatch: pytest.MonkeyPatch) -> None:
    span = talk(*[f"Number {seq} costs {seq * 100 + 1} euros." for seq in range(1, 41)])
    assert len(lost(span)) == 20
    monkeypatch.setattr(lost_values, "_MAX_VALUES", 5)
    assert len(lost(span)) == 5


# --- applied: within room, in lists and in one text


CRATES: Final = tuple(
    weighed(
        seq, f"The crate of lamps stands on the northern pier, to be opened with the flat iron bar. Case {seq}. " * 3
    )
    for seq in range(1, 31)
)
DEBTS: Final = tuple(
    weighed(seq, f"By the way, {name} still owes me {seq * 111} euros for the lamps.")
    for seq, name in ((31, "Clara"), (33, "Oleg"), (35, "Priya"), (37, "Marina"))
)


def applied(
    text: str,
    span: Sequence[Message],
    *previous: StateEntry,
    schema: StateSchema = SESSION,
    policy: CompactionPolicy | None = None,
    **changes: Any,
) -> AppliedCandidate:
    policy = policy or policy_of(context_window=4_000)
    shares = budgets(policy)
    folded = sum(one.token_count for one in span)
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
        "schema": schema,
        "policy": policy,
        "budgets": shares,
        "plan": plan,
        "span": tuple(span),
        "previous": previous,
        "next_entry": 50,
        "version": 1,
        "tokens_before": 200 + folded,
        "block_before": 0,
        "target": shares.target,
    }
    request = SummaryRequest(schema=schema, messages=tuple(span), previous=previous)
    made = apply_candidate(judge(proposal(text), request), ApplyContext(**(values | changes)))
    assert isinstance(made, AppliedCandidate), made
    return made


SHORT: Final = answer("Crates of lamps stand on the pier.", [fact("Crates of lamps stand on the northern pier", 1)])


def test_they_are_entries_of_their_own_with_their_message() -> None:
    made = applied(SHORT, [*CRATES, *DEBTS])
    said = {one.seq: f'The user wrote: "{one.content}"' for one in DEBTS}
    found = {entry.from_seqs: entry.text for entry in made.entries if not entry.pruned}
    assert {seq: found[(seq,)] for seq in said} == said
    assert made.counts.restored_by_code == len(DEBTS)
    assert made.lost == tuple((one.seq, one.content) for one in DEBTS), "what the model can be asked about"


def test_control_what_the_model_told_itself_is_not_added() -> None:
    owed = [fact(f"Owed to the user: {one.seq * 111} euros", one.seq) for one in DEBTS]
    made = applied(answer("Crates of lamps stand on the pier.", owed), [*CRATES, *DEBTS])
    assert made.counts.restored_by_code == 0
    assert len(made.state["logos"]) == len(DEBTS)


def test_in_a_state_of_lists_each_is_on_record_with_its_entry() -> None:
    made = applied(SHORT, [*CRATES, *DEBTS])
    entries = {entry.text: entry.id for entry in made.entries}
    texts = [f'The user wrote: "{one.content}"' for one in DEBTS]
    added = [(one.field, one.reason, one.before, one.after, one.entry_id) for one in made.repairs]
    assert added == [("logos", "value_restored", "", text, entries[text]) for text in texts]


def test_a_repair_names_its_entry_even_if_a_day_was_added_afterwards() -> None:
    sold = weighed(31, "Yesterday the lamps were sold to the harbour office.")
    told = "Yesterday the lamps were sold to the harbour office"
    items = [fact(f"{told} (98,761 euros)", 31), fact("The crane cost 98,762 euros", 31)]
    made = applied(answer("Crates of lamps stand on the pier.", items), [*CRATES, sold])
    (entry_id,) = [entry.id for entry in made.entries if entry.text.startswith("Yesterday")]
    assert [(one.reason, one.before, one.entry_id) for one in repairs_on_record(made)] == [
        ("novel_value", f"{told} (98,761 euros)", entry_id),
        ("novel_value", "The crane cost 98,762 euros", None),
        ("date_added", told, entry_id),
    ]


@pytest.mark.parametrize("count", [10, 40, 120])
def test_no_more_than_a_quarter_of_the_cap(count: int) -> None:
    many = [
        weighed(seq, f"By the way, number {seq} of the list costs {seq * 111} euros, as the harbour office told me.")
        for seq in range(31, 31 + 2 * count, 2)
    ]
    made = applied(SHORT, [*CRATES, *many])
    cap = budgets(policy_of(context_window=4_000)).state_cap
    back = [text for text in made.state["logos"] if text.startswith("The user wrote")]
    assert 0 < len(back) <= count
    assert sum(map(estimate_text, back)) <= cap // 4
    assert all(text.endswith('told me."') for text in back), "whole sentences or none"


def test_in_a_state_of_one_text_they_stand_at_its_end() -> None:
    policy = policy_of(context_window=4_000, state_schema="summary")
    field = SUMMARY.fields[0].name
    tale = "The user stores crates of lamps on the northern pier. They are opened with a flat iron bar."
    made = applied(f'{{"{field}": "{tale}"}}', [*CRATES, *DEBTS], schema=SUMMARY, policy=policy)
    text = made.state[field]
    assert text.startswith(tale)
    last = text.removeprefix(tale)
    assert all(one.content in last for one in DEBTS)
    assert last.startswith(" The user wrote")
    added = [(one.reason, one.before, one.entry_id) for one in made.repairs]
    assert added == [("value_restored", "", made.entries[0].id)] * len(DEBTS)
    assert [one.after for one in made.repairs] == [f'The user wrote: "{one.content}"' for one in DEBTS]


TALE: Final = "The user stores crates of lamps on the northern pier. They are opened with a flat iron bar."
CUT: Final = "The fish market was cut, so that chapter three has 12,170 words."
WROTE: Final = 'The user wrote: "By the way, Clara still owes me 3441 euros for the lamps."'
NAMES: Final = (
    "oak",
    "elm",
    "ash",
    "fir",
    "yew",
    "birch",
    "beech",
    "maple",
    "cedar",
    "alder",
    "hazel",
    "larch",
    "pine",
)
SAID_EARLIER: Final = "Said earlier, may have changed since"


def in_one_text(
    *previous: StateEntry, text: str = TALE, span: Sequence[Message] = CRATES, **changes: Any
) -> AppliedCandidate:
    policy = policy_of(context_window=4_000, state_schema="summary")
    return applied(f'{{"summary": "{text}"}}', span, *previous, schema=SUMMARY, policy=policy, version=2, **changes)


def narrative(number: int, text: str, *, in_doubt: bool = False) -> StateEntry:
    return StateEntry(id=f"N{number}", field="summary", role="narrative", text=text, since_version=1, in_doubt=in_doubt)


def test_what_the_one_text_before_told_stands_behind_the_new_one_as_what_it_is() -> None:
    """Without a mark, "12,170 words" would be read as what holds now, wherever it is."""
    made = in_one_text(narrative(1, f"A tale is written. {CUT}"), span=[*CRATES, DEBTS[0]])
    assert made.state["summary"] == f"{TALE} {WROTE}\n\n{SAID_EARLIER}: {CUT}"
    told, earlier = made.entries
    assert (told.text, told.in_doubt) == (f"{TALE} {WROTE}", False)
    assert (earlier.text, earlier.role, earlier.in_doubt, earlier.since_version) == (CUT, "narrative", True, 2)
    assert [(one.reason, one.after, one.entry_id) for one in made.repairs] == [
        ("value_restored", CUT, earlier.id),
        ("value_restored", WROTE, told.id),
    ]


def test_what_code_cut_belongs_to_the_text_and_not_to_what_was_told_earlier() -> None:
    """A verifier that supports the sentence puts it back into the text."""
    made = in_one_text(narrative(1, f"A tale is written. {CUT}"))
    cut = Repair(field="summary", reason="novel_value", before="It weighs 77 kg.", after=None, cut=Cut())
    assert [one.entry_id for one in repairs_on_record(replace(made, repairs=(cut,)))] == [made.entries[0].id]


def test_a_verifier_takes_what_is_contradicted_out_of_what_was_told_earlier() -> None:
    made = in_one_text(narrative(1, f"A tale is written. {CUT}"))
    claims = claims_of([], made.entries)
    assert [claim.target for claim in claims if claim.text == CUT] == [made.entries[1].id]


EXAM: Final = "The exam is on 5 July 2027 at 9 o'clock in room B-12."
SWAPPED: Final = "Bruno and not Ana sits the exam on 5 July 2027 in room B-12."


def taken_out(*entries: StateEntry, reason: RepairReason = "contradicted", cap: int = 800) -> VerifiedState:
    """A state from which a verifier removed the swapped sentence, with the sentence that it had replaced."""
    repair = Repair(field="summary", reason=reason, before=SWAPPED, after=None, entry_id="N2")
    verified = VerifiedState(entries=entries, counts=VerdictCounts(), repairs=(repair,), is_changed=True)
    return with_restored_sentences(SUMMARY, verified, version=3, next_entry=5, cap=cap)


def retold(text: str, before: str) -> StateEntry:
    return replace(narrative(2, text), superseded=(before,))


def test_what_a_contradicted_sentence_had_replaced_stands_behind_the_text_again() -> None:
    made = taken_out(retold(TALE, f"A tale is written. {EXAM}"))
    told, earlier = made.entries
    assert told.text == TALE
    assert (earlier.id, earlier.text, earlier.in_doubt, earlier.since_version) == ("N5", EXAM, True, 3)
    assert [(one.reason, one.after, one.entry_id) for one in made.repairs[1:]] == [("value_restored", EXAM, "N5")]


def test_it_joins_what_was_told_earlier_and_stands_before_what_is_on_record() -> None:
    older, record = narrative(4, CUT, in_doubt=True), replace(narrative(3, "A lie."), pruned=True)
    made = taken_out(retold(TALE, EXAM), older, record)
    assert [entry.id for entry in made.entries] == ["N2", "N4", "N3"]
    assert made.entries[1].text == f"{CUT} {EXAM}"


@pytest.mark.parametrize(
    ("text", "before", "reason"),
    [
        (f"{TALE} {EXAM}", EXAM, "contradicted"),
        (TALE, "Bruno told of his exam.", "contradicted"),
        (TALE, SWAPPED, "contradicted"),
        (TALE, EXAM, "novel_value"),
    ],
    ids=["it is told", "it has no value", "it is what was contradicted", "no verifier took it out"],
)
def test_control_else_nothing_comes_back(text: str, before: str, reason: RepairReason) -> None:
    made = taken_out(retold(text, before), reason=reason)
    assert made.entries == (retold(text, before),)
    assert len(made.repairs) == 1


@pytest.mark.parametrize(("room", "count"), [(0, 1), (estimate_text(EXAM), 2)], ids=["the state is full", "control"])
def test_what_has_no_room_below_the_cap_does_not_come_back(room: int, count: int) -> None:
    made = taken_out(retold(TALE, EXAM), cap=estimate_text(TALE) + room)
    assert len(made.entries) == count


def test_control_what_the_new_text_tells_stands_nowhere_else() -> None:
    made = in_one_text(narrative(1, f"A tale is written. {CUT}"), text=f"{TALE} {CUT}")
    assert made.state["summary"] == f"{TALE} {CUT}"
    assert not any(entry.in_doubt for entry in made.entries)


def test_what_was_told_earlier_is_looked_at_again_each_time() -> None:
    """Such text is known by its entry: the mark does not belong to it, and what the new text tells is told once."""
    key = "The key has the number AB-4711-77."
    before = [narrative(1, TALE), narrative(2, f"{CUT} {key}", in_doubt=True)]
    still = in_one_text(*before, text=f"{TALE} {key}")
    assert still.state["summary"] == f"{TALE} {key}\n\n{SAID_EARLIER}: {CUT}"
    assert [entry.text for entry in still.entries] == [f"{TALE} {key}", CUT]


def test_what_comes_back_takes_the_room_that_the_new_text_leaves() -> None:
    """Sentences without values tell least to code, such as how somebody wants to be answered."""
    policy = policy_of(context_window=4_000, state_schema="summary")
    told = [f"Ola asked for a hint first, whatever the chapter on the {name} may ask." for name in NAMES]
    limit = budgets(policy).state_tokens
    told = told[: int(0.8 * limit / estimate_text(told[0]))]
    said = talk(*(text for n in range(30) for text in (f"By the way, crate AB-{n}771 holds {n}441 lamps.", "Noted.")))
    crates = [replace(one, token_count=60) for one in said]
    text = " ".join(told)
    made = applied(f'{{"summary": "{text}"}}', crates, schema=SUMMARY, policy=policy, version=2, target=5_000)
    assert made.layout.tokens <= limit
    assert [one for one in told if one not in made.state["summary"]] == []
    assert any(repair.reason == "value_restored" for repair in made.repairs)


def in_rounds(count: int, *, forgets: bool = True) -> list[bool]:
    """For each round, whether ``CUT`` still follows a text that no longer tells it."""
    before: tuple[StateEntry, ...] = (narrative(1, f"A tale is written. {CUT}"),)
    found: list[bool] = []
    for number in range(count):
        made = in_one_text(*before, text=f"{TALE} So it was told {number} times.")
        found.append(CUT in made.state["summary"])
        before = tuple(entry if forgets else replace(entry, superseded=()) for entry in made.entries)
    return found


def test_what_the_model_left_out_three_times_does_not_come_back_again() -> None:
    """The model saw it twice after its own text; by then it has been asked more often than needed."""
    assert in_rounds(4) == [True, True, False, False]


def test_control_without_what_stood_there_before_it_comes_back_for_ever() -> None:
    assert in_rounds(4, forgets=False) == [True] * 4


def test_where_nothing_of_it_is_told_the_older_part_gives_way_first() -> None:
    ships = [f"Ship {number} owes {number * 1_111} euros for its berth." for number in range(1, 10)]
    newer = [f"Crane {number} cost {number * 1_313} euros last year." for number in range(1, 10)]
    made = in_one_text(narrative(1, " ".join(newer)), narrative(2, " ".join(ships), in_doubt=True))
    (earlier,) = (entry.text for entry in made.entries if entry.in_doubt)
    assert earlier.endswith(newer[-1])
    assert ships[0] not in earlier
    assert estimate_text(earlier) <= budgets(policy_of(context_window=4_000)).state_cap // 4


CRANES: Final = [f"Crane {number} cost {number * 1_313} euros last year." for number in range(1, 10)]
FULL: Final = " ".join(f"Crate {number} of lamps stands on the northern pier." for number in range(1, 16))


def in_room(less: int) -> tuple[str, str]:
    """What is told now and what was told earlier in a state whose room is this much smaller than both need."""
    before, shares = narrative(1, " ".join(CRANES)), budgets(policy_of(context_window=4_000))
    whole = in_one_text(before, text=FULL, budgets=replace(shares, state_tokens=1_000, state_cap=1_000))
    room = replace(shares, state_cap=1_000, state_tokens=whole.layout.tokens - less)
    made = in_one_text(before, text=FULL, budgets=room)
    kept = {entry.in_doubt: entry.text for entry in made.entries if not entry.pruned}
    gone = [entry.text for entry in made.entries if entry.pruned]
    assert all(text in "".join([*kept.values(), *gone]) for text in CRANES), "on record"
    return kept[False], kept.get(True, "")


@pytest.mark.parametrize(("less", "is_whole", "share"), [(0, True, 1.0), (40, True, 0.5), (130, False, 0.12)])
def test_where_a_state_is_full_what_was_told_earlier_goes_first_but_for_an_eighth(
    less: int,
    is_whole: bool,  # noqa: FBT001
    share: float,
) -> None:
    told, earlier = in_room(less)
    assert (told == FULL) is is_whole
    assert len(earlier) >= share * len(" ".join(CRANES))
    assert (earlier == " ".join(CRANES)) is (not less)
    assert set(sentences(earlier)) <= set(CRANES), "whole sentences"


def test_control_without_that_eighth_nothing_of_it_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pruning, "_EARLIER_NARRATIVE_SHARE", 0.0)
    assert in_room(130)[1] == ""


def test_what_there_is_no_room_for_is_not_read() -> None:
    longer = f"{INVOICE[:-1]}, as the lawyer of the other side has written to both of us."
    span = talk(longer, "Noted.", INVOICE, "Noted.")

    def texts_in(room: int) -> list[str]:
        return [
            one.text
            for one in lost_sentences(span, (), served_anchors=(), unserved_anchors=(), token_budget=Budget(room))
        ]

    assert texts_in(least_tokens(len(longer)) + 4) == [INVOICE]
    assert texts_in(least_tokens(len(longer)) + 5) == [longer], "what was said before is lost once"


def test_each_is_looked_for_when_it_is_asked_for() -> None:
    room = Budget(400)
    found = lost_sentences(
        talk(INVOICE, "Noted.", "The deposit is 250 euros."),
        (),
        served_anchors=(),
        unserved_anchors=(),
        token_budget=room,
    )
    assert next(found).text == INVOICE
    room.remaining = 0
    assert next(found, None) is None


@pytest.mark.parametrize("told", ["", "-", "I'm sorry, I cannot help with that."])
def test_an_earlier_narrative_is_not_served_as_if_it_were_new(told: str) -> None:
    old = StateEntry(
        id="N1", field="conversation_summary", role="narrative", text="They wait for the lamps.", since_version=1
    )
    made = applied(answer(told, [fact("The lamps have come to the northern pier", 1)]), CRATES, old, version=2)
    line = "The lamps have come to the northern pier."
    assert made.state["conversation_summary"] == line
    assert [(one.reason, one.before, one.after) for one in made.repairs] == [("narrative_line", "", line)]
    (entry,) = [one for one in made.entries if one.role == "narrative"]
    assert entry.superseded == ("They wait for the lamps.",)
