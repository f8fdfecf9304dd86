"""A state of one text keeps to its size, however much is added, and says what it left out."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import product
from typing import Final

import pytest
from _pytest.mark import ParameterSet
from hypothesis import given
from hypothesis import strategies as st

from app.core.model.conversation import Role
from app.core.model.model_io import SummaryRequest
from app.core.model.records import FoldRequest
from app.core.model.state import StateEntry
from app.core.reading.choice import Option
from app.core.state import apply as applying
from app.core.state import statement_removal
from app.core.state.statement_removal import removed_statements, thinned_texts
from app.core.summarizer.offline.extractive import compress
from app.core.summarizer.offline.narrative_states import statements
from app.core.summarizer.prompts import render_summary
from bench import replay
from bench.replay import Replay
from tests import gemini_honest
from tests.profiles import examples, is_long
from tests.unframing import unframe
from tests.unit.test_extractive_memory import FACTS, FILLERS

WINDOW: Final = 4_000
AIM: Final = 400
FOLDS: Final = 10 if is_long() else 5
EVERYTHING: Final = FoldRequest(fold="all")
CODE: Final = re.compile(r"(?:HX|LP)-\d+-\d")
Summarizer = Callable[[SummaryRequest], str]


def brief(request: SummaryRequest) -> str:
    """The text of the scripted Gemini: two sentences about the newest messages."""
    prompt = render_summary(request)
    return gemini_honest.dumps(gemini_honest.candidate(prompt.user, prompt.json_schema))


def wordy(request: SummaryRequest, factor: float = 1.0, earlier: float = 0.5) -> str:
    """A text that uses up the requested size, up to half of it for what it told before."""
    prompt = render_summary(request)
    found = gemini_honest._SIZE.search(prompt.system)
    assert found is not None
    room = factor * int(found["number"])
    told = [text for entry in request.previous for text in statements(entry.text)]
    said = [gemini_honest._reworded(one) for one in gemini_honest._sentences(unframe(prompt.user))]
    size: Callable[[str], int] = len if found["unit"] == "characters" else lambda text: len(text.split())
    chosen: list[str] = []
    left = 0.0
    for texts, part in ((told, earlier), (said, 1 - earlier)):
        left += room * part
        for text in texts:
            if size(text) <= left:
                left -= size(text)
                chosen.append(text)
    return json.dumps({"summary": " ".join(chosen), "dropped": []}, ensure_ascii=False)


MODELS: Final[dict[str, Summarizer]] = {
    "offline": compress,
    "brief": brief,
    "wordy": wordy,
    "far too long": lambda request: wordy(request, 2.0),
    "forgetful": lambda request: wordy(request, earlier=0.0),
}


EVERYDAY: Final = {("en", "offline")}


@cache
def folded(language: str, model: str, folds: int = FOLDS) -> tuple[tuple[int, str, Replay], ...]:
    """The weight of the served message and its text after each fold; each sentence of the talk has exact values."""
    talk = Replay.in_window(WINDOW, "turn_end")
    talk.say("user", FACTS[language][0])
    talk.say("assistant", {"en": "Understood.", "ru": "Понятно.", "zh": "明白。"}[language])
    found: list[tuple[int, str, Replay]] = []
    number = 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(replay, "compress", MODELS[model])
        for fold in range(1, folds + 1):
            while talk.breakdown().total < 0.9 * WINDOW:
                number += 1
                for place, filler in enumerate(FILLERS[language]):
                    role: Role = "assistant" if place == len(FILLERS[language]) - 1 else "user"
                    talk.say(role, filler.format(n=number + 10, m=number % 7 + 2, d=number % 27 + 1))
            talk.fold(EVERYTHING)
            assert talk.compactions == fold, talk.refused
            text = " ".join(entry.text for entry in talk.entries if not entry.pruned)
            found.append((talk.breakdown().total, text, replace(talk)))
    return tuple(found)


def told_codes(talk: Replay, after: int, text: str) -> set[str]:
    """The codes in the text from covered messages after this one; each code is in one message only."""
    said = (code for one in talk.messages[after : talk.boundary] for code in CODE.findall(one.content))
    return {code for code in said if code in text}


def talked(language: str, model: str) -> ParameterSet:
    marks = () if (language, model) in EVERYDAY else pytest.mark.long
    return pytest.param(language, model, marks=marks, id=f"{language}-{model}")


TALKS = pytest.mark.parametrize(("language", "model"), [talked(*one) for one in product(FACTS, MODELS)])


@pytest.mark.daily(1)
@TALKS
@pytest.mark.long
def test_it_is_a_tenth_of_the_window_after_any_number_of_folds(language: str, model: str) -> None:
    sizes = [size for size, _, _ in folded(language, model)]
    assert len(sizes) == FOLDS
    assert max(sizes) <= AIM
    if model != "brief":
        assert min(sizes) > 0.85 * AIM, "and no less: room that is there is used"


@pytest.mark.daily(1)
@TALKS
def test_it_tells_of_the_newest_messages_too(language: str, model: str) -> None:
    """Values of long ago do not displace what has just been said."""
    covered = 0
    for _, text, talk in folded(language, model):
        assert len(told_codes(talk, covered, text)) >= 2
        covered = talk.boundary


@pytest.mark.parametrize(("language", "model"), [talked(*one) for one in product(FACTS, ["offline", "wordy"])])
def test_facts_of_the_first_turn_are_in_it_after_every_fold(language: str, model: str) -> None:
    for _, text, _ in folded(language, model):
        assert [value for value in FACTS[language][1] if value not in text] == []


@TALKS
def test_what_had_no_room_is_on_record_with_the_messages_it_came_from(language: str, model: str) -> None:
    before = ""
    for _, text, talk in folded(language, model):
        kept = next(entry for entry in talk.entries if not entry.pruned)
        whole = next((old for old in reversed(kept.superseded) if old != before), "")
        pruned = [entry for entry in talk.entries if entry.pruned]
        assert {entry.text for entry in pruned} >= set(removed_statements(whole, text))
        assert len({entry.id for entry in talk.entries}) == len(talk.entries)
        for entry in pruned:
            assert entry.from_seqs or entry.text in before, "what is older stands in the version before"
            sources = " ".join(talk.messages[seq - 1].content for seq in entry.from_seqs)
            assert all(code in sources for code in CODE.findall(entry.text) if entry.from_seqs)
        before = text


@pytest.mark.long
def test_control_by_the_hard_cap_alone_it_grows_beyond(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(applying, "state_token_limit", lambda schema, budgets: budgets.state_cap)
    assert max(size for size, _, _ in folded.__wrapped__("en", "wordy", 2)) > 1.2 * AIM


@pytest.mark.long
def test_control_without_turns_old_values_keep_out_new_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    def older_first(news: list[Option], older: list[Option]) -> list[int]:
        return [option.key for option in (*older, *news)]

    monkeypatch.setattr(statement_removal, "_news_and_older_in_turn", older_first)
    found = folded.__wrapped__("en", "far too long", 4)
    assert len(told_codes(found[3][2], found[2][2].boundary, found[3][1])) < 2


WORDS = st.sampled_from([
    "The key is AB-4711-77.", "Ключ лежит в ящике 12.", "我们三月出发。", "User: We pay 900 euros; by card.", "no end",
    "Dana: I will call.", "Decision: oak, not pine.", "`print(1.0)`", "- a point", "a" * 300, "三" * 200, "\n",
])  # fmt: skip


@pytest.mark.long
@examples(0.4)
@given(st.lists(WORDS | st.text(max_size=60), min_size=1, max_size=60), st.integers(100, 600))
def test_whatever_a_model_writes_is_cut_to_its_size(parts: list[str], aim: int) -> None:
    talk = Replay.in_window(10 * aim if aim >= 100 else 1_000, "turn_end")
    for number in range(200):
        talk.say("assistant" if number % 2 else "user", f"Pier {number} opens late, said the man of crate {number}.")
    wrote = json.dumps({"summary": "Pier 3 opens late. " + " ".join(parts), "dropped": []}, ensure_ascii=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(replay, "compress", lambda _: wrote)
        talk.fold(EVERYTHING)
    assert talk.refused or 0 < talk.breakdown().state <= aim


@given(st.lists(WORDS, min_size=1, max_size=40))
def test_less_room_is_less_text_in_the_same_order(parts: list[str]) -> None:
    entry = StateEntry(id="N1", field="summary", role="narrative", text=" ".join(parts), since_version=1)
    sizes = [len(entry.text), *map(len, thinned_texts(entry))]
    assert sizes[-1] <= sizes[0]
    for text in thinned_texts(entry):
        told = [one for one in statements(entry.text) if one in text]
        places = [text.find(one) for one in told]
        assert -1 not in places
