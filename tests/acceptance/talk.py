"""One conversation as a client of the API sees it, and texts to talk about."""

from __future__ import annotations

import contextlib
import functools
import json
import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

import httpx
import redis

from app.core.text.token_counts import weigh
from tests.acceptance.declared import check_event
from tests.acceptance.service import Service, until

Json = dict[str, Any]

WINDOW: Final[Json] = {"context_window": 4_000}
"""Window 3 600, budget 3 060, background 2 142, inline 2 601, target 1 836."""
BUDGET, BACKGROUND, SYNC, TARGET = 3_060, 2_142, 2_601, 1_836
MANUAL: Final[Json] = {**WINDOW, "max_tokens": -1}
"""The same as ``WINDOW``, without automatic triggers."""
IN_FLIGHT: Final = frozenset({"queued", "running"})
STREAM: Final = {"Accept": "text/event-stream"}


@dataclass(frozen=True, kw_only=True)
class Sse:
    """One server-sent event."""

    type: str
    id: int | None
    data: Json


END: Final = "[DONE]"


def read_events(response: httpx.Response) -> Iterator[Sse]:
    """Parse a stream, and insist that each event is a declared one.

    Comments, the retry hint and the end of OpenAI's streams are left out.
    """
    fields: dict[str, str] = {}
    for line in response.iter_lines():
        if not line:
            if fields.get("data", END) != END:
                number = int(fields["id"]) if "id" in fields else None
                event = Sse(type=fields.get("event", "message"), id=number, data=json.loads(fields["data"]))
                check_declared(response.request.url.path, event)
                yield event
            fields = {}
        elif not line.startswith(":"):
            name, _, value = line.partition(":")
            fields[name] = value.removeprefix(" ")


def check_declared(path: str, event: Sse) -> None:
    """Insist that an event is one that the OpenAPI document declares for the stream at a path; ``/v1`` is OpenAI's."""
    if path.startswith("/v1/"):
        return
    if path.endswith("/events"):
        check_event("ConversationEvent", event.data)
    else:
        number = {} if event.id is None else {"id": event.id}
        check_event("ChatStreamEvent", {"type": event.type, **number, "data": event.data})


def _are_in_flight(compactions: Sequence[Json]) -> int:
    return sum(row["status"] in IN_FLIGHT for row in compactions)


