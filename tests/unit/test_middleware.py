"""Around every request: id, log line, last resort, size, time, CORS."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from time import process_time
from uuid import UUID

import httpx
import pytest
from structlog.testing import capture_logs

from app.core.model.errors import DependencyUnavailableError
from app.http import errors
from tests.unit.api_fakes import CONVERSATION, TENANT, World, world

PATH = f"/conversations/{CONVERSATION}"
JSON = {"Content-Type": "application/json"}
DEADLINE_SECONDS = 2.0
"""A deadline that a busy machine still meets."""


@pytest.fixture
def api() -> World:
    return world(max_body_bytes=10_000)


@pytest.fixture
def hurried() -> World:
    return world(request_timeout_seconds=DEADLINE_SECONDS)


def is_problem(response: httpx.Response, status: int, code: str) -> dict[str, object]:
    body: dict[str, object] = response.json()
    assert response.headers["content-type"] == "application/problem+json"
    assert (response.status_code, body["status"], body["code"]) == (status, status, code)
    assert body["request_id"] == response.headers["x-request-id"]
    return body


async def test_a_sane_request_id_is_kept(api: World) -> None:
    async with api.client() as client:
        response = await client.get("/healthz", headers={"X-Request-Id": "trace-1/a:b"})
    assert response.headers.get_list("x-request-id") == ["trace-1/a:b"]


@pytest.mark.parametrize("given", [None, "", "a b", "x" * 129, "\u00e9"])
async def test_any_other_request_id_is_made_anew(api: World, given: str | None) -> None:
    headers = {} if given is None else {"X-Request-Id": given.encode("latin-1")}
    async with api.client() as client:
        response = await client.get("/healthz", headers=headers)  # type: ignore[arg-type]
    assert UUID(response.headers["x-request-id"]).version == 7


@pytest.mark.parametrize("key", [None, "reader"])
@pytest.mark.parametrize("path", ["/healthz", PATH])
async def test_no_cache_keeps_what_needs_a_key(api: World, path: str, key: str | None) -> None:
    async with api.client(key=key) as client:
        response = await client.get(path)
    is_private = response.status_code == 200 and path == PATH
    assert response.headers.get("cache-control") == ("private, no-store" if is_private else None)


@pytest.mark.parametrize("path", ["/nowhere", "/conversations", PATH, "/healthz?x=1"])
async def test_every_error_carries_a_request_id(api: World, path: str) -> None:
    async with api.client(key=None) as client:
        response = await client.get(path)
    assert response.status_code >= 400
    assert response.json()["request_id"] == response.headers["x-request-id"] != ""


async def test_an_unexpected_error_is_a_quiet_500(api: World) -> None:
    api.calls.answers["conversations.get"] = RuntimeError("canary-secret")
    with capture_logs() as logs:
        async with api.client() as client:
            response = await client.get(PATH, headers={"Origin": "http://localhost:3000"})
    body = is_problem(response, 500, "internal_error")
    assert "canary-secret" not in response.text + json.dumps(logs, default=str)
    assert "Traceback" not in response.text
    assert body["retryable"] is False
    assert response.headers["access-control-allow-origin"] == "http://localhost:3000"
    failed = next(line for line in logs if line["event"] == "http.failed")
    assert failed["error"] == "RuntimeError"
    assert any("conversations.py" in place for place in failed["where"])


async def test_a_dependency_that_is_away(api: World) -> None:
    api.calls.answers["conversations.get"] = DependencyUnavailableError("Postgres is away.", retry_after=2.2)
    async with api.client() as client:
        response = await client.get(PATH)
    body = is_problem(response, 503, "dependency_unavailable")
    assert body["retryable"] is True
    assert response.headers["retry-after"] == "3"


async def test_the_log_line_has_ids_and_numbers_only(api: World) -> None:
    with capture_logs() as logs:
        async with api.client() as client:
            await client.patch(PATH, json={"title": "canary-title"})
            await client.get("/conversations/canary-path?user_id=canary-query")
    lines = [line for line in logs if line["event"] == "http.request"]
    assert lines[0]["route"] == "/conversations/{conversation_id}"
    assert (lines[0]["method"], lines[0]["status"]) == ("PATCH", 200)
    assert (lines[0]["conversation_id"], lines[0]["tenant_id"]) == (str(CONVERSATION), str(TENANT))
    assert lines[0]["duration_ms"] >= 0
    assert "canary" not in json.dumps(logs, default=str)


async def test_no_long_method_is_searched_for_secrets(api: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """That took a tenth of a second of the event loop, and needs no key."""
    searched: list[int] = []

    def redact(text: str) -> str:
        searched.append(len(text))
        return text

    monkeypatch.setattr(errors, "redact", redact)
    with capture_logs() as logs:
        async with api.client(key=None) as client:
            response = await client.request("PIN-" * 15_000, PATH)
    is_problem(response, 405, "method_not_allowed")
    assert 0 < max(searched) < 2_000
    assert logs[-1]["event"] == "http.request"
    assert logs[-1]["method"] == "PIN-" * 8


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("/conversations/" + "a" * 60_000 + "/x", 404, "not_found"),
        ("/conversations?" + "a&" * 30_000, 400, "unreadable"),
    ],
    ids=["path", "query"],
)
async def test_no_long_address_is_compared_with_the_routes(api: World, path: str, status: int, code: str) -> None:
    """That took some fifty milliseconds of the event loop, for a path without a key."""
    async with api.client() as client:
        took = []
        for _ in range(3):
            began = process_time()
            response = await client.get(path)
            took.append(process_time() - began)
    body = is_problem(response, status, code)
    assert re.search(" at most 1000 | more than 4000 ", str(body["detail"]))
    assert min(took) < 0.02


@pytest.mark.case("56")
async def test_a_declared_size_is_refused_unread(api: World) -> None:
    read = 0

    async def body() -> AsyncIterator[bytes]:
        nonlocal read
        read += 1
        yield b"x"

    async with api.client() as client:
        headers = {"Content-Length": "10001", **JSON}
        response = await client.post("/conversations", content=body(), headers=headers)
    told = is_problem(response, 413, "body_too_large")
    assert told["limit"] == 10_000
    assert "THROUGHLINE_MAX_BODY_BYTES" in str(told["detail"])
    assert read == 0


async def test_a_file_that_is_too_large_names_the_limit_of_files(api: World) -> None:
    async with api.client() as client:
        headers = {"Content-Type": "image/png", "Content-Length": "20000001"}
        response = await client.post(f"{PATH}/files", content=b"x", headers=headers)
    told = is_problem(response, 413, "body_too_large")
    assert "THROUGHLINE_MAX_FILE_BYTES" in str(told["detail"])
    assert "in parts" not in str(told["detail"])


@pytest.mark.case("56")
async def test_a_chunked_body_is_cut_off(api: World) -> None:
    sent = 0

    async def long() -> AsyncIterator[bytes]:
        nonlocal sent
        for _ in range(1_000):
            sent += 1
            yield b" " * 1_000

    async with api.client() as client:
        response = await client.post("/conversations", content=long(), headers=JSON)
    is_problem(response, 413, "body_too_large")
    assert sent <= 12


async def test_the_body_that_is_read_without_a_key_is_small(api: World) -> None:
    async with api.client(key=None) as client:
        response = await client.post("/ui/session", json={"key": "k" * 5_000})
        control = await client.post("/ui/session", json={"key": "k", "other": 1})
    told = is_problem(response, 413, "body_too_large")
    assert told["limit"] == 4_000
    assert "THROUGHLINE_MAX_BODY_BYTES" not in str(told["detail"]), "it is no limit of a login"
    is_problem(control, 422, "invalid_input")


async def test_a_body_at_the_limit_is_read(api: World) -> None:
    body = b'{"title": "t"' + b" " * (10_000 - 14) + b"}"
    async with api.client() as client:
        response = await client.post("/conversations", content=body, headers=JSON)
    assert response.status_code == 201


@pytest.mark.parametrize("coding", ["gzip", "br", "identity, gzip"])
@pytest.mark.case("56")
async def test_packed_bodies_are_refused(api: World, coding: str) -> None:
    async with api.client() as client:
        response = await client.post("/conversations", content=b"{}", headers={**JSON, "Content-Encoding": coding})
    is_problem(response, 415, "unsupported_media_type")


@pytest.mark.parametrize("length", ["-1", "many", "9" * 5_000])
async def test_a_senseless_length(api: World, length: str) -> None:
    async def body() -> AsyncIterator[bytes]:
        yield b"{}"

    async with api.client() as client:
        response = await client.post("/conversations", content=body(), headers={**JSON, "Content-Length": length})
    assert response.status_code in {400, 413}


async def test_a_request_that_takes_too_long(hurried: World) -> None:
    hurried.calls.answers["conversations.get"] = asyncio.Event().wait
    async with hurried.client() as client:
        response = await client.get(PATH)
    body = is_problem(response, 503, "request_timeout")
    assert body["retryable"] is True
    assert response.headers["retry-after"] == "1"


async def test_a_timeout_of_something_else_is_no_deadline(hurried: World) -> None:
    hurried.calls.answers["conversations.get"] = TimeoutError()
    async with hurried.client() as client:
        is_problem(await client.get(PATH), 500, "internal_error")


async def test_a_stream_outlives_the_deadline(hurried: World) -> None:
    async def end_later() -> None:
        await asyncio.sleep(DEADLINE_SECONDS + 0.5)
        hurried.app.state.stopping.begin()

    ending = asyncio.create_task(end_later())
    with capture_logs() as logs:
        async with hurried.client() as client:
            response = await client.get(f"{PATH}/events")
        assert ending.done()
    assert response.status_code == 200
    assert [line["event"] for line in logs] == ["http.request"]


async def test_cors_lets_the_browser_read_our_headers(api: World) -> None:
    async with api.client() as client:
        response = await client.get(PATH, headers={"Origin": "http://localhost:3000"})
    exposed = {name.strip() for name in response.headers["access-control-expose-headers"].split(",")}
    rates = {"RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"}
    own = {"X-Request-Id", "ETag", "Location", "Retry-After", "X-Throughline", "X-Should-Retry"}
    assert exposed == own | rates


@pytest.mark.parametrize(
    "headers",
    [
        "authorization,content-type,idempotency-key,if-match,last-event-id",
        "x-openwebui-chat-id,x-openwebui-task,x-openwebui-user-id,x-openwebui-user-message-id",
    ],
)
async def test_preflight(api: World, headers: str) -> None:
    asked = {
        "Origin": "http://localhost:3000",
        "Access-Control-Request-Method": "PATCH",
        "Access-Control-Request-Headers": headers,
    }
    async with api.client(key=None) as client:
        response = await client.options(PATH, headers=asked)
    assert response.status_code == 200
    assert "x-request-id" in response.headers


async def test_a_foreign_origin_gets_no_leave(api: World) -> None:
    async with api.client() as client:
        response = await client.get(PATH, headers={"Origin": "http://evil.test"})
    assert "access-control-allow-origin" not in response.headers


async def test_errors_carry_cors_headers(api: World) -> None:
    headers = {"Origin": "http://localhost:3000", "Content-Length": "10001", **JSON}
    async with api.client() as client:
        too_large = await client.post("/conversations", content=b"", headers=headers)
        unknown = await client.get("/nowhere", headers=headers)
    for response in (too_large, unknown):
        assert response.headers["access-control-allow-origin"] == "http://localhost:3000"
