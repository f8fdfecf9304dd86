"""The client over a scripted transport: what is sent again and what is not, lists, streams, types."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Generator, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar, assert_type
from uuid import UUID

import httpx
import pytest

from app.client import (
    ApiError,
    AsyncContextCompressor,
    AsyncThroughline,
    ChatEvent,
    ConflictError,
    ConnectionFailedError,
    ContextCompressor,
    Conversation,
    InvalidInputError,
    Message,
    ModelFailedError,
    NotFoundError,
    RateLimitedError,
    Retrying,
    Throughline,
    UnavailableError,
    endpoints,
    resources,
)
from app.client.methods import Methods

T = TypeVar("T")
Json = dict[str, Any]
Answer = httpx.Response | type[Exception]

ID = "01a1f8c9-ff73-7019-ab1b-f77319df580e"
GAUGE: Json = {
    "tokens": 1,
    "budget": 2,
    "window": 3,
    "utilization": 0.5,
    "status": "ok",
    "background_at": None,
    "sync_at": None,
    "tokens_until_compaction": None,
    "breakdown": dict.fromkeys(("system", "state", "anchors", "digests", "held", "tail", "recalled", "pending"), 0),
}
MESSAGE: Json = {
    "id": ID,
    "conversation_id": ID,
    "seq": 1,
    "turn": 0,
    "role": "user",
    "content": "hello",
    "parts": [],
    "event_type": "casual",
    "status": "complete",
    "is_protected": False,
    "protected_reason": "compressible",
    "token_count": 3,
    "model": None,
    "usage": None,
    "metadata": {},
    "created_at": "2026-11-20T10:00:00Z",
    "something_new": [1],
}
SEGMENT: Json = {
    "segment_id": "auth",
    "topic": "auth",
    "from_seq": 1,
    "to_seq": 3,
    "started_at": "2026-11-20T10:00:00Z",
    "ended_at": None,
    "message_count": 2,
    "level": "full",
    "content": "",
    "messages": [MESSAGE],
    "anchors": [],
    "expansion_markers": [],
    "token_count": 9,
    "made_by": "extractive",
    "truncated": False,
    "next_cursor": None,
}
RESULT: Json = {
    "message": MESSAGE,
    "reply": {**MESSAGE, "role": "assistant", "content": "Hello there"},
    "context": GAUGE,
    "compaction": None,
    "recalled": [],
    "warnings": [],
}


def answer(status: int, body: Any = None, **headers: str) -> httpx.Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx.Response(status, json=body, headers=named)


def problem(status: int, code: str, *, retryable: bool = True, **headers: str) -> httpx.Response:
    body = {"status": status, "code": code, "detail": "so it is", "retryable": retryable, "request_id": "r"}
    return answer(status, body, **headers)


class Broken(httpx.AsyncByteStream, httpx.SyncByteStream):
    """A body that ends with a broken connection."""

    def __init__(self, *pieces: bytes, breaks: bool = True) -> None:
        self._pieces = pieces
        self._breaks = breaks

    def __iter__(self) -> Iterator[bytes]:
        yield from self._pieces
        if self._breaks:
            raise httpx.ReadError("cut")

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self:
            yield piece


def stream(*frames: str | bytes, breaks: bool = False) -> httpx.Response:
    pieces = [frame.encode() if isinstance(frame, str) else frame for frame in frames]
    return httpx.Response(200, headers={"Content-Type": "text/event-stream"}, stream=Broken(*pieces, breaks=breaks))


def frame(type_: str, data: Any, id_: int | None = None) -> str:
    number = "" if id_ is None else f"id: {id_}\n"
    return f"event: {type_}\n{number}data: {json.dumps(data)}\n\n"


@dataclass
class World:
    """A service that answers by script, with both clients of it; waiting takes no time."""

    answers: list[Answer]
    retrying: Retrying = field(default_factory=Retrying)
    seen: list[httpx.Request] = field(default_factory=list)
    pauses: list[float] = field(default_factory=list)

    def handle(self, request: httpx.Request) -> httpx.Response:
        self.seen.append(request)
        given = self.answers.pop(0)
        if isinstance(given, httpx.Response):
            if isinstance(given.stream, Broken):
                return given
            return httpx.Response(given.status_code, headers=given.headers, content=given.content)
        raise given("away")

    def sync(self) -> Throughline:
        transport = httpx.MockTransport(self.handle)
        return Throughline("http://t", key="k", transport=transport, sleep=self.pauses.append, retrying=self.retrying)

    def awaiting(self) -> AsyncThroughline:
        async def pause(seconds: float) -> None:
            self.pauses.append(seconds)

        transport = httpx.MockTransport(self.handle)
        return AsyncThroughline("http://t", key="k", transport=transport, sleep=pause, retrying=self.retrying)

    def sent_keys(self) -> set[str | None]:
        return {request.headers.get("idempotency-key") for request in self.seen}


async def _all(items: AsyncIterator[T]) -> list[T]:
    return [item async for item in items]


@pytest.fixture(params=["sync", "async"])
def run(request: pytest.FixtureRequest) -> Callable[[World, Callable[[Any], Any]], Any]:
    """Run a function of a client with either of them, and wait for what it awaits or iterates over."""

    def on_sync(world: World, act: Callable[[Any], Any]) -> Any:
        with world.sync() as client:
            found = act(client)
            return list(found) if isinstance(found, Iterator) else found

    def on_async(world: World, act: Callable[[Any], Any]) -> Any:
        async def main() -> Any:
            async with world.awaiting() as client:
                found = act(client)
                return await (_all(found) if isinstance(found, AsyncIterator) else found)

        return asyncio.run(main())

    return on_sync if request.param == "sync" else on_async


Run = Callable[[World, Callable[[Any], Any]], Any]


# Sent again


@pytest.mark.parametrize(
    "passing",
    [
        problem(503, "dependency_unavailable"),
        problem(429, "rate_limited", Retry_After="3"),
        problem(409, "idempotency_in_progress", Retry_After="2"),
        *(httpx.Response(status, text="<html>a proxy's page") for status in (502, 503, 504)),
        httpx.ConnectError,
        httpx.ReadTimeout,
        httpx.RemoteProtocolError,
    ],
)
def test_what_passes_is_sent_again_under_the_same_key(run: Run, passing: Answer) -> None:
    world = World([passing, passing, answer(201, MESSAGE)])
    found = run(world, lambda client: client.append(ID, "user", "hello"))

    assert found.content == "hello"
    assert len(world.seen) == 3
    assert len({request.content for request in world.seen}) == 1
    (key,) = world.sent_keys()
    assert key
    asked = float(passing.headers.get("Retry-After", 0)) if isinstance(passing, httpx.Response) else 0
    assert len(world.pauses) == 2
    assert all(pause >= asked for pause in world.pauses)
    assert all(pause > 0 for pause in world.pauses)


@pytest.mark.parametrize(
    ("refusal", "error"),
    [
        (problem(422, "invalid_input", retryable=False), InvalidInputError),
        (problem(404, "not_found", retryable=False), NotFoundError),
        (problem(409, "turn_in_progress"), ConflictError),
        (problem(503, "context_over_window", retryable=False), UnavailableError),
        (problem(502, "empty_reply"), ModelFailedError),
        (problem(429, "rate_limited", Retry_After="3000"), RateLimitedError),
        (httpx.Response(418, text="tea"), ApiError),
    ],
)
def test_what_does_not_pass_is_raised_at_once(run: Run, refusal: httpx.Response, error: type[ApiError]) -> None:
    world = World([refusal])
    with pytest.raises(error) as caught:
        run(world, lambda client: client.append(ID, "user", "hello"))
    assert type(caught.value) is error
    assert (caught.value.status, len(world.seen), world.pauses) == (refusal.status_code, 1, [])


@pytest.mark.parametrize("body", ["tea", '["tea"]', '{"error": {"message": "no such route", "code": null}}'])
def test_what_is_no_problem_is_told_as_it_stands(run: Run, body: str) -> None:
    """A proxy answers so, or the service itself at the address for OpenAI's clients."""
    with pytest.raises(NotFoundError) as caught:
        run(World([httpx.Response(404, text=body)]), lambda client: client.usage(ID))
    assert (caught.value.code, caught.value.detail) == ("http_404", body)
    with pytest.raises(NotFoundError, match=r"^404 not_found") as control:
        run(World([problem(404, "not_found")]), lambda client: client.usage(ID))
    assert "{" not in control.value.detail


