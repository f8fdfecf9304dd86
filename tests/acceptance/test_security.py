"""Keys, scopes and tenants: what belongs to somebody else looks exactly like what does not exist."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import httpx
import pytest

from app.bootstrap import build_container
from app.core.model.records import Scope
from app.devserver import Endpoints
from app.settings import Settings
from app.usecases.admin.keys import ALL_SCOPES
from tests.acceptance.conftest import own_redis, uses_processes
from tests.acceptance.local import local_service
from tests.acceptance.service import Service, running_service, until
from tests.acceptance.sockets import over_socket
from tests.acceptance.talk import MANUAL, Json, Talk, good, lines, refused
from tests.servers import ROOT, execute_sql, with_database

OPENAPI: Final[Json] = json.loads((ROOT / "openapi.json").read_text())
OPEN: Final = {"/healthz", "/readyz", "/metrics", "/presets", "/tokens/count"}
"""Paths that do not name a tenant's object."""
BODIES: Final[dict[tuple[str, str], Json]] = {
    ("post", "/conversations"): {"title": "Mine"},
    ("patch", "/conversations/{conversation_id}"): {"title": "Mine"},
    ("post", "/conversations/{conversation_id}/messages"): {"role": "user", "content": "Hello."},
    ("post", "/conversations/{conversation_id}/messages/batch"): {"messages": [{"role": "user", "content": "Hello."}]},
    ("post", "/conversations/{conversation_id}/chat"): {"content": "Hello."},
    ("post", "/conversations/{conversation_id}/ui"): {
        "message": {"id": "1", "role": "user", "parts": [{"type": "text", "text": "Hello."}]}
    },
    ("post", "/conversations/{conversation_id}/restore"): {"state_version": 1},
    ("post", "/tokens/count"): {"text": "Hello."},
    ("patch", "/conversations/{conversation_id}/anchors/{anchor_id}"): {"status": "resolved"},
    ("post", "/conversations/{conversation_id}/segments"): {"from_seq": 1, "to_seq": 2, "level": "brief"},
}
FILES: Final = ("post", "/conversations/{conversation_id}/files")
QUERIES: Final = {("get", "/conversations/{conversation_id}/search"): {"q": "hello"}, FILES: {"name": "a.md"}}
ALL_ROUTES: Final = [(method, path) for path, methods in OPENAPI["paths"].items() for method in methods]
ROUTES: Final = [route for route in ALL_ROUTES if not route[1].startswith("/v1/")]
OPENAI_ROUTES: Final = [route for route in ALL_ROUTES if route[1].startswith("/v1/")]
HELLO: Final = {"role": "user", "content": "Hello."}
OPENAI_BODY: Final = {"model": "throughline", "input": "Hello.", "messages": [HELLO], "items": [HELLO], "metadata": {}}
"""A body for every route of OpenAI's API; each reads the fields that it knows."""
OBJECTS: Final = ("conversation_id", "message_id", "compaction_id", "anchor_id", "segment_id", "file_id")
ERASE_USER: Final = ("delete", "/users/{user_id}")
"""A route that accepts any name; ``test_a_user_is_erased_in_the_own_tenant_alone`` tests whose conversations it erases.
"""
END_USER: Final = "emil"
"""An end user of Alice's tenant, with a key for his own conversations."""
NESTED: Final = [(method, path) for method, path in ALL_ROUTES if path.count("{") > 1]
"""Every route with more than one id: a conversation and something in it."""
OBJECT_ROUTES: Final = [route for route in ROUTES if "{" in route[1] and route != ERASE_USER]
GUARDED_ROUTES: Final = [route for route in ROUTES if route[1] not in OPEN]


@dataclass(frozen=True, slots=True, kw_only=True)
class Guarded:
    """A service that wants keys, and the keys of its tenants."""

    service: Service
    keys: dict[str, str]

    def client(self, name: str | None) -> httpx.Client:
        return self.service.client(self.keys[name] if name else None)


