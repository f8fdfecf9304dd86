"""Keys that expire, keys of one end user, and who did what, over HTTP with a real database; each with its control."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final
from uuid import UUID, uuid4

import httpx
import pytest
from pydantic import SecretStr
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from app.core.model.errors import DependencyUnavailableError, InvalidInputError
from app.storage.unit_of_work import UnitOfWorkFactory
from app.usecases.admin.keys import DEFAULT_TENANT
from tests.integration.keyed import keyed
from tests.integration.test_tenancy import copy

DOCUMENT: Final = json.loads((Path(__file__).parents[2] / "openapi.json").read_text(encoding="utf-8"))
SAID: Final = {"role": "user", "content": "the copper kettle"}
BODIES: Final[dict[str, Any]] = {
    "/conversations/{conversation_id}/messages": SAID,
    "/conversations/{conversation_id}/messages/batch": {"messages": [SAID]},
    "/conversations/{conversation_id}/chat": {"content": "hello"},
    "/conversations/{conversation_id}/ui": {
        "message": {"id": "m", "role": "user", "parts": [{"type": "text", "text": "hi"}]}
    },
    "/conversations/{conversation_id}/restore": {"state_version": 0},
    "/conversations/{conversation_id}/segments": {"from_seq": 1, "to_seq": 2, "level": "brief"},
    "/conversations/{conversation_id}/anchors/{anchor_id}": {"status": "resolved"},
    "/conversations/{conversation_id}": {"title": "stolen"},
    "/v1/conversations/{conversation_id}": {"metadata": {"stolen": "1"}},
    "/v1/conversations/{conversation_id}/items": {"items": [{"type": "message", "role": "user", "content": "stolen"}]},
}
ADMINS: Final = ("/release", "/retry")
QUERIES: Final = {"/conversations/{conversation_id}/search": {"q": "kettle"}}


async def begun(client: httpx.AsyncClient, **body: Any) -> str:
    response = await client.post("/conversations", json=body)
    assert response.status_code == 201, response.text
    return str(response.json()["id"])


def operations() -> list[tuple[str, str]]:
    """The operations of requests about one conversation, or about something in it."""
    return [
        (method.upper(), path)
        for path, item in DOCUMENT["paths"].items()
        for method in item
        if "{" in path and not path.startswith("/v1/models") and not path.endswith(("/events", *ADMINS))
    ]


def filled(path: str, ids: dict[str, str]) -> str:
    here = dict(ids)
    if path.startswith("/v1/"):
        here["conversation_id"] = "conv_" + UUID(ids["conversation_id"]).hex
    here["response_id"] = "resp_" + UUID(ids["turn_id"]).hex
    here["item_id"] = "msg_" + UUID(ids["message_id"]).hex
    for name, value in here.items():
        path = path.replace("{" + name + "}", value)
    assert "{" not in path, path
    return path


async def asked(client: httpx.AsyncClient, method: str, path: str, ids: dict[str, str]) -> tuple[int, Any]:
    body: dict[str, Any] | None = {} if method in {"POST", "PATCH"} else None
    sent: dict[str, Any] = {"json": BODIES.get(path, body) if body is not None else None, "params": QUERIES.get(path)}
    if (method, path) == ("POST", "/conversations/{conversation_id}/files"):
        sent = {"content": b"hi", "params": {"name": "a.md"}, "headers": {"Content-Type": "text/markdown"}}
    response = await client.request(method, filled(path, ids), **sent)
    problem = response.json() if response.content and response.status_code >= 400 else {}
    return response.status_code, problem.get("code") or problem.get("error", {}).get("code")


@pytest.mark.daily(1)
@pytest.mark.parametrize("name", ["Ann O'Neil <ann@example.com>", "Оля; --", "a" * 255])
async def test_an_end_user_may_be_called_anything(begin: UnitOfWorkFactory, name: str) -> None:
    async with keyed(begin) as api:
        _, own = await api.key(str(uuid4()), frozenset({"read", "write"}), user_id=name)
        async with api.client(own) as client:
            made = await begun(client, title="own")
            said = await client.post(f"/conversations/{made}/messages", json=SAID)
            seen = await client.get(f"/conversations/{made}/context")
    assert (said.status_code, seen.status_code) == (201, 200)


async def test_a_key_of_one_end_user_sees_his_conversations_alone(
    begin: UnitOfWorkFactory, engine: AsyncEngine
) -> None:
    async with keyed(begin) as api:
        tenant = str(uuid4())
        (_, hers), (_, his), (_, everybodys) = (
            await api.key(tenant, frozenset({"read", "write"}), user_id="alice"),
            await api.key(tenant, frozenset({"read", "write"}), user_id="bob"),
            await api.key(tenant),
        )
        async with api.client(hers) as alice, api.client(his) as bob, api.client(everybodys) as whole:
            own, theirs = await begun(alice, title="own"), await begun(bob, title="theirs")
            for client, one in ((alice, own), (bob, theirs)):
                await client.post(f"/conversations/{one}/messages/batch", json={"messages": [SAID] * 3})
                await client.post(f"/conversations/{one}/chat", json={"content": "hello"})
            assert (await alice.get(f"/conversations/{own}")).json()["user_id"] == "alice"
            assert (await alice.post("/conversations", json={"user_id": "bob"})).status_code == 403
            for client, expected in ((alice, [own]), (bob, [theirs]), (whole, [theirs, own])):
                listed = (await client.get("/conversations")).json()["data"]
                assert [one["id"] for one in listed] == expected
            assert (await alice.get("/conversations?user_id=bob")).json()["data"] == []
            turns = (await alice.get("/stats")).json(), (await whole.get("/stats")).json()
            assert json.dumps(turns[0]) != json.dumps(turns[1])

            there = await ids_of(whole, engine, theirs)
            absent = {name: str(uuid4()) for name in there} | {"segment_id": "s", "message_id": str(uuid4())}
            before = await rows(engine, theirs)
            assert len(operations()) > 40
            found = {one: await asked(alice, *one, there) for one in operations()}
            assert found == {one: await asked(alice, *one, absent) for one in operations()}, "the same as nothing"
            refused = {one: told[0] for one, told in found.items() if told[0] != 404}
            assert refused == {("DELETE", "/users/{user_id}"): 403}
            assert await rows(engine, theirs) == before
            seen = {one: (await asked(whole, *one, there))[0] for one in operations() if one[0] == "GET"}
            reached = [status for status in seen.values() if status == 200]
            assert len(reached) > 12, "control: who may, finds them"

            named = {"messages": [{"role": "user", "content": "hello"}], "model": "throughline"}
            header = {"X-Conversation-Id": "conv_" + UUID(theirs).hex}
            assert (await alice.post("/v1/chat/completions", json=named, headers=header)).status_code == 404
            same = {"X-Conversation-Id": "a name of a frontend"}
            told = [await one.post("/v1/chat/completions", json=named, headers=same) for one in (alice, bob)]
            assert len({one.headers["x-throughline"].split(";")[1] for one in told}) == 2, "one name, two conversations"
            once = {"Idempotency-Key": "the same"}
            made = [await one.post("/conversations", json={}, headers=once) for one in (alice, bob)]
            assert [one.status_code for one in made] == [201, 201]
            assert made[0].json()["id"] != made[1].json()["id"]


async def ids_of(client: httpx.AsyncClient, engine: AsyncEngine, conversation: str) -> dict[str, str]:
    messages = (await client.get(f"/conversations/{conversation}/messages")).json()["data"]
    async with engine.connect() as connection:
        turn = await connection.scalar(text("SELECT id FROM turns WHERE conversation_id = :id"), {"id": conversation})
    compaction = await client.post(f"/conversations/{conversation}/compact", json={})
    return {
        "conversation_id": conversation,
        "message_id": messages[0]["id"],
        "anchor_id": str(uuid4()),
        "segment_id": "s",
        "compaction_id": compaction.json().get("id") or str(uuid4()),
        "turn_id": str(turn),
        "file_id": str(uuid4()),
        "user_id": "bob",
    }


async def rows(engine: AsyncEngine, conversation: str) -> list[Any]:
    async with engine.connect() as connection:
        found: list[Any] = []
        for table, column in (("conversations", "id"), ("messages", "conversation_id"), ("turns", "conversation_id")):
            statement = text(f"SELECT to_jsonb(r)::text FROM {table} r WHERE {column} = :id ORDER BY 1")  # noqa: S608
            found += (await connection.execute(statement, {"id": conversation})).scalars().all()
        return found


async def test_a_key_of_one_end_user_cannot_be_an_administrator_s(begin: UnitOfWorkFactory) -> None:
    async with keyed(begin) as api:
        for scopes, own in (({"read", "admin"}, {"user_id": "u"}), ({"read"}, {"user_id": " "})):
            with pytest.raises(InvalidInputError):
                await api.container.keys.create("t", "n", scopes, **own)  # type: ignore[arg-type]


async def test_a_key_expires(begin: UnitOfWorkFactory) -> None:
    async with keyed(begin) as api:
        key_id, secret = await api.key(str(uuid4()), expires_at=datetime.now(UTC) + timedelta(days=1))
        async with api.client(secret) as client:
            assert (await client.get("/limits")).status_code == 200, "control"
            async with begin(None) as uow:
                await uow.keys.change(key_id, expires_at=datetime.now(UTC) - timedelta(seconds=1))
                await uow.commit()
            assert (await client.get("/limits")).status_code == 401
        with pytest.raises(InvalidInputError):
            await api.container.keys.change(key_id, expires_at=datetime.now(UTC) - timedelta(days=1))


async def test_what_becomes_of_a_key_in_another_process_holds_at_its_next_use(begin: UnitOfWorkFactory) -> None:
    async with keyed(begin) as api:
        key_id, secret = await api.key(str(uuid4()))
        _, other = await api.key(str(uuid4()))
        async with api.client(secret) as client, api.client(other) as untouched:
            for each in (client, untouched, client, untouched):
                assert (await each.get("/limits")).status_code == 200, "control"
            async with begin(None) as uow:
                await uow.keys.change(key_id, limits={"requests_per_minute": 7})
                await uow.commit()
            assert (await client.get("/limits")).headers["RateLimit-Limit"] == "7"
            async with begin(None) as uow:
                await uow.keys.revoke(key_id, datetime.now(UTC))
                await uow.commit()
            assert [(await each.get("/limits")).status_code for each in (client, untouched)] == [401, 200]


@pytest.mark.long
async def test_who_did_what(begin: UnitOfWorkFactory, engine: AsyncEngine) -> None:
    async with keyed(begin) as api:
        tenant = str(uuid4())
        key_id, secret = await api.key(tenant)
        _, reader = await api.key(tenant, frozenset({"read", "write"}))
        _, stranger = await api.key(str(uuid4()))
        async with api.client(secret) as client:
            one = await begun(client, policy={"context_window": 4_000})
            said = (await client.post(f"/conversations/{one}/messages", json=SAID)).json()["id"]
            more = [{"role": "user", "content": f"crate {seq} of the shipment came " * 9} for seq in range(9)]
            await client.post(f"/conversations/{one}/messages/batch", json={"messages": more})
            assert (await client.post(f"/conversations/{one}/compact", json={})).json()["status"] == "applied"
            await client.patch(f"/conversations/{one}", json={"title": "no policy"})
            await client.patch(f"/conversations/{one}", json={"policy": {"keep_tail_messages": 3}})
            refused = await client.post(f"/conversations/{one}/restore", json={"state_version": 7})
            assert refused.status_code == 404, "control: what was not done is not on record"
            await client.post(f"/conversations/{one}/restore", json={"state_version": 0})
            await client.get(f"/conversations/{one}/export")
            await client.delete(f"/conversations/{one}/messages/{said}")
            await client.delete(f"/conversations/{one}")
            told = await everything(client)
        done = [(entry["actor"], entry["action"], entry["object_id"]) for entry in told]
        assert done[:2] == [("cli", "key.created", str(key_id)), ("cli", "key.created", done[1][2])]
        assert done[2:] == [
            ("key", "policy.changed", one),
            ("key", "state.restored", one),
            ("key", "conversation.exported", one),
            ("key", "message.erased", said),
            ("key", "conversation.deleted", one),
        ]
        assert {entry["key_id"] for entry in told[2:]} == {str(key_id)}
        assert "kettle" not in json.dumps(told)
        async with api.client(stranger) as client:
            assert [entry["action"] for entry in await everything(client)] == ["key.created"], "its own tenant's"
        async with api.client(reader) as client:
            assert (await client.get("/audit")).status_code == 403
        async with begin(told_tenant := await tenant_id(engine, tenant)) as uow:
            assert told_tenant is not None
            assert await uow.audit.forget_older_than(timedelta(days=1), limit=99) == 0, "control"
            assert await uow.audit.forget_older_than(timedelta(0), limit=99) == len(told)


async def everything(client: httpx.AsyncClient) -> list[Any]:
    """All entries, read in pages of two."""
    found: list[Any] = []
    after: dict[str, str] = {}
    while True:
        page = (await client.get("/audit", params={"limit": "2", **after})).json()
        found += page["data"]
        if not page["has_more"]:
            return found
        after = {"after": page["next_cursor"]}


async def tenant_id(engine: AsyncEngine, name: str) -> UUID | None:
    async with engine.connect() as connection:
        found = await connection.scalar(text("SELECT tenant_id FROM tenants WHERE name = :name"), {"name": name})
    return found if found is None else UUID(str(found))


async def test_keys_that_are_not_valid_are_counted_by_address(begin: UnitOfWorkFactory) -> None:
    async with keyed(begin, failed_keys_per_minute=3) as api:
        _, secret = await api.key(str(uuid4()))
        async with api.client(secret) as good, api.client("tl_wrong") as bad:
            assert (await good.get("/limits")).status_code == 200
            statuses = [(await bad.get("/limits")).status_code for _ in range(5)]
            assert statuses == [401, 401, 401, 429, 429]
            told = await bad.get("/v1/models")
            assert (told.status_code, told.json()["error"]["code"]) == (429, "rate_limit_exceeded")
            assert int(told.headers["retry-after"]) > 1
            assert (await good.get("/limits")).status_code == 200, "nobody is shut out by others behind his proxy"
    async with keyed(begin, failed_keys_per_minute=0) as api, api.client("tl_wrong") as bad:  # control
        assert {(await bad.get("/limits")).status_code for _ in range(9)} == {401}


async def test_forged_sessions_are_counted_with_such_keys_and_no_session_writes(
    begin: UnitOfWorkFactory, engine: AsyncEngine
) -> None:
    async with keyed(begin, failed_keys_per_minute=3, auth_required=True) as api, api.client() as browser:
        name = str(uuid4())
        _, secret = await api.key(name)
        origin = {"Origin": "http://localhost"}
        assert (await browser.post("/ui/session", json={"key": secret}, headers=origin)).status_code == 204
        async with engine.connect() as connection:
            version = text("SELECT xmin::text FROM tenants WHERE name = :name")
            before = await connection.scalar(version, {"name": name})
        tenant = (await tenant_id(engine, name) or uuid4()).hex
        forged = [{"Cookie": f"throughline_session={tenant}.dGw{number}"} for number in range(5)]
        async with api.client() as stranger:
            statuses = [(await stranger.get("/conversations", headers=one)).status_code for one in forged]
        assert statuses == [401, 401, 401, 429, 429]
        assert (await browser.get("/conversations")).status_code == 200, "who is logged in stays so"
        async with engine.connect() as connection:
            assert await connection.scalar(version, {"name": name}) == before


async def test_a_page_with_a_cookie_of_before_another_sealing_key_locks_nobody_out(begin: UnitOfWorkFactory) -> None:
    name, origin = str(uuid4()), {"Origin": "http://localhost"}
    async with keyed(begin, auth_required=True, sealing_key=SecretStr("one" * 9)) as api, api.client() as browser:
        _, secret = await api.key(name)
        assert (await browser.post("/ui/session", json={"key": secret}, headers=origin)).status_code == 204
        kept = {"Cookie": f"throughline_session={browser.cookies['throughline_session']}"}
    rules: dict[str, Any] = {"failed_keys_per_minute": 3, "auth_required": True, "sealing_key": SecretStr("other" * 9)}
    async with keyed(begin, **rules) as api, api.client() as browser:
        statuses = [(await browser.get("/conversations", headers=kept)).status_code for _ in range(5)]
        assert statuses == [401] * 5
        assert (await browser.post("/ui/session", json={"key": secret}, headers=origin)).status_code == 204


@pytest.mark.parametrize(("asks", "instead"), [(False, "leave it out"), (True, "use another")])
async def test_a_key_that_is_not_valid_is_told_what_to_do(
    begin: UnitOfWorkFactory, *, asks: bool, instead: str
) -> None:
    async with keyed(begin, auth_required=asks) as api, api.client("tl_wrong") as bad:
        told = (await bad.get("/conversations")).json()
        assert (told["code"], instead in told["detail"]) == ("unauthenticated", True)


async def test_what_the_open_mode_does_is_on_record_too(begin: UnitOfWorkFactory) -> None:
    async with keyed(begin) as api, api.client() as client:
        one = await begun(client)
        await client.delete(f"/conversations/{one}")
        last = (await client.get("/audit?order=desc&limit=1")).json()["data"][0]
        assert (last["actor"], last["key_id"], last["object_id"]) == ("open", None, one)


class TestAnErasedTenant:
    async def test_of_requests_without_a_key_is_made_again(self, begin: UnitOfWorkFactory, engine: AsyncEngine) -> None:
        async with keyed(begin) as api, api.client() as client:
            await begun(client, title="old")
            removal = api.container.removal
            await removal.erase_tenant(await removal.tenant_named(DEFAULT_TENANT))
            refused = await client.post("/conversations", json={"title": "would be erased too"})
            assert (refused.status_code, refused.json()["code"]) == (503, "dependency_unavailable")
            while await removal.work() or await tenant_id(engine, DEFAULT_TENANT):
                pass
            await begun(client, title="new")
            listed = (await client.get("/conversations")).json()["data"]
            assert [one["title"] for one in listed] == ["new"]

    async def test_gets_no_key_until_it_is_erased(self, begin: UnitOfWorkFactory, engine: AsyncEngine) -> None:
        """A key that was made while a provider's copies wait to be deleted would end with them."""
        tenant = str(uuid4())
        async with keyed(begin) as api:
            _, secret = await api.key(tenant)
            async with api.client(secret) as client:
                conversation_id = UUID(await begun(client))
            erased, removal = await tenant_id(engine, tenant), api.container.removal
            assert erased is not None
            async with begin(erased) as uow:
                await uow.copies.note(copy(erased, "resp_1", conversation_id=conversation_id))
                await uow.commit()
            await removal.erase_tenant(erased)
            with pytest.raises(DependencyUnavailableError, match="is being erased"):
                await api.key(tenant)
            while await removal.work():
                pass
            await removal.work()
            _, secret = await api.key(tenant)
            assert await tenant_id(engine, tenant) not in {None, erased}
            async with begin(erased) as uow:
                await uow.copies.forget("resp_1")
                await uow.commit()
            await removal.work()
            async with api.client(secret) as client:
                await begun(client)
            async with engine.connect() as connection:
                names = (await connection.scalars(text("SELECT name FROM tenants"))).all()
            assert [name for name in names if name != DEFAULT_TENANT] == [tenant]
