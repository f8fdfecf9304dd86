"""One compaction at a time, fenced, chunk by chunk: on a real database, on connections of their own."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial
from itertools import count
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from app.core.model.errors import (
    ConflictError,
    DependencyUnavailableError,
    ModelUnavailableError,
    NotFoundError,
    SummarizerFailedError,
)
from app.core.model.model_io import Proposal, SummaryRequest
from app.core.model.records import Compaction
from app.settings import Settings
from app.storage.repositories.compactions import CompactionRepository
from app.storage.unit_of_work import UnitOfWorkFactory
from app.usecases.compaction import saving
from app.usecases.compaction.manual import CompactInput
from tests.fakes import FAKE_PROFILE
from tests.integration.services import Gate, Service, honest, together

PATIENCE = 30.0
SELDOM = Settings(lease_seconds=240, heartbeat_seconds=60)


async def refused(request: SummaryRequest) -> Proposal:
    return Proposal(text="", finish="stop", model="fake")


@pytest.fixture
def service(begin: UnitOfWorkFactory, tenant: UUID) -> Service:
    return Service(begin, tenant)


async def test_an_append_that_crosses_the_threshold_queues_one_compaction(service: Service) -> None:
    conversation_id = await service.conversation()
    await service.say(conversation_id, 60)
    await service.say(conversation_id, 4)
    (row,) = await service.compactions(conversation_id)

    assert (row.trigger, row.status, row.ran_in) == ("background", "queued", "worker")
    assert service.queue.ids == [row.id]


async def test_a_worker_folds_down_to_the_target(service: Service) -> None:
    conversation_id = await service.conversation()
    messages = await service.say(conversation_id, 60)
    ended = await service.container.compaction.execute(service.queue.ids[0])
    row = await service.row(conversation_id)

    assert ended is not None
    assert ended.status == "applied"
    assert ended.tokens_after is not None
    assert ended.tokens_before is not None
    assert ended.tokens_after < 1_836 < ended.tokens_before
    assert row.context_tokens == ended.tokens_after
    assert row.compressed_at_message_id == messages[row.boundary_seq - 1].id
    assert (row.state_version, row.compression_count) == (1, 1)
    assert [name for name in await service.events(conversation_id) if name.startswith("compaction")] == [
        "compaction.queued",
        "compaction.started",
        "compaction.applied",
    ]


@pytest.mark.long
@pytest.mark.case("15")
async def test_right_after_a_compaction_a_small_message_triggers_nothing(service: Service) -> None:
    conversation_id = await service.conversation(background_at=0.61)
    await service.say(conversation_id, 60)
    await service.container.compaction.execute(service.queue.ids[0])
    await service.say(conversation_id, 1, words=1)

    assert len(await service.compactions(conversation_id)) == 1


@pytest.mark.case("38")
async def test_two_compactors_at_the_barrier_take_effect_once(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    one, other = (Service(begin, tenant, owner=name) for name in ("process:one", "process:other"))
    conversation_id = await one.conversation()
    await one.say(conversation_id, 60)
    job = one.queue.ids[0]
    results = await together(*[partial(each.container.compaction.execute, job) for each in (one, other) * 5])

    assert sum(result is not None for result in results) == 1
    assert len(one.summarizer.requests) + len(other.summarizer.requests) == 1
    assert (await one.row(conversation_id)).state_version == 1


@pytest.mark.case("39")
async def test_a_stale_compactor_finishing_last_writes_nothing(
    begin: UnitOfWorkFactory, tenant: UUID, engine: AsyncEngine
) -> None:
    gate = Gate()
    # The slow one must notice only at its end, not at a heartbeat, that its lease went to another process.
    slow = Service(begin, tenant, gate, owner="process:slow", settings=SELDOM)
    quick = Service(begin, tenant, owner="process:quick")
    conversation_id = await slow.conversation()
    await slow.say(conversation_id, 60)
    job = slow.queue.ids[0]
    stale = asyncio.create_task(slow.container.compaction.execute(job))
    await gate.reached.wait()
    async with engine.begin() as connection:
        await connection.execute(text("UPDATE compactions SET lease_until = now() - interval '1 s'"))
    done = await quick.container.compaction.execute(job)
    before = await quick.row(conversation_id)
    gate.go_on.set()
    late = await asyncio.wait_for(stale, PATIENCE)

    assert done is not None
    assert done.status == "applied"
    assert late is not None
    assert replace(late, attempts=done.attempts, usage=done.usage) == done
    assert len(late.attempts) == 2, "both calls were paid for"
    assert await quick.row(conversation_id) == before


@pytest.mark.case("44b")
async def test_a_restore_in_the_middle_supersedes_the_run(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    gate = Gate()
    service = Service(begin, tenant, honest, gate)
    conversation_id = await service.conversation()
    await service.say(conversation_id, 60)
    await service.container.compaction.execute(service.queue.ids[0])
    await service.say(conversation_id, 24)
    running = asyncio.create_task(service.container.compaction.execute(service.queue.ids[1]))
    await gate.reached.wait()
    await service.container.states.restore(service.tenant, conversation_id, 1)
    gate.go_on.set()
    ended = await asyncio.wait_for(running, PATIENCE)

    assert ended is not None
    assert (ended.status, ended.reason) == ("superseded", "stale")
    assert (await service.row(conversation_id)).state_version == 2


@pytest.mark.case("40")
async def test_a_message_that_arrives_meanwhile_stays_in_the_tail(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    gate = Gate()
    service = Service(begin, tenant, gate)
    conversation_id = await service.conversation()
    await service.say(conversation_id, 60)
    running = asyncio.create_task(service.container.compaction.execute(service.queue.ids[0]))
    await gate.reached.wait()
    (late,) = await asyncio.wait_for(service.say(conversation_id, 1), PATIENCE)
    gate.go_on.set()
    ended = await asyncio.wait_for(running, PATIENCE)
    context = await service.container.context.assemble(service.tenant, conversation_id)

    assert ended is not None
    assert ended.status == "applied"
    assert context.messages[-1].seq == late.seq


@pytest.mark.long
async def test_a_span_larger_than_the_summarizer_digests_is_committed_chunk_by_chunk(
    begin: UnitOfWorkFactory, tenant: UUID
) -> None:
    service = Service(begin, tenant)
    service.summarizer._profile = replace(FAKE_PROFILE, chunk_tokens=1_000)
    conversation_id = await service.conversation()
    await service.say(conversation_id, 120)
    ended = await service.container.compaction.execute(service.queue.ids[0])
    row = await service.row(conversation_id)

    assert ended is not None
    assert ended.status == "applied"
    assert len(ended.attempts) == row.state_version > 2
    assert (ended.from_seq, ended.to_seq) == (1, row.boundary_seq)
    assert row.compression_count == 1
    assert (await service.events(conversation_id)).count("compaction.applied") == 1


async def test_a_database_that_is_away_leaves_the_row_to_its_lease(
    begin: UnitOfWorkFactory, tenant: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(*_: object, **__: object) -> None:
        raise DependencyUnavailableError("the database is away")

    service = Service(begin, tenant, settings=Settings(job_seconds=1))
    conversation_id = await service.conversation()
    await service.say(conversation_id, 60)
    monkeypatch.setattr("app.usecases.compaction.run.save_chunk", away)
    ended = await service.container.compaction.execute(service.queue.ids[0])
    (row,) = await service.compactions(conversation_id)

    assert ended is None
    assert (row.status, row.claims) == ("running", 1)


async def test_what_is_stopped_right_after_a_chunk_was_saved_goes_to_the_worker(
    begin: UnitOfWorkFactory, tenant: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its calls are saved with the chunk, and stay counted once."""
    service, saved = Service(begin, tenant), asyncio.Event()
    service.summarizer._profile = replace(FAKE_PROFILE, chunk_tokens=1_000)
    conversation_id = await service.conversation(triggers=[])
    await service.say(conversation_id, 60)

    async def saved_slowly(*given: Any) -> Compaction:
        row = await saving.save_chunk(*given)
        saved.set()
        await asyncio.sleep(PATIENCE)  # as if the bus were slow
        return row

    monkeypatch.setattr("app.usecases.compaction.run.save_chunk", saved_slowly)
    compacting = service.container.manual.compact(tenant, conversation_id, CompactInput(), timeout=PATIENCE)
    running = asyncio.create_task(compacting)
    await asyncio.wait_for(saved.wait(), PATIENCE)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    (row,) = await service.compactions(conversation_id)

    assert (row.status, row.claims, len(row.attempts)) == ("queued", 0, 1)
    assert (await service.row(conversation_id)).state_version == 1


