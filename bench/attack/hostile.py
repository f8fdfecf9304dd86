"""Part 2: hostile strings in every text field of every route.

Each is either kept and returned byte for byte, or refused with a problem that names the field. Nothing of another
conversation is returned, and no request ends in a 5xx.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import quote

import httpx

from bench.attack import strings
from bench.attack.fields import HEADERS, Field, fields, in_path, with_text
from bench.attack.findings import Outcome
from bench.attack.latency import Watch
from bench.attack.target import Target

NAME: Final = "strings"
Json = dict[str, Any]
CANARY: Final = "Zugunruhe-4471"
"""A word said in another conversation: no answer may contain it."""
HOT: Final = frozenset(
    {
        ("POST /conversations", "title"),
        ("POST /conversations", "system_prompt"),
        ("POST /conversations", "metadata.<value>"),
        ("POST /conversations/{conversation_id}/messages", "content"),
        ("POST /conversations/{conversation_id}/messages", "parts.0.text"),
        ("POST /conversations/{conversation_id}/chat", "content"),
        ("GET /conversations/{conversation_id}/search", "q"),
        ("GET /conversations/{conversation_id}", "conversation_id"),
        ("POST /v1/conversations/{conversation_id}/items", "items.0.content"),
    }
)
"""Fields that get all strings; the others get as many as are asked for."""
KEPT: Final = frozenset(
    {
        ("POST /conversations", "title"),
        ("POST /conversations", "system_prompt"),
        ("POST /conversations", "user_id"),
        ("POST /conversations", "metadata.<key>"),
        ("POST /conversations", "metadata.<value>"),
        ("POST /conversations", "scratchpad.<value>"),
        ("PATCH /conversations/{conversation_id}", "title"),
        ("PATCH /conversations/{conversation_id}", "system_prompt"),
        ("PATCH /conversations/{conversation_id}", "metadata.<value>"),
        ("POST /conversations/{conversation_id}/messages", "content"),
        ("POST /conversations/{conversation_id}/messages", "parts.0.text"),
        ("POST /conversations/{conversation_id}/messages", "parts.0.content"),
        ("POST /conversations/{conversation_id}/messages", "parts.0.name"),
        ("POST /conversations/{conversation_id}/messages", "metadata.<key>"),
        ("POST /conversations/{conversation_id}/messages", "metadata.<value>"),
        ("POST /conversations/{conversation_id}/messages/batch", "messages.0.content"),
        ("POST /conversations/{conversation_id}/chat", "content"),
        ("POST /v1/conversations/{conversation_id}/items", "items.0.content"),
        ("POST /v1/conversations", "metadata.<value>"),
    }
)
"""Fields whose text is returned: in the answer, or in the newest messages."""
READS: Final = ("/messages", "/chat", "/items", "/batch")
"""Endings of paths: after these requests the newest messages are read."""
CONTRADICTED: Final[Mapping[str, tuple[str, ...]]] = {
    "conversation": ("store",),
    "parts": ("messages.0.parts",),
    "value>": ("",),
}
"""Names that a problem may use for a field: a field that contradicts it, or its place in a batch of one."""
NO_HEADER: Final = bytes({*range(32), 127} - {9})
"""Bytes that a client does not send in a header; part 3 sends some over a raw socket."""
SILENT: Final = 502
"""The status of a model's failure: the scripted model finds nothing to say about a single endless word."""
BAD: Final = 500
REFUSED: Final = 400


def attack(target: Target, seed: int, examples: int) -> Outcome:
    """Put ``examples`` strings into each field, and all strings into the fields of ``HOT``."""
    outcome, chance = Outcome(NAME), random.Random(f"strings {seed}")
    outcome.counts["fields"] = len(fields())
    with target.client("writer") as http, Watch(target.url) as watch:
        _canary(http)
        ids = conversation(http)
        for field in fields():
            ids = conversation(http) if field.where == "body" else ids  # a new one: chatting in a long talk is slow
            is_hot = (field.operation, field.name) in HOT
            for family, text in strings.everything() if is_hot else strings.drawn(chance, examples):
                ids = put(http, ids, field, family, text, outcome)
        for header in HEADERS:
            for family, text in strings.drawn(chance, examples):
                _put_header(http, ids, header, family, text, outcome)
    outcome.expect(watch.failed == 0, "/healthz did not answer", "meanwhile", watch.failed)
    outcome.figures["/healthz, median meanwhile over before"] = f"{watch.ratio:.1f}"
    outcome.figures["/healthz, slowest meanwhile, s"] = f"{watch.longest:.2f}"
    return outcome


def _canary(http: httpx.Client) -> None:
    other = http.post("/conversations", json={"title": CANARY}).raise_for_status().json()["id"]
    message = {"role": "user", "content": f"The word is {CANARY}."}
    http.post(f"/conversations/{other}/messages", json=message).raise_for_status()


def conversation(http: httpx.Client) -> Json:
    """Make a conversation with a message; return the ids that paths name."""
    made = http.post("/conversations", json={"policy": {"max_tokens": -1}}).raise_for_status().json()["id"]
    answer = http.post(f"/conversations/{made}/messages", json={"role": "user", "content": "We use port 7001."})
    unknown = "00000000-0000-7000-8000-000000000000"
    return {
        "conversation_id": made,
        "message_id": answer.raise_for_status().json()["id"],
        "anchor_id": unknown,
        "file_id": unknown,
        "segment_id": "s1",
        "compaction_id": unknown,
        "user_id": "nobody",
        "response_id": "resp_1",
        "item_id": "msg_1",
        "model": "throughline",
    }


