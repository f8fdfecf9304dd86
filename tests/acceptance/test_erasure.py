"""``DELETE …/messages/{message_id}``: what was erased is found nowhere, and everything else goes on.

The control of the first test is its own first half: before the erasure every one of these places is found to hold it.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final
from uuid import uuid4

import httpx
import pytest
import redis
from sqlalchemy import text
from sqlalchemy.ext.asyncio import create_async_engine

from tests.acceptance.conftest import StartService, StartTalk
from tests.acceptance.service import Service
from tests.acceptance.talk import MANUAL, EventFollower, Json, Talk, block_of, lines, refused

CANARY: Final = "Kestrel-7741"
SECRET: Final = f"Remember that our vault in Trondheim opens with the phrase {CANARY}, and that Ragnhild has the key."


def database_dump(service: Service) -> dict[str, str]:
    """Every row of every table as text, by table."""

    async def read() -> dict[str, str]:
        engine = create_async_engine(service.database_url)
        async with engine.connect() as connection:
            tables = await connection.execute(text("SELECT tablename FROM pg_tables WHERE schemaname = 'public'"))
            found: dict[str, str] = {}
            for (table,) in tables.all():
                rows = await connection.execute(text(f'SELECT t::text FROM "{table}" AS t'))  # noqa: S608 - our own
                found[table] = "\n".join(row for (row,) in rows.all())
        await engine.dispose()
        return found

    with ThreadPoolExecutor(1) as thread:
        return thread.submit(lambda: asyncio.run(read())).result(60)


def redis_dump(service: Service) -> str:
    """Every key with its value, whatever its type."""
    readers: dict[bytes, Any] = {
        b"string": lambda db, key: db.get(key),
        b"list": lambda db, key: db.lrange(key, 0, -1),
        b"set": lambda db, key: db.smembers(key),
        b"zset": lambda db, key: db.zrange(key, 0, -1, withscores=True),
        b"hash": lambda db, key: db.hgetall(key),
        b"stream": lambda db, key: db.xrange(key),
    }
    with redis.from_url(service.redis_url) as db:
        return "\n".join(f"{key!r}: {readers[db.type(key)](db, key)!r}" for key in db.scan_iter())


def erase(talk: Talk, message_id: str) -> httpx.Response:
    return talk.http.delete(talk.path(f"/messages/{message_id}"))


def with_canary(talk: Talk, *, compactions: int = 3) -> Json:
    """Append the canary's message, and compact this many times after it."""
    talk.batch(lines(4))
    canary = talk.append(SECRET, metadata={"note": CANARY})
    for number in range(compactions):
        talk.batch(lines(20, start=10 + 20 * number))
        assert talk.compact()["status"] == "applied"
    return canary


@pytest.mark.long
@pytest.mark.case("62")
def test_after_three_compactions_the_canary_is_found_nowhere(start_service: StartService) -> None:
    service = start_service()
    talk = Talk.begin(service, policy={**MANUAL, "anchor_share": 0})  # so that the state contains it
    canary = with_canary(talk)
    before, history = talk.get(), talk.history()
    assert CANARY in str(before["compressed_state"])
    assert CANARY in (block_of(talk.context()) or "")
    held = {table for table, rows in database_dump(service).items() if CANARY in rows}
    assert {"messages", "state_versions", "conversations"} <= held

    response = erase(talk, canary["id"])
    assert (response.status_code, response.content) == (204, b"")
    at_once = {table for table, rows in database_dump(service).items() if CANARY in rows}
    (*_, remaking) = talk.wait_ended(4)
    afterwards = {table for table, rows in database_dump(service).items() if CANARY in rows}

    assert not at_once
    assert not afterwards
    assert CANARY not in redis_dump(service)
    for process in service.processes:
        assert CANARY not in process.log
    assert (remaking["trigger"], remaking["status"], remaking["ran_in"]) == ("erasure", "applied", "worker")
    after, left = talk.get(), talk.history()
    assert after["state_version"] == before["state_version"] + 1
    assert after["compressed_at_message_id"] == before["compressed_at_message_id"]
    assert after["compressed_state"]["conversation_summary"]
    assert [item["seq"] for item in left] == [item["seq"] for item in history]
    assert [item["id"] for item in left] == [item["id"] for item in history]
    stone = left[canary["seq"] - 1]
    assert (stone["status"], stone["content"], stone["metadata"], stone["token_count"]) == ("erased", "", {}, 0)
    assert [one for one in left if one != stone] == [one for one in history if one["id"] != stone["id"]]
    for version in range(1, 4):
        assert talk.post("/restore", {"state_version": version}).is_success
        assert CANARY not in talk.context_bytes().decode()
    assert CANARY not in str(database_dump(service))
    talk.http.close()


class TestTheRoute:
    @pytest.fixture
    def talk(self, offline: Service, start_talk: StartTalk) -> Talk:
        return start_talk(offline, policy=MANUAL)

    @pytest.mark.long
    def test_twice_is_once(self, talk: Talk) -> None:
        canary = with_canary(talk, compactions=1)
        assert erase(talk, canary["id"]).status_code == 204
        talk.wait_idle()
        before = talk.get()
        assert erase(talk, canary["id"]).status_code == 204
        assert talk.get() == before
        assert len(talk.compactions()) == 2

    def test_what_is_unknown_is_not_found(self, talk: Talk, offline: Service, start_talk: StartTalk) -> None:
        canary = with_canary(talk, compactions=0)
        other = start_talk(offline)
        refused(erase(talk, str(uuid4())), 404, "not_found")
        refused(erase(other, canary["id"]), 404, "not_found")
        refused(erase(talk, "nonsense"), 422, "invalid_input")
        assert talk.history()[canary["seq"] - 1]["content"] == SECRET

    def test_is_told_in_an_event_without_text(self, talk: Talk) -> None:
        canary = with_canary(talk, compactions=0)
        with EventFollower(talk, after=0) as follower:
            erase(talk, canary["id"])
            follower.wait_for(lambda _: follower.of_type("message.erased"), what="message.erased")
            (event,) = follower.of_type("message.erased")
            assert event["data"] == {"message_id": canary["id"], "seq": canary["seq"]}
            assert CANARY not in str(follower.events)

    @pytest.mark.long
    def test_the_next_turn_and_the_next_compaction_go_on(self, talk: Talk) -> None:
        canary = with_canary(talk, compactions=1)
        erase(talk, canary["id"])
        talk.wait_idle()
        assert CANARY not in talk.chat("Which phrase opens the vault in Trondheim?")["reply"]["content"]
        talk.batch(lines(20, start=200))
        assert talk.compact()["status"] == "applied"
        assert CANARY not in talk.context_bytes().decode()

    def test_a_repeated_request_shows_the_tombstone(self, talk: Talk) -> None:
        key = str(uuid4())
        body = {"role": "user", "content": SECRET}
        first = talk.post("/messages", body, Idempotency_Key=key).json()
        erase(talk, first["id"])
        again = talk.post("/messages", body, Idempotency_Key=key)
        assert (again.status_code, again.json()["id"], again.json()["content"]) == (201, first["id"], "")
