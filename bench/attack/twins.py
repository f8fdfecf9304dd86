"""Part 5: pairs of tenants with the same names and external ids; each tries to reach what is the other's.

On every route, another tenant's object must look exactly like one that does not exist; nothing of it may be returned or
changed. The traffic through Redis must contain nobody's words.
"""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections.abc import Iterator, Mapping
from typing import Any, Final, Self
from uuid import uuid4

import httpx
import redis
from websockets.asyncio.client import connect

from app.usecases.admin.keys import ALL_SCOPES
from bench.attack.fields import document
from bench.attack.findings import Outcome
from bench.attack.target import WRITE, Keys, Target
from tests.acceptance.talk import lines

NAME: Final = "twins"
PAIRS: Final = 100
Json = dict[str, Any]
LISTS: Final = ("/conversations", "/compactions", "/audit", "/stats", "/v1/models")
SAME: Final = "the very same name"
"""The title, end user, external id and idempotency key of both tenants."""
USERS: Final = ("eva", "emil")
"""Two end users of one tenant, each with a key."""
UUIDS: Final = ("conversation_id", "message_id", "compaction_id", "anchor_id", "file_id")
HELLO: Final = {"role": "user", "content": "Hello."}
BODIES: Final[Mapping[str, Json]] = {
    "POST /conversations/{conversation_id}/messages": HELLO,
    "POST /conversations/{conversation_id}/messages/batch": {"messages": [HELLO]},
    "POST /conversations/{conversation_id}/chat": {"content": "Hello."},
    "POST /conversations/{conversation_id}/ui": {
        "message": {"id": "1", "role": "user", "parts": [{"type": "text", "text": "Hello."}]}
    },
    "POST /conversations/{conversation_id}/restore": {"state_version": 1},
    "PATCH /conversations/{conversation_id}/anchors/{anchor_id}": {"status": "resolved"},
    "POST /conversations/{conversation_id}/segments": {"from_seq": 1, "to_seq": 2, "level": "brief"},
    "POST /v1/conversations/{conversation_id}": {"metadata": {"a": "b"}},
    "POST /v1/conversations/{conversation_id}/items": {"items": [HELLO]},
}
NAMING: Final[tuple[tuple[str, Json], ...]] = (
    ("/v1/responses", {"conversation": "{conversation}", "input": "Hello."}),
    ("/v1/responses", {"conversation": "{conversation}", "input": "Hello.", "stream": True}),
    ("/v1/responses", {"conversation": {"id": "{conversation}"}, "input": "Hello."}),
    ("/v1/responses", {"previous_response_id": "{response}", "input": "Hello."}),
    ("/v1/responses", {"input": [{"type": "item_reference", "id": "{item}"}, HELLO]}),
    ("/v1/responses/input_tokens", {"conversation": "{conversation}"}),
    ("/v1/responses/compact", {"conversation": "{conversation}", "model": "throughline"}),
    ("/v1/responses/compact", {"previous_response_id": "{response}", "model": "throughline"}),
    ("/v1/chat/completions", {"model": "throughline", "messages": [HELLO], "conversation": "{conversation}"}),
    (
        "/v1/chat/completions",
        {"model": "throughline", "messages": [HELLO], "metadata": {"conversation_id": "{conversation}"}},
    ),
)
"""Routes with bodies that name something."""
HOT: Final = ("", "/messages", "/context", "/search?q=word", "/events", "/export", "/usage", "/segments", "/anchors")
BODIES_BY_TAIL: Final[Mapping[str, Json]] = {"/chat": {"content": "Hello."}, "/messages": HELLO, "/compact": {}}
"""Ends of paths of a conversation, with the body to send."""
GONE: Final = {403, 404}
Probe = tuple[str, httpx.Response, httpx.Response]
"""The place, the answer for another's id, and the answer for an id that nobody has."""


def keys_for(pairs: int) -> Keys:
    """The keys of the two tenants of each pair, one each."""
    sides = [(side, number) for number in range(pairs) for side in ("a", "b")]
    tenants: Keys = {f"{side}{number}": (f"{side}-{number}", ALL_SCOPES, None) for side, number in sides}
    return {**tenants, **{user: ("users", WRITE, user) for user in USERS}}


