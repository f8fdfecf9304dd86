"""Ids of kept passages are for the summarizer alone: no served text contains one."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from app.core.anchors.prompt_ids import prompt_ids_of, without_prompt_ids
from app.core.model.anchors import FoundAnchor
from app.core.validation.asking import doubts_of
from app.core.validation.gate import judge, judge_again
from tests.unit.talk import answer, fact, proposal, request, talk

TALK: Final = talk(
    "Our gifts may cost 60 euros each, no more. We meet at Vera's on 4 March 2027.",
    "Noted: 60 euros each.",
    "And Ilse brings the cake.",
)
KEPT: Final = FoundAnchor(
    type="commitment", content="60 euros each, no more", seq=1, offset=20, importance=0.8, token_count=12
)
ASKED: Final = request(TALK, anchors=(KEPT,))


def test_a_known_name_becomes_the_number_of_its_message() -> None:
    known = {name for name, _ in prompt_ids_of([KEPT])}
    assert known == {"P1-1"}
    assert without_prompt_ids("Gift limits: P1-1. Cake: Ilse.", known) == "Gift limits: #1. Cake: Ilse."


def test_what_only_looks_like_a_name_stays() -> None:
    text = "Part XP1-1 fits the P1-12 and the P2-1."
    assert without_prompt_ids(text, {"P1-1"}) == text


def test_an_item_that_names_a_passage_by_its_id_is_kept_and_readable() -> None:
    report = judge(proposal(answer("Gifts are planned (P1-1).", [fact("Gift limits: P1-1.", 1)])), ASKED)
    assert report.candidate is not None
    assert [item.text for item in report.candidate.items] == ["Gift limits: #1."]
    assert report.candidate.narrative["conversation_summary"] == "Gifts are planned (#1)."
    assert [(one.reason, one.before, one.after) for one in report.repairs] == [
        ("passage_named", "Gift limits: P1-1.", "Gift limits: #1."),
        ("passage_named", "Gifts are planned (P1-1).", "Gifts are planned (#1)."),
    ]


def test_an_id_that_was_not_shown_is_a_value_from_nowhere() -> None:
    report = judge(proposal(answer("They plan gifts.", [fact("Gift limits: P1-1.", 1)])), replace(ASKED, anchors=()))
    assert [one.reason for one in report.repairs] == ["novel_value"]


def test_a_second_answer_names_no_passage_either() -> None:
    texts = [fact("Gift limits: P1-1.", 1), fact("The cake costs 47 euros.", 3)]
    first = judge(proposal(answer("They plan gifts.", texts)), ASKED)
    assert first.examined is not None
    again = replace(ASKED, doubts=doubts_of(first.examined.failures))
    second = '{"statements": [{"n": 1, "text": "Ilse brings the cake, see P1-1."}], "added": []}'
    report = judge_again(first, proposal(second), again)
    assert report.candidate is not None
    assert [item.text for item in report.candidate.items] == ["Gift limits: #1.", "Ilse brings the cake, see #1."]
    assert "passage_named" in [one.reason for one in report.repairs]
