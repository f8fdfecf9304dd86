"""The bench's counts of sentences that are appended to true items, each figure with a case in which it is bad."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache

import pytest

from bench.trust import hung
from bench.trust.hung import VERIFIERS, Hung, hung_of, outcome_of
from bench.trust.playing import Played
from bench.trust.rounds import ANSWERS, Case, cases_of, talk_named

pytestmark = pytest.mark.long


@cache
def found() -> tuple[Hung, ...]:
    """The findings of the first rounds of two conversations."""
    corpus: list[Case] = []
    for name in ("wedding", "small-company"):
        told = json.loads((ANSWERS / f"{name}.json").read_text("utf-8"))
        corpus += [case for case in cases_of(talk_named(name), told) if case.round == 1]
    return tuple(hung_of(corpus))


def test_verdicts_without_an_error_leave_the_strange_sentence_alone_in_doubt() -> None:
    before, after = (outcome_of(found(), VERIFIERS[name]) for name in ("not asked again", "no error"))
    assert before.true == before.true_in_doubt > 4
    assert after == replace(before, true_in_doubt=0)
    assert after.hung == after.hung_in_doubt == len(found()) > 3
    assert all(one.share_again < one.share for one in found())


@pytest.mark.parametrize("name", [name for name in VERIFIERS if name != "no error"])
def test_no_verifier_takes_a_sentence_away(name: str) -> None:
    outcome = outcome_of(found(), VERIFIERS[name])
    assert (outcome.true_lost, outcome.hung_lost, outcome.others_changed) == (0, 0, 0)


def test_a_service_that_takes_sentences_away_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hung, "verified", lambda *_: Played(reason=None))
    outcome = outcome_of(found(), VERIFIERS["no error"])
    assert (outcome.true_lost, outcome.hung_lost) == (outcome.true, outcome.hung)
