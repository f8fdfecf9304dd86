"""A running turn is followed from the services of two processes, over a real database and a real Valkey."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, aclosing
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID, uuid4

import pytest
from redis.asyncio import Redis

from app.core.model.conversation import Usage
from app.core.model.errors import DomainError, NotFoundError
from app.core.model.model_io import ChatRequest, StepEvent, StepFinish, TextDelta
from app.core.model.records import Turn
from app.infrastructure import turn_streams
from app.infrastructure.ids import new_id
from app.infrastructure.turn_streams import RedisTurnStreams, stream_key
from app.settings import Settings
from app.storage.unit_of_work import UnitOfWorkFactory
from app.usecases.chat.mirroring import Mirrors
from app.usecases.chat.relaying import Seal
from app.usecases.chat.starting import ChatInput
from app.usecases.chat.turn_handle import ChatEvent, TurnHandle
from app.usecases.shared.idempotency import Idem
from tests.cases import guarded
from tests.fakes import ScriptedChatModel
from tests.integration.rows import make_tenant
from tests.integration.services import Service
from tests.proxy import RedisProxy, redis_proxy

PATIENCE: Final = 20.0
ALONE: Final = 0.4  # seconds after which a turn that nobody follows is interrupted
TIMINGS: Final = Settings(
    _env_file=None,
    turn_heartbeat_seconds=0.05,
    event_poll_seconds=0.1,
    broker_pause_seconds=0.2,
    unfollowed_seconds=ALONE,
    sweep_seconds=0.2,
)
QUESTION: Final = ChatInput(content="Where are the crates?")


class Dictated(ScriptedChatModel):
    """A chat model that says what the test dictates, piece by piece."""

    def __init__(self) -> None:
        super().__init__()
        self.said: asyncio.Queue[str | None] = asyncio.Queue()

    def say(self, *pieces: str) -> None:
        for piece in pieces:
            self.said.put_nowait(piece)

    def end(self) -> None:
        self.said.put_nowait(None)

    async def step(self, request: ChatRequest) -> AsyncIterator[StepEvent]:
        self.requests.append(request)
        while (piece := await self.said.get()) is not None:
            yield TextDelta(text=piece)
        yield StepFinish(reason="stop", usage=Usage(input_tokens=10, output_tokens=10), model=self.profile.name)


class Listener:
    """A follower of a turn, and what it heard."""

    def __init__(self, turn: TurnHandle) -> None:
        self.heard: list[ChatEvent] = []
        self._task = asyncio.create_task(self._listen(turn))

    @property
    def text(self) -> str:
        return "".join(event.data["text"] for event in self.heard if event.type == "reply.delta")

    @property
    def types(self) -> list[str]:
        return [event.type for event in self.heard]

    async def until(self, text: str) -> None:
        async with asyncio.timeout(PATIENCE):
            while self.text != text:  # noqa: ASYNC110 - what is heard is looked at
                await asyncio.sleep(0.005)

    async def end(self) -> ChatEvent:
        async with asyncio.timeout(PATIENCE):
            await self._task
        assert [event.terminal for event in self.heard].index(True) == len(self.heard) - 1
        return self.heard[-1]

    async def leave(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _listen(self, turn: TurnHandle) -> None:
        async with aclosing(turn.events()) as events:
            async for event in events:
                self.heard.append(event)


class Pair:
    """Two processes of one service; the turn runs in the first."""

    def __init__(
        self, begin: UnitOfWorkFactory, tenant: UUID, proxy: RedisProxy, streams: list[RedisTurnStreams]
    ) -> None:
        self.tenant = tenant
        self.proxy = proxy
        self.streams = streams
        self.model = Dictated()
        self.one, self.other = (
            Service(begin, tenant, owner=f"process:{name}", chat=self.model, settings=TIMINGS, streams=streams[number])
            for number, name in enumerate(("one", "other"))
        )

    async def start(self, key: Idem | None = None, **policy: str) -> tuple[UUID, TurnHandle]:
        conversation_id = await self.one.conversation(**policy)
        return conversation_id, await self.one.container.chat.start(self.tenant, conversation_id, QUESTION, idem=key)

    async def follow(self, conversation_id: UUID) -> Listener:
        turn = await self.other.container.chat.follow(self.tenant, conversation_id)
        assert turn is not None
        return Listener(turn)

    async def close(self) -> None:
        self.model.end()
        for service in (self.one, self.other):
            await service.container.chat.close(1)


@pytest.fixture
async def pair(begin: UnitOfWorkFactory, tenant: UUID, redis_url: str) -> AsyncIterator[Pair]:
    async with AsyncExitStack() as stack:
        proxy = await stack.enter_async_context(redis_proxy(redis_url))
        streams = [RedisTurnStreams(proxy.url, pause_seconds=0.2) for _ in range(2)]
        for one in streams:
            stack.push_async_callback(one.close)
        both = Pair(begin, tenant, proxy, streams)
        stack.push_async_callback(both.close)
        yield both


@pytest.mark.case("49b")
async def test_another_process_hears_every_piece_when_it_is_said(pair: Pair) -> None:
    conversation_id, handle = await pair.start()
    own, elsewhere = Listener(handle), await pair.follow(conversation_id)
    for said in ("In ", "In harbour ", "In harbour seven."):
        pair.model.say(said[len(own.text) :])
        await own.until(said)
        await elsewhere.until(said)
    late = await pair.follow(conversation_id)
    await late.until("In harbour seven.")
    assert elsewhere.types == ["message.created", *["reply.delta"] * 3], "each piece came by itself"
    assert late.types == ["message.created", "reply.delta"], "who comes late catches up at once"
    pair.model.end()

    ends = [await one.end() for one in (own, elsewhere, late)]
    assert [one.text for one in (own, elsewhere, late)] == ["In harbour seven."] * 3
    assert [end.result for end in ends] == [ends[0].result] * 3
    assert {end.id for end in ends} != {None}
    assert len({end.id for end in ends}) == 1
    assert ends[0].result is not None
    created = [one.heard[0] for one in (own, elsewhere, late)]
    assert created == [created[0]] * 3
    assert created[0].data["reply_id"] == str(ends[0].result.reply.id)


@pytest.mark.long
async def test_nothing_runs_before_and_after(pair: Pair) -> None:
    conversation_id, handle = await pair.start()
    pair.model.say("Here.")
    pair.model.end()
    result = await asyncio.wait_for(handle.result(), PATIENCE)
    turn_id = UUID((await anext(handle.events())).data["turn_id"])
    assert await pair.other.container.chat.follow(pair.tenant, conversation_id) is None
    again = Listener(await pair.other.container.chat.follow_turn(pair.tenant, turn_id))
    assert (await again.end()).result == result
    assert again.types == ["message.created", "reply.delta", "reply.completed"]


@pytest.mark.parametrize("mode", ["silent", pytest.param("refuse", marks=pytest.mark.long)])
@pytest.mark.case("49b-away")
async def test_valkey_that_goes_away_in_the_middle_holds_up_nobody(
    pair: Pair, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    conversation_id, handle = await pair.start()
    own, elsewhere = Listener(handle), await pair.follow(conversation_id)
    pair.model.say("In ")
    await elsewhere.until("In ")
    await pair.proxy.set(mode)  # type: ignore[arg-type]
    add, is_over = pair.streams[0].add, asyncio.Event()

    async def added_late(*given: Any, **named: Any) -> bool:
        await is_over.wait()
        return await add(*given, **named)

    monkeypatch.setattr(pair.streams[0], "add", added_late)
    pair.model.say("harbour ", "seven.")
    await own.until("In harbour seven.")
    pair.model.end()
    end = await own.end()  # the turn waits for nothing
    is_over.set()

    assert (await elsewhere.end()).result == end.result
    assert elsewhere.text == "In harbour seven."
    assert elsewhere.types == ["message.created", "reply.delta", "reply.delta", "reply.completed"]


@pytest.mark.control("49b", "49b-away")
@pytest.mark.parametrize("is_away", [False, pytest.param(True, marks=pytest.mark.long)])
async def test_control_whoever_looks_at_the_stream_or_the_end_alone_misses_something(
    pair: Pair, monkeypatch: pytest.MonkeyPatch, *, is_away: bool
) -> None:
    """With Valkey there a follower without the stream hears no piece; without Valkey nobody tells the rest."""
    if is_away:
        await pair.proxy.set("refuse")
        monkeypatch.setattr(TurnHandle, "emit_rest", lambda *_: None)
    else:
        monkeypatch.setattr(Mirrors, "_emit_streamed_events", _hears_nothing)
    conversation_id, handle = await pair.start()
    own, elsewhere = Listener(handle), await pair.follow(conversation_id)
    pair.model.say("In ", "harbour.")
    await own.until("In harbour.")
    await asyncio.sleep(0.1)
    assert elsewhere.text == "", "it is not told when it is said"
    pair.model.end()
    await elsewhere.end()
    assert (elsewhere.text == "") == is_away


async def _hears_nothing(*_: object) -> None:
    """The guard, broken."""


@pytest.mark.parametrize("mode", ["silent", pytest.param("refuse", marks=pytest.mark.long)])
@pytest.mark.case("49b-away")
async def test_without_valkey_the_whole_reply_comes_at_its_end(pair: Pair, mode: str) -> None:
    await pair.proxy.set(mode)  # type: ignore[arg-type]
    conversation_id, handle = await pair.start()
    own, elsewhere = Listener(handle), await pair.follow(conversation_id)
    for piece in ("In ", "harbour ", "seven."):
        pair.model.say(piece)
    await own.until("In harbour seven.")
    assert elsewhere.text == ""
    pair.model.end()

    assert (await elsewhere.end()).result == (await own.end()).result
    assert elsewhere.types == ["message.created", "reply.delta", "reply.completed"]
    assert elsewhere.heard[0].data == own.heard[0].data
    assert elsewhere.text == "In harbour seven."


@pytest.mark.long
async def test_valkey_that_comes_back_goes_on_where_it_was(pair: Pair) -> None:
    conversation_id, _ = await pair.start()
    elsewhere = await pair.follow(conversation_id)
    pair.model.say("In ")
    await elsewhere.until("In ")
    await pair.proxy.set("refuse")
    pair.model.say("harbour ")
    await asyncio.sleep(0.3)
    await pair.proxy.set("pass")
    await elsewhere.until("In harbour ")
    pair.model.say("seven.")
    await elsewhere.until("In harbour seven.")
    pair.model.end()
    await elsewhere.end()
    assert elsewhere.text == "In harbour seven."


@pytest.mark.long
async def test_entries_that_are_gone_are_told_at_the_end(pair: Pair, redis_url: str) -> None:
    conversation_id, _ = await pair.start()
    there = await pair.follow(conversation_id)
    pair.model.say("In ")
    await there.until("In ")
    async with Redis.from_url(redis_url) as redis:
        await redis.flushdb()
    pair.model.say("harbour ")
    await there.until("In harbour ")
    third = Service(pair.other.begin, pair.tenant, settings=TIMINGS, streams=RedisTurnStreams(pair.proxy.url))
    turn = await third.container.chat.follow(pair.tenant, conversation_id)
    assert turn is not None
    late = Listener(turn)
    pair.model.say("seven.")
    await there.until("In harbour seven.")
    assert not late.text, "it knows that something is missing"
    pair.model.end()
    await there.end()
    await late.end()
    assert (there.text, late.text) == ("In harbour seven.",) * 2
    assert late.types == ["message.created", "reply.delta", "reply.completed"]
    await third.container.chat.close(1)
    await third.container.parts.streams.close()


@pytest.mark.long
async def test_a_stream_is_bounded_and_goes_soon_after_the_turn(
    pair: Pair, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turn_streams, "MAX_ENTRIES", 5)
    monkeypatch.setattr("app.usecases.chat.relaying.PAUSE_SECONDS", 0.001)
    conversation_id, handle = await pair.start()
    own = Listener(handle)
    pair.model.say("Now: ")
    await own.until("Now: ")
    turn_id = UUID(own.heard[0].data["turn_id"])
    key = stream_key(turn_id)
    async with Redis.from_url(redis_url) as redis, asyncio.timeout(PATIENCE):
        for number in range(250):  # each becomes an entry of its own
            pair.model.say(f"{number} ")
            while max(await entries(redis, turn_id), default=0) < number + 2:  # noqa: ASYNC110 - Valkey tells nobody
                await asyncio.sleep(0.001)
        assert 0 < await redis.xlen(key) <= 105, "trimmed by whole blocks of a hundred"
        assert turn_streams.ENDED_SECONDS < await redis.ttl(key) <= turn_streams.KEPT_SECONDS
        late = await pair.follow(conversation_id)
        await asyncio.sleep(0.3)
        assert not late.text
        pair.model.end()
        result = (await late.end()).result
        assert result is not None
        assert late.text == result.reply.content
        await own.end()
        async with asyncio.timeout(PATIENCE):
            while await redis.ttl(key) > turn_streams.ENDED_SECONDS:  # noqa: ASYNC110 - Valkey tells nobody
                await asyncio.sleep(0.01)


@pytest.mark.long
async def test_many_followers_share_one_reader(pair: Pair) -> None:
    turns = [await pair.start() for _ in range(6)]
    listeners = [await pair.follow(conversation_id) for conversation_id, _ in turns for _ in range(5)]
    pair.model.say(*["word "] * len(turns))
    for listener in listeners:
        await listener.until("word ")
    assert pair.proxy.open_connections <= 2 * 4, "of two processes"
    assert len(pair.streams[1]._followers) == len(turns)
    for _ in turns:
        pair.model.end()
    for listener in listeners:
        await listener.end()
    assert not pair.streams[1]._followers


async def test_of_another_tenant_there_is_nothing(pair: Pair, begin: UnitOfWorkFactory) -> None:
    conversation_id, handle = await pair.start()
    own = Listener(handle)
    pair.model.say("Secret")
    await own.until("Secret")
    turn_id = UUID(own.heard[0].data["turn_id"])
    stranger = await make_tenant(begin, f"stranger {uuid4()}")
    for chat in (pair.one.container.chat, pair.other.container.chat):
        with pytest.raises(NotFoundError):
            await chat.follow(stranger, conversation_id)
        with pytest.raises(NotFoundError):
            await chat.follow_turn(stranger, turn_id)
    assert not pair.streams[1]._followers, "nothing was read"
    assert Listener(await pair.other.container.chat.follow_turn(pair.tenant, turn_id))
    async with asyncio.timeout(PATIENCE):  # the control
        while not pair.streams[1]._followers:  # noqa: ASYNC110 - it tells nobody
            await asyncio.sleep(0.005)


@guarded("49b-killed", is_control_long=True)
async def test_a_turn_whose_process_died_fails_for_its_followers(
    pair: Pair, begin: UnitOfWorkFactory, *, is_guarded: bool
) -> None:
    """Control: if nobody sweeps, its followers wait for ever."""
    conversation_id = await pair.one.conversation()
    (message,) = await pair.one.say(conversation_id, 1)
    now = datetime.now(UTC)
    dead = Turn(
        id=new_id(),
        tenant_id=pair.tenant,
        conversation_id=conversation_id,
        message_id=message.id,
        planned_reply_id=new_id(),
        lease_until=now,
        started_at=now,
    )
    async with begin(pair.tenant) as uow:
        uow.turns._lease_seconds = 0.5
        assert await uow.turns.start(dead)
        await uow.commit()
    elsewhere = await pair.follow(conversation_id)
    if not is_guarded:
        await asyncio.sleep(0.8)
        assert "reply.failed" not in elsewhere.types
        return
    sweeping = asyncio.create_task(pair.other.container.sweeper.run())
    end = await elsewhere.end()
    sweeping.cancel()

    assert elsewhere.types == ["message.created", "reply.failed"]
    assert isinstance(end.error, DomainError)
    assert (end.error.stable_code, end.error.extra) == ("lease_expired", {"message_id": str(message.id)})


@pytest.mark.long
@pytest.mark.parametrize("away", [False, pytest.param(True, marks=pytest.mark.long)], ids=["valkey", "no-valkey"])
async def test_a_turn_that_was_left_goes_on_while_anybody_follows_it(pair: Pair, *, away: bool) -> None:
    if away:
        await pair.proxy.set("refuse")
    conversation_id, handle = await pair.start(on_disconnect="interrupt")
    own, elsewhere = Listener(handle), await pair.follow(conversation_id)
    pair.model.say("In ")
    await own.until("In ")
    await own.leave()
    await handle.note_client_left()
    await asyncio.sleep(3 * ALONE)
    pair.model.say("harbour ")
    await asyncio.sleep(0.1)
    assert not handle.ended
    await elsewhere.leave()
    left = time.monotonic()
    result = await asyncio.wait_for(asyncio.shield(handle._done), PATIENCE)
    assert time.monotonic() - left > ALONE / 2
    assert (result.reply.status, result.reply.content) == ("interrupted", "In harbour ")


@pytest.mark.parametrize(
    "policy",
    [
        pytest.param("finish", marks=[pytest.mark.long, pytest.mark.case("45-stream")]),
        pytest.param("interrupt", marks=pytest.mark.control("45-stream")),
    ],
)
async def test_a_turn_that_was_left_ends_only_if_the_policy_says_so(pair: Pair, policy: str) -> None:
    _, handle = await pair.start(on_disconnect=policy)
    pair.model.say("In ")
    await handle.note_client_left()
    if policy == "interrupt":
        await asyncio.wait_for(asyncio.shield(handle._done), PATIENCE)
    else:
        await asyncio.sleep(3 * ALONE)
    assert handle.ended == (policy == "interrupt")


async def test_stopping_is_a_call_of_its_own_and_ends_a_turn_that_somebody_follows(pair: Pair) -> None:
    conversation_id, _ = await pair.start(on_disconnect="interrupt")
    elsewhere = await pair.follow(conversation_id)
    pair.model.say("In ")
    await elsewhere.until("In ")
    await pair.other.container.chat.interrupt(pair.tenant, conversation_id)
    end = await elsewhere.end()
    assert end.type == "reply.interrupted"
    assert elsewhere.text == "In "


@pytest.mark.long
async def test_the_same_key_in_another_process_follows_the_running_turn(pair: Pair) -> None:
    key = Idem(key="k1", fingerprint="f")
    conversation_id, handle = await pair.start(key)
    again = await pair.other.container.chat.start(pair.tenant, conversation_id, QUESTION, idem=key)
    pair.model.say("Here.")
    pair.model.end()
    first, second = await asyncio.wait_for(asyncio.gather(handle.result(), again.result()), PATIENCE)
    assert first == second
    assert len(pair.model.requests) == 1


@pytest.mark.long
async def test_a_process_that_stops_tells_its_followers(pair: Pair) -> None:
    conversation_id, handle = await pair.start()
    elsewhere = await pair.follow(conversation_id)
    await asyncio.sleep(0.1)
    await pair.other.container.chat.close(1)
    end = await elsewhere.end()
    assert isinstance(end.error, DomainError)
    assert end.error.stable_code == "dependency_unavailable"
    assert not handle.ended, "the turn itself goes on"


@pytest.mark.parametrize("gone", ["message", pytest.param("conversation", marks=pytest.mark.long)])
async def test_no_words_are_in_valkey_and_what_is_erased_is_in_no_stream(
    pair: Pair, begin: UnitOfWorkFactory, redis_url: str, gone: str
) -> None:
    conversation_id, _ = await pair.start()
    elsewhere = await pair.follow(conversation_id)
    pair.model.say("Harbour seven.")
    await elsewhere.until("Harbour seven.")
    async with begin(pair.tenant) as uow:
        turn = await uow.turns.running(conversation_id)
    assert turn is not None
    assert turn.stream_key is not None
    async with Redis.from_url(redis_url) as redis:
        before = await entries(redis, turn.id)
        assert b"seven" not in b"".join(before.values())
        seal = Seal(turn.id, turn.stream_key)
        assert b"seven" in b"".join(seal.open(number, sealed) for number, sealed in before.items()), "the control"
        if gone == "message":
            message_id = UUID(elsewhere.heard[0].data["message_id"])
            await pair.other.container.erasure.erase(pair.tenant, conversation_id, message_id)
            pair.model.end()
            assert (await elsewhere.end()).result
            async with begin(pair.tenant) as uow:
                assert (await uow.turns.get(turn.id)).stream_key is None, "nobody can read it any more"
        else:
            await pair.other.container.conversations.delete(pair.tenant, conversation_id)
            assert isinstance((await elsewhere.end()).error, NotFoundError)
        assert not before.keys() & (await entries(redis, turn.id)).keys()


async def entries(redis: Redis, turn_id: UUID) -> dict[int, bytes]:
    """The entries of a turn in Valkey."""
    found = await redis.xrange(stream_key(turn_id), min="-") or ()
    return {int(id_.split(b"-")[0]): fields[b"events"] for id_, fields in found}  # type: ignore[union-attr, misc, index, arg-type]
