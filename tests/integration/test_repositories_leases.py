"""Claims and leases of compactions and turns, what is due for the sweeper, and what is read across all tenants."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from app.core.model.continuity import Answered, Continuity
from app.core.model.conversation import Conversation, QuietPeriod, Usage
from app.core.model.errors import NotFoundError
from app.core.model.records import MAX_CLAIMS, ApiKey, Attempt, Compaction, EntryCounts, FoldRequest, Page, Turn
from app.core.model.timings import DEFAULT_TIMINGS
from app.infrastructure.ids import new_id
from app.storage.repositories.turns import LEASE_EXPIRED
from app.storage.unit_of_work import UnitOfWork, UnitOfWorkFactory
from tests.integration.rows import START, compaction, idempotent, make_tenant, moment, stored, turn

HOUR = timedelta(hours=1)


async def age(engine: AsyncEngine, table: str, id_: UUID, **columns: timedelta) -> None:
    """Move times of a row into the past on the database's clock."""
    sets = ", ".join(f"{name} = clock_timestamp() - cast(:{name} as interval)" for name in columns)
    async with engine.begin() as connection:
        await connection.execute(text(f"UPDATE {table} SET {sets} WHERE id = :id"), {"id": id_, **columns})  # noqa: S608


async def claimed(begin: UnitOfWorkFactory, row: Conversation, **given: Any) -> Compaction:
    async with begin(row.tenant_id) as unit:
        made = await unit.compactions.claim(compaction(row, **given))
        await unit.commit()
    assert made is not None
    return made


async def held(begin: UnitOfWorkFactory, row: Conversation, owner: str = "me") -> Compaction:
    """A row that runs under a lease."""
    made = await claimed(begin, row)
    async with begin(row.tenant_id) as unit:
        taken = await unit.compactions.take(made.id, lease_token=uuid4(), ran_in="worker", owner=owner)
        await unit.commit()
    assert taken is not None
    return taken


def token(of: Compaction) -> UUID:
    assert of.lease_token is not None
    return of.lease_token


def seconds_left(until: datetime | None) -> float:
    assert until is not None
    return (until - datetime.now(UTC)).total_seconds()


