"""Thresholds over HTTP: the end of a turn and the number of messages as moments, and the boundaries.

The worker is a process of its own here: it runs what is claimed, and the test sees the end from outside.
"""

from __future__ import annotations

import math
from typing import Any, Final

import pytest

from tests.acceptance.conftest import StartTalk
from tests.acceptance.service import Service
from tests.acceptance.talk import BACKGROUND, BUDGET, SYNC, TARGET, WINDOW, Json, Talk, lines, refused, text_of
from tests.gemini_server import Gemini

COMPLETION: Final[Json] = {
    "name": "completion",
    "on": "completed",
    "at": {"share": 0.7},
    "run": "background",
    "fold": "all",
}
BY_NUMBER: Final[Json] = {
    "name": "max_messages",
    "on": "completed",
    "at": {"messages": 30},
    "run": "background",
    "keep_messages": 12,
}


def grown_to(talk: Talk, tokens: int) -> str:
    """Fill the talk, and return a text that brings it to exactly this many tokens."""
    talk.fill(1_900)
    talk.append(text_of(20), role="assistant")
    return text_of(tokens - talk.get("/usage")["tokens"])


@pytest.mark.long
@pytest.mark.case("21")
@pytest.mark.parametrize(
    ("tokens", "claimed"),
    [(BACKGROUND - 1, []), (BACKGROUND, ["background"]), (SYNC - 1, ["background"])],
    ids=["0.6999", "0.70", "0.8499"],
)
def test_the_first_token_of_the_background_threshold_counts(
    offline: Service, start_talk: StartTalk, tokens: int, claimed: list[str]
) -> None:
    talk = start_talk(offline, policy=WINDOW)
    last = grown_to(talk, tokens)
    assert talk.compactions() == []
    talk.append(last)

    rows = talk.wait_ended(len(claimed)) if claimed else talk.compactions()
    assert [row["trigger"] for row in rows] == claimed
    assert all(row["tokens_after"] <= TARGET for row in rows)


@pytest.mark.long
@pytest.mark.case("21")
@pytest.mark.parametrize(("tokens", "ran_in"), [(SYNC - 1, None), (SYNC, "turn")], ids=["0.8499", "0.85"])
def test_the_first_token_of_the_inline_threshold_counts(
    offline: Service, start_talk: StartTalk, tokens: int, ran_in: str | None
) -> None:
    inline = {"name": "sync", "on": "before_call", "at": {"share": 0.85}, "run": "inline"}
    talk = start_talk(offline, policy={**WINDOW, "triggers": [inline]})
    done = talk.chat(grown_to(talk, tokens))

    assert (done["compaction"] or {}).get("ran_in") == ran_in
    if ran_in:
        assert done["compaction"]["tokens_after"] <= TARGET


def test_a_turn_that_is_over_is_compacted_in_the_background(offline: Service, start_talk: StartTalk) -> None:
    talk = start_talk(offline, policy={**WINDOW, "triggers": [COMPLETION]})
    talk.fill(BACKGROUND - 300)

    done = talk.chat(text_of(400))
    (row,) = talk.wait_ended()

    assert done["context"]["tokens"] > BACKGROUND
    assert done["compaction"] is None, "control: the user's message ends no turn"
    assert (row["trigger"], row["ran_in"], row["status"]) == ("completion", "worker", "applied")
    assert talk.boundary() == len(talk.history())


@pytest.mark.long
def test_messages_are_a_threshold_too(offline: Service, start_talk: StartTalk) -> None:
    talk = start_talk(offline, policy={"context_window": 32_000, "triggers": [BY_NUMBER]})
    assert talk.created["policy"]["triggers"][0]["fold"] == "all"
    talk.batch(lines(30))
    assert talk.compactions() == []
    talk.batch(lines(2, start=16))
    (row,) = talk.wait_ended()

    assert (row["trigger"], row["status"]) == ("max_messages", "applied")
    assert len(talk.history()) - talk.boundary() == 12


