"""A client's tools and settings over HTTP: open calls in both forms of an answer, results, and hostile requests."""

from __future__ import annotations

from typing import Any, Final

from app.client import Throughline
from tests.acceptance.conftest import StartTalk
from tests.acceptance.service import Service
from tests.acceptance.talk import STREAM, Json, good, read_events, refused

WEATHER: Final[Json] = {
    "name": "weather",
    "description": "The weather of a city.",
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
        "required": ["city", "days"],
    },
}
NAMED: Final[Json] = {"tools": [WEATHER], "tool_choice": {"name": "weather"}}
CALL: Final[Json] = {"type": "tool_call", "id": "1", "name": "x", "arguments": {}}
RESULT: Final[Json] = {"tool_call_id": "x", "content": 1}
PIXEL: Final = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def nested(levels: int) -> Json:
    schema: Json = {"type": "string"}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


def tool(**changes: Any) -> Json:
    return {"tools": [{**WEATHER, **changes}]}


def test_a_turn_is_left_open_and_goes_on(offline: Service, start_talk: StartTalk) -> None:
    """The offline model calls a tool if it must, so that clients can be tried without a provider."""
    talk = start_talk(offline)
    media = {"type": "media", "media_type": "image/png", "data": PIXEL}
    body = {"content": "Is it fine there?", "parts": [media], **NAMED}
    headers = {**STREAM, "Idempotency-Key": "ask"}
    with talk.http.stream("POST", talk.path("/chat"), json=body, headers=headers) as response:
        events = list(read_events(response))
    asked = events[-1].data
    (call,) = asked["open_calls"]

    assert [event.type for event in events] == ["message.created", "tool.called", "reply.completed"]
    assert (events[1].id, events[1].data) == (None, call)
    assert (call["name"], call["arguments"]) == ("weather", {"city": "", "days": 0})
    assert (asked["status"], asked["finish"]) == ("requires_action", "tool_call")
    assert asked["reply"]["parts"] == [{"type": "tool_call", **call}]
    assert asked["message"]["parts"] == [media]
    assert good(talk.post("/chat", body, Idempotency_Key="ask")) == asked
    assert len(talk.history()) == 2

    pending = refused(talk.post("/chat", {}), 409, "tools_pending")
    assert pending["missing"] == [call["id"]]
    results = {"tool_results": [{"tool_call_id": call["id"], "content": {"sky": ["blue", None]}}]}
    answered = good(talk.post("/chat", {**results, "max_tokens": 3, "temperature": 0.5}))
    assert (answered["status"], answered["open_calls"], answered["finish"]) == ("completed", [], "length")
    assert answered["message"]["parts"][0]["content"] == {"sky": ["blue", None]}
    assert [message["role"] for message in talk.history()] == ["user", "assistant", "tool", "assistant"]
    wrong = refused(talk.post("/chat", results), 422, "invalid_input")
    assert [one["field"] for one in wrong["errors"]] == ["tool_results.0.tool_call_id"]


def test_calls_of_an_erased_reply_are_not_waited_for(offline: Service, start_talk: StartTalk) -> None:
    talk = start_talk(offline)
    body = {"content": "Is it fine there?", **NAMED}
    asked = good(talk.post("/chat", body, Idempotency_Key="erased"))
    refused(talk.post("/chat", {}), 409, "tools_pending")  # control
    assert talk.http.delete(talk.path(f"/messages/{asked['reply']['id']}")).status_code == 204
    again = good(talk.post("/chat", body, Idempotency_Key="erased"))
    assert (again["reply"]["status"], again["status"], again["open_calls"]) == ("erased", "completed", [])
    answered = good(talk.post("/chat", {}))
    assert (answered["message"]["id"], answered["status"]) == (asked["message"]["id"], "completed")


def test_the_typed_client_does_the_same(offline: Service) -> None:
    with Throughline(offline.url, trust_env=False) as client:
        talk = client.create_conversation()
        *_, last = client.chat_stream(talk.id, "Is it fine there?", **NAMED)
        assert last.result is not None
        (call,) = last.result.open_calls
        assert (last.result.status, call.name, call.arguments) == (
            "requires_action",
            "weather",
            {"city": "", "days": 0},
        )
        result = client.chat(talk.id, tool_results=[{"tool_call_id": call.id, "content": "sunny"}])
        assert (result.status, result.finish, result.message.role) == ("completed", "stop", "tool")
        client.delete_conversation(talk.id)


WRONG: Final[dict[str, tuple[Json, list[str]]]] = {
    "too many": ({"tools": [WEATHER] * 129}, ["tools"]),
    "twice": ({"tools": [WEATHER, WEATHER]}, ["tools.1.name"]),
    "one of ours": (tool(name="search_history"), ["tools.0.name"]),
    "a name of two lines": (tool(name="a\nb"), ["tools.0.name"]),
    "a long description": (tool(description="x" * 600_000), ["tools"]),
    "a large schema": (tool(parameters={"x": "y" * 70_000}), ["tools.0.parameters"]),
    "a deep schema": (tool(parameters=nested(20)), ["tools.0.parameters"]),
    "a schema of another type": (tool(parameters={"type": ["object"]}), ["tools.0.parameters"]),
    "an unknown field": (tool(run="rm"), ["tools.0.run"]),
    "required of none": ({"tool_choice": "required"}, ["tool_choice"]),
    "ours chosen": ({"tool_choice": {"name": "search_history"}}, ["tool_choice"]),
    "a form not offline": ({"response_format": {"type": "json_object"}}, ["response_format"]),
    "no schema": ({"response_format": {"type": "json_schema"}}, ["response_format"]),
    "too warm": ({"temperature": 3}, ["temperature"]),
    "a text for a number": ({"temperature": "1"}, ["temperature"]),
    "no tokens": ({"max_tokens": 0}, ["max_tokens"]),
    "a large seed": ({"seed": 2**40}, ["seed"]),
    "many stops": ({"stop": ["a"] * 5}, ["stop"]),
    "an unknown effort": ({"reasoning_effort": "hard"}, ["reasoning_effort"]),
    "a call of the user's": ({"parts": [CALL]}, ["parts.0"]),
    "a result of nothing": ({"tool_results": [RESULT]}, ["tool_results.0.tool_call_id"]),
}
"""The name of what is wrong, with the rest of a request and the fields that are refused."""


def test_what_cannot_be_taken_is_named_and_nothing_is_stored(offline: Service, start_talk: StartTalk) -> None:
    talk = start_talk(offline)
    found = {}
    for what, (body, _) in WRONG.items():
        problem = refused(talk.post("/chat", {"content": "Hello.", **body}), 422, "invalid_input")
        found[what] = [one["field"] for one in problem["errors"]]
    assert found == {what: fields for what, (_, fields) in WRONG.items()}
    assert talk.history() == []