class TestClaim:
    async def test_one_slot_per_conversation(self, begin: UnitOfWorkFactory, tenant: UUID) -> None:
        row, other = await stored(begin, tenant), await stored(begin, tenant)
        first = await claimed(begin, row)
        async with begin(tenant) as unit:
            assert await unit.compactions.claim(compaction(row)) is None
            assert await unit.compactions.claim(compaction(row, status="running", lease_token=uuid4())) is None
            assert await unit.compactions.in_flight(row.id) == first
            assert await unit.compactions.in_flight(other.id) is None
            assert await unit.compactions.claim(compaction(other)) is not None
            await unit.compactions.update_locked(first.id, status="skipped", reason="nothing_to_compact")
            assert await unit.compactions.in_flight(row.id) is None
            assert await unit.compactions.claim(compaction(row)) is not None

    async def test_queued_holds_no_lease_and_running_does(self, begin: UnitOfWorkFactory, tenant: UUID) -> None:
        queued = await claimed(begin, await stored(begin, tenant))
        assert (queued.lease_until, queued.claims, queued.started_at, queued.sent_at) == (None, 0, None, None)
        lease = uuid4()
        running = await claimed(begin, await stored(begin, tenant), status="running", lease_token=lease, owner="p1")
        assert (running.lease_token, running.owner, running.claims) == (lease, "p1", 1)
        assert 5 < seconds_left(running.lease_until) < DEFAULT_TIMINGS.lease_seconds + 1
        assert running.started_at is not None

    async def test_every_field_comes_back(self, begin: UnitOfWorkFactory, tenant: UUID) -> None:
        row = await stored(begin, tenant)
        usage = Usage(input_tokens=1, output_tokens=2, cached_tokens=3, cost_usd=0.25)
        full = compaction(
            row,
            trigger="manual",
            ran_in="request",
            status="applied",
            reason="partial",
            strategy="other",
            model="m",
            request=FoldRequest(
                fold="all", keep_turns=1, keep_messages=2, keep_tokens=3, up_to_seq=4, focus="the «bug»"
            ),
            attempts=(
                Attempt(model="m", outcome="refused", reason="skeleton", duration_ms=12, usage=usage),
                Attempt(
                    model="n",
                    outcome="accepted",
                    reason=None,
                    duration_ms=13,
                    usage=Usage(),
                    prompt_version="summary-0",
                ),
            ),
            from_seq=1,
            to_seq=9,
            messages_covered=9,
            tokens_before=100,
            tokens_after=50,
            entries=EntryCounts(added=1, kept=2, superseded=3, dropped=4, restored_by_code=5, ungrounded=6),
            state_version_before=1,
            state_version_after=2,
            usage=usage,
            duration_ms=77,
            fidelity=0.75,
            continuity=Continuity(kinds={"who": Answered(before=3, after=2, contradicted=1)}, tone=0.5),
            retry_of=uuid4(),
            claims=3,
            sent_at=moment(5),
            started_at=moment(6),
            finished_at=moment(7),
        )
        unset = {item.name for item in fields(full) if getattr(full, item.name) == getattr(compaction(row), item.name)}
        assert unset <= {"tenant_id", "conversation_id", "requested_at", "lease_token", "lease_until", "owner"}
        assert await claimed(begin, row, **{item.name: getattr(full, item.name) for item in fields(full)}) == full
        async with begin(None) as unit:
            assert await unit.compactions.get(full.id) == full
            with pytest.raises(NotFoundError):
                await unit.compactions.get(uuid4())

    async def test_a_claim_needs_its_conversation(self, begin: UnitOfWorkFactory, tenant: UUID) -> None:
        async with begin(tenant) as unit:
            with pytest.raises(NotFoundError):
                await unit.compactions.claim(compaction(replace(await stored(begin, tenant), id=uuid4())))


