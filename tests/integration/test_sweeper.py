"""The sweeper on a real database handles each row once, however many sweepers there are, and nothing stops it."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from app.core.model.conversation import Conversation, QuietPeriod
from app.core.model.errors import DatabaseReadOnlyError
from app.core.model.records import MAX_CLAIMS, Compaction, IdempotencyRecord, RanIn, Turn
from app.core.model.retention import Retention
from app.core.model.timings import DEFAULT_TIMINGS
from app.storage.repositories.compactions import CompactionRepository
from app.storage.repositories.works import WorkRepository
from app.storage.unit_of_work import UnitOfWork, UnitOfWorkFactory
from app.usecases.compaction import local_runners
from app.usecases.compaction.sweeper import JITTER, Sweeper
from app.usecases.history.retaining import RetentionService
from tests.cases import guarded
from tests.fakes import FakeClock, FakeEventBus, FakeJobQueue
from tests.integration.rows import compaction, stored, turn
from tests.integration.services import Outage

HOUR = timedelta(hours=1)


class Service:
    """The compaction service's part: real rows, no models. ``runs`` counts what was performed."""

    def __init__(self, begin: UnitOfWorkFactory, owner: str = "us") -> None:
        self._begin = begin
        self._owner = owner
        self.given_up: list[UUID] = []
        self.runs: list[UUID] = []
        self.running = self.most_running = 0
        self.poison: set[UUID] = set()
        self.work: Callable[[], Awaitable[object]] = lambda: asyncio.sleep(0.01)

    async def execute(self, compaction_id: UUID, *, ran_in: RanIn) -> Compaction | None:
        assert ran_in == "sweeper"
        if compaction_id in self.poison:
            raise RuntimeError("poison")
        async with self._begin(None) as uow:
            row = await uow.compactions.take(compaction_id, lease_token=uuid4(), ran_in=ran_in, owner=self._owner)
            await uow.commit()
        if row is None:
            return None
        self.runs.append(compaction_id)
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        try:
            await self.work()
        finally:
            self.running -= 1
        async with self._begin(row.tenant_id) as uow:
            ended = await uow.compactions.update_locked(row.id, status="applied", finished_at=datetime.now(UTC))
            await uow.commit()
        return ended

    async def claim_due(self, tenant_id: UUID, conversation_id: UUID, /) -> UUID | None:
        if conversation_id in self.poison:
            raise RuntimeError("poison")
        async with self._begin(tenant_id) as uow:
            row = await uow.conversations.lock(conversation_id)
            claimed = await uow.compactions.claim(compaction(row, requested_at=datetime.now(UTC)))
            await uow.commit()
        return claimed.id if claimed else None

    async def end_quiet_of_limit(self, tenant_id: UUID, conversation_id: UUID, /) -> None:
        raise NotImplementedError

    async def give_up(self, uow: UnitOfWork, row: Compaction, /) -> None:
        if row.id in self.poison:
            raise RuntimeError("poison")
        self.given_up.append(row.id)
        await uow.conversations.lock(row.conversation_id)
        await uow.compactions.update_locked(row.id, status="failed", reason="crashed", finished_at=datetime.now(UTC))
        await uow.events.add(row.conversation_id, "compaction.failed", {"compaction_id": str(row.id)}, row.requested_at)
        await uow.conversations.update(row.conversation_id, quiet=QuietPeriod(until_seq=1, reason="crashed"))


async def refused(*_: object, **__: object) -> int:
    raise DatabaseReadOnlyError("the database takes no writes")


