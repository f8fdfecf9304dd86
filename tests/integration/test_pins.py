"""Pins and protection on a real database: the numbers, the served bytes, the races."""

from __future__ import annotations

import asyncio
import math
import random
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from functools import partial
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import literal_column, select
from sqlmodel import col

from app.core.model.continuity import Continuity
from app.core.model.conversation import Conversation, Message, Role
from app.core.model.errors import (
    ModelUnavailableError,
    NotFoundError,
    NotPinnableError,
    PinBudgetExceededError,
    TooLargeError,
)
from app.core.model.model_io import Proposal, SummaryRequest
from app.core.model.policies.protection import reasons_within_budget
from app.core.model.records import Page
from app.core.text.token_counts import weigh
from app.storage.repositories.conversations import ConversationRepository
from app.storage.repositories.messages import MessageRepository
from app.storage.tables import MessageRow
from app.storage.unit_of_work import UnitOfWorkFactory
from app.usecases.chat.starting import ChatInput
from app.usecases.compaction import saving
from app.usecases.compaction.manual import CompactInput
from app.usecases.history import holding
from app.usecases.history.drafts import MessageDraft
from tests.integration.rows import make_tenant, running
from tests.integration.services import WORDS, Gate, Service, together
from tests.integration.test_turns import chat

PATIENCE = 30.0
SECRET = "The door code is 4711-Ж, and the safe stands behind the third shelf: «не забудь».\n\n  – indented –"
LIMIT = 306  # a tenth of the budget of a window of 4 000


async def down(request: SummaryRequest) -> Proposal:
    raise ModelUnavailableError("http_500", status=500)


@pytest.fixture
def service(begin: UnitOfWorkFactory, tenant: UUID) -> Service:
    return Service(begin, tenant)


async def append(service: Service, conversation_id: UUID, *drafts: MessageDraft) -> list[Message]:
    messages = await service.container.messages.append(service.tenant, conversation_id, drafts)
    await service.container.outbox.drain()
    return messages


async def opened(service: Service, **policy: Any) -> tuple[UUID, Message]:
    """A conversation whose third message is worth a pin, and in which no rule protects anything."""
    conversation_id = await service.conversation(**{"protect": []} | policy)
    await service.say(conversation_id, 2)
    (message,) = await append(service, conversation_id, MessageDraft(role="user", content=SECRET))
    return conversation_id, message


async def pinned(service: Service, **policy: Any) -> tuple[UUID, Message]:
    conversation_id, message = await opened(service, **policy)
    return conversation_id, await service.container.pins.pin(service.tenant, conversation_id, message.id)


async def read(service: Service, conversation_id: UUID) -> list[Message]:
    async with service.begin(service.tenant) as uow:
        found, _ = await uow.messages.page(conversation_id, Page(limit=100, order="asc"))
        return found


async def served(service: Service, conversation_id: UUID, seq: int) -> list[str]:
    """The text of that message in the context."""
    context = await service.container.context.assemble(service.tenant, conversation_id)
    return [message.content for message in context.messages if message.seq == seq]


async def sums_are_right(service: Service, conversation_id: UUID) -> None:
    """Insist that the sums in the rows equal the weights of the messages."""
    row, said = await service.row(conversation_id), await read(service, conversation_id)
    through = running(said)
    assert row.total == through[-1]
    assert row.covered == through[row.boundary_seq - 1] if row.boundary_seq else True
    assert row.context_messages == row.total.messages - row.covered.messages


async def work(service: Service) -> None:
    for job in service.queue.ids:
        await service.container.compaction.execute(job)


# One path each. After it the pin is covered or cut, and is served all the same.


async def background(service: Service, conversation_id: UUID) -> None:
    await service.say(conversation_id, 60)
    await work(service)


async def manual(service: Service, conversation_id: UUID) -> None:
    await service.say(conversation_id, 10)
    await service.container.manual.compact(service.tenant, conversation_id, CompactInput(), timeout=PATIENCE)


async def sync(service: Service, conversation_id: UUID) -> None:
    await service.fill(conversation_id, 2_000, step=1)
    given = ChatInput(content=WORDS.format(seq=0) * 40)
    handle = await service.container.chat.start(service.tenant, conversation_id, given)
    result = await asyncio.wait_for(handle.result(), PATIENCE)
    assert result.compaction is not None
    assert result.compaction.compaction.status == "applied"