class TestLease:
    async def test_take_once(self, begin: UnitOfWorkFactory, tenant: UUID) -> None:
        made = await claimed(begin, await stored(begin, tenant))
        lease = uuid4()
        async with begin(tenant) as unit:
            taken = await unit.compactions.take(made.id, lease_token=lease, ran_in="turn", owner="p")
            assert taken is not None
            assert (taken.status, taken.ran_in, taken.lease_token, taken.owner) == ("running", "turn", lease, "p")
            assert (taken.claims, taken.trigger) == (1, "background")
            assert taken.started_at is not None
            assert await unit.compactions.take(made.id, lease_token=uuid4(), ran_in="worker", owner="q") is None
            assert await unit.compactions.take(uuid4(), lease_token=uuid4(), ran_in="worker", owner="q") is None

    async def test_an_expired_lease_is_taken_over_and_fences_the_loser(
        self, begin: UnitOfWorkFactory, tenant: UUID, engine: AsyncEngine
    ) -> None:
        old = await held(begin, await stored(begin, tenant))
        await age(engine, "compactions", old.id, lease_until=timedelta(seconds=1))
        async with begin(tenant) as unit:
            new = await unit.compactions.take(old.id, lease_token=uuid4(), ran_in="sweeper", owner="other")
            assert new is not None
            assert (new.claims, new.started_at) == (2, old.started_at)
            assert await unit.compactions.heartbeat(old.id, token(old)) is False
            assert await unit.compactions.update(old.id, token(old), status="applied") is None
            assert await unit.compactions.requeue(old.id, token(old), count=True) is False
            assert await unit.compactions.get(old.id) == new
            assert await unit.compactions.heartbeat(old.id, token(new)) is True

    async def test_heartbeat_prolongs(self, begin: UnitOfWorkFactory, tenant: UUID, engine: AsyncEngine) -> None:
        made = await held(begin, await stored(begin, tenant))
        await age(engine, "compactions", made.id, lease_until=timedelta(seconds=-1))
        async with begin(tenant) as unit:
            assert await unit.compactions.heartbeat(made.id, token(made)) is True
            assert seconds_left((await unit.compactions.get(made.id)).lease_until) > 5

    async def test_a_chunk_keeps_the_lease_and_an_end_lets_go(self, begin: UnitOfWorkFactory, tenant: UUID) -> None:
        made = await held(begin, await stored(begin, tenant))
        async with begin(tenant) as unit:
            chunk = await unit.compactions.update(made.id, token(made), claims=0, to_seq=5, usage=Usage(input_tokens=3))
            assert chunk == replace(made, claims=0, to_seq=5, usage=Usage(input_tokens=3))
            end = await unit.compactions.update(made.id, token(made), status="applied", finished_at=START)
            assert end is not None
            assert (end.status, end.lease_token, end.lease_until, end.owner) == ("applied", None, None, None)
            assert await unit.compactions.update(made.id, token(made), reason="late") is None

    async def test_finish_needs_no_token(self, begin: UnitOfWorkFactory, tenant: UUID) -> None:
        made = await held(begin, await stored(begin, tenant))
        async with begin(tenant) as unit:
            end = await unit.compactions.update_locked(made.id, status="failed", reason="crashed")
            assert (end.status, end.reason, end.lease_token) == ("failed", "crashed", None)
            with pytest.raises(NotFoundError):
                await unit.compactions.update_locked(uuid4(), status="failed")

    @pytest.mark.parametrize(("count", "claims"), [(True, 1), (False, 0)])
    async def test_requeue(self, begin: UnitOfWorkFactory, tenant: UUID, *, count: bool, claims: int) -> None:
        made = await held(begin, await stored(begin, tenant))
        async with begin(tenant) as unit:
            await unit.compactions.mark_sent([made.id])
            assert await unit.compactions.requeue(made.id, token(made), count=count) is True
            back = await unit.compactions.get(made.id)
            assert (back.status, back.lease_token, back.lease_until, back.owner) == ("queued", None, None, None)
            assert (back.claims, back.sent_at) == (claims, None)
            # It can be sent again at once.
            assert [found.id for found in await unit.compactions.unsent(older_than=HOUR, limit=9)] == [made.id]

    async def test_a_process_that_stops_lets_go_of_its_own(self, begin: UnitOfWorkFactory, tenant: UUID) -> None:
        mine = [await held(begin, await stored(begin, tenant), "mine") for _ in range(2)]
        theirs = await held(begin, await stored(begin, await make_tenant(begin, "second")), "theirs")
        async with begin(None) as unit:
            assert await unit.compactions.release_owner("mine") == 2
            assert await unit.compactions.release_owner("mine") == 0
            for made in mine:
                back = await unit.compactions.get(made.id)
                assert (back.status, back.claims, back.lease_until) == ("queued", 0, None)
            assert await unit.compactions.get(theirs.id) == theirs