class World:
    """A database, a broker in memory, and sweepers over them."""

    def __init__(self, begin: UnitOfWorkFactory, engine: AsyncEngine, tenant: UUID) -> None:
        self.begin = begin
        self.engine = engine
        self.tenant = tenant
        self.clock = FakeClock()
        self.bus = FakeEventBus(self.clock)
        self.queue = FakeJobQueue()
        self.service = Service(begin)
        self._sweepers: list[Sweeper] = []

    def sweeper(self, seed: int = 0, **parts: Any) -> Sweeper:
        given: dict[str, Any] = {"uow": self.begin, "queue": self.queue, "compaction": self.service, "bus": self.bus}
        made = Sweeper(**(given | {"clock": self.clock, "owner": "us", "rng": random.Random(seed)} | parts))
        self._sweepers.append(made)
        return made

    async def stop(self) -> None:
        """End the jobs that sweepers run themselves, since they would outlive the database."""
        for sweeper in self._sweepers:
            await sweeper._stand_in.stop()

    async def execute(self, statement: str, **values: Any) -> None:
        async with self.engine.begin() as connection:
            await connection.execute(text(statement), values)

    async def conversation(self, **fields: Any) -> Conversation:
        return await stored(self.begin, self.tenant, **fields)

    async def queued(self, *, waited: float = 60.0) -> Compaction:
        """A row that was queued this many seconds ago, and never sent."""
        row = await self.conversation()
        async with self.begin(self.tenant) as uow:
            made = await uow.compactions.claim(compaction(row))
            await uow.commit()
        assert made is not None
        await self.age(made.id, waited)
        return made

    async def age(self, id_: UUID, seconds: float) -> None:
        statement = (
            "UPDATE compactions SET queued_at = clock_timestamp() - cast(:age AS interval),"
            " requested_at = clock_timestamp() - cast(:age AS interval) WHERE id = :id"
        )
        await self.execute(statement, id=id_, age=timedelta(seconds=seconds))

    async def crashed(self, *, claims: int = 1, lease_over: bool = True) -> Compaction:
        """A row whose holder disappeared after this many claims."""
        made = await self.queued()
        async with self.begin(self.tenant) as uow:
            taken = await uow.compactions.take(made.id, lease_token=uuid4(), ran_in="worker", owner="dead")
            await uow.commit()
        assert taken is not None
        over = "lease_until = clock_timestamp() - interval '1 second'" if lease_over else "owner = owner"
        await self.execute(f"UPDATE compactions SET claims = :claims, {over} WHERE id = :id", claims=claims, id=made.id)  # noqa: S608
        return taken

    async def get(self, id_: UUID) -> Compaction:
        async with self.begin(None) as uow:
            return await uow.compactions.get(id_)


@pytest.fixture
async def world(begin: UnitOfWorkFactory, engine: AsyncEngine, tenant: UUID) -> AsyncIterator[World]:
    made = World(begin, engine, tenant)
    yield made
    await made.stop()


@guarded("31-worker")
async def test_a_lost_lease_goes_back_to_the_queue_and_is_sent(
    world: World, monkeypatch: pytest.MonkeyPatch, *, is_guarded: bool
) -> None:
    """Control: nobody looks for leases that are over."""
    if not is_guarded:
        monkeypatch.setattr(Sweeper, "_recover_crashed", _does_nothing)
    crashed, living = await world.crashed(claims=MAX_CLAIMS - 1), await world.crashed(lease_over=False)
    await world.sweeper().sweep()
    row = await world.get(crashed.id)
    assert (world.queue.ids == [crashed.id]) == (row.status == "queued") == is_guarded
    if is_guarded:
        assert (row.claims, row.owner, row.lease_token) == (MAX_CLAIMS - 1, None, None)
        assert row.sent_at is not None
    assert (await world.get(living.id)).status == "running"


async def _does_nothing(_: Sweeper) -> None:
    """The guard, broken."""