@pytest.mark.daily(1)
@pytest.mark.case("29")
@pytest.mark.parametrize("path", [background, manual, sync])
@pytest.mark.parametrize("pins", [True, False], ids=["pinned", "control"])
async def test_a_pin_is_served_verbatim_after_a_compaction(service: Service, path: Any, *, pins: bool) -> None:
    conversation_id, message = await (pinned if pins else opened)(service)
    await path(service, conversation_id)

    assert (await service.row(conversation_id)).boundary_seq >= message.seq
    assert await served(service, conversation_id, message.seq) == ([SECRET] if pins else [])
    await sums_are_right(service, conversation_id)


@pytest.mark.daily(1)
@pytest.mark.case("29")
@pytest.mark.parametrize("pins", [True, False], ids=["pinned", "control"])
async def test_a_pin_survives_a_summarizer_that_fails_and_the_truncation_that_follows(
    begin: UnitOfWorkFactory, tenant: UUID, *, pins: bool
) -> None:
    service = Service(begin, tenant, *[down] * 12)
    conversation_id, message = await (pinned if pins else opened)(service)
    await service.say(conversation_id, 60)
    await work(service)
    await service.say(conversation_id, 40)
    (row,) = (await service.compactions(conversation_id))[:1]
    context = await service.container.context.assemble(service.tenant, conversation_id)

    assert row.status == "failed"
    assert context.truncated is not None
    assert context.truncated[0] <= message.seq <= context.truncated[1]
    assert await served(service, conversation_id, message.seq) == ([SECRET] if pins else [])


@pytest.mark.long
@pytest.mark.parametrize(
    "pins",
    [
        pytest.param(True, id="pinned", marks=pytest.mark.case("60")),
        pytest.param(False, id="control", marks=pytest.mark.control("60")),
    ],
)
async def test_a_pinned_constraint_is_there_after_half_a_megabyte_of_filler(service: Service, *, pins: bool) -> None:
    """Control: the same message with nobody who holds it."""
    conversation_id, message = await (pinned if pins else opened)(service, context_window=16_000, anchor_share=0)
    filler, size = WORDS.format(seq=7) * 10, 0
    while size < 500_000:
        drafts = [MessageDraft(role="user" if n % 2 else "assistant", content=filler) for n in range(20)]
        await append(service, conversation_id, *drafts)
        size += sum(len(draft.content) for draft in drafts)
        await work(service)
    await chat(service, conversation_id, "May I open the door?")

    row = await service.row(conversation_id)
    assert row.compression_count > 5
    assert row.boundary_seq > message.seq
    sent = [one.content for one in service.chat_model.requests[-1].messages]
    assert (SECRET in sent) == pins


@pytest.mark.long
async def test_pinning_and_unpinning_are_told_once_and_change_what_is_served(service: Service) -> None:
    conversation_id, message = await opened(service)
    await background(service, conversation_id)
    pins, before = service.container.pins, await service.row(conversation_id)
    first = await pins.pin(service.tenant, conversation_id, message.id)
    once = await service.row(conversation_id)
    again = await pins.pin(service.tenant, conversation_id, message.id)

    assert (first.protected_reason, first.is_protected, first.is_pinned) == ("pinned", True, True)
    assert again == first
    assert await service.row(conversation_id) == once
    assert once.layout_version == before.layout_version + 1
    assert once.layout is not None
    assert once.layout.held == (message.seq,)
    assert before.layout is not None
    block = once.layout.tokens - before.layout.tokens  # text of a pinned message need not be repeated among the anchors
    assert once.context_tokens == before.context_tokens + message.token_count + block
    assert once.quiet.reason is None
    assert before.quiet.reason is not None
    assert await served(service, conversation_id, message.seq) == [SECRET]
    await sums_are_right(service, conversation_id)

    off = await pins.unpin(service.tenant, conversation_id, message.id)
    assert (off.protected_reason, off.is_pinned) == ("compressible", False)
    assert await pins.unpin(service.tenant, conversation_id, message.id) == off
    assert await served(service, conversation_id, message.seq) == []
    assert (await service.row(conversation_id)).context_tokens == before.context_tokens
    await sums_are_right(service, conversation_id)