async def make_keys(settings: Settings) -> dict[str, str]:
    container = await build_container(settings)
    wanted: dict[str, tuple[str, frozenset[Scope]]] = {
        "alice": ("alice", ALL_SCOPES),
        "bob": ("bob", ALL_SCOPES),
        "reader": ("alice", frozenset({"read"})),
        "writer": ("alice", frozenset({"read", "write"})),
        "revoked": ("alice", ALL_SCOPES),
        END_USER: ("alice", frozenset({"read", "write"})),
    }
    try:
        made = {
            name: await container.keys.create(tenant, name, scopes, user_id=name if name == END_USER else None)
            for name, (tenant, scopes) in wanted.items()
        }
        await container.keys.revoke(made["revoked"][0].id)
    finally:
        await container.close()
    return {name: secret for name, (_, secret) in made.items()}


def in_a_thread(settings: Settings) -> dict[str, str]:
    """Make the keys in a thread, since the test may run in a loop already."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(lambda: asyncio.run(make_keys(settings))).result(60)


@pytest.fixture(scope="module")
def guarded(
    servers: Endpoints,
    database_template: str,
    tmp_path_factory: pytest.TempPathFactory,
    request: pytest.FixtureRequest,
) -> Iterator[Guarded]:
    folder = tmp_path_factory.mktemp("guarded")
    execute_sql(servers.database_url, f"CREATE DATABASE guarded TEMPLATE {database_template}")
    database_url, redis_url = with_database(servers.database_url, "guarded"), own_redis(servers)
    keys = in_a_thread(Settings(_env_file=None, database_url=database_url, redis_url=redis_url))
    settings = {"THROUGHLINE_AUTH_REQUIRED": "1", "THROUGHLINE_FAILED_KEYS_PER_MINUTE": "0"}
    run = running_service if uses_processes(request.node) else local_service
    with run(folder, database_url=database_url, redis_url=redis_url, worker=False, settings=settings) as service:
        yield Guarded(service=service, keys=keys)
    execute_sql(servers.database_url, "DROP DATABASE guarded WITH (FORCE)")


@pytest.fixture(scope="module")
def alices(guarded: Guarded) -> Talk:
    """A conversation of Alice with messages, a state and a compaction."""
    talk = Talk.begin(guarded.service, key=guarded.keys["alice"], policy=MANUAL, title="Alice's own")
    talk.batch(lines(40))
    talk.compact()
    return talk


def call(client: httpx.Client, method: str, path: str, ids: dict[str, str]) -> httpx.Response:
    if (method, path) == FILES:
        type_ = {"Content-Type": "text/markdown"}
        return client.request(method, path.format(**ids), content=b"Hello.", params=QUERIES[FILES], headers=type_)
    body = BODIES.get((method, path), {} if method in {"post", "patch"} else None)
    return client.request(method, path.format(**ids), json=body, params=QUERIES.get((method, path)))


@pytest.fixture(scope="module")
def ids(alices: Talk) -> dict[str, str]:
    """The ids of the objects in her conversation."""
    return ids_in(alices)


def ids_in(talk: Talk) -> dict[str, str]:
    return {
        "conversation_id": talk.id,
        "message_id": talk.history()[0]["id"],
        "compaction_id": talk.compactions()[0]["id"],
        "anchor_id": talk.get("/anchors")["data"][0]["id"],
        "segment_id": talk.get("/segments")["data"][0]["segment_id"],
        "user_id": "nobody",
        "file_id": attached(talk),
        "item_id": f"msg_{talk.history()[1]['id'].replace('-', '')}",
    }


def attached(talk: Talk) -> str:
    added = call(talk.http, *FILES, {"conversation_id": talk.id})
    assert added.status_code == 201, added.text
    return str(added.json()["id"])


def unknown_ids() -> dict[str, str]:
    return {name: str(uuid4()) for name in OBJECTS} | {"item_id": f"msg_{uuid4().hex}"}


def as_named_by(path: str, ids: dict[str, str]) -> dict[str, str]:
    """The ids in the form that a path has for them: OpenAI's API names conversations in its own."""
    own = f"conv_{ids['conversation_id'].replace('-', '')}"
    return {**ids, "conversation_id": own} if path.startswith("/v1/") else ids


def without_id(response: httpx.Response) -> Any:
    return {name: value for name, value in response.json().items() if name != "request_id"}


