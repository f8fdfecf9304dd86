"""Answers that were paid for are used though the database is away for a while, and their calls count in any case."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from app.core.model.errors import ConflictError
from app.core.model.model_io import Proposal, SummaryRequest, VerificationRequest
from app.settings import Settings
from app.storage.connection_shares import ConnectionShares
from app.storage.unit_of_work import UnitOfWorkFactory, unit_of_work_factory
from app.usecases.compaction.manual import CompactInput
from tests.integration.services import Gate, Outage, Service, history, proposal
from tests.integration.test_verification import against_the_lie, lied, verdicts, work

PATIENCE = 30.0
QUICK = Settings(lease_seconds=0.6, heartbeat_seconds=0.1, turn_heartbeat_seconds=0.1, watchdog_seconds=0)


@pytest.mark.parametrize("ran_in", ["worker", "request"])
async def test_a_summary_is_saved_once_the_database_is_back(
    begin: UnitOfWorkFactory, tenant: UUID, ran_in: str
) -> None:
    outage = Outage(begin, 0.8)

    async def answer(request: SummaryRequest) -> Proposal:
        outage.begin()
        return proposal(request)

    service = Service(outage, tenant, answer)
    conversation_id = await service.conversation()
    await service.say(conversation_id, 60)
    if ran_in == "worker":
        await service.container.compaction.execute(service.queue.ids[0])
    else:
        await service.container.manual.compact(tenant, conversation_id, CompactInput(), timeout=PATIENCE)
    (row,) = await service.compactions(conversation_id)

    assert (row.status, len(row.attempts)) == ("applied", 1)
    assert len(service.summarizer.requests) == 1


async def test_a_call_whose_run_was_superseded_by_an_erasure_counts(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    gate = Gate()
    service = Service(begin, tenant, gate, settings=QUICK)
    conversation_id = await service.conversation()
    await service.say(conversation_id, 60)
    running = asyncio.create_task(service.container.compaction.execute(service.queue.ids[0]))
    await asyncio.wait_for(gate.reached.wait(), PATIENCE)
    await service.container.erasure.erase(tenant, conversation_id, (await history(service, conversation_id))[1].id)
    ended: Any = await asyncio.wait_for(running, PATIENCE)
    async with begin(tenant) as uow:
        spent = await uow.spending.by_minute("compaction")

    assert (ended.status, ended.reason, len(ended.attempts)) == ("superseded", "stale", 1)
    assert sum(one.calls for one in spent) == 1


async def test_a_call_counts_though_its_time_is_over_after_its_row_was_ended(
    begin: UnitOfWorkFactory, tenant: UUID
) -> None:
    gate = Gate()
    service = Service(begin, tenant, gate, settings=Settings(lease_seconds=240, heartbeat_seconds=60))
    conversation_id = await service.conversation(triggers=[])
    await service.say(conversation_id, 20)
    compacting = service.container.manual.compact(tenant, conversation_id, CompactInput(), timeout=1)
    running = asyncio.create_task(compacting)
    await asyncio.wait_for(gate.reached.wait(), PATIENCE)
    await service.container.erasure.erase(tenant, conversation_id, (await history(service, conversation_id))[1].id)
    with pytest.raises(ConflictError):
        await asyncio.wait_for(running, PATIENCE)
    (row,) = await service.compactions(conversation_id)

    assert (row.status, [attempt.reason for attempt in row.attempts]) == ("superseded", ["deadline"])


async def test_verdicts_are_stored_once_the_database_is_back(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    outage = Outage(begin, 0.8)
    judge: Any = verdicts(against_the_lie)

    async def verify(request: VerificationRequest) -> Proposal:
        outage.begin()
        answer: Proposal = await judge(request)
        return answer

    service, conversation_id = await lied(outage, tenant, verify)
    assert await work(service, conversation_id) == "changed"


async def test_a_verification_keeps_its_claim_while_its_tenant_s_requests_take_all_connections(
    engine: AsyncEngine, tenant: UUID
) -> None:
    """Otherwise another process would ask about the same claims once more."""
    begin = unit_of_work_factory(engine, QUICK.timings, ConnectionShares(1, seconds=0.1))
    gate: Any = Gate()
    service, conversation_id = await lied(begin, tenant, gate, settings=QUICK)
    verifying = asyncio.create_task(work(service, conversation_id))
    await asyncio.wait_for(gate.reached.wait(), PATIENCE)
    async with begin(tenant) as uow:
        await uow.keys.all()
        await asyncio.sleep(2 * QUICK.lease_seconds)
        async with begin(None) as others:
            assert await others.verifications.due(limit=1) == []
    gate.go_on.set()
    assert await asyncio.wait_for(verifying, PATIENCE) == "failed", "the answer has no verdicts"