class Talk:
    """A conversation over HTTP; every method but ``post`` insists on success."""

    def __init__(self, service: Service, http: httpx.Client, conversation: Json) -> None:
        self.service = service
        self.http = http
        self.id: str = conversation["id"]
        self.created = conversation

    @classmethod
    def begin(cls, service: Service, *, key: str | None = None, **fields: Any) -> Self:
        """Create a conversation."""
        http = service.client(key)
        return cls(service, http, good(http.post("/conversations", json=fields)))

    def close(self) -> None:
        """Delete the conversation once nothing is in flight; its service may be gone."""
        with contextlib.suppress(httpx.TransportError), contextlib.closing(self.http):
            newest = self.http.get(self.path("/compactions"), params={"limit": 5})
            if newest.is_success:
                if _are_in_flight(newest.json()["data"]):
                    self.wait_idle()
                self.http.delete(self.path())

    def path(self, tail: str = "") -> str:
        return f"/conversations/{self.id}{tail}"

    def get(self, tail: str = "", **params: Any) -> Json:
        return good(self.http.get(self.path(tail), params=params))

    def post(self, tail: str, body: Mapping[str, Any] | None = None, **headers: str) -> httpx.Response:
        """Send a request and return its response, successful or not; header names are written with underscores."""
        return self.http.post(self.path(tail), json=body or {}, headers=named(headers))

    def append(self, content: str, role: str = "user", **fields: Any) -> Json:
        return good(self.post("/messages", {"role": role, "content": content, **fields}))

    def batch(self, lines: Sequence[tuple[str, str]]) -> list[Json]:
        messages = [{"role": role, "content": content} for role, content in lines]
        data: list[Json] = good(self.post("/messages/batch", {"messages": messages}))["data"]
        return data

    def chat(self, content: str | None = None, **headers: str) -> Json:
        return good(self.post("/chat", {} if content is None else {"content": content}, **headers))

    @contextlib.contextmanager
    def streaming(self, content: str | None = None, **headers: str) -> Iterator[Iterator[Sse]]:
        """Send a streamed turn."""
        body = {} if content is None else {"content": content}
        sent = {**STREAM, **named(headers)}
        with self.http.stream("POST", self.path("/chat"), json=body, headers=sent) as response:
            if not response.is_success:
                response.read()
                raise AssertionError(response.text)
            assert response.headers["content-type"].startswith("text/event-stream")
            yield read_events(response)

    def streamed(self, content: str | None = None, **headers: str) -> list[Sse]:
        """Send a streamed turn, and read it to its end."""
        with self.streaming(content, **headers) as events:
            return list(events)

    def compact(self, **body: Any) -> Json:
        return good(self.post("/compact", body))

    def patch(self, body: Mapping[str, Any], **headers: str) -> httpx.Response:
        return self.http.patch(self.path(), json=body, headers=named(headers))

    def context_bytes(self) -> bytes:
        response = self.http.get(self.path("/context"))
        assert response.is_success, response.text
        return response.content

    def context(self) -> Json:
        found: Json = json.loads(self.context_bytes())
        return found

    def history(self) -> list[Json]:
        """Every message, read page by page."""
        return self.pages("/messages")

    def compactions(self) -> list[Json]:
        """All compactions, the oldest first."""
        return self.pages("/compactions", order="asc")

    def pages(self, tail: str, **params: Any) -> list[Json]:
        found: list[Json] = []
        after: Json = {}
        while True:
            page = self.get(tail, limit=100, **params, **after)
            found += page["data"]
            if not page["has_more"]:
                return found
            after = {"after": page["next_cursor"]}

    def in_flight(self) -> int:
        """The number of compactions that are queued or running; they are among the newest."""
        return _are_in_flight(self.get("/compactions", limit=5)["data"])

    def wait_idle(self, seconds: float = 60.0) -> None:
        """Return once no compaction is in flight."""
        until(lambda: not self.in_flight(), seconds, what="the end of the compactions")

    def wait_settled(self, seconds: float = 60.0) -> None:
        """Return once no compaction is in flight or due; the sweeper handles messages that came during a compaction."""
        until(
            lambda: self.get("/usage")["status"] == "ok" and not self.in_flight(), seconds, what="a context that fits"
        )

    def wait_ended(self, count: int = 1, seconds: float = 60.0) -> list[Json]:
        """Return once there are at least this many compactions and all have ended."""
        until(
            lambda: len(rows := self.compactions()) >= count and not any(row["status"] in IN_FLIGHT for row in rows),
            seconds,
            what=f"the end of {count} compactions",
        )
        return self.compactions()

    def state(self) -> Json:
        """The fields that a failed compaction must not change."""
        conversation = self.get()
        names = ("compressed_state", "state_version", "compressed_at_message_id", "compression_count", "state_schema")
        return {name: conversation[name] for name in names}

    def boundary(self) -> int:
        """The ``seq`` up to which the state covers; 0 without a state."""
        at = self.get()["compressed_at_message_id"]
        return next((message["seq"] for message in self.history() if message["id"] == at), 0)

    def fill(self, tokens: int, *, start: int = 1) -> None:
        """Append talk in one batch until the next pair of messages would bring the context to this size."""
        size, lines = self.get("/usage")["tokens"], list[tuple[str, str]]()
        for pair in small_talk(start):
            weight = weight_of(pair)
            if size + weight >= tokens:
                break
            size, lines = size + weight, [*lines, *pair]
        assert lines, f"{size} tokens are there already"
        self.batch(lines)


def good(response: httpx.Response) -> Json:
    """The body of an answer, which must be a success."""
    assert response.is_success, f"{response.status_code} {response.text}"
    body: Json = response.json() if response.content else {}
    return body


def refused(response: httpx.Response, status: int, code: str) -> Json:
    """The problem of an answer, which must be exactly this refusal."""
    problem: Json = response.json()
    assert (response.status_code, problem.get("code")) == (status, code), response.text
    assert response.headers["content-type"] == "application/problem+json"
    assert problem["status"] == status
    assert problem["request_id"] == response.headers["x-request-id"]
    return problem


def weight_of(lines: Sequence[tuple[str, str]]) -> int:
    """The weight of these messages in tokens."""
    return sum(_weight(role, content) for role, content in lines)


@functools.cache
def _weight(role: str, content: str) -> int:
    return weigh(role, content).tokens


@functools.cache
def text_of(tokens: int) -> str:
    """A text that weighs exactly this many tokens as a message."""
    low, high = 1, 8 * tokens
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if weight_of([("user", _words(middle))]) < tokens else (low, middle)
    near = (_words(max(low - back, 1)) + ending for back in range(12) for ending in _ENDINGS)
    found = next((text for text in near if weight_of([("user", text)]) == tokens), None)
    assert found is not None, f"no text of exactly {tokens} tokens"
    return found


def named(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.replace("_", "-"): value for name, value in headers.items()}


def block_of(context: Json) -> str | None:
    """The state block that is served."""
    blocks = [item["content"] for item in context["messages"] if item["content"].startswith("<session_state>")]
    assert len(blocks) <= 1
    return blocks[0] if blocks else None