class TestSweeping:
    async def test_unsent_after_a_while_by_the_clock_of_the_database(
        self, begin: UnitOfWorkFactory, tenant: UUID, engine: AsyncEngine
    ) -> None:
        """``requested_at`` comes from a process whose clock may be an hour off either way."""
        made = [
            await claimed(begin, await stored(begin, tenant), requested_at=datetime.now(UTC) + off)
            for off in (-HOUR, HOUR, timedelta())
        ]
        async with begin(None) as unit:
            assert await unit.compactions.unsent(older_than=timedelta(seconds=10), limit=9) == []
        await age(engine, "compactions", made[1].id, queued_at=timedelta(seconds=11))
        await age(engine, "compactions", made[2].id, queued_at=timedelta(seconds=60), sent_at=timedelta(seconds=11))
        async with begin(None) as unit:
            found = await unit.compactions.unsent(older_than=timedelta(seconds=10), limit=9)
            assert [one.id for one in found] == [made[1].id, made[2].id]
            await unit.compactions.mark_sent([one.id for one in found])
            assert await unit.compactions.unsent(older_than=timedelta(seconds=10), limit=9) == []
            await unit.compactions.mark_sent([])

    async def test_a_tenant_of_many_leaves_the_turn_to_one_of_few(self, begin: UnitOfWorkFactory, tenant: UUID) -> None:
        other = await make_tenant(begin, "second")
        many = [await claimed(begin, await stored(begin, tenant)) for _ in range(3)]
        one = await claimed(begin, await stored(begin, other))
        async with begin(None) as unit:

            async def take(compaction_id: UUID) -> None:
                await unit.compactions.take(compaction_id, lease_token=uuid4(), ran_in="worker", owner="mine")

            next_in_turn = unit.compactions.next_in_turn
            assert await next_in_turn(many[2].id) in {many[2].id, one.id}
            await take(many[0].id)
            assert await next_in_turn(many[2].id) == one.id, "its tenant has none running"
            await take(one.id)
            assert await next_in_turn(many[2].id) == many[2].id
            assert await next_in_turn(one.id) == many[1].id, "a hint whose own row is taken"
            await unit.conversations.hide(many[1].conversation_id)
            assert await next_in_turn(one.id) == many[2].id
            await take(many[2].id)
            assert await next_in_turn(one.id) is None

    async def test_takeable_says_what_take_would(
        self, begin: UnitOfWorkFactory, tenant: UUID, engine: AsyncEngine
    ) -> None:
        queued = await claimed(begin, await stored(begin, tenant))
        living, dead = [await held(begin, await stored(begin, tenant)) for _ in range(2)]
        await age(engine, "compactions", dead.id, lease_until=timedelta(seconds=1))
        async with begin(tenant) as unit:
            assert [await unit.compactions.takeable(one.id) for one in (queued, living, dead)] == [True, False, True]
            assert not await unit.compactions.takeable(UUID(int=9))

    async def test_after_the_last_claim_nobody_takes_it_until_the_sweeper_gives_it_up(
        self, begin: UnitOfWorkFactory, tenant: UUID, engine: AsyncEngine
    ) -> None:
        made = await claimed(begin, await stored(begin, tenant))
        for number in range(1, MAX_CLAIMS + 1):
            async with begin(tenant) as unit:
                taken = await unit.compactions.take(made.id, lease_token=uuid4(), ran_in="worker", owner="dead")
                await unit.commit()
            assert taken is not None
            assert taken.claims == number
            await age(engine, "compactions", made.id, lease_until=timedelta(seconds=1))
        async with begin(tenant) as unit:
            assert not await unit.compactions.takeable(made.id)
            assert await unit.compactions.take(made.id, lease_token=uuid4(), ran_in="worker", owner="next") is None
            assert [one.id for one in await unit.compactions.expired(limit=9)] == [made.id]

    async def test_expired_of_all_tenants(self, begin: UnitOfWorkFactory, tenant: UUID, engine: AsyncEngine) -> None:
        other = await make_tenant(begin, "second")
        made = [await held(begin, await stored(begin, owner)) for owner in (tenant, other, tenant)]
        for seconds, one in enumerate(made[:2], start=1):
            await age(engine, "compactions", one.id, lease_until=timedelta(seconds=seconds))
        async with begin(None) as unit:
            assert [one.id for one in await unit.compactions.expired(limit=9)] == [made[1].id, made[0].id]
            assert [one.id for one in await unit.compactions.expired(limit=1)] == [made[1].id]

    async def test_how_long_the_newest_applied_ones_took(self, begin: UnitOfWorkFactory, tenant: UUID) -> None:
        row, other = await stored(begin, tenant), await stored(begin, tenant)
        for number, status in ((1, "applied"), (3, "applied"), (2, "applied"), (4, "failed")):
            await claimed(begin, row, status=status, id=UUID(int=number), duration_ms=1_000 * number)
        async with begin(tenant) as unit:
            assert await unit.compactions.durations(row.id, limit=2) == [3.0, 2.0]
            assert await unit.compactions.durations(row.id, limit=9) == [3.0, 2.0, 1.0]
            assert await unit.compactions.durations(other.id, limit=9) == []

    async def test_how_long_one_took_is_measured_by_one_clock(
        self, begin: UnitOfWorkFactory, tenant: UUID, engine: AsyncEngine
    ) -> None:
        """It may be claimed by one process and done by another, and their clocks differ."""
        row = await stored(begin, tenant)
        made = await claimed(begin, row, requested_at=datetime.now(UTC) - HOUR)
        await age(engine, "compactions", made.id, queued_at=timedelta(seconds=5))
        async with begin(tenant) as unit:
            await unit.compactions.take(made.id, lease_token=uuid4(), ran_in="worker", owner="p")
            await unit.commit()
        await age(engine, "compactions", made.id, started_at=timedelta(seconds=3))
        async with begin(tenant) as unit:
            ended = await unit.compactions.end(made.id, status="applied", finished_at=datetime.now(UTC) + HOUR)
            assert ended.duration_ms is not None
            assert 3_000 <= ended.duration_ms < 60_000
            (seconds,) = await unit.compactions.durations(row.id, limit=9)
            assert ended.duration_ms / 1_000 + 1 < seconds < 60, "with the wait for the worker"

    async def test_pages_of_a_conversation_a_status_and_all(self, begin: UnitOfWorkFactory, tenant: UUID) -> None:
        row, other = await stored(begin, tenant), await stored(begin, tenant)
        mine = [await claimed(begin, row, status="failed", id=UUID(int=number)) for number in (3, 1, 2)]
        theirs = await claimed(begin, other, id=UUID(int=4))
        newest = sorted((*mine, theirs), key=lambda one: one.id, reverse=True)
        async with begin(tenant) as unit:
            first, cursor = await unit.compactions.page(Page(limit=2))
            rest, end = await unit.compactions.page(Page(limit=2, after=cursor))
            assert (first + rest, end) == (newest, None)
            assert (await unit.compactions.page(Page(), conversation_id=other.id))[0] == [theirs]
            failed, _ = await unit.compactions.page(Page(order="asc"), status="failed")
            assert failed == newest[:0:-1]
            assert await unit.compactions.page(Page(), conversation_id=other.id, status="failed") == ([], None)


