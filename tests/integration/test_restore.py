"""Going back to before the first compaction: nothing is covered, no state is served, and everything begins again."""

from __future__ import annotations

from typing import Any
from unittest.mock import AsyncMock
from uuid import UUID

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from app.core.model.errors import NotFoundError
from app.core.model.records import Page
from app.settings import Settings
from app.storage.repositories.sizes import cut_to_fit
from app.storage.unit_of_work import UnitOfWork, UnitOfWorkFactory
from app.usecases.compaction.manual import CompactInput
from app.usecases.shared.compaction_views import views_of
from app.usecases.verification import pending
from tests.integration.services import Service
from tests.servers import execute_sql


@pytest.fixture
def service(begin: UnitOfWorkFactory, tenant: UUID) -> Service:
    return Service(begin, tenant)


async def folded(service: Service, *, times: int = 2) -> UUID:
    conversation_id = await service.conversation(max_tokens=-1)
    for _ in range(times):
        await service.say(conversation_id, 12)
        await compact(service, conversation_id)
    return conversation_id


async def compact(service: Service, conversation_id: UUID) -> None:
    asked = CompactInput(keep_tail_messages=2)
    view = await service.container.manual.compact(service.tenant, conversation_id, asked, timeout=30)
    assert view.compaction.status == "applied"


async def segments(service: Service, conversation_id: UUID) -> list[tuple[int, int]]:
    async with service.begin(service.tenant) as uow:
        rows, _ = await uow.segments.page(conversation_id, Page(limit=100, order="asc"))
        return [(one.from_seq, one.to_seq) for one in rows]


async def test_nothing_is_covered_and_nothing_served(service: Service) -> None:
    conversation_id = await folded(service)
    before = await service.row(conversation_id)
    view = await service.container.states.restore(service.tenant, conversation_id, 0)
    row = view.conversation
    assert (row.state_version, row.boundary_seq, row.compressed_at_message_id) == (before.state_version + 1, 0, None)
    assert (row.compressed_state, row.state_schema, row.layout) == (None, None, None)
    assert (row.covered.messages, row.covered.tokens) == (0, 0)
    assert row.total == before.total
    assert row.context_tokens == view.gauge.tokens > before.context_tokens
    assert view.gauge.breakdown.block == 0
    assert await segments(service, conversation_id) == []
    async with service.begin(service.tenant) as uow:
        version = await uow.states.get(conversation_id, row.state_version)
    assert (version.parent_version, version.boundary_seq, version.layout) == (None, 0, None)
    assert not any(version.state.values())
    assert set(version.state) == set(before.compressed_state or {})


async def test_the_next_compaction_makes_all_of_it_anew(service: Service) -> None:
    conversation_id = await folded(service)
    async with service.begin(service.tenant) as uow:
        old = await uow.states.get(conversation_id, 2)
    await service.container.states.restore(service.tenant, conversation_id, 0)
    await compact(service, conversation_id)
    row = await service.row(conversation_id)
    async with service.begin(service.tenant) as uow:
        new = await uow.states.get(conversation_id, row.state_version)
    assert row.boundary_seq == old.boundary_seq
    assert {entry.since_version for entry in new.entries} == {row.state_version}, "nothing was carried along"
    assert not {entry.id for entry in new.entries} & {entry.id for entry in old.entries}, "ids are never used again"
    covered = [seq for first, last in await segments(service, conversation_id) for seq in range(first, last + 1)]
    assert covered == list(range(1, row.boundary_seq + 1))
    restored = await service.container.states.restore(service.tenant, conversation_id, 2)
    assert restored.conversation.compressed_state == old.state


async def test_the_empty_version_can_be_gone_back_to_as_well(service: Service) -> None:
    conversation_id = await folded(service, times=1)
    await service.container.states.restore(service.tenant, conversation_id, 0)
    await compact(service, conversation_id)
    row = (await service.container.states.restore(service.tenant, conversation_id, 2)).conversation
    assert (row.state_version, row.boundary_seq, row.compressed_state, row.layout) == (4, 0, None, None)
    assert await segments(service, conversation_id) == []


@pytest.mark.long
async def test_messages_can_be_erased_and_appended_in_between(service: Service) -> None:
    conversation_id = await folded(service)
    await service.container.states.restore(service.tenant, conversation_id, 0)
    async with service.begin(service.tenant) as uow:
        message = await uow.messages.at_seq(conversation_id, 3)
    await service.container.erasure.erase(service.tenant, conversation_id, message.id)
    await service.say(conversation_id, 2)
    await compact(service, conversation_id)
    row = await service.row(conversation_id)
    assert row.boundary_seq == row.last_seq - 2
    assert row.layout is not None


async def test_without_a_state_there_is_nothing_to_go_back_from(service: Service) -> None:
    conversation_id = await service.conversation()
    with pytest.raises(NotFoundError, match="no state yet"):
        await service.container.states.restore(service.tenant, conversation_id, 0)


@pytest.mark.daily(1)
@pytest.mark.parametrize("is_of_one_moment", [True, False], ids=["as it is", "control: each statement by itself"])
async def test_versions_are_shown_as_they_were_at_one_moment(
    service: Service,
    engine: AsyncEngine,
    monkeypatch: pytest.MonkeyPatch,
    *,
    is_of_one_moment: bool,
) -> None:
    """A verification that ends in between leaves neither its verdict nor its version, rather than one of the two."""
    conversation_id = await folded(service, times=1)
    url = engine.url.render_as_string(hide_password=False)
    judged = f"UPDATE state_versions SET verified = 'model' WHERE conversation_id = '{conversation_id}'"  # noqa: S608

    def cut(rows: Any, *others: Any) -> Any:
        execute_sql(url, judged)
        return cut_to_fit(rows, *others)

    monkeypatch.setattr("app.storage.repositories.states.cut_to_fit", cut)
    if not is_of_one_moment:
        monkeypatch.setattr(UnitOfWork, "use_snapshot", AsyncMock())
    (shown,), _ = await service.container.states.page(service.tenant, conversation_id, Page(limit=1))
    assert (shown.verified == "model") is not is_of_one_moment
    (shown,), _ = await service.container.states.page(service.tenant, conversation_id, Page(limit=1))
    assert shown.verified == "model"


async def test_a_version_whose_parent_was_forgotten_is_examined_and_its_compaction_has_no_summary(
    begin: UnitOfWorkFactory, tenant: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pending, "MIN_KEPT_VERSIONS", 1)
    service = Service(begin, tenant, settings=Settings(state_versions_kept=1))
    conversation_id = await folded(service, times=2)
    examined = await service.container.examination.examine(tenant, conversation_id)
    assert (examined.found, examined.state_version) == ((), 2)
    async with begin(tenant) as uow:
        first, second = await views_of(uow, await service.compactions(conversation_id))
    assert (first.compaction.state_version_after, first.summary) == (1, None)
    assert second.summary
    with pytest.raises(NotFoundError, match="version 1 is not kept any more"):
        await service.container.states.restore(tenant, conversation_id, 1)
