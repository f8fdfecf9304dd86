"""The preset ``sessions``, as the Sessions Pattern describes it: a window of 8 000 tokens, and what binds stays.

A *turn* of that design is one event of its log. Its own figures are for contents that reach its thresholds; in our
tokens that takes events of about 150 tokens (its example lines have ten), and of 1 000 for the costly conversation.
"""

from __future__ import annotations

import json
import re
import time
from typing import Any, Final

import pytest

from app.core.model.model_io import SummaryRequest
from app.core.summarizer.offline import extractive
from bench import replay as replaying
from bench.replay import Replay
from tests.acceptance.conftest import StartTalk
from tests.acceptance.service import Service
from tests.acceptance.talk import Json, Talk, good, refused, served_seqs, text_of, weight_of

WINDOW, FIRST = 8_000, 7_600
OBJECTIVE: Final = "I want to understand karma yoga from Chapter 3."
EVENT: Final = 150  # tokens of one event of the two long conversations
PROMISED: Final = 5
"""The 200 ms promised for fifty turns, in yardsticks; a yardstick takes 40 ms if nothing else runs."""

PROTECTED: Final[tuple[tuple[str, str, str, str], ...]] = (
    ("user", OBJECTIVE, "casual", "initial_objective"),
    ("user", "The objective of today is verse 3.19 alone.", "initial_objective", "initial_objective"),
    ("user", "Never quote the commentary by Swami R-77.", "constraint", "explicit_constraint"),
    ("system", "Signed in as user 4711-Ж at 09:15.", "auth_checkpoint", "system"),
    ("tool", "Token checked for the account 0815-K.", "auth_checkpoint", "authentication"),
    ("user", "To recite chapter 3 by heart on 14 May.", "goal", "goal_statement"),
    ("user", "My goal is to teach the 43 verses next year.", "casual", "goal_statement"),
    ("user", "The goal of this session: to settle verse 3.35.", "casual", "goal_statement"),
    ("user", "Моя главная цель — понять 3-ю главу к 9 мая.", "casual", "goal_statement"),
    ("user", "Цель этой сессии: разобрать стих 3.27.", "casual", "goal_statement"),
)


def begun(start_talk: StartTalk, service: Service, **fields: Any) -> Talk:
    return start_talk(service, preset="sessions", **fields)


def events(talk: Talk, count: int, tokens: int) -> None:
    """An objective, then casual talk. Each event waits until the one before it was dealt with, as people do."""
    talk.append(OBJECTIVE, event_type="initial_objective")
    for turn in range(1, count):
        talk.append(text_of(tokens - turn % 7), role="user" if turn % 2 == 0 else "assistant")
        if talk.get("/usage")["tokens"] >= FIRST:
            talk.wait_settled()


def applied(talk: Talk) -> list[Json]:
    talk.wait_settled()
    return [row for row in talk.compactions() if row["status"] == "applied"]


def contents(talk: Talk) -> list[str]:
    return [item["content"] for item in talk.context()["messages"]]


def results(talk: Talk) -> list[Any]:
    """The tools' results, which are in the parts of their messages."""
    parts = (part for item in talk.context()["messages"] for part in item["parts"])
    return [part["content"] for part in parts if part["type"] == "tool_result"]


# --- the window ---------------------------------------------------------------------------------------------------


def test_the_window_holds_8_000_tokens_and_95_percent_of_it_is_7_600(offline: Service, start_talk: StartTalk) -> None:
    gauge = begun(start_talk, offline).get("/usage")
    assert (gauge["window"], gauge["budget"], gauge["background_at"], gauge["sync_at"]) == (
        WINDOW,
        WINDOW,
        FIRST,
        FIRST,
    )


@pytest.mark.long
@pytest.mark.parametrize(("tokens", "cycles"), [(FIRST - 1, 0), (FIRST, 1)])
def test_7_600_reached_fires_and_7_599_does_not(
    offline: Service, start_talk: StartTalk, tokens: int, cycles: int
) -> None:
    talk = begun(start_talk, offline)
    talk.append(OBJECTIVE)
    for number in range(24):
        talk.append(text_of(280), role="assistant" if number % 2 else "user")
    talk.append(text_of(tokens - talk.get("/usage")["tokens"]))
    assert len(applied(talk)) == cycles
    conversation = talk.get()
    assert (conversation["compression_count"], conversation["state_version"]) == (cycles, cycles)
    if cycles:
        assert talk.get("/usage")["tokens"] <= 0.6 * WINDOW