@pytest.mark.long
async def test_a_failure_after_some_chunks_leaves_them_applied(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    service = Service(begin, tenant, honest, honest, ModelUnavailableError("server_error"))
    service.summarizer._profile = replace(FAKE_PROFILE, chunk_tokens=1_000)
    conversation_id = await service.conversation()
    await service.say(conversation_id, 120)
    ended = await service.container.compaction.execute(service.queue.ids[0])
    row = await service.row(conversation_id)

    assert ended is not None
    assert (ended.status, ended.reason) == ("applied", "partial")
    assert row.state_version == 2
    assert row.boundary_seq == ended.to_seq
    assert row.quiet.until is not None


@pytest.mark.long
async def test_out_of_time_on_the_way_the_rest_is_due_at_once(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    service = Service(begin, tenant, honest, honest, Gate(), honest, settings=Settings(job_seconds=1.5))
    service.summarizer._profile = replace(FAKE_PROFILE, chunk_tokens=1_000)
    conversation_id = await service.conversation()
    await service.say(conversation_id, 200)
    ended = await service.container.compaction.execute(service.queue.ids[0])

    assert ended is not None
    assert (ended.status, ended.reason) == ("applied", "partial")
    assert (await service.row(conversation_id)).failure_count == 0
    async with begin(None) as uow:
        assert await uow.conversations.due(limit=10) == [(tenant, conversation_id)]


@pytest.mark.case("2")
async def test_a_failed_compaction_changes_nothing_and_is_quiet_for_a_while(
    begin: UnitOfWorkFactory, tenant: UUID
) -> None:
    service = Service(begin, tenant, refused)
    conversation_id = await service.conversation()
    await service.say(conversation_id, 60)
    await service.container.anchors.work(conversation_id)
    before = await service.row(conversation_id)
    ended = await service.container.compaction.execute(service.queue.ids[0])
    after = await service.row(conversation_id)
    await service.say(conversation_id, 6)

    assert ended is not None
    assert (ended.status, ended.reason) == ("rejected", "empty_summary")
    assert [attempt.reason for attempt in ended.attempts] == ["empty_summary", "empty_summary"]
    assert service.summarizer.requests[1].feedback == "empty_summary"
    assert after == replace(
        before, quiet=after.quiet, failure_count=1, last_event=after.last_event, updated_at=after.updated_at
    )
    assert after.quiet.reason == "empty_summary"
    assert len(await service.compactions(conversation_id)) == 1


async def test_a_failed_manual_call_is_an_error_and_makes_nothing_quiet(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    service = Service(begin, tenant, refused)
    conversation_id = await service.conversation()
    await service.say(conversation_id, 20)
    with pytest.raises(SummarizerFailedError) as caught:
        await service.container.manual.compact(service.tenant, conversation_id, CompactInput(), timeout=PATIENCE)
    row = await service.row(conversation_id)

    assert (caught.value.stable_code, caught.value.detail) == ("empty_summary", "empty summary response")
    assert (row.state_version, row.quiet.reason, row.failure_count) == (0, None, 0)


@pytest.mark.case("20")
async def test_nothing_to_fold_is_skipped_without_a_call(service: Service) -> None:
    conversation_id = await service.conversation()
    await service.say(conversation_id, 2)
    view = await service.container.manual.compact(service.tenant, conversation_id, CompactInput(), timeout=PATIENCE)

    assert (view.compaction.status, view.compaction.reason) == ("skipped", "nothing_to_compact")
    assert service.summarizer.requests == []


@pytest.mark.long
async def test_a_floor_above_the_target_is_given_up_once(service: Service) -> None:
    conversation_id = await service.conversation(pin_share=0.55, anchor_share=0)
    await service.say(conversation_id, 1, words=70)  # the message of turn 0 is kept
    for _ in range(20):
        await service.say(conversation_id, 1, words=1)
    for job in service.queue.ids:
        await service.container.compaction.execute(job)
    rows = await service.compactions(conversation_id)

    assert [row.reason for row in rows if row.reason] == ["irreducible_floor"] * len(rows)
    assert len(service.summarizer.requests) <= 1
    assert len(rows) <= 3


@pytest.mark.parametrize("callers", [12, *(pytest.param(callers, marks=pytest.mark.long) for callers in (30, 100))])
@pytest.mark.case("42")
async def test_many_manual_calls_at_once_are_one_run(
    begin: UnitOfWorkFactory, tenant: UUID, monkeypatch: pytest.MonkeyPatch, callers: int
) -> None:
    service = Service(begin, tenant)
    conversation_id = await service.conversation()
    await service.say(conversation_id, 30)
    compact = partial(
        service.container.manual.compact, service.tenant, conversation_id, CompactInput(), timeout=PATIENCE
    )
    gate = Gate()
    service.summarizer._script._entries = [gate]
    followers, all_wait = count(1), asyncio.Event()
    follow = service.container.manual._follow

    async def counted(*given: Any) -> Compaction:
        if next(followers) == callers - 1:
            all_wait.set()
        return await follow(*given)

    monkeypatch.setattr(service.container.manual, "_follow", counted)
    calls = asyncio.gather(*(compact() for _ in range(callers)))
    await gate.reached.wait()
    await asyncio.wait_for(all_wait.wait(), PATIENCE)  # a caller that came after the end would begin another compaction
    gate.go_on.set()
    views = await asyncio.wait_for(calls, PATIENCE)

    assert len({view.compaction.id for view in views}) == 1
    assert sum(not view.joined for view in views) == 1
    assert len(service.summarizer.requests) == 1


@pytest.mark.long
async def test_a_manual_call_that_loses_its_lease_waits_for_who_took_the_work_over(
    begin: UnitOfWorkFactory, engine: AsyncEngine, tenant: UUID
) -> None:
    slow, taker = Gate(), Gate()
    service = Service(begin, tenant, slow, taker)
    conversation_id = await service.conversation()
    await service.say(conversation_id, 30)
    compact = partial(
        service.container.manual.compact, service.tenant, conversation_id, CompactInput(), timeout=PATIENCE
    )
    first = asyncio.create_task(compact())
    await asyncio.wait_for(slow.reached.wait(), PATIENCE)
    async with engine.begin() as connection:
        over = (
            "UPDATE compactions SET lease_until = clock_timestamp() - interval '1 second' WHERE conversation_id = :id"
        )
        await connection.execute(text(over), {"id": conversation_id})
    second = asyncio.create_task(compact())
    await asyncio.wait_for(taker.reached.wait(), PATIENCE)
    slow.go_on.set()
    await asyncio.sleep(0.2)
    assert not first.done()
    taker.go_on.set()
    views = await asyncio.wait_for(asyncio.gather(first, second), PATIENCE)

    assert [(view.compaction.status, view.joined) for view in views] == [("applied", False), ("applied", True)]
    assert len({view.compaction.id for view in views}) == 1
    assert (await service.row(conversation_id)).compression_count == 1


@pytest.mark.long
async def test_a_call_with_a_focus_waits_for_the_slot_and_then_runs(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    gate = Gate()
    service = Service(begin, tenant, gate, honest)
    conversation_id = await service.conversation()
    await service.say(conversation_id, 30)
    manual = service.container.manual
    first = asyncio.create_task(
        manual.compact(service.tenant, conversation_id, CompactInput(keep_tail_messages=10), timeout=PATIENCE)
    )
    await gate.reached.wait()
    with pytest.raises(ConflictError):
        await manual.compact(service.tenant, conversation_id, CompactInput(focus="wind", wait=False), timeout=PATIENCE)
    second = asyncio.create_task(
        manual.compact(service.tenant, conversation_id, CompactInput(focus="wind", keep_tail_messages=0), timeout=60)
    )
    await asyncio.sleep(0.1)
    gate.go_on.set()
    done = await asyncio.wait_for(asyncio.gather(first, second), PATIENCE)

    assert [view.compaction.status for view in done] == ["applied", "applied"]
    assert done[0].compaction.id != done[1].compaction.id
    assert service.summarizer.requests[1].focus == "wind"


async def test_of_a_conversation_that_is_deleted_meanwhile_there_is_nothing(
    begin: UnitOfWorkFactory, tenant: UUID
) -> None:
    gate = Gate()
    service = Service(begin, tenant, gate)
    conversation_id = await service.conversation()
    await service.say(conversation_id, 30)
    compacting = asyncio.create_task(
        service.container.manual.compact(service.tenant, conversation_id, CompactInput(), timeout=PATIENCE)
    )
    await asyncio.wait_for(gate.reached.wait(), PATIENCE)
    await service.container.conversations.delete(service.tenant, conversation_id)
    gate.go_on.set()
    with pytest.raises(NotFoundError):
        await asyncio.wait_for(compacting, PATIENCE)


async def test_a_job_whose_conversation_is_deleted_as_it_is_taken_is_no_failure(
    begin: UnitOfWorkFactory, tenant: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = Service(begin, tenant)
    ids = [await service.conversation(), await service.conversation()]
    for conversation_id in ids:
        await service.say(conversation_id, 60)
    waited_for, queued = service.queue.ids
    takeable = CompactionRepository.takeable

    async def takeable_and_then_deleted(compactions: CompactionRepository, compaction_id: UUID) -> bool:
        found = await takeable(compactions, compaction_id)
        await service.container.conversations.delete(tenant, ids.pop(0))
        return found

    monkeypatch.setattr(CompactionRepository, "takeable", takeable_and_then_deleted)
    with pytest.raises(NotFoundError):  # the control: a caller that waits for it gets the error
        await service.container.compaction.take(waited_for, "worker")
    assert await service.container.compaction.execute(queued) is None
    assert ids == []


async def test_the_sweeper_claims_what_an_append_could_not(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    service = Service(begin, tenant)
    conversation_id = await service.conversation()
    await service.say(conversation_id, 60)
    async with begin(None) as uow:
        await uow.compactions.update_locked(service.queue.ids[0], status="superseded", reason="stale")
        await uow.commit()
    async with begin(None) as uow:
        assert await uow.conversations.due(limit=10) == [(tenant, conversation_id)]
    claimed = await service.container.compaction.claim_due(tenant, conversation_id)
    again = await service.container.compaction.claim_due(tenant, conversation_id)

    assert claimed is not None
    assert again is None
    async with begin(None) as uow:
        assert await uow.conversations.due(limit=10) == []