def attack(target: Target, seed: int, examples: int) -> Outcome:
    """Try every route with the first pair, hot routes with ``examples`` pairs (or as many as have keys)."""
    outcome = Outcome(NAME)
    pairs = min(examples, sum(name.startswith("a") for name in target.keys))
    with RedisTraffic(target.service.redis_url) as traffic:
        secrets = [_pair(target, number, f"{seed}-{number}", outcome, whole=number == 0) for number in range(pairs)]
        _end_users(target, outcome)
    outcome.counts["pairs"] += pairs
    outcome.counts["words through Redis"] = len(traffic.commands)
    known_secrets = [secret for pair in secrets for secret in pair]
    leaked = [secret for secret in known_secrets if any(secret.encode() in command for command in traffic.commands)]
    outcome.expect(not leaked, "a word of a message goes through Redis", "Redis", leaked)
    outcome.expect(traffic.commands, "nothing was heard", "Redis")
    return outcome


class RedisTraffic:
    """Records everything that is sent to Redis while it is entered."""

    def __init__(self, url: str) -> None:
        self._client = redis.from_url(url)
        self.commands: list[bytes] = []
        self._ending = threading.Event()

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._ready = threading.Event()
        self._thread.start()
        self._ready.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        self._client.set("attack:end", "1", ex=10)  # so that the listener wakes up
        self._thread.join(10)

    def _listen(self) -> None:
        with self._client.monitor() as monitor:  # type: ignore[no-untyped-call]
            self._ready.set()
            for command in monitor.listen():
                self.commands.append(str(command["command"]).encode())
                if self._ending.is_set():
                    return


class Side:
    """One tenant of a pair, with everything of it that a request can name."""

    def __init__(self, target: Target, key: str, secret: str, *, whole: bool) -> None:
        self.key = key
        self.secret = secret
        self.http = target.client(key)
        self.http.headers["X-Request-Id"] = SAME.replace(" ", "-")
        policy = {"context_window": 4_000, "max_tokens": -1}
        created = {"title": SAME, "metadata": {"id": SAME}, "policy": policy}
        if key not in USERS:
            created["user_id"] = SAME
        made = self._good("POST", "/conversations", created, {"Idempotency-Key": SAME})
        self.id: str = made["id"]
        messages = [{"role": "user", "content": f"The word is {secret}."}]
        messages += [{"role": role, "content": content} for role, content in (lines(24) if whole else ())]
        stored = self._good("POST", f"/conversations/{self.id}/messages/batch", {"messages": messages})["data"]
        self.ids: Json = {
            "conversation_id": self.id,
            "message_id": stored[0]["id"],
            "compaction_id": str(uuid4()),
            "anchor_id": str(uuid4()),
            "file_id": str(uuid4()),
            "segment_id": "none",
            "user_id": SAME,
            "model": "throughline",
        }
        self.openai: Json = {"conversation": f"conv_{self.id.replace('-', '')}", "response": "", "item": ""}
        if whole:
            self._make_whole()

    def _make_whole(self) -> None:
        path = f"/conversations/{self.id}"
        self.ids["compaction_id"] = self._good("POST", f"{path}/compact", {"keep_tail_messages": 2})["id"]
        self.ids["segment_id"] = self._good("GET", f"{path}/segments")["data"][0]["segment_id"]
        anchors = self._good("GET", f"{path}/anchors")["data"]
        self.ids["anchor_id"] = anchors[0]["id"] if anchors else self.ids["anchor_id"]
        self.ids["file_id"] = _attached(self.http, path, self.secret).raise_for_status().json()["id"]
        body = {"input": f"Say {self.secret}.", "conversation": self.openai["conversation"]}
        made = self._good("POST", "/v1/responses", body)
        self.openai |= {"response": made["id"], "item": made["output"][-1]["id"]}
        self.ids |= {"response_id": made["id"], "item_id": made["output"][-1]["id"]}

    def _good(self, method: str, path: str, body: Json | None = None, headers: dict[str, str] | None = None) -> Json:
        response = self.http.request(method, path, json=body, headers=headers)
        response.raise_for_status()
        found: Json = response.json()
        return found

    @property
    def whole(self) -> tuple[Any, ...]:
        """Everything of the tenant that might have been changed."""
        paths = ("", "/messages?limit=100", "/compactions", "/anchors", "/segments")
        shown = [self._good("GET", f"/conversations/{self.id}{path}") for path in paths]
        return (*shown, len(self._good("GET", "/conversations")["data"]))