@pytest.mark.parametrize("share", [1.5, -0.1, 0])
def test_a_threshold_outside_0_to_1_is_refused(offline: Service, start_talk: StartTalk, share: float) -> None:
    talk = begun(start_talk, offline)
    problem = refused(talk.patch({"policy": {"background_at": share}}), 422, "policy_invalid")
    assert problem["errors"][0]["field"] == "policy.background_at", "the name that was sent"
    assert str(share) in problem["errors"][0]["message"]
    good(talk.patch({"policy": {"background_at": 0.9, "sync_at": 0.9}}))
    assert talk.get("/usage")["background_at"] == 7_200, "it can be set per use case"


# --- protected context --------------------------------------------------------------------------------------------


def test_what_is_protected_says_why_and_stays_word_for_word_for_ever(offline: Service, start_talk: StartTalk) -> None:
    talk = begun(start_talk, offline)
    call = {"type": "tool_call", "id": "c1", "name": "sign_in", "arguments": {}}
    talk.append(PROTECTED[0][1])
    for turn, (role, content, event_type, reason) in enumerate(PROTECTED[1:], start=1):
        if role == "tool":
            talk.append("", role="assistant", parts=[call], event_type="auth_checkpoint")
            result = [{"type": "tool_result", "tool_call_id": "c1", "content": content}]
            stored = talk.append(content, role=role, event_type=event_type, parts=result)
        else:
            stored = talk.append(content, role=role, event_type=event_type)
        assert stored["is_protected"], turn
        assert stored["protected_reason"] == reason, content
    first = talk.history()[0]
    assert (first["turn"], first["is_protected"], first["protected_reason"]) == (0, True, "initial_objective")
    casual = talk.append("Sure, I'll help with that.", role="assistant")
    assert (casual["is_protected"], casual["protected_reason"], casual["event_type"]) == (
        False,
        "compressible",
        "casual",
    )
    for cycle in range(1, 4):
        for number in range(12):
            talk.append(text_of(120 + number), role="assistant" if number % 2 else "user")
        talk.compact(keep_tail_messages=0)
        told = [*contents(talk), *results(talk)]
        assert all(told.count(content) == 1 for _, content, _, _ in PROTECTED), cycle
        assert casual["content"] not in told, "control: casual talk is not held"
    assert talk.get()["compression_count"] == 3


def test_what_only_sounds_like_a_goal_is_compressible(offline: Service, start_talk: StartTalk) -> None:
    talk = begun(start_talk, offline)
    talk.append(OBJECTIVE)
    for role, content in (
        ("user", "The goalkeeper was late again."),
        ("user", "They scored two goals."),
        ("user", "What is the goal of a sacrifice?"),
        ("user", "Они забили два гола."),
        ("assistant", "My goal is to help you."),
        ("user", "Это было целое приключение."),
    ):
        assert talk.append(content, role=role)["protected_reason"] == "compressible"


@pytest.mark.long
def test_what_cannot_be_held_for_ever_refuses_the_append_with_the_numbers(
    offline: Service, start_talk: StartTalk
) -> None:
    talk = begun(start_talk, offline)
    kept = [talk.append(f"Rule {number}. {text_of(300)}", event_type="constraint") for number in range(6)]
    assert all(one["is_protected"] for one in kept)
    stored = talk.history()
    for path, body in (
        ("/messages", {"role": "user", "content": text_of(300), "event_type": "goal"}),
        ("/chat", {"content": f"My goal is this: {text_of(300)}"}),
        ("/messages/batch", {"messages": [{"role": "user", "content": "First."}, {**kept_again(kept[0])}]}),
    ):
        problem = refused(talk.post(path, body), 409, "pin_budget_exceeded")
        assert problem["limit"] == 2_000, "a quarter of the window"
        assert problem["protected_tokens"] + problem["size"] > problem["limit"]
    assert talk.history() == stored, "nothing is half written"
    talk.append("Casual talk goes on.")
    talk.compact(keep_tail_messages=0)
    told = contents(talk)
    assert all(one["content"] in told for one in kept)

    lets_go = begun(start_talk, offline, policy={"over_allotment": "fold"})
    for one in kept:
        lets_go.append(one["content"], event_type="constraint")
    over = lets_go.append(text_of(300), event_type="constraint")
    assert (over["is_protected"], over["protected_reason"]) == (False, "over_allotment")