@pytest.mark.long
@pytest.mark.case("13")
def test_a_window_smaller_than_configured_gets_the_newest_half(
    gemini_service: Service, start_talk: StartTalk, gemini: Gemini
) -> None:
    """Case 13, for the reply itself."""
    talk = start_talk(gemini_service, policy={"context_window": 32_000})
    talk.fill(4_000)
    gemini.script("chat", default={"name": "honest", "max_input_tokens": 2_600})
    done = talk.chat("And what came of it?")
    asked = [request["body"] for request in gemini.requests("chat")]

    assert done["warnings"] == ["context_halved", "context_truncated"]
    assert done["reply"]["content"].startswith("You said: ")
    assert len(asked) == 2
    assert len(asked[1]["contents"]) < 0.6 * len(asked[0]["contents"])
    assert asked[1]["contents"][-1] == asked[0]["contents"][-1], "the newest are kept"

    gemini.script("chat", default={"name": "honest", "max_input_tokens": 20})
    problem = refused(talk.post("/chat", {"content": "And now?"}), 503, "model_unavailable")
    assert talk.history()[-1]["id"] == problem["message_id"]


@pytest.mark.long
@pytest.mark.case("19")
def test_a_floor_shows_its_breakdown_when_it_is_set(offline: Service, start_talk: StartTalk) -> None:
    """Case 19: a threshold that cannot be met."""
    talk = start_talk(offline, policy=WINDOW)
    too_low: dict[str, Any] = {**COMPLETION, "at": {"tokens": 500}}
    problem = refused(talk.patch({"policy": {**WINDOW, "triggers": [too_low]}}), 422, "policy_invalid")

    assert problem["errors"][0]["field"] == "policy.triggers.0.at"
    assert "fires from 501 tokens on, but system prompt with awareness block" in problem["detail"]
    assert "+ state cap 734 =" in problem["detail"]
    assert talk.get("/usage")["budget"] == BUDGET
    enough = {**COMPLETION, "at": {"tokens": 1_500}}
    assert talk.patch({"policy": {**WINDOW, "triggers": [enough]}}).is_success, "control"


@pytest.mark.long
def test_adaptive_thresholds_follow_the_conversation_and_say_why(offline: Service, start_talk: StartTalk) -> None:
    talk, fixed = (start_talk(offline, policy={**WINDOW, "adaptive": adaptive}) for adaptive in ("on", "off"))
    for one in (talk, fixed):
        for _ in range(3):
            one.append(text_of(100))
            one.append(text_of(400), role="assistant")
    gauge = talk.get("/usage")
    followed = gauge["adaptive"]

    assert (followed["own_background"], followed["own_target"]) == (0.7, 0.6)
    assert (followed["background"], followed["target"]) == (0.68, 0.4), "turns of a sixth of the budget: early and deep"
    assert (gauge["background_at"], gauge["target"]) == (math.ceil(0.68 * BUDGET), math.floor(0.4 * BUDGET))
    assert gauge["sync_at"] == SYNC, "where a turn waits stays"
    assert (followed["pace"]["turns"], followed["pace"]["compaction_seconds"]) == (3, None)
    assert "begin at 68 % of the budget (the policy says 70 %)" in followed["explanation"]
    assert talk.get("")["policy"]["triggers"][0]["at"]["share"] == 0.7, "what was set stays as it was set"
    control = fixed.get("/usage")
    assert (control["adaptive"], control["background_at"], control["target"]) == (None, BACKGROUND, TARGET)

    for one in (talk, fixed):
        one.append(text_of(gauge["background_at"] - one.get("/usage")["tokens"]))
    (row,) = talk.wait_ended()
    assert (row["trigger"], row["status"]) == ("background", "applied")
    assert row["tokens_after"] <= gauge["target"]
    assert fixed.compactions() == []

    talk.append(text_of(400), role="assistant")
    assert talk.get("/usage")["adaptive"]["pace"]["compaction_seconds"] > 0
    refused(talk.patch({"policy": {"adaptive": "on", "background_at": None}}), 422, "policy_invalid")
