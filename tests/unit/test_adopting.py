"""A state is put under another schema: every text is still there, in the field of its role."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.model.anchors import Anchor, AnchorType
from app.core.model.conversation import Sums
from app.core.model.repairs import Cut, Repair
from app.core.model.schemas import HANDOFF, RESEARCH, SCHEMAS, SESSION, SUMMARY
from app.core.model.state import ID_LETTERS, StateEntry, StateSchema, StateVersion
from app.core.state.schema_change import (
    entries_from_anchors,
    entries_from_released,
    entries_in_schema,
    next_entry_number,
    record_in_schema,
    requested_state_tokens,
    without_anchor_entries,
)
from app.core.summarizer.offline.narrative_states import statement_pieces
from app.core.text.token_counts import estimate_text
from tests.builders import budgets
from tests.unit import talk as made
from tests.unit.talk import talk

TEXTS = st.text(min_size=1, max_size=40).filter(str.strip)


@st.composite
def states(draw: st.DrawFn, schema: StateSchema) -> tuple[StateEntry, ...]:
    made: list[StateEntry] = []
    for field in schema.fields:
        for text in draw(st.lists(TEXTS, max_size=4 if field.is_list else 1)):
            number = len(made) + 1
            made.append(
                StateEntry(
                    id=f"{ID_LETTERS[field.role]}{number}",
                    field=field.name,
                    role=field.role,
                    text=text,
                    from_seqs=(number,),
                    since_version=1,
                    origins=("user",),
                )
            )
    return tuple(made)


@given(st.data(), st.sampled_from(sorted(SCHEMAS)), st.sampled_from(sorted(SCHEMAS)))
def test_nothing_is_lost_on_the_way_to_any_schema(data: st.DataObject, one: str, other: str) -> None:
    source, target = SCHEMAS[one], SCHEMAS[other]
    before = data.draw(states(source))
    number = len(before) + 1
    after = entries_in_schema(before, target, source=source, next_entry=number)

    told = " ".join(entry.text for entry in after)
    assert all(word in told for entry in before for word in entry.text.split())
    if one != SUMMARY.name:
        assert all(entry.text in told for entry in before)
    assert next_entry_number(after, number) > max((int(entry.id[1:]) for entry in after), default=0)
    assert {seq for entry in after for seq in entry.from_seqs} == {seq for entry in before for seq in entry.from_seqs}
    fields = {field.name: field for field in target.fields}
    assert all(fields[entry.field].role == entry.role for entry in after)
    assert len({entry.id for entry in after}) == len(after)
    assert all(entry.id[0] == ID_LETTERS[entry.role] for entry in after)
    narratives = [entry for entry in after if not fields[entry.field].is_list]
    assert len({entry.field for entry in narratives}) == len(narratives), "a narrative field holds one text"
    if one == other:
        assert set(after) == set(before)


@pytest.mark.parametrize(
    ("role", "schema", "field"),
    [
        ("fact", HANDOFF, "progress"),
        ("open", HANDOFF, "blockers"),
        ("fact", RESEARCH, "findings"),
        ("open", RESEARCH, "open_questions"),
        ("style", RESEARCH, "findings"),
        ("fact", SUMMARY, "summary"),
        ("known", HANDOFF, "progress"),
        ("open", SESSION, "logos"),
    ],
)
def test_a_role_has_a_home(role: str, schema: StateSchema, field: str) -> None:
    assert schema.field_for(role).name == field  # type: ignore[arg-type]


def test_one_text_tells_what_only_a_narrative_can_take() -> None:
    before = (
        StateEntry(
            id="F1", field="logos", role="fact", text="The budget is 900 euros", from_seqs=(3,), since_version=2
        ),
        StateEntry(
            id="N2",
            field="conversation_summary",
            role="narrative",
            text="They plan a trip.",
            from_seqs=(1,),
            since_version=1,
        ),
    )
    (told,) = entries_in_schema(before, SUMMARY, source=SESSION, next_entry=3)
    assert (told.id, told.field, told.text) == ("N2", "summary", "They plan a trip. The budget is 900 euros.")
    assert (told.from_seqs, told.since_version) == ((1, 3), 1)


def test_out_of_one_text_each_statement_becomes_a_fact_word_for_word() -> None:
    text = "About a trip. User: The budget is 900 euros. The code is AB-12. Last (User): We leave on 3 May."
    before = StateEntry(id="N7", field="summary", role="narrative", text=text, since_version=4, origins=("user",))
    after = entries_in_schema([before], RESEARCH, source=SUMMARY, next_entry=9)
    assert [(entry.id, entry.field, entry.text) for entry in after] == [
        ("F9", "findings", "About a trip."),
        ("F10", "findings", "User: The budget is 900 euros. The code is AB-12."),
        ("F11", "findings", "Last (User): We leave on 3 May."),
    ]
    assert next_entry_number(after, 9) == 12
    assert entries_in_schema([before], SUMMARY, source=SUMMARY, next_entry=9) == (before,)


def test_what_replaces_an_entry_is_named_by_its_new_id() -> None:
    doubted = replace(made.entry("F1", "The cake is ordered", "progress"), in_doubt=True, replaced_by=("O5", "F2"))
    steps = [made.entry("O5", "Order the cake", "next_steps"), made.entry("F2", "The cake is paid", "progress")]
    after = entries_in_schema([doubted, *steps], SESSION, source=HANDOFF, next_entry=9)
    assert {one.id: one.replaced_by for one in after} == {"F1": ("F5", "F2"), "F5": (), "F2": ()}


def test_what_is_in_doubt_stays_so_on_the_way_into_one_text_and_out_of_it() -> None:
    told = StateEntry(id="N7", field="summary", role="narrative", text="They plan a trip.", since_version=4)
    earlier = replace(told, id="N8", text="The budget is 900 euros. The code is AB-12.", in_doubt=True)
    assert entries_in_schema([told, earlier], SUMMARY, source=SUMMARY, next_entry=9) == (told, earlier)
    facts = entries_in_schema([told, earlier], RESEARCH, source=SUMMARY, next_entry=9)
    assert [(one.text, one.in_doubt) for one in facts] == [
        ("They plan a trip.", False),
        ("The budget is 900 euros.", True),
        ("The code is AB-12.", True),
    ]
    back = entries_in_schema(facts, SUMMARY, source=RESEARCH, next_entry=12)
    assert [(one.id, one.text, one.in_doubt) for one in back] == [
        ("N9", told.text, False),
        ("N10", earlier.text, True),
    ]


PROSE = st.lists(
    st.sampled_from(
        (
            "About a trip, a budget.",
            "О чём речь: поездка.",
            "User: The budget is 900 euros.",
            "It was said twice.",
            "Last (User): We leave on 3 May.",
            "Пользователь: Мы едем 3 мая?",
            "- a point of a list",
            "`print(1.0)`",
            "我们三月出发。",
            "----",
            "two  blanks here",
            "No end",
        )
    ),
    min_size=1,
    max_size=8,
)


@given(
    st.lists(st.sampled_from((" ", "\n", "  \n\n", "\t")), min_size=8, max_size=8),
    PROSE,
    st.sampled_from(sorted(SCHEMAS)),
)
def test_a_text_goes_to_any_schema_and_back_word_for_word(gaps: list[str], said: list[str], other: str) -> None:
    text = "".join(f"{sentence}{gap}" for sentence, gap in zip(said, gaps, strict=False)).strip()
    before = StateEntry(id="N1", field="summary", role="narrative", text=text, since_version=1)
    there = entries_in_schema([before], SCHEMAS[other], source=SUMMARY, next_entry=2)
    assert "".join("".join(entry.text.split()) for entry in there) == "".join(text.split()), "all of it, in order"
    assert all(entry.text in text for entry in there)
    (back,) = entries_in_schema(there, SUMMARY, source=SCHEMAS[other], next_entry=next_entry_number(there, 2))
    for told in (" ".join(entry.text for entry in there), back.text):
        places = [told.find(sentence) for sentence in said]
        assert -1 not in places
        assert told.count("900 euros") == text.count("900 euros"), "nothing is said more often than it was"


@given(st.data(), st.sampled_from(sorted(SCHEMAS)), st.sampled_from(sorted(SCHEMAS)))
def test_every_text_is_found_there_and_back_again(data: st.DataObject, one: str, other: str) -> None:
    source, target = SCHEMAS[one], SCHEMAS[other]
    before = data.draw(states(source))
    there = entries_in_schema(before, target, source=source, next_entry=len(before) + 1)
    back = entries_in_schema(there, source, source=target, next_entry=next_entry_number(there, len(before) + 1))
    for entries in (there, back):
        told = " ".join(" ".join(entry.text for entry in entries).split())
        assert all(" ".join(piece.split()) in told for entry in before for piece in statement_pieces(entry.text))
        assert {seq for entry in entries for seq in entry.from_seqs} >= {s for entry in before for s in entry.from_seqs}


MONDAY = datetime(2026, 2, 2, 8, 40, tzinfo=UTC)


def fact(id_: str, text: str) -> StateEntry:
    return StateEntry(id=id_, field="logos", role="fact", text=text, since_version=1)


def anchor(content: str, **changes: object) -> Anchor:
    made = Anchor(
        id=UUID(int=1),
        conversation_id=UUID(int=2),
        message_id=UUID(int=3),
        type="critical_fact",
        content=content,
        seq=6,
        offset=0,
        importance=0.5,
        token_count=9,
        said_at=MONDAY,
        created_at=MONDAY,
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def told(one: Anchor, language: str | None = "en") -> str:
    (entry,) = entries_from_anchors([one], schema=SESSION, served=(), version=3, next_entry=9, language=language)
    assert (entry.id, entry.from_seqs, entry.since_version) == ("F9", (6,), 3)
    return entry.text


def test_an_anchor_in_the_state_says_whose_words_it_is() -> None:
    assert told(anchor("I'll flash\nthe logger.")) == 'The user wrote: "I\'ll flash the logger."'
    assert told(anchor("I'll flash it.", said_by="Tom")) == "Tom: I'll flash it."
    assert told(anchor("I'll flash it.", said_by="Assistant")) == 'The user wrote: "I\'ll flash it."', "a role's name"
    assert told(anchor("I'll flash it.", speaker="assistant")) == 'The assistant wrote: "I\'ll flash it."'
    assert told(anchor("Send 5,000 euros.", pasted=True)) == 'A document that the user pasted says: "Send 5,000 euros."'
    assert told(anchor("Рояль есть."), "ru") == 'Пользователь написал: "Рояль есть."'


def test_an_anchor_in_the_state_tells_the_day_that_its_words_need() -> None:
    assert told(anchor("I'll flash it on Friday.")).endswith('on Friday (said Mon 2 February 2026)."')
    assert told(anchor("I'll flash it.")).endswith('flash it."'), "the control: words that need no day"


def released(content: str, *, served: Sequence[str] = (), max_tokens: int = 200, **given: Any) -> list[str]:
    message = replace(talk(content)[0], created_at=MONDAY, **given)
    told = [fact(f"F{number}", text) for number, text in enumerate(served, start=1)]
    made = entries_from_released(
        [message], schema=SESSION, served=told, version=3, next_entry=9, language="en", max_tokens=max_tokens
    )
    return [entry.text for entry in made]


def test_a_message_that_is_no_longer_held_says_whose_words_it_is_and_on_which_day() -> None:
    assert released("I'll flash it.") == ['The user wrote: "I\'ll flash it."']
    assert released("I'll flash it.", metadata={"name": "Tom"}) == ["Tom: I'll flash it."]
    assert released("I'll flash it on Friday.")[0].endswith('on Friday (said Mon 2 February 2026)."')
    assert released("", parts=({"type": "text", "text": "I'll flash it."},)) == ['The user wrote: "I\'ll flash it."']
    assert released("") == []


@pytest.mark.parametrize(
    ("type_", "handoff", "research"),
    [
        ("decision", "key_decisions", "findings"),
        ("correction", "key_decisions", "findings"),
        ("commitment", "next_steps", "next_actions"),
        ("unresolved_question", "next_steps", "open_questions"),
        ("critical_fact", "progress", "findings"),
    ],
)
def test_an_anchor_goes_into_the_field_for_its_kind(type_: AnchorType, handoff: str, research: str) -> None:
    for schema, field in ((HANDOFF, handoff), (RESEARCH, research), (SESSION, "logos")):
        (entry,) = entries_from_anchors(
            [anchor("So be it.", type=type_)], schema=schema, served=(), version=1, next_entry=2, language="en"
        )
        assert entry.field == field
        assert entries_in_schema([entry], schema, source=SESSION, next_entry=3) == (entry,)


@pytest.mark.parametrize(
    ("event_type", "field"),
    [("initial_objective", "goal"), ("constraint", "goal"), ("goal", "goal"), ("casual", "progress")],
)
def test_a_message_that_is_no_longer_held_goes_into_the_field_for_its_kind(event_type: str, field: str) -> None:
    message = replace(talk("To move the archive to Ulm.")[0], event_type=event_type)
    for schema, home in ((HANDOFF, field), (SESSION, "logos")):
        (entry,) = entries_from_released(
            [message], schema=schema, served=(), version=3, next_entry=9, language="en", max_tokens=200
        )
        assert (entry.field, entry.role) == (home, "fact")


def test_what_is_told_already_or_has_no_room_is_not_told_again() -> None:
    assert released("The rent is 900 euros.", served=["So: the rent is 900 euros. And heating."]) == []
    assert released("The rent is 900 euros.", served=["The rent is 800 euros."], max_tokens=5) == []
    assert released("The rent is 900 euros.", served=["The rent is 800 euros."]) != [], "control"


def test_a_state_that_was_carried_over_is_kept_beside_new_entries() -> None:
    budgets_ = budgets()
    facts = [fact("F1", "word " * 2 * budgets_.state_tokens)]
    carried = sum(estimate_text(one.text) for one in facts)
    assert carried > budgets_.state_tokens
    assert requested_state_tokens(budgets_, facts, carried=False) == budgets_.state_tokens
    assert requested_state_tokens(budgets_, facts, carried=True) == carried + carried // 2
    assert requested_state_tokens(budgets_, [], carried=True) == budgets_.state_tokens


def test_what_is_on_record_is_named_as_in_the_new_schema() -> None:
    one, story = fact("F1", "Ulm."), replace(fact("N3", "All."), field="conversation_summary", role="narrative")
    style = replace(fact("P2", "Short."), field="pathos", role="style", replaced_by=("P3",))
    other = replace(style, id="P3", replaced_by=())
    cut = Repair(field="pathos", reason="novel_value", before="7", after=None, entry_id="P2", cut=Cut(replaces=("P3",)))
    version = StateVersion(
        version=1,
        state_schema="session",
        state={},
        entries=(one, style, other, story),
        next_entry=9,
        boundary_seq=1,
        boundary_message_id=None,
        covered=Sums(),
        layout=None,
        compaction_id=None,
        created_at=MONDAY,
        repairs=(
            cut,
            replace(cut, field="conversation_summary"),
            replace(cut, field="elsewhere"),
            replace(cut, cut=None),
        ),
    )
    moved = record_in_schema(version, RESEARCH, source=SESSION)
    assert [(one.id, one.field, one.replaced_by) for one in moved.entries] == [
        ("F1", "findings", ()),
        ("F2", "findings", ("F3",)),
        ("F3", "findings", ()),
    ]
    renamed = replace(cut, field="findings", entry_id="F2", cut=Cut(replaces=("F3",)))
    assert moved.repairs == (renamed, replace(renamed, cut=None)), "what is no longer there is left out"
    assert record_in_schema(version, SUMMARY, source=SESSION) == replace(version, entries=(), repairs=())


def test_an_anchor_shown_again_is_not_told_by_the_state_too() -> None:
    one = anchor("I'll flash it on Friday. Then it runs.")
    other = anchor("Рояль есть.", seq=8)
    own = StateEntry(
        id="F1", field="facts", role="fact", text="The logger is on the roof.", from_seqs=(6,), since_version=1
    )
    made = entries_from_anchors([one, other], schema=SESSION, served=(), version=1, next_entry=2, language="en")
    assert entries_from_anchors(
        [one, other], schema=SESSION, served=made[:1], version=1, next_entry=4, language="en"
    ) == [replace(made[1], id="F5")], "what an entry says in these words is not said twice"
    doubted = [replace(made[0], in_doubt=True)]
    assert made == entries_from_anchors(
        [one, other], schema=SESSION, served=doubted, version=1, next_entry=2, language="en"
    ), "the control: an entry in doubt is the first to go"
    there = entries_in_schema([own, *made], SUMMARY, source=SESSION, next_entry=4)
    back = entries_in_schema(there, SESSION, source=SUMMARY, next_entry=next_entry_number(there, 4))
    assert [entry.text for entry in back] == [own.text, *(entry.text for entry in made)], "none is cut in two"
    assert without_anchor_entries(back, [one], "en") == (back[0], back[2])
    assert without_anchor_entries(back, [], "en") == back, "the control: an anchor without room keeps its entry"
    assert without_anchor_entries(back, [replace(one, seq=9)], "en") == back, "the control: said somewhere else"
