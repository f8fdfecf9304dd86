"""Digests on a real database: they never make a context larger than it was, and later layouts keep to their room."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any
from uuid import UUID

import pytest

from app.core.context.assembly import AssembledContext
from app.core.model.conversation import Conversation, Layout
from app.core.model.records import Compaction
from app.core.model.segments import ServableSegment
from app.core.segments.digests import MARKER_ELEMENT_TOKENS
from app.core.state import digest_selection
from app.storage.repositories.segments import SegmentRepository
from app.storage.unit_of_work import UnitOfWorkFactory
from app.usecases.compaction import saving
from app.usecases.compaction.manual import CompactInput
from app.usecases.history.drafts import MessageDraft
from app.usecases.shared import layouts
from tests.integration.services import Service

PATIENCE = 30.0


@pytest.fixture
def service(begin: UnitOfWorkFactory, tenant: UUID) -> Service:
    return Service(begin, tenant)


async def folded(service: Service, conversation_id: UUID, **asked: Any) -> Compaction:
    """Compact manually everything that ``asked`` does not keep."""
    view = await service.container.manual.compact(
        service.tenant, conversation_id, CompactInput(**asked), timeout=PATIENCE
    )
    return view.compaction


async def in_background(service: Service) -> Compaction:
    ended = await service.container.compaction.execute(service.queue.ids[-1])
    assert ended is not None
    assert ended.status == "applied"
    return ended


async def layout_of(service: Service, conversation_id: UUID) -> Layout:
    layout = (await service.row(conversation_id)).layout
    assert layout is not None
    return layout


async def assembled(service: Service, conversation_id: UUID, budget: int | None = None) -> AssembledContext:
    return await service.container.context.assemble(service.tenant, conversation_id, budget)


def front(context: AssembledContext) -> str:
    return next(one.content for one in context.messages if one.content.startswith("<session_state>"))


async def agrees(service: Service, conversation_id: UUID, row: Compaction) -> Conversation:
    """Insist that the size is the same in the row, in the gauge and in the assembled context."""
    stored = await service.row(conversation_id)
    context = await assembled(service, conversation_id)

    assert row.tokens_after == stored.context_tokens == context.gauge.tokens
    assert sum(one.tokens for one in context.sections) == context.gauge.tokens
    return stored


@pytest.mark.long
async def test_a_background_compaction_ends_at_its_target_with_digests(service: Service) -> None:
    conversation_id = await service.conversation()
    await service.say(conversation_id, 66)
    row = await in_background(service)
    await agrees(service, conversation_id, row)
    layout = await layout_of(service, conversation_id)
    context = await assembled(service, conversation_id)

    assert row.tokens_after is not None
    assert row.tokens_after <= 1_836
    assert 0 < layout.digest_tokens <= 306
    assert layout.segments
    assert front(context).index("<digests>") > front(context).index('{"logos"')
    assert [one.segment_id for one in context.markers if one.segment_id not in {"earlier", "anchors"}] == [
        one.id for one in layout.segments
    ]


@pytest.mark.long
@pytest.mark.parametrize("guarded", [True, False], ids=["strictly smaller", "control"])
async def test_where_all_is_folded_they_have_what_keeps_it_smaller(
    service: Service, monkeypatch: pytest.MonkeyPatch, *, guarded: bool
) -> None:
    if not guarded:
        monkeypatch.setattr(saving, "_most_tokens_after", lambda _: 10**9)
    monkeypatch.setattr(digest_selection, "BLOCK_SHARE", 0.9)
    smaller: list[bool] = []
    for count in range(4, 20, 3):
        conversation_id = await service.conversation(protect=[], segment_by={"by": "messages", "size": 1})
        await service.say(conversation_id, count, words=1)
        row = await folded(service, conversation_id, keep_tail_messages=0)
        if row.status != "applied":
            continue
        assert row.tokens_before is not None
        assert row.tokens_after is not None
        smaller.append(row.tokens_after < row.tokens_before)
        await agrees(service, conversation_id, row)

    assert len(smaller) > 2
    assert all(smaller) is guarded


async def test_a_factor_below_one_does_not_make_it_as_large_as_it_was(service: Service) -> None:
    conversation_id = await service.conversation(protect=[], segment_by={"by": "messages", "size": 1})
    await service.say(conversation_id, 12, words=1)
    async with service.begin(service.tenant) as uow:
        await uow.conversations.update(conversation_id, token_factor=0.7)
        await uow.commit()
    row = await folded(service, conversation_id, keep_tail_messages=0)

    assert row.status == "applied"
    assert row.tokens_before is not None
    assert row.tokens_after is not None
    assert row.tokens_after < row.tokens_before
    assert row.tokens_after == (await service.row(conversation_id)).context_tokens


async def test_later_layouts_keep_to_the_room_of_the_compaction(service: Service) -> None:
    conversation_id = await service.conversation(protect=[], segment_by={"by": "messages", "size": 1})
    first, *_ = await service.say(conversation_id, 12, words=1)
    await folded(service, conversation_id, keep_tail_messages=0)
    before = await layout_of(service, conversation_id)
    await service.container.pins.pin(service.tenant, conversation_id, first.id)
    pinned = await layout_of(service, conversation_id)

    assert before.digest_room is not None
    assert before.digest_tokens <= before.digest_room < 306
    assert pinned.held == (1,)
    assert (pinned.digest_room, pinned.digests) == (before.digest_room, before.digests)


@pytest.mark.long
async def test_half_of_the_budget_is_not_theirs(service: Service) -> None:
    conversation_id = await service.conversation(pin_share=0.45, segment_by={"by": "messages", "size": 4})
    await service.say(conversation_id, 66)
    await in_background(service)
    before = await layout_of(service, conversation_id)
    async with service.begin(service.tenant) as uow:
        covered = await uow.messages.between(conversation_id, 1, 30)
    for message in covered:
        await service.container.pins.pin(service.tenant, conversation_id, message.id)
    layout = await layout_of(service, conversation_id)
    held = (await service.row(conversation_id)).covered.held_tokens

    assert before.digest_tokens > 0
    assert held > 1_200
    assert layout.digest_tokens < before.digest_tokens
    assert layout.digest_tokens <= MARKER_ELEMENT_TOKENS or 2 * (layout.tokens + held) < 3_060
    assert "→L" in layout.digests, "but the marker that leads to them all"


async def test_without_levels_none_is_served_and_turning_them_on_serves_them(service: Service) -> None:
    conversation_id = await service.conversation(levels=[])
    await service.say(conversation_id, 66)
    await in_background(service)
    off = await assembled(service, conversation_id)
    policy = {"context_window": 4_000, "levels": ["L3"]}
    await service.container.conversations.patch(service.tenant, conversation_id, {"policy": policy})
    on = await assembled(service, conversation_id)

    assert off.gauge.breakdown.digests == 0
    assert "→" not in "".join(one.content for one in off.messages)
    assert on.gauge.breakdown.digests > 0
    assert {one.level for one in on.markers} == {"L3"}


@pytest.mark.long
async def test_between_two_compactions_the_front_stays_and_a_restore_brings_back_its_own(service: Service) -> None:
    conversation_id = await service.conversation()
    await service.say(conversation_id, 66)
    await in_background(service)
    contexts = [await assembled(service, conversation_id)]
    for _ in range(4):
        await service.say(conversation_id, 1)
        contexts.append(await assembled(service, conversation_id))
    for before, after in pairwise(contexts):
        assert after.messages[: len(before.messages)] == before.messages
    await folded(service, conversation_id, keep_tail_messages=2)
    second = await assembled(service, conversation_id)
    await service.container.states.restore(service.tenant, conversation_id, 1)
    restored = await assembled(service, conversation_id)

    assert front(second) != front(contexts[0])
    assert front(restored) == front(contexts[0])
    assert restored.markers == contexts[0].markers


async def test_a_small_budget_shows_fewer_and_reads_segments_only_then(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads: list[int] = []
    read = SegmentRepository.among_newest

    async def counted(
        self: SegmentRepository, conversation_id: UUID, ids: Sequence[str], *, limit: int
    ) -> list[ServableSegment]:
        reads.append(limit)
        return await read(self, conversation_id, ids, limit=limit)

    conversation_id = await service.conversation()
    await service.say(conversation_id, 66)
    await in_background(service)
    monkeypatch.setattr(SegmentRepository, "among_newest", counted)
    whole = await assembled(service, conversation_id)
    assert reads == []
    spent = whole.gauge.tokens - whole.gauge.breakdown.system
    fewer = await assembled(service, conversation_id, spent - 20)

    assert 0 < fewer.gauge.breakdown.digests <= whole.gauge.breakdown.digests - 20
    assert fewer.gauge.breakdown.tail == whole.gauge.breakdown.tail
    assert fewer.warnings == ()
    assert len(reads) == 1
    assert reads[0] <= 31, "no more than could have a line"


@pytest.mark.long
async def test_a_long_fold_in_chunks_ends_at_its_target_too(service: Service) -> None:
    service.summarizer._profile = replace(service.summarizer.profile, chunk_tokens=2_000)
    conversation_id = await service.conversation(context_window=20_000)
    await service.say(conversation_id, 300)
    row = await in_background(service)
    stored = await agrees(service, conversation_id, row)
    layout = await layout_of(service, conversation_id)

    assert stored.state_version > 1
    assert row.tokens_after is not None
    assert row.tokens_after <= 9_180
    assert layout.digest_tokens > 0


@pytest.mark.daily(1)
@pytest.mark.parametrize("guarded", [True, False], ids=["taken back", "control"])
async def test_what_was_taken_back_is_in_no_digest_in_any_context(
    service: Service, monkeypatch: pytest.MonkeyPatch, *, guarded: bool
) -> None:
    if not guarded:
        monkeypatch.setattr(layouts, "without_outdated", lambda segments, _: segments)
    monkeypatch.setattr(digest_selection, "without_repeated_levels", lambda segments, _: segments)
    monkeypatch.setattr(digest_selection, "BLOCK_SHARE", 0.9)
    conversation_id = await service.conversation(
        protect=[], segment_by={"by": "messages", "size": 2}, anchor_share=0.01
    )
    await service.say(conversation_id, 10)
    told = [
        MessageDraft(role="user", content="Let's use Postgres for the order store."),
        MessageDraft(role="assistant", content="Fine."),
    ]
    await service.container.messages.append(service.tenant, conversation_id, told)
    await folded(service, conversation_id, keep_tail_messages=0)
    before = await assembled(service, conversation_id)
    taken = MessageDraft(role="user", content="Actually no, not Postgres: use MySQL for the order store.")
    await service.container.messages.append(service.tenant, conversation_id, [taken])
    after = await assembled(service, conversation_id)
    smaller = await assembled(service, conversation_id, after.gauge.tokens - after.gauge.breakdown.system - 5)

    assert "Let's use Postgres" in front(before).partition("<digests>")[2]
    for context in (after, smaller):
        digests = front(context).partition("<digests>")[2]
        assert digests
        assert ("Let's use Postgres" not in digests) is guarded


@pytest.mark.daily(1)
@pytest.mark.parametrize("count", [44, 66])
async def test_what_a_first_compaction_brings_along_counts(service: Service, count: int) -> None:
    """Tools that are offered from then on take their room from the digests."""
    service.chat_model._profile = replace(service.chat_model.profile, calls_tools=True)
    conversation_id = await service.conversation(protect=[])
    before = (await assembled(service, conversation_id)).gauge.breakdown.system
    await service.say(conversation_id, count)
    row = await folded(service, conversation_id, keep_tail_messages=0) if count < 60 else await in_background(service)
    await agrees(service, conversation_id, row)

    assert (await assembled(service, conversation_id)).gauge.breakdown.system > before
    assert row.tokens_before is not None
    assert row.tokens_after is not None
    assert row.tokens_after < row.tokens_before
    assert row.tokens_after <= 1_836
