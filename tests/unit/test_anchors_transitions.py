"""The effects of later messages on anchors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.anchors import transitions as module
from app.core.anchors.detect import detect
from app.core.anchors.pool import places_with_stems
from app.core.anchors.transitions import MAX_POSITIONS_BACK, subject_stems, transitions
from app.core.model.anchors import Anchor, FoundAnchor
from app.core.model.conversation import Message
from tests.unit.talk import message

LINES = [
    "Use Postgres",
    "No, MySQL",
    "no, use MySQL for the orders database",
    "Let's use Postgres for the orders database.",
    "We'll use MySQL for the orders database.",
    "I'll send the quarterly report by Friday.",
    "Here is the quarterly report.",
    "Done.",
    "Готово.",
    "Should we shard the orders database?",
    "Yes, by tenant.",
    "Who will own the rollout?",
    "Anna.",
    "The deadline is March 3.",
    "The deadline has been moved to March 10.",
    "Actually, make it Thursday.",
    "Нет, лучше MySQL.",
    "Решили использовать Redis.",
    "No, I don't want that.",
    "Hello! How are you?",
    "The weather is nice.",
    "I was wrong about the deadline, it is March 12.",
    "Scratch that.",
]


def said(*lines: str) -> list[Message]:
    """Messages of users, except for lines that begin with ``A:``."""
    return [
        message(seq, line.removeprefix("A: "), "assistant" if line.startswith("A: ") else "user")
        for seq, line in enumerate(lines, start=1)
    ]


def stored(found: FoundAnchor, number: int) -> Anchor:
    values: dict[str, Any] = {name: getattr(found, name) for name in FoundAnchor.__slots__}
    owner = message(found.seq, "")
    return Anchor(
        **values,
        id=UUID(int=100 * found.seq + number),
        conversation_id=owner.conversation_id,
        message_id=owner.id,
        created_at=owner.created_at,
    )


def anchors_of(messages: Sequence[Message]) -> list[Anchor]:
    return [stored(found, number) for one in messages for number, found in enumerate(detect(one))]


def statuses(*lines: str) -> dict[str, str]:
    """Content to status; a superseding anchor is named by its content."""
    messages = said(*lines)
    new = anchors_of(messages)
    changed = {one.anchor_id: one for one in transitions([], new, messages)}
    contents = {anchor.id: anchor.content for anchor in new}
    told = {}
    for anchor in new:
        change = changed.get(anchor.id)
        by = f" by {contents[change.superseded_by]}" if change and change.superseded_by else ""
        told[anchor.content] = f"{change.status}{by}" if change else "active"
    return told


@pytest.mark.case("24")
def test_use_postgres_then_no_mysql() -> None:
    assert statuses("Use Postgres", "A: Postgres it is.", "no, MySQL") == {
        "Use Postgres": "superseded by no, MySQL",
        "no, MySQL": "active",
    }


def test_an_echo_of_what_is_corrected_goes_with_it() -> None:
    told = statuses("Use Postgres", "A: We'll use Postgres then.", "no, MySQL")

    assert told == {
        "Use Postgres": "superseded by no, MySQL",
        "We'll use Postgres then.": "superseded by no, MySQL",
        "no, MySQL": "active",
    }


@pytest.mark.control("24")
def test_control_without_leaning_back_postgres_would_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "antecedent", lambda *_: None)

    assert statuses("Use Postgres", "A: Postgres it is.", "no, MySQL")["Use Postgres"] == "active"


@pytest.mark.parametrize(
    "lines",
    [
        ("Let's use Postgres for the orders database.", "A: ok", "We'll use MySQL for the orders database."),
        ("The deadline is March 3.", "A: ok", "The deadline has been moved to March 10."),
        ("The budget is $500.", "A: ok", "The budget is $600."),
        ("We use Jenkins for builds.", "A: ok", "We no longer use Jenkins, we switched to GitLab."),
        ("The meeting is on Tuesday at 3pm, room 12.", "A: ok", "Actually, make it Thursday."),
        ("My order number is A-77812.", "A: ok", "Sorry, I meant A-77813."),
        ("Используй Postgres.", "A: Хорошо.", "Нет, MySQL."),
        ("Бюджет проекта 350 000 рублей.", "A: Понял.", "Нет, бюджет 400 000 рублей."),
    ],
)
def test_the_newer_of_two_supersedes_the_older(lines: tuple[str, ...]) -> None:
    first, second = statuses(*lines).items()

    assert first[1] == f"superseded by {second[0]}"
    assert second[1] == "active"


@pytest.mark.parametrize(
    "lines",
    [
        ("Let's deploy the API to Frankfurt.", "A: ok", "Let's deploy the worker to Frankfurt."),
        ("The ticket for Anna is $100.", "A: ok", "The ticket for Bob is $120."),
        ("Use Postgres", "A: ok", "Use Postgres"),
        ("My name is Priya Raman.", "A: Actually, it's the blue one that you need."),
        ("Let's use Postgres for the orders.", "A: Nice.", "Thanks!", "A: Good morning!", "How are you?"),
        ("I'll send the quarterly report by Friday.", "A: Thanks", "The report is not done yet."),
        ("Should we shard the orders database?", "A: Good morning!", "A: I don't know yet, let me check the database."),
        ("We need to renew the certificate.", "A: Sure.", "I need the certificate soon."),
    ],
)
def test_what_is_about_something_else_changes_nothing(lines: tuple[str, ...]) -> None:
    assert next(iter(statuses(*lines).values())) == "active"


@pytest.mark.parametrize(
    "lines",
    [
        ("Should we shard the database?", "A: Good morning! How are you?", "A: Yes, by tenant."),
        ("Who will own the rollout?", "A: Anna."),
        ("Кто будет отвечать за релиз?", "A: За релиз отвечает Анна."),
    ],
)
def test_a_direct_answer_resolves(lines: tuple[str, ...]) -> None:
    assert next(iter(statuses(*lines).values())) == "resolved"


@pytest.mark.parametrize(
    "lines",
    [
        ("I'll send the quarterly report by Friday.", "A: Thanks", "Nice weather.", "Here is the quarterly report."),
        ("A: I'll deploy the fix tonight.", "great", "A: Done."),
        ("Я пришлю отчёт до пятницы.", "A: Жду.", "Готово."),
        ("Should we shard the orders database?", "A: Good morning!", "hi", "A: The orders database has three shards."),
        ("When do we ship the parser?", "A: I'll tell you tomorrow."),
        ("When do we ship the parser?", "A: I'll tell you on 5 May."),
        ("Когда мы выпускаем парсер?", "A: Скажу 5 мая."),
    ],
)
def test_whether_a_promise_was_kept_or_a_question_answered_later_is_left_to_models(lines: tuple[str, ...]) -> None:
    assert next(iter(statuses(*lines).values())) == "active"


def test_what_an_assistant_decided_and_the_user_turns_down_is_no_decision() -> None:
    lines = ("A: We'll use Oracle for the billing service.", "No, I don't want that.")

    assert statuses(*lines) == {"We'll use Oracle for the billing service.": "superseded"}
    assert statuses(lines[0], "No problem!") == {"We'll use Oracle for the billing service.": "active"}


def test_an_assistant_never_corrects_what_a_user_stated() -> None:
    assert set(statuses("The budget is $500.", "A: Actually, the budget is $900.").values()) == {"active"}


def test_commands_tools_and_erased_messages_do_nothing() -> None:
    first = said("I'll send the quarterly report by Friday.")[0]
    tool = message(2, "Here is the quarterly report.", "tool")

    assert transitions([], anchors_of([first]), [first, tool]) == []


SPOKEN = st.lists(st.tuples(st.sampled_from(LINES), st.booleans()), max_size=14)


@given(SPOKEN, st.integers(0, 14))
def test_two_batches_say_the_same_as_one(spoken: list[tuple[str, bool]], cut: int) -> None:
    messages = said(*(f"A: {line}" if by_assistant else line for line, by_assistant in spoken))
    whole = transitions([], anchors_of(messages), messages)
    first = transitions([], anchors_of(messages[:cut]), messages[:cut])
    gone = {change.anchor_id for change in first}
    active = [anchor for anchor in anchors_of(messages[:cut]) if anchor.id not in gone]
    second = transitions(active, anchors_of(messages[cut:]), messages[cut:])

    assert [*first, *second] == whole
    assert transitions([], anchors_of(messages), messages) == whole


@given(SPOKEN)
def test_a_status_changes_once_and_never_back(spoken: list[tuple[str, bool]]) -> None:
    messages = said(*(f"A: {line}" if by_assistant else line for line, by_assistant in spoken))
    new = {anchor.id: anchor for anchor in anchors_of(messages)}
    changes = transitions([], list(new.values()), messages)

    assert len({change.anchor_id for change in changes}) == len(changes)
    for change in changes:
        assert change.status in {"resolved", "superseded"}
        if change.superseded_by is not None:
            assert change.status == "superseded"
            by, old = new[change.superseded_by], new[change.anchor_id]
            assert (by.seq, by.offset) > (old.seq, old.offset)


def within_reach(before: Sequence[Anchor], new: Sequence[Anchor], first_seq: int) -> list[Anchor]:
    """The anchors that the database would return for messages from this position on."""
    texts = [anchor.content for anchor in before]
    places = {*places_with_stems(texts, subject_stems(new))}
    near = first_seq - MAX_POSITIONS_BACK
    return [anchor for place, anchor in enumerate(before) if place in places or anchor.seq >= near]


def changed_by_last(lines: Sequence[str]) -> tuple[list[Anchor], list[Anchor], list[Message]]:
    """The anchors that are active before the last line, the anchors of that line, and its message."""
    *earlier, last = said(*lines)
    found = [stored(one, number) for message_ in earlier for number, one in enumerate(detect(message_))]
    gone = {change.anchor_id for change in transitions([], found, earlier)}
    new = [stored(one, number) for number, one in enumerate(detect(last))]
    return [anchor for anchor in found if anchor.id not in gone], new, [last]


@given(st.lists(st.sampled_from([*LINES, *("A: " + line for line in LINES)]), min_size=1, max_size=80))
def test_anchors_beyond_reach_change_nothing(lines: list[str]) -> None:
    before, new, messages = changed_by_last(lines)

    reached = within_reach(before, new, messages[0].seq)
    assert transitions(reached, new, messages) == transitions(before, new, messages)


FAR_BACK = ("We use Jenkins for builds.", *("Hello! How are you?",) * 60, "We no longer use Jenkins, we chose GitLab.")


def test_what_shares_a_word_is_reached_however_far_back_it_stands() -> None:
    before, new, messages = changed_by_last(FAR_BACK)

    assert [anchor.content for anchor in within_reach(before, new, messages[0].seq)] == [FAR_BACK[0]]
    assert transitions(before, new, messages)
    assert not within_reach(before, [], messages[0].seq), "the control: nothing in common"


def test_of_a_word_that_all_have_the_newest_are_reached() -> None:
    lines = [f"Let's use Postgres for the store number {number}." for number in range(200)]
    before, new, messages = changed_by_last([*lines, "We chose Redis, not Postgres."])
    reached = within_reach(before, new, messages[0].seq)

    assert len(before) > len(reached) > MAX_POSITIONS_BACK
    assert reached == before[-len(reached) :]
    assert transitions(reached, new, messages) == transitions(before, new, messages)
