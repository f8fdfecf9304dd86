"""The made-up talks are sound, and the bench that reads them distinguishes methods and unseen questions."""

from __future__ import annotations

from datetime import datetime
from typing import Final

import pytest

from bench.fidelity import broad_table
from bench.fidelity_made import ALONE, BM25, FOLDER, asking_broadly, broadly, found_in, table
from bench.fidelity_measures import OURS, STATELESS, is_broad
from bench.recall_talks import CATEGORIES, Talk, TalkQuestion, talks

GIVEN: Final = [talk for path in sorted(FOLDER.glob("*.jsonl")) for talk in talks(path)]
MIN_MESSAGES: Final = 80
MIN_QUESTIONS: Final = 25
BESIDE_AN_ASSISTANT: Final = {"multi session", "knowledge update", "temporal"}
"""The kinds of questions about several sittings with an assistant that answers at length."""


@pytest.mark.parametrize("talk", GIVEN, ids=lambda talk: talk.id)
def test_a_made_up_talk_is_sound(talk: Talk) -> None:
    times = [datetime.fromisoformat(message["created_at"]) for message in talk.messages]

    assert len(talk.messages) >= MIN_MESSAGES
    assert times == sorted(times)
    assert all(message["role"] in {"user", "assistant"} and message["content"] for message in talk.messages)
    assert len({asked.text for asked in talk.questions}) == len(talk.questions) >= MIN_QUESTIONS
    categories = {asked.category for asked in talk.questions}
    assert categories == set(CATEGORIES.values()) or categories >= BESIDE_AN_ASSISTANT
    for asked in talk.questions:
        assert asked.evidence == tuple(sorted(set(asked.evidence)))
        assert 1 <= asked.evidence[0] <= asked.evidence[-1] <= len(talk.messages)


@pytest.mark.parametrize("talk", GIVEN, ids=lambda talk: talk.id)
def test_each_is_asked_for_summaries_and_orders_too(talk: Talk) -> None:
    asked = asking_broadly(talk).questions

    assert len(asked) >= 3
    assert all(is_broad(one.text) for one in asked)
    assert not any(is_broad(one.text) for one in talk.questions), "control: the others ask for single things"
    for one in asked:
        assert 3 < len(one.evidence) == len(set(one.evidence))
        assert 1 <= min(one.evidence) <= max(one.evidence) <= len(talk.messages)


@pytest.mark.long
def test_broad_questions_are_told_with_and_without_the_state() -> None:
    shortest = min(GIVEN, key=lambda talk: talk.tokens)
    text = broad_table(list(broadly([shortest])))

    assert f"| {OURS}: answer's words |" in text
    assert f"| {STATELESS}: answer's words |" in text
    assert text.endswith("3 questions.")


def test_there_is_a_talk_of_each_kind() -> None:
    assert len(GIVEN) >= 4
    assert any(any("\u4e00" <= sign <= "\u9fff" for sign in talk.texts[0]) for talk in GIVEN)
    assert any("в" in "".join(talk.texts) for talk in GIVEN)


def test_the_table_tells_methods_and_unseen_questions_apart() -> None:
    said = ["The greenhouse moved behind the barn.", *(f"We had weather number {day} again." for day in range(60))]
    talk = Talk(
        id="made",
        messages=tuple({"role": "user", "content": text, "created_at": "2025-05-08T10:00:00Z"} for text in said),
        questions=(
            TalkQuestion(text="Where is the greenhouse?", evidence=(1,), category="single hop"),
            TalkQuestion(text="What colour is the tractor?", evidence=(40,), category="single hop"),
        ),
    )
    found = found_in(talk)
    lines = table([(talk, found)]).splitlines()

    assert [found[name][0][-1] for name in (OURS, ALONE, BM25)] == [True, True, True]
    assert lines[-1].startswith(f"| made: {OURS}, unseen questions | {talk.tokens} | 1 |")
    assert [row[0] for row in found[OURS]] == [True, False]
    assert (lines[2].split("|")[4].strip(), lines[-1].split("|")[4].strip()) == ("50.0", "0.0")
