"""The day of a message is the day on the clock that its client gave, also after the message was stored."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Final
from uuid import UUID

import pytest

from app.core.model.model_io import Proposal, SummaryRequest
from app.providers.offline import OfflineSummarizer
from app.storage.unit_of_work import UnitOfWorkFactory
from app.usecases.compaction.manual import CompactInput
from app.usecases.history.drafts import MessageDraft
from tests.integration.services import Service

MOSCOW: Final = datetime(2025, 5, 13, 0, 30, tzinfo=timezone(timedelta(hours=3)))
CALIFORNIA: Final = datetime(2025, 5, 13, 21, 0, tzinfo=timezone(timedelta(hours=-7)))
"""The time of Moscow is a day earlier in UTC, that of California a day later."""
SAID: Final = "We decided yesterday to buy 412 tiles of Ferreira for the hall."


async def offline(request: SummaryRequest) -> Proposal:
    """The summarizer of a service without a key."""
    return await OfflineSummarizer().ask(request)


@pytest.fixture
def service(begin: UnitOfWorkFactory, tenant: UUID) -> Service:
    return Service(begin, tenant, offline)


@pytest.mark.daily(1)
@pytest.mark.parametrize(
    ("at", "day"), [(MOSCOW, "12 May 2025"), (CALIFORNIA, "12 May 2025"), (MOSCOW.astimezone(UTC), "11 May 2025")]
)
async def test_yesterday_is_the_day_before_the_speaker_s(service: Service, at: datetime, day: str) -> None:
    conversation_id = await service.conversation(levels=[])
    await service.container.messages.append(
        service.tenant,
        conversation_id,
        [MessageDraft(role="user", content="Hello."), _said(at), _said(at, "assistant")],
    )
    await service.say(conversation_id, 21)
    await service.container.manual.compact(
        service.tenant, conversation_id, CompactInput(keep_tail_messages=0), timeout=20
    )
    row = await service.row(conversation_id)
    assert row.layout is not None
    assert f"yesterday ({day})" in row.layout.text + row.layout.anchors


async def test_what_is_stored_is_the_same_moment_on_the_same_clock(service: Service) -> None:
    conversation_id = await service.conversation(triggers=[], levels=[])
    stored = [MOSCOW, CALIFORNIA, MOSCOW.astimezone(UTC)]
    await service.container.messages.append(service.tenant, conversation_id, [_said(at) for at in stored])
    await service.container.manual.compact(
        service.tenant, conversation_id, CompactInput(keep_tail_messages=0), timeout=20
    )
    async with service.begin(service.tenant) as uow:
        read = await uow.messages.between(conversation_id, 1, 9)
        anchors = await uow.anchors.active(conversation_id, through_seq=9, limit=9, as_said=True)
    assert [(one.created_at, one.created_at.utcoffset()) for one in read] == [(at, at.utcoffset()) for at in stored]
    days = {one.seq: one.said_at.date() for one in anchors if one.said_at}
    assert days == {1: MOSCOW.date(), 2: CALIFORNIA.date(), 3: MOSCOW.date() - timedelta(days=1)}


def _said(at: datetime, role: str = "user") -> MessageDraft:
    return MessageDraft(role=role, content=SAID, created_at=at)  # type: ignore[arg-type]
