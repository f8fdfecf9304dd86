"""A fold that no model can make smaller asks none, and is not tried again until something has changed."""

from __future__ import annotations

from uuid import UUID

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from app.core.model.records import Compaction, Page
from app.storage.unit_of_work import UnitOfWorkFactory
from app.usecases.compaction import ending, job
from app.usecases.history.drafts import MessageDraft
from tests.integration.services import Service


async def decided(service: Service, count: int, **policy: float) -> UUID:
    """A conversation under a policy without an allotment for anchors, and with little but decisions in it."""
    conversation_id = await service.conversation(anchor_share=policy.get("anchor_share"))
    drafts = [
        draft
        for n in range(1, count + 1)
        for draft in (
            MessageDraft(
                role="user",
                content=f"We decided on supplier {n} for hall {n}: {n * 31} euros, and the contract is HV-{n}-77.",
            ),
            MessageDraft(
                role="assistant",
                content=f"Noted, supplier {n}. It is a long way to the harbour, and it may well rain by evening.",
            ),
        )
    ]
    await service.container.messages.append(service.tenant, conversation_id, drafts)
    await service.container.outbox.drain()
    return conversation_id


async def ended(service: Service) -> Compaction:
    row = await service.container.compaction.execute(service.queue.ids[-1])
    assert row is not None
    return row


async def due(service: Service, engine: AsyncEngine) -> bool:
    """Whether the conversation is due once every pause is over."""
    async with engine.begin() as connection:
        await connection.execute(text("UPDATE conversations SET quiet_until = quiet_until - interval '2 hours'"))
    async with service.begin(None) as uow:
        return bool(await uow.conversations.due(limit=10))


@pytest.mark.daily(1)
@pytest.mark.parametrize("knows", [True, False], ids=["guarded", "control"])
async def test_no_model_is_asked_about_a_fold_that_is_refused_for_its_anchors(
    begin: UnitOfWorkFactory, tenant: UUID, monkeypatch: pytest.MonkeyPatch, *, knows: bool
) -> None:
    """Control: without the look ahead a model is asked, and its answer is refused for the same reason."""
    if not knows:
        monkeypatch.setattr(job, "certain_refusal", lambda _: None)
    service = Service(begin, tenant)
    conversation_id = await decided(service, 200)
    row = await ended(service)
    assert (row.status, row.reason) == ("rejected", "anchors_over_budget")
    assert len(row.attempts) == len(service.summarizer.requests) == (0 if knows else 1)
    assert (await service.row(conversation_id)).state_version == 0


@pytest.mark.long
async def test_control_with_an_allotment_it_is_asked_and_applied(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    service = Service(begin, tenant)
    await decided(service, 200, anchor_share=0.15)
    assert (await ended(service)).status == "applied"
    assert service.summarizer.requests


@pytest.mark.daily(1)
@pytest.mark.parametrize("waits", [True, False], ids=["guarded", "control"])
async def test_it_is_tried_again_only_after_a_message_or_a_change_of_its_anchors(
    begin: UnitOfWorkFactory, tenant: UUID, engine: AsyncEngine, monkeypatch: pytest.MonkeyPatch, *, waits: bool
) -> None:
    """Control: after any other failure it is tried again once the pause is over."""
    service = Service(begin, tenant)
    conversation_id = await decided(service, 200)
    if not waits:
        monkeypatch.setattr(ending, "_is_refused_for_good", lambda _: False)
    await ended(service)
    assert await due(service, engine) is not waits
    if not waits:
        return

    before = len(service.queue.ids)
    await service.say(conversation_id, 1)
    assert len(service.queue.ids) == before + 1, "a message"
    assert (await ended(service)).reason == "anchors_over_budget"
    assert not await due(service, engine)

    async with service.begin(tenant) as uow:
        (anchor, *_), _ = await uow.anchors.page(conversation_id, Page(limit=1))
    await service.container.anchors.set_status(tenant, conversation_id, anchor.id, "resolved")
    assert await due(service, engine), "an anchor"
