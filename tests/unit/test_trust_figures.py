"""The bench of trust counts costs, ten rounds and readers."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from app.usecases.verification.pending import ENOUGH_TOKENS
from bench.trust.cost import Tokens, cost_of_fold, cost_of_play, row_of, verifying
from bench.trust.folding import folded
from bench.trust.joined import folds_of
from bench.trust.measures import figures_of, honest_figures_of
from bench.trust.ordinary import KINDS, answers, counted, lies_counted
from bench.trust.readers import Reading, judgements, kappa, readings_of
from bench.trust.rounds import talk_named
from bench.trust.ten_rounds import facts_of, halves_of, kept_in, line_of
from bench.trust.verified import asked_of
from tests.unit.trust_cases import cases, plays


def served(text: str) -> dict[str, Any]:
    return {"talk": "x", "served": text, "tokens": 1, "refused": []}


@pytest.mark.long
def test_honest_answers_are_counted_alike_with_and_without_their_lies() -> None:
    found = honest_figures_of(plays())
    assert found == figures_of([play.case for play in plays()])
    broken = replace(plays()[1].case, answer="I cannot do that.")
    assert figures_of([broken])["honest answers accepted at the first attempt"] == ("0.0 %", 1)
    assert found["honest answers accepted at the first attempt"] == ("100.0 %", 3)


@pytest.mark.long
def test_the_figures_of_talks_of_the_kinds_that_products_have_are_those_of_the_docs() -> None:
    found = counted(answers("kinds"))
    failing = [(found[kind, "failing"], found[kind, "all"]) for kind in KINDS]
    assert failing == [(6, 211), (1, 101), (1, 60)]
    assert found["items", "gone"] == 2
    items, all_items = failing[0]
    assert f"of {all_items} items failed when they were first counted, and now {items / all_items:.1%}" in " ".join(
        (Path(__file__).parents[2] / "docs/trust.md").read_text("utf-8").replace(" %", "%").split()
    )


@pytest.mark.long
def test_the_figures_of_talks_full_of_formulas_are_those_of_the_docs() -> None:
    found = [counted(answers(name)) for name in ("formulas", "formulas-held")]
    assert [(one["items", "failing"], one["items", "all"]) for one in found] == [(2, 118), (1, 119)]
    assert [[one[kind, "failing"] for kind in KINDS[1:]] for one in found] == [[0, 0], [0, 1]]
    lies = [lies_counted(answers(name))["date", "failing"] for name in ("formulas", "formulas-held")]
    assert lies == [11, 11]


class TestCosts:
    def test_each_call_counts_with_all_that_it_reads_and_writes(self) -> None:
        (call,) = asked_of(plays()[0].case, plays()[0].outcome).requests
        once, twice = verifying([call]), verifying([call, call])
        assert (twice.read, twice.written) == (2 * once.read, 2 * once.written)
        less = verifying([replace(call, older=(), previous=(), claims=call.claims[:1])])
        assert less.read < once.read
        assert less.written < once.written
        assert once.dollars() > less.dollars() > 0
        assert Tokens().plus(once) == once

    def test_asking_again_costs_too(self) -> None:
        play = plays()[0]
        again = cost_of_play(replace(play, outcome=replace(play.outcome, asked_again=True)))
        once = cost_of_play(play)
        assert (once.again.total, once.verifying) == (0, again.verifying)
        assert again.share > once.share > 1
        assert again.again.read > 1_000

    def test_a_larger_chunk_leads_to_no_larger_state_and_to_a_smaller_share(self) -> None:
        corpus = [case for case in cases() if case.preset == "semantic"]
        small = list(folds_of(corpus, talks=1, rounds=1))
        (large,) = folds_of(corpus, talks=1, rounds=5)
        assert large.tokens == sum(fold.tokens for fold in small)
        gathered = list(folds_of(corpus, talks=1))
        assert sum(fold.tokens for fold in gathered) == large.tokens
        assert all(fold.tokens >= ENOUGH_TOKENS for fold in gathered[:-1])
        assert large.state_tokens <= 1.2 * max(fold.state_tokens for fold in small)
        costs = [cost_of_fold(fold) for fold in small]
        assert cost_of_fold(large).share < min(cost.share for cost in costs)
        assert row_of("x", costs)[4] == f"{max(cost.share for cost in costs):.2f}"

    def test_what_a_chunk_replaced_is_claimed_beside_what_took_its_place(self) -> None:
        corpus = [case for case in cases() if case.preset == "semantic"]
        claims = [claim for fold in folds_of(corpus, talks=1, rounds=1) for claim in fold.subject.claims]
        assert {claim.kind for claim in claims} >= {"item", "sentence", "replaced"}


class TestTenRounds:
    def test_both_halves_together_say_what_the_round_said(self) -> None:
        case = cases()[1]
        early, late = halves_of(case)
        assert (early["first"], late["last"]) == (case.request.messages[0].seq, case.request.messages[-1].seq)
        assert early["last"] + 1 == late["first"]
        for field, value in json.loads(case.answer).items():
            if field == "logos":
                told = [item["text"] for half in (early, late) for item in half["answer"][field]]
                assert sorted(told) == sorted(item["text"] for item in value)
                assert all(max(item["from"]) <= early["last"] for item in early["answer"][field])
        assert len(line_of(cases()[:5])["rounds"]) == 10

    def test_facts_count_as_kept_only_while_they_are_served(self) -> None:
        talk = talk_named("wedding")
        everything = served("\n".join(question["answer"] for question in talk.questions))
        facts = len(list(facts_of(talk)))
        assert facts >= 5
        kept, lost = kept_in(talk, everything), kept_in(talk, served("Orla plans a wedding."))
        assert (kept.kept, kept.facts, lost.kept, lost.facts) == (facts, facts, 0, facts)
        assert kept_in(talk, served(""), everything["served"]).by_chance == facts

    def test_rounds_are_played_by_what_stands_here(self) -> None:
        line = line_of(cases()[:5])
        line["rounds"] = line["rounds"][:2]
        told = folded(line)
        first = line["rounds"][1]["answer"]["logos"][0]["text"].partition(";")[0]
        assert first in told["served"]
        assert told["refused"] == []
        line["rounds"][1]["answer"] = {"nonsense": "Nothing of it can be read", "dropped": []}
        again = folded(line)
        assert first not in again["served"]
        assert again["refused"] != []


class TestReaders:
    CHANGES = (
        {"id": "1", "kind": "item"},
        {"id": "2", "kind": "item"},
        {"id": "3", "kind": "narrative"},
    )

    def test_what_both_and_what_one_of_them_calls_worse(self, tmp_path: Path) -> None:
        path = tmp_path / "one.jsonl"
        path.write_text('{"id": "1", "worse": true}\n\n{"id": 2, "worse": true}\n{"id": "3", "worse": false}\n')
        found = readings_of(
            self.CHANGES,
            judgements(path),
            {"1": True, "2": False, "3": False},
            {"item": 50, "narrative": 9, "digest": 4},
        )
        assert found == {
            "item": Reading(texts=50, changed=2, by_both=1, by_either=2),
            "narrative": Reading(texts=9, changed=1, by_both=0, by_either=0),
            "digest": Reading(texts=4, changed=0, by_both=0, by_either=0),
        }

    @pytest.mark.parametrize(
        "lines", ['{"id": "1", "worse": "yes"}', "[1]", '{"id": "1", "worse": true}\n{"id": 1, "worse": true}', "?"]
    )
    def test_what_is_no_judgement_is_refused(self, lines: str, tmp_path: Path) -> None:
        path = tmp_path / "one.jsonl"
        path.write_text(lines)
        with pytest.raises(ValueError, match=r"one\.jsonl, line|Expecting value"):
            judgements(path)

    def test_a_change_that_only_one_of_them_judged_is_refused(self) -> None:
        both = {"1": True, "2": False, "3": False}
        with pytest.raises(ValueError, match="Both readers"):
            readings_of(self.CHANGES, both, {"1": True}, {})

    @pytest.mark.parametrize(
        ("one", "other", "agreement"),
        [
            ("1100", "1100", 1.0),
            ("1100", "0011", -1.0),
            ("1100", "1010", 0.0),
            ("1110000000", "1100000001", 0.524),
            ("0000", "0000", None),
            ("", "", None),
        ],
    )
    def test_agreement_beyond_chance(self, one: str, other: str, agreement: float | None) -> None:
        found = kappa([sign == "1" for sign in one], [sign == "1" for sign in other])
        assert found == (None if agreement is None else pytest.approx(agreement, abs=1e-3))