NEEDS: list[tuple[dict[str, Any], bool]] = [
    ({}, True),
    ({"context_tokens": 100}, True),
    ({"context_tokens": 99}, False),
    ({"trigger_tokens": None}, False),
    ({"trigger_tokens": None, "context_messages": 30, "trigger_messages": 30}, True),
    ({"trigger_tokens": None, "context_messages": 29, "trigger_messages": 30}, False),
    ({"context_messages": 29, "trigger_messages": 30}, True),
    ({"context_messages": 30, "trigger_messages": 30, "quiet": QuietPeriod(until_seq=5)}, False),
    ({"quiet": QuietPeriod(until_seq=4)}, True),
    ({"quiet": QuietPeriod(until_seq=5)}, False),
    ({"quiet": QuietPeriod(until_tokens=120)}, True),
    ({"quiet": QuietPeriod(until_tokens=121)}, False),
    ({"quiet": QuietPeriod(until=datetime.now(UTC) - HOUR)}, True),
    ({"quiet": QuietPeriod(until=datetime.now(UTC) + HOUR)}, False),
    ({"quiet": QuietPeriod(until_seq=4, until_tokens=121, until=datetime.now(UTC) - HOUR)}, False),
]


def tried(*, metered: bool = True) -> Attempt:
    return Attempt(model="m", outcome="accepted", reason=None, duration_ms=1, usage=Usage(), metered=metered)


