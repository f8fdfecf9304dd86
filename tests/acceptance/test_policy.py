"""Policies: what is resolved, what is refused with its arithmetic, and a budget that shrinks in mid-conversation."""

from __future__ import annotations

from typing import Any

import pytest

from tests.acceptance.conftest import StartTalk
from tests.acceptance.service import Service
from tests.acceptance.talk import (
    BACKGROUND,
    BUDGET,
    SYNC,
    TARGET,
    WINDOW,
    good,
    lines,
    refused,
    served_seqs,
    weight_of,
)

MESSAGES: dict[str, Any] = {"name": "max_messages", "on": "stored", "at": {"messages": 30}, "run": "background"}


def test_the_arithmetic_of_the_documentation(offline: Service, start_talk: StartTalk) -> None:
    talk = start_talk(offline, policy=WINDOW)
    gauge = talk.get("/usage")
    assert (gauge["window"], gauge["budget"]) == (3_600, BUDGET)
    assert (gauge["background_at"], gauge["sync_at"]) == (BACKGROUND, SYNC)
    assert gauge["tokens_until_compaction"] == BACKGROUND - gauge["tokens"]
    policy = talk.created["policy"]
    assert (policy["context_window"], policy["target"], policy["on_failure"]) == (4_000, 0.6, "truncate")
    assert int(policy["target"] * BUDGET) == TARGET
    assert [trigger["name"] for trigger in policy["triggers"]] == ["background", "sync"]


def test_what_a_message_weighs_is_what_counting_says(offline: Service, start_talk: StartTalk) -> None:
    talk = start_talk(offline)
    said = lines(6)
    stored = talk.batch(said)
    assert [item["token_count"] for item in stored] == [weight_of([line]) for line in said]
    messages = [{"role": role, "content": content} for role, content in said]
    counted = good(talk.http.post("/tokens/count", json={"messages": messages}))["tokens"]
    assert counted == weight_of(said) == talk.get("/usage")["breakdown"]["tail"]


@pytest.mark.long
@pytest.mark.case("18")
def test_a_budget_lowered_in_mid_conversation_is_met_in_chunks(offline: Service, start_talk: StartTalk) -> None:
    talk = start_talk(offline, policy={"context_window": 200_000})
    for part in range(6):
        talk.batch(lines(80, start=1 + 40 * part))
    before = talk.get("/usage")
    assert before["tokens"] > 17_500
    assert talk.compactions() == []

    good(talk.patch({"policy": WINDOW}))
    talk.wait_settled()

    rows = talk.compactions()
    usage = talk.get("/usage")
    assert {row["status"] for row in rows} == {"applied"}
    assert usage["budget"] == BUDGET
    assert usage["utilization"] < 0.85
    assert talk.get()["state_version"] > len(rows), "one version for each chunk"
    assert served_seqs(talk.context())[1:] == list(range(talk.boundary() + 1, 481))
    assert len(talk.history()) == 480


def test_a_budget_lowered_within_reason_compacts_nothing(offline: Service, start_talk: StartTalk) -> None:
    """The control of the test above."""
    talk = start_talk(offline, policy={"context_window": 200_000})
    talk.batch(lines(80))
    good(talk.patch({"policy": {"context_window": 32_000}}))
    assert talk.compactions() == []


