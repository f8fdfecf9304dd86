"""The bench of the anchor rules measures what its text says."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from app.core.model.anchors import FoundAnchor
from app.core.model.candidate import Candidate, CandidateItem
from app.core.model.state import StateEntry
from bench.anchors.corpus import OPEN, SEALED, Sentence, messages, split
from bench.anchors.measures import judged, kappa, score
from bench.anchors.outdated import RULES, marked_in, read
from bench.anchors.pairs import pairs
from bench.anchors.pasted import Text, judged_texts, texts

TALK = [
    ("user", False, "My budget for the kitchen is 12,400 euros.", "critical_fact"),
    ("user", False, "What do you think?", "none"),
    ("user", True, "I will pay 900 euros on 3 May.", "none"),
    ("assistant", False, "Kitchens are lovely.", "commitment"),
    ("assistant", False, "I'll send the offer by Friday.", "commitment"),
    ("assistant", False, "I'll draft the contract by Monday.", "none"),
]


def sentences() -> list[Sentence]:
    return [
        Sentence(
            conversation="a",
            language="en",
            seq=1 if role == "user" else 2,
            index=index,
            role=role,  # type: ignore[arg-type]
            pasted=pasted,
            text=text,
            label_a=label,
            label_b=label,
        )
        for index, (role, pasted, text, label) in enumerate(TALK)
    ]


def test_sentences_stand_at_their_places_and_pasted_ones_in_a_paragraph_of_their_own() -> None:
    first, second = messages(sentences())
    assert first.message.content.endswith("What do you think?\n\nI will pay 900 euros on 3 May.")
    for labelled in (first, second):
        for place, sentence in labelled.sentences:
            assert labelled.message.content[place:].startswith(sentence.text)


def test_hits_are_counted_by_type_and_disputed_sentences_left_out() -> None:
    rows = judged(sentences())
    commitments = score(rows, "commitment")
    assert (commitments.hits, commitments.found, commitments.there) == (1, 2, 2)
    assert commitments.precision == 0.5
    assert commitments.recall == 0.5
    assert score(rows, "critical_fact").precision == 1.0
    assert (score(rows).hits, score(rows).found, score(rows).there) == (2, 3, 3)
    disputed = [replace(one, label_b="decision") if one.index == 5 else one for one in sentences()]
    assert score(judged(disputed), "commitment").found == 1
    assert score(rows, "correction").precision is None


def test_agreement_by_chance_is_none() -> None:
    whole = sentences()
    assert kappa(whole) == 1.0
    one_off = [replace(one, label_b="none") if one.index == 4 else one for one in whole]
    assert 0 < kappa(one_off) < 1
    labels = ["none", "none", "decision", "decision"]
    by_chance = [replace(one, label_a=a, label_b=b) for one, a, b in zip(whole, labels, labels[1:3] * 2, strict=False)]
    assert kappa(by_chance) == pytest.approx(0.0)


def test_conversations_are_never_parted() -> None:
    rows = [json.dumps({"conversation": f"{n % 6}", "language": "en" if n % 2 else "ru"}) for n in range(30)]
    opened, sealed = split(rows)
    names = [{json.loads(row)["conversation"] for row in half} for half in (opened, sealed)]
    assert not names[0] & names[1]
    assert sorted([*opened, *sealed]) == sorted(rows)
    assert {len(half) for half in names} <= {2, 3, 4}


@pytest.mark.skipif(not (OPEN.exists() and SEALED.exists()), reason="the corpus is not here")
def test_the_sealed_half_shares_no_conversation_with_the_open_one() -> None:
    names = [
        {json.loads(line)["conversation"] for line in half.read_text(encoding="utf-8").splitlines()}
        for half in (OPEN, SEALED)
    ]
    assert all(names)
    assert not names[0] & names[1]


@pytest.mark.parametrize(
    ("later", "found"),
    [("Sorry, the budget is 600 euros, not 500.", 1), ("The hall costs 600 euros.", 0)],
    ids=["it corrects", "control: it tells of something else"],
)
def test_pairs_name_what_gave_way_and_what_took_its_place(later: str, found: int) -> None:
    told = [{"role": "user", "content": text} for text in ("The budget is 500 euros.", later)]
    assert list(pairs([("talk", told)])) == found * [["talk", "#1 The budget is 500 euros.", f"#2 {later}"]]


def entry(text: str, *seqs: int) -> StateEntry:
    return StateEntry(id="F1", field="logos", role="fact", text=text, from_seqs=seqs, since_version=1)


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        ("The budget is 600 euros.", [True, False, True, True]),
        ("The budget is 600 euros, before 500 euros.", [True, False, False, False]),
        ("The hall is booked.", [True, False, True, False]),
    ],
)
def test_a_replaced_entry_marks_the_anchors_of_its_messages(text: str, rules: list[bool]) -> None:
    said = FoundAnchor(type="critical_fact", content="500 euros", seq=1, offset=0, importance=0.5, token_count=9)
    anchors = [said, replace(said, seq=2)]
    items = (CandidateItem(field="logos", text=text, from_seqs=(1, 3), replaces=("F1",)),)
    found = list(marked_in("a", [entry("The budget is 500 euros.", 1)], Candidate(items=items, narrative={}), anchors))
    assert [one.key for one in found] == [("a", 1, "500 euros")]
    assert [rule(found[0]) for rule in RULES.values()] == rules


def test_sixty_of_the_judged_ones_were_drawn_by_lot() -> None:
    judged_ones = read()
    assert sum(one.by_lot for one in judged_ones.values()) == 60


def test_it_is_told_whose_words_a_statement_is() -> None:
    content = 'He writes:\n\n"I will pay 400 euros by 3 May. The sill comes later."\n\nI will wait.'
    others = ((content.index("I will pay"), content.index('"\n\nI will wait')),)
    found = list(judged_texts(Text(name="a", kind="own", is_held=False, content=content, others=others)))
    assert [(one.whose, one.is_pasted) for one in found if not one.is_anchor] == [
        ("own", False),
        ("others", True),
        ("others", True),
        ("own", False),
    ]


def test_a_text_is_in_the_same_half_in_each_language() -> None:
    held = {text.name for text in texts() if text.is_held}
    assert {name.partition("-")[2] for name in held}.isdisjoint(
        text.name.partition("-")[2] for text in texts() if not text.is_held
    )
    assert all(0 <= start < end <= len(text.content) for text in texts() for start, end in text.others)
    assert any(text.others for text in texts())