def test_patience_ends(run: Run) -> None:
    world = World([httpx.ConnectError] * 3, retrying=Retrying(attempts=3))
    with pytest.raises(ConnectionFailedError, match=r"^ConnectError at http://t: away$") as caught:
        run(world, lambda client: client.usage(ID))
    assert isinstance(caught.value.__cause__, httpx.ConnectError)
    assert len(world.seen) == 3


def test_without_retries_it_would_fail(run: Run) -> None:
    """The control of the test above."""
    world = World([httpx.ConnectError, answer(201, MESSAGE)], retrying=Retrying(attempts=1))
    with pytest.raises(ConnectionFailedError):
        run(world, lambda client: client.append(ID, "user", "hello"))


def test_pauses_grow_and_stay_bounded() -> None:
    retrying = Retrying(first_pause=1.0, longest_pause=8.0)
    for failures, most in ((1, 1.0), (2, 2.0), (3, 4.0), (9, 8.0)):
        pauses = [retrying.pause(failures) for _ in range(50)]
        assert most / 2 <= min(pauses) <= max(pauses) <= most


def test_a_deletion_whose_answer_was_lost_is_done(run: Run) -> None:
    gone = problem(404, "not_found", retryable=False)
    for lost in (httpx.ReadError, httpx.Response(504, text="<html>late")):
        assert run(World([lost, gone]), lambda client: client.delete_conversation(ID)) is None
    with pytest.raises(NotFoundError):
        run(World([gone]), lambda client: client.delete_conversation(ID))
    with pytest.raises(NotFoundError):
        run(World([problem(503, "dependency_unavailable"), gone]), lambda client: client.delete_conversation(ID))


