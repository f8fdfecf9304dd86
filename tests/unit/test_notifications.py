"""Words for the user about compactions: when, in which language, with which plural."""

from __future__ import annotations

from typing import Any

import pytest

from app.domain.localization.catalogue import CATALOGUES
from app.domain.notifications import Notification, notify
from app.domain.policies.policy import CompactionPolicy
from app.domain.policies.presets import resolve

COMPLETION = {"name": "completion", "on": "completed", "at": {"window": 0.9}, "run": "background", "fold": "all"}
MID_TURN = {"name": "mid_turn", "on": "between_calls", "at": {"window": 0.925}, "run": "inline"}
INTERRUPTED = {"name": "interrupted", "on": "interrupted", "at": {"window": 0.9}, "run": "background"}


def policy(notifications: str = "before_and_after") -> CompactionPolicy:
    triggers = [COMPLETION, MID_TURN, INTERRUPTED]
    return resolve("semantic", {"notifications": notifications, "triggers": triggers})


def data(trigger: str = "completion", messages: int = 5, saved: int = 12_345) -> dict[str, Any]:
    return {
        "trigger": trigger,
        "messages_covered": messages,
        "tokens_before": 20_000,
        "tokens_after": 20_000 - saved,
        "status": "applied",
    }


def told(type_: str, given: dict[str, Any], language: str = "en", wanted: str = "before_and_after") -> Notification:
    found = notify(type_, given, policy(wanted), CATALOGUES[language])
    assert found is not None
    return found


def test_before_and_after_in_english() -> None:
    before = told("compaction.started", data() | {"tokens_after": None, "messages_covered": 0})
    assert (before.level, before.title) == ("info", "Compressing the conversation")
    assert before.message == "Context at 90 % or more: the conversation is being shortened, 20,000 tokens now."
    after = told("compaction.applied", data())
    assert after.title == "Conversation compressed"
    assert after.message == "Context at 90 % or more: 5 messages summarised, 12,345 tokens saved."


@pytest.mark.parametrize(
    ("messages", "saved", "said"),
    [
        (1, 1, "1 сообщение в пересказе, сэкономлен 1 токен"),
        (2, 22, "2 сообщения в пересказе, сэкономлено 22 токена"),
        (5, 12_345, "5 сообщений в пересказе, сэкономлено 12\u00a0345 токенов"),
        (11, 111, "11 сообщений в пересказе, сэкономлено 111 токенов"),
        (21, 101, "21 сообщение в пересказе, сэкономлен 101 токен"),
    ],
)
def test_plural_forms_in_russian(messages: int, saved: int, said: str) -> None:
    after = told("compaction.applied", data(messages=messages, saved=saved), "ru")
    assert after.message == f"Контекст заполнен на 90 % или больше: {said}."
    assert (after.title, after.locale) == ("Беседа сжата", "ru")


@pytest.mark.parametrize(
    ("trigger", "english", "russian"),
    [
        ("completion", "Context at 90 % or more:", "Контекст заполнен на 90 % или больше:"),
        (
            "mid_turn",
            "Ahead of the next model call, at 92.5 % or more:",
            "Заранее, перед вызовом модели, при 92,5 % и больше:",
        ),
        (
            "interrupted",
            "After an interrupted turn, at 90 % or more:",
            "После прерванного хода, при 90 % и больше:",
        ),
        ("manual", "On request:", "По запросу:"),
        ("background", "Context nearly full:", "Контекст почти заполнен:"),  # no such trigger in the policy any more
    ],
)
def test_the_reason_with_the_policys_own_threshold(trigger: str, english: str, russian: str) -> None:
    assert told("compaction.applied", data(trigger)).message.startswith(english)
    assert told("compaction.applied", data(trigger), "ru").message.startswith(russian)


def test_what_came_to_nothing() -> None:
    failed = told("compaction.failed", data() | {"tokens_after": None})
    assert (failed.level, failed.title) == ("warning", "Nothing was compressed")
    assert told("compaction.skipped", data()).level == "info"


def test_what_did_not_get_smaller_saved_nothing() -> None:
    assert told("compaction.applied", data(saved=-5)).message == "Context at 90 % or more: 5 messages summarised."


@pytest.mark.parametrize("type_", ["compaction.started", "compaction.skipped", "compaction.failed"])
def test_a_summary_tells_only_what_was_done(type_: str) -> None:
    assert notify(type_, data(), policy("summary"), CATALOGUES["en"]) is None
    assert told("compaction.applied", data(), wanted="summary").title == "Conversation compressed"


@pytest.mark.parametrize("type_", ["compaction.started", "compaction.applied", "compaction.failed"])
def test_nothing_is_said_where_nothing_is_wanted(type_: str) -> None:
    assert notify(type_, data(), policy("events"), CATALOGUES["en"]) is None
    assert notify(type_, data("erasure"), policy(), CATALOGUES["en"]) is None


@pytest.mark.parametrize("type_", ["message.created", "reply.completed", "compaction.queued", "conversation.restored"])
def test_other_events_have_no_words(type_: str) -> None:
    assert notify(type_, data(), policy(), CATALOGUES["en"]) is None
