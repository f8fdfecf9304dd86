"""The spend guard on a real database: per conversation, per tenant, within an hour; with its controls."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from app.core.model.conversation import Usage
from app.core.model.errors import ModelUnavailableError, RateLimitedError
from app.core.model.records import Attempt, DetailCall
from app.http.errors import status_of
from app.settings import Settings
from app.storage.unit_of_work import UnitOfWorkFactory
from app.usecases.chat.starting import ChatInput
from app.usecases.compaction import sweeper
from app.usecases.compaction.manual import CompactInput
from app.usecases.compaction.spend_guard import WINDOW, SpendGuard, _least_wait
from app.usecases.history import removing
from tests.fakes import FAKE_PROFILE
from tests.integration.rows import make_tenant
from tests.integration.services import WORDS, Gate, Service, honest

PATIENCE = 60.0
MANUAL = CompactInput(keep_tail_messages=2)


async def spent(service: Service, conversation_id: UUID, calls: int) -> None:
    """Make this many compactions with one call each."""
    for _ in range(calls):
        await service.say(conversation_id, 20)
        await service.container.manual.compact(service.tenant, conversation_id, MANUAL, timeout=PATIENCE)


async def age(engine: AsyncEngine, minutes: int) -> None:
    """Make everything on record this much older."""
    ended = text("UPDATE compactions SET finished_at = finished_at - make_interval(mins => :minutes)")
    quiet = text("UPDATE conversations SET quiet_until = quiet_until - make_interval(mins => :minutes)")
    async with engine.begin() as connection:
        await connection.execute(ended, {"minutes": minutes})
        await connection.execute(quiet, {"minutes": minutes})


@pytest.fixture
def service(begin: UnitOfWorkFactory, tenant: UUID) -> Service:
    return Service(begin, tenant)


class TestAnAutomaticOne:
    async def test_is_skipped_once_and_quiet_until_there_is_room(self, service: Service, engine: AsyncEngine) -> None:
        conversation_id = await service.conversation(calls_per_hour=2)
        await spent(service, conversation_id, 2)
        await age(engine, 20)
        await service.say(conversation_id, 60)
        before = await service.row(conversation_id)
        ended = await service.container.compaction.execute(service.queue.ids[-1])
        row = await service.row(conversation_id)

        assert ended is not None
        assert (ended.status, ended.reason, ended.attempts) == ("skipped", "spend_limit", ())
        assert len(service.summarizer.requests) == 2
        assert (row.state_version, row.failure_count) == (before.state_version, 0)
        assert row.quiet.reason == "spend_limit"
        assert row.quiet.until is not None
        assert ended.finished_at is not None
        assert timedelta(minutes=38) < row.quiet.until - ended.finished_at < timedelta(minutes=42)
        assert (await service.events(conversation_id))[-1] == "compaction.skipped"

        rows = len(await service.compactions(conversation_id))
        for _ in range(10):
            await service.say(conversation_id, 1)
            async with service.begin(None) as uow:
                assert await uow.conversations.due(limit=10) == []
            assert await service.container.compaction.claim_due(service.tenant, conversation_id) is None
        assert len(await service.compactions(conversation_id)) == rows, "no endless loop of claims"

        await age(engine, 41)
        await service.say(conversation_id, 1)
        again = await service.container.compaction.execute(service.queue.ids[-1])
        assert again is not None
        assert again.status == "applied"

    async def test_what_a_clock_that_was_years_ahead_left_behind_holds_nothing_up(
        self, service: Service, engine: AsyncEngine
    ) -> None:
        conversation_id = await service.conversation(calls_per_hour=2)
        await spent(service, conversation_id, 2)
        await service.say(conversation_id, 60)
        skipped = await service.container.compaction.execute(service.queue.ids[-1])
        assert skipped is not None
        assert skipped.reason == "spend_limit"
        await age(engine, -4 * 365 * 24 * 60)
        async with service.begin(None) as uow:
            assert await uow.conversations.due(limit=10) == [(service.tenant, conversation_id)]
        compaction_id = await service.container.compaction.claim_due(service.tenant, conversation_id)
        assert compaction_id is not None
        again = await service.container.compaction.execute(compaction_id)
        assert again is not None
        assert again.status == "applied"

    @pytest.mark.daily(1)
    @pytest.mark.parametrize("limit", [9, 2], ids=["raised", "control"])
    async def test_begins_at_once_in_a_process_that_starts_with_a_higher_limit(
        self, begin: UnitOfWorkFactory, tenant: UUID, monkeypatch: pytest.MonkeyPatch, limit: int
    ) -> None:
        """Control: a process with the same limit changes nothing, and adds no row."""
        monkeypatch.setattr(sweeper, "BATCH", 1)  # each sweep looks at one of them
        service = Service(begin, tenant, settings=Settings(tenant_calls_per_hour=2))
        waiting = [await service.conversation() for _ in range(2)]
        await spent(service, waiting[0], 2)
        for conversation_id in waiting:
            await service.say(conversation_id, 120)
            skipped = await service.container.compaction.execute(service.queue.ids[-1])
            assert skipped is not None
            assert skipped.reason == "spend_limit"
        rows = [len(await service.compactions(conversation_id)) for conversation_id in waiting]

        restarted = Service(begin, tenant, settings=Settings(tenant_calls_per_hour=limit))
        for _ in range(3):
            await restarted.container.sweeper.sweep()
        is_raised = limit > 2
        for conversation_id, before in zip(waiting, rows, strict=True):
            assert len(await service.compactions(conversation_id)) == before + is_raised
            assert ((await service.row(conversation_id)).quiet.reason == "spend_limit") is not is_raised

    async def test_calls_that_the_provider_turned_away_leave_room_for_its_return(
        self, begin: UnitOfWorkFactory, tenant: UUID, engine: AsyncEngine
    ) -> None:
        """Control: a call that got an answer counts (``test_is_skipped_once_and_quiet_until_there_is_room``)."""
        refused = ModelUnavailableError("rate_limited", retryable=True)
        service = Service(begin, tenant, refused, refused, honest, settings=Settings(tenant_calls_per_hour=2))
        conversation_id = await service.conversation()
        await service.say(conversation_id, 60)
        failed = await service.container.compaction.execute(service.queue.ids[-1])
        assert failed is not None
        assert (failed.reason, len(failed.attempts)) == ("rate_limited", 2)
        await age(engine, 1)
        await service.say(conversation_id, 1)
        ended = await service.container.compaction.execute(service.queue.ids[-1])
        assert ended is not None
        assert (ended.status, ended.reason) == ("applied", None)

    @pytest.mark.long
    async def test_control_with_room_it_is_applied(self, service: Service) -> None:
        conversation_id = await service.conversation(calls_per_hour=3)
        await spent(service, conversation_id, 2)
        await service.say(conversation_id, 60)
        ended = await service.container.compaction.execute(service.queue.ids[-1])
        assert ended is not None
        assert ended.status == "applied"

    @pytest.mark.long
    async def test_keeps_the_chunks_that_are_committed(self, service: Service) -> None:
        service.summarizer._profile = replace(FAKE_PROFILE, chunk_tokens=1_000)
        conversation_id = await service.conversation(calls_per_hour=2)
        await service.say(conversation_id, 120)
        ended = await service.container.compaction.execute(service.queue.ids[0])
        row = await service.row(conversation_id)

        assert ended is not None
        assert (ended.status, ended.reason) == ("applied", "partial")
        assert len(ended.attempts) == row.state_version == 2
        assert row.quiet.reason == "spend_limit"
        async with service.begin(None) as uow:
            assert await uow.conversations.due(limit=10) == []

    @pytest.mark.long
    async def test_in_a_turn_the_turn_goes_on_with_a_warning(self, service: Service) -> None:
        conversation_id = await service.conversation(calls_per_hour=1)
        await spent(service, conversation_id, 1)
        await service.say(conversation_id, 52)
        handle = await service.container.chat.start(
            service.tenant, conversation_id, ChatInput(content=WORDS.format(seq=99) * 22)
        )
        result = await asyncio.wait_for(handle.result(), PATIENCE)
        assert result.reply.content == "All right."
        assert "compaction_skipped:spend_limit" in result.warnings
        assert len(service.summarizer.requests) == 1


class TestAManualOne:
    @pytest.mark.daily(1)
    @pytest.mark.parametrize("asked", [MANUAL, replace(MANUAL, wait=False)], ids=["now", "later"])
    @pytest.mark.case("64")
    async def test_is_refused_and_nothing_is_changed(self, service: Service, asked: CompactInput) -> None:
        conversation_id = await service.conversation(calls_per_hour=2)
        await spent(service, conversation_id, 2)
        await service.say(conversation_id, 20)
        before = (
            await service.row(conversation_id),
            await service.compactions(conversation_id),
            await service.events(conversation_id),
        )
        with pytest.raises(RateLimitedError) as caught:
            await service.container.manual.compact(service.tenant, conversation_id, asked, timeout=PATIENCE)
        after = (
            await service.row(conversation_id),
            await service.compactions(conversation_id),
            await service.events(conversation_id),
        )

        assert before == after
        assert (caught.value.stable_code, status_of(caught.value), caught.value.retryable) == (
            "rate_limited",
            429,
            True,
        )
        assert caught.value.retry_after is not None
        assert 0 < caught.value.retry_after <= WINDOW.total_seconds()
        assert caught.value.extra["reason"] == "spend_limit"

    async def test_a_preview_costs_nothing(self, service: Service) -> None:
        conversation_id = await service.conversation(calls_per_hour=1)
        await spent(service, conversation_id, 1)
        await service.say(conversation_id, 20)
        asked = replace(MANUAL, dry_run=True)
        view = await service.container.manual.compact(service.tenant, conversation_id, asked, timeout=PATIENCE)
        assert view.planned

    async def test_a_retry_is_refused_too(self, begin: UnitOfWorkFactory, tenant: UUID) -> None:
        service = Service(begin, tenant, "{")
        conversation_id = await service.conversation(calls_per_hour=2)
        await service.say(conversation_id, 60)
        failed = await service.container.compaction.execute(service.queue.ids[0])
        assert failed is not None
        assert (failed.status, len(failed.attempts)) == ("rejected", 2)
        with pytest.raises(RateLimitedError):
            await service.container.manual.retry(tenant, failed.id)
        assert len(await service.compactions(conversation_id)) == 1

    async def test_a_typed_command_is_answered_in_words(self, service: Service) -> None:
        conversation_id = await service.conversation(calls_per_hour=1)
        await spent(service, conversation_id, 1)
        await service.say(conversation_id, 20)
        handle = await service.container.chat.start(service.tenant, conversation_id, ChatInput(content="/compact"))
        result = await asyncio.wait_for(handle.result(), PATIENCE)
        assert result.reply.content.startswith("Not compacted: ")
        assert result.reply.is_command
        assert len(service.summarizer.requests) == 1


class TestATenant:
    @pytest.mark.case("64")
    async def test_is_limited_over_all_its_conversations_and_others_are_not(
        self, begin: UnitOfWorkFactory, tenant: UUID
    ) -> None:
        service = Service(begin, tenant, settings=Settings(tenant_calls_per_hour=2))
        for _ in range(2):
            await spent(service, await service.conversation(), 1)
        third = await service.conversation()
        await service.say(third, 20)
        with pytest.raises(RateLimitedError):
            await service.container.manual.compact(tenant, third, MANUAL, timeout=PATIENCE)

        other = Service(begin, await make_tenant(begin, f"other {uuid4()}"), settings=Settings(tenant_calls_per_hour=2))
        conversation_id = await other.conversation()
        await spent(other, conversation_id, 1)
        assert (await other.row(conversation_id)).state_version == 1

    @pytest.mark.control("64")
    async def test_control_without_the_check_it_goes_on_and_on(
        self, begin: UnitOfWorkFactory, tenant: UUID, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async def no_wait(*_: object, **__: object) -> None:
            return None

        monkeypatch.setattr(SpendGuard, "time_to_wait", no_wait)
        service = Service(begin, tenant, settings=Settings(tenant_calls_per_hour=1))
        await spent(service, await service.conversation(), 2)
        assert len(service.summarizer.requests) == 2

    @pytest.mark.long
    async def test_a_model_that_costs_nothing_is_never_counted(self, begin: UnitOfWorkFactory, tenant: UUID) -> None:
        service = Service(begin, tenant, settings=Settings(tenant_calls_per_hour=1))
        service.summarizer._profile = replace(FAKE_PROFILE, metered=False)
        conversation_id = await service.conversation(calls_per_hour=1)
        await spent(service, conversation_id, 4)
        assert (await service.row(conversation_id)).state_version == 4
        async with begin(tenant) as uow:
            assert await uow.spending.metered_calls(WINDOW, conversation_id) == (0, 0)


class TestWhenItFrees:
    @pytest.mark.parametrize(
        ("ages", "most", "minutes"),
        [
            ([], 1, None),
            ([10], 2, None),
            ([59], 1, 1),
            ([0], 1, 60),
            ([10, 20, 30], 3, 30),
            ([10, 20, 30], 2, 40),
            ([10, 20, 30], 1, 50),
            ([70, 80], 1, None),
        ],
    )
    @pytest.mark.parametrize("of_tenant", [False, True])
    async def test_is_told_to_the_minute(
        self, ages: list[int], most: int, minutes: int | None, *, of_tenant: bool
    ) -> None:
        async def count(span: timedelta) -> tuple[int, int]:
            within = sum(timedelta(minutes=age) < span for age in ages)
            return (0, within) if of_tenant else (within, 0)

        wait: Any = await _least_wait(count, (1, most) if of_tenant else (most, 1))
        assert wait == (None if minutes is None else timedelta(minutes=minutes))


async def test_every_attempt_is_counted_the_refused_ones_too(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    service = Service(begin, tenant, "{", honest)
    conversation_id = await service.conversation(calls_per_hour=2)
    await spent(service, conversation_id, 1)
    await service.say(conversation_id, 20)
    with pytest.raises(RateLimitedError):
        await service.container.manual.compact(tenant, conversation_id, MANUAL, timeout=PATIENCE)


@pytest.mark.parametrize("shown", [removing.SHORT, 0], ids=["short", "long"])
async def test_what_was_spent_counts_when_its_conversation_is_deleted(
    begin: UnitOfWorkFactory, tenant: UUID, monkeypatch: pytest.MonkeyPatch, shown: int
) -> None:
    """Otherwise a tenant could spend any amount, by deleting its conversations. A long one is only hidden at first."""
    monkeypatch.setattr(removing, "SHORT", shown)
    service, other = Service(begin, tenant), uuid4()
    conversation_id = await service.conversation()
    await spent(service, conversation_id, 2)
    async with begin(tenant) as uow:
        before = (await uow.spending.metered_calls(WINDOW, other), await uow.spending.by_minute("compaction"))
    await service.container.conversations.delete(tenant, conversation_id)
    async with begin(tenant) as uow:
        assert (await uow.spending.metered_calls(WINDOW, other), await uow.spending.by_minute("compaction")) == before
        assert await uow.spending.by_minute("chat") == []
    assert before[0] == (0, 2)


async def test_a_call_that_is_made_while_its_conversation_is_deleted_counts(
    begin: UnitOfWorkFactory, tenant: UUID
) -> None:
    gate = Gate()
    service = Service(begin, tenant, gate)
    conversation_id = await service.conversation()
    await service.say(conversation_id, 60)
    running = asyncio.create_task(service.container.compaction.execute(service.queue.ids[0]))
    await asyncio.wait_for(gate.reached.wait(), PATIENCE)
    await service.container.conversations.delete(tenant, conversation_id)
    gate.go_on.set()
    await asyncio.wait_for(running, PATIENCE)
    async with begin(tenant) as uow:
        assert (await uow.spending.metered_calls(WINDOW, uuid4()))[1] == 1


async def test_calls_that_a_clock_years_ahead_noted_count_no_longer(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    conversation_id = await Service(begin, tenant).conversation()
    call = Attempt(model="m", outcome="accepted", reason=None, duration_ms=30, usage=Usage(input_tokens=9))
    row = DetailCall(id=uuid4(), conversation_id=conversation_id, called_at=datetime.now(UTC))

    async def counted(*, ahead: timedelta) -> tuple[int, ...]:
        at = row.called_at + ahead
        calls = [replace(row, attempt=call), replace(row, attempt=call, purpose="embedding"), row]
        async with begin(tenant) as uow:
            for one in calls:
                await uow.detail_calls.begin(replace(one, id=uuid4(), called_at=at))
            spent = [await uow.spending.by_minute(purpose) for purpose in ("compaction", "embedding")]
            metered = await uow.spending.metered_calls(WINDOW, conversation_id)
            return (*map(len, spent), *metered, await uow.detail_calls.running(WINDOW))

    assert await counted(ahead=timedelta(days=1_000)) == (0, 0, 0, 0, 0)
    assert await counted(ahead=timedelta(minutes=1)) == (1, 1, 2, 2, 1), "the control"