def test_a_pin_that_was_removed_without_its_message_is_not_done(run: Run) -> None:
    gone = problem(404, "not_found", retryable=False)
    with pytest.raises(NotFoundError):
        run(World([httpx.ReadError, gone]), lambda client: client.unpin_message(ID, ID))


def test_every_post_has_a_key_of_its_own(run: Run) -> None:
    world = World([answer(201, MESSAGE)] * 3)
    for _ in range(2):
        run(world, lambda client: client.append(ID, "user", "x"))
    run(world, lambda client: client.append(ID, "user", "x", idempotency_key="mine"))
    assert len(world.sent_keys()) == 3
    assert "mine" in world.sent_keys()
    assert {request.headers["authorization"] for request in world.seen} == {"Bearer k"}


def test_a_problem_is_told_whole(run: Run) -> None:
    body = {"code": "budget_too_small", "detail": "d", "minimum": 7, "errors": [{"field": "budget", "message": "m"}]}
    with pytest.raises(InvalidInputError) as caught:
        run(World([answer(422, body)]), lambda client: client.context(ID, 1))
    assert (caught.value.problem["minimum"], caught.value.errors[0]["field"]) == (7, "budget")
    assert str(caught.value) == "422 budget_too_small: d: budget: m"


@pytest.mark.parametrize("errors", [{"name": ["is wrong"]}, ["is wrong"], 5, [None, {"field": "f", "message": "m"}]])
def test_an_error_of_another_service_is_told_whatever_its_form(run: Run, errors: object) -> None:
    with pytest.raises(InvalidInputError) as caught:
        run(world := World([answer(422, {"detail": "d", "errors": errors})]), lambda client: client.health())
    told = [one for one in errors if isinstance(one, dict)] if isinstance(errors, list) else []
    assert (len(world.seen), caught.value.detail, caught.value.errors) == (1, "d", told)


# What is asked


def test_lists_are_read_page_by_page(run: Run) -> None:
    pages = [
        answer(200, {"data": [MESSAGE, MESSAGE], "next_cursor": "c", "has_more": True}),
        answer(200, {"data": [MESSAGE], "next_cursor": None, "has_more": False}),
    ]
    world = World([*pages])
    found = run(world, lambda client: client.messages(ID, page_size=2, order="asc"))

    assert [message.seq for message in found] == [1, 1, 1]
    assert dict(world.seen[0].url.params) == {"limit": "2", "order": "asc"}
    assert dict(world.seen[1].url.params) == {"limit": "2", "order": "asc", "after": "c"}


def test_a_list_asks_for_no_more_than_is_looked_at() -> None:
    world = World([answer(200, {"data": [MESSAGE], "next_cursor": "c", "has_more": True})])
    assert next(world.sync().messages(ID)).seq == 1


