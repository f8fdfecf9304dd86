"""The AI SDK's wire over ASGI: every part by its values, and every chunk by an independent schema of them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import httpx
import pytest
from pydantic import ValidationError
from pydantic_ai.ui.vercel_ai import response_types

from tests.acceptance.conftest import StartService, StartTalk, gemini_settings
from tests.acceptance.service import Service, running_service, until
from tests.acceptance.talk import MANUAL, WINDOW, Json, Talk, good, refused, text_of
from tests.acceptance.test_client_tools import PIXEL, WEATHER
from tests.acceptance.test_recall import FACT, folded
from tests.acceptance.test_turns import SLOWLY, STOPS
from tests.gemini_server import Gemini

HEADERS: Final = {
    "content-type": "text/event-stream; charset=utf-8",
    "x-vercel-ai-ui-message-stream": "v1",
    "cache-control": "no-cache",
    "x-accel-buffering": "no",
}
KINDS: Final = tuple(
    kind
    for kind in vars(response_types).values()
    if isinstance(kind, type) and issubclass(kind, response_types.BaseChunk) and "type" in kind.model_fields
)
BY_TYPE: Final = {kind.model_fields["type"].default: kind for kind in KINDS if kind is not response_types.DataChunk}


def judged(chunk: Json) -> Json:
    """A chunk, which pydantic-ai's schema must know, without further fields."""
    kind = BY_TYPE.get(chunk["type"], response_types.DataChunk)
    parsed = kind.model_validate(chunk)
    assert parsed.model_dump(by_alias=True, mode="json", exclude_unset=True) == chunk
    return chunk


def read_chunks(response: httpx.Response) -> Iterator[Json]:
    """Each chunk, checked by ``judged``; the stream must end with its mark."""
    for line in response.iter_lines():
        if line.startswith("data: ") and line != "data: [DONE]":
            yield judged(json.loads(line.removeprefix("data: ")))
        else:
            assert line in {"", "data: [DONE]"} or line.startswith(":"), line
            if line == "data: [DONE]":
                return
    raise AssertionError("the stream has no end")


@contextmanager
def posting(talk: Talk, body: Json, **headers: str) -> Iterator[Iterator[Json]]:
    with talk.http.stream("POST", talk.path("/ui"), json=body, headers=headers) as response:
        assert response.status_code == 200, response.read()
        assert {name: response.headers[name] for name in HEADERS} == HEADERS
        yield read_chunks(response)


def post(talk: Talk, body: Json, **headers: str) -> list[Json]:
    with posting(talk, body, **headers) as chunks:
        return list(chunks)


@contextmanager
def resumed(talk: Talk, service: Service | None = None) -> Iterator[Iterator[Json]]:
    with (service or talk.service).client() as http, http.stream("GET", talk.path("/ui/stream")) as response:
        assert response.status_code == 200
        yield read_chunks(response)


def user(text: str, *, id_: str | None = None, **fields: Any) -> Json:
    message = {"id": id_ or uuid4().hex[:16], "role": "user", "parts": [{"type": "text", "text": text}]}
    return {"id": "chat", "trigger": "submit-message", "message": message, **fields}


def shape(chunks: Iterable[Json]) -> list[str]:
    """The types in order, with a run of one type once."""
    types = [chunk["type"] for chunk in chunks]
    return [name for index, name in enumerate(types) if index == 0 or name != types[index - 1]]


def of(chunks: Iterable[Json], type_: str) -> list[Json]:
    return [chunk for chunk in chunks if chunk["type"] == type_]


def whole(chunks: Iterable[Json]) -> list[Json]:
    """The chunks without gauges, each text as one piece."""
    found: list[Json] = []
    for chunk in chunks:
        if found and chunk["type"] == found[-1]["type"] == "text-delta":
            found[-1] = {**chunk, "delta": found[-1]["delta"] + chunk["delta"]}
        elif chunk["type"] != "data-gauge":
            found.append(chunk)
    return found


def said(chunks: Iterable[Json]) -> str:
    return "".join(chunk["delta"] for chunk in of(chunks, "text-delta"))


def history(talk: Talk, **params: Any) -> list[Json]:
    found: list[Json] = talk.get("/messages", format="ui", **{"limit": 100, **params})["data"]
    return found


