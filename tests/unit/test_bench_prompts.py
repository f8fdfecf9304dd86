"""Comparing versions of the prompt: a planted worse one is reported as worse, and no false difference is reported."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from app.core.model.model_io import Proposal, SummaryRequest
from app.core.model.policies.resolving import resolve
from app.core.model.schemas import schema_named
from app.core.summarizer.candidate import parse_candidate
from app.core.summarizer.prompts import PROMPT_WORDS, SUMMARY_VERSION, render_summary
from bench import prompt_measures, prompt_words, prompts
from bench.prompt_measures import ENOUGH, Measures, compared, measured
from bench.prompt_words import WRITTEN, PromptVersionError, known_versions, record, recorded, words_of
from bench.trust.rounds import ANSWERS, Case, cases_of, talk_named
from tests.fakes import ScriptedSummarizer

OLD = "summary-2"
CASES = 6
ALIKE = "turn_end"
"""A preset whose prompt has no rules for lists."""


@pytest.fixture(autouse=True)
def few_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let an interval be drawn a tenth as often, which takes a tenth of the time."""
    monkeypatch.setattr(prompt_measures, "_DRAWS", prompt_measures._DRAWS // 10)


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    """The first case of each of six conversations."""
    return [next(of_talk(path)) for path in sorted(ANSWERS.glob("*.json"))[:CASES]]


@pytest.fixture(scope="module")
def honest(cases: list[Case]) -> dict[str, Measures]:
    return of(cases)


@pytest.fixture(scope="module")
def spoiled(cases: list[Case]) -> dict[str, Measures]:
    return of([worse(case) for case in cases])


def of_talk(path: Path) -> Iterator[Case]:
    return cases_of(talk_named(path.stem), json.loads(path.read_text("utf-8")))


def worse(case: Case) -> Case:
    """A case with the answer to a worse prompt: the model makes up a number and leaves half of the items out."""
    answer = json.loads(case.answer)
    for field, items in answer.items():
        if isinstance(items, list) and items and "from" in items[0]:
            kept = items[: max(len(items) // 2, 1)]
            kept[0]["text"] += " The order is worth 918273 euros."
            answer[field] = kept
    return replace(case, answer=json.dumps(answer, ensure_ascii=False))


def of(cases: list[Case]) -> dict[str, Measures]:
    return {case.id: measured(case, PROMPT_WORDS) for case in cases}


def test_a_planted_worse_version_is_told_as_worse_and_the_same_one_is_not(
    honest: dict[str, Measures], spoiled: dict[str, Measures]
) -> None:
    verdicts = {one.name: one.verdict for one in compared(honest, spoiled)}
    assert {name for name, verdict in verdicts.items() if verdict == "worse"} >= {"asked_again", "novel"}
    assert {one.name: one.verdict for one in compared(spoiled, honest)}["novel"] == "better"
    assert {one.verdict for one in compared(honest, honest)} == {"no difference shown"}, "the control"
    assert verdicts["tokens_read"] == "no difference shown", "the prompts are the same"


@pytest.mark.long
def test_pairs_of_a_few_conversations_prove_nothing(honest: dict[str, Measures], spoiled: dict[str, Measures]) -> None:
    few = list(honest)[: ENOUGH - 1]
    told = compared({name: honest[name] for name in few}, {name: spoiled[name] for name in few})
    assert {one.verdict for one in told} == {"too few conversations"}
    old, new = ({f"talk/semantic/{nth}": one for nth, one in enumerate(found.values())} for found in (honest, spoiled))
    assert {one.verdict for one in compared(old, new)} == {"too few conversations"}, "six pairs of one"


@pytest.mark.long
def test_the_interval_is_wider_where_the_pairs_of_a_conversation_go_together(honest: dict[str, Measures]) -> None:
    base = next(iter(honest.values()))
    alone = [float(nth % 2) for nth in range(48)]
    together = [float(nth // 4 % 2) for nth in range(48)]
    widths = []
    for values in (alone, together):
        named = {f"talk{nth // 4}/semantic/{nth % 4}": value for nth, value in enumerate(values)}
        new = {name: replace(base, refused=value) for name, value in named.items()}
        one = compared(dict.fromkeys(named, replace(base, refused=0.0)), new)[0]
        widths.append(one.high - one.low)
        assert one.change == pytest.approx(0.5)
    assert widths[1] > 1.5 * widths[0]


def test_a_version_is_its_rules_and_nothing_else(cases: list[Case], tmp_path: Path) -> None:
    assert known_versions() == [SUMMARY_VERSION, OLD, "summary-3", "summary-4"]
    request = cases[0].request
    new, old = render_summary(request), render_summary(request, words_of(OLD))
    assert new.system != old.system
    assert (new.user, new.json_schema) == (old.user, old.json_schema)
    assert render_summary(request, words_of(SUMMARY_VERSION)) == new
    with pytest.raises(PromptVersionError, match="there are summary-5, summary-2, summary-3, summary-4"):
        words_of("../summary-2")
    (tmp_path / "odd.toml").write_text('tone = "kind"\n')
    with pytest.raises(PromptVersionError, match="nothing else; tone"):
        words_of("odd", tmp_path)


@pytest.mark.long
def test_a_version_without_answers_is_named(
    cases: list[Case], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = {version: words_of(version) for version in (OLD, SUMMARY_VERSION)}
    assert prompts.report(words, cases, tmp_path, tmp_path) == prompts.NOTHING
    said = capsys.readouterr().out
    assert f"{OLD}: 6 of 6 cases have an answer" in said
    assert f"{SUMMARY_VERSION}: NO ANSWERS ARE RECORDED UNDER IT" in said
    assert "Nothing can be compared" in said


@pytest.mark.long
async def test_what_a_model_answers_is_kept_and_compared(
    cases: list[Case], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    answered = {case.request.messages[0].content: worse(case).answer for case in cases}

    async def answer(request: SummaryRequest) -> Proposal:
        return Proposal(text=answered[request.messages[0].content], finish="stop", model="fake")

    await prompts.record_answers(SUMMARY_VERSION, ScriptedSummarizer(answer), cases, tmp_path)
    found = recorded(SUMMARY_VERSION, cases, tmp_path)
    assert [case.prompt_version for case in found.values()] == [SUMMARY_VERSION] * CASES
    words = {version: words_of(version) for version in (OLD, SUMMARY_VERSION)}
    none = tmp_path / "none"
    assert prompts.report(words, cases, tmp_path, none) == prompts.NOTHING, "a model is not paired with a writer"
    record(OLD, {case.id: case.answer for case in cases}, tmp_path)
    assert prompts.report(words, cases, tmp_path, none) == 0
    said = capsys.readouterr().out
    assert "Answered by a live model: 6 pairs of 6 conversations." in said
    assert "worse" in said
    with pytest.raises(TypeError):
        prompts.with_words(ScriptedSummarizer(answer), PROMPT_WORDS)


@pytest.mark.long
def test_pairs_whose_prompts_are_the_same_are_told_apart(
    cases: list[Case], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    path = ANSWERS / f"{cases[0].talk.id}.json"
    mixed = [*cases, *(case for case in of_talk(path) if case.preset == ALIKE)]
    record(SUMMARY_VERSION, {case.id: case.answer for case in mixed}, tmp_path)
    words = {OLD: replace(PROMPT_WORDS, list_rules=words_of(OLD).list_rules), SUMMARY_VERSION: PROMPT_WORDS}
    assert prompts.report(words, mixed, tmp_path / "none", tmp_path) == 0
    said = capsys.readouterr().out
    assert "Answered by writers: 6 pairs of 6 conversations." in said
    assert "Answered by writers: 5 pairs of 1 conversations, prompts the same under both" in said


def test_the_kept_answers_are_of_the_open_half_and_can_be_read() -> None:
    found = [
        json.loads(line) for line in prompt_words.path_of(SUMMARY_VERSION, WRITTEN).read_text("utf-8").splitlines()
    ]
    names = [one["case"] for one in found]
    assert len(set(names)) == len(names)
    assert len(names) >= 24
    talks = {name: talk_named(name.partition("/")[0]) for name in names}
    assert not any(talk.is_sealed for talk in talks.values())
    assert {talk.language for talk in talks.values()} == {"en", "ru", "zh", "de"}
    for one in found:
        preset = one["case"].split("/")[1]
        assert preset in talks[one["case"]].presets
        schema = schema_named(resolve(preset, {}).state_schema)
        candidate = parse_candidate(one["answer"], schema)
        assert candidate.items or candidate.narrative


@pytest.mark.long
def test_the_made_up_talks_are_cases_too() -> None:
    made = [case for case in prompt_words.corpus() if case.talk.kind == "made-up"]
    assert {case.talk.id for case in made} >= {"made-friends-ru"}
    assert all(case.answer == "" and case.request.messages for case in made)