def test_what_is_not_given_is_not_sent_and_null_is_a_value(run: Run) -> None:
    with pytest.raises(ApiError):
        run(world := World([answer(500, {})]), lambda client: client.change_conversation(ID, if_match=3, title=None))
    assert (json.loads(world.seen[0].content), world.seen[0].headers["if-match"]) == ({"title": None}, '"3"')
    with pytest.raises(ApiError):
        run(world := World([answer(500, {})]), lambda client: client.context(UUID(ID), compact="if_needed"))
    assert json.loads(world.seen[0].content) == {"compact": "if_needed"}
    with pytest.raises(ApiError):
        run(world := World([answer(500, {})]), lambda client: client.segment(ID, "речь/1?", "full"))
    assert world.seen[0].url.raw_path.endswith(b"/segments/%D1%80%D0%B5%D1%87%D1%8C%2F1%3F?level=full")


@pytest.mark.parametrize("step", [".", ".."])
def test_an_id_that_would_be_a_step_up_reaches_nothing_else(run: Run, step: str) -> None:
    """HTTP libraries shorten such paths: `erase_message(id, "..")` would delete the conversation."""
    acts: list[Callable[[Any], Any]] = [
        lambda client: client.erase_message(ID, step),
        lambda client: client.remove_file(ID, step),
        lambda client: client.segment(ID, step),
        lambda client: client.compaction(step),
        lambda client: client.erase_user(step),
    ]
    for act in acts:
        with pytest.raises(ValueError, match=r"is no id"):
            run(world := World([httpx.Response(204)]), act)
        assert world.seen == []
    for near in ("...", ".a", "a.."):
        run(world := World([httpx.Response(204)]), partial(erase_message, near))
        assert world.seen[0].url.path == f"/conversations/{ID}/messages/{near}"


def erase_message(id_: str, client: Any) -> Any:
    return client.erase_message(ID, id_)


def test_the_interface_by_its_published_names(run: Run) -> None:
    def compressor(client: Any) -> Any:
        made = AsyncContextCompressor if isinstance(client, AsyncThroughline) else ContextCompressor
        return made(client, ID)

    pages = [answer(200, {**SEGMENT, "next_cursor": "c"}), answer(200, {**SEGMENT, "from_seq": 3})]
    world = World([*pages, *(answer(200, SEGMENT) for _ in range(3))])
    whole = run(world, lambda client: compressor(client).expand("auth"))
    assert (whole.from_seq, len(whole.messages), whole.token_count, whole.next_cursor) == (1, 2, 18, None)
    assert world.seen.pop(1).url.params["after"] == "c"
    run(world, lambda client: compressor(client).expand("auth", "full"))
    run(world, lambda client: compressor(client).compress("auth", 2))
    run(world, lambda client: compressor(client).compress((1, 5), 3))

    assert [request.url.params.get("level") for request in world.seen[:2]] == ["full", "full"]
    assert json.loads(world.seen[2].content) == {"level": "brief", "segment_id": "auth"}
    assert json.loads(world.seen[3].content) == {"level": "tags", "from_seq": 1, "to_seq": 5}
    with pytest.raises(ValueError, match="no level -1: 0 full, 1 detailed, 2 brief, 3 tags"):
        run(world, lambda client: compressor(client).expand("auth", -1))
    with pytest.raises(ValueError, match="no level 4: "):
        run(world, lambda client: compressor(client).compress("auth", 4))
    assert len(world.seen) == 4, "nobody was asked"


def test_compressing_to_level_0_gives_back_the_whole_segment(run: Run) -> None:
    """A made segment comes in one page; all pages of a long segment are read."""

    def compressor(client: Any) -> Any:
        made = AsyncContextCompressor if isinstance(client, AsyncThroughline) else ContextCompressor
        return made(client, ID)

    world = World([answer(200, SEGMENT)])
    assert run(world, lambda client: compressor(client).compress("auth", 0)).level == "full"
    assert json.loads(world.seen[0].content) == {"level": "full", "segment_id": "auth"}

    first = answer(200, {**SEGMENT, "next_cursor": "c"})
    world = World([first, first, answer(200, {**SEGMENT, "from_seq": 3})])
    whole = run(world, lambda client: compressor(client).compress((1, 5), 0))
    assert (len(whole.messages), whole.next_cursor) == (2, None)
    assert [request.method for request in world.seen] == ["POST", "GET", "GET"]


