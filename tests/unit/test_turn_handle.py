"""A turn's listeners hear everything from the beginning, each event once, at any time, and none blocks the turn."""

from __future__ import annotations

import asyncio
import itertools
from contextlib import aclosing
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.model.errors import ModelFailedError
from app.core.model.records import Event, Turn
from app.usecases.chat.relaying import MAX_ENTRY_LENGTH, Seal, entries_of, events_in
from app.usecases.chat.turn_handle import (
    DELTA,
    MAX_BYTES,
    PIECE_OVERHEAD_BYTES,
    REASONING,
    ChatEvent,
    ChatResult,
    TurnHandle,
    created_event,
    delta,
)
from tests.unit.api_fakes import AT, CONVERSATION, GAUGE, MESSAGE, REPLY, TENANT, message

PATIENCE = 5.0
TURN = Turn(
    id=uuid4(),
    tenant_id=TENANT,
    conversation_id=CONVERSATION,
    message_id=MESSAGE,
    planned_reply_id=REPLY,
    lease_until=AT,
    started_at=AT,
)


def result_of(content: str) -> ChatResult:
    return ChatResult(message=message(), reply=message(id=REPLY, seq=2, role="assistant", content=content), gauge=GAUGE)


def begun(most_bytes: int = MAX_BYTES) -> TurnHandle:
    handle = TurnHandle(most_bytes=most_bytes)
    handle.emit(created_event(message(), TURN))
    return handle


def end(handle: TurnHandle, content: str) -> None:
    handle.emit(ChatEvent(type="reply.completed", id=9, result=result_of(content)))


def stored(number: int) -> Event:
    """A message of the turn itself, which is a call or a tool's result."""
    return Event(conversation_id=CONVERSATION, number=number, type="message.created", data={"seq": 2}, occurred_at=AT)


async def heard(handle: TurnHandle) -> list[ChatEvent]:
    async with asyncio.timeout(PATIENCE):
        return [event async for event in handle.events()]


def words(events: list[ChatEvent], type_: str = DELTA) -> str:
    return "".join(event.data["text"] for event in events if event.type == type_)


async def test_the_first_event_tells_the_id_of_the_reply() -> None:
    handle = begun()
    end(handle, "")
    created, last = await heard(handle)
    assert (created.id, created.data["reply_id"], created.data["turn_id"]) == (None, str(REPLY), str(TURN.id))
    assert last.result is not None
    assert last.result.reply.id == REPLY


@given(
    pieces=st.lists(st.tuples(st.sampled_from([DELTA, REASONING]), st.text(min_size=1, max_size=5)), max_size=12),
    late=st.lists(st.integers(0, 12), max_size=4),
    calls=st.sets(st.integers(0, 12), max_size=3),
)
def test_listeners_hear_the_same_whenever_they_come(
    pieces: list[tuple[str, str]], late: list[int], calls: set[int]
) -> None:
    async def scenario() -> None:
        handle = begun()
        listening = [asyncio.create_task(heard(handle))]
        for place, piece in enumerate([*pieces, None]):
            listening.extend(asyncio.create_task(heard(handle)) for after in late if after == place)
            if place in calls:
                handle.emit_all([stored(2 + place)])
            if piece is not None:
                type_, text = piece
                handle.emit(delta(text, type_))
            await asyncio.sleep(0)
        said, thought = ("".join(text for type_, text in pieces if type_ == kind) for kind in (DELTA, REASONING))
        end(handle, said)
        listening.append(asyncio.create_task(heard(handle)))
        told = await asyncio.gather(*listening)
        assert {words(events) for events in told} == {said}
        assert {words(events, REASONING) for events in told} == {thought}
        others = [[event for event in events if event.type not in {DELTA, REASONING}] for events in told]
        assert all(one == others[0] for one in others)
        assert others[0][0].type == "message.created"
        assert [event.terminal for event in others[0]].index(True) == len(others[0]) - 1

    asyncio.run(scenario())


async def test_who_listens_gets_each_piece_and_who_is_slow_gets_several_as_one() -> None:
    handle = begun()
    quick, slow = handle.events(), handle.events()
    await anext(quick)
    await anext(slow)
    for piece in ("One ", "by ", "one"):
        handle.emit(delta(piece))
        assert (await anext(quick)).data["text"] == piece
    end(handle, "One by one")
    assert [event.type for event in [await anext(slow), await anext(slow)]] == ["reply.delta", "reply.completed"]
    await quick.aclose()