@pytest.mark.daily(21)
@pytest.mark.parametrize(("method", "path"), OBJECT_ROUTES, ids=lambda value: value)
@pytest.mark.case("51")
def test_another_tenants_object_is_the_same_404_as_an_unknown_one(
    guarded: Guarded, alices: Talk, ids: dict[str, str], method: str, path: str
) -> None:
    before = alices.get(), alices.history(), alices.compactions()
    with guarded.client("bob") as bob:
        foreign = call(bob, method, path, ids)
        unknown = call(bob, method, path, unknown_ids())
    refused(foreign, 404, "not_found")
    assert without_id(foreign) == without_id(unknown)
    assert foreign.headers.keys() == unknown.headers.keys()
    assert (alices.get(), alices.history(), alices.compactions()) == before
    if method == "get" and not path.endswith("/events"):
        assert call(alices.http, method, path, ids).is_success, "control: its owner sees it"


@pytest.mark.daily(1)
@pytest.mark.parametrize("who", ["bob", END_USER])
@pytest.mark.case("51")
def test_no_id_inside_of_a_conversation_leads_to_anothers(
    guarded: Guarded, alices: Talk, ids: dict[str, str], who: str
) -> None:
    """Another's id below an own conversation, and an own id below another's: both are as unknown as any other."""
    own_talk = Talk.begin(guarded.service, key=guarded.keys[who], policy=MANUAL)
    own_talk.batch(
        [(role, f"About the ferry from Calais harbour: {text} The ferry waits.") for role, text in lines(10)]
    )
    own_talk.compact()
    own = ids_in(own_talk)
    assert own.items() & ids.items() == {("user_id", "nobody")}, "control: all ids differ"
    both = [(talk.get(), talk.history(), talk.get("/anchors"), talk.get("/files")) for talk in (alices, own_talk)]
    with guarded.client(who) as client:
        for method, path in NESTED:
            answers = []
            for conversation, inside in ((own, ids), (ids, own), (own, {})):
                mixed = {**unknown_ids(), **inside, "conversation_id": conversation["conversation_id"]}
                answer = call(client, method, path, as_named_by(path, mixed))
                assert answer.status_code == 404, (method, path, answer.text)
                answers.append(re.sub(r"[0-9a-f-]{32,36}", "<id>", json.dumps(without_id(answer))))
            assert answers[0] == answers[2], (method, path)
            if method == "get":
                assert call(client, method, path, as_named_by(path, own)).is_success, "control: its owner sees it"
        for path, field, name in (
            ("/compact", "up_to_message_id", "message_id"),
            ("/segments", "segment_id", "segment_id"),
        ):
            body = {field: ids[name], **({"level": "brief"} if path == "/segments" else {})}
            answer = client.post(f"/conversations/{own['conversation_id']}{path}", json=body)
            assert answer.status_code in {404, 422}, (path, answer.text)
    assert [
        (talk.get(), talk.history(), talk.get("/anchors"), talk.get("/files")) for talk in (alices, own_talk)
    ] == both
    assert own_talk.http.delete(f"/conversations/{own_talk.id}").status_code == 204


def test_another_tenants_history_as_a_frontend_reads_it(guarded: Guarded, alices: Talk) -> None:
    with guarded.client("bob") as bob:
        foreign, unknown = (
            bob.get(f"/conversations/{id_}/messages", params={"format": "ui"}) for id_ in (alices.id, uuid4())
        )
    refused(foreign, 404, "not_found")
    assert without_id(foreign) == without_id(unknown)
    assert alices.get("/messages", format="ui")["data"], "control: its owner sees it"


# The same for clients of OpenAI's API, in its form.


@pytest.fixture(scope="module")
def openai_ids(alices: Talk) -> dict[str, str]:
    """The ids that OpenAI's API has for objects of her conversation, with a new response."""
    conversation = f"conv_{alices.id.replace('-', '')}"
    made = good(alices.http.post("/v1/responses", json={"input": "What did we say?", "conversation": conversation}))
    compacted = good(alices.http.post("/v1/responses/compact", json=OPENAI_BODY))
    return {
        "conversation_id": conversation,
        "response_id": made["id"],
        "item_id": made["output"][-1]["id"],
        "model": "throughline",
        "token": compacted["output"][-1]["encrypted_content"],
    }


def openai_call(client: httpx.Client, method: str, path: str, ids: dict[str, str]) -> httpx.Response:
    return client.request(method, path.format(**ids), json=OPENAI_BODY if method == "post" else None)


