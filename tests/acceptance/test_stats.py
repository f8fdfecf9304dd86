"""What is measured, over HTTP: figures with labels, and the worker's work on the API's ``/metrics``."""

from __future__ import annotations

from collections import Counter
from typing import Final

import httpx
import pytest

from tests.acceptance.conftest import StartTalk
from tests.acceptance.service import Service, until
from tests.acceptance.talk import WINDOW, good, refused

DONE: Final = 'throughline_compactions_total{ran_in="worker",status="applied",trigger="background"}'
TURNS: Final = 'throughline_turns_total{status="completed"}'


def sample(http: httpx.Client, name: str) -> float:
    """The value of one line of ``/metrics``; 0 for a counter that was never counted."""
    response = http.get("/metrics")
    assert response.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    found = [line for line in response.text.splitlines() if line.startswith(f"{name} ")]
    return float(found[0].rsplit(" ", 1)[1]) if found else 0.0


@pytest.mark.long
def test_the_workers_compactions_are_on_the_apis_metrics(offline: Service, start_talk: StartTalk) -> None:
    talk = start_talk(offline, policy=WINDOW, locale="ru")
    done, turns = sample(talk.http, DONE), sample(talk.http, TURNS)
    talk.fill(2_300)
    (row,) = talk.wait_ended(1)
    assert (row["ran_in"], row["status"]) == ("worker", "applied")
    until(lambda: sample(talk.http, DONE) >= done + 1, what="the worker's compaction on /metrics")
    good(talk.http.post(f"/conversations/{talk.id}/chat", json={"content": "Что нового?"}))
    until(
        lambda: sample(talk.http, 'throughline_turns_total{status="completed"}') >= turns + 1,
        what="the turn on /metrics",
    )
    text = talk.http.get("/metrics").text
    assert talk.id not in text
    assert row["id"] not in text


def test_figures_follow_from_the_rows(offline: Service, start_talk: StartTalk) -> None:
    talk = start_talk(offline, policy=WINDOW, locale="ru")
    talk.fill(2_300)
    talk.wait_ended(1)
    good(talk.http.post(f"/conversations/{talk.id}/compact", json={"keep_tail_messages": 0}))
    rows = talk.compactions()
    shown = talk.get("/stats")
    applied = [row for row in rows if row["status"] == "applied"]
    assert len(applied) == len(rows) == 2
    assert shown["tokens"]["saved"] == sum(row["tokens_before"] - row["tokens_after"] for row in applied)
    assert shown["compactions"]["messages_covered"] == sum(row["messages_covered"] for row in applied)
    by_trigger = {one["name"]: one["count"] for one in shown["compactions"]["by_trigger"]}
    assert by_trigger == Counter(row["trigger"] for row in rows)
    calls = sum(len(row["attempts"]) for row in rows)
    assert shown["model_calls"]["total"] == calls
    # The offline model gets no prompt.
    assert {attempt["prompt_version"] for row in rows for attempt in row["attempts"]} == {None}
    (by_version,) = shown["model_calls"]["by_prompt_version"]
    counts = [by_version[name] for name in ("prompt_version", "attempts", "accepted", "refused", "compactions")]
    assert counts == [None, calls, calls, 0, len(applied)]
    assert shown["last"]["compaction_id"] == max(rows, key=lambda row: str(row["id"]))["id"]
    assert shown["context"]["tokens"] == talk.get("/usage")["tokens"]
    # The offline model has no price.
    assert shown["context"]["cost_per_query"] == dict.fromkeys(["served_usd", "history_usd", "saved_usd"])
    assert 0 < shown["compactions"]["fidelity"]["last"] <= 1
    assert {one["level"] for one in shown["levels"]} >= {"L3"}


@pytest.mark.daily(1)
@pytest.mark.parametrize(
    ("header", "language", "label"),
    [
        (None, "ru", "в фоне, при 70 %"),
        ("*", "ru", "в фоне, при 70 %"),
        ("en-GB,en;q=0.9", "en", "in the background, at 70 %"),
    ],
)
def test_labels_are_in_the_readers_language(
    offline: Service, start_talk: StartTalk, header: str | None, language: str, label: str
) -> None:
    talk = start_talk(offline, policy=WINDOW, locale="ru")
    talk.fill(2_300)
    talk.wait_ended(1)
    headers = {"Accept-Language": header} if header else {}
    response = talk.http.get(f"/conversations/{talk.id}/stats", headers=headers)
    assert response.headers["content-language"] == language
    assert "Accept-Language" in response.headers["vary"]
    shown = good(response)
    assert shown["locale"] == language
    assert shown["compactions"]["by_trigger"] == [{"name": "background", "label": label, "count": 1}]
    assert len(shown["summary"]) == 3


@pytest.mark.long
def test_all_of_a_tenant_and_since(offline: Service, start_talk: StartTalk) -> None:
    talk = start_talk(offline, policy=WINDOW)
    before = good(talk.http.get("/stats"))["compactions"]["total"]
    talk.fill(2_300)
    talk.wait_ended(1)
    shown = good(talk.http.get("/stats", headers={"Accept-Language": "ru"}))
    assert shown["compactions"]["total"] == before + 1
    assert shown["labels"]["tokens.saved"] == "Токенов сэкономлено"
    assert good(talk.http.get("/stats?since=2100-01-01T00:00:00Z"))["compactions"]["applied"] == 0
    refused(talk.http.get("/stats?since=yesterday"), 422, "invalid_input")
    refused(talk.http.get("/stats", params={"since": "0001-01-01T00:00:00+23:00"}), 422, "invalid_input")
    refused(talk.http.get("/stats?sicne=2100-01-01"), 422, "invalid_input")
