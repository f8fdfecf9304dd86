"""The texts for the user about compactions: when they come, in which language, with which plural form."""

from __future__ import annotations

from typing import Any

import pytest

from app.core.model.notifications import Notification, notification_of
from app.core.model.policies.policy import CompactionPolicy
from app.core.model.policies.resolving import resolve
from app.core.text.localization.catalogue import CATALOGUES
from tests.corpus import assert_values, corpus

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
    found = notification_of(type_, given, policy(wanted), CATALOGUES[language])
    assert found is not None
    return found


def test_before_and_after_in_english() -> None:
    before = told("compaction.started", data() | {"tokens_after": None, "messages_covered": 0})
    assert (before.level, before.title) == ("info", "Compressing the conversation")
    assert before.message == "Context at 90 % or more: the conversation is being shortened, 20,000 tokens now."
    after = told("compaction.applied", data())
    assert after.title == "Conversation compressed"
    assert after.message == "Context at 90 % or more: 5 messages summarised, 12,345 tokens saved."


def test_plural_forms_in_russian() -> None:
    def said(text: dict[str, int]) -> str:
        after = told("compaction.applied", data(messages=text["messages"], saved=text["saved"]), "ru")
        assert (after.title, after.locale) == ("Беседа сжата", "ru")
        before, colon, rest = after.message.partition(": ")
        assert (before, colon, rest[-1]) == ("Контекст заполнен на 90 % или больше", ": ", ".")
        return rest[:-1]

    assert_values(corpus("russian_notices"), said)


def test_the_reason_with_the_policys_own_threshold() -> None:
    """``background`` is a trigger that this policy no longer has."""

    def said(text: dict[str, str]) -> str:
        return told("compaction.applied", data(text["trigger"]), text["language"]).message

    assert_values(corpus("notice_reasons"), said, agrees=str.startswith)


@pytest.mark.parametrize(
    ("at", "reason"),
    [
        ({"share": 0.85}, "Ahead of the next model call, at 85 % or more"),
        ({"share": 0.85, "tokens": 80_000}, "Ahead of the next model call"),  # which are 9 % of a large window
        ({"tokens": 80_000}, "Ahead of the next model call"),
    ],
)
def test_a_share_is_named_only_where_it_alone_decides(at: dict[str, Any], reason: str) -> None:
    trigger = {"name": "max_tokens", "on": "before_call", "at": at, "run": "inline"}
    wanted = resolve("handoff", {"notifications": "summary", "triggers": [trigger]})
    said = notification_of("compaction.applied", data("max_tokens"), wanted, CATALOGUES["en"])
    assert said is not None
    assert said.message == f"{reason}: 5 messages summarised, 12,345 tokens saved."


def test_a_number_of_messages_does_not_fill_a_context() -> None:
    trigger = {"name": "max_messages", "on": "stored", "at": {"messages": 20}, "run": "background"}
    wanted = resolve("semantic", {"notifications": "summary", "triggers": [trigger]})
    said = notification_of("compaction.applied", data("max_messages"), wanted, CATALOGUES["en"])
    assert said is not None
    assert said.message.startswith("The set limit is reached: ")


def test_what_came_to_nothing() -> None:
    failed = told("compaction.failed", data() | {"tokens_after": None})
    assert (failed.level, failed.title) == ("warning", "Nothing was compressed")
    assert told("compaction.skipped", data()).level == "info"


def test_what_did_not_get_smaller_saved_nothing() -> None:
    assert told("compaction.applied", data(saved=-5)).message == "Context at 90 % or more: 5 messages summarised."


@pytest.mark.parametrize("type_", ["compaction.started", "compaction.skipped", "compaction.failed"])
def test_a_summary_tells_only_what_was_done(type_: str) -> None:
    assert notification_of(type_, data(), policy("summary"), CATALOGUES["en"]) is None
    assert told("compaction.applied", data(), wanted="summary").title == "Conversation compressed"


@pytest.mark.parametrize("type_", ["compaction.started", "compaction.applied", "compaction.failed"])
def test_nothing_is_said_where_nothing_is_wanted(type_: str) -> None:
    assert notification_of(type_, data(), policy("events"), CATALOGUES["en"]) is None
    assert notification_of(type_, data("erasure"), policy(), CATALOGUES["en"]) is None


@pytest.mark.parametrize("type_", ["message.created", "reply.completed", "compaction.queued", "conversation.restored"])
def test_other_events_have_no_words(type_: str) -> None:
    assert notification_of(type_, data(), policy(), CATALOGUES["en"]) is None
