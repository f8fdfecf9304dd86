"""Texts that stop before their end are found, in any language, and honest ones are not taken for such."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest

from app.domain.gating.cut_off import DOUBTFUL, SURE, Beside, beside_of, weigh
from app.domain.gating.gate import judge
from app.domain.gating.health import findings
from app.domain.gating.originals import Originals
from app.domain.schemas import HANDOFF, SESSION
from bench.survival import Talk
from bench.truncation import measured, states
from tests.talks import Json, locomo, made_talk, with_locomo
from tests.unit.talk import answer, fact, proposal, request, talk
from tests.unit.timing import assert_linear, assert_linear_in

SAID: Final = {
    "en": (
        "Anna Petrova leads the Riga project, and its budget is 48,250 euros until 14 May 2026.",
        "We decided to use Postgres for the bookings of all ferries, because the team knows it well.",
        "The ferry of the Nordwind line leaves at 18:45 from pier 7, and the cabin number is 512.",
        "Maria still has to send the signed contract to the harbour office before Friday morning.",
    ),
    "ru": (
        "Анна Петрова руководит проектом в Риге, и бюджет составляет 48 250 евро до 14 мая 2026 года.",
        "Мы решили использовать Postgres для бронирования всех паромов, потому что команда его хорошо знает.",
        "Паром линии Нордвинд отправляется в 18:45 от седьмого причала, а номер каюты 512.",
        "Марии ещё нужно отправить подписанный договор в управление порта до утра пятницы.",
    ),
    "zh": (
        "安娜负责里加的项目，预算是四万八千欧元，期限到二〇二六年五月十四日。",
        "我们决定用数据库来管理所有渡轮的预订，因为团队对它非常熟悉。",
        "北风公司的渡轮在十八点四十五分从七号码头出发，船舱的号码是五百一十二。",
        "玛丽亚还要在星期五早上之前把签好的合同寄给港口的办公室。",
    ),
}
STORIES: Final = {
    "en": "Anna and the assistant planned the Riga project and chose Postgres. The ferry is booked for the evening, and"
    " Maria still has to send the signed contract to the harbour office.",
    "ru": "Анна и ассистент спланировали проект в Риге и выбрали Postgres. Паром забронирован на вечер, а Мария ещё"
    " должна отправить подписанный договор в управление порта.",
    "zh": "安娜和助手计划了里加的项目，并且选择了数据库。渡轮已经订好了，玛丽亚还要把签好的合同寄给港口的办公室。",
}
LANGUAGES: Final = tuple(SAID)


def originals(language: str) -> Originals:
    return Originals(lambda: SAID[language])


def state(language: str, story: str | None = None) -> dict[str, Any]:
    return {"logos": list(SAID[language]), "conversation_summary": story or STORIES[language]}


def cuts(text: str) -> Iterator[str]:
    """At every word of three or more, within every word, and where signs are words, at every sign."""
    step = 1 if " " in text else 3
    for end in range(10, len(text) - 1, step):
        if text[end - 1] not in " .。!?，," and text[end] not in ".。":
            yield text[:end].rstrip()


def is_found(language: str, told: dict[str, Any], cut: str) -> bool:
    before = state(language)
    found = findings(SESSION, told, covered_messages=8, originals=originals(language), before=before)
    return any((each.sickness, each.text) == ("cut_off", cut) for each in found)


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_story_that_stops_anywhere_is_found(language: str) -> None:
    tried = list(cuts(STORIES[language]))
    found = [cut for cut in tried if is_found(language, state(language, cut), cut)]
    assert len(found) == len(tried) > 10, sorted(set(tried) - set(found))


@pytest.mark.parametrize(("language", "least"), [("en", 0.8), ("ru", 0.8), ("zh", 0.8)])
def test_most_entries_that_stop_anywhere_are_found(language: str, least: float) -> None:
    hits: list[bool] = []
    for text in SAID[language]:
        for cut in cuts(text):
            told = state(language)
            told["logos"] = [cut if each == text else each for each in told["logos"]]
            hits.append(is_found(language, told, cut))
    assert sum(hits) >= least * len(hits)


@pytest.mark.parametrize("language", LANGUAGES)
def test_control_an_honest_state_has_nothing_cut_off(language: str) -> None:
    honest = [
        state(language),
        state(language, "\n".join(SAID[language])),
        {**state(language), "logos": [text.rstrip(".。") for text in SAID[language]]},
        {"conversation_summary": STORIES[language].rstrip(".。").partition(". ")[0].partition("。")[0]},
        {"pathos": ["formal, friendly", "спокойный тон", "语气平静"], "abstract": ["Postgres", "порт"]},
    ]
    for told in honest:
        assert findings(SESSION, told, covered_messages=8, originals=originals(language)) == []


@pytest.mark.parametrize(
    ("story", "weight"),
    [
        ("Anna leads the Riga project, and its budget is 48,2", SURE),
        ("They chose a database. Now the cabin num", 2),
        ("They chose a database. We decided to use Postgres for the bookings of all", 3),
        ("They quoted the plan (pier 7", 2),
        ("Trip to Riga with the", SURE),
        ("Trip to Riga", 0),
        ("A cabin with two beds and a view", 0),
        ("The ferry of the Nordwind line leaves at 18:45 from pier 7, and the cabin number is 512", 0),
    ],
)
def test_what_the_signals_add_up_to(story: str, weight: int) -> None:
    found = weigh(story, is_story=True, beside=Beside(originals=originals("en")))
    assert found >= weight
    assert (found == 0) == (weight == 0)


def test_a_word_that_an_original_has_in_another_form_is_whole() -> None:
    beside = Beside(originals=originals("en"))
    assert weigh("use Postgres for the booking", is_story=False, beside=beside) == 0
    assert weigh("decided to use Postgres for the bookin", is_story=False, beside=beside) >= DOUBTFUL


def test_an_end_is_known_in_a_talk_that_says_the_same_over_and_over() -> None:
    said = ["nobody objected to the plan of the afternoon"] * 60 + ["it took long and nobody objected t"]
    beside = Beside(originals=Originals(lambda: said))

    assert weigh("User: it took long and nobody objected t", is_story=False, beside=beside) == 0
    assert weigh("User: nobody objected to the pl", is_story=False, beside=beside) >= SURE


def test_an_entry_may_be_left_where_a_clause_begins() -> None:
    closed = [f"Point {number} is settled." for number in range(4)]
    for text, is_cut in (
        ("We decided to use Postgres for the bookings of all ferries", False),
        ("We decided to use Postgres for the bookings of all", True),
    ):
        told = {"logos": [*closed, text]}
        found = findings(SESSION, told, covered_messages=8, originals=originals("en"))
        assert [each.text for each in found] == [text] * is_cut


def test_a_section_that_was_there_before_and_is_not() -> None:
    before = {"goal": ["a.", "b.", "c."], "progress": ["d."], "current_state": "It works.", "next_steps": ["e."] * 5}
    found = findings(HANDOFF, {"progress": ["d."]}, covered_messages=8, before=before)
    assert [(each.sickness, each.field) for each in found] == [("missing", "goal"), ("missing", "current_state")]
    assert findings(HANDOFF, {**before, "next_steps": []}, covered_messages=8, before=before) == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_gate_refuses_an_answer_whose_story_was_cut_off_and_no_honest_one(language: str) -> None:
    span = talk(*SAID[language])

    def reason(story: str) -> str | None:
        told = answer(story, [fact(text, seq) for seq, text in enumerate(SAID[language], start=1)])
        return judge(proposal(told), request(span)).reason

    assert reason(STORIES[language]) is None
    assert reason(STORIES[language].rstrip(".。")) is None, "without its full stop"
    story = STORIES[language]
    assert reason(story[: max(story.rfind(","), story.rfind("，")) + 1]) == "cut_off"


def test_looking_takes_linear_time_whatever_stands_there() -> None:
    def looked_at(count: int) -> Callable[[], object]:
        lines = [f"word{number} " * 20 for number in range(10 * count)]
        texts = [("logos", line, False) for line in lines[:count]]

        def look() -> None:
            beside = beside_of(texts, Originals(lambda: lines))
            for line in lines[:count]:
                weigh(line, is_story=False, beside=beside("logos", line))

        return look

    assert_linear_in(looked_at, 500)
    lines = [f"word{number} " * 20 for number in range(5_000)]
    beside = beside_of([("logos", line, False) for line in lines[:500]], Originals(lambda: lines))
    for hostile in ("(" * 50_000, '"„' * 50_000, "a " * 50_000, "。" * 50_000):
        assert_linear(lambda line: weigh(line, is_story=False, beside=beside("logos", line)), hostile)


@pytest.mark.long
@pytest.mark.parametrize(
    ("chosen", "least_within"), with_locomo((lambda: made_talk("project_en"), 0.8), (lambda: locomo()[0], 0.95))
)
def test_states_of_a_whole_talk(chosen: Callable[[], Json], least_within: float) -> None:
    given = chosen()
    told = Talk(id=given["id"], messages=tuple(given["messages"]))
    rates = measured(list(states(told, ("sessions", "handoff", "research"))))
    assert rates.looked["honest"] > 100
    assert (rates.doctor["honest"], rates.gate["honest"]) == (0, 0)
    floors = {"story cut at a word": 0.95, "story cut within a word": least_within, "entry cut at a word": 0.6}
    for kind, least in floors.items():
        assert rates.doctor[kind] >= least * rates.looked[kind], kind