def test_every_operation_of_the_document_has_a_method() -> None:
    document = json.loads((Path(__file__).parents[2] / "openapi.json").read_text(encoding="utf-8"))
    known = {(call.method.lower(), _shape(call.path)) for call in (*_calls(), endpoints.stats("{}"))}
    others = ("/v1/", "/conversations/{conversation_id}/ui")  # other clients speak these: OpenAI's and the AI SDK's
    ours = {path: item for path, item in document["paths"].items() if not path.startswith(others)}
    operations = {(method, _shape(path)) for path, item in ours.items() for method in item}
    assert not operations - {("get", "/metrics")} - known, "app/client/endpoints.py has no function for these"


def test_the_page_names_every_method() -> None:
    page = (Path(__file__).parents[2] / "docs" / "client.md").read_text(encoding="utf-8")
    table = " ".join(line for line in page.splitlines() if line.startswith("| "))
    assert [name for name in vars(Methods) if not name.startswith("_") and f"`{name}`" not in table] == []


RESOURCES: Final = {
    kind.__name__: kind
    for kind in vars(resources).values()
    if isinstance(kind, type) and issubclass(kind, resources.Resource) and kind is not resources.Resource
}


def test_every_field_that_the_document_declares_is_one_of_its_resource() -> None:
    document = json.loads((Path(__file__).parents[2] / "openapi.json").read_text(encoding="utf-8"))
    schemas = document["components"]["schemas"] | {"Context": document["components"]["schemas"]["AssembledContext"]}
    shared = RESOURCES.keys() & schemas.keys()
    missing = {name: schemas[name]["properties"].keys() - RESOURCES[name].model_fields.keys() for name in shared}
    assert {"Conversation", "Gauge", "Segment", "Context"} <= shared
    assert not {name: fields for name, fields in missing.items() if fields}


@pytest.mark.parametrize(
    ("schema", "named", "own"),
    [
        ("ConversationCreate", endpoints.NewConversation, set()),
        ("ConversationPatch", endpoints.ConversationChanges, set()),
        ("MessageAppend", endpoints.NewMessage, {"role", "content", "expected_last_message_id"}),
        ("ChatRequest", endpoints.Turn, {"content"}),
        ("RegenerateRequest", endpoints.Again, set()),
        ("CompactRequest", endpoints.CompactOptions, set()),
        ("ContextRequest", endpoints.ContextOptions, {"budget"}),
    ],
)
def test_the_fields_that_can_be_set_are_those_of_the_client(schema: str, named: type, own: set[str]) -> None:
    """``own`` are arguments of the method itself."""
    document = json.loads((Path(__file__).parents[2] / "openapi.json").read_text(encoding="utf-8"))
    assert named.__annotations__.keys() | own == document["components"]["schemas"][schema]["properties"].keys()


def test_statistics_are_asked_for_from_a_time_on() -> None:
    at = datetime(2026, 11, 1, 12, tzinfo=UTC)
    assert endpoints.stats(since=at).params == {"since": "2026-11-01T12:00:00Z"}
    assert endpoints.stats().params == {}


def _calls() -> Iterable[Any]:
    for name in vars(Methods):
        if name.startswith("_"):
            continue
        describe = getattr(endpoints, name)
        needed = [
            one
            for one in inspect.signature(describe).parameters.values()
            if one.default is one.empty and one.kind is not one.VAR_KEYWORD
        ]
        named = {one.name: "{}" for one in needed if one.kind is one.KEYWORD_ONLY}
        made = describe(*(["{}"] * (len(needed) - len(named))), **named)
        first = getattr(made, "first", made)
        yield first if hasattr(first, "path") else first(Retrying()).call()


def _shape(path: str) -> str:
    return "/".join("{}" if "{" in step or step == "%7B%7D" else step for step in path.split("/"))


# Streams

CREATED = frame("message.created", {"message_id": ID, "seq": 1, "role": "user"}, 5)
COMPLETED = frame("reply.completed", RESULT, 9)


def delta(text: str) -> str:
    return frame("reply.delta", {"text": text})


def told(events: list[ChatEvent]) -> list[str]:
    return [event.text or event.type for event in events]


def test_a_reply_as_it_comes(run: Run) -> None:
    pieces = [": comment\n\n", "retry: 2000\n\n", CREATED, delta("Hello "), delta("there"), COMPLETED]
    whole = "".join(pieces)
    world = World([stream(*(whole[index : index + 7] for index in range(0, len(whole), 7)))])
    found = run(world, lambda client: client.chat_stream(ID, "hi", recall=False))

    assert told(found) == ["message.created", "Hello ", "there", "reply.completed"]
    assert found[-1].result.reply.content == "Hello there"
    assert world.seen[0].headers["accept"] == "text/event-stream"