PLAIN: Final = [
    "start", "data-gauge", "start-step", "text-start", "text-delta", "text-end", "finish-step", "data-gauge", "finish",
]  # fmt: skip


def test_a_message_its_repetition_and_the_history(offline: Service, start_talk: StartTalk) -> None:
    talk = start_talk(offline)
    assert talk.http.get(talk.path("/ui/stream")).status_code == 204
    asked = user("Good morning. I live in Graz.")
    first = post(talk, asked)
    question, reply = talk.history()
    assert shape(first) == PLAIN
    assert said(first) == reply["content"]
    assert first[0] == {"type": "start", "messageId": reply["id"]}
    metadata = {name: reply[name] for name in ("seq", "model", "usage", "created_at", "status")}
    assert metadata.items() <= first[-1]["messageMetadata"].items()
    assert (first[-1]["finishReason"], first[-1]["messageMetadata"]["message_id"]) == ("stop", reply["id"])
    gauges = of(first, "data-gauge")
    assert [(one["id"], one["transient"]) for one in gauges] == [("gauge", True)] * 2
    assert gauges[-1]["data"] == talk.get("/usage")
    assert gauges[0]["data"]["tokens"] <= gauges[-1]["data"]["tokens"]

    everything = {
        "id": "x",
        "messages": [{"junk": 1}, asked["message"]],
        "extra": {"a": [1]},
        "trigger": "submit-message",
    }
    assert said(post(talk, everything)) == reply["content"]
    assert talk.history() == [question, reply], "sent twice, stored once"
    other = {**asked, "message": {**asked["message"], "parts": [{"type": "text", "text": "Something else."}]}}
    refused(talk.post("/ui", other), 422, "idempotency_key_reused")

    shown = history(talk)
    assert [(one["id"], one["role"]) for one in shown] == [(question["id"], "user"), (reply["id"], "assistant")]
    assert shown[0]["parts"] == [{"type": "text", "text": "Good morning. I live in Graz."}]
    assert shown[1]["parts"] == [{"type": "step-start"}, {"type": "text", "text": reply["content"]}]
    assert shown[1]["metadata"] == first[-1]["messageMetadata"]


@pytest.mark.long
def test_a_turn_is_said_on_the_day_of_the_user_s_clock(offline: Service, start_talk: StartTalk) -> None:
    talk = start_talk(offline, policy=MANUAL)
    good(talk.post("/chat", {"content": "Good evening from Los Angeles.", "utc_offset": -420}))
    post(talk, user("Good morning from Delhi.", utc_offset=330))
    talk.chat("And from Greenwich.")
    assert [message["utc_offset"] for message in talk.history()] == [-420, -420, 330, 330, None, None]
    assert (
        refused(talk.post("/chat", {"content": "Hello.", "utc_offset": 900}), 422, "invalid_input")["errors"][0][
            "field"
        ]
        == "utc_offset"
    )
    assert len(talk.history()) == 6


def test_tools_of_the_frontend_and_a_file(offline: Service, start_talk: StartTalk) -> None:
    talk = start_talk(offline)
    asked = user("Is it fine there?", tools=[WEATHER], tool_choice={"name": "weather"})
    file = {"type": "file", "mediaType": "image/png", "url": f"data:image/png;base64,{PIXEL}", "filename": "a.png"}
    asked["message"]["parts"].append(file)
    first = post(talk, asked)
    assert shape(first) == [
        "start",
        "data-gauge",
        "start-step",
        "tool-input-available",
        "finish-step",
        "data-gauge",
        "finish",
    ]
    (call,) = of(first, "tool-input-available")
    assert (call["toolName"], call["input"], call["dynamic"]) == ("weather", {"city": "", "days": 0}, True)
    assert "providerExecuted" not in call
    assert first[-1]["finishReason"] == "tool-calls"
    part = {"type": "dynamic-tool", "toolName": "weather", "toolCallId": call["toolCallId"], "input": call["input"]}
    asked_again, open_ = history(talk)
    assert asked_again["parts"] == [{"type": "text", "text": "Is it fine there?"}, file]
    assert open_["parts"] == [{"type": "step-start"}, {**part, "state": "input-available"}]
    refused(talk.post("/ui", {"trigger": "regenerate-message"}), 409, "tools_pending")

    done = {**part, "state": "output-available", "output": {"sky": "blue"}}
    results = {"message": {"id": first[0]["messageId"], "role": "assistant", "parts": [{"type": "step-start"}, done]}}
    second = post(talk, {**results, "trigger": "submit-message", "messageId": first[0]["messageId"]})
    assert second[0] == first[0], "the same message goes on"
    assert shape(second) == PLAIN
    assert said(post(talk, results)) == said(second), "sent twice"
    assert [one["role"] for one in talk.history()] == ["user", "assistant", "tool", "assistant"]
    assert history(talk)[1]["id"] == first[0]["messageId"]
    assert history(talk)[1]["parts"] == [
        {"type": "step-start"}, done, {"type": "step-start"}, {"type": "text", "text": said(second)},
    ]  # fmt: skip

    again = post(talk, {"trigger": "regenerate-message", "messageId": first[0]["messageId"], "messages": []})
    assert again[0] == first[0]
    assert of(again, "tool-output-available")[0]["output"] == {"sky": "blue"}, (
        "the frontend has dropped the whole message"
    )
    assert [one["status"] for one in talk.history()] == ["complete"] * 3 + ["superseded", "complete"]
    assert len(history(talk)) == 2