async def test_a_listener_that_left_is_forgotten_and_one_that_never_reads_holds_up_nobody() -> None:
    handle = begun()
    async with aclosing(handle.events()) as left:
        await anext(left)
        assert handle.followers == 1
    asleep = handle.events()
    await anext(asleep)
    for number in range(10_000):
        handle.emit(delta(f"{number} "))
    end(handle, "".join(f"{number} " for number in range(10_000)))
    assert words(await heard(handle)).endswith("9999 ")
    assert handle.followers == 1
    await asleep.aclose()
    assert handle.followers == 0


async def test_everybody_gets_the_result_or_the_error() -> None:
    handle = begun()
    waiting = [asyncio.create_task(handle.result()) for _ in range(3)]
    await asyncio.sleep(0)
    assert handle.followers == 3
    waiting[0].cancel()
    await asyncio.sleep(0)
    assert handle.followers == 2
    handle.emit(ChatEvent(type="reply.failed", error=ModelFailedError("away")))
    for one in waiting[1:]:
        with pytest.raises(ModelFailedError):
            await one
    handle.emit(delta("too late"))
    assert [event.type for event in await heard(handle)] == ["message.created", "reply.failed"]


@pytest.mark.parametrize("room", [10, 1_000, 10**6])
async def test_beyond_what_is_kept_the_rest_comes_at_the_end(room: int) -> None:
    """The last room is the control: everything is kept, and comes as it was sent."""
    handle = begun(most_bytes=room * (PIECE_OVERHEAD_BYTES + 5))
    for number in range(3_000):
        handle.emit(delta(f"{number:04} "))
    kept = sum(not isinstance(entry, ChatEvent) for entry in handle._log)
    end(handle, "".join(f"{number:04} " for number in range(3_000)))
    assert kept == min(room, 3_000)
    assert words(await heard(handle)) == "".join(f"{number:04} " for number in range(3_000))


async def test_what_a_step_said_before_its_calls_is_no_part_of_the_reply() -> None:
    handle = begun(most_bytes=3 * (PIECE_OVERHEAD_BYTES + 9))
    handle.emit(delta("Let me see."))
    handle.emit_all([stored(2), stored(3)])
    for piece in ("The answer", " is long", " and longer"):
        handle.emit(delta(piece))
    end(handle, "The answer is long and longer")
    assert words(await heard(handle)) == "Let me see.The answer is long and longer"


async def test_deserted_is_who_was_left_and_is_followed_by_nobody_for_so_long() -> None:
    now = 0.0
    handle = TurnHandle(monotonic=lambda: now)
    now = 100.0
    assert not handle.is_unfollowed_for(10), "no client went away"
    await handle.note_client_left()
    assert handle.is_unfollowed_for(10)
    handle.note_follower_elsewhere(AT)
    assert not handle.is_unfollowed_for(10)
    now = 111.0
    handle.note_follower_elsewhere(AT)
    assert handle.is_unfollowed_for(10), "the same moment again is no news"
    follower = asyncio.create_task(handle.result())
    await asyncio.sleep(0)
    assert not handle.is_unfollowed_for(10)
    follower.cancel()
    await asyncio.sleep(0)
    assert not handle.is_unfollowed_for(10)
    now = 121.0
    assert handle.is_unfollowed_for(10)
    assert not handle.is_unfollowed_for(float("inf")), "where the policy says that it goes on"


@given(st.lists(st.one_of(st.text(max_size=3), st.integers(1, 9), st.text(min_size=1).map(lambda text: text * 9_000))))
def test_entries_of_a_stream_say_the_same_in_bounded_pieces(said: list[str | int]) -> None:
    told = [delta(one) if isinstance(one, str) else ChatEvent(type="message.created", id=one) for one in said]
    entries = list(entries_of(told))
    assert all(len(entry) < 8 * MAX_ENTRY_LENGTH for entry in entries)
    again = list(itertools.chain.from_iterable(map(events_in, entries)))
    assert words(again) == words(told)
    assert [event for event in again if event.id] == [event for event in told if event.id]


def test_what_came_of_a_turn_is_in_no_stream() -> None:
    (entry,) = entries_of([ChatEvent(type="reply.completed", id=9, result=result_of("The words of a reply."))])
    assert b"words" not in entry
    assert events_in(entry) == [ChatEvent(type="reply.completed", id=9)]


def test_an_entry_is_opened_with_its_key_at_its_place_alone() -> None:
    key, other = Seal.new_key(), uuid4()
    sealed = Seal(TURN.id, key).seal(7, b"The words of a reply.")
    assert b"words" not in sealed
    assert Seal(TURN.id, key).open(7, sealed) == b"The words of a reply."
    for seal, number in ((Seal(TURN.id, Seal.new_key()), 7), (Seal(other, key), 7), (Seal(TURN.id, key), 8)):
        with pytest.raises(ValueError, match="belongs to another turn"):
            seal.open(number, sealed)