def test_a_broken_reply_is_asked_for_again_and_no_word_comes_twice(run: Run) -> None:
    again = frame("message.created", {"message_id": ID, "seq": 1, "role": "user"})
    world = World(
        [
            stream(CREATED, delta("Hel"), breaks=True),
            problem(409, "idempotency_in_progress", Retry_After="1"),
            stream(again, delta("Hello there"), COMPLETED),
        ]
    )
    found = run(world, lambda client: client.chat_stream(ID, "hi"))

    assert told(found) == ["message.created", "Hel", "lo there", "reply.completed"]
    assert len(world.sent_keys()) == 1
    assert len(world.seen) == 3


def test_no_thought_and_no_recalled_passage_comes_twice(run: Run) -> None:
    recalled, more = (frame("context.recalled", {"seqs": seqs}) for seqs in ([3], [3, 4]))
    thoughts = [frame("reasoning.delta", {"text": text}) for text in ("They ", "They ask.", " Kindly.")]
    world = World(
        [
            stream(CREATED, recalled, thoughts[0], breaks=True),
            stream(CREATED, recalled, *thoughts[1:], more, delta("Hello there"), COMPLETED),
        ]
    )
    found = run(world, lambda client: client.chat_stream(ID, "hi"))
    kinds = ["message.created", "context.recalled", *["reasoning.delta"] * 3, "context.recalled"]
    assert told(found) == [*kinds, "Hello there", "reply.completed"]
    assert [event.reasoning for event in found if event.reasoning] == ["They ", "ask.", " Kindly."]
    assert [event.data["seqs"] for event in found if event.type == "context.recalled"] == [[3], [3, 4]]


def test_a_reply_that_was_made_anew_comes_whole(run: Run) -> None:
    world = World(
        [stream(CREATED, delta("Good day"), breaks=False), stream(delta("Hello "), delta("there"), COMPLETED)]
    )
    found = run(world, lambda client: client.chat_stream(ID, "hi"))
    assert told(found) == ["message.created", "Good day", "reply.completed"]
    assert found[-1].result.reply.content == "Hello there"


def test_every_open_call_is_told_once_however_often_the_stream_breaks(run: Run) -> None:
    one, other = (frame("tool.called", {"id": id_, "name": "weather", "arguments": {}}) for id_ in ("a", "b"))
    world = World([stream(CREATED, one, breaks=True), stream(CREATED, delta("Well"), one, other, COMPLETED)])
    found = run(world, lambda client: client.chat_stream(ID, "hi"))
    assert told(found) == ["message.created", "tool.called", "Well", "tool.called", "reply.completed"]
    assert [event.data["id"] for event in found if event.type == "tool.called"] == ["a", "b"]


def test_every_message_of_a_turn_is_told_once_with_or_without_a_number(run: Run) -> None:
    """Results and a user's message are several messages; a turn that is repeated after its end names its last."""
    ids = [ID.replace("1", digit) for digit in "123"]
    live = [frame("message.created", {"message_id": id_}, number) for number, id_ in enumerate(ids, 5)]
    begun, waited = (frame("compaction.started", {"compaction_id": id_}) for id_ in ids[:2])
    again = frame("message.created", {"message_id": ids[-1]})
    connections = [stream(*live, begun, breaks=True), stream(*live, begun, waited, breaks=True)]
    world = World([*connections, stream(again, COMPLETED)])
    found = run(world, lambda client: client.chat_stream(ID, "hi", tool_results=[]))
    assert [event.data["message_id"] for event in found if event.type == "message.created"] == ids
    assert [event.data["compaction_id"] for event in found if event.type == "compaction.started"] == ids[:2]
    assert len(found) == len(ids) + 2 + 1


