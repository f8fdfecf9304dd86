"""The preset ``semantic``, as Session State Compression is described: thresholds, state, edge cases, cost.

What all presets share (merging, grounding, failures, races) is tested in files of its own; these are the tests of what
that design says.
"""

from __future__ import annotations

import json
from typing import Final

import pytest

from tests.acceptance.conftest import StartTalk
from tests.acceptance.service import Service
from tests.acceptance.talk import (
    BACKGROUND,
    BUDGET,
    SYNC,
    TARGET,
    WINDOW,
    Json,
    Talk,
    block_of,
    good,
    refused,
    text_of,
)
from tests.gemini_server import Gemini

FIELDS: Final = {"logos", "pathos", "abstract", "conversation_summary"}
ARACHNE: Final = (
    ("user", "I'm building an AI chat app called Arachne with FastAPI, Next.js and Gemini. Is Celery necessary?"),
    ("assistant", "The async stack handles concurrency. Celery would bring durability for long-running agents."),
    ("user", "I decided on Redis pub/sub with DB checkpointing for agent durability. Keep your answers short, please."),
    ("assistant", "Noted."),
    ("user", "FIFO truncation gives it a lobotomy: I call it the lobotomy effect. The budget is 850 000 tokens."),
    ("assistant", "A fitting name."),
)
PEOPLE: Final = ("Hanna Voss", "Deniz", "Marta Lind", "Old Pavel", "My sister Ruth", "Jo from next door", "Amadou")
PLACES: Final = ("Kiel", "Ghent", "Tromsø", "Lviv", "Porto", "Zagreb", "Turin", "Cork", "Basel", "Riga", "Bilbao")
THINGS: Final = ("harbour cranes", "botanical garden", "night market", "tram depot", "lighthouse", "opera stairs")
MONTHS: Final = ("January", "March", "April", "June", "August", "September", "October", "December")
OVERSIZED: Final = 3_300  # more tokens than a window of 3 600 has room for beside a state and a reply


def begun(start_talk: StartTalk, service: Service, **policy: object) -> Talk:
    talk = start_talk(service, preset="semantic", policy=WINDOW | policy)
    talk.batch(ARACHNE)
    return talk


def system(talk: Talk) -> str:
    return str(talk.context()["messages"][0]["content"])


# --- thresholds ---------------------------------------------------------------------------------------------------


def test_it_is_the_default_with_70_and_85_percent(offline: Service, start_talk: StartTalk) -> None:
    talk = start_talk(offline, policy=WINDOW)
    assert talk.created["preset"] == "semantic"
    gauge = talk.get("/usage")
    assert (gauge["budget"], gauge["background_at"], gauge["sync_at"]) == (BUDGET, BACKGROUND, SYNC)
    assert (round(BACKGROUND / BUDGET, 2), round(SYNC / BUDGET, 2), round(TARGET / BUDGET, 2)) == (0.7, 0.85, 0.6)


def test_below_70_percent_nothing_from_it_on_the_oldest_are_folded_to_60(
    offline: Service, start_talk: StartTalk
) -> None:
    talk = begun(start_talk, offline)
    talk.fill(BACKGROUND - 300)
    assert talk.compactions() == []
    conversation = talk.get()
    assert (conversation["compressed_state"], conversation["compressed_at_message_id"]) == (None, None)
    talk.fill(BACKGROUND + 250, start=40)
    (row,) = talk.wait_ended()
    assert (row["trigger"], row["ran_in"], row["from_seq"]) == ("background", "worker", 1)
    assert row["tokens_after"] <= TARGET
    assert talk.get()["compressed_at_message_id"] == talk.history()[row["to_seq"] - 1]["id"]


