"""The conformance kit on the offline compactor, and on one that forgets, which the kit must notice."""

from __future__ import annotations

from functools import partial

import pytest
from compaction_kit.session import Turn

from app.core.model.records import FoldRequest
from bench.conformance import NEWS, Offline, Verdict, judged, verdicts_table
from bench.replay import Replay


def forgetful(talk: Replay, request: FoldRequest) -> int:
    """Folds like the service, but then remembers nothing of it."""
    chunks = talk.fold(request)
    talk.forget()
    return chunks


@pytest.mark.long
def test_no_type_is_flagged_and_none_falls_off_a_cliff() -> None:
    verdict = judged(Offline, budget=0.2, seed=1, rounds=5)
    assert verdict.flagged == ()
    assert verdict.cliffs == ()
    assert verdict.within_budget
    assert len(verdict.curves) == 5


@pytest.mark.long
def test_a_compactor_that_forgets_is_flagged() -> None:
    verdict = judged(partial(Offline, fold=forgetful), budget=0.2, seed=1, rounds=1)
    assert len(verdict.flagged) == 5
    assert len(verdict.cliffs) == 5


def test_the_system_prompt_is_not_counted_and_each_round_with_news_is_a_compaction() -> None:
    turns = [Turn("system", "You are a coding assistant.")]
    turns += [Turn(("user", "assistant")[n % 2], f"Crate QX-{n} costs ${n}5 and goes to pier {n}.") for n in range(40)]
    compactor = Offline(news=NEWS)
    first = compactor.compact(turns, 1).text
    assert "coding assistant" not in first
    assert "<session_state>" in first
    second = compactor.compact([Turn("system", first)], 2).text
    assert second != first
    assert "Crate QX-0" in second


def test_without_news_a_later_round_changes_nothing() -> None:
    turns = [Turn(("user", "assistant")[n % 2], f"Crate QX-{n} costs ${n}5 and goes to pier {n}.") for n in range(40)]
    compactor = Offline()
    first = compactor.compact(turns, 1, budget_chars=1_200).text
    assert len(first) <= 1_200
    assert compactor.compact([Turn("system", first)], 2, budget_chars=1_200).text == first


def test_the_table_shows_the_worst_of_all_seeds() -> None:
    def verdict(seed: int, survival: float) -> Verdict:
        flagged = ("fact",) if survival < 0.5 else ()
        curves = {"fact": [1.0, survival]}
        return Verdict(budget=0.1, seed=seed, curves=curves, flagged=flagged, cliffs=flagged, within_budget=True)

    assert verdicts_table([verdict(1, 1.0), verdict(2, 0.25)]).endswith("| 10% | 25% | fact | fact |")
