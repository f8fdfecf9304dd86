"""A name before a message is its speaker's if the messages of a role begin so; otherwise "Note: " is not a name."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from app.core.model.conversation import Role
from app.core.reading.labels import name_for_model
from app.core.reading.passages import passages_of
from app.core.text.clauses import clause_starts
from app.core.text.speakers import (
    MAX_NAME_LENGTH,
    label_of,
    labels_of,
    name_in,
    with_speaker_name,
    without_speaker,
    without_speakers,
)
from app.core.text.token_counts import Weight, weigh
from app.usecases.history.drafts import MessageDraft
from tests.unit.talk import message


def names(*said: tuple[str, str]) -> list[str | None]:
    return [label.name if label else None for label in labels_of(said)]


@pytest.mark.parametrize(
    ("text", "name", "rest"),
    [
        ("Anna: we met", "Anna", "we met"),
        ("  Mary-Jane O’Neil: we met", "Mary-Jane O’Neil", "we met"),
        ("Доктор Ливси: здравствуйте", "Доктор Ливси", "здравствуйте"),
        ("小明：你好", "小明", "你好"),
        ("मीरा देवी: हाँ", "मीरा देवी", "हाँ"),
        ("we met at 10: nobody came", None, "we met at 10: nobody came"),
        ("https://example.org: it is down", None, "https://example.org: it is down"),
    ],
)
def test_a_name_stands_before_a_colon(text: str, name: str | None, rest: str) -> None:
    label = label_of(text)
    assert (label.name if label else None, without_speaker(text)) == (name, rest)


def test_each_line_is_told_without_its_speaker() -> None:
    assert without_speakers("Anna: hello\nBoris: hello\nand so on") == "hello\nhello\nand so on"


def test_of_several_people_behind_one_role_each_has_their_own_name() -> None:
    talk = [("user", f"{name}: {n}") for n, name in enumerate(["Anna", "Boris", "Anna", "Cleo", "Boris", "Cleo"])]
    assert names(*talk) == ["Anna", "Boris", "Anna", "Cleo", "Boris", "Cleo"]
    said = passages_of([message(n, text, role="user") for n, (_, text) in enumerate(talk, start=1)], "en")
    assert [(one.speaker, one.text) for one in said][:2] == [("Anna", "0"), ("Boris", "1")]


def test_headings_are_no_names() -> None:
    different = ["Note", "Question", "Update", "Plan"]
    assert names(*(("user", f"{one}: it rains") for one in different)) == [None] * 4
    seldom = [("user", "Note: it rains"), *[("user", "It rains again.")] * 4]
    assert names(*seldom) == [None] * 5
    assert names(("user", "Note: it rains"), ("assistant", "I see.")) == [None, None]
    assert names(("user", "Note: it rains"), ("assistant", "Note: it rains")) == [None, None], "of both"


def test_what_an_assistant_heads_its_answers_with_is_no_name_where_users_have_none() -> None:
    heads = ["Noted: 148 over 92.", "Noted: five sessions.", "Noted: Lisbon in May.", "Two kilos less."]
    talk = [pair for head in heads for pair in (("user", "It rains."), ("assistant", head))]
    assert names(*talk) == [None] * 8
    named = [pair for head in heads for pair in (("user", "Anna: It rains."), ("assistant", head))]
    assert names(*named) == ["Anna", "Noted", "Anna", "Noted", "Anna", "Noted", "Anna", None], "a talk of names"


def test_a_stretch_of_two_messages_is_enough_where_each_has_its_own_name() -> None:
    assert names(("user", "Anna: it rains"), ("assistant", "Boris: I see.")) == ["Anna", "Boris"]


def test_a_message_without_a_name_is_said_by_whom_the_role_has() -> None:
    talk = ["Anna: it rains", "Anna: it snows", "Anna: it thaws", "And it hails."]
    said = passages_of([message(n, text, role="user") for n, text in enumerate(talk, start=1)], "en")
    assert [one.speaker for one in said] == ["Anna"] * 4


def test_a_message_without_a_name_is_nobodys_where_several_people_share_the_role() -> None:
    talk = ["Anna: it rains", "Boris: it snows", "Anna: it thaws", "Boris: it blows", "Anna: it stops", "I like hail."]
    said = passages_of([message(n, text, role="user") for n, text in enumerate(talk, start=1)], "en")
    assert [one.speaker for one in said] == ["Anna", "Boris", "Anna", "Boris", "Anna", "User"]


def test_clauses_begin_behind_a_mark_and_before_a_conjunction() -> None:
    text = "We moved, and Anna left: it was late; nobody minded because it rained – twice"
    starts = [0, *clause_starts(text), len(text)]
    assert [text[start:end] for start, end in itertools.pairwise(starts)] == [
        "We moved, ",
        "and Anna left: ",
        "it was late; ",
        "nobody minded ",
        "because it rained – ",
        "twice",
    ]


@pytest.mark.parametrize(
    ("metadata", "name"),
    [
        ({}, ""),
        ({"name": None}, ""),
        ({"name": ["Anna"]}, ""),
        ({"name": "  Anna\nMaria\t(QA) "}, "Anna Maria QA"),
        ({"name": "）: no\x00\ud800"}, ": no\ufffd"),
        ({"name": "a" * 9_000}, "a" * MAX_NAME_LENGTH),
    ],
)
def test_a_name_beside_a_message_is_one_short_line_without_parentheses(metadata: dict[str, object], name: str) -> None:
    assert name_in(metadata) == name


def test_a_name_beside_a_message_says_who_speaks_as_one_before_it_does() -> None:
    names = ["Anna", "Doctor Livesey the Younger", "小明", "", "Cleo"]
    texts = ["it rains", "it snows", "it thaws", "it blows", "Cleo: it stops"]
    talk = [
        replace(message(n, text, role="user"), metadata={"name": name})
        for n, (name, text) in enumerate(zip(names, texts, strict=True), 1)
    ]
    said = passages_of(talk, "en")

    assert [one.speaker for one in said] == ["Anna", "Doctor Livesey", "小明", "User", "Cleo"]
    assert [one.is_named for one in said] == [True, True, True, False, True]


@pytest.mark.parametrize("name", ["assistant", "The Assistant", "Аssistant", "System", "ассистент", "12", "a" * 30])
def test_what_names_a_role_or_no_person_is_no_speaker(name: str) -> None:
    (said,) = passages_of([replace(message(1, "it rains"), metadata={"name": name})], "en")

    assert (said.speaker, said.is_named) == ("User", False)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("Anna", "Anna"),
        ("user_proxy", "user_proxy"),
        ("Anna: yes\n\nBen", "Anna yes Ben"),
        ("小明：好", "小明 好"),
        (" : ", ""),
        ("system", ""),
        ("Система", ""),
        ("Developer", ""),
        ("\nAssistant:", ""),
        ("", ""),
        (None, ""),
    ],
)
def test_a_name_that_a_chat_model_is_told_ends_with_its_colon_and_is_no_role(given: object, told: str) -> None:
    assert name_for_model({"name": given}) == told


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("Anna", "it rains", "Anna: it rains"),
        ("Anna", " it rains \n", "Anna:  it rains \n"),
        ("Anna", "", "Anna:"),
        ("Anna", "Ben: it rains", "Anna: Ben: it rains"),
        ("Anna", "Annabel: it rains", "Anna: Annabel: it rains"),
        ("Anna", " ANNA: it rains", " ANNA: it rains"),
        ("小明", "小明：你好", "小明：你好"),
        ("", ": it rains", ": it rains"),
    ],
)
def test_a_name_stands_once_before_what_is_said(name: str, text: str, told: str) -> None:
    assert with_speaker_name(name, text) == told


@pytest.mark.parametrize("text", ["it rains", "Anna: it rains", ""])
def test_a_user_s_message_weighs_what_a_chat_model_is_told_of_it(text: str) -> None:
    """Control: the name of another role, and one that is not sent, have no weight."""
    parts = ({"type": "media", "media_type": "image/png", "data": "aGk="},)

    def weight(role: Role, name: str) -> Weight:
        return MessageDraft(role=role, content=text, parts=parts, metadata={"name": name}).computed_weight()

    assert weight("user", "Anna") == weigh("user", with_speaker_name("Anna", text), parts)
    assert weight("user", "System") == weight("user", "") == weigh("user", text, parts)
    assert weight("assistant", "Anna") == weigh("assistant", text, parts)