def put(http: httpx.Client, ids: Json, field: Field, family: str, text: str, outcome: Outcome) -> Json:
    """Put one string into one field; return the ids, of a new conversation if the request deleted it."""
    path = path_of(field, ids, text)
    params: Json = {"q": "port"} if field.path.endswith("/search") else {}
    headers: dict[str, bytes] = {}
    if field.where == "query":
        params[field.name] = text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
    if field.where == "header":
        headers[field.name] = header_bytes(text)
    body = None if field.template is None else with_text(field.template, text)
    if body is None and field.method in {"POST", "PATCH"}:
        body = {}
    try:
        response = _sent(http, field.method, path, params, headers, body)
    except httpx.HTTPError as error:
        outcome.found("no answer", str(field), f"{family} {strings.shown(text)} {error!r}")
        return conversation(http)
    _judge(http, ids, field, family, text, response, outcome)
    return conversation(http) if field.method == "DELETE" and response.is_success else ids


def path_of(field: Field, ids: Json, text: str) -> str:
    """The path with ids in it, or with the text in place of one."""
    known = dict(ids)
    if field.path.startswith("/v1/"):
        known["conversation_id"] = f"conv_{ids['conversation_id'].replace('-', '')}"
    if field.where == "path":
        known[field.name] = in_path(text)
    return field.path.format(**known)


def header_bytes(text: str) -> bytes:
    """A text as a client can send it in a header, without bytes that would end the header."""
    sent = text.encode("utf-8", "replace").translate(None, NO_HEADER)
    return sent.strip()[:4_000] or b"-"


def _sent(
    http: httpx.Client, method: str, path: str, params: Json, headers: dict[str, bytes], body: Any
) -> httpx.Response:
    """The answer, or the beginning of an event stream."""
    content = None if body is None else json.dumps(body).encode()
    whole: dict[str, Any] = {**headers}
    if content is not None and "Content-Type" not in headers:
        whole["Content-Type"] = "application/json"
    query = "&".join(f"{quote(name)}={quote(value)}" for name, value in params.items())
    with http.stream(method, f"{path}?{query}" if query else path, headers=whole, content=content) as response:
        if not response.headers.get("content-type", "").startswith("text/event-stream") or method == "POST":
            response.read()
        else:
            response._content = next(response.iter_bytes(), b"")  # noqa: SLF001 - an open stream has no end to read
        return response


def _judge(
    http: httpx.Client, ids: Json, field: Field, family: str, text: str, response: httpx.Response, outcome: Outcome
) -> None:
    what = f"{family} {strings.shown(text)} → {response.status_code} {response.text[:200]}"
    outcome.counts["requests"] += 1
    if response.status_code == SILENT and '"summarizer_failed"' in response.text and "(empty_summary)" in response.text:
        outcome.counts["the scripted model found nothing to summarize"] += 1
        return
    outcome.expect(response.status_code < BAD, "a 5xx", str(field), what)
    outcome.expect(CANARY not in response.text, "another conversation is told", str(field), what)
    if response.status_code >= REFUSED:
        outcome.counts["refused"] += 1
        _judge_refusal(field, response, what, outcome)
    elif response.is_success and (field.operation, field.name) in KEPT:
        answer_texts = set(leaves(response.json()))
        if field.path.endswith(READS):
            newest = http.get(f"/conversations/{ids['conversation_id']}/messages", params={"limit": 3, "order": "desc"})
            answer_texts = set(leaves(newest.json()))
        outcome.counts["told again"] += 1
        outcome.expect(text in answer_texts, "not told again as it was", str(field), what)


def _judge_refusal(field: Field, response: httpx.Response, what: str, outcome: Outcome) -> None:
    """Check that a refusal has the service's form, and names the field."""
    try:
        problem = response.json()
    except ValueError:
        outcome.found("a refusal in no form of ours", str(field), what)
        return
    if not isinstance(problem, dict):
        outcome.found("a refusal in no form of ours", str(field), what)
        return
    problem = problem.get("error", problem)
    outcome.expect(problem.get("code"), "a refusal without a code", str(field), what)
    if problem.get("code") != "invalid_input":
        return
    named = [str(item["field"]) for item in problem.get("errors") or ()] or [str(problem.get("param"))]
    first = field.name.partition(".")[0].removeprefix("<")
    allowed = ("body", first, *CONTRADICTED.get(first, ()))
    is_named = field.where != "body" or first == "key>" or any(name.startswith(allowed) for name in named)
    outcome.expect(is_named, "a refusal that names another field", str(field), what)


def _put_header(http: httpx.Client, ids: Json, header: str, family: str, text: str, outcome: Outcome) -> None:
    """Put a string into a header that the service reads, on a read and on a write."""
    for field in (
        Field(method="GET", path="/conversations/{conversation_id}", where="header", name=header),
        Field(method="POST", path="/conversations/{conversation_id}/messages", where="header", name=header,
              template={"role": "user", "content": "Hello."}),
    ):  # fmt: skip
        put(http, ids, field, family, text, outcome)


def leaves(value: Any) -> Iterator[str]:
    """Every text in a JSON value, keys included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from leaves(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from leaves(item)