def test_no_change_of_policy_lets_go_of_what_is_held_for_ever(offline: Service, start_talk: StartTalk) -> None:
    talk = begun(start_talk, offline)
    kept = [talk.append(f"Rule {number}. {text_of(300)}", event_type="constraint") for number in range(4)]
    held = talk.history()
    problem = refused(talk.patch({"policy": {"pin_share": 0.1}}), 409, "pin_budget_exceeded")
    assert problem["limit"] == 800, "a tenth of the window"
    assert problem["protected_tokens"] + problem["size"] > problem["limit"]
    assert talk.history() == held, "nothing is half changed"
    assert talk.get()["policy"]["pin_share"] == 0.25
    good(talk.patch({"policy": {"pin_share": 0.24}}))
    assert talk.history() == held, "a share with room for all of them changes nothing"

    another = start_talk(offline)
    for number in range(8):
        another.append(kept[number % 4]["content"], event_type="constraint")
    assert refused(another.patch({"preset": "sessions"}), 409, "pin_budget_exceeded")["limit"] == 2_000
    assert another.get()["preset"] == "semantic"
    good(another.patch({"preset": "sessions", "policy": {"over_allotment": "fold"}}))
    assert another.history()[-1]["protected_reason"] == "over_allotment", "control: so it lets go of what has no room"
    refused(another.patch({"policy": {}}), 409, "pin_budget_exceeded")


@pytest.mark.daily(1)
@pytest.mark.parametrize("rules", [8, pytest.param(5, id="control")])
def test_no_change_of_preset_leaves_out_what_had_no_room_before(
    offline: Service, start_talk: StartTalk, rules: int
) -> None:
    """Most of the rules were folded under the preset before; either all are held now, or none is."""
    talk = start_talk(offline, preset="research", policy={"context_window": 8_000})
    for number in range(rules):
        talk.append(f"Rule {number}. {text_of(300)}", event_type="constraint")
    before = talk.history()
    assert before[-1]["protected_reason"] == "over_allotment"
    changed = talk.patch({"preset": "sessions"})
    if rules == 5:
        good(changed)
        assert all(one["is_protected"] for one in talk.history())
    else:
        assert refused(changed, 409, "pin_budget_exceeded")["limit"] == 2_000
        assert talk.history() == before


def kept_again(message: Json) -> Json:
    """A new message with the same role, content and event type."""
    return {"role": message["role"], "content": message["content"], "event_type": message["event_type"]}


# --- the log and the scratchpad -----------------------------------------------------------------------------------


@pytest.mark.long
def test_the_log_only_grows_and_the_scratchpad_is_apart_from_it(offline: Service, start_talk: StartTalk) -> None:
    talk = begun(start_talk, offline, scratchpad={"current_topic": "karma-zebra"})
    events(talk, 20, EVENT)
    history, context = talk.history(), talk.context_bytes()
    assert [message["turn"] for message in history] == list(range(20))
    changed = good(talk.patch({"scratchpad": {"retrieval_count": 3, "current_topic": None}}))
    assert changed["scratchpad"] == {"retrieval_count": 3}
    assert talk.history() == history
    assert talk.context_bytes() == context, "temporary data is nobody's context"
    assert b"karma-zebra" not in context
    talk.compact(keep_tail_messages=4)
    assert talk.history() == history
    assert talk.get()["scratchpad"] == {"retrieval_count": 3}, "and no compaction touches it"


@pytest.mark.daily(2)
@pytest.mark.parametrize(
    ("body", "field", "said"),
    [
        ({"content": "  \n"}, "content", "content cannot be empty"),
        ({"content": ""}, "content", "content cannot be empty"),
        ({"event_type": " "}, "event_type", "event_type cannot be empty"),
        ({"content": 5}, "content", "string"),
        ({"event_type": 5}, "event_type", "string"),
        ({"role": 5}, "role", "'user'"),
        ({"role": "narrator"}, "role", "'user'"),
        ({"content": None}, "content", "string"),
    ],
)
def test_wrong_types_and_empty_values_are_named(
    offline: Service, start_talk: StartTalk, body: Json, field: str, said: str
) -> None:
    talk = begun(start_talk, offline)
    sent = {"role": "user", "content": "Hello", "event_type": "casual"}
    problem = refused(talk.post("/messages", {**sent, **body}), 422, "invalid_input")
    errors = {error["field"].split(".")[-1]: error["message"] for error in problem["errors"]}
    assert said in errors[field], errors
    assert talk.history() == []
    good(talk.post("/messages", sent))