def _pair(target: Target, number: int, name: str, outcome: Outcome, *, whole: bool) -> tuple[str, str]:
    a, b = (Side(target, f"{side}{number}", f"Kestrel-{side}-{name}", whole=whole) for side in ("a", "b"))
    for mine, other in ((a, b), (b, a)):
        outcome.expect(mine.id != other.id, "one key of idempotency for two tenants", "POST /conversations", mine.id)
        before = other.whole
        for where, response, unknown in _probes(mine, other, whole=whole):
            judge(where, response, unknown, other, outcome)
        for path in LISTS:
            text = mine.http.get(path).text
            outcome.expect(other.secret not in text and other.id not in text, "told of another tenant", path, text)
        outcome.expect(other.whole == before, "written to another tenant", f"pair {number}", other.id)
    if whole:
        _socket(target, a, b, outcome)
        erased = a.http.delete(f"/users/{SAME}")
        outcome.expect(erased.is_success, "an end user is not erased", "DELETE /users", erased.text)
        outcome.expect(b.http.get(f"/conversations/{b.id}").is_success, "another's user is erased", "DELETE /users")
    a.http.close()
    b.http.close()
    return a.secret, b.secret


def _probes(mine: Side, other: Side, *, whole: bool) -> Iterator[Probe]:
    """Probes of the other's objects, and the same probes of objects that do not exist."""
    yield from _every_route(mine, other) if whole else hot_routes(mine, other)


def hot_routes(mine: Side, other: Side) -> Iterator[Probe]:
    """Probes of the routes that are used most."""
    for tail in HOT:
        named, unknown = (_asked(mine.http, "GET", f"/conversations/{one}{tail}") for one in (other.id, uuid4()))
        yield f"GET {tail}", named, unknown
    for tail, hot_body in BODIES_BY_TAIL.items():
        named, unknown = (
            _asked(mine.http, "POST", f"/conversations/{one}{tail}", hot_body) for one in (other.id, uuid4())
        )
        yield f"POST {tail}", named, unknown
    ids = other.openai["conversation"], f"conv_{uuid4().hex}"
    bodies = ({"conversation": one, "input": "Hello."} for one in ids)
    named, unknown = (_asked(mine.http, "POST", "/v1/responses", body) for body in bodies)
    yield "POST /v1/responses", named, unknown


def _every_route(mine: Side, other: Side) -> Iterator[Probe]:
    for path, methods in document()["paths"].items():
        for method in methods if "{" in path and path not in {"/users/{user_id}", "/v1/models/{model}"} else ():
            route = f"{method.upper()} {path}"
            named, unknown = (_of_route(mine.http, route, ids) for ids in (_named(path, other), _unknown(path)))
            yield route, named, unknown
    for path, body in NAMING:
        text = json.dumps(body)
        for name, value in other.openai.items():
            text = text.replace(f"{{{name}}}", value)
        nobodys = re.sub(r"_[0-9a-f]{32}", f"_{uuid4().hex}", text)
        named, unknown = (_asked(mine.http, "POST", path, json.loads(one)) for one in (text, nobodys))
        yield f"{path} {body}", named, unknown


def _named(path: str, other: Side) -> Json:
    return {**other.ids, **({"conversation_id": other.openai["conversation"]} if path.startswith("/v1/") else {})}


def _unknown(path: str) -> Json:
    ids: Json = {name: str(uuid4()) for name in UUIDS}
    ids |= {"segment_id": "nowhere", "response_id": f"resp_{uuid4().hex}", "item_id": f"msg_{uuid4().hex}"}
    return {**ids, "conversation_id": f"conv_{uuid4().hex}"} if path.startswith("/v1/") else ids