@pytest.mark.long
def test_a_tool_of_the_service_and_what_a_failure_leaves(
    gemini_service: Service, start_talk: StartTalk, gemini: Gemini
) -> None:
    talk = folded(gemini_service, start_talk)
    search = {"name": "search_history", "args": {"query": "lantern"}}
    gemini.script(
        "chat", {"name": "calls", "text": "Let me look.", "calls": [search]}, {"name": "text", "text": "Found."}
    )
    asked = user("One more thing, please.", recall=False)
    chunks = post(talk, asked)
    (called,), (returned,) = of(chunks, "tool-input-available"), of(chunks, "tool-output-available")
    assert (called["toolName"], called["input"], called["providerExecuted"]) == ("search_history", search["args"], True)
    assert (returned["toolCallId"], returned["providerExecuted"]) == (called["toolCallId"], True)
    assert "Ferreira" in returned["output"]
    assert shape(chunks)[2:-2] == [
        "start-step", "text-start", "text-delta", "text-end", "tool-input-available", "tool-output-available",
        "finish-step", "start-step", "text-start", "text-delta", "text-end", "finish-step",
    ]  # fmt: skip
    assert whole(post(talk, asked)) == whole(chunks), "sent twice: the same answer with all its steps"
    shown = history(talk)[-1]
    assert shown["id"] == chunks[0]["messageId"]
    assert [part["type"] for part in shown["parts"]] == ["step-start", "text", "dynamic-tool", "step-start", "text"]
    assert shown["parts"][2]["output"] == returned["output"]
    newest = talk.get("/messages", format="ui", order="desc", limit=1)
    assert newest["data"] == [shown], "a page ends where an answer begins"
    rest = talk.get("/messages", format="ui", order="desc", limit=100, after=newest["next_cursor"])["data"]
    assert [shown, *rest] == history(talk)[::-1]

    weather = {"name": "weather", "args": {"city": "Graz", "days": 1}}
    gemini.script("chat", {"name": "calls", "calls": [search]}, {"name": "calls", "calls": [search, weather]})
    both = user("And both?", tools=[WEATHER], recall=False)
    mixed = post(talk, both)
    steps = ["start-step", "tool-input-available", "tool-output-available"]
    assert shape(mixed)[2:-2] == [*steps, "finish-step", *steps, "tool-input-available", "finish-step"]
    again = {chunk.get("toolCallId"): chunk for chunk in whole(post(talk, both))}
    assert again == {chunk.get("toolCallId"): chunk for chunk in whole(mixed)}
    shown = history(talk)[-1]
    assert shown["id"] == mixed[0]["messageId"], "though the reply is the message that makes the calls"
    assert [part["type"] for part in shown["parts"]] == [
        "step-start",
        "dynamic-tool",
        "step-start",
        *["dynamic-tool"] * 2,
    ]
    done = {**shown["parts"][-1], "state": "output-error", "errorText": "no sky"}
    gemini.script("chat", {"name": "text", "text": "Never mind."})
    last = post(talk, {"message": {**shown, "parts": [*shown["parts"][:-1], done]}})
    assert (last[0], said(last)) == (mixed[0], "Never mind.")
    assert history(talk)[-1]["parts"][4:] == [done, {"type": "step-start"}, {"type": "text", "text": "Never mind."}]

    gemini.script("chat", "error_400")
    asked = user("And when?")
    failed = post(talk, asked)
    assert shape(failed) == ["start", "data-gauge", "error"]
    assert json.loads(failed[-1]["errorText"])["code"] == "model_unavailable"
    made_again = post(talk, {"trigger": "regenerate-message", "message": asked["message"]})
    assert shape(made_again) == PLAIN
    other = post(talk, user("Once more."))
    gemini.script("chat", {"name": "text", "text": "Better."})
    made = post(talk, {"trigger": "regenerate-message", "messageId": other[0]["messageId"]})
    assert (said(made), made[0] != other[0]) == ("Better.", True)
    refused(talk.post("/ui", {"trigger": "regenerate-message", "message": asked["message"]}), 409, "not_regenerable")
    assert [one["id"] for one in history(talk)][-1] == made[0]["messageId"]