@pytest.mark.daily(1)
@pytest.mark.parametrize(
    ("policy", "field", "said"),
    [
        ({"target": 0.8}, "policy.target", "(0.8 × budget"),
        ({"background_at": 0.5}, "policy.target", "must be below the trigger background"),
        ({"background_at": 1.5}, "policy.background_at", "must be more than 0 and at most 1, not 1.5"),
        ({"sync_at": -0.1}, "policy.sync_at", "must be more than 0 and at most 1, not -0.1"),
        ({"max_tokens": -2}, "policy.max_tokens", "-1 for no automatic trigger"),
        ({"context_window": 1_000, "target": 0.2}, "policy.context_window", "exceeds the target of 153"),
        ({"context_window": "large"}, "policy.context_window", "must be a number"),
        ({"state_tokens": 1}, "policy.state_tokens", "must be at least 50 and at most 100000, not 1"),
        ({"anchor_share": 0.9}, "policy.anchor_share", "tokens exceeds the budget of"),
        ({"manual_keep": {"turns": 5_000}}, "policy.manual_keep.turns", "must be at least 0 and at most 1000"),
        (
            {"triggers": [MESSAGES | {"keep_messages": 31}]},
            "policy.triggers.0.keep_messages",
            "fires above 30 messages and keeps 31",
        ),
        ({"triggers": [MESSAGES | {"on": "between_calls"}]}, "policy.triggers.0", 'on "between_calls" runs "inline"'),
        ({"on_failure": "pray"}, "policy.on_failure", "'truncate' or 'keep_full'"),
        ({"windows": 4_000}, "policy.windows", "there are state_schema, triggers, target"),
        ({"recall": "always"}, "policy.recall", "'off' or 'auto'"),
        ({"triggers": [{"name": "background"}]}, "policy.triggers.0.on", "required"),
    ],
)
def test_an_impossible_policy_is_refused_by_field_with_the_arithmetic(
    offline: Service, start_talk: StartTalk, policy: dict[str, Any], field: str, said: str
) -> None:
    talk = start_talk(offline, policy=WINDOW)
    before = talk.get()
    for response in (talk.http.post("/conversations", json={"policy": policy}), talk.patch({"policy": policy})):
        problem = refused(response, 422, "policy_invalid")
        errors = {error["field"]: error["message"] for error in problem["errors"]}
        assert field in errors, errors
        assert said in errors[field]
    assert talk.get() == before


@pytest.mark.case("19")
def test_a_floor_above_the_target_shows_its_sum(offline: Service, start_talk: StartTalk) -> None:
    talk = start_talk(offline, policy=WINDOW)
    prompt = "You are a helpful and patient assistant of a furniture shop. " * 120
    problem = refused(talk.patch({"system_prompt": prompt}), 422, "policy_invalid")
    assert problem["errors"][0]["field"] == "system_prompt"
    assert problem["title"] == "Invalid policy", "one code has one title"
    assert "+ state cap" in problem["detail"]
    assert f"exceeds the target of {TARGET}" in problem["detail"]
    assert talk.get()["system_prompt"] == ""
    refused(talk.http.post("/conversations", json={"system_prompt": prompt, "policy": WINDOW}), 422, "policy_invalid")
    assert talk.patch({"system_prompt": prompt, "policy": {"context_window": 32_000}}).is_success, "control"


def test_an_unknown_preset_is_refused_with_the_known_ones(offline: Service, start_talk: StartTalk) -> None:
    talk = start_talk(offline)
    for response in (
        talk.patch({"preset": "progressive"}),
        talk.http.post("/conversations", json={"preset": "progressive"}),
    ):
        problem = refused(response, 422, "unknown_preset")
        assert "semantic" in problem["detail"]
        assert problem["errors"][0]["field"] == "preset"
    assert "semantic" in talk.http.get("/presets").text


@pytest.mark.daily(3)
@pytest.mark.parametrize(
    ("tail", "body"),
    [
        ("/chat", {"content": "Hello.", "query": "hello"}),
        ("/context", {"compact": "always"}),
        ("/context", {"format": "xml"}),
        ("/compact", {"model": "other"}),
        ("/messages", {"role": "user", "content": "Hello.", "seq": 7}),
        ("/messages", {"role": "user", "content": "Hello.", "tenant_id": "me"}),
        ("/messages", {"role": "owner", "content": "Hello."}),
        ("/messages", {"role": "user", "content": " "}),
    ],
)
@pytest.mark.case("52")
def test_what_is_not_in_the_contract_is_refused(
    offline: Service, start_talk: StartTalk, tail: str, body: dict[str, Any]
) -> None:
    talk = start_talk(offline)
    problem = refused(talk.post(tail, body), 422, "invalid_input")
    assert problem["errors"][0]["field"] in body
    assert talk.history() == []


def test_what_is_not_in_the_contract_is_refused_in_addresses(offline: Service, start_talk: StartTalk) -> None:
    talk = start_talk(offline)
    for query in ("query=", "format=xml", "budget=0", "recall=true"):
        refused(talk.http.get(talk.path(f"/context?{query}")), 422, "invalid_input")
    refused(talk.patch({"compressed_state": {}}), 422, "invalid_input")
    refused(talk.patch({"state_version": 9}), 422, "invalid_input")
