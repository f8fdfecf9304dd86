"""Case 14: a stretch in which nothing can be folded leads to one row, however much the conversation grows."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from uuid import UUID

import pytest

from app.storage.unit_of_work import UnitOfWorkFactory
from app.usecases.chat.starting import ChatInput
from app.usecases.compaction.repeating import would_repeat
from tests.integration.services import Service

PATIENCE = 60.0
KEPT = 30
"""The number of messages of about 100 tokens, all kept; the 22nd takes the context to its trigger of 2 142 tokens."""

Grow = Callable[[Service, UUID, int], Awaitable[None]]


async def by_appends(service: Service, conversation_id: UUID, messages: int) -> None:
    """Append messages one by one; a worker does at once what is queued."""
    for _ in range(messages):
        await service.say(conversation_id, 1, words=4)
        await service.container.compaction.execute(service.queue.ids[-1]) if service.queue.ids else None


async def by_turns(service: Service, conversation_id: UUID, messages: int) -> None:
    """Do turns with long replies, so that the context is above the threshold before the call of the next one."""
    for _ in range(messages // 2):
        given = ChatInput(content="the shipment of crates reaches the harbour on a grey morning " * 14)
        handle = await service.container.chat.start(service.tenant, conversation_id, given)
        await asyncio.wait_for(handle.result(), PATIENCE)
        await by_appends(service, conversation_id, 0)
        for job in service.queue.ids:
            await service.container.compaction.execute(job)


async def begun(service: Service) -> UUID:
    """A conversation that keeps everything, two messages below its trigger."""
    conversation_id = await service.conversation(keep_tail_messages=500)
    await service.say(conversation_id, 20, words=4)
    assert service.queue.ids == []
    return conversation_id


@pytest.fixture
def service(begin: UnitOfWorkFactory, tenant: UUID) -> Service:
    return Service(begin, tenant)


async def reasons(service: Service, conversation_id: UUID) -> list[str | None]:
    return [row.reason for row in await service.compactions(conversation_id)]


@pytest.mark.daily(1)
@pytest.mark.case("14")
@pytest.mark.parametrize("grow", [by_appends, by_turns])
async def test_growth_that_folds_nothing_adds_no_row(service: Service, grow: Grow) -> None:
    conversation_id = await begun(service)
    await grow(service, conversation_id, 24)

    row = await service.row(conversation_id)
    assert row.context_tokens > 1.5 * 2_142, "it grew by many times five percent"
    assert await reasons(service, conversation_id) == ["irreducible_floor"]
    assert service.summarizer.requests == []
    assert (await service.events(conversation_id)).count("compaction.skipped") == 1


@pytest.mark.long
@pytest.mark.control("14")
@pytest.mark.parametrize("grow", [by_appends, pytest.param(by_turns, marks=pytest.mark.long)])
async def test_control_without_the_look_ahead_every_five_percent_is_a_row(
    service: Service, grow: Grow, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def never(*_: object, **__: object) -> bool:
        return False

    for module in ("due_triggers", "inline"):
        monkeypatch.setattr(f"app.usecases.compaction.{module}.would_repeat", never)
    conversation_id = await begun(service)
    await grow(service, conversation_id, 24)

    assert len(await reasons(service, conversation_id)) > 3


@pytest.mark.long
async def test_the_stretch_ends_when_something_can_be_folded(service: Service) -> None:
    conversation_id = await service.conversation(keep_tail_messages=KEPT)
    await service.say(conversation_id, KEPT - 10, words=4)
    await by_appends(service, conversation_id, 10)
    assert await reasons(service, conversation_id) == ["irreducible_floor"]
    await by_appends(service, conversation_id, 10)

    rows = await service.compactions(conversation_id)
    assert rows[1].status == "applied"
    assert service.summarizer.requests


@pytest.mark.long
async def test_a_change_of_the_policy_begins_another_stretch(service: Service) -> None:
    conversation_id = await begun(service)
    await by_appends(service, conversation_id, 10)
    policy = {"policy": {"context_window": 4_001, "keep_tail_messages": 499}}
    await service.container.conversations.patch(service.tenant, conversation_id, policy)
    await by_appends(service, conversation_id, 10)

    assert await reasons(service, conversation_id) == ["irreducible_floor", "irreducible_floor"]


@pytest.mark.long
async def test_a_sweeper_that_looks_again_adds_no_row(service: Service) -> None:
    conversation_id = await begun(service)
    await by_appends(service, conversation_id, 10)
    for _ in range(3):
        await service.say(conversation_id, 4, words=4)
        await service.container.sweeper.sweep()

    assert await reasons(service, conversation_id) == ["irreducible_floor"]


async def test_it_says_no_where_the_last_compaction_folded_something(service: Service) -> None:
    """As long as there is nothing to repeat, no plan is made, and nothing is read."""
    conversation_id = await service.conversation()
    await service.say(conversation_id, 4)
    async with service.begin(service.tenant) as uow:
        resolved = service.container.compaction._shell.resolver(await uow.conversations.lock(conversation_id))
        assert not await would_repeat(None, resolved, resolved.policy.triggers[0])  # type: ignore[arg-type]