def served_seqs(context: Json) -> list[int]:
    return [item["seq"] for item in context["messages"] if item["seq"] is not None]


class Listener:
    """Collects items in a thread until it is closed."""

    def __init__(self) -> None:
        self.events: list[Json] = []
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._closing = threading.Event()
        self.ready = threading.Event()

    def __enter__(self) -> Self:
        self._thread.start()
        assert self.ready.wait(10), "the listener did not start"
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self.release()
        self._thread.join(10)

    def wait_for(self, condition: Callable[[list[Json]], object], seconds: float = 20.0, *, what: str = "it") -> None:
        until(lambda: condition(self.events), seconds, what=f"{what} among {len(self.events)} events")

    def numbers(self) -> list[int]:
        return [int(event["id"]) for event in self.events]

    def of_type(self, prefix: str) -> list[Json]:
        return [event for event in self.events if event["type"].startswith(prefix)]

    def release(self) -> None:
        """End the call that blocks the thread."""

    def _run(self) -> None:
        raise NotImplementedError


class EventFollower(Listener):
    """Follows ``GET …/events`` from a given event on."""

    def __init__(
        self, talk: Talk, *, last_event_id: int | None = None, after: int | None = None, newest: int | None = None
    ) -> None:
        super().__init__()
        self._talk = talk
        self._headers = {} if last_event_id is None else {"Last-Event-ID": str(last_event_id)}
        self._params = {name: value for name, value in (("after", after), ("newest", newest)) if value is not None}
        self._http = talk.service.client()
        self._socket: socket.socket | None = None
        self.ended = threading.Event()

    def release(self) -> None:
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)

    def _run(self) -> None:
        path = self._talk.path("/events")
        with (
            contextlib.suppress(httpx.HTTPError, httpx.StreamError, OSError, RuntimeError),
            self._http.stream("GET", path, headers=self._headers, params=self._params) as response,
        ):
            assert response.is_success
            self._socket = response.extensions["network_stream"].get_extra_info("socket")
            self.ready.set()
            for event in read_events(response):
                assert (event.data["id"], event.data["type"]) == (str(event.id), event.type)
                self.events.append(event.data)
                if self._closing.is_set():
                    return
        self.ended.set()


class ChannelListener(Listener):
    """The Redis channel of a conversation, as any client of Redis hears it."""

    def __init__(self, talk: Talk) -> None:
        super().__init__()
        self._channel = f"throughline:conversation:{talk.id}"
        self._redis = redis.from_url(talk.service.redis_url)

    def _run(self) -> None:
        with self._redis, self._redis.pubsub() as pubsub:  # type: ignore[no-untyped-call]
            pubsub.subscribe(self._channel)
            while not self._closing.is_set():
                message = pubsub.get_message(timeout=0.1)
                if message is None:
                    continue
                if message["type"] == "subscribe":
                    self.ready.set()
                elif message["type"] == "message":
                    self.events.append(json.loads(message["data"]))


_SUPPLIERS: Final = ("Nordwind", "Calder", "Ostara", "Brightwell", "Tamarisk", "Quillon", "Verano")
_THINGS: Final = ("desk lamps", "oak tables", "window blinds", "floor mats", "coat racks", "whiteboards")
_MONTHS: Final = ("January", "March", "May", "July", "September")


def small_talk(start: int = 1) -> Iterator[tuple[tuple[str, str], tuple[str, str]]]:
    """Endless pairs of user and assistant about an office that is being furnished; no two are alike."""
    number = start
    while True:
        supplier, thing = f"{_SUPPLIERS[number % 7]}-{number}", _THINGS[number % 6]
        day, month = 1 + number % 27, _MONTHS[number % 5]
        yield (
            (
                "user",
                (
                    f"For room {number} I decided to order the {thing} from {supplier}. They cost {110 + number} euros"
                    f" each and must arrive by {day} {month} 2027, because the team moves in right after."
                ),
            ),
            (
                "assistant",
                (
                    f"I put the {thing} from {supplier} on the list for room {number} and will prepare the order form."
                    " Should the invoice go to the same address as last time?"
                ),
            ),
        )
        number += 1


def lines(count: int, start: int = 1) -> list[tuple[str, str]]:
    """This many messages of small talk."""
    pairs = small_talk(start)
    return [line for _ in range((count + 1) // 2) for line in next(pairs)][:count]


_FILLER: Final = "The quick review of every open point took the whole afternoon and nobody objected to any of it. "
_ENDINGS: Final = ("", "!", " 7", "7", " 77")
"""Endings, one of which gives a text any number of tokens: a further word alone would add several tokens at once."""


def _words(characters: int) -> str:
    return (_FILLER * (characters // len(_FILLER) + 1))[:characters]