@pytest.mark.control("33")
async def test_control_if_nobody_counts_claims_it_is_tried_for_ever(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.usecases.compaction.sweeper.MAX_CLAIMS", 1_000)
    crashed = await world.crashed(claims=MAX_CLAIMS)
    await world.sweeper().sweep()
    assert (await world.get(crashed.id)).status == "queued"
    assert world.queue.ids == [crashed.id]


async def test_a_lease_that_was_renewed_since_it_was_found_over_stays(world: World) -> None:
    alive, crashed = await world.crashed(), await world.crashed()
    async with world.begin(None) as uow:
        found = {row.id: row for row in await uow.compactions.expired(limit=2)}
    async with world.begin(world.tenant) as uow:
        assert alive.lease_token is not None
        assert await uow.compactions.heartbeat(alive.id, alive.lease_token)
        await uow.commit()
    for one in (alive, crashed):
        await world.sweeper()._recover(found[one.id])
    assert [(await world.get(one.id)).status for one in (alive, crashed)] == ["running", "queued"]


async def test_a_process_that_starts_may_have_the_key_that_was_missing(world: World) -> None:
    until = datetime.now(UTC) + timedelta(minutes=9)
    waiting = [
        await world.conversation(
            last_seq=1, context_tokens=9, trigger_tokens=5, quiet=QuietPeriod(until=until, reason=reason)
        )
        for reason in ("unauthorized", "empty_summary")
    ]
    await world.sweeper().sweep()
    begun = [(await world.get(id_)).conversation_id for id_ in world.queue.ids]
    assert begun == [waiting[0].id], "the other needs its pause"


@pytest.mark.parametrize("is_read_only", [False, True])
async def test_right_after_an_outage_a_process_that_lives_keeps_its_work(
    world: World, monkeypatch: pytest.MonkeyPatch, *, is_read_only: bool
) -> None:
    """All leases are over then, and who looks at them may be the first to reach the database again."""
    outage, (alive, crashed) = Outage(world.begin, 30), [await world.crashed() for _ in range(2)]
    sweeper = world.sweeper(uow=outage)
    with monkeypatch.context() as patched:
        if is_read_only:
            patched.setattr(WorkRepository, "end", refused)
            patched.setattr(CompactionRepository, "requeue", refused)
        else:
            outage.begin()
        await sweeper.sweep()
    outage.end()
    await sweeper.sweep()
    async with world.begin(world.tenant) as uow:
        assert alive.lease_token is not None
        assert await uow.compactions.heartbeat(alive.id, alive.lease_token)
        await uow.commit()
    await sweeper.sweep()
    assert [(await world.get(one.id)).status for one in (alive, crashed)] == ["running", "queued"]


@guarded("34-sleep")
async def test_right_after_a_sleep_of_the_machine_a_process_that_lives_keeps_its_work(
    world: World, monkeypatch: pytest.MonkeyPatch, *, is_guarded: bool
) -> None:
    """A laptop that wakes: the monotonic clock, by which heartbeats and sweeps come, stood still meanwhile.

    Control: nobody looks whether the machine slept.
    """
    if not is_guarded:
        monkeypatch.setattr(Sweeper, "_has_slept", lambda _: False)
    sweeper = world.sweeper()
    await sweeper.sweep()
    alive, crashed = [await world.crashed() for _ in range(2)]
    awake = world.clock.now()
    monkeypatch.setattr(world.clock, "now", lambda: awake + HOUR)
    await sweeper.sweep()
    async with world.begin(world.tenant) as uow:
        assert alive.lease_token is not None
        assert await uow.compactions.heartbeat(alive.id, alive.lease_token) == is_guarded
        await uow.commit()
    await sweeper.sweep()
    assert ((await world.get(alive.id)).status == "running") == is_guarded
    assert (await world.get(crashed.id)).status == "queued"


@pytest.mark.case("33")
async def test_after_five_claims_it_is_given_up_with_an_event(world: World) -> None:
    crashed = await world.crashed(claims=MAX_CLAIMS)
    await world.sweeper().sweep()
    row = await world.get(crashed.id)
    assert (row.status, row.reason) == ("failed", "crashed")
    (event,) = world.bus.published
    assert (event.type, event.conversation_id) == ("compaction.failed", crashed.conversation_id)
    async with world.begin(world.tenant) as uow:
        assert [event.number for event in await uow.events.after(crashed.conversation_id, 0, limit=9)] == [1]
        assert (await uow.conversations.get(crashed.conversation_id)).quiet.reason == "crashed"
    assert world.queue.asked == []


async def test_a_row_that_cannot_be_given_up_holds_up_no_other(world: World) -> None:
    rows = [await world.crashed(claims=MAX_CLAIMS) for _ in range(4)]
    world.service.poison = {rows[0].id, rows[2].id}
    await world.sweeper().sweep()
    assert [(await world.get(row.id)).status for row in rows] == ["running", "failed", "running", "failed"]


@pytest.mark.case("32-queued", "32-flushed")
async def test_queued_rows_are_sent_again_when_they_waited_long_enough(world: World) -> None:
    fresh, old = await world.queued(waited=3), await world.queued(waited=6)
    sweeper = world.sweeper()
    await sweeper.sweep()
    assert world.queue.ids == [old.id]
    await sweeper.sweep()
    assert world.queue.ids == [old.id], "just sent"
    await world.execute("UPDATE compactions SET sent_at = clock_timestamp() - interval '6 seconds'")
    await sweeper.sweep()
    assert world.queue.ids == [old.id, old.id], "sent long ago, but the other was queued just now"
    await world.age(fresh.id, 6)
    await sweeper.sweep()
    assert world.queue.ids == [old.id, old.id, fresh.id]


async def test_a_refused_row_is_not_marked_as_sent_and_ends_the_attempts(world: World) -> None:
    rows = [await world.queued() for _ in range(3)]
    world.queue.away = True
    await world.sweeper().sweep()
    assert len(world.queue.asked) == 1
    assert [(await world.get(row.id)).sent_at for row in rows] == [None, None, None]


async def test_due_conversations_are_claimed_and_sent(world: World) -> None:
    due = await world.conversation(context_tokens=100, trigger_tokens=100, last_seq=3)
    poison = await world.conversation(context_tokens=100, trigger_tokens=100, last_seq=3)
    await world.conversation(context_tokens=99, trigger_tokens=100, last_seq=3)
    world.service.poison = {poison.id}
    await world.sweeper().sweep()
    (sent,) = world.queue.ids
    row = await world.get(sent)
    assert row.conversation_id == due.id
    assert row.sent_at is not None


async def test_a_claim_that_the_broker_refused_is_sent_by_a_later_sweep(world: World) -> None:
    due = await world.conversation(context_tokens=100, trigger_tokens=100, last_seq=3)
    world.queue.away = True
    sweeper = world.sweeper()
    await sweeper.sweep()
    async with world.begin(world.tenant) as uow:
        claimed = await uow.compactions.in_flight(due.id)
    assert claimed is not None
    assert claimed.sent_at is None
    world.queue.away = False
    await world.age(claimed.id, 6)
    await sweeper.sweep()
    assert world.queue.ids == [claimed.id]


async def started_turn(world: World, *, expired: bool) -> Turn:
    row = await world.conversation()
    async with world.begin(world.tenant) as uow:
        made = await uow.turns.start(turn(row))
        await uow.commit()
    assert made is not None
    if expired:
        await world.execute(
            "UPDATE turns SET lease_until = clock_timestamp() - interval '1 second' WHERE id = :id", id=made.id
        )
    return made


async def test_dead_turns_are_ended_with_an_event(world: World) -> None:
    dead, living = await started_turn(world, expired=True), await started_turn(world, expired=False)
    await world.sweeper().sweep()
    async with world.begin(world.tenant) as uow:
        assert (await uow.turns.get(dead.id)).status == "failed"
        assert (await uow.turns.get(living.id)).status == "running"
        (event,) = await uow.events.after(dead.conversation_id, 0, limit=9)
    assert (event.type, event.data["turn_id"]) == ("reply.failed", str(dead.id))
    assert event.data["message_id"] == str(dead.message_id)
    assert world.bus.published == [event]


async def test_old_idempotency_keys_are_forgotten_once_an_hour(world: World) -> None:
    async def keys() -> int:
        async with world.engine.connect() as connection:
            return int((await connection.execute(text("SELECT count(*) FROM idempotency_keys"))).scalar_one())

    async def add(key: str, age: timedelta) -> None:
        moment = datetime.now(UTC) - age
        record = IdempotencyRecord(key=key, fingerprint="f", ref={}, status=201, created_at=moment)
        async with world.begin(world.tenant) as uow:
            await uow.idempotency.claim(record)
            await uow.commit()
        await world.execute("UPDATE idempotency_keys SET created_at = :at WHERE key = :key", at=moment, key=key)

    sweeper = world.sweeper(housekeeping=RetentionService(world.begin, Retention()))
    await add("old", 25 * HOUR)
    await add("young", 23 * HOUR)
    await sweeper.sweep()
    assert await keys() == 1
    await add("old again", 25 * HOUR)
    await sweeper.sweep()
    assert await keys() == 2
    await world.clock.advance(3_601)
    await sweeper.sweep()
    assert await keys() == 1


@pytest.mark.control("32-flushed")
async def test_control_what_was_sent_once_is_not_sent_again_by_itself(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Sweeper, "_send_waiting", _does_nothing)
    await world.queued(waited=6)
    await world.sweeper().sweep()
    assert world.queue.ids == []


@pytest.mark.control("34-sweepers")
async def test_control_without_locks_two_sweepers_send_the_same_row(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    unsent = CompactionRepository.unsent

    async def unlocked(rows: CompactionRepository, **given: Any) -> list[Compaction]:
        found = await unsent(rows, **given)
        await rows._session.commit()  # the locks go with the transaction
        await asyncio.sleep(0.1)
        return found

    monkeypatch.setattr(CompactionRepository, "unsent", unlocked)
    row = await world.queued()
    await asyncio.gather(*(world.sweeper(seed).sweep() for seed in range(5)))
    assert world.queue.ids.count(row.id) > 1


@pytest.mark.case("34-sweepers")
@pytest.mark.parametrize("each", [3, pytest.param(12, marks=pytest.mark.long)])
async def test_five_sweepers_at_once_handle_each_row_once(world: World, each: int) -> None:
    requeued = [await world.crashed(claims=2) for _ in range(each)]
    poison = [await world.crashed(claims=MAX_CLAIMS) for _ in range(each)]
    waiting = [await world.queued() for _ in range(each)]
    due = [await world.conversation(context_tokens=9, trigger_tokens=9, last_seq=1) for _ in range(each)]
    dead = [await started_turn(world, expired=True) for _ in range(each)]
    sweepers = [world.sweeper(seed) for seed in range(5)]
    for _ in range(2):
        await asyncio.gather(*(sweeper.sweep() for sweeper in sweepers))
    assert Counter(world.service.given_up) == Counter(row.id for row in poison)
    assert {(await world.get(row.id)).claims for row in requeued} == {2}
    sent = Counter(world.queue.ids)
    assert set(sent.values()) == {1}
    assert set(sent) >= {row.id for row in requeued} | {row.id for row in waiting}
    by_conversation = Counter([(await world.get(id_)).conversation_id for id_ in sent])
    assert by_conversation == Counter(row.conversation_id for row in requeued + waiting) + Counter(
        row.id for row in due
    )
    events = Counter((event.type, event.conversation_id) for event in world.bus.published)
    assert events == Counter(("compaction.failed", row.conversation_id) for row in poison) + Counter(
        ("reply.failed", row.conversation_id) for row in dead
    )


async def broker_away_for(world: World, sweeper: Sweeper, seconds: float) -> None:
    world.queue.away = True
    await sweeper.sweep()
    await world.clock.advance(seconds)
    await sweeper.sweep()


async def until(condition: Callable[[], bool], seconds: float = 10.0) -> None:
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - the condition is the database's
            await asyncio.sleep(0.01)


@pytest.mark.control("32-away")
async def test_control_whoever_only_sends_does_nothing_while_the_broker_is_away(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Sweeper, "_broker_is_away", lambda _: False)
    await world.queued()
    await broker_away_for(world, world.sweeper(), DEFAULT_TIMINGS.stand_in_seconds + 1)
    await asyncio.sleep(0.2)
    assert world.service.runs == []


@pytest.mark.case("32-away")
async def test_with_the_broker_away_jobs_run_here_two_at_once(world: World) -> None:
    rows = [await world.queued() for _ in range(9)]
    sweeper = world.sweeper()
    together = asyncio.Event()

    async def work() -> None:
        if world.service.running == local_runners.LANES:
            together.set()
        await together.wait()

    world.service.work = work
    await broker_away_for(world, sweeper, DEFAULT_TIMINGS.stand_in_seconds - 1)
    await asyncio.sleep(0.2)
    assert world.service.runs == [], "a short absence is waited out"
    await world.clock.advance(2)
    await sweeper.sweep()
    assert len(world.service.runs) < len(rows), "the sweep does not wait for the jobs"
    await until(lambda: len(world.service.runs) == len(rows) and not world.service.running)
    assert Counter(world.service.runs) == Counter(row.id for row in rows)
    assert world.service.most_running == local_runners.LANES


async def test_jobs_go_to_the_worker_again_once_the_broker_is_back(world: World) -> None:
    first = await world.queued()
    sweeper = world.sweeper()
    await broker_away_for(world, sweeper, DEFAULT_TIMINGS.stand_in_seconds + 1)
    await until(lambda: world.service.runs == [first.id] and not sweeper._stand_in._lanes)
    world.queue.away = False
    second = await world.queued()
    await sweeper.sweep()
    assert world.queue.ids == [second.id]
    third = await world.queued(waited=0)
    await world.execute("UPDATE compactions SET sent_at = NULL")
    await sweeper.sweep()
    await asyncio.sleep(0.1)
    assert world.service.runs == [first.id]
    assert third.id not in world.service.runs


async def test_a_job_that_fails_here_is_left_and_the_others_run(world: World) -> None:
    rows = [await world.queued() for _ in range(4)]
    world.service.poison = {rows[0].id}
    sweeper = world.sweeper()
    await broker_away_for(world, sweeper, DEFAULT_TIMINGS.stand_in_seconds + 1)
    await until(lambda: len(world.service.runs) == 3)
    assert rows[0].id not in world.service.runs


async def test_stopping_puts_the_jobs_that_run_here_back(world: World) -> None:
    row = await world.queued()
    never = asyncio.Event()
    world.service.work = never.wait
    sweeper = world.sweeper()
    running = asyncio.create_task(sweeper.run())
    world.queue.away = True
    for _ in range(2_000):
        await world.clock.advance(1)
        await asyncio.sleep(0.02)
        if world.service.running:
            break
    assert (await world.get(row.id)).owner == "us"
    running.cancel()
    await asyncio.wait([running])
    back = await world.get(row.id)
    assert (back.status, back.claims, back.owner) == ("queued", 0, None)


async def test_release_puts_back_what_this_owner_holds_only(world: World) -> None:
    mine, theirs = await world.crashed(claims=2, lease_over=False), await world.crashed(claims=2, lease_over=False)
    await world.execute("UPDATE compactions SET owner = 'us' WHERE id = :id", id=mine.id)
    assert await world.sweeper().release() == 1
    released, held = await world.get(mine.id), await world.get(theirs.id)
    assert (released.status, released.claims) == ("queued", 1)
    assert (held.status, held.claims, held.owner) == ("running", 2, "dead")


async def test_no_error_ends_the_sweeping(world: World) -> None:
    """The n-th unit of work fails, for every n; afterwards the result is as if nothing had happened."""
    crashed, waiting = await world.crashed(), await world.queued()
    calls = 0
    failing = set(range(1, 30))

    def unreliable(tenant_id: UUID | None) -> UnitOfWork:
        nonlocal calls
        calls += 1
        if calls in failing:
            raise ConnectionError("the database is away")
        return world.begin(tenant_id)

    sweeper = world.sweeper(uow=unreliable)
    running = asyncio.create_task(sweeper.run())
    for _ in range(2_000):
        await world.clock.advance(1)
        await asyncio.sleep(0.01)
        if len(set(world.queue.ids)) == 2:
            break
    assert set(world.queue.ids) == {crashed.id, waiting.id}
    assert not running.done()
    running.cancel()
    await asyncio.wait([running])


async def test_sweeps_come_about_every_five_seconds_and_not_in_step(world: World) -> None:
    class Counting:
        def __init__(self) -> None:
            self.at: list[float] = []

        def __call__(self, tenant_id: UUID | None) -> UnitOfWork:
            self.at.append(world.clock.monotonic())
            raise ConnectionError

    counters = [Counting(), Counting()]
    tasks = [asyncio.create_task(world.sweeper(seed, uow=count).run()) for seed, count in enumerate(counters)]
    await world.clock.advance(100)
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    one, two = (sorted(set(count.at)) for count in counters)
    gaps = [later - earlier for earlier, later in pairwise(one)]
    period = DEFAULT_TIMINGS.sweep_seconds
    assert all(period * (1 - JITTER) <= gap <= period * (1 + JITTER) for gap in gaps)
    assert 15 <= len(gaps) <= 25
    assert len(set(one) & set(two)) == 1, "only the first sweep falls together"
