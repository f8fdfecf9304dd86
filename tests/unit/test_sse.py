"""Streams: framing, heartbeats, how they end, and that nothing of them remains."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from starlette.types import Message

from app.core.model.errors import InvalidInputError, ModelFailedError, NotFoundError, RateLimitedError
from app.http.shutdown import Stopping
from app.http.sse import EventStream, Steps, frame, retry_preamble
from app.usecases.chat.turn_handle import ChatEvent
from tests.unit.api_fakes import CONVERSATION, MESSAGE, REPLY, Turning, World, chat_result, event, parse_sse, world

EVENTS = f"/conversations/{CONVERSATION}/events"
CHAT = f"/conversations/{CONVERSATION}/chat"
STREAM = {"Accept": "text/event-stream"}
PATIENCE = 20.0


@pytest.fixture
def api() -> World:
    return world()


def scope(method: str, path: str, **headers: str) -> dict[str, Any]:
    named = {"authorization": "Bearer admin", "host": "test", **headers}
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "scheme": "http",
        "headers": [(name.encode(), value.encode()) for name, value in named.items()],
        "client": ("127.0.0.1", 1),
        "server": ("test", 80),
    }


class Client:
    """A client that reads what is sent, and that can leave."""

    def __init__(self, body: bytes = b"") -> None:
        self.sent: asyncio.Queue[Message] = asyncio.Queue()
        self.left = asyncio.Event()
        self._body: bytes | None = body

    async def receive(self) -> Message:
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body, "more_body": False}
        await self.left.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        await self.sent.put(message)

    async def next(self) -> Message:
        async with asyncio.timeout(PATIENCE):
            return await self.sent.get()

    async def text(self) -> str:
        body: bytes = (await self.next())["body"]
        return body.decode()


async def ending(task: asyncio.Task[None]) -> None:
    async with asyncio.timeout(PATIENCE):
        await task


def test_a_frame_is_one_line_per_field() -> None:
    wire = frame("reply.delta", {"text": "a\nb\r\n\u2028c"}, 7).decode()
    assert wire.endswith("\n\n")
    (fields,) = parse_sse(wire)
    assert (fields["event"], fields["id"]) == ("reply.delta", "7")
    assert json.loads(fields["data"]) == {"text": "a\nb\r\n\u2028c"}


def test_without_an_id_there_is_no_id_line() -> None:
    assert "id" not in parse_sse(frame("reply.delta", {}).decode())[0]
    assert retry_preamble() == b"retry: 2000\n\n"


async def numbers(*values: int, then: BaseException | None = None) -> AsyncIterator[int]:
    for value in values:
        yield value
    if then is not None:
        raise then
    await asyncio.Event().wait()


async def test_steps_say_when_nothing_comes() -> None:
    steps = Steps(numbers(1), every=0.01)
    assert [await anext(steps), await anext(steps), await anext(steps)] == [1, None, None]
    await steps.aclose()


async def test_a_peeked_step_is_kept() -> None:
    steps = Steps(numbers(1, 2), every=1)
    await steps.peek()
    assert [await anext(steps), await anext(steps)] == [1, 2]
    await steps.aclose()


async def test_a_peeked_error_is_raised() -> None:
    with pytest.raises(NotFoundError):
        await Steps(numbers(then=NotFoundError("gone")), every=1).peek()


async def test_a_peek_that_is_given_up_closes_the_source() -> None:
    begun, closed = asyncio.Event(), asyncio.Event()

    async def silent() -> AsyncIterator[int]:
        begun.set()
        try:
            await asyncio.Event().wait()
            yield 1
        finally:
            closed.set()

    peeking = asyncio.create_task(Steps(silent(), every=1).peek())
    await begun.wait()
    peeking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await peeking
    assert closed.is_set()


async def test_an_empty_source_is_no_error() -> None:
    async def nothing() -> AsyncIterator[int]:
        return
        yield 1

    steps = Steps(nothing(), every=1)
    await steps.peek()
    assert [step async for step in steps] == []


async def test_silence_is_filled_with_comments() -> None:
    client, stopping = Client(), Stopping()
    stream = EventStream(Steps(numbers(1), every=0.01), lambda number: frame("n", number, number), stopping=stopping)
    task = asyncio.create_task(stream({}, client.receive, client.send))
    start = await client.next()
    assert (b"cache-control", b"no-store") in start["headers"]
    assert (b"x-accel-buffering", b"no") in start["headers"]
    assert b"content-length" not in dict(start["headers"])
    assert await client.text() == ""
    assert await client.text() == "event: n\ndata: 1\nid: 1\n\n"
    assert [await client.text(), await client.text()] == [": ping\n\n"] * 2
    stopping.begin()
    await ending(task)


async def test_a_source_that_breaks_breaks_the_stream() -> None:
    client = Client()
    stream = EventStream(Steps(numbers(1, then=RuntimeError("x"))), lambda _: b"", stopping=Stopping())
    with pytest.raises(RuntimeError):
        await stream({}, client.receive, client.send)


async def test_a_connection_that_breaks_counts_as_leaving() -> None:
    noted = asyncio.Event()

    async def broken(_message: Message) -> None:
        raise OSError

    async def note() -> None:
        noted.set()

    stream = EventStream(Steps(numbers(1)), lambda _: b"", stopping=Stopping(), on_disconnect=note)
    await stream({}, Client().receive, broken)
    assert noted.is_set()


async def test_events_replay_from_the_beginning(api: World) -> None:
    api.feed.steps = (None, event(1), event(2))
    client = Client()
    task = asyncio.create_task(api.app(scope("GET", EVENTS), client.receive, client.send))
    start = await client.next()
    assert start["status"] == 200
    assert dict(start["headers"])[b"content-type"] == b"text/event-stream; charset=utf-8"
    assert dict(start["headers"])[b"x-request-id"]
    assert await client.text() == "retry: 2000\n\n"
    assert await client.text() == ": ping\n\n"
    (first,) = parse_sse(await client.text())
    assert (first["event"], first["id"]) == ("message.created", "1")
    assert json.loads(first["data"]) == {
        "id": "1",
        "type": "message.created",
        "conversation_id": str(CONVERSATION),
        "occurred_at": "2026-11-20T09:30:00Z",
        "data": {"seq": 1},
        "notification": None,
    }
    assert parse_sse(await client.text())[0]["id"] == "2"
    assert api.feed.after == 0
    client.left.set()
    await ending(task)
    assert api.feed.closed.is_set()


@pytest.mark.parametrize(
    ("query", "header", "after"),
    [("", None, 0), ("?after=5", None, 5), ("?after=5", "9", 9), ("?after=x", "9", 9), ("?after=5", "", 5)],
)
async def test_where_events_begin(api: World, query: str, header: str | None, after: int) -> None:
    api.app.state.stopping.begin()
    headers = {} if header is None else {"Last-Event-ID": header}
    async with api.client() as client:
        response = await client.get(EVENTS + query, headers=headers)
    assert (response.status_code, api.feed.after) == (200, after)


@pytest.mark.parametrize("given", ["x", "-1", "1.0", "٣", "9" * 19, "1 2"])
async def test_senseless_places_are_refused(api: World, given: str) -> None:
    async with api.client() as client:
        by_query = await client.get(EVENTS, params={"after": given})
        by_header = await client.get(EVENTS, headers={b"Last-Event-ID": given.encode()})
    assert [(r.status_code, r.json()["errors"][0]["field"]) for r in (by_query, by_header)] == [
        (422, "after"),
        (422, "Last-Event-ID"),
    ]


@pytest.mark.parametrize(("error", "status"), [(NotFoundError("no"), 404), (InvalidInputError("no"), 422)])
async def test_errors_come_before_the_stream(api: World, error: Any, status: int) -> None:
    api.feed.error = error
    async with api.client() as client:
        response = await client.get(EVENTS)
    assert response.status_code == status
    assert response.headers["content-type"] == "application/problem+json"
    assert api.feed.closed.is_set()


async def test_events_end_with_the_process(api: World) -> None:
    client = Client()
    task = asyncio.create_task(api.app(scope("GET", EVENTS), client.receive, client.send))
    await client.next()
    api.app.state.stopping.begin()
    await ending(task)
    assert api.feed.closed.is_set()


async def test_chat_as_a_stream(api: World) -> None:
    turn = Turning()
    api.calls.answers["chat.start"] = turn
    turn.tell(
        ChatEvent(type="message.created", id=4, data={"message_id": MESSAGE}),
        ChatEvent(type="reply.delta", data={"text": "hi"}),
        ChatEvent(type="reply.completed", id=5, result=chat_result()),
    )
    async with api.client() as client:
        response = await client.post(CHAT, json={"content": "hello"}, headers=STREAM)
    created, delta, completed = parse_sse(response.text)
    assert response.status_code == 200
    assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert (created["event"], created["id"]) == ("message.created", "4")
    assert json.loads(created["data"]) == {"message_id": str(MESSAGE)}
    assert delta == {"event": "reply.delta", "data": '{"text":"hi"}'}
    assert (completed["event"], completed["id"]) == ("reply.completed", "5")
    body = json.loads(completed["data"])
    assert body.keys() == {
        *("message", "reply", "context", "compaction", "recalled", "warnings"),
        *("status", "open_calls", "finish"),
    }
    assert (body["reply"]["id"], body["reply"]["content"]) == (str(REPLY), "hi")
    assert not turn.was_abandoned.is_set()


async def test_a_stream_that_fails_ends_with_a_problem(api: World) -> None:
    turn = Turning()
    api.calls.answers["chat.start"] = turn
    turn.tell(ChatEvent(type="reply.failed", error=ModelFailedError("no", extra={"message_id": MESSAGE})))
    async with api.client() as client:
        response = await client.post(CHAT, json={"content": "hello"}, headers=STREAM)
    (failed,) = parse_sse(response.text)
    body = json.loads(failed["data"])
    assert failed["event"] == "reply.failed"
    assert (body["code"], body["status"], body["message_id"]) == ("model_failed", 502, str(MESSAGE))
    assert body["request_id"] == response.headers["x-request-id"]


@pytest.mark.parametrize("headers", [STREAM, {}])
async def test_a_turn_beyond_a_limit_says_when_to_come_back(api: World, headers: dict[str, str]) -> None:
    turn = Turning()
    api.calls.answers["chat.start"] = turn
    turn.tell(ChatEvent(type="reply.failed", error=RateLimitedError("no", retry_after=41.2)))
    async with api.client() as client:
        response = await client.post(CHAT, json={"content": "hello"}, headers=headers)
    body = json.loads(parse_sse(response.text)[0]["data"]) if headers else response.json()
    assert (body["code"], body["status"], body["retry_after"]) == ("rate_limited", 429, 42)
    assert response.headers.get("retry-after") == (None if headers else "42")


async def test_a_turn_that_breaks_still_has_a_last_word(api: World, monkeypatch: pytest.MonkeyPatch) -> None:
    turn = Turning()

    async def broken() -> AsyncIterator[ChatEvent]:
        yield ChatEvent(type="reply.delta", data={"text": "h"})
        raise RuntimeError("canary")

    monkeypatch.setattr(turn, "events", broken)
    api.calls.answers["chat.start"] = turn
    async with api.client() as client:
        response = await client.post(CHAT, json={"content": "hello"}, headers=STREAM)
    *_, failed = parse_sse(response.text)
    assert failed["event"] == "reply.failed"
    assert json.loads(failed["data"])["code"] == "internal_error"
    assert "canary" not in response.text


@pytest.mark.parametrize("headers", [{"accept": "text/event-stream"}, {}])
async def test_a_client_that_leaves_abandons_its_turn(api: World, headers: dict[str, str]) -> None:
    turn, client = Turning(), Client(b'{"content": "hello"}')
    api.calls.answers["chat.start"] = turn
    asked = scope("POST", CHAT, **{"content-type": "application/json", **headers})
    task = asyncio.create_task(api.app(asked, client.receive, client.send))
    await asyncio.sleep(0.05)
    assert not turn.was_abandoned.is_set()
    client.left.set()
    await ending(task)
    assert turn.was_abandoned.is_set()


async def test_the_end_of_the_process_abandons_no_turn(api: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.http.chat.STOPPING_GRACE", 0.05)
    turn = Turning()
    api.calls.answers["chat.start"] = turn
    api.app.state.stopping.begin()
    async with api.client() as client:
        response = await client.post(CHAT, json={"content": "hello"}, headers=STREAM)
    assert (response.status_code, response.text) == (200, "")
    assert not turn.was_abandoned.is_set()


async def test_chat_refusals_come_before_the_stream(api: World) -> None:
    api.calls.answers["chat.start"] = NotFoundError("no")
    async with api.client() as client:
        response = await client.post(CHAT, json={"content": "hello"}, headers=STREAM)
    assert (response.status_code, response.headers["content-type"]) == (404, "application/problem+json")


@pytest.mark.parametrize(
    ("accept", "streams"),
    [
        ("text/event-stream", True),
        ("Text/Event-Stream; charset=utf-8", True),
        ("application/json, text/event-stream;q=0.5", True),
        ("text/event-stream;q=0", False),
        ("*/*", False),
        ("application/json", False),
        ("text/event-streams", False),
    ],
)
async def test_who_gets_a_stream(api: World, accept: str, *, streams: bool) -> None:
    turn = Turning()
    turn.tell(ChatEvent(type="reply.completed", result=chat_result()))
    api.calls.answers["chat.start"] = turn
    async with api.client() as client:
        response = await client.post(CHAT, json={"content": "hello"}, headers={"Accept": accept})
    assert response.headers["content-type"].startswith("text/event-stream") is streams
    assert response.status_code == (200 if streams else 201)
