"""Segments are cut so that nothing is lost, no call loses its result, and the borders are where the topic changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.model.conversation import Message
from app.core.model.policies.policy import SegmentBy
from app.core.segments import segmentation
from app.core.segments.segmentation import MAX_MESSAGES, MAX_TOKENS, MIN_MESSAGES, split_into_segments
from tests.profiles import examples
from tests.unit.talk import START, message, talk
from tests.unit.timing import assert_linear_in

PIANO = (
    "I started learning the piano and my teacher picked a Chopin waltz.",
    "A waltz is a lovely start; which piano do you practise on?",
    "An old upright piano; the pedal squeaks in every waltz.",
    "Ask your teacher about the pedal; oil helps an upright piano.",
    "The teacher says the waltz needs a slower left hand and no pedal.",
    "Practise the left hand of the waltz alone, without the pedal.",
)
TAX = (
    "Different matter: the tax office wants my invoices of the last quarter.",
    "Send the tax office the invoices with the VAT number on each.",
    "Two invoices lack the VAT number; will the tax office fine me?",
    "No fine if you correct the invoices before the tax deadline.",
    "Then I correct both invoices today and write to the tax office.",
    "Keep the letter of the tax office with the corrected invoices.",
)
RUSSIAN = (
    "Я хочу посадить яблони в саду, какой сорт яблони выбрать?",
    "Для сада подойдёт яблоня сорта Антоновка, сажайте осенью.",
    "Осенью почва в саду мокрая, яблоня не сгниёт?",
    "Положите дренаж под яблоню, тогда почва в саду не страшна.",
    "Сколько дренажа нужно на одну яблоню?",
    "Под каждую яблоню ведро дренажа, почва в саду глинистая.",
    "Теперь про машину: двигатель стучит на холостых оборотах.",
    "Стук двигателя на холостых бывает от клапанов, проверьте масло.",
    "Масло в двигателе меняли весной, стучат клапаны или цепь?",
    "Цепь двигателя стучит при разгоне, а клапаны на холостых оборотах.",
    "На разгоне двигатель тихий, значит клапаны.",
    "Отрегулируйте клапаны двигателя и замените масло.",
)
CHINESE = (
    "我想在阳台种番茄，土壤要什么样的？",
    "番茄喜欢疏松的土壤，阳台要有阳光。",
    "阳台下午有阳光，番茄多久浇水一次？",
    "番茄的土壤干了再浇水，阳台通风要好。",
    "番茄的叶子黄了，是土壤的问题吗？",
    "叶子黄多半是浇水太多，土壤积水伤番茄的根。",
    "另外，签证材料需要银行流水吗？",
    "签证需要半年的银行流水和在职证明。",
    "在职证明要公司盖章，签证中心收复印件吗？",
    "签证中心要在职证明原件，银行流水可以复印。",
    "签证几天能出？银行流水要翻译吗？",
    "签证十天左右，银行流水要翻译成英文。",
)

TOPIC = SegmentBy()


def seqs(cuts: Sequence[Sequence[Message]]) -> list[list[int]]:
    return [[one.seq for one in part] for part in cuts]


def starts(cuts: Sequence[Sequence[Message]]) -> list[int]:
    return [part[0].seq for part in cuts]


def still(messages: Sequence[Message]) -> list[Message]:
    """The messages with one time for all, as in an import without times."""
    return [replace(one, created_at=START) for one in messages]


@pytest.mark.parametrize("words", [PIANO + TAX, RUSSIAN, CHINESE], ids=["en", "ru", "zh"])
def test_a_border_stands_where_the_topic_changes(words: Sequence[str]) -> None:
    assert starts(split_into_segments(still(talk(*words)), TOPIC)) == [1, 7]


@pytest.mark.parametrize("words", [PIANO, TAX, RUSSIAN[:6], CHINESE[6:]], ids=["piano", "tax", "ru", "zh"])
def test_one_topic_stays_whole(words: Sequence[str]) -> None:
    assert len(split_into_segments(still(talk(*words)), TOPIC)) == 1


def test_a_long_silence_is_a_border_though_the_words_go_on() -> None:
    before = list(talk(*PIANO))
    after = [replace(one, created_at=one.created_at + timedelta(hours=5)) for one in talk(*PIANO, start=7)]
    assert starts(split_into_segments([*before, *after], TOPIC)) == [1, 7]
    assert starts(split_into_segments(still([*before, *after]), TOPIC)) == [1]


def test_silences_everywhere_say_nothing() -> None:
    slow = [replace(one, created_at=START + timedelta(hours=9 * one.seq)) for one in talk(*PIANO, *TAX)]
    assert starts(split_into_segments(slow, TOPIC)) == [1, 7]


def test_what_is_too_long_for_one_level_is_cut_in_any_case() -> None:
    same = still(talk(*(PIANO[0] for _ in range(200))))
    assert max(map(len, split_into_segments(same, TOPIC))) <= MAX_MESSAGES
    heavy = [replace(one, token_count=900) for one in same[:40]]
    assert all(sum(one.token_count for one in part) <= MAX_TOKENS for part in split_into_segments(heavy, TOPIC))


def test_a_giant_message_stands_alone() -> None:
    talked = still(talk(*PIANO, *TAX))
    talked[5] = replace(talked[5], token_count=50_000, content="word " * 50_000)
    assert [6] in seqs(split_into_segments(talked, TOPIC))


def test_topics_are_no_crumbs() -> None:
    mixed = still(talk(*(text for pair in zip(PIANO, TAX, strict=True) for text in pair)))
    assert min(map(len, split_into_segments(mixed, TOPIC))) >= MIN_MESSAGES


def test_turns_messages_and_minutes() -> None:
    talked = talk(*(f"message {number}" for number in range(50)))
    assert starts(split_into_segments(talked, SegmentBy(by="turns"))) == [1, 21, 41]
    assert starts(split_into_segments(talked, SegmentBy(by="turns", size=3)))[:3] == [1, 7, 13]
    assert starts(split_into_segments(talked, SegmentBy(by="messages"))) == [1, 21, 41]
    assert starts(split_into_segments(talked, SegmentBy(by="messages", size=7)))[:3] == [1, 8, 15]
    assert starts(split_into_segments(talked, SegmentBy(by="time"))) == [1]
    assert starts(split_into_segments(talked, SegmentBy(by="time", size=6))) == list(range(1, 51))


def test_an_opening_assistant_message_belongs_to_the_first_turn() -> None:
    talked = [message(1, "Welcome.", "assistant"), *talk("a", "b", "c", "d", start=2)]
    roles = [replace(one, role="user" if one.seq % 2 == 0 else "assistant") for one in talked]
    assert seqs(split_into_segments(roles, SegmentBy(by="turns", size=1))) == [[1, 2, 3], [4, 5]]


WAYS: list[SegmentBy] = [
    SegmentBy(),
    SegmentBy(by="turns", size=1),
    SegmentBy(by="messages", size=1),
    SegmentBy(by="messages", size=3),
    SegmentBy(by="time", size=1),
]


@pytest.mark.parametrize("how", WAYS, ids=str)
def test_nothing_and_one_message(how: SegmentBy) -> None:
    assert split_into_segments([], how) == []
    assert seqs(split_into_segments(talk("alone"), how)) == [[1]]


def called(seq: int, id_: str) -> Message:
    return message(seq, "", "assistant", parts=[{"type": "tool_call", "id": id_, "name": "f", "arguments": {}}])


def returned(seq: int, id_: str) -> Message:
    return message(seq, "", "tool", parts=[{"type": "tool_result", "tool_call_id": id_, "content": "done"}])


@pytest.mark.parametrize("how", WAYS, ids=str)
def test_a_call_and_its_results_are_never_parted(how: SegmentBy) -> None:
    talked = [message(1, "go"), called(2, "a"), called(3, "b"), returned(4, "b"), message(5, "x"), returned(6, "a")]
    assert any({2, 3, 4, 5, 6} <= set(part) for part in seqs(split_into_segments(talked, how)))


def test_an_id_used_again_means_the_latest_call() -> None:
    talked = [called(1, "a"), returned(2, "a"), message(3, "next"), called(4, "a"), returned(5, "a")]
    assert seqs(split_into_segments(talked, SegmentBy(by="messages", size=1))) == [[1, 2], [3], [4, 5]]


def test_without_the_guard_a_call_is_parted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segmentation, "_allowed_starts", lambda messages: frozenset(range(1, len(messages))))
    assert seqs(split_into_segments([called(1, "a"), returned(2, "a")], SegmentBy(by="messages", size=1))) == [[1], [2]]


PART = st.one_of(
    st.builds(lambda name: {"type": "tool_call", "id": name, "name": "f", "arguments": {}}, st.sampled_from("abc")),
    st.builds(lambda name: {"type": "tool_result", "tool_call_id": name, "content": "r"}, st.sampled_from("abc")),
    st.just({"type": "text", "text": "hello"}),
)
MESSAGE = st.tuples(
    st.text(max_size=40),
    st.sampled_from(["user", "assistant", "system", "tool"]),
    st.lists(PART, max_size=2),
    st.integers(-600, 600),
    st.integers(0, 4_000),
)
HOW = st.builds(
    SegmentBy,
    by=st.sampled_from(["topic", "turns", "messages", "time"]),
    size=st.one_of(st.none(), st.integers(1, 60)),
)


@examples(1.5)
@given(st.lists(MESSAGE, max_size=60), HOW)
def test_every_message_is_in_exactly_one_in_order(drawn: list[tuple[Any, ...]], how: SegmentBy) -> None:
    talked = [
        replace(
            message(seq, text, role, parts=parts), created_at=START + timedelta(minutes=minutes), token_count=tokens
        )
        for seq, (text, role, parts, minutes, tokens) in enumerate(drawn, start=1)
    ]
    cuts = split_into_segments(talked, how)
    assert [one for part in cuts for one in part] == talked
    assert all(cuts)
    assert cuts == split_into_segments(talked, how)
    where = {one.seq: number for number, part in enumerate(cuts) for one in part}
    made: dict[str, int] = {}
    for one in talked:
        for part in one.parts:
            if part["type"] == "tool_call":
                made[part["id"]] = one.seq
            elif part["type"] == "tool_result" and part["tool_call_id"] in made:
                assert where[made[part["tool_call_id"]]] == where[one.seq]


@pytest.mark.long
def test_time_grows_with_the_number_of_messages() -> None:
    def cutting(count: int) -> Callable[[], object]:
        talked = talk(*(f"word{number % 97} thing{number % 31} item{number}" for number in range(count)))
        return lambda: split_into_segments(talked, TOPIC)

    assert_linear_in(cutting, 4_000)