# --- its workloads ------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_fifty_turns_take_one_cycle_and_the_objective_is_there(offline: Service, start_talk: StartTalk) -> None:
    talk = begun(start_talk, offline)
    events(talk, 50, EVENT + 8)
    (row,) = applied(talk)
    assert talk.get()["compression_count"] == 1
    first = talk.context()["messages"]
    objective = next(item for item in first if item["seq"] == 1)
    assert objective["content"] == OBJECTIVE
    assert row["tokens_after"] <= 0.6 * WINDOW


@pytest.mark.long
def test_a_hundred_turns_take_two_or_three(offline: Service, start_talk: StartTalk) -> None:
    talk = begun(start_talk, offline)
    events(talk, 100, EVENT)
    assert 2 <= len(applied(talk)) == talk.get()["compression_count"] <= 3
    assert OBJECTIVE in contents(talk)
    assert len(talk.history()) == 100
    assert served_seqs(talk.context())[-1] == 100


@pytest.mark.long
def test_fifty_turns_of_a_thousand_tokens_cost_a_sixth(offline: Service, start_talk: StartTalk) -> None:
    talk = begun(start_talk, offline)
    talk.append(OBJECTIVE, event_type="initial_objective")
    for turn in range(1, 50):
        talk.append(text_of(1_020), role="assistant" if turn % 2 else "user")
        talk.wait_settled()
    shown = talk.get("/stats")["context"]
    assert shown["history_tokens"] >= 49_900
    assert shown["tokens"] <= WINDOW
    assert shown["saved_now"] == shown["history_tokens"] - shown["tokens"]
    assert shown["saved_now"] / shown["history_tokens"] >= 0.84, "by the price of a token, cost falls by as much"
    assert weight_of([(item["role"], item["content"]) for item in talk.context()["messages"]]) <= WINDOW
    assert OBJECTIVE in contents(talk)


def own_seconds(turns: int, monkeypatch: pytest.MonkeyPatch) -> tuple[float, int]:
    """CPU time without the model's for a conversation of this many events, and the number of its compactions."""
    model = 0.0
    ask = extractive.compress

    def timed(request: SummaryRequest) -> str:
        nonlocal model
        began = time.process_time()
        answer = ask(request)
        model += time.process_time() - began
        return answer

    with monkeypatch.context() as patch:
        patch.setattr(replaying, "compress", timed)
        texts = [OBJECTIVE, *(text_of(EVENT + 8 - turn % 7) for turn in range(1, turns))]
        conversation = Replay.in_window(WINDOW, "sessions")
        began = time.process_time()
        for turn, text in enumerate(texts):
            conversation.say("user" if turn % 2 == 0 else "assistant", text)
            if conversation.is_due():
                conversation.fold()
        return time.process_time() - began - model, conversation.compactions


def yardstick() -> float:
    """CPU time of some JSON and some pattern matching; a busy machine slows both this and the measured work."""
    began = time.process_time()
    for _ in range(20):
        json.loads(json.dumps([{"n": number, "text": f"word {number}"} for number in range(2_000)]))
        re.findall(r"\w+", "some words of a text " * 2_000)
    return time.process_time() - began


@pytest.mark.long
def test_our_own_time_for_fifty_turns_is_within_its_200_ms(monkeypatch: pytest.MonkeyPatch) -> None:
    """This measures CPU time, the best of three runs, compared with a yardstick; the model's time does not count."""
    own_seconds(10, monkeypatch)
    measured = [(*own_seconds(50, monkeypatch), yardstick()) for _ in range(3)]
    assert {cycles for _, cycles, _ in measured} == {1}
    own, unit = min(seconds for seconds, _, _ in measured), min(one for _, _, one in measured)
    assert 0 < own < PROMISED * unit


@pytest.mark.long
def test_and_for_a_hundred_within_its_two_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds, cycles = own_seconds(100, monkeypatch)
    assert 2 <= cycles <= 3
    assert seconds < 10 * PROMISED * min(yardstick() for _ in range(3))