def without_ids(response: httpx.Response) -> str:
    """The text of an answer without the id that was asked for."""
    return re.sub(r"[0-9a-f]{32}", "<id>", response.text)


def openai_refused(response: httpx.Response, status: int, *codes: str) -> Any:
    error = response.json()["error"]
    assert response.status_code == status, response.text
    assert error["code"] in codes, response.text
    return error


@pytest.mark.parametrize(
    ("method", "path"), [one for one in OPENAI_ROUTES if "_id}" in one[1]], ids=lambda value: value
)
@pytest.mark.case("51")
def test_another_tenants_object_is_the_same_404_there(
    guarded: Guarded, alices: Talk, openai_ids: dict[str, str], method: str, path: str
) -> None:
    before = alices.get(), alices.history(), alices.compactions()
    unknown_ids = {name: re.sub(r"[0-9a-f]{32}", uuid4().hex, value) for name, value in openai_ids.items()}
    with guarded.client("bob") as bob:
        foreign = openai_call(bob, method, path, openai_ids)
        unknown = openai_call(bob, method, path, unknown_ids)
    openai_refused(foreign, 404, "not_found")
    assert without_ids(foreign) == without_ids(unknown)
    assert foreign.headers.keys() == unknown.headers.keys()
    assert (alices.get(), alices.history(), alices.compactions()) == before
    if method == "get":
        assert openai_call(alices.http, method, path, openai_ids).is_success, "control: its owner sees it"


NAMING: Final[dict[str, tuple[str, Json]]] = {
    "conversation": ("/v1/responses", {"input": "x", "conversation": "{conversation_id}"}),
    "previous": ("/v1/responses", {"input": "x", "previous_response_id": "{response_id}"}),
    "previous, unkept": ("/v1/responses", {"input": "x", "previous_response_id": "{response_id}", "store": False}),
    "streamed": ("/v1/responses", {"input": "x", "previous_response_id": "{response_id}", "stream": True}),
    "reference": ("/v1/responses", {"input": [{"type": "item_reference", "id": "{item_id}"}, HELLO]}),
    "compacted": ("/v1/responses", {"input": [{"type": "compaction", "encrypted_content": "{token}"}, HELLO]}),
    "compaction": ("/v1/responses/compact", {"previous_response_id": "{response_id}", "model": "throughline"}),
    "compaction of all": ("/v1/responses/compact", {"conversation": "{conversation_id}", "model": "throughline"}),
    "count": ("/v1/responses/input_tokens", {"conversation": "{conversation_id}"}),
    "chat": ("/v1/chat/completions", {**OPENAI_BODY, "conversation": "{conversation_id}"}),
    "chat, streamed": ("/v1/chat/completions", {**OPENAI_BODY, "conversation": "{conversation_id}", "stream": True}),
    "metadata": ("/v1/chat/completions", {**OPENAI_BODY, "metadata": {"conversation_id": "{conversation_id}"}}),
}


@pytest.mark.parametrize("name", NAMING)
@pytest.mark.case("51")
def test_no_field_leads_to_another_tenant(
    guarded: Guarded, alices: Talk, openai_ids: dict[str, str], name: str
) -> None:
    path, body = NAMING[name]
    text = json.dumps(body)
    for field, value in openai_ids.items():
        text = text.replace(f"{{{field}}}", value)
    before = alices.get(), alices.history(), alices.compactions()
    with guarded.client("bob") as bob:
        foreign = bob.post(path, content=text, headers={"Content-Type": "application/json"})
        unknown = re.sub(r"_[0-9a-f]{32}", f"_{uuid4().hex}", text)
        nobodys = bob.post(path, content=unknown, headers={"Content-Type": "application/json"})
        assert without_ids(foreign) == without_ids(nobodys)
    assert foreign.status_code == (400 if name == "compacted" else 404), foreign.text
    assert (alices.get(), alices.history(), alices.compactions()) == before


@pytest.mark.case("51")
def test_no_frame_of_a_socket_leads_to_another_tenant(
    guarded: Guarded, alices: Talk, openai_ids: dict[str, str]
) -> None:
    before = alices.get(), alices.history(), alices.compactions()
    frames = [json.dumps(body) for path, body in NAMING.values() if path == "/v1/responses" and "stream" not in body]
    for field, value in openai_ids.items():
        frames = [frame.replace(f"{{{field}}}", value) for frame in frames]
    bob = {"Authorization": f"Bearer {guarded.keys['bob']}"}
    told = asyncio.run(over_socket(guarded.service.url, [json.loads(frame) for frame in frames], bob))
    assert [event["status"] for event in told] == [404, 404, 404, 404, 400]
    assert (alices.get(), alices.history(), alices.compactions()) == before


