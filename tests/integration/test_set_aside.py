"""A conversation during whose work processes ended is set aside, the others go on, and an operator takes it back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager, nullcontext
from dataclasses import replace
from datetime import datetime
from operator import le
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import select
from sqlmodel import col

from app.core.model.errors import ConversationSetAsideError, DatabaseReadOnlyError, DependencyUnavailableError
from app.core.model.records import CrashCount, Page, Work, WorkKind
from app.settings import Settings
from app.storage.repositories.works import WorkRepository
from app.storage.tables import WorkRow
from app.storage.tenancy import end_user
from app.storage.unit_of_work import UnitOfWork, UnitOfWorkFactory
from app.usecases.chat.starting import ChatInput
from app.usecases.compaction import sweeper as sweeper_module
from app.usecases.compaction.manual import CompactInput
from app.usecases.context import context as context_module
from app.usecases.history.drafts import MessageDraft
from app.usecases.shared import work_records
from tests.fakes import FAKE_PROFILE
from tests.integration.services import Gate, Service, opened_by

PATIENCE = 30.0
QUICK = Settings(lease_seconds=0.9, heartbeat_seconds=0.1, turn_heartbeat_seconds=0.1, watchdog_seconds=0)


@pytest.fixture
def service(begin: UnitOfWorkFactory, tenant: UUID) -> Service:
    return Service(begin, tenant)


async def leave_behind(service: Service, conversation_id: UUID, kind: WorkKind = "context", times: int = 1) -> None:
    """Leave what a process leaves that ends in the middle of its work: an expired lease, which the sweeper finds."""
    for _ in range(times):
        work = Work(id=uuid4(), tenant_id=service.tenant, conversation_id=conversation_id, process=uuid4(), kind=kind)
        async with service.begin(service.tenant) as uow:
            await uow.works.begin(work, seconds=-1)
        async with service.begin(service.tenant) as uow:
            await uow.works.begin(replace(work, id=uuid4()), seconds=-1)  # requests at once count as one
        await service.container.sweeper.sweep()


async def crashes(service: Service, conversation_id: UUID) -> CrashCount | None:
    async with service.begin(service.tenant) as uow:
        return await uow.works.crashes(conversation_id)


async def on_record(service: Service) -> list[str]:
    """The kinds of work on record now."""
    async with service.begin(service.tenant) as uow:
        found: list[Any] = await uow.works._session.all(select(WorkRow))
    return [row.kind for row in found]


async def leases(service: Service) -> list[datetime]:
    """The times from which work on record would count as left behind."""
    async with service.begin(service.tenant) as uow:
        return [row.lease_until for row in await uow.works._session.all(select(WorkRow).order_by(col(WorkRow.id)))]


async def look(service: Service, conversation_id: UUID) -> None:
    await service.container.context.assemble_unrecorded(service.tenant, conversation_id)
    await service.container.work_records.drain()


async def two(service: Service) -> tuple[UUID, UUID]:
    made = [await service.conversation() for _ in range(2)]
    for one in made:
        await service.say(one, 4)
    return made[0], made[1]


async def test_one_crash_sets_nothing_aside_and_the_same_work_done_forgets_it(service: Service) -> None:
    conversation_id, _ = await two(service)
    await leave_behind(service, conversation_id)
    counted = await crashes(service, conversation_id)
    assert counted is not None
    assert (counted.count, counted.kind, counted.set_aside_at) == (1, "context", None)
    await service.say(conversation_id, 1)
    assert await crashes(service, conversation_id) == counted, "that other work goes well proves nothing"
    await look(service, conversation_id)
    assert await crashes(service, conversation_id) is None
    await leave_behind(service, conversation_id)
    await look(service, conversation_id)


async def test_work_that_ends_soon_after_other_work_is_struck_with_it(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    conversation_id, _ = await two(service)
    await service.container.work_records.drain()
    struck: list[int] = []
    end = WorkRepository.end

    async def noted(self: WorkRepository, work_ids: Collection[UUID]) -> None:
        struck.append(len(work_ids))
        await end(self, work_ids)

    monkeypatch.setattr(WorkRepository, "end", noted)
    monkeypatch.setattr(work_records, "REMOVAL_SECONDS", 0.5)
    for _ in range(3):
        async with service.container.work_records.record_work(service.tenant, conversation_id, "context"):
            pass
    assert await on_record(service) == ["context"] * 3
    async with asyncio.timeout(PATIENCE):
        while await on_record(service):  # noqa: ASYNC110 - the condition is the database's
            await asyncio.sleep(0.05)
    assert struck == [3]


@pytest.mark.parametrize("error", [DatabaseReadOnlyError("read-only"), DependencyUnavailableError("away")])
async def test_what_could_not_be_recorded_is_not_removed_again_and_again(
    service: Service, monkeypatch: pytest.MonkeyPatch, error: DependencyUnavailableError
) -> None:
    """While the database takes no writes, nothing was recorded; where no answer came, there may be a record."""
    conversation_id, _ = await two(service)
    await service.container.work_records.drain()
    removed: list[UUID] = []

    async def refused(*_: object, **__: object) -> None:
        raise error

    async def noted(_: WorkRepository, work_ids: Collection[UUID]) -> None:
        removed.extend(work_ids)

    monkeypatch.setattr(WorkRepository, "begin", refused)
    monkeypatch.setattr(WorkRepository, "end", noted)
    is_read_only = isinstance(error, DatabaseReadOnlyError)
    kinds: tuple[tuple[WorkKind, bool], ...] = (("search", is_read_only), ("append", False))
    for kind, goes_on in kinds:
        with nullcontext() if goes_on else pytest.raises(type(error)):
            async with service.container.work_records.record_work(service.tenant, conversation_id, kind):
                pass
    await service.container.work_records.drain()
    assert len(removed) == (0 if is_read_only else 2)


async def test_after_the_second_nothing_is_done_with_its_texts_and_they_can_be_read(service: Service) -> None:
    conversation_id, other = await two(service)
    message_id = (await service.row(conversation_id)).last_message_id
    assert message_id is not None
    await leave_behind(service, conversation_id, times=2)
    container, tenant = service.container, service.tenant
    before = await service.row(conversation_id)

    for work in (
        lambda: container.context.assemble_unrecorded(tenant, conversation_id),
        lambda: container.messages.append(tenant, conversation_id, [MessageDraft(role="user", content="Again?")]),
        lambda: container.chat.start(tenant, conversation_id, ChatInput(content="Again?")),
        lambda: container.search.find(tenant, conversation_id, "crates", limit=5),
        lambda: container.erasure.erase(tenant, conversation_id, message_id),
    ):
        with pytest.raises(ConversationSetAsideError) as refused:
            await work()
        assert refused.value.extra["reason"] == "context"
        assert "throughline conversations release" in refused.value.detail
    assert await service.row(conversation_id) == before, "nothing is half written"

    messages, _ = await container.messages.page(tenant, conversation_id, Page(limit=10, order="asc"))
    assert len(messages) == 4
    assert (await container.conversations.get(tenant, conversation_id)).conversation == before
    await look(service, other)
    await service.say(other, 1)
    assert (await service.events(conversation_id)).count("conversation.set_aside") == 1


async def test_control_with_more_patience_it_would_go_on(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.usecases.shared.work_records.MAX_CRASHES", 99)
    conversation_id, _ = await two(service)
    await leave_behind(service, conversation_id, times=2)
    await look(service, conversation_id)


async def test_an_operator_takes_it_back(service: Service) -> None:
    conversation_id, other = await two(service)
    await leave_behind(service, conversation_id, times=2)
    for _ in range(2):
        await service.container.release.release(service.tenant, conversation_id)
    await service.container.release.release(service.tenant, other)

    await look(service, conversation_id)
    await service.say(conversation_id, 1)
    assert (await service.events(conversation_id)).count("conversation.released") == 1
    assert "conversation.released" not in await service.events(other)
    await leave_behind(service, conversation_id)
    await look(service, conversation_id)


async def test_what_it_has_in_flight_ends_and_nothing_is_claimed(service: Service) -> None:
    conversation_id = await service.conversation()
    await service.say(conversation_id, 60)
    (queued,) = await service.compactions(conversation_id)
    await leave_behind(service, conversation_id, "compaction", times=2)
    ended = await service.container.compaction.execute(queued.id)
    assert ended is not None
    assert (ended.status, ended.reason) == ("failed", "conversation_set_aside")
    assert service.summarizer.requests == []
    async with service.begin(service.tenant) as uow:  # the pause after the failure has ended
        row = await uow.conversations.get(conversation_id)
        await uow.conversations.update(conversation_id, quiet=type(row.quiet)())
        await uow.commit()
    await service.container.sweeper.sweep()
    assert len(await service.compactions(conversation_id)) == 1

    await service.container.release.release(service.tenant, conversation_id)
    await service.container.sweeper.sweep()
    assert len(await service.compactions(conversation_id)) == 2, "control: it was due all the time"


async def test_two_sweepers_count_a_crash_once(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    services = [Service(begin, tenant, owner=f"process:{number}") for number in range(3)]
    conversation_id, _ = await two(services[0])
    work = Work(id=uuid4(), tenant_id=tenant, conversation_id=conversation_id, process=uuid4(), kind="context")
    async with begin(tenant) as uow:
        await uow.works.begin(work, seconds=-1)
    await asyncio.gather(*(one.container.sweeper.sweep() for one in services))
    counted = await crashes(services[0], conversation_id)
    assert counted is not None
    assert counted.count == 1


async def test_processes_that_end_at_once_count_as_one(service: Service) -> None:
    """An API process and a worker whose machine is switched off; their last heartbeats were up to a beat apart."""
    conversation_id, other = await two(service)
    beat = service.container.settings.timings.heartbeat_seconds
    ended: tuple[tuple[UUID, WorkKind], ...] = (
        (conversation_id, "append"),
        (conversation_id, "compaction"),
        (other, "append"),
    )
    for place, kind in ended:
        work = Work(id=uuid4(), tenant_id=service.tenant, conversation_id=place, process=uuid4(), kind=kind)
        async with service.begin(service.tenant) as uow:
            await uow.works.begin(work, seconds=-1 if kind == "append" else beat - 1)
    alive = Work(id=uuid4(), tenant_id=service.tenant, conversation_id=conversation_id, process=uuid4(), kind="context")
    async with service.begin(service.tenant) as uow:
        await uow.works.begin(alive, seconds=30)
    await service.container.sweeper.sweep()
    for place in (conversation_id, other):
        counted = await crashes(service, place)
        assert counted is not None
        assert (counted.count, counted.kind) == (1, "append")
    async with service.begin(service.tenant) as uow:
        left = {row.id for row in await uow.works._session.all(select(WorkRow))}
    assert alive.id in left, "control: a process that lives is not counted with them"
    await service.say(conversation_id, 1)


async def test_a_crash_that_cannot_be_counted_holds_up_no_other(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = await two(service)
    counted = work_records.count_crash

    async def broken(uow: UnitOfWork, work: Work, *given: Any) -> CrashCount | None:
        if work.conversation_id == first:
            raise RuntimeError("a row that is broken")
        return await counted(uow, work, *given)

    monkeypatch.setattr(sweeper_module, "count_crash", broken)
    for conversation_id in (first, second):
        work = Work(
            id=uuid4(), tenant_id=service.tenant, conversation_id=conversation_id, process=uuid4(), kind="context"
        )
        async with service.begin(service.tenant) as uow:
            await uow.works.begin(work, seconds=-1)
    await service.container.sweeper.sweep()
    assert await crashes(service, first) is None
    found = await crashes(service, second)
    assert found is not None
    assert found.count == 1


async def test_it_is_on_record_before_it_begins_and_off_when_it_ended(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    conversation_id, _ = await two(service)
    await service.container.work_records.drain()
    seen: list[list[str]] = []
    put_together = context_module.ContextService._assemble_without_recall

    async def noted(self: Any, *given: Any, **named: Any) -> Any:
        seen.append(await on_record(service))
        return await put_together(self, *given, **named)

    monkeypatch.setattr(context_module.ContextService, "_assemble_without_recall", noted)
    await look(service, conversation_id)
    assert seen == [["context"]]
    assert await on_record(service) == []


async def test_a_process_that_waits_for_a_model_works_on_nothing(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    gate = Gate()
    service = Service(begin, tenant, gate)
    assert FAKE_PROFILE.metered
    conversation_id = await service.conversation()
    await service.say(conversation_id, 40)
    running = asyncio.create_task(
        service.container.manual.compact(tenant, conversation_id, CompactInput(), timeout=PATIENCE)
    )
    await asyncio.wait_for(gate.reached.wait(), PATIENCE)
    await service.container.work_records.drain()
    assert await on_record(service) == [], "killed now, it was not ended by the text"
    gate.go_on.set()
    assert (await running).compaction.status == "applied"
    await service.container.work_records.drain()
    assert await on_record(service) == []


@pytest.mark.long
async def test_a_process_that_lives_is_not_counted_however_long_it_works(
    begin: UnitOfWorkFactory, tenant: UUID
) -> None:
    service = Service(begin, tenant, settings=QUICK)
    conversation_id, _ = await two(service)
    async with service.container.work_records.record_work(tenant, conversation_id, "context"):
        await asyncio.sleep(2 * QUICK.lease_seconds)
        await service.container.sweeper.sweep()
        assert await crashes(service, conversation_id) is None
    await service.container.work_records.drain()


async def test_one_task_renews_all_that_is_on_record_whoever_asked_first(
    begin: UnitOfWorkFactory, tenant: UUID
) -> None:
    service = Service(begin, tenant, settings=QUICK)
    one, other = await two(service)
    book = service.container.work_records
    await book.drain()
    somebody = end_user.set("somebody else, who sees neither")
    async with book.record_work(tenant, one, "context"), book.record_work(tenant, other, "context"):
        end_user.reset(somebody)
        before = await leases(service)
        async with asyncio.timeout(PATIENCE):
            later = before
            while any(map(le, later, before)):
                await asyncio.sleep(QUICK.heartbeat_seconds)
                later = await leases(service)
                assert len(later) == len(before)
    await book.drain()


async def test_a_record_that_cannot_be_struck_at_once_is_struck_later(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    """Otherwise an outage of the database would look like the end of a process."""
    away: list[bool] = []

    @asynccontextmanager
    async def refusing(unit: UnitOfWork) -> AsyncIterator[UnitOfWork]:
        if unit.session.tenant_id is None and away:
            away.pop()
            raise DependencyUnavailableError("away")
        async with unit:
            yield unit

    def begin_(tenant_id: UUID | None) -> UnitOfWork:
        return opened_by(refusing, begin(tenant_id))

    service = Service(begin_, tenant, settings=QUICK)
    conversation_id, _ = await two(service)
    away.extend([True, True])
    await service.container.context.assemble_unrecorded(tenant, conversation_id)
    async with asyncio.timeout(PATIENCE):
        while await on_record(service):  # noqa: ASYNC110 - the condition is the database's
            await asyncio.sleep(0.05)
    assert not away


@pytest.mark.parametrize("ending", [DependencyUnavailableError("the answer was lost"), asyncio.CancelledError()])
async def test_what_was_put_on_record_and_not_heard_of_is_struck(
    service: Service, monkeypatch: pytest.MonkeyPatch, ending: BaseException
) -> None:
    """Otherwise a cut connection, or a client that leaves at this moment, would look like the end of a process."""
    conversation_id, _ = await two(service)
    await service.container.work_records.drain()
    begin_work = WorkRepository.begin

    async def unheard(self: WorkRepository, work: Work, *, seconds: float) -> CrashCount | None:
        await begin_work(self, work, seconds=seconds)
        raise ending

    monkeypatch.setattr(WorkRepository, "begin", unheard)
    with pytest.raises(type(ending)):
        await service.container.context.assemble_unrecorded(service.tenant, conversation_id)
    await service.container.work_records.drain()
    assert await on_record(service) == []

    monkeypatch.setattr(work_records.WorkRecords, "remove", lambda *_: None)  # the control
    with pytest.raises(type(ending)):
        await service.container.context.assemble_unrecorded(service.tenant, conversation_id)
    assert await on_record(service) == ["context"]


async def test_a_conversation_that_was_deleted_meanwhile_is_forgotten(service: Service) -> None:
    conversation_id, _ = await two(service)
    await service.container.conversations.delete(service.tenant, conversation_id)
    await leave_behind(service, conversation_id)
    await service.container.work_records.drain()
    assert await on_record(service) == []


async def test_a_model_that_answers_at_once_finds_the_work_on_record_again(service: Service) -> None:
    """The row from before the call may still be there when the work continues."""
    conversation_id, _ = await two(service)
    async with service.container.work_records.record_work(service.tenant, conversation_id, "compaction") as record:
        for _ in range(5):
            async with record.waiting():
                pass
            assert "compaction" in await on_record(service)
        await service.container.work_records.drain()
        assert await on_record(service) == ["compaction"]
    await service.container.work_records.drain()
    assert await on_record(service) == []
