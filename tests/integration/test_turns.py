"""Turns on a real database: compacted inside, waiting, taken over, out of time, interrupted, failing, repeated."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator
from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from app.core.model.conversation import Usage
from app.core.model.errors import (
    ContextOverWindowError,
    ConversationMovedOnError,
    DependencyUnavailableError,
    IdempotencyKeyReusedError,
    InvalidInputError,
    ModelFailedError,
    ModelUnavailableError,
    TooLargeError,
    TurnInProgressError,
)
from app.core.model.model_io import ChatRequest, ModelProfile, StepEvent, StepFinish
from app.core.model.records import Event
from app.core.state.layout import messages_tokens
from app.storage.repositories.events import EventRepository
from app.storage.unit_of_work import UnitOfWorkFactory
from app.usecases.chat.starting import ChatInput
from app.usecases.chat.turn_handle import ChatEvent, ChatResult, TurnHandle
from app.usecases.compaction import inline
from app.usecases.history.drafts import MessageDraft
from app.usecases.shared.idempotency import Idem
from app.usecases.shared.resolve import Resolved
from tests.fakes import FAKE_PROFILE, Reply, ScriptedChatModel
from tests.integration.services import WORDS, Gate, Service, honest

PATIENCE = 30.0
JUMP = WORDS.format(seq=0) * 36  # about 600 tokens: from below 70 % to above 85 %


@pytest.fixture
def service(begin: UnitOfWorkFactory, tenant: UUID) -> Service:
    return Service(begin, tenant)


async def start(service: Service, conversation_id: UUID, content: str | None, idem: Idem | None = None) -> TurnHandle:
    return await service.container.chat.start(service.tenant, conversation_id, ChatInput(content=content), idem=idem)


async def chat(service: Service, conversation_id: UUID, content: str | None, idem: Idem | None = None) -> ChatResult:
    handle = await start(service, conversation_id, content, idem)
    return await asyncio.wait_for(handle.result(), PATIENCE)


async def filled(service: Service, share: float = 0.69, **policy: Any) -> UUID:
    """A conversation whose context is filled to this share of the budget."""
    conversation_id = await service.conversation(**policy)
    await service.fill(conversation_id, math.ceil(share * 3_060 - 50), step=1)
    if (await service.row(conversation_id)).last_seq % 2:
        await service.say(conversation_id, 1, words=1)
    return conversation_id


async def test_a_jump_over_the_inline_threshold_is_compacted_before_the_call(service: Service) -> None:
    conversation_id = await filled(service)
    result = await chat(service, conversation_id, JUMP)
    sent = service.chat_model.requests[0].messages
    row = await service.row(conversation_id)

    assert result.compaction is not None
    assert (
        result.compaction.compaction.trigger,
        result.compaction.compaction.ran_in,
        result.compaction.compaction.status,
    ) == (
        "sync",
        "turn",
        "applied",
    )
    assert result.reply.content == "All right."
    assert result.warnings == ()
    assert sent[-1].content.endswith(JUMP)
    assert [one.seq for one in sent if one.seq] == [1, *range(row.boundary_seq + 1, result.message.seq + 1)]


async def test_a_short_outage_after_the_compaction_costs_events_and_no_reply(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    conversation_id = await filled(service)
    after, calls = EventRepository.after, list[int]()

    async def away_at_the_end(self: EventRepository, *given: Any, **named: Any) -> list[Event]:
        calls.append(len(calls))
        if len(calls) == 2:
            raise DependencyUnavailableError("away")
        return await after(self, *given, **named)

    monkeypatch.setattr(EventRepository, "after", away_at_the_end)
    result = await chat(service, conversation_id, JUMP)

    assert calls == [0, 1], "before the compaction and after it"
    assert result.compaction is not None
    assert (result.compaction.compaction.status, result.reply.content) == ("applied", "All right.")


@pytest.mark.long
async def test_one_message_larger_than_the_budget_is_answered_all_the_same(service: Service) -> None:
    conversation_id = await filled(service, 0.4)
    result = await chat(service, conversation_id, JUMP * 4)

    assert result.compaction is not None
    assert result.reply.content == "All right."
    assert result.gauge.tokens <= result.gauge.window


@pytest.mark.case("22")
async def test_a_message_that_can_never_fit_is_refused_before_anything_is_stored(service: Service) -> None:
    conversation_id = await service.conversation()
    with pytest.raises(TooLargeError) as caught:
        await chat(service, conversation_id, JUMP * 20)

    assert caught.value.extra["size"] > caught.value.extra["limit"]
    assert (await service.row(conversation_id)).last_seq == 0


@pytest.mark.case("41")
async def test_a_turn_waits_for_the_compaction_in_flight_and_uses_its_result(
    begin: UnitOfWorkFactory, tenant: UUID
) -> None:
    gate = Gate()
    worker, service = Service(begin, tenant, gate, owner="process:worker"), Service(begin, tenant)
    conversation_id = await filled(service, 0.72)
    running = asyncio.create_task(worker.container.compaction.execute(service.queue.ids[0]))
    await gate.reached.wait()
    handle = await start(service, conversation_id, JUMP)
    answered = asyncio.create_task(handle.result())
    await asyncio.sleep(0.6)
    assert service.chat_model.requests == []
    gate.go_on.set()
    result = await asyncio.wait_for(answered, PATIENCE)
    ended = await running

    assert ended is not None
    assert result.compaction is not None
    assert result.compaction.compaction.id == ended.id
    assert result.warnings == ()
    assert service.summarizer.requests == []


@pytest.mark.long
async def test_a_turn_takes_over_what_is_only_queued(service: Service) -> None:
    conversation_id = await filled(service, 0.72)
    (queued,) = await service.compactions(conversation_id)
    result = await chat(service, conversation_id, JUMP)

    assert queued.status == "queued"
    assert result.compaction is not None
    assert (result.compaction.compaction.id, result.compaction.compaction.ran_in) == (queued.id, "turn")
    assert result.compaction.compaction.trigger == "background"


async def test_out_of_time_the_turn_goes_on_and_the_rest_is_queued(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    gate = Gate()
    service = Service(begin, tenant, gate, honest)
    conversation_id = await filled(service, sync_deadline=0.5)
    result = await chat(service, conversation_id, JUMP)
    await service.container.outbox.drain()
    gate.go_on.set()  # on a busy machine the time is over before anybody is asked, and the worker meets the gate

    assert result.reply.content == "All right."
    assert result.warnings[0] == "compaction_deadline"
    assert result.compaction is not None
    assert result.compaction.compaction.status == "queued"
    assert result.compaction.compaction.id in service.queue.ids
    done = await service.container.compaction.execute(result.compaction.compaction.id)
    assert done is not None
    assert (done.status, done.claims) == ("applied", 0)


@pytest.mark.daily(1)
@pytest.mark.parametrize("is_running", [False, True], ids=["its own", "another's"])
async def test_a_turn_that_is_stopped_while_it_is_compacted_ends_at_once(
    begin: UnitOfWorkFactory, tenant: UUID, *, is_running: bool
) -> None:
    """The turn does not wait for the summary, which never comes here, and asks no model; the worker continues it."""
    gate = Gate()
    service, worker = Service(begin, tenant, gate, honest), Service(begin, tenant, gate, owner="process:worker")
    conversation_id = await filled(service, 0.72, sync_deadline=300)
    running = [asyncio.create_task(worker.container.compaction.execute(service.queue.ids[0]))] if is_running else []
    if running:
        await gate.reached.wait()
    handle = await start(service, conversation_id, JUMP)
    await asyncio.wait_for(gate.reached.wait(), PATIENCE)
    _ = [event async for event in until_started(handle)]
    await service.container.chat.interrupt(tenant, conversation_id)
    result = await asyncio.wait_for(handle.result(), PATIENCE)
    await service.container.outbox.drain()

    assert (result.reply.content, result.reply.status, result.warnings) == ("", "interrupted", ())
    assert service.chat_model.requests == []
    (row,) = await service.compactions(conversation_id)
    assert row.status == ("running" if is_running else "queued")
    gate.go_on.set()
    done = await running[0] if running else await service.container.compaction.execute(row.id)
    assert done is not None
    assert done.status == "applied"


@pytest.mark.daily(1)
@pytest.mark.parametrize("is_running", [False, True], ids=["queued", "running"])
@pytest.mark.case("41")
async def test_what_a_turn_waits_for_is_told_when_the_waiting_begins(
    begin: UnitOfWorkFactory, tenant: UUID, *, is_running: bool
) -> None:
    gate = Gate()
    service, worker = Service(begin, tenant, gate), Service(begin, tenant, gate, owner="process:worker")
    conversation_id = await filled(service, 0.72)
    works = [worker.container.compaction.execute(service.queue.ids[0])] if is_running else []
    running = [asyncio.create_task(one) for one in works]
    if running:
        await gate.reached.wait()
    handle = await start(service, conversation_id, JUMP)
    await asyncio.wait_for(gate.reached.wait(), PATIENCE)
    told = [event async for event in until_started(handle)]

    assert not gate.go_on.is_set(), "it is told while nothing has come of it"
    assert [event.type for event in told] == ["message.created", "compaction.started"]
    assert told[-1].data["status"] == "running"
    gate.go_on.set()
    result = await asyncio.wait_for(handle.result(), PATIENCE)
    await asyncio.gather(*running)
    assert result.warnings == ()


async def test_how_a_compaction_ended_is_told_after_many_other_events(
    begin: UnitOfWorkFactory, tenant: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inline, "EVENT_PAGE", 1)
    gate = Gate()
    service = Service(begin, tenant, gate)
    conversation_id = await filled(service)
    handle = await start(service, conversation_id, JUMP)
    await asyncio.wait_for(gate.reached.wait(), PATIENCE)
    async with begin(tenant) as uow:
        for _ in range(3):
            await uow.events.add(conversation_id, "conversation.released", {}, datetime.now(UTC))
        await uow.commit()
    gate.go_on.set()
    told = [event.type async for event in handle.events() if event.type.startswith("compaction.")]
    assert told == ["compaction.started", "compaction.applied"]
    await handle.result()


async def until_started(handle: TurnHandle) -> AsyncIterator[ChatEvent]:
    async with asyncio.timeout(PATIENCE):
        async for event in handle.events():
            yield event
            if event.type == "compaction.started":
                return


@pytest.mark.daily(1)
@pytest.mark.parametrize("on_failure", ["truncate", "keep_full"])
@pytest.mark.case("41-vain")
async def test_what_a_turn_has_waited_for_in_vain_no_other_waits_for_again(
    begin: UnitOfWorkFactory, tenant: UUID, on_failure: str
) -> None:
    """Control: if nothing may be left out, the turn has to wait."""
    gate = Gate()
    service, worker = Service(begin, tenant, gate), Service(begin, tenant, gate, owner="process:worker")
    conversation_id = await filled(service, sync_deadline=0.5, on_failure=on_failure)
    first = await chat(service, conversation_id, JUMP)
    assert "compaction_deadline" in first.warnings
    (row,) = await service.compactions(conversation_id)
    gate.reached.clear()
    running = asyncio.create_task(worker.container.compaction.execute(row.id))
    await gate.reached.wait()
    for _ in range(2):
        again = await chat(service, conversation_id, "And now?")
        assert ("compaction_deadline" in again.warnings) == (on_failure == "keep_full")
    gate.go_on.set()
    ended = await running
    assert ended is not None
    assert ended.status == "applied"
    assert (await service.row(conversation_id)).quiet.reason != "deadline"


@pytest.mark.case("36-model")
async def test_a_summarizer_that_fails_never_blocks_the_turn(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    service = Service(begin, tenant, ModelUnavailableError("server_error"))
    conversation_id = await filled(service)
    result = await chat(service, conversation_id, JUMP * 2)
    row = await service.row(conversation_id)

    assert result.reply.content == "All right."
    assert result.warnings == ("compaction_failed:server_error", "context_truncated")
    assert result.compaction is not None
    assert (result.compaction.compaction.status, result.compaction.compaction.reason) == ("failed", "server_error")
    assert (row.state_version, row.boundary_seq) == (0, 0)


@pytest.mark.long
async def test_a_defect_in_the_core_costs_a_compaction_and_never_a_turn(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("counting tokens raises")

    conversation_id = await filled(service)
    monkeypatch.setattr("app.core.state.apply.merge", broken)
    result = await chat(service, conversation_id, JUMP)

    assert result.reply.content == "All right."
    assert result.warnings == ("compaction_failed:internal_error",)
    assert (await service.row(conversation_id)).state_version == 0


@pytest.mark.long
async def test_a_state_store_that_is_away_costs_a_compaction_and_never_a_turn(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(*_: object, **__: object) -> None:
        raise DependencyUnavailableError("the state store is away")

    conversation_id = await filled(service)
    monkeypatch.setattr("app.usecases.compaction.run.save_chunk", away)
    monkeypatch.setattr("app.usecases.compaction.job.SHORT_OUTAGE", 0)
    result = await chat(service, conversation_id, JUMP)

    assert result.reply.content == "All right."
    assert result.warnings == ("compaction_unavailable",)
    assert (await service.row(conversation_id)).state_version == 0


async def test_a_repeated_key_of_an_interrupted_turn_ends_as_the_first_did(
    begin: UnitOfWorkFactory, tenant: UUID
) -> None:
    model, thinking = slow()
    service = Service(begin, tenant, chat=model)
    conversation_id = await service.conversation()
    key = Idem(key="k1", fingerprint="f")
    handle = await start(service, conversation_id, "Tell me a story.", key)
    await asyncio.wait_for(thinking.wait(), PATIENCE)
    await service.container.chat.interrupt(tenant, conversation_id)
    await asyncio.wait_for(handle.result(), PATIENCE)
    again = [event.type async for event in (await start(service, conversation_id, "Tell me a story.", key)).events()]

    assert again == ["message.created", "reply.delta", "reply.interrupted"]


@pytest.mark.long
async def test_within_the_budget_a_failed_summary_cuts_nothing(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    service = Service(begin, tenant, ModelUnavailableError("server_error"))
    conversation_id = await filled(service)
    result = await chat(service, conversation_id, JUMP)

    assert result.warnings == ("compaction_failed:server_error",)
    assert len([one for one in service.chat_model.requests[0].messages if one.seq]) == result.message.seq


@pytest.mark.case("36-model")
async def test_a_chat_model_that_fails_leaves_the_message_for_the_next_try(
    begin: UnitOfWorkFactory, tenant: UUID
) -> None:
    failing = ScriptedChatModel(ModelUnavailableError("timeout"), "At last.")
    service = Service(begin, tenant, chat=failing)
    conversation_id = await service.conversation()
    with pytest.raises(ModelFailedError) as caught:
        await chat(service, conversation_id, "Are you there?")
    result = await chat(service, conversation_id, None)

    assert caught.value.extra["message_id"] == str(result.message.id)
    assert (result.message.seq, result.reply.seq, result.reply.content) == (1, 2, "At last.")
    assert "reply.failed" in await service.events(conversation_id)


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        (Reply(pieces=("Well",), finish="blocked"), "blocked"),
        (Reply(pieces=(" ", "\n")), "empty_reply"),
        (Reply(pieces=("Half a", " thought"), error=ModelUnavailableError("connection")), "model_unavailable"),
    ],
)
async def test_an_answer_that_is_none_is_not_stored(
    begin: UnitOfWorkFactory, tenant: UUID, reply: Reply, code: str
) -> None:
    service = Service(begin, tenant, chat=ScriptedChatModel(reply))
    conversation_id = await service.conversation()
    with pytest.raises(ModelFailedError) as caught:
        await chat(service, conversation_id, "Are you there?")

    assert caught.value.stable_code == code
    assert "the message is stored: send the turn again without content" in caught.value.detail
    assert (await service.row(conversation_id)).last_seq == 1


async def test_a_note_of_the_system_answers_nothing(service: Service) -> None:
    conversation_id = await service.conversation()
    note = MessageDraft(role="system", content="The harbour is closed today.")
    await service.say(conversation_id, 1)
    await service.container.messages.append(service.tenant, conversation_id, [note])
    result = await chat(service, conversation_id, None)
    again = ChatInput(regenerates=True)
    second = await (await service.container.chat.start(service.tenant, conversation_id, again)).result()

    assert (result.message.seq, result.reply.seq, second.message.seq, second.reply.seq) == (1, 3, 1, 4)
    assert {1, 2} <= {message.seq for message in service.chat_model.requests[0].messages}


async def test_a_reply_that_was_cut_off_says_so(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    service = Service(begin, tenant, chat=ScriptedChatModel(Reply(pieces=("Half a",), finish="length")))
    conversation_id = await service.conversation()

    assert (await chat(service, conversation_id, "Are you there?")).warnings == ("reply_cut_off",)


async def test_a_reply_of_which_nobody_said_that_it_is_whole_says_so(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    service = Service(begin, tenant, chat=ScriptedChatModel(Reply(pieces=("Half a",), finish="other")))
    conversation_id = await service.conversation()
    first = await start(service, conversation_id, "Are you there?", Idem(key="k1", fingerprint="f"))
    again = await start(service, conversation_id, "Are you there?", Idem(key="k1", fingerprint="f"))

    for result in (await first.result(), await again.result()):
        assert (result.reply.content, result.finish, result.warnings) == ("Half a", "other", ("reply_end_untold",))


def slow(text: str = "Once upon") -> tuple[ScriptedChatModel, asyncio.Event]:
    """A chat model that says something and then thinks without an end."""
    thinking = asyncio.Event()

    class Slow(ScriptedChatModel):
        async def step(self, request: ChatRequest) -> AsyncIterator[StepEvent]:
            async for event in super().step(request):
                yield event
                thinking.set()
                await asyncio.sleep(3_600)

    return Slow(Reply(pieces=(text,))), thinking


async def test_an_interrupted_reply_is_kept_as_far_as_it_came(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    model, thinking = slow()
    service, other = Service(begin, tenant, chat=model), Service(begin, tenant, owner="process:other")
    conversation_id = await service.conversation()
    handle = await start(service, conversation_id, "Tell me a story.")
    await asyncio.wait_for(thinking.wait(), PATIENCE)
    await other.container.chat.interrupt(tenant, conversation_id)
    result = await asyncio.wait_for(handle.result(), PATIENCE)

    assert (result.reply.content, result.reply.status) == ("Once upon", "interrupted")
    assert "reply.interrupted" in await service.events(conversation_id)


async def test_an_interrupted_command_ends_at_once_and_the_worker_does_the_rest(
    begin: UnitOfWorkFactory, tenant: UUID
) -> None:
    gate = Gate()
    service, worker = Service(begin, tenant, gate), Service(begin, tenant, owner="process:worker")
    conversation_id = await filled(service, triggers=[])
    handle = await start(service, conversation_id, "/compact")
    await asyncio.wait_for(gate.reached.wait(), PATIENCE)
    await service.container.chat.interrupt(tenant, conversation_id)
    result = await asyncio.wait_for(handle.result(), PATIENCE)
    (left,) = await service.compactions(conversation_id)
    await worker.container.compaction.execute(left.id)
    (done,) = await service.compactions(conversation_id)

    assert (result.reply.content, result.reply.status, result.finish) == ("", "interrupted", "other")
    assert (left.status, left.claims, len(left.attempts), done.status) == ("queued", 0, 1, "applied")


async def test_one_turn_at_a_time_and_appends_go_on(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    model, thinking = slow()
    service = Service(begin, tenant, chat=model)
    conversation_id = await service.conversation()
    handle = await start(service, conversation_id, "Tell me a story.")
    await asyncio.wait_for(thinking.wait(), PATIENCE)
    with pytest.raises(TurnInProgressError) as caught:
        await start(service, conversation_id, "And another.")
    await service.say(conversation_id, 1)
    await service.container.chat.interrupt(tenant, conversation_id)
    result = await asyncio.wait_for(handle.result(), PATIENCE)

    assert caught.value.retry_after
    assert result.reply.seq == 3


async def test_the_same_key_is_one_turn(service: Service) -> None:
    conversation_id = await service.conversation()
    key = Idem(key="k1", fingerprint="f")
    first = await chat(service, conversation_id, "Hello", key)
    again = await start(service, conversation_id, "Hello", key)
    stream = [event.type async for event in again.events()]

    assert (await again.result()).reply == first.reply
    assert stream == ["message.created", "reply.delta", "reply.completed"]
    assert (await service.row(conversation_id)).last_seq == 2
    with pytest.raises(IdempotencyKeyReusedError):
        await start(service, conversation_id, "Hello", Idem(key="k1", fingerprint="other"))


async def test_a_key_whose_turn_failed_is_taken_up_again(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    service = Service(begin, tenant, chat=ScriptedChatModel(ModelUnavailableError("timeout"), "At last."))
    conversation_id = await service.conversation()
    key = Idem(key="k1", fingerprint="f")
    with pytest.raises(ModelFailedError):
        await chat(service, conversation_id, "Hello", key)
    result = await chat(service, conversation_id, "Hello", key)

    assert (result.message.seq, result.reply.seq) == (1, 2)


async def test_a_key_whose_turn_still_runs_follows_it(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    model, thinking = slow()
    service = Service(begin, tenant, chat=model)
    conversation_id = await service.conversation()
    key = Idem(key="k1", fingerprint="f")
    handle = await start(service, conversation_id, "Hello", key)
    await asyncio.wait_for(thinking.wait(), PATIENCE)
    again = await start(service, conversation_id, "Hello", key)
    with pytest.raises(IdempotencyKeyReusedError):
        await start(service, conversation_id, "Hello?", Idem(key="k1", fingerprint="other"))
    await service.container.chat.interrupt(tenant, conversation_id)
    first, second = await asyncio.wait_for(asyncio.gather(handle.result(), again.result()), PATIENCE)

    assert first is second
    assert len(model.requests) == 1


async def test_nothing_to_answer_and_a_conversation_that_moved_on_are_refused(service: Service) -> None:
    conversation_id = await service.conversation()
    with pytest.raises(InvalidInputError, match="content cannot be empty"):
        await start(service, conversation_id, None)
    first = await chat(service, conversation_id, "Hello")
    moved = ChatInput(content="Hello?", expected_last_message_id=first.message.id)
    with pytest.raises(ConversationMovedOnError):
        await service.container.chat.start(service.tenant, conversation_id, moved)

    assert (await service.row(conversation_id)).last_seq == 2


@pytest.mark.long
async def test_a_typed_command_answers_with_the_summary_and_stays_out_of_the_context(service: Service) -> None:
    conversation_id = await filled(service)
    before = (await service.row(conversation_id)).total
    result = await chat(service, conversation_id, "/compact  the harbours ")
    context = await service.container.context.assemble(service.tenant, conversation_id)

    assert result.compaction is not None
    assert (result.compaction.compaction.trigger, result.compaction.compaction.request.focus) == (
        "manual",
        "the harbours",
    )
    assert "Crates 1 to" in result.reply.content
    assert {result.message.event_type, result.reply.event_type} == {"command"}
    assert (await service.row(conversation_id)).total == before
    assert not {result.message.seq, result.reply.seq} & {one.seq for one in context.messages}
    assert service.chat_model.requests == []


async def test_a_typed_command_has_the_size_limit_of_any_message(service: Service) -> None:
    conversation_id = await filled(service)
    before = await service.row(conversation_id)
    with pytest.raises(TooLargeError, match="shorten or split it"):
        await start(service, conversation_id, "/compact " + JUMP * 20)

    assert await service.row(conversation_id) == before, "nothing is stored"


@pytest.mark.daily(1)
@pytest.mark.case("21")
@pytest.mark.parametrize("size", [1, 2, 4], ids=["above 85 %", "above 100 %", "alone above the target"])
async def test_after_a_jump_it_is_below_the_target_or_says_that_it_cannot(service: Service, size: int) -> None:
    conversation_id = await filled(service)
    before = (await service.row(conversation_id)).context_tokens
    result = await chat(service, conversation_id, JUMP * size)
    weight = result.message.token_count
    assert before < 0.70 * 3_060
    assert before + weight >= (0.85 if size == 1 else 1.0) * 3_060
    assert result.compaction is not None
    row = result.compaction.compaction

    assert row.trigger == "sync"
    assert row.tokens_after is not None
    assert (row.tokens_after <= 1_836) != (row.reason == "irreducible_floor")
    assert row.tokens_after == (await service.row(conversation_id)).context_tokens - result.reply.token_count


async def test_control_without_triggers_a_jump_stays_where_it_is(service: Service) -> None:
    conversation_id = await service.conversation(max_tokens=-1)
    await service.say(conversation_id, 60)
    result = await chat(service, conversation_id, JUMP)

    assert result.compaction is None
    assert result.gauge.tokens > 0.85 * 3_060


TOO_LONG = ModelUnavailableError("context_too_long", retryable=False)


class Narrow(ScriptedChatModel):
    """A model whose real window is smaller than its profile says."""

    def __init__(self, window: int) -> None:
        super().__init__()
        self.window = window
        self.asked: list[int] = []

    async def step(self, request: ChatRequest) -> AsyncIterator[StepEvent]:
        self.asked.append(messages_tokens(request.messages, "script"))
        if self.asked[-1] > self.window:
            raise TOO_LONG
        async for event in super().step(request):
            yield event


async def long_talk(service: Service, **policy: Any) -> UUID:
    conversation_id = await service.conversation(context_window=20_000, **policy)
    await service.say(conversation_id, 120)
    return conversation_id


@pytest.mark.case("13")
async def test_a_window_smaller_than_configured_gets_the_newest_half(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    model = Narrow(1_500)
    service = Service(begin, tenant, chat=model)
    conversation_id = await long_talk(service)
    result = await chat(service, conversation_id, "And now?")
    served = [one.seq for one in model.requests[0].messages if one.seq and one.seq > 1]

    assert result.warnings[0] == "context_halved"
    assert "context_truncated" in result.warnings
    assert len(model.asked) == 3
    assert model.asked[1] < 0.55 * model.asked[0]
    assert served == list(range(served[0], result.message.seq + 1)), "the newest are kept"
    assert (await service.row(conversation_id)).state_version == 0, "nothing is compacted for it"


@pytest.mark.case("13")
async def test_a_policy_that_keeps_all_is_never_halved(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    model = Narrow(1_500)
    service = Service(begin, tenant, chat=model)
    conversation_id = await long_talk(service, on_failure="keep_full")
    with pytest.raises(ContextOverWindowError, match="the policy leaves nothing out") as caught:
        await chat(service, conversation_id, "And now?")

    assert caught.value.extra["reason"] == "context_too_long"
    assert caught.value.extra["message_id"]
    assert len(model.asked) == 1


@pytest.mark.case("13")
async def test_a_window_far_smaller_fails_after_three_halvings(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    model = Narrow(300)
    service = Service(begin, tenant, chat=model)
    conversation_id = await long_talk(service)
    with pytest.raises(ModelFailedError) as caught:
        await chat(service, conversation_id, "And now?")

    assert caught.value.extra["reason"] == "context_too_long"
    assert caught.value.extra["message_id"]
    assert len(model.asked) == 4
    assert model.asked == sorted(model.asked, reverse=True)


async def test_a_last_message_that_alone_is_too_long_fails_at_once(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    model = Narrow(300)
    service = Service(begin, tenant, chat=model)
    conversation_id = await service.conversation(context_window=20_000)
    with pytest.raises(ModelFailedError) as caught:
        await chat(service, conversation_id, JUMP * 4)

    assert caught.value.stable_code == "model_unavailable"
    assert len(model.asked) == 1


async def test_control_another_refusal_is_asked_once(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    model = ScriptedChatModel(ModelUnavailableError("bad_request", retryable=False))
    service = Service(begin, tenant, chat=model)
    conversation_id = await long_talk(service)
    with pytest.raises(ModelFailedError):
        await chat(service, conversation_id, "And now?")

    assert len(model.requests) == 1


def reporting(factor: float, times: int = 1, profile: ModelProfile = FAKE_PROFILE) -> ScriptedChatModel:
    """A model that reports this many times our estimate, for this many calls; then it counts as we do."""

    class Reporting(ScriptedChatModel):
        async def step(self, request: ChatRequest) -> AsyncIterator[StepEvent]:
            async for event in super().step(request):
                if isinstance(event, StepFinish) and len(self.requests) <= times:
                    counted = round(factor * event.usage.input_tokens)
                    yield replace(event, usage=replace(event.usage, input_tokens=counted))
                else:
                    yield event

    return Reporting(profile=profile)


class TestCalibration:
    """Usage that a provider reports of our requests: case 17, and what it may change."""

    @pytest.mark.case("17")
    async def test_reported_ten_times_too_high_once_compacts_nothing(
        self, begin: UnitOfWorkFactory, tenant: UUID
    ) -> None:
        service = Service(begin, tenant, chat=reporting(10.0))
        conversation_id = await filled(service, 0.6)
        first = await chat(service, conversation_id, "Hello.")
        second = await chat(service, conversation_id, "And again.")
        row = await service.row(conversation_id)

        assert await service.compactions(conversation_id) == []
        assert (first.compaction, second.compaction) == (None, None)
        assert 1.0 < row.token_factor < 0.70 / 0.62

    @pytest.mark.control("17")
    async def test_control_without_the_clamp_it_does(
        self, begin: UnitOfWorkFactory, tenant: UUID, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def unclamped(_: float, *, estimated: int, reported: int) -> float:
            return reported / estimated

        monkeypatch.setattr("app.usecases.chat.calibrating.adjusted_factor", unclamped)
        service = Service(begin, tenant, chat=reporting(10.0))
        conversation_id = await filled(service, 0.6)
        await chat(service, conversation_id, "Hello.")

        assert len(await service.compactions(conversation_id)) == 1

    @pytest.mark.long
    async def test_a_lasting_difference_is_learned_and_survives_a_restart(
        self, begin: UnitOfWorkFactory, tenant: UUID
    ) -> None:
        service = Service(begin, tenant, chat=reporting(1.3, times=100))
        conversation_id = await filled(service, 0.3)
        for _ in range(12):
            await chat(service, conversation_id, "Hello.")
        learned = (await service.row(conversation_id)).token_factor
        again = Service(begin, tenant, owner="process:restarted")
        gauge = await again.container.conversations.usage(tenant, conversation_id)
        row = await again.row(conversation_id)
        raw = (await again.container.context.assemble(tenant, conversation_id)).estimated

        assert 1.1 < learned <= 1.3
        assert row.token_factor == learned
        assert gauge.tokens == row.context_tokens == math.ceil(raw * learned)
        assert sum(asdict(gauge.breakdown).values()) == gauge.tokens

    async def test_usage_and_context_tell_the_same_tokens(self, begin: UnitOfWorkFactory, tenant: UUID) -> None:
        service = Service(begin, tenant)
        conversation_id = await filled(service, 0.3)
        async with begin(tenant) as uow:
            await uow.conversations.lock(conversation_id)
            await uow.conversations.update(conversation_id, token_factor=1.3)
            await uow.commit()
        context = await service.container.context.assemble(tenant, conversation_id)

        assert context.gauge == await service.container.conversations.usage(tenant, conversation_id)
        assert context.gauge.tokens > 1.29 * context.estimated

    @pytest.mark.long
    async def test_it_changes_neither_stored_counts_nor_what_is_served(
        self, begin: UnitOfWorkFactory, tenant: UUID
    ) -> None:
        plain, high = Service(begin, tenant), Service(begin, tenant, chat=reporting(1.4, times=100))
        served: list[list[str]] = []
        for service in (plain, high):
            conversation_id = await filled(service, 0.5)
            await chat(service, conversation_id, "Hello.")
            context = await service.container.context.assemble(tenant, conversation_id)
            served.append([one.content for one in context.messages])
            row = await service.row(conversation_id)
            async with begin(tenant) as uow:
                outline = await uow.messages.outline(conversation_id, after_seq=0, limit=1_000)
            assert row.total.tokens == sum(one.token_count for one in outline)

        assert served[0] == served[1]

    @pytest.mark.daily(1)
    @pytest.mark.parametrize("guarded", [True, False], ids=["guarded", "control"])
    async def test_the_plan_meets_the_target_as_evaluation_sees_it(
        self, begin: UnitOfWorkFactory, tenant: UUID, monkeypatch: pytest.MonkeyPatch, *, guarded: bool
    ) -> None:
        if not guarded:
            monkeypatch.setattr(Resolved, "planning_budgets", property(lambda resolved: resolved.budgets))
        service = Service(begin, tenant, chat=reporting(1.4, times=100))
        conversation_id = await filled(service, 0.45)
        for _ in range(30):
            if await service.compactions(conversation_id):
                break
            await chat(service, conversation_id, WORDS.format(seq=1))
        (row,) = await service.compactions(conversation_id)
        factor = (await service.row(conversation_id)).token_factor
        await service.container.compaction.execute(row.id)
        gauge = await service.container.conversations.usage(tenant, conversation_id)

        planned = gauge.tokens + factor * (367 - gauge.breakdown.state / factor)  # with the state at its planned size
        assert factor > 1.1
        assert (planned <= 1_836 + 2) == guarded

    @pytest.mark.parametrize(
        "model",
        [
            pytest.param(
                reporting(1.4, 9, replace(FAKE_PROFILE, metered=False)), id="a model that is not a provider's"
            ),
            pytest.param(ScriptedChatModel(Reply(pieces=("Yes.",), usage=Usage())), id="one that reports nothing"),
        ],
    )
    async def test_nothing_is_learned_from(
        self, begin: UnitOfWorkFactory, tenant: UUID, model: ScriptedChatModel
    ) -> None:
        service = Service(begin, tenant, chat=model)
        conversation_id = await filled(service, 0.3)
        await chat(service, conversation_id, "Hello.")

        assert (await service.row(conversation_id)).token_factor == 1.0

    @pytest.mark.long
    async def test_a_compaction_s_usage_teaches_nothing(self, service: Service) -> None:
        conversation_id = await filled(service)
        result = await chat(service, conversation_id, JUMP)

        assert result.compaction is not None
        assert result.compaction.compaction.usage.input_tokens == 500
        assert (await service.row(conversation_id)).token_factor == 1.0

    async def test_another_estimator_starts_anew(self, begin: UnitOfWorkFactory, tenant: UUID) -> None:
        service = Service(begin, tenant, chat=reporting(1.4, times=100))
        conversation_id = await filled(service, 0.3)
        await chat(service, conversation_id, "Hello.")
        learned = (await service.row(conversation_id)).token_factor
        patch = service.container.conversations.patch
        await patch(tenant, conversation_id, {"policy": {"context_window": 4_000, "target": 0.55}})
        kept = (await service.row(conversation_id)).token_factor
        await patch(tenant, conversation_id, {"policy": {"context_window": 4_000, "estimator": "bytes"}})

        assert kept == learned > 1.0
        assert (await service.row(conversation_id)).token_factor == 1.0
