"""Limits of tenants and keys, asked over HTTP with a real database; each with its control."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Any, cast
from uuid import UUID, uuid4

import httpx
import pytest
from sqlalchemy import AsyncAdaptedQueuePool, text
from sqlalchemy.ext.asyncio import AsyncEngine

from app.core.model.conversation import Usage
from app.core.model.errors import DependencyUnavailableError, ModelUnavailableError
from app.core.model.model_io import ChatRequest, StepEvent, TextDelta, ToolCall
from app.core.model.usage_limits import STEP_SECONDS
from app.infrastructure.counters import PREFIX, LocalCounters, RedisCounters
from app.storage.connection_shares import ConnectionShares
from app.storage.unit_of_work import UnitOfWorkFactory, unit_of_work_factory
from app.usecases.chat.turn_handle import ChatEvent, TurnHandle
from app.usecases.ports import Counters, Place
from tests.fakes import FAKE_PROFILE, Reply, ScriptedChatModel
from tests.integration.keyed import Keyed, keyed
from tests.proxy import redis_proxy

RATES = ("ratelimit-limit", "ratelimit-remaining", "ratelimit-reset")
CHAT = {"content": "hello"}
ALL_OF_CHAT = {"chat_calls_per_hour": 9, "chat_tokens_per_hour": 10**6, "chat_usd_per_hour": 9}
CALL = ToolCall(id="c1", name="note", arguments={"text": "word " * 500})
PROMPT = {"model": "throughline", "messages": [{"role": "user", "content": "hello"}]}


def rates(response: httpx.Response) -> tuple[str, ...]:
    return tuple(response.headers.get(name, "") for name in RATES)


def refused(response: httpx.Response, reason: str, whose: str = "key") -> None:
    problem = response.json()
    assert (response.status_code, problem["code"]) == (429, "rate_limited"), problem
    assert (problem["reason"], problem.get("whose")) == (reason, whose)
    assert int(response.headers["retry-after"]) >= 1
    assert response.headers["ratelimit-remaining"] == "0"


async def begun(client: httpx.AsyncClient, **body: Any) -> str:
    response = await client.post("/conversations", json=body)
    assert response.status_code == 201, response.text
    return str(response.json()["id"])


def away(reason: str) -> ModelUnavailableError:
    return ModelUnavailableError(reason, retryable=True)


def holding() -> tuple[ScriptedChatModel, asyncio.Event, asyncio.Event]:
    """A model that answers once it is let go: the model, the event that it was asked, and the event that lets it go."""
    asked, go_on = asyncio.Event(), asyncio.Event()

    async def meanwhile() -> None:
        asked.set()
        await go_on.wait()

    return ScriptedChatModel(Reply(pieces=("All right.",), meanwhile=meanwhile)), asked, go_on


async def test_requests_are_counted_for_the_key_and_for_its_tenant(begin: UnitOfWorkFactory) -> None:
    now = 1_000_000.0
    limits: dict[str, Any] = {"tenant_limits": {"requests_per_minute": 5}, "key_limits": {"requests_per_minute": 3}}
    async with keyed(begin, counters=LocalCounters(lambda: now), **limits) as api:
        names = [str(uuid4()), str(uuid4())]
        (_, mine), (_, sisters), (_, others) = [await api.key(names[number]) for number in (0, 0, 1)]
        async with api.client(mine) as client:
            answers = [await client.get("/conversations") for _ in range(3)]
            assert [answer.status_code for answer in answers] == [200] * 3
            assert [rates(answer)[:2] for answer in answers] == [("3", "2"), ("3", "1"), ("3", "0")]
            over = await client.get("/conversations")
            refused(over, "requests_per_minute")
            assert rates(over) == ("3", "0", "65")
            theirs = await client.get("/v1/models")
            assert (theirs.status_code, theirs.json()["error"]["code"]) == (429, "rate_limit_exceeded")
            assert theirs.headers["retry-after"] == "65"
        async with api.client(sisters) as client:
            assert [(await client.get("/conversations")).status_code for _ in range(2)] == [200] * 2
            refused(await client.get("/conversations"), "requests_per_minute", "tenant")
        async with api.client(others) as client:
            assert (await client.get("/conversations")).status_code == 200, "another tenant does not notice"
        async with api.client() as client:  # control: in open mode nothing is limited, and no header says so
            answers = [await client.get("/conversations") for _ in range(10)]
            assert {(answer.status_code, rates(answer)) for answer in answers} == {(200, ("", "", ""))}
        now += 65
        async with api.client(mine) as client:
            assert (await client.get("/conversations")).status_code == 200, "after what Retry-After said"


async def test_limits_are_shown_and_a_key_has_its_own(begin: UnitOfWorkFactory) -> None:
    async with keyed(begin, key_limits={"requests_per_minute": 9}) as api:
        key_id, secret = await api.key(str(uuid4()), limits={"running_turns": 2})
        await api.container.keys.change(key_id, limits={"requests_per_minute": None, "chat_usd_per_hour": 1.5})
        async with api.client(secret) as client:
            told = (await client.get("/limits")).json()
        found = {(one["of"], one["name"]): (one["limit"], one["used"], one["remaining"]) for one in told["limits"]}
        assert (told["key_id"], told["user_id"], told["stream_seconds"]) == (str(key_id), None, 3600)
        assert found["tenant", "requests_per_minute"] == (6000, 1, 5999)
        assert ("key", "requests_per_minute") not in found
        assert found["key", "running_turns"] == (2, 0, 2)
        assert found["key", "chat_usd_per_hour"] == (1.5, 0, 1.5)
        assert found["tenant", "compaction_usd_per_hour"] == (50, 0, 50)
        async with api.client() as client:  # control: without a key there are none
            assert (await client.get("/limits")).json()["limits"] == []


async def taken(client: httpx.AsyncClient, name: str) -> None:
    """Wait until a place of this limit is taken."""
    for _ in range(2_000):
        limits = (await client.get("/limits")).json()["limits"]
        if any(one["used"] for one in limits if one["name"] == name):
            return
        await asyncio.sleep(0.01)
    raise AssertionError(f"no place of {name} is taken")


async def test_running_turns(begin: UnitOfWorkFactory) -> None:
    """One more turn is refused before anything is stored. An answer that is not stored counts, a repeated one does not.

    A client that sends a request again follows its turn, as a stream, which has a limit too.
    """
    model, asked, go_on = holding()
    async with keyed(begin, chat=model, key_limits={"running_turns": 1, "open_streams": 1}) as api:
        _, secret = await api.key(str(uuid4()))
        async with api.client(secret) as client:
            first, second = await begun(client), await begun(client)
            once = {"Idempotency-Key": "once"}
            running = asyncio.create_task(client.post(f"/conversations/{first}/chat", json=CHAT, headers=once))
            await asked.wait()
            refused(await client.post(f"/conversations/{second}/chat", json=CHAT), "running_turns")
            stateless = await client.post("/v1/chat/completions", json=PROMPT)
            assert (stateless.status_code, stateless.json()["error"]["code"]) == (429, "rate_limit_exceeded")
            assert (await client.get(f"/conversations/{second}/messages")).json()["data"] == []
            again = asyncio.create_task(client.post(f"/conversations/{first}/chat", json=CHAT, headers=once))
            await taken(client, "open_streams")
            refused(await client.post(f"/conversations/{first}/chat", json=CHAT, headers=once), "open_streams")
            go_on.set()
            assert [(await one).status_code for one in (running, again)] == [201, 201], "it follows the first"
            assert (await client.post(f"/conversations/{second}/chat", json=CHAT)).status_code == 201
            assert (await client.post("/v1/chat/completions", json=PROMPT)).status_code == 200
            standing = (await client.get("/limits")).json()["limits"]
            used = {one["used"] for one in standing if one["name"] in {"running_turns", "open_streams"}}
            assert used == {0}, "every place was given back"


async def test_who_follows_a_response_by_trying_again(begin: UnitOfWorkFactory) -> None:
    """The follower counts as a stream, and fails as the turn's stream does; a client that cancels follows nothing."""
    model, asked, go_on = holding()
    async with keyed(begin, chat=model, key_limits={"open_streams": 1}) as api:
        _, secret = await api.key(str(uuid4()))
        async with api.client(secret) as client:

            def tried(number: int) -> asyncio.Task[httpx.Response]:
                headers = {"X-Stainless-Retry-Count": str(number)}
                return asyncio.create_task(client.post("/v1/responses", json={"input": "hello"}, headers=headers))

            first = tried(0)
            await asked.wait()
            second = tried(1)
            await taken(client, "open_streams")
            assert (await tried(2)).status_code == 429
            assert not second.done(), "control: it has the one place, and waits for the turn"
            go_on.set()
            assert (await first).json()["id"] == (await second).json()["id"]
            asked.clear()
            go_on.clear()
            third = asyncio.create_task(client.post("/v1/responses", json={"input": "once more"}))
            await asked.wait()
            (turn_id,) = api.container.chat._handles
            following = asyncio.create_task(client.get(f"/v1/responses/resp_{turn_id.hex}?stream=true"))
            await taken(client, "open_streams")
            assert (await client.post(f"/v1/responses/resp_{turn_id.hex}/cancel", json={})).status_code == 200
            assert [(await one).status_code for one in (third, following)] == [200, 200]