def test_a_compaction_is_told_and_stands_where_it_happened(
    gemini_service: Service, start_talk: StartTalk, gemini: Gemini
) -> None:
    talk = start_talk(gemini_service, policy={**WINDOW, "notifications": "before_and_after"})
    talk.fill(2_000)
    chunks = post(talk, user(text_of(750)))
    started, applied = of(chunks, "data-compaction")
    row = talk.compactions()[-1]
    assert started["id"] == applied["id"] == row["id"]
    assert [one["data"]["status"] for one in (started, applied)] == ["started", "applied"]
    numbers = ("trigger", "from_seq", "to_seq", "messages_covered", "tokens_before", "tokens_after", "duration_ms")
    assert [applied["data"][name] for name in numbers] == [row[name] for name in numbers]
    assert applied["data"]["notification"]["level"] == "info"
    gauges = [one["data"]["tokens"] for one in of(chunks, "data-gauge")]
    assert len(gauges) == 3
    assert gauges[1] < row["tokens_before"]
    shown = history(talk)
    assert shown[-1]["id"] == chunks[0]["messageId"]
    assert shown[-1]["parts"][0] == applied
    after = talk.compact(keep_tail_messages=0)
    assert [part["id"] for part in history(talk)[-1]["parts"] if "id" in part] == [row["id"], after["id"]]


@pytest.mark.long
def test_what_was_recalled_and_what_is_warned_of(offline: Service, start_talk: StartTalk) -> None:
    talk = folded(offline, start_talk)
    chunks = post(talk, user("Who repaired the lantern of the museum?", max_tokens=3))
    (recalled,) = of(chunks, "data-recalled")
    assert 21 in [seq for run in recalled["data"] for seq in run["seqs"]]
    source = next(one for one in of(chunks, "source-document") if one["sourceId"] == "seq:21")
    assert FACT[:40] in source["title"]
    shown = history(talk, limit=1, order="desc")[0]
    assert [part for part in shown["parts"] if part["type"] in {"data-recalled", "source-document"}] == [
        recalled, *of(chunks, "source-document"),
    ]  # fmt: skip


def test_a_reload_in_the_middle_a_stop_and_two_at_once(
    gemini_service: Service, start_talk: StartTalk, gemini: Gemini
) -> None:
    talk = start_talk(gemini_service)
    gemini.script("chat", STOPS)
    asked = user("Take your time.")
    with posting(talk, asked) as own:
        first = [next(own) for _ in range(5)]
        assert [one["role"] for one in history(talk)] == ["user"]
        with resumed(talk) as again, posting(talk, asked) as twice:
            gemini.release()
            second, third = list(again), list(twice)
        first += own
    assert said(first) == said(second) == said(third) == SLOWLY
    assert first[0] == second[0] == third[0]
    assert first[-1] == second[-1] == third[-1]
    assert len(talk.history()) == 2

    gemini.script("chat", STOPS)
    with posting(talk, user("And again.")) as own:
        begun = [next(own) for _ in range(5)]
        refused(talk.post("/ui", user("Another.")), 409, "turn_in_progress")
        good(talk.post("/chat/interrupt"))
        begun += own
    assert shape(begun)[-4:] == ["finish-step", "data-gauge", "message-metadata", "abort"]
    assert begun[-2]["messageMetadata"]["status"] == "interrupted"
    assert SLOWLY.startswith(said(begun))
    until(lambda: history(talk)[-1]["metadata"]["status"] == "interrupted", what="the stored reply")
    assert history(talk)[-1]["id"] == begun[0]["messageId"]


