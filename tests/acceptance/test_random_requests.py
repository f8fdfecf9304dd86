"""Requests drawn at random from ``openapi.json``, one after the other on the same objects: none ends in a 5xx.

The benches attack with Schemathesis too (docs/attacks.md), where it is installed; this needs nothing.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import quote
from uuid import uuid4

import httpx
import pytest

from app.devserver import Endpoints
from app.usecases.history.conversations import ConversationService
from tests.acceptance.chaos import own_database
from tests.acceptance.conftest import own_redis
from tests.acceptance.local import local_service
from tests.acceptance.service import Service
from tests.acceptance.talk import Json, Talk, lines
from tests.servers import ROOT

pytestmark = pytest.mark.long

DOCUMENT: Final[Json] = json.loads((ROOT / "openapi.json").read_text("utf-8"))
REQUESTS: Final = 150
DEEPEST: Final = 5
MODEL_FAILED: Final = 502
"""The summarizer found nothing to say, or gave too little: an answer that openapi.json declares."""
ODD: Final[tuple[Any, ...]] = (
    None,
    True,
    0,
    -1,
    2**31,
    2**63,
    1e308,
    "",
    " ",
    "\0",
    "\ud800",
    "x" * 5_000,
    [],
    {},
    [[]],
)
OPERATIONS: Final = [
    (method, path, operation)
    for path, methods in DOCUMENT["paths"].items()
    for method, operation in methods.items()
    if not path.endswith("/events")  # a stream without an end
]


class Drawn:
    """Draws requests, and remembers the ids that answers told."""

    def __init__(self, seed: int, http: httpx.Client, ids: Mapping[str, str]) -> None:
        self._chance = random.Random(seed)
        self._http = http
        self._ids = {name: [value] for name, value in ids.items()}
        self.statuses: list[int] = []
        self.failed: list[str] = []

    def play(self) -> None:
        for _ in range(REQUESTS):
            method, path, operation = self._chance.choice(OPERATIONS)
            self._send(method, path, operation)

    def _send(self, method: str, path: str, operation: Json) -> None:
        parameters = operation.get("parameters", [])
        query = {
            one["name"]: _as_text(self._value(one["schema"], 0))
            for one in parameters
            if one["in"] == "query" and (one.get("required") or self._chance.random() < 0.4)
        }
        for name in [one["name"] for one in parameters if one["in"] == "path"]:
            path = path.replace(f"{{{name}}}", quote(self._id(name), safe=""))
        body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
        content = None if body is None else json.dumps(self._value(body, 0)).encode()
        headers = {"Content-Type": "application/json"} if content is not None or method == "post" else {}
        response = self._http.request(method, path, params=query, content=content, headers=headers)
        self.statuses.append(response.status_code)
        if response.status_code >= 500 and response.status_code != MODEL_FAILED:
            self.failed.append(f"{method} {path} {query} {content!r} → {response.status_code} {response.text[:300]}")
        self._remember(response)

    def _id(self, name: str) -> str:
        known = self._ids.get(name, [])
        return self._chance.choice([*known * 4, str(uuid4()), "x", "\0é/.."])

    def _remember(self, response: httpx.Response) -> None:
        if response.is_success and response.content and response.headers["content-type"] == "application/json":
            told = response.json()
            if isinstance(told, dict) and "state_version" in told and isinstance(told.get("id"), str):
                self._ids["conversation_id"].append(told["id"])

    def _value(self, schema: Json, depth: int) -> Any:
        """A value that a schema accepts, or now and then any other."""
        while "$ref" in schema:
            schema = DOCUMENT["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
        if depth and self._chance.random() < 0.08:
            return self._chance.choice(ODD)
        branches = [*schema.get("anyOf", ()), *schema.get("oneOf", ())]
        if branches:
            return self._value(self._chance.choice(branches), depth)
        if "enum" in schema or "const" in schema:
            return self._chance.choice(schema.get("enum") or [schema["const"]])
        if schema.get("type") == "array":
            many = self._chance.randint(schema.get("minItems", 0), 3) if depth < DEEPEST else 0
            return [self._value(schema.get("items", {}), depth + 1) for _ in range(many)]
        least = schema.get("minimum", 0)
        plain: dict[str, list[Any]] = {
            "string": ["Hello.", "user", str(uuid4()), "2026-11-20T09:30:00Z", "a b"],
            "integer": [least, least + 1, schema.get("maximum", 7), 3],
            "number": [least, least + 1, 0.5],
            "boolean": [True, False],
            "null": [None],
        }
        kind = schema.get("type", "object")
        return self._chance.choice(plain[kind]) if kind in plain else self._object(schema, depth)

    def _object(self, schema: Json, depth: int) -> Json:
        needed = schema.get("required", ())
        share = 0.35 if depth < DEEPEST else 0.0
        drawn = {
            name: self._value(inner, depth + 1)
            for name, inner in schema.get("properties", {}).items()
            if name in needed or self._chance.random() < share
        }
        return drawn | ({"colour": 7} if self._chance.random() < 0.03 else {})


def _as_text(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text.encode("utf-8", "replace").decode()


@pytest.fixture(scope="module")
def service(servers: Endpoints, database_template: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service of its own, since requests change and delete whatever they meet."""
    with (
        own_database(servers, database_template) as database_url,
        local_service(
            tmp_path_factory.mktemp("random"), database_url=database_url, redis_url=own_redis(servers), worker=False
        ) as running,
    ):
        yield running


def drawn(service: Service, seed: int) -> Drawn:
    talk = Talk.begin(service)
    talk.batch(lines(24))
    talk.compact()
    message, segment = talk.history()[0]["id"], talk.get("/segments")["data"][0]["segment_id"]
    ids = {"conversation_id": talk.id, "message_id": message, "segment_id": segment}
    ids["compaction_id"] = talk.compactions()[0]["id"]
    made = Drawn(seed, talk.http, ids)
    made.play()
    return made


@pytest.mark.case("53")
@pytest.mark.parametrize("seed", range(1, 11))
def test_no_request_that_is_drawn_ends_in_a_5xx(service: Service, seed: int) -> None:
    found = drawn(service, seed)
    assert found.failed == []
    assert sum(status < 300 for status in found.statuses) > 10, "some are good"
    assert "http.failed" not in service.api.log_of_test


@pytest.mark.control("53")
def test_control_a_defect_of_one_route_is_found(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(ConversationService, "get", broken)
    assert any("internal_error" in one for one in drawn_without_talk(service).failed)


def drawn_without_talk(service: Service) -> Drawn:
    made = Drawn(1, service.client(), {"conversation_id": str(uuid4())})
    made.play()
    return made