def test_a_header_with_anothers_id_leads_nowhere(guarded: Guarded, alices: Talk, openai_ids: dict[str, str]) -> None:
    """A header that is not one of our ids is the tenant's own name, even if another tenant uses the same."""
    before = alices.history()
    with guarded.client("bob") as bob:
        named = {"X-Conversation-Id": openai_ids["conversation_id"]}
        openai_refused(bob.post("/v1/chat/completions", json=OPENAI_BODY, headers=named), 404, "not_found")
        told = [
            client.post("/v1/chat/completions", json=OPENAI_BODY, headers={"X-Conversation-Id": "the very same"})
            for client in (bob, alices.http)
        ]
        own = {"X-Conversation-Id": alices.id}
        answered = good(bob.post("/v1/chat/completions", json=OPENAI_BODY, headers=own))
        for made in good(bob.get("/conversations"))["data"]:
            bob.delete(f"/conversations/{made['id']}")
    assert len({response.headers["x-throughline"].split("; ")[1] for response in told}) == 2
    assert "Alice" not in json.dumps(answered)
    assert alices.history() == before


@pytest.mark.parametrize(("method", "path"), OPENAI_ROUTES, ids=lambda value: value)
def test_keys_and_scopes_hold_there_too(guarded: Guarded, openai_ids: dict[str, str], method: str, path: str) -> None:
    with guarded.client(None) as client:
        for given in (None, "Bearer nonsense", "Bearer", "Basic YTpi", f"Bearer {guarded.keys['revoked']}"):
            client.headers = httpx.Headers({"Authorization": given} if given else {})
            response = openai_call(client, method, path, openai_ids)
            error = openai_refused(response, 401, "invalid_api_key")
            assert response.headers["www-authenticate"] == "Bearer", given
            assert not re.search(r"tl_\w+", error["message"])
    with guarded.client("reader") as reader:
        response = openai_call(reader, method, path, openai_ids)
        if method == "get":
            assert response.is_success
        else:
            openai_refused(response, 403, "forbidden")


def test_lists_hold_only_ones_own(guarded: Guarded, alices: Talk) -> None:
    with guarded.client("bob") as bob:
        others = {item["id"] for item in good(bob.get("/conversations"))["data"]}  # tenants of other tests
        mine = good(bob.post("/conversations", json={"title": "Bob's own"}))
        listed = {item["id"] for item in good(bob.get("/conversations"))["data"]}
        assert listed == others | {mine["id"]}
        assert alices.id not in listed
        assert good(bob.get("/compactions"))["data"] == []
        bob.delete(f"/conversations/{mine['id']}")
    assert alices.id in alices.http.get("/conversations").text
    assert good(alices.http.get("/compactions"))["data"]


def test_a_cursor_of_another_tenant_leads_nowhere(guarded: Guarded, alices: Talk) -> None:
    with guarded.client("bob") as bob:
        own = [good(bob.post("/conversations", json={}))["id"] for _ in range(2)]
        cursor = good(bob.get("/conversations?limit=1"))["next_cursor"]
        shown = good(alices.http.get("/conversations", params={"after": cursor}))["data"]
        assert not {item["id"] for item in shown} & set(own)
        for conversation in own:
            bob.delete(f"/conversations/{conversation}")


def test_a_key_of_idempotency_belongs_to_its_tenant(guarded: Guarded) -> None:
    with guarded.client("alice") as alice, guarded.client("bob") as bob:
        headers = {"Idempotency-Key": "the very same"}
        made = [good(client.post("/conversations", json={}, headers=headers))["id"] for client in (alice, bob)]
        assert made[0] != made[1]
        for client, conversation in zip((alice, bob), made, strict=True):
            assert client.delete(f"/conversations/{conversation}").status_code == 204