@pytest.mark.long
def test_a_jump_over_85_percent_is_compressed_before_the_model_is_asked_and_nothing_is_lost(
    offline: Service, start_talk: StartTalk
) -> None:
    talk = begun(start_talk, offline)
    talk.fill(BACKGROUND - 300)
    said = text_of(SYNC - talk.get("/usage")["tokens"] + 60)
    reply = talk.chat(said)
    assert (reply["compaction"]["trigger"], reply["compaction"]["ran_in"]) == ("sync", "turn")
    assert (reply["compaction"]["status"], reply["warnings"]) == ("applied", [])
    assert reply["message"]["content"] == said
    history = talk.history()
    assert [message["seq"] for message in history] == list(range(1, len(history) + 1)), "originals are untouched"
    assert history[0]["content"] == ARACHNE[0][1]


# --- the state ----------------------------------------------------------------------------------------------------


def test_the_state_has_its_four_fields_and_is_served_as_a_pair(offline: Service, start_talk: StartTalk) -> None:
    talk = begun(start_talk, offline)
    talk.fill(1_900)
    talk.compact(keep_tail_messages=2)
    state = talk.get()["compressed_state"]
    assert set(state) == FIELDS
    assert all(isinstance(state[name], list) for name in FIELDS - {"conversation_summary"})
    messages = talk.context()["messages"]
    at = next(place for place, item in enumerate(messages) if item["content"].startswith("<session_state>"))
    assert [item["role"] for item in messages[at : at + 2]] == ["user", "assistant"]
    block = block_of(talk.context()) or ""
    assert all(value in block for value in ("Redis", "850 000"))
    assert messages[0]["role"] == "system"
    assert "`logos`" in messages[0]["content"], "the awareness block stands there always"
    assert system(talk) == system(begun(start_talk, offline)), "so that a first compaction changes no cached beginning"


@pytest.mark.long
def test_a_merge_keeps_what_is_relevant_and_updates_what_has_changed(offline: Service, start_talk: StartTalk) -> None:
    talk = begun(start_talk, offline, anchor_share=0, protect=[])
    talk.batch([("user", "The launch is on 4 July 2027."), ("assistant", "Noted.")])
    talk.compact(keep_tail_messages=0)
    talk.batch([("user", "The launch moved to 11 July 2027."), ("assistant", "Noted.")])
    talk.fill(1_500)
    talk.compact(keep_tail_messages=0)
    logos = talk.get()["compressed_state"]["logos"]
    assert any("11 July 2027" in text for text in logos), logos
    assert not any("on 4 July 2027" in text for text in logos), logos
    assert any("Redis" in text for text in logos)
    assert len(logos) == len(set(logos))


