"""Damage to recorded answers by the checks of commit 150b694 is found and mended by code; nothing else is touched."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import pytest

from app.core.model.candidate import Candidate, CandidateItem
from app.core.model.state import ID_LETTERS, FieldRole, StateEntry
from app.core.text.values import ValueIndex, values
from app.core.validation.damage import RecordedVersion, find_damage, mended_entries, sound_version
from bench.fixture.damaged import Chain, chains, figures

SAID: Final = {
    1: "Hello! The venue is the walled garden, we took it. And the band?\n# Budget\n18 000 euros in all, no more",
    2: 'call {"path": "a.py", "lines": 12} done',
}


@pytest.fixture(scope="module")
def stored() -> list[Chain]:
    return list(chains())


def entry(name: str, text: str, *, since: int = 1, seqs: tuple[int, ...] = (1, 2), **fields: object) -> StateEntry:
    role: FieldRole = next(role for role, letter in ID_LETTERS.items() if letter == name[0])
    made = StateEntry(id=name, field=f"{role}s", role=role, text=text, from_seqs=seqs, since_version=since)
    return replace(made, **fields)  # type: ignore[arg-type]


def version(number: int, *entries: StateEntry, changed: int = 1) -> RecordedVersion:
    return RecordedVersion(
        version=number, boundary_seq=10 * number, entries=entries, changed_texts=changed, written_by=str(number)
    )


STORY: Final = entry("N9", "They plan a wedding and found a venue. " * 8)


@pytest.mark.long
def test_what_the_checks_of_an_older_commit_damaged_is_found_and_nothing_else_is_touched(stored: list[Chain]) -> None:
    found = figures(stored)
    items, narratives = found["items"], found["narratives"]
    print(items, narratives)
    assert items.damaged > 300
    assert items.found == items.mended >= 0.98 * items.damaged
    assert items.intact > 1_600
    assert items.touched == 0
    assert narratives.damaged > 60
    assert narratives.found >= 0.75 * narratives.damaged
    assert narratives.touched == 0


def test_control_states_of_other_checks_are_left_alone_and_a_wrong_finding_would_be_counted(
    stored: list[Chain],
) -> None:
    some = stored[:6]
    checked_since = [
        replace(one, versions=tuple(replace(made, changed_texts=0) for made in one.versions)) for one in some
    ]
    assert not any(counts.found for counts in figures(checked_since).values())
    # If a writer had written every item as it is there, each finding would be wrong.
    honest = [replace(one, answers=tuple(_as_stored(one, number) for number in range(1, 6))) for one in some]
    assert figures(honest)["items"].touched > 0


def _as_stored(chain: Chain, number: int) -> Candidate:
    stand = [one for one in chain.versions[number - 1].entries if one.since_version == number]
    items = tuple(CandidateItem(field=one.field, text=one.text) for one in stand if one.role != "narrative")
    return replace(chain.answers[number - 1], items=items)


def test_mending_keeps_every_intact_text_to_the_byte_and_loses_no_value(stored: list[Chain]) -> None:
    for chain in stored[::3]:
        last = chain.versions[-1]
        found = find_damage(chain.versions, chain.texts_by_seq)
        done = mended_entries(last.entries, found, version=6)
        damaged = {one.entry.id for one in found}
        pairs = list(zip(last.entries, done.entries, strict=True))
        assert all(now == before for before, now in pairs if before.id not in damaged)
        served = ValueIndex()
        for one in done.entries:
            if not one.pruned:
                served.add(1, one.text)
        gone = [before.text for before, now in pairs if now.pruned and not before.pruned]
        assert all(served.holds(value) for text in gone for value in values(text))
        after = [
            *chain.versions,
            RecordedVersion(version=6, boundary_seq=last.boundary_seq, entries=done.entries, written_by="6"),
        ]
        left = find_damage(after, chain.texts_by_seq)
        assert {one.kind for one in left} <= {"cut_narrative"}, "a second time there is nothing to mend"
        assert not mended_entries(done.entries, left, version=7).repairs


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("The venue is the walled garden, we took it.", "quote"),
        ("18 000 euros in all, no more", "quote"),
        ("And the band?", "fragment"),
        ("# Budget", "fragment"),
        ("the walled garden, we", "fragment"),
        ('call {"path": "a.py", "lines": 12} done', "fragment"),
        ("The venue is the walled garden of Niamh's boss.", None),
    ],
)
def test_what_stands_in_a_source_to_the_letter_is_no_item(text: str, kind: str | None) -> None:
    found = find_damage([version(1, entry("F1", text), STORY)], SAID)
    assert [one.kind for one in found] == ([kind] if kind else [])


def test_what_code_added_or_was_mended_or_a_model_quotes_itself_is_no_damage() -> None:
    text = "The venue is the walled garden, we took it."
    quote = entry("F1", text)
    assert find_damage([version(1, quote, STORY)], SAID)
    assert not find_damage([version(1, entry("F10", text), STORY)], SAID), "numbered after the narrative"
    assert not find_damage([version(1, replace(quote, in_doubt=True), STORY)], SAID)
    assert not find_damage([version(1, quote, entry("F2", "And the band?"), STORY)], SAID), "more quotes than changes"
    assert not find_damage([version(1, replace(quote, from_seqs=(2,)), STORY)], SAID), "another message says it"


def test_a_narrative_beside_newer_facts_is_stale_and_gives_way_to_them() -> None:
    fact, news = entry("F1", "Orla found a venue"), entry("F11", "The venue was flooded on 3 May.", since=2)
    lineage = [version(1, fact, STORY, changed=0), version(2, fact, news, STORY)]
    (found,) = find_damage(lineage, SAID)
    assert (found.kind, found.version) == ("stale_narrative", 1)
    done = mended_entries(lineage[-1].entries, [found], version=3)
    assert done.entries[-1].text == "Orla found a venue. The venue was flooded on 3 May."
    assert [(one.reason, one.before) for one in done.repairs] == [("narrative_line", STORY.text)]
    assert not find_damage([version(1, fact, STORY, changed=0), version(2, fact, STORY)], SAID), "without news it holds"


def test_a_stub_keeps_what_is_left_and_the_newest_sound_version_is_gone_back_to() -> None:
    fact = entry("F1", "Orla found a venue.")
    stub = entry("N12", "The photographer is open.", since=2)
    lineage = [version(1, fact, STORY, changed=0), version(2, fact, stub)]
    (found,) = find_damage(lineage, SAID)
    assert found.kind == "cut_narrative"
    assert mended_entries(lineage[-1].entries, [found], version=3).entries[-1].text == f"{stub.text} {fact.text}"
    assert sound_version(lineage, SAID) == 1
    assert sound_version([version(1, entry("F1", "And the band?"), STORY)], SAID) == 0
