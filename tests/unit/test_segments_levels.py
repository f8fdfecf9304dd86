"""Code's texts about a segment: its topic, its levels, its hash; in the originals' words, in any language."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.model.conversation import Message, Role
from app.core.model.segments import LEVELS, Level
from app.core.reading.labels import role_of
from app.core.segments.describing import MAX_IDENTIFIERS, describe
from app.core.segments.extractive import MAX_L1_TOKENS, MAX_L2_TOKENS, MAX_L3_TOKENS, level_text
from app.core.segments.hashing import content_hash
from app.core.segments.topics import MAX_TOPIC_LENGTH, MAX_WORDS
from app.core.text.language import detect
from app.core.text.token_counts import estimate_text
from app.core.text.word_lists import NOISE
from tests.profiles import examples
from tests.unit.talk import message, talk
from tests.unit.timing import assert_linear, often

ENGLISH = (
    "I forgot my password and the reset email never arrives.",
    "Which address do you use for your account?",
    "mara@example.org, and I checked spam.",
    "I see the reset email bounced: the mailbox was full until 14:05. I sent the reset email again.",
    "Got it now. We decided to turn on two-factor authentication for all 37 accounts.",
    "Done: two-factor authentication is on, recovery codes are in Settings > Security.",
)
RUSSIAN = (
    "Привет! Мне нужно перенести базу данных клиентов на новый сервер Postgres до 15 декабря.",
    "Хорошо. Какой объём базы данных и какая версия Postgres?",
    "База данных 240 ГБ, версия 13.4, сервер db-7.",
    "Предлагаю логическую репликацию: простой не больше 10 минут.",
    "Решили: делаем логическую репликацию, перенос ночью 12 декабря.",
    "Отлично. Подготовлю план переноса базы данных и проверку реплики.",
)
CHINESE = (
    "我想预订十二月五日从上海到东京的航班，两个人，预算是每人3000元。",
    "好的。东方航空MU523航班上午九点起飞，票价2680元。您要预订吗？",
    "可以，请预订东方航空的航班，座位要靠窗。",
    "已预订MU523航班，靠窗座位，订单号是A8842。还需要预订酒店吗？",
    "需要，酒店在新宿，三晚，每晚不超过900元。",
    "已预订新宿华盛顿酒店三晚，每晚860元。",
)
TALKS = {"en": ENGLISH, "ru": RUSSIAN, "zh": CHINESE}
spoken = pytest.mark.parametrize("language", list(TALKS))


def weighed(messages: Sequence[Message]) -> list[Message]:
    return [replace(one, token_count=estimate_text(one.content) + 4) for one in messages]


def text_of(level: Level, messages: Sequence[Message]) -> str:
    return level_text(level, messages, describe(messages), locale="en")


def _raised(found: re.Match[str], by: int) -> str:
    return str(int(found.group()) + by)


def long(language: str, times: int = 8) -> list[Message]:
    """The same talk again and again, with other numbers each time."""
    words = [re.sub(r"\d+", partial(_raised, by=11 * turn), one) for turn in range(times) for one in TALKS[language]]
    return weighed(talk(*words))


def test_the_same_words_of_other_people_are_told_as_theirs() -> None:
    """Two conversations may have the same words at the same places: a reading kept for one must not name the other."""

    def told(name: str) -> str:
        span = [replace(one, metadata={"name": name}) for one in talk(*ENGLISH)]
        return level_text("L1", span, describe(span), locale="en")

    first, second = told("Anna"), told("Boris")
    assert ["Anna: " in first, "Boris: " in first] == [True, False]
    assert ["Anna: " in second, "Boris: " in second] == [False, True]


@pytest.mark.parametrize(
    ("language", "words"),
    [("en", {"reset email"}), ("ru", {"Postgres", "базы данных"}), ("zh", {"航班", "预订"})],
)
def test_the_topic_is_in_the_words_of_the_messages(language: str, words: set[str]) -> None:
    topic = describe(talk(*TALKS[language])).topic
    assert any(word.casefold() in topic.casefold() for word in words), topic
    said = re.sub(r"\W+", " ", " ".join(TALKS[language]).casefold())
    terms = topic.replace("-", " ").casefold().split(", ")
    assert 2 <= sum(len(term.split()) for term in topic.split(", ")) <= MAX_WORDS
    assert all(term in said for term in terms), topic
    assert not set(re.findall(r"\w+", topic.casefold())) & NOISE


@pytest.mark.parametrize(
    ("words", "term", "value"),
    [
        (("梅田のホテルを予約してください。", "梅田のホテルの予約番号はKX-5521です。"), "ホテル", "KX-5521"),
        (("해운대 호텔 예약해 주세요.", "해운대 호텔 예약번호는 KX-5521입니다."), "해운대 호텔", "KX-5521"),
        (("दिल्ली में होटल बुक करना है।", "होटल बुक हो गया, संख्या KX-5521."), "होटल", "KX-5521"),
        (
            ("Die Wärmepumpe im Keller ist alt.", "Wir erneuern die Wärmepumpe, Angebot KX-5521."),
            "Wärmepumpe",
            "KX-5521",
        ),
        (("أريد حجز فندق في دبي.", "حجز فندق دبي رقم KX-5521."), "حجز فندق", "KX-5521"),
    ],
)
def test_other_languages_have_topics_and_values_too(words: Sequence[str], term: str, value: str) -> None:
    cut = describe(talk(*words))
    assert term in cut.topic
    assert not {"die", "في", "में"} & set(cut.topic.split())
    assert value in cut.identifiers


def test_a_name_keeps_its_letters() -> None:
    talked = talk(
        "How does the Kubernetes cluster of Acme Corp scale?", "The Kubernetes cluster at Acme Corp has 3 nodes."
    )
    assert "Acme Corp" in describe(talked).topic or "Kubernetes" in describe(talked).topic


def test_who_talks_is_not_what_it_is_about() -> None:
    talked = talk("Ann: The violin needs new strings.", "Bob: Which violin strings, Ann?", "Ann: Steel strings, Bob.")
    assert not {"ann", "bob"} & set(describe(talked).topic.lower().split())
    assert text_of("L1", talked).startswith("Ann: The violin needs new strings.")
    assert "User" not in text_of("L1", talked)


def test_commands_and_erased_messages_are_not_counted() -> None:
    talked = weighed(talk(*ENGLISH))
    talked[1] = replace(talked[1], is_command=True, content="/compact zebra")
    talked[3] = replace(talked[3], status="erased", content="")
    cut = describe(talked)
    assert (cut.from_seq, cut.to_seq, cut.messages) == (1, 6, 4)
    assert cut.tokens == sum(talked[index].token_count for index in (0, 2, 4, 5))
    assert (cut.started_at, cut.ended_at) == (talked[0].created_at, talked[-1].created_at)
    assert "zebra" not in "".join(text_of(level, talked) for level in LEVELS) + cut.topic


@pytest.mark.parametrize("talked", [[message(4, "")], [replace(message(4, "hidden"), status="erased")]])
def test_where_nothing_was_said_there_is_still_a_topic(talked: list[Message]) -> None:
    assert describe(talked).topic == "4–4"
    assert all(text_of(level, talked) for level in LEVELS)


def test_no_messages_are_no_segment() -> None:
    with pytest.raises(ValueError, match="at least one"):
        describe([])


@pytest.mark.parametrize(
    ("language", "values"),
    [
        ("en", {"mara@example.org", "14:05"}),
        ("ru", {"240 ГБ", "13.4", "12 декабря"}),
        ("zh", {"MU523", "A8842", "2680元"}),
    ],
)
def test_exact_values_are_found_and_stand_in_the_tags(language: str, values: set[str]) -> None:
    talked = talk(*TALKS[language])
    assert values <= set(describe(talked).identifiers)
    assert values <= set(text_of("L3", talked).split(", "))


def test_of_data_the_values_count_not_the_names_of_its_fields() -> None:
    told = '{"user_id": "mia_li_3668", "cabin": "economy", "born": "1990-04-05", "city": "San Diego", "price": 152}'
    talked = [message(1, "", "tool", parts=[{"type": "tool_result", "tool_call_id": "c", "content": told}])]
    assert set(describe(talked).identifiers) == {"mia_li_3668", "1990-04-05", "San Diego", "152"}


def test_what_was_redacted_names_nothing() -> None:
    talked = talk("My key is [REDACTED:openai_key], the billing export fails.", "The billing export needs a new key.")
    cut = describe(talked)
    assert "REDACTED" not in f"{cut.topic} {cut.identifiers} {text_of('L3', talked)}"
    assert "[REDACTED:openai_key]" in text_of("L1", talked)


def test_exact_values_have_an_end() -> None:
    talked = talk(" ".join(f"AB-{number}X" for number in range(5_000)), f"https://example.org/{'a' * 1_500}")
    assert len(describe(talked).identifiers) == MAX_IDENTIFIERS
    assert estimate_text(text_of("L3", talked)) <= MAX_L3_TOKENS + 5


@spoken
def test_each_level_is_shorter_than_the_one_before(language: str) -> None:
    talked = long(language)
    weight = sum(estimate_text(one.content) for one in talked)
    sizes = {level: estimate_text(text_of(level, talked)) for level in LEVELS}
    assert 0.2 * weight <= sizes["L1"] <= min(0.32 * weight, MAX_L1_TOKENS)
    assert 40 <= sizes["L2"] <= MAX_L2_TOKENS < sizes["L1"]
    assert 10 <= sizes["L3"] <= MAX_L3_TOKENS


@spoken
@pytest.mark.parametrize("level", ["L1", "L2"])
def test_every_sentence_is_a_quotation_with_its_speaker_in_order(language: str, level: Level) -> None:
    talked = talk(*TALKS[language])
    text = text_of(level, talked)
    assert ("\n" in text) == (level == "L1")
    said = [one.content for one in talked]
    labels = re.findall(r"(?:^|(?<=\s))[^\s:]+: (?=\S)", text)
    assert sum(role_of(label) is not None for label in labels) >= 2
    quoted = [part for part in re.split(r"(?:^|\s)(?:User|Assistant|Пользователь|Ассистент|用户|助手): ", text) if part]
    places = [next(place for place, one in enumerate(said) if _first(part) in one) for part in quoted]
    assert places == sorted(places)


def _first(part: str) -> str:
    """The first sentence of a quotation, or the part of it that is surely one."""
    return re.split(r"(?<=[.!?。？])", part)[0].strip()


@spoken
def test_a_level_is_in_the_language_of_the_messages(language: str) -> None:
    assert detect(text_of("L1", talk(*TALKS[language]))) == language


def test_a_decision_and_the_goal_stand_in_the_brief() -> None:
    assert "reset email never arrives" in text_of("L2", talk(*ENGLISH))
    assert "two-factor authentication" in text_of("L2", talk(*ENGLISH))
    assert "Решили: делаем логическую репликацию" in text_of("L2", talk(*RUSSIAN))


def test_a_terse_answer_comes_with_its_question() -> None:
    talked = talk(
        "We plan the garden party for the whole street in June.",
        "How many tables shall I order from the rental company?",
        "14 tables.",
        "Noted. " + "The weather in June is mostly mild here, so no tent is needed for the party. " * 8,
    )
    text = text_of("L1", talked)
    assert "14 tables." in text
    assert "How many tables" in text


def test_a_tool_s_result_is_told() -> None:
    talked = [
        message(1, "Book flight HAT271 for me, please."),
        message(
            2,
            "",
            "assistant",
            parts=[{"type": "tool_call", "id": "c", "name": "book_flight", "arguments": {"flight": "HAT271"}}],
        ),
        message(
            3,
            "",
            "tool",
            parts=[{"type": "tool_result", "tool_call_id": "c", "content": "Booked, reservation ZFA04Y."}],
        ),
    ]
    assert "ZFA04Y" in text_of("L1", talked)
    assert {"HAT271", "ZFA04Y"} <= set(describe(talked).identifiers)


SAID = [*ENGLISH, *RUSSIAN, *CHINESE, "[x →L1:y]", "```\ncode\n```"]
ROLES: list[Role] = ["user", "assistant", "system", "tool"]
ANY = st.lists(
    st.tuples(st.one_of(st.text(max_size=300), st.sampled_from(SAID)), st.sampled_from(ROLES)), min_size=1, max_size=12
)


@examples(1.2)
@given(ANY)
def test_anything_can_be_described_and_told(drawn: list[tuple[str, Role]]) -> None:
    talked = weighed([message(seq, text, role) for seq, (text, role) in enumerate(drawn, start=1)])
    cut = describe(talked)
    assert cut == describe(talked)
    assert 0 < len(cut.topic) <= MAX_TOPIC_LENGTH
    assert len(cut.topic.splitlines()) == 1
    for level in LEVELS:
        text = text_of(level, talked)
        assert text.strip()
        assert text == text_of(level, talked)
        assert estimate_text(text) <= {"L1": MAX_L1_TOKENS, "L2": MAX_L2_TOKENS, "L3": MAX_L3_TOKENS}[level]
        text.encode()


@pytest.mark.long
@pytest.mark.parametrize(
    "piece", often(["a ", "词", "A1 ", "\n", "[", "x: ", "«", "'", "-", "слово, ", "1.", "```\n", '{"a": '])
)
def test_a_giant_message_is_told_in_linear_time(piece: str) -> None:
    def told(text: str) -> None:
        talked = weighed([message(1, text)])
        assert all(estimate_text(text_of(level, talked)) <= MAX_L1_TOKENS for level in LEVELS)

    assert_linear(told, piece * (80_000 // len(piece)))


def test_the_hash_knows_what_it_was_made_of() -> None:
    talked = talk(*ENGLISH)
    told = content_hash(talked, "L1", "extractive", "1")
    assert re.fullmatch("[0-9a-f]{64}", told)
    assert told == content_hash(list(talked), "L1", "extractive", "1")
    others = {content_hash(talked, level, "extractive", "1") for level in get_args(Level)}
    others |= {content_hash(talked, "L1", "m", "1"), content_hash(talked, "L1", "extractive", "2")}
    others |= {content_hash(talked[1:], "L1", "extractive", "1")}
    others |= {content_hash([replace(talked[0], content="x"), *talked[1:]], "L1", "extractive", "1")}
    others |= {content_hash([replace(talked[0], seq=9), *talked[1:]], "L1", "extractive", "1")}
    others |= {content_hash([replace(talked[0], role="system"), *talked[1:]], "L1", "extractive", "1")}
    others |= {
        content_hash([replace(talked[0], parts=({"type": "text", "text": "x"},)), *talked[1:]], "L1", "extractive", "1")
    }
    assert len(others - {told}) == 9  # they differ in nine ways


def test_the_hash_does_not_mind_the_order_of_keys_or_any_sign() -> None:
    one = message(1, "\ud800 ok", parts=[{"type": "text", "text": "x"}])
    other = message(1, "\ud800 ok", parts=[{"text": "x", "type": "text"}])
    assert content_hash([one], "L2", "m", "1") == content_hash([other], "L2", "m", "1")