@pytest.mark.long
@pytest.mark.parametrize("limit", [4_000, 8_000, 16_000])
def test_the_state_costs_200_to_800_tokens(offline: Service, start_talk: StartTalk, limit: int) -> None:
    talk = start_talk(offline, policy={"context_window": limit, "max_tokens": -1})
    talk.batch(ARACHNE)
    talk.fill(1_400)
    talk.batch([("assistant" if number % 2 else "user", text_of(110 + number)) for number in range(limit // 250)])
    talk.compact(keep_tail_messages=2)
    weights = talk.get("/usage")["breakdown"]
    assert weights["state"] <= 800
    assert weights["state"] + weights["anchors"] >= 200, "what anchors quote, the state need not say again"


@pytest.mark.long
@pytest.mark.parametrize(
    ("messages", "limit"),
    [
        (30, 8_000),
        pytest.param(80, 8_000, marks=pytest.mark.long),
        (80, 32_000),
        pytest.param(300, 32_000, marks=pytest.mark.long),
    ],
)
def test_the_state_alone_costs_as_much_in_a_talk_that_tells_much(
    offline: Service, start_talk: StartTalk, messages: int, limit: int
) -> None:
    """The design's number is for the state alone, without what anchors quote."""
    talk = start_talk(offline, policy={"context_window": limit, "max_tokens": -1})
    talk.batch([(("user", "assistant")[number % 2], told(number)) for number in range(messages)])
    talk.compact(keep_tail_messages=2)
    weights = talk.get("/usage")["breakdown"]
    assert 200 <= weights["state"] <= 800, weights


def told(number: int) -> str:
    """A message with its own facts and values."""
    person, place = PEOPLE[number % len(PEOPLE)], PLACES[number * 5 % len(PLACES)]
    return (
        f"{person} came back from {place} on {1 + number % 28} {MONTHS[number % len(MONTHS)]} 2025 with"
        f" {number + 3} sketches of the {THINGS[number * 7 % len(THINGS)]},"
        f" and the train of {6 + number % 17}:{10 + number % 50} was late."
    )


# --- its edge cases -----------------------------------------------------------------------------------------------


def test_a_message_beyond_the_budget_is_refused_with_limit_and_size(offline: Service, start_talk: StartTalk) -> None:
    talk = begun(start_talk, offline)
    before = talk.history()
    for path, body in (("/chat", {}), ("/messages", {"role": "user"})):
        problem = refused(talk.post(path, body | {"content": text_of(OVERSIZED)}), 413, "message_too_large")
        assert problem["size"] == OVERSIZED
        assert 0 < problem["limit"] < OVERSIZED
        assert str(problem["limit"]) in problem["detail"].replace(" ", "").replace(",", "")
    batch = {"messages": [{"role": "user", "content": text} for text in ("Short.", text_of(OVERSIZED), "Short.")]}
    assert refused(talk.post("/messages/batch", batch), 413, "message_too_large")["detail"].startswith("message 2 of 3")
    assert talk.history() == before


@pytest.mark.long
def test_or_elided_by_policy_stored_whole_and_served_without_its_middle(
    offline: Service, start_talk: StartTalk
) -> None:
    talk = begun(start_talk, offline, oversized="elide")
    said = "BEGIN-1 " + text_of(OVERSIZED) + " END-9"
    reply = talk.chat(said)
    assert reply["message"]["content"] == said
    assert next(item for item in talk.history() if item["id"] == reply["message"]["id"])["content"] == said
    context = talk.context()
    (served,) = [item["content"] for item in context["messages"] if item["seq"] == reply["message"]["seq"]]
    assert len(served) < len(said)
    assert served.startswith("BEGIN-1")
    assert served.endswith("END-9")
    assert context["gauge"]["tokens"] <= BUDGET


@pytest.mark.long
def test_a_changed_system_prompt_does_not_touch_the_state(offline: Service, start_talk: StartTalk) -> None:
    talk = begun(start_talk, offline)
    talk.fill(1_900)
    talk.compact(keep_tail_messages=2)
    state, block, rows = talk.state(), block_of(talk.context()), talk.compactions()
    good(talk.patch({"system_prompt": "You are a patient architect named Q-7."}))
    assert talk.state() == state
    assert block_of(talk.context()) == block
    assert talk.compactions() == rows, "no compaction is due for it"
    assert "Q-7" in system(talk)
    control = good(talk.patch({"system_prompt": ""}))
    assert control["system_prompt"] == ""
    assert "Q-7" not in system(talk)


# --- cost ---------------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_cost_is_in_the_stats_in_tokens_and_money_and_per_turn(
    gemini_service: Service, start_talk: StartTalk, gemini: Gemini
) -> None:
    talk = begun(start_talk, gemini_service, levels=["L2", "L3"], verify="off")  # all calls are those of compactions
    for number in range(2):
        talk.fill(1_800 + 100 * number, start=1 + 40 * number)
        talk.compact(keep_tail_messages=2)
    talk.chat("What did we decide?")
    rows = [row for row in talk.compactions() if row["status"] == "applied"]
    assert len(rows) == 2
    calls = [attempt["usage"] for row in rows for attempt in row["attempts"]]
    shown = talk.get("/stats")
    spent = shown["model_calls"]
    for name in ("input_tokens", "cached_tokens", "output_tokens"):
        assert spent[name] == sum(usage[name] for usage in calls), name
    assert spent["input_tokens"] > 0
    assert spent["total"] == len(gemini.requests("compaction"))
    assert spent["cost_usd"] == pytest.approx(sum(row["cost_usd"] for row in rows))
    assert shown["tokens"]["saved"] == sum(row["tokens_before"] - row["tokens_after"] for row in rows)
    assert shown["tokens"]["saved_per_turn"] == pytest.approx(shown["tokens"]["saved"] / shown["turns"])
    assert shown["last"]["cost_usd"] == pytest.approx(rows[-1]["cost_usd"])
    assert shown["last"]["input_tokens"] == rows[-1]["usage"]["input_tokens"]
    for name in ("input_tokens", "cached_tokens", "output_tokens", "cost_usd"):
        assert spent["per_compaction"][name] == pytest.approx(spent[name] / 2, abs=0.1), name
    assert shown["context"]["saved_share"] == pytest.approx(
        1 - shown["context"]["tokens"] / shown["context"]["history_tokens"], abs=1e-4
    )
    query = shown["context"]["cost_per_query"]  # 0.50 dollars a million, uncached
    assert query["served_usd"] == pytest.approx(0.5e-6 * shown["context"]["tokens"])
    assert query["history_usd"] == pytest.approx(0.5e-6 * shown["context"]["history_tokens"])
    assert query["saved_usd"] == pytest.approx(0.5e-6 * shown["context"]["saved_now"])
    named = {"model_calls.per_compaction.cost_usd", "last.cached_tokens", "context.saved_share"}
    assert named | {f"context.cost_per_query.{name}" for name in query} <= shown["labels"].keys()


@pytest.mark.long
def test_cached_tokens_cost_what_the_provider_asks_for_them(
    gemini_service: Service, start_talk: StartTalk, gemini: Gemini
) -> None:
    def price(cached: int) -> float:
        """The price by this model's rates: 0.50 dollars a million tokens in, 0.05 cached, 3.00 out."""
        fresh = int(used["input_tokens"]) - cached
        return (0.5 * fresh + 0.05 * cached + 3.0 * int(used["output_tokens"])) / 1_000_000

    talk = begun(start_talk, gemini_service, levels=["L2", "L3"])
    talk.fill(1_900)
    row = talk.compact(keep_tail_messages=2)
    used = row["usage"]
    assert used["cached_tokens"] > 0
    assert row["cost_usd"] == pytest.approx(price(used["cached_tokens"]))
    assert row["cost_usd"] < price(0), "control: as if nothing had been cached"
    shown = talk.get("/stats")
    names = ("input_tokens", "cached_tokens", "output_tokens")
    one = shown["model_calls"]["per_compaction"]
    assert one == pytest.approx({name: used[name] for name in names} | {"cost_usd": row["cost_usd"]})


@pytest.mark.long
def test_the_awareness_block_is_small_and_the_answer_shape_is_constrained(
    gemini_service: Service, start_talk: StartTalk, gemini: Gemini
) -> None:
    talk = begun(start_talk, gemini_service)
    talk.fill(1_900)
    talk.compact(keep_tail_messages=2)
    (request,) = gemini.requests("compaction")
    asked = json.dumps(request, default=str)
    assert all(f'"{name}"' in asked or f'\\"{name}\\"' in asked for name in FIELDS), "constrained decoding"
    assert "SessionState" not in system(talk)


def shown_policy(talk: Talk) -> Json:
    policy: Json = talk.created["policy"]
    return policy


def test_its_policy_is_the_one_of_the_page(offline: Service, start_talk: StartTalk) -> None:
    policy = shown_policy(start_talk(offline))
    assert [(one["name"], one["on"], one["at"]["share"], one["run"]) for one in policy["triggers"]] == [
        ("background", "stored", 0.7, "background"),
        ("sync", "before_call", 0.85, "inline"),
    ]
    assert (policy["target"], policy["oversized"], policy["on_failure"]) == (0.6, "refuse", "truncate")