def _attached(http: httpx.Client, conversation: str, text: str) -> httpx.Response:
    headers = {"Content-Type": "text/markdown"}
    return http.post(f"{conversation}/files", params={"name": "a.md"}, content=text.encode(), headers=headers)


def _of_route(http: httpx.Client, operation: str, ids: Json) -> httpx.Response:
    method, path = operation.split(" ")
    if (method, path) == ("POST", "/conversations/{conversation_id}/files"):
        return _attached(http, path.removesuffix("/files").format(**ids), "Hello.")
    body = BODIES.get(operation, {} if method in {"POST", "PATCH"} else None)
    query = "?q=word" if path.endswith("/search") else ""
    return _asked(http, method, path.format(**ids) + query, body)


def _asked(http: httpx.Client, method: str, path: str, body: Json | None = None) -> httpx.Response:
    """The answer; if a stream has begun, which it should not, only its beginning."""
    with http.stream(method, path, json=body) as response:
        if response.is_success and response.headers.get("content-type", "").startswith("text/event-stream"):
            response._content = next(response.iter_bytes(), b"")  # noqa: SLF001 - it has no end to read
        else:
            response.read()
        return response


def judge(where: str, response: httpx.Response, unknown: httpx.Response, other: Side, outcome: Outcome) -> None:
    """Check that the refusal is the same as for an unknown id, and has nothing of the other's."""
    what = f"{response.status_code} {response.text[:300]}"
    outcome.counts["probes"] += 1
    outcome.expect(response.status_code in GONE, "not refused as what there is not", where, what)
    outcome.expect(without_ids(response) == without_ids(unknown), "tells another's from nobody's", where, what)
    outcome.expect(leak(response, other.secret) is None, "a byte of another's", where, what)


def leak(response: httpx.Response, secret: str) -> str | None:
    """The part of an answer that contains a secret; ``None`` if no part does."""
    if secret.encode() in response.content:
        return "body"
    return next((name for name, value in response.headers.items() if secret in value), None)


def without_ids(response: httpx.Response) -> tuple[int, tuple[str, ...], str]:
    """Status, names of headers, and body, without the ids of the request and of the object asked for."""
    text = re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}|_[0-9a-f]{32}|nowhere|[a-z_]+_\d+", "…", response.text)
    normalized = re.sub(r'"request_id":"[^"]*"', "", text)
    return response.status_code, tuple(sorted(response.headers)), re.sub(r"'[^']*'", "'…'", normalized)


def _socket(target: Target, mine: Side, other: Side, outcome: Outcome) -> None:
    """Try the same through the WebSocket of ``/v1/responses``."""
    frame = {"type": "response.create", "model": "throughline", "input": "Hello."}
    named = {"conversation": other.openai["conversation"]}, {"previous_response_id": other.openai["response"]}
    frames = [{**frame, **one} for one in named]
    answers = asyncio.run(_frames(target, mine.key, frames))
    for sent, event in zip(frames, answers, strict=True):
        outcome.counts["probes"] += 1
        refused = event.get("type") == "error" and event.get("status") in GONE
        outcome.expect(refused and other.secret not in json.dumps(event), "the socket tells", str(sent), event)


async def _frames(target: Target, key: str, frames: list[Json]) -> list[Json]:
    address = target.url.replace("http", "ws") + "/v1/responses"
    async with connect(address, additional_headers=target.headers(key)) as socket:
        events = []
        for frame in frames:
            await socket.send(json.dumps(frame))
            events.append(json.loads(await asyncio.wait_for(socket.recv(), 20)))
        return events


def _end_users(target: Target, outcome: Outcome) -> None:
    """Try the same with the keys of two end users of one tenant."""
    eva, emil = (Side(target, name, f"Kestrel-{name}", whole=True) for name in USERS)
    for mine, other in ((eva, emil), (emil, eva)):
        before = other.whole
        for where, response, unknown in _probes(mine, other, whole=True):
            judge(f"as an end user: {where}", response, unknown, other, outcome)
        outcome.expect(other.whole == before, "written to another end user", mine.key)
