"""Races on separate connections: all runners start at once, and afterwards the tests check what must hold."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar
from uuid import UUID, uuid4

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from app.core.model.conversation import Conversation, Sums
from app.core.model.errors import NotFoundError
from app.core.model.records import Compaction, IdempotencyRecord, Page
from app.storage.unit_of_work import UnitOfWork, UnitOfWorkFactory
from tests.integration.rows import START, append, compaction, message, running, stored, turn

Answer = TypeVar("Answer")
Work = Callable[[UnitOfWork, int], Awaitable[Answer]]


async def race(begin: UnitOfWorkFactory, tenant: UUID | None, runners: int, work: Work[Answer]) -> list[Answer]:
    """Do the work this many times at once, each in a committed unit of work of its own."""
    line = asyncio.Barrier(runners)

    async def run(number: int) -> Answer:
        async with begin(tenant) as unit:
            await unit.keys.any()  # each has its connection before any of them starts
            await line.wait()
            answer = await work(unit, number)
            await unit.commit()
        return answer

    async with asyncio.timeout(60):
        return list(await asyncio.gather(*(run(number) for number in range(runners))))


async def let_leases_expire(engine: AsyncEngine, table: str) -> None:
    async with engine.begin() as connection:
        await connection.execute(text(f"UPDATE {table} SET lease_until = clock_timestamp() - interval '1 s'"))  # noqa: S608


async def write(unit: UnitOfWork, row: Conversation, number: int) -> None:
    """Append one or a few messages as the service does: lock, count on, insert, set the counters, add the events."""
    locked = await unit.conversations.lock(row.id)
    count = 1 + number % 3
    seqs = range(locked.last_seq + 1, locked.last_seq + 1 + count)
    await append(unit, [message(row.id, seq, content=str(number), token_count=seq) for seq in seqs])
    await asyncio.sleep(random.uniform(0, 0.005))
    await unit.events.add_many(row.id, [("message.created", {"seq": seq}) for seq in seqs], START)


@pytest.mark.parametrize("writers", [15, pytest.param(50, marks=pytest.mark.long)])
@pytest.mark.case("37")
async def test_many_writers_leave_no_gap(begin: UnitOfWorkFactory, tenant: UUID, writers: int) -> None:
    row = await stored(begin, tenant)
    await race(begin, tenant, writers, lambda unit, number: write(unit, row, number))
    total = sum(1 + number % 3 for number in range(writers))
    async with begin(tenant) as unit:
        said = await unit.messages.between(row.id, 1, total + 1)
        assert [entry.seq for entry in said] == list(range(1, total + 1))
        for entry, through in zip(said, running(said), strict=True):
            assert await unit.messages.sums_at(row.id, entry.seq) == through
        after = await unit.conversations.get(row.id)
        assert (after.last_seq, after.last_event, after.total) == (total, total, running(said)[-1])
        events = await unit.events.after(row.id, 0, limit=999)
        assert [event.number for event in events] == list(range(1, total + 1))
        # Numbers are in the order of commits: no event comes before one of an earlier message.
        assert [event.data["seq"] for event in events] == list(range(1, total + 1))


@pytest.mark.control("37")
async def test_control_without_the_lock_writers_collide(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    """This shows what the lock is for: the same race on a plain read fails."""
    row = await stored(begin, tenant)

    async def unlocked(unit: UnitOfWork, _number: int) -> str:
        read = await unit.conversations.get(row.id)
        await asyncio.sleep(0.05)
        try:
            async with begin(tenant) as writer:
                await writer.messages.append([message(row.id, read.last_seq + 1)], [Sums()])
                await writer.commit()
        except Exception as error:  # noqa: BLE001 - whatever it is, it is what the lock prevents
            return type(error).__name__
        return "written"

    outcomes = await race(begin, tenant, 5, unlocked)
    assert sorted(outcomes) == ["ConflictError"] * 4 + ["written"]


@pytest.mark.parametrize("status", ["queued", "running"])
@pytest.mark.case("38")
async def test_twenty_claimers_one_claim(begin: UnitOfWorkFactory, tenant: UUID, status: str) -> None:
    row = await stored(begin, tenant)

    async def claim(unit: UnitOfWork, number: int) -> Compaction | None:
        lease = uuid4() if status == "running" else None
        return await unit.compactions.claim(compaction(row, status=status, lease_token=lease, reason=str(number)))

    (winner,) = winners(await race(begin, tenant, 20, claim))
    async with begin(tenant) as unit:
        assert await unit.compactions.in_flight(row.id) == winner
        assert await unit.compactions.page(Page(limit=100)) == ([winner], None)


async def test_a_claim_that_is_rolled_back_leaves_the_slot_to_who_waits(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    row = await stored(begin, tenant)

    async def late() -> Compaction | None:
        async with begin(tenant) as unit:
            made = await unit.compactions.claim(compaction(row))
            await unit.commit()
        return made

    async with begin(tenant) as first:
        assert await first.compactions.claim(compaction(row)) is not None
        waiting = asyncio.create_task(late())
        await asyncio.sleep(0.2)
        assert not waiting.done()
    assert await waiting is not None


async def test_twenty_takers_of_a_queued_row(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    row = await stored(begin, tenant)
    queued = await one_claim(begin, row)

    async def take(unit: UnitOfWork, number: int) -> Compaction | None:
        return await unit.compactions.take(queued.id, lease_token=uuid4(), ran_in="worker", owner=str(number))

    (winner,) = winners(await race(begin, None, 20, take))
    async with begin(tenant) as unit:
        assert await unit.compactions.get(queued.id) == winner
        assert winner.claims == 1


async def test_the_holder_or_one_taker_keeps_an_expired_lease(
    begin: UnitOfWorkFactory, tenant: UUID, engine: AsyncEngine
) -> None:
    outcomes: set[str] = set()
    for number_of_race in range(12):
        tried = asyncio.Event()
        row, lease = await stored(begin, tenant), uuid4()
        held = await one_claim(begin, row, status="running", lease_token=lease, owner="holder")
        await let_leases_expire(engine, "compactions")

        async def work(
            unit: UnitOfWork,
            number: int,
            held: Compaction = held,
            lease: UUID = lease,
            tried: asyncio.Event = tried,
            is_late: bool = number_of_race == 0,  # noqa: FBT001 - bound here
        ) -> Any:
            if number == 0:
                await (tried.wait() if is_late else asyncio.sleep(random.uniform(0, 0.004)))
                return await unit.compactions.heartbeat(held.id, lease)
            taken = await unit.compactions.take(held.id, lease_token=uuid4(), ran_in="sweeper", owner=str(number))
            tried.set()
            if taken is not None:
                assert await unit.compactions.update(held.id, lease, reason="by the one before") is None
            return taken

        beat, *taken = await race(begin, tenant, 6, work)
        takers = winners(taken)
        assert len(takers) <= 1
        assert beat is not bool(takers), "either the holder keeps it, or exactly one takes it"
        async with begin(tenant) as unit:
            now = await unit.compactions.get(held.id)
            assert now.owner == (takers[0].owner if takers else "holder")
            assert now.claims == 1 + len(takers)
        outcomes.add("kept" if beat else "taken")
    assert "taken" in outcomes


@pytest.mark.case("34-sweepers")
async def test_five_sweepers_requeue_what_is_expired_once(
    begin: UnitOfWorkFactory, tenant: UUID, engine: AsyncEngine
) -> None:
    for _ in range(15):
        await one_claim(begin, await stored(begin, tenant), status="running", lease_token=uuid4())
    await let_leases_expire(engine, "compactions")

    async def sweep(unit: UnitOfWork, _number: int) -> list[UUID]:
        found = await unit.compactions.expired(limit=15)
        return [
            one.id
            for one in found
            if one.lease_token is not None and await unit.compactions.requeue(one.id, one.lease_token, count=True)
        ]

    done = [id_ for ids in await race(begin, None, 5, sweep) for id_ in ids]
    assert len(done) == len(set(done)) == 15


async def test_twenty_starters_one_turn(begin: UnitOfWorkFactory, tenant: UUID, engine: AsyncEngine) -> None:
    row = await stored(begin, tenant)
    (first,) = winners(await race(begin, tenant, 20, lambda unit, _: unit.turns.start(turn(row))))
    await let_leases_expire(engine, "turns")
    assert not winners(await race(begin, tenant, 20, lambda unit, _: unit.turns.start(turn(row))))
    ended = await race(begin, tenant, 20, lambda unit, _: unit.turns.fail_expired_in_conversation(row.id))
    assert [one.id for one in winners(ended)] == [first.id], "it is ended once, and told once"
    (second,) = winners(await race(begin, tenant, 20, lambda unit, _: unit.turns.start(turn(row))))
    async with begin(tenant) as unit:
        assert (await unit.turns.get(first.id)).status == "failed"
        assert await unit.turns.running(row.id) == second


@pytest.mark.case("43")
async def test_fifty_requests_with_one_key(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    """One of them has the effect; the others wait for its transaction and read what it did."""

    async def request(unit: UnitOfWork, number: int) -> IdempotencyRecord | None:
        record = IdempotencyRecord(key="k", fingerprint="f", ref={}, status=0, created_at=START)
        there = await unit.idempotency.claim(record)
        if there is None:
            await asyncio.sleep(0.05)
            await unit.idempotency.update("k", ref={"by": number}, status=201)
        return there

    answers = await race(begin, tenant, 50, request)
    assert answers.count(None) == 1
    assert {(one.status, one.ref["by"]) for one in answers if one} == {(201, answers.index(None))}


async def test_a_key_that_is_forgotten_meanwhile_is_claimed_by_one(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    record = IdempotencyRecord(key="k", fingerprint="f", ref={}, status=0, created_at=START)

    async def claim_and_forget(unit: UnitOfWork, _number: int) -> bool:
        if await unit.idempotency.claim(record) is None:
            await unit.idempotency.delete("k")
            return True
        return False

    assert await race(begin, tenant, 20, claim_and_forget) == [True] * 20


async def test_a_claim_without_the_conversations_lock_is_no_deadlock(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    """One writer holds the conversation and wants the slot; another has the slot and refers to the conversation."""
    row = await stored(begin, tenant)
    async with asyncio.timeout(30), begin(tenant) as locker, begin(tenant) as claimer:
        await locker.conversations.lock(row.id)
        made = await claimer.compactions.claim(compaction(row))
        assert made is not None
        waiting = asyncio.create_task(locker.compactions.claim(compaction(row)))
        await asyncio.sleep(0.1)
        assert not waiting.done()
        await claimer.commit()
        assert await waiting is None


async def test_writers_and_a_deletion(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    """Writers that come after the deletion get an error, and nothing is left behind."""
    row = await stored(begin, tenant)

    async def work(unit: UnitOfWork, number: int) -> str:
        try:
            if number == 7:
                await unit.conversations.delete(row.id)
                return "deleted"
            await write(unit, row, number)
        except NotFoundError:
            return "gone"
        return "written"

    outcomes = await race(begin, tenant, 15, work)
    assert outcomes[7] == "deleted"
    assert set(outcomes) <= {"deleted", "gone", "written"}
    async with begin(tenant) as unit:
        assert await unit.messages.page(row.id, Page(limit=100)) == ([], None)
        assert await unit.events.after(row.id, 0, limit=9) == []


async def test_a_stranded_compare_and_set_is_lost_once(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    """Two compactors at the barrier: the lock lets one see the other's version, so the state moves on once."""
    row = await stored(begin, tenant)

    async def save(unit: UnitOfWork, _number: int) -> bool:
        locked = await unit.conversations.lock(row.id)
        if locked.state_version != row.state_version:
            return False
        await unit.conversations.update(row.id, state_version=locked.state_version + 1)
        return True

    assert sorted(await race(begin, tenant, 10, save)) == [False] * 9 + [True]


def winners(answers: Sequence[Answer | None]) -> list[Answer]:
    return [answer for answer in answers if answer is not None]


async def one_claim(begin: UnitOfWorkFactory, row: Conversation, **given: Any) -> Compaction:
    async with begin(row.tenant_id) as unit:
        made = await unit.compactions.claim(compaction(row, **given))
        await unit.commit()
    assert made is not None
    return made