@pytest.mark.long
@pytest.mark.processes
def test_a_reload_that_another_process_answers(
    start_service: StartService, start_talk: StartTalk, gemini: Gemini, gemini_server: Gemini, tmp_path: Path
) -> None:
    settings = gemini_settings(gemini_server)
    one = start_service(worker=False, **settings)
    (tmp_path / "other").mkdir()
    urls = {"database_url": one.database_url, "redis_url": one.redis_url}
    with running_service(tmp_path / "other", worker=False, settings=settings, **urls) as other:
        talk = start_talk(one)
        gemini.script("chat", {"name": "calls", "calls": [{"name": "weather", "args": {}}]}, STOPS)
        asked = post(talk, user("Is it fine?", tools=[WEATHER]))
        (call,) = of(asked, "tool-input-available")
        done = {"type": "dynamic-tool", "toolCallId": call["toolCallId"], "state": "output-available", "output": "Yes."}
        results = {"message": {"id": asked[0]["messageId"], "role": "assistant", "parts": [done]}}
        with posting(talk, results) as own:
            first = [next(own) for _ in range(5)]
            with resumed(talk, other) as elsewhere:
                second: list[Json] = []
                while not of(second, "text-delta"):
                    second.append(next(elsewhere))
                gemini.release()
                second += elsewhere
            first += own
    assert said(first) == said(second) == SLOWLY
    assert len(of(second, "text-delta")) > 1, "piece by piece"
    assert first[0] == second[0] == asked[0]
    assert [one["output"] for one in of(second, "tool-output-available")] == ["Yes."], "its message from the beginning"
    assert of(first, "tool-output-available") == []
    assert first[-1] == second[-1]


def parts(*given: Json, role: str = "user") -> Json:
    return {"message": {"id": "m", "role": role, "parts": list(given)}}


TEXT: Final[Json] = {"type": "text", "text": "Hello."}
WRONG: Final[dict[str, tuple[Json, str]]] = {
    "nothing": ({}, "message"),
    "no words": (parts({"type": "text", "text": " "}), "message.parts"),
    "a blob": (parts(TEXT, {"type": "file", "mediaType": "image/png", "url": "blob:x"}), "message.parts.1.url"),
    "no Base64": (parts({"type": "file", "mediaType": "a/b", "url": "data:a/b,x"}), "message.parts.0.url"),
    "an edit": ({**parts(TEXT), "messageId": "m"}, "messageId"),
    "an answer": (parts(TEXT, role="assistant"), "message"),
    "a system prompt": (parts(TEXT, role="system"), "message"),
    "a result of nothing": (
        parts({"type": "tool-x", "toolCallId": "c", "state": "output-available", "output": 1}, role="assistant"),
        "tool_results.0.tool_call_id",
    ),
}


def test_what_cannot_be_taken_is_a_problem_and_nothing_is_stored(offline: Service, start_talk: StartTalk) -> None:
    talk = start_talk(offline)
    found = {
        what: refused(talk.post("/ui", body), 422, "invalid_input")["errors"][0]["field"]
        for what, (body, _) in WRONG.items()
    }
    assert found == {what: field for what, (_, field) in WRONG.items()}
    assert talk.history() == []


def test_a_message_that_was_read_from_the_history(offline: Service, start_talk: StartTalk) -> None:
    """A page that is opened again, with a last message that nobody answered, sends that message under the stored id."""
    talk = start_talk(offline)
    stored = talk.append("What is the capital of Austria?")
    sent = user(stored["content"], id_=stored["id"])
    chunks = post(talk, sent)
    assert [one["id"] for one in talk.history()] == [stored["id"], chunks[0]["messageId"]]
    other = user("Something else.", id_=stored["id"])
    refused(talk.post("/ui", other), 422, "idempotency_key_reused")
    refused(talk.post("/ui", other, idempotency_key="x"), 409, "conversation_moved_on")


@pytest.mark.long
@pytest.mark.parametrize(
    "chunk", [{"type": "reset-step"}, {"type": "text-delta", "id": "1"}, {"type": "custom", "kind": "x"}]
)
def test_the_judge_refuses_what_version_6_does_not_know(chunk: Json) -> None:
    with pytest.raises(ValidationError):
        judged(chunk)