async def test_a_pin_without_room_is_refused_with_the_numbers(service: Service) -> None:
    conversation_id = await service.conversation()
    said = await append(
        service,
        conversation_id,
        *[MessageDraft(role="user", content=WORDS.format(seq=seq) * words) for seq, words in enumerate((4, 6, 30))],
    )
    assert said[0].protected_reason == "initial_objective"
    pins = service.container.pins
    await pins.pin(service.tenant, conversation_id, said[1].id)
    used = said[0].token_count + said[1].token_count
    before = await service.row(conversation_id), await read(service, conversation_id)
    with pytest.raises(PinBudgetExceededError) as caught:
        await pins.pin(service.tenant, conversation_id, said[2].id)
    assert caught.value.extra == {"protected_tokens": used, "size": said[2].token_count, "limit": LIMIT}
    assert (await service.row(conversation_id), await read(service, conversation_id)) == before
    # Control: the very same pin where the share allows it.
    await service.container.conversations.patch(
        service.tenant, conversation_id, {"policy": {"context_window": 4_000, "pin_share": 0.3}}
    )
    assert (await pins.pin(service.tenant, conversation_id, said[2].id)).protected_reason == "pinned"


async def test_pinning_what_the_rules_protect_already_takes_no_room_twice(service: Service) -> None:
    conversation_id = await service.conversation()
    (first,) = await append(service, conversation_id, MessageDraft(role="user", content=WORDS.format(seq=1) * 12))
    assert LIMIT / 2 < first.token_count < LIMIT
    pinned_ = await service.container.pins.pin(service.tenant, conversation_id, first.id)
    assert pinned_.protected_reason == "pinned"
    off = await service.container.pins.unpin(service.tenant, conversation_id, first.id)
    assert off.protected_reason == "initial_objective"


async def test_what_cannot_be_pinned(service: Service, begin: UnitOfWorkFactory) -> None:
    conversation_id, message = await opened(service)
    pins = service.container.pins
    command = MessageDraft(role="user", content="/compact", event_type="command", is_command=True)
    (typed,) = await append(service, conversation_id, command)
    with pytest.raises(NotPinnableError):
        await pins.pin(service.tenant, conversation_id, typed.id)
    assert not (await pins.unpin(service.tenant, conversation_id, typed.id)).is_protected
    await service.container.erasure.erase(service.tenant, conversation_id, message.id)
    with pytest.raises(NotPinnableError):
        await pins.pin(service.tenant, conversation_id, message.id)

    elsewhere, other = await opened(service)
    stranger = await make_tenant(begin, f"stranger {uuid4()}")
    for tenant_id, place, id_ in (
        (service.tenant, conversation_id, uuid4()),
        (service.tenant, conversation_id, other.id),
        (service.tenant, uuid4(), other.id),
        (stranger, elsewhere, other.id),
    ):
        for call in (pins.pin, pins.unpin):
            with pytest.raises(NotFoundError):
                await call(tenant_id, place, id_)
    assert not any(entry.is_pinned for entry in await read(service, elsewhere))


@pytest.mark.daily(1)
@pytest.mark.parametrize("guarded", [True, False], ids=["laid out in the transaction", "control"])
@pytest.mark.case("44a-changed")
async def test_a_pin_in_the_middle_of_a_run_is_there_after_it(
    begin: UnitOfWorkFactory, tenant: UUID, monkeypatch: pytest.MonkeyPatch, *, guarded: bool
) -> None:
    """The run read the conversation before the pin; its layout must be made from the rows at the time of saving."""
    if not guarded:

        async def as_planned(_uow: Any, _resolved: Any, ready: Any, _results: Any) -> Any:
            return saving._Served(applied=ready.applied, fidelity=None, continuity=Continuity())

        monkeypatch.setattr(saving, "_laid_out", as_planned)
    gate = Gate()
    service = Service(begin, tenant, gate)
    conversation_id, message = await opened(service)
    await service.say(conversation_id, 60)
    compacting = asyncio.create_task(service.container.compaction.execute(service.queue.ids[0]))
    await gate.reached.wait()
    await asyncio.wait_for(service.container.pins.pin(service.tenant, conversation_id, message.id), PATIENCE)
    gate.go_on.set()
    ended = await asyncio.wait_for(compacting, PATIENCE)
    row = await service.row(conversation_id)

    assert ended is not None
    assert ended.status == "applied"
    assert (row.layout is not None and message.seq in row.layout.held) is guarded
    if guarded:
        assert await served(service, conversation_id, message.seq) == [SECRET]
    await sums_are_right(service, conversation_id)


