"""A state under another schema: every text is still there, each in the field of its role."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.schemas import HANDOFF, RESEARCH, SCHEMAS, SESSION, SUMMARY
from app.domain.states.adopting import adopted
from app.domain.states.state import ID_LETTERS, StateEntry, StateSchema

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
    after = adopted(before, target)

    told = " ".join(entry.text for entry in after)
    assert all(entry.text in told for entry in before)
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
    assert schema.home(role).name == field  # type: ignore[arg-type]


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
    (told,) = adopted(before, SUMMARY)
    assert (told.id, told.field, told.text) == ("N2", "summary", "They plan a trip. The budget is 900 euros.")
    assert (told.from_seqs, told.since_version) == ((1, 3), 1)
