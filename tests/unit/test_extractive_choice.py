"""What the offline model keeps first: rules, restated values, balance; it does not repeat what an anchor tells."""

from __future__ import annotations

import json
from uuid import UUID

import pytest

from app.core.anchors.replacement import form_of
from app.core.model.anchors import Anchor
from app.core.model.model_io import SummaryRequest
from app.core.model.schemas import RESEARCH
from app.core.reading.choice import KeptTexts, Option, choose
from app.core.reading.cues import cues_of
from app.core.reading.scoring import Worth, values_worth
from app.core.summarizer.offline.extractive import compress
from app.core.text.identifiers import find_identifiers
from tests.corpus import assert_verdicts, corpus
from tests.unit.test_extractive import AT, CHATTER, entry, state, talk, texts


def test_a_rule_is_known_as_one_and_small_talk_is_none() -> None:
    assert_verdicts(corpus("rules"), lambda text: bool(cues_of(text) & {"rule", "constraint"}), precision=0.727)


def test_rules_are_kept_where_room_is_short() -> None:
    rules = "U Never share the guest list with the press.\nA Fine.\nU Always ask Maren before you print.\nA Fine.\n"
    events = "\n".join(
        f"U We walked to the {place} and had a nice time there.\nA Good." for place in ("sea", "lake") * 9
    )
    facts = texts(state(talk(rules + events), target=130))
    assert "Never share the guest list" in facts
    assert "Always ask Maren" in facts


def test_a_statement_made_again_replaces_the_older_value() -> None:
    rows = f"U The gate code is 4471.\nA Fine.\nU The lamps are red.\nA {CHATTER}\nU The gate code is 9083.\nA Fine."
    facts = texts(state(talk(rows)))
    assert "The gate code is 9083." in facts
    assert "4471" not in facts
    previous = [entry("logos", "User: The gate code is 4471; The pier is closed", id_="F1")]
    later = state(talk(f"U The gate code is 9083.\nA {CHATTER}", start=9), previous=previous)["logos"]
    assert [item["text"] for item in later] == ["User: The pier is closed", "User: The gate code is 9083."]
    assert all(item["replaces"] == ["F1"] for item in later)


def test_statements_are_compared_by_their_form() -> None:
    def are_alike(text: dict[str, str]) -> bool:
        one, other = (form_of(text[name]) for name in ("one", "other"))
        assert None not in (one, other)
        return one == other

    assert_verdicts(corpus("statement_pairs"), are_alike)


def test_what_states_no_value_of_a_subject_is_no_statement() -> None:
    assert_verdicts(corpus("statements"), lambda text: form_of(text) is not None)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Hypothesis: colony H-0 dies because of the cold.", "Hypothesis: colony H-1 dies because of the cold."),
        ("Hypothesis: the mites came in 2023.", "Hypothesis: the mites came in 2024."),
        ("I suspect that colony H-0 dies because of the cold.", "I suspect that colony H-1 dies because of the cold."),
        ("Гипотеза: семья H-0 гибнет от холода.", "Гипотеза: семья H-1 гибнет от холода."),
    ],
)
def test_one_hypothesis_neither_replaces_nor_settles_another(one: str, other: str) -> None:
    previous = [entry("hypotheses", f"User: {one}", id_="O1", role="open")]
    span = talk(f"U {other}\nA {CHATTER}", start=9)
    request = SummaryRequest(schema=RESEARCH, messages=span, previous=tuple(previous), target_tokens=800)
    later = json.loads(compress(request))
    told = [item for items in later.values() if isinstance(items, list) for item in items]
    assert [one for one in told if "O1" in one.get("replaces", ()) or one.get("entry") == "O1"] == []
    assert any(other.rstrip(".") in item["text"] for item in later["hypotheses"])


def anchor(content: str, seq: int) -> Anchor:
    return Anchor(
        type="critical_fact",
        content=content,
        seq=seq,
        offset=0,
        importance=0.7,
        token_count=20,
        id=UUID(int=seq),
        conversation_id=UUID(int=0),
        message_id=UUID(int=seq),
        created_at=AT,
    )


def test_what_an_anchor_tells_is_not_told_again_unless_it_stands_behind_the_marker() -> None:
    rows = f"U Our account is TK-88213-B at the bank.\nA Fine.\nU Crate QX-7 goes to pier 9.\nA {CHATTER}"
    messages = talk(rows, start=5)
    anchors = (anchor("Our account is TK-88213-B at the bank.", 5),)
    shown = texts(state(messages, anchors=anchors))
    assert "TK-88213-B" not in shown
    assert "QX-7" in shown
    assert "TK-88213-B" in texts(state(messages, anchors=anchors, anchor_room=10))


def option(key: int, text: str, about: str = "fact", rest: float = 2.0) -> Option:
    values = values_worth(text, find_identifiers(text))
    worth = Worth(words_worth=rest, values=values, about=about)
    return Option(key=key, worth=worth, stems=frozenset(text.lower().split()), size=len(text), cost=lambda: 10)


def test_each_value_counts_once() -> None:
    options = [
        option(1, "Dora Kuhn paid $40 to Bela Orosz"),
        option(2, "yesterday Dora Kuhn sent $40 for Bela Orosz"),
        option(3, "crate QX-7 goes over to pier 12"),
    ]
    assert [one.key for one in choose(options, token_limit=20, kept_texts=KeptTexts())] == [1, 3]


def test_kinds_are_balanced() -> None:
    things = ("lamp rope", "door hinge", "oak table", "red boat", "tin bucket", "glass bowl")
    options = [option(n, f"{thing} goes for $4{n}") for n, thing in enumerate(things)]
    options.append(option(9, "answers in plain words please now", about="wish", rest=3.0))
    assert 9 in [one.key for one in choose(options, token_limit=40, kept_texts=KeptTexts())]


def test_names_in_small_letters_count_as_codes() -> None:
    assert set(values_worth("eu-north-5 runs spike/lamp-35 at 77e90d3", [])) == {
        "eu-north-5",
        "spike/lamp-35",
        "77e90d3",
    }
    assert values_worth("a well-known day-to-day word, facade", []) == {}


def test_what_is_surely_too_long_is_not_priced() -> None:
    def price() -> int:
        raise AssertionError("priced")

    longer = option(1, "Dora Kuhn paid $40 to Bela Orosz for the " + "harbour " * 30)._replace(cost=price)
    shorter = option(2, "crate QX-7 goes over to pier 12")
    assert [one.key for one in choose([longer, shorter], token_limit=30, kept_texts=KeptTexts())] == [2]
    with pytest.raises(AssertionError, match="priced"):
        choose([longer, shorter], token_limit=300, kept_texts=KeptTexts())