class TestCallsWithin:
    """The calls that the spend guard counts: those that cost money and were recorded lately."""

    async def test_of_a_conversation_and_of_the_tenant(
        self, begin: UnitOfWorkFactory, tenant: UUID, engine: AsyncEngine
    ) -> None:
        row, other = await stored(begin, tenant), await stored(begin, tenant)
        old = await claimed(begin, row)
        async with begin(tenant) as unit:
            assert await unit.spending.metered_calls(HOUR, row.id) == (0, 0)
            await unit.compactions.update_locked(old.id, status="failed", attempts=(tried(),) * 7, finished_at=START)
            await unit.commit()
        await age(engine, "compactions", old.id, finished_at=timedelta(hours=2))
        ended, running = await claimed(begin, row), await held(begin, other)
        async with begin(tenant) as unit:
            mixed = (tried(), tried(metered=False), tried())
            await unit.compactions.update_locked(
                ended.id, status="applied", attempts=mixed, finished_at=datetime.now(UTC)
            )
            assert await unit.compactions.update(running.id, token(running), attempts=(tried(),))
            assert await unit.spending.metered_calls(HOUR, row.id) == (2, 3)
            assert await unit.spending.metered_calls(HOUR, other.id) == (1, 3)
            assert await unit.spending.metered_calls(3 * HOUR, row.id) == (9, 10)


class TestDue:
    """A conversation is due by all three parts of its quiet period, its slot and its turn; over all tenants."""

    async def due(self, begin: UnitOfWorkFactory) -> set[tuple[UUID, UUID]]:
        async with begin(None) as unit:
            return set(await unit.conversations.due(limit=99))

    async def test_threshold_and_quiet(self, begin: UnitOfWorkFactory, tenant: UUID) -> None:
        base: dict[str, Any] = {"last_seq": 5, "context_tokens": 120, "trigger_tokens": 100}
        expected = set()
        for given, is_due in NEEDS:
            row = await stored(begin, tenant, **base | given)
            expected |= {(tenant, row.id)} if is_due else set()
        assert await self.due(begin) == expected

    async def test_not_while_something_is_in_flight_or_answering(
        self, begin: UnitOfWorkFactory, tenant: UUID, engine: AsyncEngine
    ) -> None:
        other = await make_tenant(begin, "second")
        shape = {"last_seq": 5, "context_tokens": 120, "trigger_tokens": 100}
        row = await stored(begin, tenant, **shape)
        # Another tenant uses the same id: its compaction and turn have no influence on the first.
        twin = await stored(begin, other, **shape, id=row.id)
        assert await self.due(begin) == {(tenant, row.id), (other, row.id)}

        queued = await claimed(begin, twin)
        assert await self.due(begin) == {(tenant, row.id)}
        async with begin(other) as unit:
            await unit.compactions.update_locked(queued.id, status="failed")
            started = await unit.turns.start(turn(twin))
            await unit.commit()
        assert await self.due(begin) == {(tenant, row.id)}

        assert started is not None
        await age(engine, "turns", started.id, lease_until=timedelta(seconds=1))
        assert await self.due(begin) == {(tenant, row.id), (other, row.id)}
        async with begin(None) as unit:
            assert len(await unit.conversations.due(limit=1)) == 1


