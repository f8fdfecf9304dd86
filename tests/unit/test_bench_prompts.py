"""Comparing versions of the prompt: a planted worse one is told as worse, and no difference is told where none is."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest

from app.core.model.model_io import Proposal, SummaryRequest
from app.core.summarizer.prompts import SUMMARY_VERSION, WORDS, render_summary
from bench import prompt_words, prompts
from bench.prompt_measures import Measures, compared, measured
from bench.prompt_words import PromptVersionError, known_versions, recorded, words_of
from bench.trust.rounds import ANSWERS, Case, cases_of, talk_named
from tests.fakes import ScriptedSummarizer

TALK = "support-orders"
OLD = "summary-2"
CASES = 6


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    data = json.loads((ANSWERS / f"{TALK}.json").read_text("utf-8"))
    return list(islice(cases_of(talk_named(TALK), data), CASES))


def worse(case: Case) -> Case:
    """As a version would be answered that lets a model make up a number and leave half of the items out."""
    answer = json.loads(case.answer)
    for field, items in answer.items():
        if isinstance(items, list) and items and "from" in items[0]:
            kept = items[: max(len(items) // 2, 1)]
            kept[0]["text"] += " The order is worth 918273 euros."
            answer[field] = kept
    return replace(case, answer=json.dumps(answer, ensure_ascii=False))


def of(cases: list[Case]) -> dict[str, Measures]:
    return {case.id: measured(case, WORDS) for case in cases}


def test_a_planted_worse_version_is_told_as_worse_and_the_same_one_is_not(cases: list[Case]) -> None:
    old, new = of(cases), of([worse(case) for case in cases])
    verdicts = {one.name: one.verdict for one in compared(old, new)}
    assert {name for name, verdict in verdicts.items() if verdict == "worse"} >= {"asked_again", "novel"}
    assert {one.name: one.verdict for one in compared(new, old)}["novel"] == "better"
    assert {one.verdict for one in compared(old, old)} == {"no difference shown"}, "the control"
    assert verdicts["tokens_read"] == "no difference shown", "the prompts are the same"


def test_a_version_is_its_rules_and_nothing_else(cases: list[Case], tmp_path: Path) -> None:
    assert known_versions() == [SUMMARY_VERSION, OLD]
    request = cases[0].request
    new, old = render_summary(request), render_summary(request, words_of(OLD))
    assert new.system != old.system
    assert (new.user, new.json_schema) == (old.user, old.json_schema)
    assert render_summary(request, words_of(SUMMARY_VERSION)) == new
    with pytest.raises(PromptVersionError, match="there are summary-3, summary-2"):
        words_of("../summary-2")
    (tmp_path / "odd.toml").write_text('tone = "kind"\n')
    with pytest.raises(PromptVersionError, match="nothing else; tone"):
        words_of("odd", tmp_path)


@pytest.mark.long
def test_a_version_without_answers_is_named(
    cases: list[Case], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = {version: words_of(version) for version in (OLD, SUMMARY_VERSION)}
    assert prompts.report(words, cases, tmp_path) == prompts.NOTHING
    said = capsys.readouterr().out
    assert f"{OLD}: 6 of 6 cases have an answer" in said
    assert f"{SUMMARY_VERSION}: NO ANSWERS ARE RECORDED UNDER IT" in said
    assert "Nothing can be compared" in said


@pytest.mark.long
async def test_what_a_model_answers_is_kept_and_compared(
    cases: list[Case], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    answered = {case.request.messages[0].seq: worse(case).answer for case in cases[:2]}

    async def answer(request: SummaryRequest) -> Proposal:
        return Proposal(text=answered[request.messages[0].seq], finish="stop", model="fake")

    await prompts.record_answers(SUMMARY_VERSION, ScriptedSummarizer(answer), cases[:2], tmp_path)
    found = recorded(SUMMARY_VERSION, cases, tmp_path)
    assert [case.prompt_version for case in found.values()] == [SUMMARY_VERSION] * 2
    words = {version: words_of(version) for version in (OLD, SUMMARY_VERSION)}
    assert prompts.report(words, cases[:2], tmp_path) == 0
    said = capsys.readouterr().out
    assert "2 pairs" in said
    assert "worse" in said
    with pytest.raises(TypeError):
        prompts.with_words(ScriptedSummarizer(answer), WORDS)


@pytest.mark.long
def test_the_made_up_talks_are_cases_too() -> None:
    made = [case for case in prompt_words.corpus() if case.talk.kind == "made-up"]
    assert {case.talk.id for case in made} >= {"made-friends-ru"}
    assert all(case.answer == "" and case.request.messages for case in made)