@pytest.mark.case("44a-changed")
async def test_an_unpin_in_the_middle_of_a_run_is_gone_after_it(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    gate = Gate()
    service = Service(begin, tenant, gate)
    conversation_id, message = await pinned(service)
    await service.say(conversation_id, 60)
    compacting = asyncio.create_task(service.container.compaction.execute(service.queue.ids[0]))
    await gate.reached.wait()
    await asyncio.wait_for(service.container.pins.unpin(service.tenant, conversation_id, message.id), PATIENCE)
    gate.go_on.set()
    await asyncio.wait_for(compacting, PATIENCE)

    assert await served(service, conversation_id, message.seq) == []
    await sums_are_right(service, conversation_id)


@pytest.mark.parametrize("guarded", [True, False], ids=["one after the other", "control"])
async def test_pins_at_once_never_exceed_the_share(
    service: Service, monkeypatch: pytest.MonkeyPatch, *, guarded: bool
) -> None:
    conversation_id = await service.conversation(protect=[])
    drafts = [MessageDraft(role="user", content=WORDS.format(seq=seq) * 4) for seq in range(10)]
    said = await append(service, conversation_id, *drafts)
    fitting = LIMIT // said[0].token_count
    assert 1 < fitting < len(said)
    if not guarded:
        barrier = asyncio.Barrier(len(said))

        async def unlocked(self: ConversationRepository, id_: UUID) -> Conversation:
            return await self.get(id_)

        async def together_then(*args: Any, **given: Any) -> int:
            used = await counted(*args, **given)
            await barrier.wait()
            return used

        counted = MessageRepository.protected_tokens
        monkeypatch.setattr(ConversationRepository, "lock", unlocked)
        monkeypatch.setattr(MessageRepository, "protected_tokens", together_then)
    pin = service.container.pins.pin
    answers = await together(*[partial(pin, service.tenant, conversation_id, one.id) for one in said])
    held = [entry for entry in await read(service, conversation_id) if entry.is_protected]

    assert (sum(entry.token_count for entry in held) <= LIMIT) is guarded
    if guarded:
        assert len(held) == fitting
        refusals = [answer for answer in answers if isinstance(answer, PinBudgetExceededError)]
        assert len(refusals) == len(said) - fitting
        await sums_are_right(service, conversation_id)


async def test_what_follows_a_held_message_does_not_seem_to_be_of_its_day(service: Service) -> None:
    conversation_id = await service.conversation(protect=["turn_0"])
    monday = datetime(2026, 2, 2, 9, tzinfo=UTC)
    drafts = [
        MessageDraft(
            role="assistant" if day % 2 else "user",
            content=WORDS.format(seq=day),
            created_at=monday + timedelta(days=day),
        )
        for day in range(60)
    ]
    await append(service, conversation_id, *drafts)
    await background(service, conversation_id)
    row = await service.row(conversation_id)
    assert row.layout is not None
    async with service.begin(service.tenant) as uow:
        newest = (await uow.messages.at_seq(conversation_id, row.boundary_seq + 1)).created_at
    (_, held, since, _) = row.layout.held_days.splitlines()
    assert held == "Mon 2 Feb 2026"
    assert since == f"then, from {newest:%a} {newest.day} {newest:%b %Y} on, the newest messages"
    context = await service.container.context.assemble(service.tenant, conversation_id)
    assert since in context.messages[1].content


@pytest.mark.long
async def test_a_restore_keeps_the_pins_of_today(service: Service) -> None:
    conversation_id, message = await opened(service)
    await background(service, conversation_id)
    await service.container.pins.pin(service.tenant, conversation_id, message.id)
    await service.container.states.restore(service.tenant, conversation_id, 1)
    assert await served(service, conversation_id, message.seq) == [SECRET]


@pytest.mark.long
async def test_an_unpin_that_makes_a_compaction_due_claims_nothing_twice(service: Service) -> None:
    """A pin ends the quiet period, and claims once what is due by then."""
    conversation_id, message = await opened(service, background_at=0.62, minimum_progress=0.5)
    await background(service, conversation_id)
    await service.fill(conversation_id, 1_918, step=1)  # 62 % of 3 060, and a little
    assert len(service.queue.ids) == 1
    await service.container.pins.pin(service.tenant, conversation_id, message.id)
    await service.container.outbox.drain()
    assert len(service.queue.ids) == 2
    await service.container.pins.unpin(service.tenant, conversation_id, message.id)
    await service.container.outbox.drain()
    assert len(await service.compactions(conversation_id)) == 2


CALL = {"type": "tool_call", "id": "a", "name": "find", "arguments": {"q": "order"}}
RESULT = {"type": "tool_result", "tool_call_id": "a", "content": "Order 4711 left on Monday."}


class TestToolPairs:
    @pytest.mark.daily(1)
    @pytest.mark.parametrize("which", [0, 1], ids=["the call", "the result"])
    async def test_a_pinned_half_holds_the_other(self, service: Service, which: int) -> None:
        conversation_id = await service.conversation(protect=[])
        await service.say(conversation_id, 2)
        pair = await append(
            service,
            conversation_id,
            MessageDraft(role="assistant", content="", parts=(CALL,)),
            MessageDraft(role="tool", content="", parts=(RESULT,)),
        )
        await service.container.pins.pin(service.tenant, conversation_id, pair[which].id)
        said = (await read(service, conversation_id))[2:]
        assert [entry.protected_reason for entry in said] == ["pinned", "pinned"]
        assert [entry.is_pinned for entry in said] == [which == 0, which == 1]
        await background(service, conversation_id)
        context = await service.container.context.assemble(service.tenant, conversation_id)
        assert [one.parts for one in context.messages if one.seq in {3, 4}] == [(CALL,), (RESULT,)]
        row = await service.row(conversation_id)
        assert row.covered.held_tokens == sum(entry.token_count for entry in pair)
        assert row.layout is not None
        assert context.gauge.breakdown.held == row.covered.held_tokens + row.layout.held_day_tokens
        await sums_are_right(service, conversation_id)

        await service.container.pins.unpin(service.tenant, conversation_id, pair[which].id)
        assert not any(entry.is_protected for entry in await read(service, conversation_id))
        await sums_are_right(service, conversation_id)

    async def test_both_count_against_the_share(self, service: Service) -> None:
        conversation_id = await service.conversation(protect=[])
        large = RESULT | {"content": WORDS.format(seq=1) * 30}
        pair = await append(
            service,
            conversation_id,
            MessageDraft(role="assistant", content="", parts=(CALL,)),
            MessageDraft(role="tool", content="", parts=(large,)),
        )
        with pytest.raises(PinBudgetExceededError) as caught:
            await service.container.pins.pin(service.tenant, conversation_id, pair[0].id)
        assert caught.value.extra["size"] == sum(entry.token_count for entry in pair)

    async def test_a_result_that_comes_later_is_held_where_its_call_is(self, service: Service) -> None:
        conversation_id = await service.conversation(protect=["goal"])
        first = MessageDraft(role="assistant", content="Looking it up.", parts=(CALL,), event_type="goal")
        await append(service, conversation_id, first)
        (later,) = await append(service, conversation_id, MessageDraft(role="tool", content="", parts=(RESULT,)))
        (other,) = await append(service, conversation_id, MessageDraft(role="user", content="Thanks."))
        assert (later.protected_reason, other.protected_reason) == ("goal_statement", "compressible")
        await sums_are_right(service, conversation_id)

    @pytest.mark.parametrize("guarded", [True, False], ids=["at once", "control"])
    async def test_a_result_that_is_protected_holds_the_call_that_is_stored_already(
        self, service: Service, monkeypatch: pytest.MonkeyPatch, *, guarded: bool
    ) -> None:
        if not guarded:
            monkeypatch.setattr(holding, "uses_pin_budget", lambda _: False)
        conversation_id = await service.conversation(protect=["goal"])
        first = MessageDraft(role="assistant", content="Looking both up.", parts=(CALL, CALL | {"id": "b"}))
        plain = MessageDraft(role="tool", content="", parts=(RESULT,))
        await append(service, conversation_id, first, plain)
        told = RESULT | {"tool_call_id": "b"}
        await append(service, conversation_id, MessageDraft(role="tool", content="", parts=(told,), event_type="goal"))
        said = await read(service, conversation_id)

        stored = "goal_statement" if guarded else "compressible"
        assert [entry.protected_reason for entry in said] == [stored, stored, "goal_statement"]
        await sums_are_right(service, conversation_id)
        total = (await service.row(conversation_id)).total
        assert (total.held_tokens == total.tokens) is guarded

    @pytest.mark.long
    async def test_a_covered_call_is_served_as_soon_as_its_result_is_protected(self, service: Service) -> None:
        conversation_id = await service.conversation(protect=["goal"])
        await append(service, conversation_id, MessageDraft(role="assistant", content="Looking it up.", parts=(CALL,)))
        await append(service, conversation_id, MessageDraft(role="tool", content="", parts=(RESULT,)))
        await background(service, conversation_id)
        before = await service.row(conversation_id)
        assert before.boundary_seq > 2
        again = MessageDraft(role="tool", content="", parts=(RESULT | {"content": "It came."},), event_type="goal")
        (late,) = await append(service, conversation_id, again)
        after = await service.row(conversation_id)

        assert late.protected_reason == "goal_statement"
        assert before.layout is not None
        assert after.layout is not None
        assert (before.layout.held, after.layout.held) == ((), (1, 2))
        assert after.layout_version == before.layout_version + 1
        assert after.covered.held_tokens > before.covered.held_tokens == 0
        context = await service.container.context.assemble(service.tenant, conversation_id)
        assert [one.parts for one in context.messages if one.seq in {1, 2}] == [(CALL,), (RESULT,)]
        assert context.gauge.breakdown.held == after.covered.held_tokens + after.layout.held_day_tokens
        await sums_are_right(service, conversation_id)

    async def test_a_pair_without_room_leaves_the_stored_half_as_it_was(self, service: Service) -> None:
        conversation_id = await service.conversation(protect=["goal"])
        await append(service, conversation_id, MessageDraft(role="assistant", content="Looking it up.", parts=(CALL,)))
        large = RESULT | {"content": WORDS.format(seq=1) * 30}
        result = MessageDraft(role="tool", content="", parts=(large,), event_type="goal")
        await append(service, conversation_id, result)
        said = await read(service, conversation_id)
        assert [entry.protected_reason for entry in said] == ["compressible", "over_allotment"]
        await sums_are_right(service, conversation_id)


class TestProtection:
    @pytest.mark.long
    async def test_protected_messages_are_held_as_far_as_the_share_goes(self, service: Service) -> None:
        conversation_id = await service.conversation(protect=["constraint"])
        said = await append(
            service,
            conversation_id,
            MessageDraft(role="user", content=WORDS.format(seq=1)),
            MessageDraft(role="user", content=WORDS.format(seq=2) * 14, event_type="constraint"),
            MessageDraft(role="user", content=WORDS.format(seq=3) * 14, event_type="constraint"),
            MessageDraft(role="system", content=WORDS.format(seq=4) * 20),
        )
        (later,) = await append(
            service, conversation_id, MessageDraft(role="user", content="Never on Sundays.", event_type="constraint")
        )
        assert [entry.protected_reason for entry in (*said, later)] == [
            "compressible",
            "explicit_constraint",
            "over_allotment",
            "system",
            "explicit_constraint",
        ]
        await sums_are_right(service, conversation_id)
        async with service.begin(service.tenant) as uow:
            events = await uow.events.after(conversation_id, 0, limit=100)
        (told,) = [event.data for event in events if event.data.get("reason") == "over_allotment"]
        used = said[1].token_count
        assert (
            told.items()
            >= {
                "message_id": str(said[2].id),
                "seq": 3,
                "size": said[2].token_count,
                "protected_tokens": used,
                "limit": LIMIT,
            }.items()
        )
        await service.say(conversation_id, 60)
        await work(service)
        row = await service.row(conversation_id)
        assert row.layout is not None
        assert row.layout.held == (2, 4, 5)

    async def test_a_change_of_policy_decides_again_pins_first(self, service: Service) -> None:
        conversation_id, message = await pinned(service, context_window=40_000)
        (constraint,) = await append(
            service,
            conversation_id,
            MessageDraft(role="user", content=WORDS.format(seq=9) * 17, event_type="constraint"),
        )
        assert constraint.protected_reason == "compressible"
        patch, policy = service.container.conversations.patch, {"context_window": 40_000, "protect": ["constraint"]}
        await patch(service.tenant, conversation_id, {"policy": policy})
        assert [entry.protected_reason for entry in await read(service, conversation_id)][2:] == [
            "pinned",
            "explicit_constraint",
        ]
        await patch(service.tenant, conversation_id, {"policy": policy | {"context_window": 4_000}})
        assert [entry.protected_reason for entry in await read(service, conversation_id)][2:] == [
            "pinned",
            "over_allotment",
        ]
        await sums_are_right(service, conversation_id)
        assert message.token_count + constraint.token_count > LIMIT >= constraint.token_count
        await patch(service.tenant, conversation_id, {"policy": policy | {"pin_share": 0}})
        changed = await read(service, conversation_id)
        assert [(entry.protected_reason, entry.is_pinned) for entry in changed][2:] == [
            ("over_allotment", True),
            ("over_allotment", False),
        ]
        with pytest.raises(PinBudgetExceededError):
            await service.container.pins.pin(service.tenant, conversation_id, message.id)
        await patch(service.tenant, conversation_id, {"policy": policy})
        assert (await read(service, conversation_id))[2].protected_reason == "pinned"
        await sums_are_right(service, conversation_id)

    async def test_a_change_of_the_estimator_forgets_what_was_learned_of_it(self, service: Service) -> None:
        conversation_id, _ = await opened(service)
        async with service.begin(service.tenant) as uow:
            await uow.conversations.update(conversation_id, token_factor=1.3)
            await uow.commit()
        patch = service.container.conversations.patch
        await patch(service.tenant, conversation_id, {"policy": {"context_window": 4_000, "target": 0.5}})
        assert (await service.row(conversation_id)).token_factor == 1.3
        await patch(service.tenant, conversation_id, {"policy": {"context_window": 4_000, "estimator": "bytes"}})
        assert (await service.row(conversation_id)).token_factor == 1.0


class TestTooLarge:
    """A message that cannot fit in addition to what is always served is refused before anything is stored."""

    async def limit_of(self, service: Service, conversation_id: UUID) -> int:
        with pytest.raises(TooLargeError) as caught:
            await append(service, conversation_id, MessageDraft(role="user", content=WORDS.format(seq=1) * 400))
        assert caught.value.extra["size"] > caught.value.extra["limit"]
        return int(caught.value.extra["limit"])

    @pytest.mark.long
    async def test_held_messages_and_anchors_take_from_the_room(self, service: Service) -> None:
        conversation_id, message = await opened(service)
        bare = await self.limit_of(service, conversation_id)
        await service.container.pins.pin(service.tenant, conversation_id, message.id)
        assert await self.limit_of(service, conversation_id) == bare - message.token_count  # it is still in the tail
        (fact,) = await append(
            service, conversation_id, MessageDraft(role="user", content="My phone number is +49 170 5550199.")
        )
        await background(service, conversation_id)
        row = await service.row(conversation_id)
        assert row.boundary_seq >= fact.seq
        assert row.layout is not None
        assert row.layout.anchor_tokens > 0
        room = bare - message.token_count - row.layout.anchor_tokens
        assert await self.limit_of(service, conversation_id) == room

    async def test_the_limit_is_exact(self, service: Service) -> None:
        conversation_id, _ = await pinned(service)
        limit = await self.limit_of(service, conversation_id)
        fits = MessageDraft(role="user", content="x", parts=(media(limit - OVERHEAD),))
        large = MessageDraft(role="user", content="x", parts=(media(limit - OVERHEAD + 1),))
        with pytest.raises(TooLargeError):
            await append(service, conversation_id, large)
        (stored,) = await append(service, conversation_id, fits)
        assert stored.token_count == limit

    async def test_a_policy_that_elides_refuses_nothing(self, service: Service) -> None:
        conversation_id, _ = await opened(service, oversized="elide")
        (stored,) = await append(service, conversation_id, MessageDraft(role="user", content=WORDS.format(seq=1) * 400))
        assert stored.token_count > 3_600
        assert (await read(service, conversation_id))[-1] == stored


def media(tokens: int) -> dict[str, Any]:
    return {"type": "media", "media_type": "image/png", "url": "https://example.com/a.png", "tokens": tokens}


OVERHEAD = weigh("user", "x", (media(1_000),)).tokens - 1_000


async def told(service: Service, conversation_id: UUID, count: int) -> list[Message]:
    """A conversation with every kind of message that a rule may hold, among many that no rule holds."""
    chance = random.Random(count)
    drafts: list[MessageDraft] = []
    for number in range(count):
        role: Role = chance.choice(["user", "user", "assistant", "assistant", "system"])
        kind = chance.choice(["casual"] * 8 + ["goal", "constraint"])
        content = chance.choice(["My goal is to finish by May.", f"Box {number} came.", f"Box {number} left."])
        drafts.append(MessageDraft(role=role, content=content, event_type=kind))
        if number % 9 == 4:
            calls = (CALL | {"id": f"c{number}"},)
            kind = chance.choice(["casual", "goal"])
            drafts.append(MessageDraft(role="assistant", content="Looking.", parts=calls, event_type=kind))
            answer = RESULT | {"tool_call_id": f"c{number}"}
            kind = chance.choice(["casual", "goal"])
            drafts.append(MessageDraft(role="tool", content="", parts=(answer,), event_type=kind))
    return await append(service, conversation_id, *drafts)


class TestChangeOfPolicy:
    @pytest.mark.long
    async def test_decides_as_if_it_had_looked_at_every_message(self, service: Service) -> None:
        chance = random.Random(7)
        conversation_id = await service.conversation(protect=[])
        await told(service, conversation_id, 80)
        rules = ["turn_0", "goal", "constraint", "goal_statements"]
        for _ in range(12):
            wanted = {
                "protect": chance.sample(rules, chance.randrange(len(rules) + 1)),
                "held_roles": chance.choice([["system"], []]),
                "pin_share": chance.choice([0.02, 0.1]),
            }
            view = await service.container.conversations.patch(service.tenant, conversation_id, {"policy": wanted})
            said = await read(service, conversation_id)
            room = math.floor(Fraction(str(view.policy.pin_share)) * view.gauge.budget)
            expected = reasons_within_budget(view.policy, said, pin_tokens=room)
            assert {one.seq: one.protected_reason for one in said} == expected, wanted
            await sums_are_right(service, conversation_id)

    async def test_reads_and_writes_no_more_than_it_may_change(
        self, service: Service, begin: UnitOfWorkFactory, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        conversation_id = await service.conversation(protect=["turn_0"])
        await service.say(conversation_id, 300)
        read_rows: list[int] = []
        whole = MessageRepository._messages

        async def counted(repository: MessageRepository, statement: Any) -> list[Message]:
            found = await whole(repository, statement)
            read_rows.append(len(found))
            return found

        before = await versions(begin, service.tenant, conversation_id)
        monkeypatch.setattr(MessageRepository, "_messages", counted)
        changed = {"policy": {"protect": ["goal", "goal_statements"], "triggers": []}}
        await service.container.conversations.patch(service.tenant, conversation_id, changed)
        after = await versions(begin, service.tenant, conversation_id)
        assert sum(read_rows) < 10
        assert [seq for seq in before if before[seq] != after[seq]] == [1]

    async def test_nobody_waits_while_goals_are_looked_for(
        self, service: Service, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        conversation_id = await service.conversation(protect=[])
        goal = MessageDraft(role="user", content="My goal is to finish by May.")
        await append(service, conversation_id, goal)
        said = MessageRepository.texts_by_role
        came: list[Message] = []

        async def meanwhile(repository: MessageRepository, *given: Any, **named: Any) -> list[tuple[int, str]]:
            found = await said(repository, *given, **named)
            if not came:
                came.extend(await asyncio.wait_for(append(service, conversation_id, goal, goal), PATIENCE / 6))
            return found

        monkeypatch.setattr(MessageRepository, "texts_by_role", meanwhile)
        await service.container.conversations.patch(
            service.tenant, conversation_id, {"policy": {"protect": ["goal_statements"]}}
        )
        assert [one.seq for one in came] == [2, 3]
        assert [one.protected_reason for one in await read(service, conversation_id)] == ["goal_statement"] * 3


async def versions(begin: UnitOfWorkFactory, tenant: UUID, conversation_id: UUID) -> dict[int, str]:
    """The present version of each row; it differs if the row was written meanwhile."""
    xmin: Any = literal_column("messages.xmin::text")
    async with begin(tenant) as unit:
        rows = await unit.messages._session.rows(
            select(col(MessageRow.seq), xmin).where(col(MessageRow.conversation_id) == conversation_id)
        )
    return dict(rows)