def test_a_turn_that_fails(run: Run) -> None:
    failed = frame("reply.failed", {"status": 502, "code": "model_failed", "message_id": ID}, 7)
    with pytest.raises(ApiError) as caught:
        run(World([stream(CREATED, failed)]), lambda client: client.chat_stream(ID, "hi"))
    assert (caught.value.status, caught.value.code) == (502, "model_failed")

    passing = frame("reply.failed", {"status": 503, "code": "model_unavailable", "retryable": True}, 7)
    world = World([stream(CREATED, passing), stream(CREATED, delta("ok"), COMPLETED)])
    assert told(run(world, lambda client: client.chat_stream(ID, "hi"))) == ["message.created", "ok", "reply.completed"]

    limited = frame("reply.failed", {"status": 429, "code": "rate_limited", "retryable": True, "retry_after": 900}, 7)
    with pytest.raises(RateLimitedError) as refused:
        run(World([stream(CREATED, limited)]), lambda client: client.chat_stream(ID, "hi"))
    assert refused.value.retry_after == 900, "longer than a client waits by itself"

    world = World([stream(CREATED, delta("ok"), passing)])
    with pytest.raises(UnavailableError):
        run(world, lambda client: client.chat_stream(ID, "hi"))


def event(number: int) -> str:
    data = {
        "id": str(number),
        "type": "message.created",
        "conversation_id": ID,
        "occurred_at": "2026-11-20T10:00:00Z",
        "data": {"words": "one\u2028line"},
    }
    return frame("message.created", data, number)


def test_events_go_on_where_they_broke_off(run: Run) -> None:
    world = World(
        [
            stream(event(3), event(4), breaks=True),
            httpx.ConnectError,
            stream(event(5)),
            stream(),
            problem(404, "not_found", retryable=False),
        ],
    )
    found = _events_until_deleted(run, world, after=2)
    assert [one.id for one in found] == ["3", "4", "5"]
    assert [request.headers["last-event-id"] for request in world.seen] == ["2", "4", "4", "5", "5"]


def test_events_of_a_silent_conversation_go_on_however_often_a_stream_ends(run: Run) -> None:
    """The service ends every stream after ``stream_seconds``, and begins each with a hint when to come back."""
    silent = [stream("retry: 2000\n\n: ping\n\n", breaks=number % 2 == 0) for number in range(12)]
    world = World([*silent, stream(event(3)), problem(404, "not_found", retryable=False)])
    found = _events_until_deleted(run, world)
    assert [one.id for one in found] == ["3"]

    with pytest.raises(ConnectionFailedError):  # control: answers that begin no stream are failures in a row
        run(World([stream() for _ in range(9)]), lambda client: client.events(ID))


def _events_until_deleted(run: Run, world: World, after: int | None = None) -> list[Any]:
    """The events that a client gives before the world answers that the conversation is not there."""
    found: list[Any] = []

    def follow(client: Any) -> Any:
        events = client.events(ID, after=after)
        return _kept(events, found) if isinstance(events, Iterator) else _kept_async(events, found)

    with pytest.raises(NotFoundError):
        run(world, follow)
    return found


def _kept(events: Iterator[Any], found: list[Any]) -> None:
    for one in events:
        found.append(one)  # noqa: PERF402 - the iteration ends with an error


async def _kept_async(events: AsyncIterator[Any], found: list[Any]) -> None:
    async for one in events:
        found.append(one)  # noqa: PERF401 - the same


@pytest.mark.parametrize("size", [1, 2, 3, 1_000])
def test_events_from_any_pieces(run: Run, size: int) -> None:
    raw = event(3).replace("\\u2028", "\u2028\x85").replace(', "type"', ',\ndata: "type"').replace("\n", "\r\n")
    wire = "".join(["retry: 2000\n\n", raw, ": ping\n\n", event(4), event(5).removesuffix("\n")]).encode()
    pieces = [wire[at : at + size] for at in range(0, len(wire), size)]
    world = World([stream(*pieces), problem(404, "not_found", retryable=False)])
    found = _events_until_deleted(run, world)
    assert [(one.id, one.data["words"]) for one in found] == [("3", "one\u2028\x85line"), ("4", "one\u2028line")]
    assert world.seen[-1].headers["last-event-id"] == "4", "what was cut off is asked for again"


def test_a_turn_of_others_is_followed_to_its_end(run: Run) -> None:
    world = World([stream(CREATED, delta("Hel"), breaks=True), stream(CREATED, delta("Hello there"), COMPLETED)])
    found = run(world, lambda client: client.follow_turn(ID))

    assert told(found) == ["message.created", "Hel", "lo there", "reply.completed"]
    assert [(call.method, call.url.path) for call in world.seen] == [("GET", f"/conversations/{ID}/chat/stream")] * 2


def test_where_no_turn_runs_there_is_nothing_to_follow(run: Run) -> None:
    world = World([httpx.Response(204)])
    assert run(world, lambda client: client.follow_turn(ID)) == []
    assert len(world.seen) == 1
    ended = World([stream(CREATED, delta("Hel"), breaks=True), httpx.Response(204)])
    assert told(run(ended, lambda client: client.follow_turn(ID))) == ["message.created", "Hel"]


