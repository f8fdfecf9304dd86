"""A reply that is made again: the first one stays stored and shown, but nothing is made of it any more."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID

import pytest

from app.core.model.conversation import Message
from app.core.model.errors import (
    ConversationMovedOnError,
    InvalidInputError,
    ModelFailedError,
    ModelUnavailableError,
    NotPinnableError,
    NotRegenerableError,
    TurnInProgressError,
)
from app.core.model.export import markdown_message
from app.core.model.model_io import ToolCall
from app.core.model.records import Page
from app.storage.unit_of_work import UnitOfWorkFactory
from app.usecases.chat.starting import ChatInput
from app.usecases.chat.turn_handle import ChatResult, TurnHandle
from app.usecases.compaction.manual import CompactInput
from app.usecases.shared.idempotency import Idem
from tests.fakes import Reply, ScriptedChatModel
from tests.integration.rows import resummed
from tests.integration.services import Gate, Service
from tests.integration.test_anchors import anchors
from tests.integration.test_tools import CALLER
from tests.integration.test_turns import chat, slow, start

PATIENCE = 30.0
FRIDAY, MONDAY = "I'll send you the report on Friday.", "Correction: I'll send you the report on Monday."
FIRST, SECOND = "They are in harbour seven, in the zeppelin hall.", "They are in harbour nine."


@pytest.fixture
def service(begin: UnitOfWorkFactory, tenant: UUID) -> Service:
    return Service(begin, tenant, chat=ScriptedChatModel(FIRST, SECOND))


async def starts(service: Service, conversation_id: UUID, idem: Idem | None = None, **given: Any) -> TurnHandle:
    asked = ChatInput(regenerates=True, **given)
    return await service.container.chat.start(service.tenant, conversation_id, asked, idem=idem)


async def again(service: Service, conversation_id: UUID, idem: Idem | None = None, **given: Any) -> ChatResult:
    handle = await starts(service, conversation_id, idem, **given)
    return await asyncio.wait_for(handle.result(), PATIENCE)


async def history(service: Service, conversation_id: UUID) -> list[Message]:
    page = Page(limit=100, order="asc")
    return (await service.container.messages.page(service.tenant, conversation_id, page))[0]


async def sent(service: Service, conversation_id: UUID) -> str:
    context = await service.container.context.assemble(service.tenant, conversation_id)
    return "\n".join(message.content for message in context.messages)


async def check_sums(service: Service, conversation_id: UUID) -> None:
    """Insist that the running sums equal those computed from the weights."""
    row = await service.row(conversation_id)
    async with service.begin(service.tenant) as uow:
        kept = [await uow.messages.sums_at(conversation_id, seq) for seq in range(1, row.last_seq + 1)]
        assert await resummed(uow, conversation_id) == row.total == kept[-1]
        assert kept == [await uow.messages.sums_at(conversation_id, seq) for seq in range(1, row.last_seq + 1)]


async def test_the_first_reply_stays_and_the_second_is_served(service: Service) -> None:
    conversation_id = await service.conversation()
    first = await chat(service, conversation_id, "Where are the crates?")
    handle = await starts(service, conversation_id)
    told = [event async for event in handle.events()]
    second = await handle.result()
    stored = await history(service, conversation_id)

    assert [(one.role, one.content, one.status) for one in stored] == [
        ("user", "Where are the crates?", "complete"),
        ("assistant", FIRST, "superseded"),
        ("assistant", SECOND, "complete"),
    ]
    assert stored[1].id == first.reply.id
    assert second.message == first.message
    assert told[0].data["reply_id"] == str(second.reply.id) != str(first.reply.id)
    assert told[1].type == "message.superseded"
    assert told[1].data["message_id"] == str(first.reply.id)
    assert FIRST not in str(service.chat_model.requests[-1].messages)
    assert FIRST in markdown_message(stored[1])
    assert "answered again" in markdown_message(stored[1])
    assert await sent(service, conversation_id) == (await sent(service, conversation_id)).replace(FIRST, "")
    assert SECOND in await sent(service, conversation_id)
    await check_sums(service, conversation_id)
    plain = await service.conversation()
    service.chat_model._script._entries[:] = [SECOND]
    assert (await chat(service, plain, "Where are the crates?")).gauge == second.gauge, "as if it had never been"


@pytest.mark.long
async def test_nothing_finds_the_first_reply(service: Service) -> None:
    conversation_id = await service.conversation()
    await chat(service, conversation_id, "Where are the crates?")
    find = service.container.search.find
    assert (await find(service.tenant, conversation_id, "zeppelin", limit=5)).hits, "the control"
    await again(service, conversation_id)
    assert not (await find(service.tenant, conversation_id, "zeppelin", limit=5)).hits
    assert (await find(service.tenant, conversation_id, "nine", limit=5)).hits


async def test_its_key_has_one_effect(service: Service) -> None:
    conversation_id, key = await service.conversation(), Idem(key="again", fingerprint="f")
    await chat(service, conversation_id, "Where are the crates?")
    one, two = [await again(service, conversation_id, key) for _ in range(2)]
    assert (one.reply, one.message) == (two.reply, two.message)
    assert len(await history(service, conversation_id)) == 3
    three = await again(service, conversation_id)
    assert [one.status for one in await history(service, conversation_id)][1:] == ["superseded"] * 2 + ["complete"]
    assert three.reply.seq == 4
    await check_sums(service, conversation_id)


async def test_a_second_try_that_fails_leaves_the_message_to_be_answered(
    begin: UnitOfWorkFactory, tenant: UUID
) -> None:
    service = Service(begin, tenant, chat=ScriptedChatModel(FIRST, ModelUnavailableError("timeout"), SECOND))
    conversation_id, key = await service.conversation(), Idem(key="again", fingerprint="f")
    await chat(service, conversation_id, "Where are the crates?")
    with pytest.raises(ModelFailedError):
        await again(service, conversation_id, key)
    assert (await again(service, conversation_id, key)).reply.content == SECOND
    assert [one.status for one in await history(service, conversation_id)] == ["complete", "superseded", "complete"]


@pytest.mark.long
async def test_what_tools_brought_back_stays_for_the_next_reply(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    look = Reply(calls=(ToolCall(id="1", name="search_history", arguments={"query": "crates"}),))
    service = Service(begin, tenant, chat=ScriptedChatModel(look, FIRST, SECOND, profile=CALLER))
    conversation_id = await service.conversation(context_window=16_000)
    await service.say(conversation_id, 40)
    await service.container.manual.compact(tenant, conversation_id, CompactInput(), timeout=PATIENCE)
    before = (await service.row(conversation_id)).last_seq
    await chat(service, conversation_id, "Where are the crates?")
    assert (await again(service, conversation_id)).reply.content == SECOND
    async with begin(tenant) as uow:
        made = await uow.messages.between(conversation_id, before + 1, before + 9, superseded=True)
    assert [(one.role, one.status) for one in made] == [
        ("user", "complete"),
        ("assistant", "complete"),
        ("tool", "complete"),
        ("assistant", "superseded"),
        ("assistant", "complete"),
    ]
    assert "tool" in [message.role for message in service.chat_model.requests[-1].messages]


async def test_where_there_is_no_reply_nothing_changes(service: Service) -> None:
    conversation_id = await service.conversation()
    with pytest.raises(NotRegenerableError):
        await again(service, conversation_id)
    await service.say(conversation_id, 1)
    with pytest.raises(NotRegenerableError):
        await again(service, conversation_id)
    result = await chat(service, conversation_id, None)
    with pytest.raises(ConversationMovedOnError):
        await again(service, conversation_id, expected_last_message_id=result.message.id)
    assert (await service.row(conversation_id)).last_seq == 2


@pytest.mark.long
async def test_a_reply_that_is_folded_is_refused(service: Service) -> None:
    conversation_id = await service.conversation()
    await service.say(conversation_id, 39)
    result = await chat(service, conversation_id, None)
    given = CompactInput(keep_tail_messages=0)
    await service.container.manual.compact(service.tenant, conversation_id, given, timeout=PATIENCE)
    before = await service.row(conversation_id)
    assert before.boundary_seq == before.last_seq == 40
    with pytest.raises(NotRegenerableError, match="part of the state"):
        await again(service, conversation_id)
    assert await service.row(conversation_id) == before
    assert result.reply is not None
    await service.container.erasure.erase(service.tenant, conversation_id, result.reply.id)
    with pytest.raises(InvalidInputError, match="no unanswered user message"):  # no context shows it any more
        await chat(service, conversation_id, None)


async def test_a_message_whose_reply_was_erased_is_answered_again(service: Service) -> None:
    conversation_id = await service.conversation()
    result = await chat(service, conversation_id, "Where are the crates?")
    assert result.reply is not None
    await service.container.erasure.erase(service.tenant, conversation_id, result.reply.id)
    second = await chat(service, conversation_id, None)
    assert second.reply is not None
    assert (second.message.id, second.reply.content) == (result.message.id, SECOND)


@pytest.mark.long
async def test_of_a_running_turn_nothing_is_made_again(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    model, thinking = slow()
    service = Service(begin, tenant, chat=model)
    conversation_id = await service.conversation()
    handle = await start(service, conversation_id, "Tell me a story.")
    await asyncio.wait_for(thinking.wait(), PATIENCE)
    with pytest.raises(TurnInProgressError):
        await again(service, conversation_id)
    await service.container.chat.interrupt(tenant, conversation_id)
    await asyncio.wait_for(handle.result(), PATIENCE)


@pytest.mark.long
async def test_a_fold_passes_over_it_and_its_segment_still_shows_it(service: Service) -> None:
    conversation_id = await service.conversation()
    await service.say(conversation_id, 20)
    await chat(service, conversation_id, "Where are the crates?")
    await again(service, conversation_id)
    await service.say(conversation_id, 16)
    compacted = await service.container.manual.compact(
        service.tenant, conversation_id, CompactInput(keep_tail_messages=0), timeout=PATIENCE
    )
    assert compacted.compaction.status == "applied"
    folded = [message for request in service.summarizer.requests for message in request.messages]
    assert SECOND in [message.content for message in folded]
    assert FIRST not in str(service.summarizer.requests)
    assert compacted.compaction.messages_covered == len(folded) == 37
    listed, _ = await service.container.expansion.page(service.tenant, conversation_id, Page(limit=100, order="asc"))
    shown: list[Message] = []
    for one in listed:
        assert one.segment is not None
        expanded = await service.container.expansion.expand(service.tenant, conversation_id, one.segment.id)
        shown += expanded.messages
    assert [(one.content, one.status) for one in shown if one.content in {FIRST, SECOND}] == [
        (FIRST, "superseded"),
        (SECOND, "complete"),
    ]
    assert FIRST not in await sent(service, conversation_id)


async def test_a_compaction_that_did_not_read_it_is_applied(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    """Otherwise whoever is not content with a reply would have the compaction after it paid for twice."""
    gate = Gate()
    service = Service(begin, tenant, gate, chat=ScriptedChatModel(FIRST, SECOND))
    conversation_id = await service.conversation()
    await service.say(conversation_id, 20)
    await chat(service, conversation_id, "Where are the crates?")
    given = CompactInput(keep_tail_messages=4)
    compacting = asyncio.create_task(service.container.manual.compact(tenant, conversation_id, given, timeout=PATIENCE))
    await asyncio.wait_for(gate.reached.wait(), PATIENCE)
    await again(service, conversation_id)
    gate.go_on.set()
    view = await asyncio.wait_for(compacting, PATIENCE)

    assert view.compaction.status == "applied"
    assert SECOND in await sent(service, conversation_id)
    await check_sums(service, conversation_id)


@pytest.mark.long
async def test_a_compaction_that_read_it_finds_itself_stale(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    gate = Gate()
    service = Service(begin, tenant, gate, chat=ScriptedChatModel(FIRST, SECOND))
    conversation_id = await service.conversation()
    await service.say(conversation_id, 40)
    await chat(service, conversation_id, "Where are the crates?")
    given = CompactInput(keep_tail_messages=0)
    compacting = asyncio.create_task(service.container.manual.compact(tenant, conversation_id, given, timeout=PATIENCE))
    await asyncio.wait_for(gate.reached.wait(), PATIENCE)
    second = await again(service, conversation_id)
    gate.go_on.set()
    await asyncio.gather(compacting, return_exceptions=True)
    row = (await service.compactions(conversation_id))[0]
    assert (row.status, row.reason) == ("superseded", "stale")
    assert (await service.row(conversation_id)).state_version == 0
    assert second.reply.content == SECOND


@pytest.mark.long
async def test_its_anchors_are_withdrawn_and_what_they_replaced_stands_again(
    begin: UnitOfWorkFactory, tenant: UUID
) -> None:
    service = Service(begin, tenant, chat=ScriptedChatModel(FRIDAY, MONDAY, "As you like."))
    conversation_id = await service.conversation()
    await chat(service, conversation_id, "Hello.")
    await chat(service, conversation_id, "Which one?")
    old, new = await anchors(service, conversation_id)
    assert (old.status, old.superseded_by, new.status) == ("superseded", new.id, "active"), "the control"
    await again(service, conversation_id)
    old, new = await anchors(service, conversation_id)
    assert (old.content, old.status, old.superseded_by) == (FRIDAY, "active", None)
    assert (new.content, new.status) == (MONDAY, "withdrawn")


@pytest.mark.long
async def test_it_is_held_no_more_and_can_be_erased(service: Service) -> None:
    conversation_id, pins = await service.conversation(), service.container.pins
    first = await chat(service, conversation_id, "Where are the crates?")
    held = (await service.row(conversation_id)).total.held_tokens
    await pins.pin(service.tenant, conversation_id, first.reply.id)
    assert (await service.row(conversation_id)).total.held_tokens > held, "the control"
    await again(service, conversation_id)
    assert (await service.row(conversation_id)).total.held_tokens == held
    with pytest.raises(NotPinnableError):
        await pins.pin(service.tenant, conversation_id, first.reply.id)
    await service.container.erasure.erase(service.tenant, conversation_id, first.reply.id)
    assert [(one.content, one.status) for one in await history(service, conversation_id)][1:] == [
        ("", "erased"),
        (SECOND, "complete"),
    ]
    await check_sums(service, conversation_id)