@pytest.mark.parametrize(("method", "path"), GUARDED_ROUTES, ids=lambda value: value)
def test_without_a_valid_key_nothing_is_told(guarded: Guarded, ids: dict[str, str], method: str, path: str) -> None:
    with guarded.client(None) as client:
        for given in (None, "Bearer nonsense", "Bearer", "Basic YTpi", f"Bearer {guarded.keys['revoked']}"):
            client.headers = httpx.Headers({"Authorization": given} if given else {})
            response = call(client, method, path, ids)
            problem = refused(response, 401, "unauthenticated")
            assert response.headers["www-authenticate"] == "Bearer", given
            assert not re.search(r"tl_\w+", problem["detail"])


@pytest.mark.parametrize(("method", "path"), GUARDED_ROUTES, ids=lambda value: value)
def test_a_key_does_only_what_its_scopes_say(guarded: Guarded, ids: dict[str, str], method: str, path: str) -> None:
    needed = "admin" if path.startswith("/compactions") and path != "/compactions/{compaction_id}" else None
    needed = "admin" if path in {"/audit", ERASE_USER[1]} else needed
    needed = needed or ("read" if method == "get" else "write")
    with guarded.client("reader") as reader, guarded.client("writer") as writer:
        for client, allowed in ((reader, {"read"}), (writer, {"read", "write"})):
            if needed not in allowed:
                refused(call(client, method, path, ids), 403, "forbidden")
            elif method == "get" and not path.endswith("/events"):
                assert call(client, method, path, ids).is_success


def test_a_user_is_erased_in_the_own_tenant_alone(guarded: Guarded) -> None:
    with guarded.client("alice") as alice, guarded.client("bob") as bob:
        own = [good(alice.post("/conversations", json={"user_id": "dora"}))["id"] for _ in range(2)]
        kept = good(alice.post("/conversations", json={"user_id": "emil"}))["id"]
        foreign = good(bob.post("/conversations", json={"user_id": "dora"}))["id"]
        begun = alice.delete("/users/dora")
        assert begun.status_code == 202, begun.text
        until(lambda: not any(alice.get(f"/conversations/{one}").is_success for one in own), what="the erasure")
        assert alice.get(f"/conversations/{kept}").is_success
        assert bob.get(f"/conversations/{foreign}").is_success
        erased = [entry for entry in alice.get("/audit").json()["data"] if entry["action"] == "user.erased"]
        assert len(erased) == 1
        assert "dora" not in json.dumps(erased)


def test_a_user_whom_nothing_can_name_is_refused(guarded: Guarded) -> None:
    with guarded.client("alice") as alice:
        for name in ("%00", "do%00ra"):
            problem = refused(alice.delete(f"/users/{name}"), 422, "invalid_input")
            assert problem["errors"] == [{"field": "user_id", "message": "must not contain the character NUL"}]


def test_health_needs_no_key(guarded: Guarded) -> None:
    with guarded.client(None) as client:
        assert client.get("/healthz").is_success
        assert client.get("/readyz").is_success


@pytest.mark.long
def test_a_service_that_wants_keys_and_has_none_does_not_start(
    servers: Endpoints, database_template: str, tmp_path: Path
) -> None:
    execute_sql(servers.database_url, f"CREATE DATABASE keyless TEMPLATE {database_template}")
    settings = {"THROUGHLINE_AUTH_REQUIRED": "1"}
    url = with_database(servers.database_url, "keyless")
    service = Service(tmp_path, database_url=url, redis_url=servers.redis_url, settings=settings)
    try:
        service.api.start(wait=False)
        assert service.api.end(60) != 0
    except subprocess.TimeoutExpired:
        pytest.fail("it serves")
    finally:
        service.api.kill()
        execute_sql(servers.database_url, "DROP DATABASE keyless WITH (FORCE)")
    assert "No API key exists, and THROUGHLINE_AUTH_REQUIRED asks for one" in service.api.log
    assert "Traceback" not in service.api.log


def test_neither_logs_nor_problems_tell_what_was_said_or_a_key(guarded: Guarded, alices: Talk) -> None:
    alices.chat("My secret word is zugunruhe.")
    alices.post("/chat", {"content": 7, "zugunruhe": "zugunruhe"})
    assert "zugunruhe" in str(alices.history()), "control"
    log = guarded.service.processes[0].log
    assert log
    assert "zugunruhe" not in log
    assert not any(secret in log for secret in guarded.keys.values())
