"""Races of compactions, turns and keys with their guards taken out; and an append at every step of a compaction."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from dataclasses import replace
from functools import partial
from itertools import count
from typing import Any, Final
from uuid import UUID

import pytest
from sqlalchemy import text, true
from sqlalchemy.ext.asyncio import AsyncEngine

from app.core.model.errors import IdempotencyKeyReusedError
from app.core.model.records import Compaction, IdempotencyRecord
from app.core.state.apply import version_of
from app.settings import Settings
from app.storage.repositories import compactions
from app.storage.repositories.idempotency import IdempotencyRepository
from app.storage.unit_of_work import UnitOfWork, UnitOfWorkFactory
from app.usecases.chat.chat_input import ChatInput
from app.usecases.chat.turn_handle import TurnHandle
from app.usecases.compaction import saving
from app.usecases.compaction.chunk import Chunk
from app.usecases.compaction.inline import InlineClaim, InlineCompaction
from app.usecases.compaction.manual import CompactInput
from app.usecases.history.drafts import MessageDraft
from app.usecases.shared.idempotency import Idem
from tests.cases import guarded
from tests.integration.services import Gate, Service, history, opened_by, together
from tests.integration.test_compaction_service import SELDOM
from tests.integration.test_triggers import _Anyway
from tests.integration.test_turns import JUMP, filled

PATIENCE: Final = 30.0


# --- compactors


@pytest.mark.long
@pytest.mark.control("38")
async def test_control_a_row_that_anybody_may_take_is_worked_on_twice(
    begin: UnitOfWorkFactory, tenant: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate()
    one, other = (Service(begin, tenant, gate, owner=f"process:{name}") for name in ("one", "other"))
    conversation_id = await filled(one, 0.72)
    first = asyncio.create_task(one.container.compaction.execute(one.queue.ids[0]))
    await asyncio.wait_for(gate.reached.wait(), PATIENCE)
    assert await other.container.compaction.execute(one.queue.ids[0]) is None, "with the guard it is left alone"
    monkeypatch.setattr(compactions, "_can_be_taken", true)
    second = asyncio.create_task(other.container.compaction.execute(one.queue.ids[0]))
    while not other.summarizer.requests:  # noqa: ASYNC110 - nobody tells
        await asyncio.sleep(0.01)
    gate.go_on.set()
    await asyncio.wait([first, second])
    assert len(one.summarizer.requests) + len(other.summarizer.requests) == 2
    assert (await one.row(conversation_id)).state_version == 1, "the fence at the save still holds"


@pytest.mark.long
@pytest.mark.control("39")
async def test_control_without_the_fence_an_outdated_compaction_writes(
    begin: UnitOfWorkFactory, tenant: UUID, engine: AsyncEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(saving, "check_held", lambda row, _: row)
    monkeypatch.setattr(Chunk, "is_stale", lambda *_: False)
    gate = Gate()
    slow = Service(begin, tenant, gate, owner="process:slow", settings=SELDOM)
    quick = Service(begin, tenant, owner="process:quick")
    conversation_id = await filled(slow, 0.72)
    stale = asyncio.create_task(slow.container.compaction.execute(slow.queue.ids[0]))
    await gate.reached.wait()
    async with engine.begin() as connection:
        await connection.execute(text("UPDATE compactions SET lease_until = now() - interval '1 s'"))
    await quick.container.compaction.execute(slow.queue.ids[0])
    before = await quick.row(conversation_id)
    # Otherwise the key of the table of versions would stop it, too.
    monkeypatch.setattr(saving, "version_of", lambda *given, **named: replace(version_of(*given, **named), version=7))
    gate.go_on.set()
    await asyncio.wait([stale])
    assert (await quick.row(conversation_id)).state_version == 7 != before.state_version


class Meanwhile:
    """Units of work of one process; before one of them another process appends a message."""

    def __init__(self, begin: UnitOfWorkFactory, other: Service) -> None:
        self._begin = begin
        self._other = other
        self._numbers = 0
        self.at = 0
        self.was_reached = False
        self.conversation_id: UUID | None = None

    def __call__(self, tenant_id: UUID | None) -> UnitOfWork:
        return opened_by(self._opened, self._begin(tenant_id))

    @asynccontextmanager
    async def _opened(self, unit: UnitOfWork) -> AsyncIterator[UnitOfWork]:
        self._numbers += 1
        if self.conversation_id is not None and self._numbers == self.at:
            await self._other.say(self.conversation_id, 1, words=1)
            self.was_reached = True
        async with unit:
            yield unit

    def arm(self, conversation_id: UUID, at: int) -> None:
        self.conversation_id, self.at, self._numbers = conversation_id, at, 0


async def appended_at(begin: UnitOfWorkFactory, tenant: UUID, at: int) -> bool:
    """Append before this transaction of a compaction; returns whether it has so many."""
    other = Service(begin, tenant, owner="process:other")
    meanwhile = Meanwhile(begin, other)
    service = Service(meanwhile, tenant)
    conversation_id = await filled(service, 0.72)
    count = len(await history(service, conversation_id))
    meanwhile.arm(conversation_id, at)
    ended = await service.container.compaction.execute(service.queue.ids[0])
    await service.container.outbox.drain()
    was_reached, meanwhile.at = meanwhile.was_reached, 0  # what begins later, as a heartbeat, is no step of it
    assert ended is not None
    assert ended.status == "applied"
    assert ended.to_seq == service.summarizer.requests[0].messages[-1].seq, "a state covers what its model has read"
    row = await other.row(conversation_id)
    assert row.last_seq == count + was_reached
    served = await other.container.context.assemble(tenant, conversation_id)
    tail = [one.seq for one in served.messages if (one.seq or 0) > ended.to_seq]
    assert tail == list(range(ended.to_seq + 1, row.last_seq + 1)), "all that no state covers is served"
    async with begin(tenant) as uow:
        assert row.covered == await uow.messages.sums_at(conversation_id, ended.to_seq)
        assert row.total == await uow.messages.sums_at(conversation_id, row.last_seq)
    view = await other.container.conversations.get(tenant, conversation_id)
    assert view.conversation.context_tokens == view.gauge.tokens, "of one reading of the row"
    return was_reached


@pytest.mark.case("40")
@pytest.mark.long
async def test_an_append_at_every_step_of_a_compaction_is_in_the_tail(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    assert await appended_at_each(begin, tenant) > 5


async def appended_at_each(begin: UnitOfWorkFactory, tenant: UUID) -> int:
    """Append before each transaction of a compaction, each time of another one; returns how many it has."""
    for at in count(1):
        if not await appended_at(begin, tenant, at):
            break
    return at - 1


@pytest.mark.long
@pytest.mark.control("40")
async def test_control_a_state_that_covers_what_is_there_when_it_is_saved_hides_it(
    begin: UnitOfWorkFactory, tenant: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    save = saving._save

    async def covers_all(shell: Any, lease: Any, ready: Any, results: Any) -> Any:
        async with begin(tenant) as uow:
            last = (await uow.conversations.get(lease.conversation_id)).last_seq
        plan = replace(ready.chunk.plan, to_seq=last)
        return await save(shell, lease, replace(ready, chunk=replace(ready.chunk, plan=plan)), results)

    monkeypatch.setattr(saving, "_save", covers_all)
    with pytest.raises(AssertionError, match="what its model has read"):
        await appended_at_each(begin, tenant)


# --- turns that find a job


async def jump_beside_a_job(
    service: Service, worker: Service, gate: Gate, conversation_id: UUID
) -> tuple[asyncio.Task[Compaction | None], TurnHandle]:
    """A compaction that runs until the gate opens, and a turn that began meanwhile and needs one."""
    running = asyncio.create_task(worker.container.compaction.execute(service.queue.ids[0]))
    await gate.reached.wait()
    return running, await service.container.chat.start(service.tenant, conversation_id, ChatInput(content=JUMP))


@pytest.mark.long
@pytest.mark.control("41")
async def test_control_a_turn_that_does_not_wait_asks_without_the_compaction(
    begin: UnitOfWorkFactory, tenant: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def waits_for_nothing(_: InlineCompaction, claim: InlineClaim, *__: object) -> Compaction:
        return claim.row

    monkeypatch.setattr(InlineCompaction, "_wait_for_row", waits_for_nothing)
    gate, service = Gate(), Service(begin, tenant)
    worker, conversation_id = Service(begin, tenant, gate, owner="process:worker"), await filled(service, 0.72)
    running, handle = await jump_beside_a_job(service, worker, gate, conversation_id)
    await asyncio.wait_for(handle.result(), PATIENCE)
    assert len(service.chat_model.requests) == 1, "while the job still runs"
    gate.go_on.set()
    await running


@pytest.mark.long
@pytest.mark.case("41")
@pytest.mark.parametrize("is_more", [True, False])
async def test_a_second_call_is_made_only_if_the_wait_left_it_at_85_percent(
    begin: UnitOfWorkFactory, tenant: UUID, *, is_more: bool
) -> None:
    gate, service = Gate(), Service(begin, tenant)
    worker, conversation_id = Service(begin, tenant, gate, owner="process:worker"), await filled(service, 0.72)
    running, handle = await jump_beside_a_job(service, worker, gate, conversation_id)
    if is_more:
        await service.say(conversation_id, 90)
    assert service.summarizer.requests == [], "never two calls at once"
    gate.go_on.set()
    result = await asyncio.wait_for(handle.result(), PATIENCE)
    await running
    triggers = [row.trigger for row in await service.compactions(conversation_id) if row.status == "applied"]
    assert triggers == ["background", *["sync"] * is_more]
    assert len(service.summarizer.requests) == int(is_more)
    assert result.reply.content == "All right."


@pytest.mark.long
@pytest.mark.own_database
@pytest.mark.control("41", "42")
async def test_control_without_the_slot_each_manual_call_is_a_run_of_its_own(
    begin: UnitOfWorkFactory, tenant: UUID, engine: AsyncEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with engine.begin() as connection:
        await connection.execute(text("DROP INDEX uq_compactions_in_flight"))
    monkeypatch.setattr("app.storage.repositories.compactions.insert", _Anyway)
    service = Service(begin, tenant)
    conversation_id = await service.conversation()
    await service.say(conversation_id, 30)
    compact = partial(service.container.manual.compact, tenant, conversation_id, CompactInput(), timeout=PATIENCE)
    await together(*[compact] * 6)
    assert len(await service.compactions(conversation_id)) == 6
    assert len(service.summarizer.requests) > 1


# --- keys


@pytest.mark.long
@pytest.mark.control("43")
async def test_control_a_key_that_is_not_claimed_has_fifty_effects(
    begin: UnitOfWorkFactory, tenant: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def nothing(*_: object, **__: object) -> None:
        return None

    monkeypatch.setattr(IdempotencyRepository, "claim", nothing)
    monkeypatch.setattr(IdempotencyRepository, "update", nothing)
    assert len(await said_under_one_key(Service(begin, tenant))) == 50


async def said_under_one_key(service: Service) -> list[Any]:
    conversation_id = await service.conversation()
    append = partial(
        service.container.messages.append,
        service.tenant,
        conversation_id,
        [MessageDraft(role="user", content="Once.")],
        idem=Idem(key="same", fingerprint="f"),
    )
    assert not [one for one in await together(*[append] * 50) if isinstance(one, BaseException)]
    return await history(service, conversation_id)


@guarded("43-body")
async def test_the_key_of_another_request_is_refused(
    begin: UnitOfWorkFactory, tenant: UUID, monkeypatch: pytest.MonkeyPatch, *, is_guarded: bool
) -> None:
    """Control: if the requests were not compared, the second one would be taken for the first, and get lost."""
    claim = IdempotencyRepository.claim

    async def compares_nothing(keys: IdempotencyRepository, record: IdempotencyRecord) -> IdempotencyRecord | None:
        existing = await claim(keys, record)
        return existing and replace(existing, fingerprint=record.fingerprint)

    if not is_guarded:
        monkeypatch.setattr(IdempotencyRepository, "claim", compares_nothing)
    service = Service(begin, tenant)
    conversation_id = await service.conversation()
    for content in ("One.", "Another."):
        drafts = [MessageDraft(role="user", content=content)]
        idem = Idem(key="same", fingerprint=content)
        with pytest.raises(IdempotencyKeyReusedError) if is_guarded and content != "One." else nullcontext():
            await service.container.messages.append(tenant, conversation_id, drafts, idem=idem)
    assert [one.content for one in await history(service, conversation_id)] == ["One."]


# --- a client that leaves


@pytest.mark.parametrize(
    "policy",
    [
        pytest.param("finish", marks=pytest.mark.case("45-compaction")),
        pytest.param("interrupt", marks=[pytest.mark.control("45-compaction"), pytest.mark.long]),
    ],
)
async def test_a_client_that_leaves_in_the_middle_of_an_inline_compaction(
    begin: UnitOfWorkFactory, tenant: UUID, policy: str
) -> None:
    """Control: a turn that ends with its client, as a policy may want it."""
    gate = Gate()
    settings = Settings(turn_heartbeat_seconds=0.05, unfollowed_seconds=0.1)
    service = Service(begin, tenant, gate, settings=settings)
    conversation_id = await filled(service, on_disconnect=policy)
    handle = await service.container.chat.start(tenant, conversation_id, ChatInput(content=JUMP))
    await asyncio.wait_for(gate.reached.wait(), PATIENCE)
    await handle.note_client_left()
    await asyncio.sleep(0.25)
    gate.go_on.set()
    await asyncio.wait_for(asyncio.shield(handle._done), PATIENCE)
    asked, reply = (await history(service, conversation_id))[-2:]
    assert (asked.content, reply.role) == (JUMP, "assistant")
    assert (reply.status, reply.content) == (("complete", "All right.") if policy == "finish" else ("interrupted", ""))