class TestTurns:
    async def started(self, begin: UnitOfWorkFactory, row: Conversation, **given: Any) -> Turn | None:
        async with begin(row.tenant_id) as unit:
            made = await unit.turns.start(turn(row, **given))
            await unit.commit()
        return made

    async def test_one_runs_and_every_field_comes_back(self, begin: UnitOfWorkFactory, tenant: UUID) -> None:
        row = await stored(begin, tenant)
        given = turn(
            row, reply_id=uuid4(), compaction_id=uuid4(), interrupt_requested=True, warnings=("a", "b"), error_code="x"
        )
        async with begin(tenant) as unit:
            made = await unit.turns.start(given)
            assert made is not None
            assert made == replace(given, lease_until=made.lease_until)
            assert 5 < seconds_left(made.lease_until) < DEFAULT_TIMINGS.lease_seconds + 1
            assert await unit.turns.start(turn(row)) is None
            assert await unit.turns.running(row.id) == made
            end = await unit.turns.end(made.id, status="completed", warnings=("c",), finished_at=START)
            assert end == replace(made, status="completed", warnings=("c",), finished_at=START)
            assert await unit.turns.end(made.id, status="failed") is None, "a turn ends once"
            assert await unit.turns.get(made.id) == end
            assert await unit.turns.running(row.id) is None
            assert await unit.turns.heartbeat(made.id) is None
            assert await unit.turns.request_interrupt(row.id) is None
            assert await unit.turns.start(turn(row)) is not None

    async def test_unknown_ones(self, begin: UnitOfWorkFactory, tenant: UUID) -> None:
        row = await stored(begin, tenant)
        async with begin(tenant) as unit:
            with pytest.raises(NotFoundError):
                await unit.turns.get(uuid4())
            assert await unit.turns.end(uuid4(), status="failed") is None
            assert await unit.turns.fail_expired_in_conversation(row.id) is None
            assert await unit.turns.heartbeat(uuid4()) is None
            assert await unit.turns.running(row.id) is None
            with pytest.raises(NotFoundError):
                await unit.turns.start(turn(replace(row, id=uuid4())))

    async def test_a_dead_one_makes_room(self, begin: UnitOfWorkFactory, tenant: UUID, engine: AsyncEngine) -> None:
        row = await stored(begin, tenant)
        dead = await self.started(begin, row)
        assert dead is not None
        await age(engine, "turns", dead.id, lease_until=timedelta(seconds=1))
        async with begin(tenant) as unit:
            assert await unit.turns.running(row.id) is None
            ended = await unit.turns.fail_expired_in_conversation(row.id)
            assert ended is not None
            assert ended.id == dead.id
            await unit.commit()
        assert await self.started(begin, row) is not None
        async with begin(tenant) as unit:
            ended = await unit.turns.get(dead.id)
            assert (ended.status, ended.error_code) == ("failed", LEASE_EXPIRED)
            assert ended.finished_at is not None
            assert await unit.turns.heartbeat(dead.id) is None

    async def test_heartbeat_prolongs_and_brings_the_interrupt(
        self, begin: UnitOfWorkFactory, tenant: UUID, engine: AsyncEngine
    ) -> None:
        row = await stored(begin, tenant)
        made = await self.started(begin, row)
        assert made is not None
        await age(engine, "turns", made.id, lease_until=timedelta(seconds=-1))
        async with begin(tenant) as unit:
            assert await unit.turns.request_interrupt(row.id, row.id) is None, "another turn than the one that runs"
            beat = await unit.turns.heartbeat(made.id)
            assert beat is not None
            assert not beat.interrupt_requested
            asked = await unit.turns.request_interrupt(row.id, made.id)
            assert asked is not None
            assert asked.interrupt_requested
            beat = await unit.turns.heartbeat(made.id)
            assert beat is not None
            assert beat.interrupt_requested
            assert seconds_left(beat.lease_until) > 5

    async def test_the_sweeper_ends_dead_ones_of_all_tenants(
        self, begin: UnitOfWorkFactory, tenant: UUID, engine: AsyncEngine
    ) -> None:
        other = await make_tenant(begin, "second")
        made = [await self.started(begin, await stored(begin, owner)) for owner in (tenant, other, tenant)]
        for one in made[:2]:
            assert one is not None
            await age(engine, "turns", one.id, lease_until=timedelta(seconds=1))
        async with begin(None) as unit:
            ended = await swept(unit)
        assert {one.id for one in ended} == {one.id for one in made[:2] if one}
        assert {(one.status, one.error_code) for one in ended} == {("failed", LEASE_EXPIRED)}