def test_a_followed_turn_that_fails_is_not_asked_for_again(run: Run) -> None:
    passing = frame("reply.failed", {"status": 503, "code": "lease_expired", "retryable": True}, 7)
    world = World([stream(CREATED, passing)])
    with pytest.raises(UnavailableError):
        run(world, lambda client: client.follow_turn(ID))
    assert len(world.seen) == 1


def test_an_event_without_an_id_has_none(run: Run) -> None:
    interrupted = frame("reply.interrupted", RESULT)
    applied = frame("compaction.applied", {}, 6)
    found = run(
        World([stream(CREATED, applied, delta("ok"), interrupted)]), lambda client: client.chat_stream(ID, "hi")
    )
    assert [one.id for one in found] == [5, 6, None, None]


def test_a_page_that_is_no_stream_is_tried_again(run: Run) -> None:
    page = httpx.Response(200, headers={"Content-Type": "text/html"}, stream=Broken(b"<p>", breaks=False))
    found = run(World([page, stream(CREATED, COMPLETED)]), lambda client: client.chat_stream(ID, "hi"))
    assert told(found) == ["message.created", "reply.completed"]


# Types


def typed(client: Throughline, awaiting: AsyncThroughline) -> None:
    """This never runs: it shows a type checker the methods."""
    assert_type(client.create_conversation(title="t"), Conversation)
    assert_type(client.messages(ID), Generator[Message, None, None])
    assert_type(client.chat_stream(ID), Generator[ChatEvent, None, None])
    _ = assert_type(awaiting.create_conversation(title="t"), Coroutine[Any, Any, Conversation])
    assert_type(awaiting.messages(ID), AsyncGenerator[Message, None])
    client.create_conversation(titel="t")  # type: ignore[call-arg]


def test_methods_say_what_they_do() -> None:
    client = World([]).sync()
    assert client.chat.__doc__ == endpoints.chat.__doc__
    assert Methods.chat.__doc__ == endpoints.chat.__doc__


async def test_any_number_of_open_streams_leaves_room_for_a_request() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        if b"/events" not in head:
            body = b'{"status": "ok"}'
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
        else:
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n" + event(1).encode())
        await writer.drain()
        await reader.read()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    made = AsyncThroughline(f"http://127.0.0.1:{port}", timeout=2, retrying=Retrying(attempts=1), trust_env=False)
    async with server, made as client:
        streams = [client.events(ID) for _ in range(101)]
        await asyncio.gather(*(anext(one) for one in streams))
        assert await client.health() == {"status": "ok"}
        for one in streams:
            await one.aclose()


@pytest.mark.parametrize("wrong", ["a\nb", "ключ"])
def test_what_no_header_can_have_is_refused_at_once(run: Run, wrong: str) -> None:
    world = World([])
    with pytest.raises(ValueError, match="Idempotency-Key holds"):
        run(world, lambda client: client.append(ID, "user", "hi", idempotency_key=wrong))
    with pytest.raises(ValueError, match="Content-Type holds"):
        run(world, lambda client: client.attach_file(ID, b"", name="n", media_type=wrong))
    with pytest.raises(ValueError, match="Accept-Language holds"):
        Throughline("http://t", language=wrong)
    assert world.pauses == []


def test_an_error_says_each_thing_once() -> None:
    empty = {"field": "content", "message": "content cannot be empty"}
    problem = {"code": "invalid_input", "detail": "content cannot be empty", "errors": [empty]}
    assert str(ApiError(422, problem)) == "422 invalid_input: content cannot be empty"
    further = {"field": "role", "message": "Field required"}
    told = str(ApiError(422, problem | {"errors": [empty, further]}))
    assert told == "422 invalid_input: content cannot be empty: role: Field required"


@pytest.mark.parametrize("made", [Throughline, AsyncThroughline])
def test_an_address_without_its_protocol_is_refused_at_once(made: type[Throughline | AsyncThroughline]) -> None:
    for url in ("localhost:8000", "127.0.0.1", "ftp://localhost", ""):
        with pytest.raises(ValueError, match="is no address of a service, such as http://localhost:8000"):
            made(url)
    for url in ("http://localhost:8000", "HTTPS://localhost"):
        made(url)