async def test_what_a_turn_cannot_tell_is_told_to_who_follows_it(
    begin: UnitOfWorkFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that cannot follow another's turn says so before the turn's first event."""
    model, asked, go_on = holding()
    async with keyed(begin, chat=model) as api:
        lost = TurnHandle()
        lost.emit(ChatEvent(type="reply.failed", error=DependencyUnavailableError("the database is away")))

        async def follow(*_: object, **__: object) -> TurnHandle:
            return lost

        async with api.client() as client:
            body = {"input": "hello"}
            first = asyncio.create_task(
                client.post("/v1/responses", json=body, headers={"X-Stainless-Retry-Count": "0"})
            )
            await asked.wait()
            with monkeypatch.context() as patched:
                patched.setattr(api.container.chat, "follow_turn", follow)
                again = await client.post("/v1/responses", json=body, headers={"X-Stainless-Retry-Count": "1"})
            assert (again.status_code, again.json()["error"]["code"]) == (503, "dependency_unavailable")
            go_on.set()
            assert (await first).status_code == 200, "control"


async def test_what_chats_may_spend_in_an_hour(begin: UnitOfWorkFactory) -> None:
    usage = Usage(input_tokens=600_000, output_tokens=400_000, cost_usd=0.25)
    model = ScriptedChatModel(Reply(pieces=("Yes.",), usage=usage))
    limits = {"chat_tokens_per_hour": 1_500_000, "chat_usd_per_hour": None}
    async with keyed(begin, chat=model, key_limits=limits) as api:
        tenant = str(uuid4())
        (_, mine), (_, sisters) = await api.key(tenant), await api.key(tenant)
        async with api.client(mine) as client, api.client(sisters) as sister:
            conversation = await begun(client)
            assert (await client.post(f"/conversations/{conversation}/chat", json=CHAT)).status_code == 201
            assert (await client.post("/v1/chat/completions", json=PROMPT)).status_code == 200
            over = await client.post(f"/conversations/{conversation}/chat", json=CHAT)
            refused(over, "chat_tokens_per_hour")
            assert "(chat tokens per hour: 1500000)" in over.json()["detail"]
            assert 3_000 < int(over.headers["retry-after"]) <= 3_660
            assert (await client.post("/v1/chat/completions", json=PROMPT)).status_code == 429
            typed = await client.post(f"/conversations/{conversation}/chat", json={"content": "/compact"})
            assert typed.status_code == 201, "it asks no chat model"
            assert (await sister.post("/v1/chat/completions", json=PROMPT)).status_code == 200, "control: its own hour"
            standing = {(one["of"], one["name"]): one["used"] for one in (await sister.get("/limits")).json()["limits"]}
            assert standing["key", "chat_tokens_per_hour"] == 1_000_000
            assert standing["tenant", "chat_usd_per_hour"] == pytest.approx(0.75)
            assert standing["tenant", "chat_calls_per_hour"] == 3


class TestCallsWithoutAReply:
    """What a call has used counts, however it ends; a call that was never sent to a model does not count."""

    @staticmethod
    async def used(api: Keyed, client: httpx.AsyncClient) -> tuple[float, float, float]:
        await until(lambda: not api.container.chat._tasks)
        told = {(one["of"], one["name"]): one["used"] for one in (await client.get("/limits")).json()["limits"]}
        return tuple(told["key", f"chat_{unit}_per_hour"] for unit in ("calls", "tokens", "usd"))

    @pytest.mark.daily(6)
    @pytest.mark.parametrize("is_stored", [True, False])
    @pytest.mark.parametrize(
        ("reply", "calls", "tokens"),
        [
            (Reply(pieces=("Yes.",), usage=Usage(input_tokens=600, output_tokens=400, cost_usd=0.1)), 1, 1_000),
            (Reply(usage=Usage(input_tokens=600, output_tokens=400, cost_usd=0.1)), 1, 1_000),
            (Reply(finish="blocked", usage=Usage(input_tokens=1_000, cost_usd=0.1)), 1, 1_000),
            (Reply(pieces=("word " * 100,), error=away("timeout")), 1, range(50, 250)),
            (Reply(error=away("timeout")), 1, 0),
            (Reply(error=away("circuit_open")), 0, 0),
            (Reply(calls=(CALL,), usage=Usage()), 1, range(250, 500)),
            (Reply(usage=Usage()), 1, range(1, 100)),
            (Reply(finish="blocked", usage=Usage()), 1, 0),
        ],
        ids=[
            *("control", "empty", "blocked", "broken off", "away", "not asked"),
            *("calls without a report", "empty without a report", "blocked without a report"),
        ],
    )
    async def test_counts(
        self, begin: UnitOfWorkFactory, reply: Reply, calls: int, tokens: int | range, *, is_stored: bool
    ) -> None:
        model = ScriptedChatModel(reply, profile=replace(FAKE_PROFILE, cost=lambda read, written: 0.001 * written))
        async with keyed(begin, chat=model, key_limits=ALL_OF_CHAT) as api:
            _, secret = await api.key(str(uuid4()))
            async with api.client(secret) as client:
                path = f"/conversations/{await begun(client)}/chat" if is_stored else "/v1/chat/completions"
                await client.post(path, json=CHAT if is_stored else PROMPT)
                counted_calls, counted_tokens, usd = await self.used(api, client)
        assert counted_calls == calls
        assert counted_tokens in (tokens if isinstance(tokens, range) else [tokens])
        assert (usd > 0) == (counted_tokens > 0)

    async def test_an_interrupted_reply(self, begin: UnitOfWorkFactory) -> None:
        told, never = asyncio.Event(), asyncio.Event()

        class Endless(ScriptedChatModel):
            async def step(self, request: ChatRequest) -> AsyncIterator[StepEvent]:
                yield TextDelta(text="word " * 100)
                told.set()
                await never.wait()

        async with keyed(begin, chat=Endless(), key_limits=ALL_OF_CHAT) as api:
            _, secret = await api.key(str(uuid4()))
            async with api.client(secret) as client:
                conversation = await begun(client)
                turn = asyncio.create_task(client.post(f"/conversations/{conversation}/chat", json=CHAT))
                await told.wait()
                await client.post(f"/conversations/{conversation}/chat/interrupt", json={})
                assert (await turn).json()["reply"]["status"] == "interrupted"
                calls, tokens, _ = await self.used(api, client)
                assert (calls, 50 <= tokens <= 250) == (1, True)
                told.clear()
                left = asyncio.create_task(client.post("/v1/chat/completions", json=PROMPT))
                await told.wait()
                left.cancel()
                await asyncio.gather(left, return_exceptions=True)
                calls, more, _ = await self.used(api, client)
                assert (calls, 50 <= more - tokens <= 250) == (2, True)


async def test_compactions_spend_the_tenant_s_hour(begin: UnitOfWorkFactory) -> None:
    """The first compaction is the control; the next is refused, since the first used more tokens than the hour has."""
    limits = {"compaction_tokens_per_hour": 100}
    async with keyed(begin, auth_required=True, host="0.0.0.0", tenant_limits=limits) as api:  # noqa: S104
        _, secret = await api.key(str(uuid4()))
        async with api.client(secret) as client:
            conversation = await begun(client, policy={"context_window": 4_000})
            said = [{"role": "user", "content": f"crate {seq} of the shipment came " * 9} for seq in range(9)]
            for status in (200, 429):
                await client.post(f"/conversations/{conversation}/messages/batch", json={"messages": said})
                answer = await client.post(f"/conversations/{conversation}/compact", json={})
                assert answer.status_code == status, answer.text
            standing = {one["name"]: one["used"] for one in (await client.get("/limits")).json()["limits"]}
            assert standing["compaction_tokens_per_hour"] >= 500


async def test_input_that_is_compacted_and_stored_nowhere_is_its_key_s_to_pay(begin: UnitOfWorkFactory) -> None:
    async with keyed(begin, key_limits={"chat_calls_per_hour": 2, "chat_tokens_per_hour": 10**6}) as api:
        tenant = str(uuid4())
        (_, mine), (_, sisters) = await api.key(tenant), await api.key(tenant)
        said = [{"role": "user", "content": f"crate {seq} of the shipment came " * 9} for seq in range(40)]
        body = {"model": "throughline", "input": said}
        async with api.client(mine) as client, api.client(sisters) as sister:
            answers = [await client.post("/v1/responses/compact", json=body) for _ in range(3)]
            assert [answer.status_code for answer in answers] == [200, 200, 429]
            used = {(one["of"], one["name"]): one["used"] for one in (await client.get("/limits")).json()["limits"]}
            assert used["key", "chat_calls_per_hour"] == 2
            told = [answer.json()["usage"]["total_tokens"] for answer in answers[:2]]
            assert used["key", "chat_tokens_per_hour"] == sum(told) > 0
            other = await sister.post("/v1/responses/compact", json=body)
            assert other.status_code == 200, "control: its own hour"


async def test_streams_end_with_their_key_and_are_limited(begin: UnitOfWorkFactory) -> None:
    limits = {"open_streams": 1}
    async with keyed(begin, key_limits=limits, event_poll_seconds=0.05) as api:
        key_id, secret = await api.key(str(uuid4()))
        async with api.client(secret) as client, asyncio.timeout(20):
            conversation = await begun(client)
            stream = asyncio.create_task(client.get(f"/conversations/{conversation}/events"))
            await until(lambda: api.container.limits._followed.ended)
            refused(await client.get(f"/conversations/{conversation}/events"), "open_streams")
            await asyncio.sleep(0.15)
            assert not stream.done(), "control: it lasts as long as its key"
            await api.container.keys.revoke(key_id)
            assert (await stream).status_code == 200
            assert (await client.get("/limits")).status_code == 401
        _, short = await api.key(str(uuid4()), limits={"stream_seconds": 0.1})
        async with api.client(short) as client, asyncio.timeout(20):
            await client.get(f"/conversations/{await begun(client)}/events")


async def test_a_socket_has_its_key_s_limits_of_the_moment(begin: UnitOfWorkFactory) -> None:
    """The opening and each request count. A narrowed limit or the end of a key holds from the next request on."""
    async with keyed(begin) as api:
        key_id, secret = await api.key(str(uuid4()))
        async with api.socket(secret) as socket, api.client(secret) as client:
            assert (await socket.next())["type"] == "websocket.accept"
            assert (await socket.ask())["type"] == "response.completed"
            used = {one["name"]: one["used"] for one in (await client.get("/limits")).json()["limits"]}
            assert used["requests_per_minute"] == 3
            await api.container.keys.change(key_id, limits={"chat_calls_per_hour": 1})
            over = await socket.ask(store=False)
            assert (over["status"], over["error"]["code"]) == (429, "rate_limit_exceeded")
            await api.container.keys.change(key_id, limits={"chat_calls_per_hour": 2})
            assert (await socket.ask())["type"] == "response.completed", "control: it goes on where it may"
            await api.container.keys.revoke(key_id)
            assert (await socket.ask())["status"] == 401


async def test_a_refused_socket_says_why(begin: UnitOfWorkFactory) -> None:
    async with keyed(begin, key_limits={"open_streams": 1}) as api:
        _, secret = await api.key(str(uuid4()))
        _, reader = await api.key(str(uuid4()), frozenset({"read"}))
        async with api.socket(secret) as first:
            assert (await first.next())["type"] == "websocket.accept", "control"
            for key, status, code in (
                (secret, 429, "rate_limit_exceeded"),
                (reader, 403, "forbidden"),
                ("tl_unknown", 401, "invalid_api_key"),
            ):
                async with api.socket(key) as socket:
                    head, body = await socket.next(), await socket.next()
                assert (head["type"], head["status"]) == ("websocket.http.response.start", status)
                assert json.loads(body["body"])["error"]["code"] == code
                assert (b"retry-after" in dict(head["headers"])) == (status == 429)


async def test_a_client_that_leaves_its_socket_is_no_failure(begin: UnitOfWorkFactory) -> None:
    """Nor is it a failure if more of its requests wait, so that nobody reads that the client has left."""
    async with keyed(begin) as api:
        _, secret = await api.key(str(uuid4()))
        async with api.socket(secret) as socket:
            for _ in range(4):
                await socket.send(store=False)
            for _ in range(3):
                assert (await socket.next())["type"].startswith("websocket."), "control: it is answered"
            socket.is_gone = True


async def test_a_socket_goes_on_from_what_a_stored_response_goes_on_from(begin: UnitOfWorkFactory) -> None:
    model = ScriptedChatModel()
    async with keyed(begin, chat=model) as api:
        _, secret = await api.key(str(uuid4()))
        async with api.socket(secret) as socket:
            assert (await socket.next())["type"] == "websocket.accept"
            first = await socket.ask(input="The word is cobalt.")
            second = await socket.ask(input="Second.", previous_response_id=first["response"]["id"], store=False)
            await socket.ask(input="Third.", previous_response_id=second["response"]["id"], store=False)
    said = [[one.content for one in request.messages if one.role == "user"] for request in model.requests]
    assert said[1] == ["The word is cobalt.", "Second."], "control"
    assert said[2] == ["The word is cobalt.", "Second.", "Third."]


async def until(condition: Callable[[], Any]) -> None:
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.01)


async def counted(counters: Counters, limit: int) -> int:
    """How many of eight requests find room."""
    return sum([(await counters.hit([("n", limit)])).is_allowed for _ in range(8)])


async def test_processes_count_together(redis_url: str) -> None:
    one, two = RedisCounters(redis_url, call_seconds=30), RedisCounters(redis_url, call_seconds=30)
    try:
        assert (await counted(one, 5), await counted(two, 7)) == (5, 2), "two processes, one count"
        assert (await one.hit([("n", 8), ("full", 0)])).is_allowed is False
        assert (await two.hit([("n", 8)], counts=False)).counts[0].used == 7, (
            "what is refused, or looked at, counts not"
        )
        places = [await counters.take([("p", 2), ("q", 9)]) for counters in (one, two, one)]
        assert [isinstance(place, Place) for place in places] == [True, True, False]
        assert places[2] == 0, "the first that is full"
        assert await two.taken(["p", "q"]) == [2, 2]
        one.release(cast("Place", places[0]))
        await until(lambda: one._releasing is not None and one._releasing.done())
        assert isinstance(await two.take([("p", 2)]), Place)
        alone = LocalCounters(), LocalCounters()  # control: counted apart, both have room
        assert [await counted(counters, 5) for counters in alone] == [5, 5]
    finally:
        await one.close()
        await two.close()


async def test_what_was_counted_before_the_server_s_clock_was_set_back_holds_nobody_up(redis_url: str) -> None:
    name, counters = str(uuid4()), RedisCounters(redis_url, call_seconds=30)
    ahead = (await counters._redis.time())[0] + 3_600
    await counters._redis.hset(PREFIX + name, mapping={str(ahead // STEP_SECONDS): 5})
    await counters._redis.zadd(f"{PREFIX}{name}:places", {"of a process that was killed": ahead})
    try:
        assert await counters.taken([f"{name}:places"]) == [0]
        assert (await counters.hit([(name, 5)])).is_allowed
        assert isinstance(await counters.take([(f"{name}:places", 1)]), Place)
        assert await counters.take([(f"{name}:places", 1)]) == 0, "control: one that is taken is taken"
    finally:
        await counters.close()


async def test_a_place_that_is_let_go_of_while_the_server_is_away_is_free_once_it_is_back(redis_url: str) -> None:
    name = str(uuid4())
    async with redis_proxy(redis_url) as proxy:
        one, two = RedisCounters(proxy.url, pause_seconds=0.05), RedisCounters(redis_url, call_seconds=30)
        try:
            place = await one.take([(name, 1)])
            await proxy.set("refuse")
            one.release(cast("Place", place))
            await until(lambda: not one._circuit.is_closed)
            await asyncio.sleep(0.2)
            assert await two.taken([name]) == [1], "control: it hears of nothing"
            await proxy.set("pass")
            await until(lambda: not one._to_release)
            assert await two.taken([name]) == [0]
            await proxy.set("refuse")
            one.release(cast("Place", await one.take([(name, 1)])))
            async with asyncio.timeout(5):
                await one.close()
        finally:
            await two.close()


async def test_without_the_server_each_process_counts_for_itself_and_nobody_waits() -> None:
    counters = RedisCounters("redis://127.0.0.1:9/0")
    async with asyncio.timeout(5):
        assert await counted(counters, 5) == 5
        places = [await counters.take([("p", 1)]) for _ in range(2)]
        assert isinstance(places[0], Place)
        assert places[1] == 0
        counters.release(places[0])
        assert await counters.taken(["p"]) == [0]
        await counters.close()


class TestFairShares:
    @pytest.mark.long
    async def test_who_waits_for_a_model_or_a_slow_client_holds_no_connection(
        self, begin: UnitOfWorkFactory, engine: AsyncEngine
    ) -> None:
        model, asked, go_on = holding()
        pool = cast("AsyncAdaptedQueuePool", engine.pool)
        async with keyed(begin, chat=model) as api:
            _, secret = await api.key(str(uuid4()))
            async with api.client(secret) as client:
                turns = [await begun(client) for _ in range(2)]
                tasks: list[asyncio.Task[Any]] = [
                    asyncio.create_task(client.post(f"/conversations/{one}/chat", json=CHAT)) for one in turns
                ]
                tasks.append(asyncio.create_task(client.post("/v1/chat/completions", json=PROMPT)))
                reading, writing = asyncio.Event(), asyncio.Event()
                tasks.append(asyncio.create_task(slow_body(api, secret, reading, go_on)))
                tasks.append(asyncio.create_task(slow_export(api, secret, turns[0], writing, go_on)))
                await asyncio.gather(asked.wait(), reading.wait(), writing.wait())
                await until(lambda: len(model.requests) == 3)
                await until(lambda: pool.checkedout() == 0)
                assert (await client.get("/healthz")).status_code == 200
                async with begin(None) as uow:  # control: what is held is seen
                    await uow.keys.any()
                    seen = set()
                    for _ in range(20):
                        seen.add(pool.checkedout())
                        await asyncio.sleep(0.005)
                    assert min(seen) >= 1
                go_on.set()
                await asyncio.gather(*tasks)

    @pytest.mark.case("35-pool")
    async def test_no_tenant_takes_all_connections(self, engine: AsyncEngine) -> None:
        """If one tenant holds all of its share, its next request waits, and another tenant's goes on."""
        mine, others = uuid4(), uuid4()
        shares = ConnectionShares(2, seconds=0.1, waiting=1)
        fair = unit_of_work_factory(engine, shares=shares)
        async with fair(mine) as first, fair(mine) as second:
            await asyncio.gather(*(asyncio.create_task(held(uow)) for uow in (first, second)))
            waiting = asyncio.create_task(used(fair, mine))
            await asyncio.sleep(0)
            with pytest.raises(Exception, match="too many requests of this tenant wait"):
                await asyncio.create_task(used(fair, mine))  # one request waits already
            await asyncio.create_task(used(fair, others))
            with pytest.raises(Exception, match="too many requests of this tenant wait"):
                await waiting  # its time ended
        async with fair(mine) as third:
            await held(third)
        unfair = unit_of_work_factory(engine)  # control: without shares all are held at once
        async with unfair(mine) as first, unfair(mine) as second, unfair(mine) as third:
            for uow in (first, second, third):
                await held(uow)
        assert not shares._tenants, "nothing is remembered of tenants that hold nothing"

    async def test_a_second_unit_of_work_within_the_first_waits_for_no_share(self, engine: AsyncEngine) -> None:
        fair = unit_of_work_factory(engine, shares=ConnectionShares(1, seconds=0.1))
        tenant = uuid4()
        async with fair(tenant) as outer:
            await held(outer)
            async with fair(tenant) as inner:
                await held(inner)


async def held(uow: Any) -> None:
    await uow.keys.all()


async def used(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    async with begin(tenant) as uow:
        await held(uow)


async def slow_body(api: Keyed, secret: str, reading: asyncio.Event, go_on: asyncio.Event) -> None:
    """Let a client send half of its body, and the rest much later."""

    async def body() -> Any:
        yield b'{"title": '
        reading.set()
        await go_on.wait()
        yield b'"slow"}'

    async with api.client(secret) as client:
        sent = await client.post("/conversations", content=body(), headers={"Content-Type": "application/json"})
        assert sent.status_code == 201


async def slow_export(api: Keyed, secret: str, conversation: str, writing: asyncio.Event, go_on: asyncio.Event) -> None:
    """Let a client take the beginning of a file, and the rest much later."""

    async def receive() -> Any:
        await asyncio.Event().wait()

    async def send(message: Any) -> None:
        if message.get("body"):
            writing.set()
            await go_on.wait()

    headers = [(b"authorization", f"Bearer {secret}".encode()), (b"host", b"localhost")]
    scope = {
        "type": "http",
        "method": "GET",
        "path": f"/conversations/{conversation}/export",
        "raw_path": b"",
        "query_string": b"",
        "headers": headers,
        "http_version": "1.1",
        "scheme": "http",
        "server": ("localhost", 80),
        "client": ("127.0.0.1", 1),
        "root_path": "",
    }
    await api.app(scope, receive, send)


async def test_last_use_is_written_aside_and_seldom(begin: UnitOfWorkFactory, engine: AsyncEngine) -> None:
    async with keyed(begin) as api:
        key_id, secret = await api.key(str(uuid4()))
        async with api.client(secret) as client:
            await client.get("/limits")
            await api.container.keys.drain()
            first = await last_use(engine, key_id)
            assert first is not None
            await client.get("/limits")
            await api.container.keys.drain()
            assert await last_use(engine, key_id) == first, "control: within a minute it is not written again"


async def last_use(engine: AsyncEngine, key_id: Any) -> Any:
    async with engine.connect() as connection:
        found = await connection.execute(text("SELECT last_used_at FROM api_keys WHERE id = :id"), {"id": key_id})
        return found.scalar_one()


@pytest.mark.daily(1)
@pytest.mark.parametrize("text", ["", "Yes."], ids=["nothing-said", "control"])
async def test_an_answer_that_says_nothing_counts_by_what_it_used(begin: UnitOfWorkFactory, text: str) -> None:
    reply = Reply(pieces=(text,), finish="length", usage=Usage(input_tokens=100, output_tokens=900))
    async with keyed(begin, chat=ScriptedChatModel(reply)) as process:
        _, secret = await process.key("thinkers", limits={"chat_tokens_per_hour": 1_500})
        async with process.client(secret) as client:
            assert (await client.post(f"/conversations/{await begun(client)}/chat", json=CHAT)).is_success == bool(text)
            limits = (await client.get("/limits")).json()["limits"]
    assert [one["used"] for one in limits if one["name"] == "chat_tokens_per_hour"] == [1_000]