async def swept(unit: UnitOfWork) -> Sequence[Turn]:
    """End all expired turns one by one; the limit must hold, and each turn is ended only once."""
    found: list[Turn] = []
    while batch := await unit.turns.expired(limit=1):
        (dead,) = batch
        ended = await unit.turns.fail_expired(dead.id)
        assert ended is not None
        assert await unit.turns.fail_expired(dead.id) is None
        found.append(ended)
    return found


class TestOverAllTenants:
    async def test_forgets_the_old_of_all_tenants(self, begin: UnitOfWorkFactory, tenant: UUID) -> None:
        other = await make_tenant(begin, "second")
        for owner in (tenant, other):
            async with begin(owner) as unit:
                await unit.idempotency.claim(idempotent("old", created_at=START - timedelta(days=3000)))
                await unit.idempotency.claim(idempotent("new", created_at=START + timedelta(days=30000)))
                await unit.commit()
        async with begin(None) as unit:
            assert await unit.idempotency.forget_older_than(timedelta(hours=24), limit=1) == 1, "no more at once"
            assert await unit.idempotency.forget_older_than(timedelta(hours=24), limit=9) == 1
            assert await unit.idempotency.forget_older_than(timedelta(hours=24), limit=9) == 0


class TestKeys:
    async def test_life_of_a_key(self, begin: UnitOfWorkFactory, tenant: UUID) -> None:
        key = ApiKey(
            id=new_id(),
            tenant_id=tenant,
            name="ci",
            prefix="tl_12",
            secret_hash=bytes(range(32)),
            scopes=frozenset({"read", "write"}),
            created_at=START,
        )
        async with begin(None) as unit:
            assert await unit.keys.any() is False
            await unit.keys.add(key)
            read = await unit.keys.by_hash(key.secret_hash)
            assert read is not None
            assert read.key == key
            assert await unit.keys.by_hash(b"other") is None
            assert await unit.keys.all() == [key]
            assert await unit.keys.any() is True
            assert await unit.keys.revoke(uuid4(), moment(1)) is False
            assert await unit.keys.revoke(key.id, moment(1)) is True
            assert await unit.keys.revoke(key.id, moment(2)) is False
            assert await unit.keys.by_hash(key.secret_hash) is None
            assert await unit.keys.all() == [replace(key, revoked_at=moment(1))]
            assert await unit.keys.any() is False

    async def test_tenants(self, begin: UnitOfWorkFactory) -> None:
        mine = await make_tenant(begin, "mine")
        async with begin(None) as unit:
            assert await unit.keys.tenant_by_name("mine") == mine
            assert await unit.keys.tenant_by_name("nobody") is None
            await unit.keys.add_tenant(mine, "renamed")
            assert await unit.keys.tenant_by_name("mine") == mine
            await unit.keys.add_tenant(uuid4(), "mine")
            assert await unit.keys.tenant_by_name("mine") == mine

    async def test_a_tenant_that_two_processes_make_at_once_is_one(self, begin: UnitOfWorkFactory) -> None:
        async def make(tenant_id: UUID) -> UUID | None:
            async with begin(None) as unit:
                await unit.keys.add_tenant(tenant_id, "ours")
                found = await unit.keys.tenant_by_name("ours")
                await unit.commit()
                return found

        first = uuid4()
        async with begin(None) as unit:
            await unit.keys.add_tenant(first, "ours")
            second = asyncio.create_task(make(uuid4()))
            done, _ = await asyncio.wait([second], timeout=0.2)
            assert not done, "it waits for the first"
            await unit.commit()
        assert await second == first
