"""Erasing a message removes everything that was made of it, whatever else happens meanwhile."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from app.core.model.conversation import Conversation, Message
from app.core.model.errors import ModelUnavailableError, NotFoundError
from app.core.model.model_io import Proposal, SummaryRequest
from app.core.model.records import Compaction, Page
from app.core.model.schemas import SESSION
from app.core.state import erasing
from app.core.state.layout import layout_of
from app.core.text.memo import memoized
from app.core.text.parts import Part
from app.storage import database
from app.storage.database import make_engine
from app.storage.repositories.messages import MessageRepository
from app.storage.unit_of_work import UnitOfWorkFactory, unit_of_work_factory
from app.usecases.chat.starting import ChatInput
from app.usecases.compaction.chunk import Chunk
from app.usecases.compaction.manual import CompactInput
from app.usecases.history import erasure
from app.usecases.history.conversations import NewConversation
from app.usecases.history.drafts import MessageDraft
from app.usecases.shared import retries
from app.usecases.shared.idempotency import Idem
from app.usecases.shared.retries import run_with_retries
from tests.fakes import Reply, ScriptedChatModel
from tests.integration.rows import make_tenant
from tests.integration.services import Gate, Service, history, honest, versions

CANARY = "Kestrel-7741"
SECRET = f"Please note that the vault phrase is {CANARY}, written on the old violet envelope."
PATIENCE = 30.0


def faithful() -> Any:
    """A summarizer that records the canary wherever it is: in facts, old texts and narratives."""

    async def propose(request: SummaryRequest) -> Proposal:
        held = [message for message in request.messages if CANARY in message.content]
        known = [entry for entry in request.previous if CANARY in entry.text]
        first, last = request.messages[0].seq, request.messages[-1].seq
        crates = f"Crates {first} to {last} reached their harbours"
        items = [{"text": crates, "from": [first, last], "replaces": []}]
        phrase = f"The vault phrase is {CANARY}"
        items += [{"text": phrase, "from": [message.seq], "replaces": []} for message in held]
        items += [
            {"text": f"{entry.text}, as known by message {last}", "from": [last], "replaces": [entry.id]}
            for entry in known
        ]
        told = f" The vault phrase {CANARY} was named." if held or known else ""
        answer = {
            "logos": items,
            "pathos": [],
            "abstract": [],
            "conversation_summary": f"Shipments {first} to {last} reached their harbours in the morning.{told}",
            "dropped": [],
            "anchors": [],
        }
        return Proposal(text=json.dumps(answer), finish="stop", model="fake")

    return propose


async def add(service: Service, conversation_id: UUID, *drafts: MessageDraft) -> list[Message]:
    return await service.container.messages.append(service.tenant, conversation_id, list(drafts))


async def compact(service: Service, conversation_id: UUID) -> Compaction:
    view = await service.container.manual.compact(
        service.tenant, conversation_id, CompactInput(keep_tail_messages=2), timeout=PATIENCE
    )
    assert view.compaction.status == "applied", view.compaction
    return view.compaction


async def erase(service: Service, conversation_id: UUID, message: Message) -> None:
    await service.container.erasure.erase(service.tenant, conversation_id, message.id)
    await service.container.outbox.drain()


async def forget_provenance(service: Service, conversation_id: UUID) -> None:
    """Damage rows as a bug could: every entry claims to come from the first message alone."""
    async with service.begin(service.tenant) as uow:
        found, _ = await uow.states.page(conversation_id, Page(limit=100))
        for version in found:
            entries = tuple(replace(entry, from_seqs=(1,)) for entry in version.entries)
            await uow.states.rewrite(conversation_id, replace(version, entries=entries))
        await uow.commit()


async def forge_newest(service: Service, conversation_id: UUID, said: str) -> None:
    """Damage the newest version as a bug could: every entry has this text, and claims to be of the first message."""
    async with service.begin(service.tenant) as uow:
        found, _ = await uow.states.page(conversation_id, Page(limit=100))
        version = max(found, key=lambda one: one.version)
        told = (entry for entry in version.entries if entry.role != "narrative")
        entries = tuple(replace(entry, text=said, from_seqs=(1,)) for entry in told)
        await uow.states.rewrite(conversation_id, replace(version, entries=entries))
        await uow.commit()


async def dump(engine: AsyncEngine) -> str:
    """Every row of every table, as text."""
    async with engine.connect() as connection:
        tables = await connection.execute(text("SELECT tablename FROM pg_tables WHERE schemaname = 'public'"))
        rows: list[str] = []
        for (table,) in tables.all():
            found = await connection.execute(text(f'SELECT t::text FROM "{table}" AS t'))  # noqa: S608 - our own table names
            rows += [f"{table}: {row}" for (row,) in found.all()]
    return "\n".join(rows)


def told(conversation: Conversation) -> str:
    assert conversation.layout is not None
    return f"{json.dumps(dict(conversation.compressed_state or {}))} {conversation.layout.text}"


@pytest.fixture
def service(begin: UnitOfWorkFactory, tenant: UUID) -> Service:
    return Service(begin, tenant, faithful())


async def with_canary(service: Service, *, compactions: int = 3) -> tuple[UUID, Message]:
    """A conversation whose fifth message holds the canary, and was compacted this many times since."""
    conversation_id = await service.conversation(max_tokens=-1)
    await service.say(conversation_id, 4)
    (canary,) = await add(service, conversation_id, MessageDraft(role="user", content=SECRET, metadata={"of": CANARY}))
    for _ in range(compactions):
        await service.say(conversation_id, 13)
        await compact(service, conversation_id)
    return conversation_id, canary


@pytest.mark.daily(1)
@pytest.mark.parametrize("provenance", [True, False])
@pytest.mark.case("62")
async def test_after_three_compactions_the_canary_is_in_no_table(
    service: Service, engine: AsyncEngine, *, provenance: bool
) -> None:
    conversation_id, canary = await with_canary(service)
    if not provenance:
        await forget_provenance(service, conversation_id)
    before = await service.row(conversation_id)
    assert CANARY in told(before)
    assert (await dump(engine)).count(CANARY) > 5

    await erase(service, conversation_id, canary)
    found = [line for line in (await dump(engine)).splitlines() if CANARY in line]
    after = await service.row(conversation_id)

    assert not found
    assert [message.seq for message in await history(service, conversation_id)] == list(range(1, before.last_seq + 1))
    assert (after.content_epoch, after.layout_version) == (before.content_epoch + 1, before.layout_version + 1)
    assert (after.boundary_seq, after.state_version) == (before.boundary_seq, before.state_version)
    assert after.total.messages == before.total.messages - 1
    assert after.total.tokens == before.total.tokens - canary.token_count
    assert after.covered.tokens == before.covered.tokens - canary.token_count
    assert "Crates 1 to" in told(after), "what did not draw on the message stays"


@pytest.mark.long
@pytest.mark.control("62")
async def test_control_without_the_clean_up_of_entries_the_dump_finds_it(
    service: Service, engine: AsyncEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(erasure, "entries_without", lambda entries, *_: tuple(entries))
    conversation_id, canary = await with_canary(service)
    await erase(service, conversation_id, canary)
    assert CANARY in await dump(engine)


@pytest.mark.long
async def test_control_without_the_look_at_content_a_wrong_provenance_keeps_it(
    service: Service, engine: AsyncEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(erasing.RemainingMessages, "holds", lambda *_: True)
    conversation_id, canary = await with_canary(service)
    await forget_provenance(service, conversation_id)
    await erase(service, conversation_id, canary)
    assert CANARY in await dump(engine)


async def test_the_tombstone_says_nothing(service: Service) -> None:
    conversation_id, canary = await with_canary(service, compactions=1)
    await erase(service, conversation_id, canary)
    stone = (await history(service, conversation_id))[canary.seq - 1]
    assert (stone.id, stone.seq, stone.role, stone.status) == (canary.id, canary.seq, "user", "erased")
    assert (stone.content, stone.parts, stone.metadata, stone.usage) == ("", (), {}, None)
    assert not stone.is_protected
    context = await service.container.context.assemble(service.tenant, conversation_id)
    assert canary.seq not in {message.seq for message in context.messages}


@pytest.mark.long
async def test_the_narrative_is_a_digest_until_it_is_told_again(service: Service) -> None:
    conversation_id, canary = await with_canary(service)
    await erase(service, conversation_id, canary)
    row = await service.row(conversation_id)
    blank = [version for version in await versions(service, conversation_id) if version.version != row.state_version]
    assert all(not version.state["conversation_summary"] for version in blank)
    assert (row.compressed_state or {})["conversation_summary"].startswith("#")

    queued = (await service.compactions(conversation_id))[-1]
    assert (queued.trigger, queued.status) == ("erasure", "queued")
    assert service.queue.ids[-1] == queued.id
    ended = await service.container.compaction.execute(queued.id)
    assert ended is not None
    again = await service.row(conversation_id)

    assert (ended.status, ended.reason, ended.state_version_after) == ("applied", None, row.state_version + 1)
    assert (again.boundary_seq, again.state_version) == (row.boundary_seq, row.state_version + 1)
    assert (again.compressed_state or {})["conversation_summary"].startswith("Shipments 1 to")
    assert (again.compressed_state or {})["logos"] == (row.compressed_state or {})["logos"]
    assert again.context_tokens == ended.tokens_after
    shown = service.summarizer.requests[-1]
    assert canary.seq not in {message.seq for message in shown.messages}
    assert all(entry.role != "narrative" for entry in shown.previous)
    assert (await service.events(conversation_id))[-4:] == [
        "message.erased",
        "compaction.queued",
        "compaction.started",
        "compaction.applied",
    ]


async def embroidering(request: SummaryRequest) -> Proposal:
    """A summarizer whose items and narrative have a value that nobody stated."""
    fact = {"text": "The crane cost 98,761 euros", "from": [request.messages[0].seq], "replaces": []}
    story = "Shipments are on their way. The crane cost 98,762 euros. They are counted every day."
    data = json.loads((await honest(request)).text) | {"conversation_summary": story}
    data["logos"] = [*data["logos"], fact]
    return Proposal(text=json.dumps(data), finish="stop", model="fake")


async def test_a_narrative_told_again_has_only_its_own_changes_on_record(
    begin: UnitOfWorkFactory, tenant: UUID
) -> None:
    """Items of that answer are not used, so nothing that was cut of them may be recorded, or come back."""
    service = Service(begin, tenant, honest, embroidering)
    conversation_id, canary = await with_canary(service, compactions=1)
    await erase(service, conversation_id, canary)
    ended = await service.container.compaction.execute(service.queue.ids[-1])
    assert ended is not None
    assert (ended.trigger, ended.status) == ("erasure", "applied")
    newest = max(await versions(service, conversation_id), key=lambda one: one.version)
    assert [(one.field, one.reason) for one in newest.repairs] == [("conversation_summary", "novel_value")]
    assert ended.entries.ungrounded == 1


async def forgetful(request: SummaryRequest) -> Proposal:
    """A summarizer for a state of one text, which tells only of crates."""
    crates = [one.content.partition("!")[0] for one in request.messages if "crate" in one.content.lower()]
    answer = {"summary": ". ".join(crates[:4]) + ".", "dropped": [], "anchors": []}
    return Proposal(text=json.dumps(answer), finish="stop", model="fake")


@pytest.mark.daily(2)
@pytest.mark.parametrize("shown", [100_000, pytest.param(200, id="of the newest messages alone")])
@pytest.mark.parametrize("with_guard", [True, pytest.param(False, id="control")])
async def test_a_text_told_again_keeps_the_values_of_what_remains(
    begin: UnitOfWorkFactory, tenant: UUID, monkeypatch: pytest.MonkeyPatch, *, with_guard: bool, shown: int
) -> None:
    """The text is the whole state: what it does not tell is lost, after an erasure as after a compaction."""
    if not with_guard:
        monkeypatch.setattr(
            "app.usecases.compaction.narrative_rewriting._with_lost_values", lambda _, told, **__: (told, ())
        )
    monkeypatch.setattr("app.usecases.compaction.narrative_rewriting.chunk_tokens", lambda _: shown)
    service = Service(begin, tenant, forgetful)
    conversation_id = await service.conversation(
        max_tokens=-1, state_schema="summary", state_share=0.1, anchor_share=0, levels=(), protect=()
    )
    await service.say(conversation_id, 8)
    await add(service, conversation_id, MessageDraft(role="user", content="The parcel's number is ZQ-2026-118."))
    (canary,) = await add(service, conversation_id, MessageDraft(role="user", content=SECRET))
    await service.say(conversation_id, 8)
    await compact(service, conversation_id)
    assert "ZQ-2026-118" in str((await service.row(conversation_id)).compressed_state)
    await erase(service, conversation_id, canary)
    ended = await service.container.compaction.execute(service.queue.ids[-1])
    assert ended is not None
    assert (ended.trigger, ended.status) == ("erasure", "applied")
    assert ended.from_seq is not None
    assert (ended.from_seq > 9) == (shown == 200), "whether the model is shown the message with the number"
    told = str((await service.row(conversation_id)).compressed_state)
    assert CANARY not in told
    assert ("ZQ-2026-118" in told) == with_guard
    newest = max(await versions(service, conversation_id), key=lambda one: one.version)
    assert any(one.reason == "value_restored" for one in newest.repairs) == with_guard


@pytest.mark.daily(1)
@pytest.mark.parametrize(("blank", "running"), [(True, False), (True, True), pytest.param(False, False, id="control")])
async def test_a_text_that_an_erasure_blanked_is_told_anew_when_it_is_gone_back_to(
    begin: UnitOfWorkFactory, tenant: UUID, *, blank: bool, running: bool
) -> None:
    """Otherwise nothing covered would be told any more; the control goes back to a version that tells something.

    This also holds if a compaction is running, which then comes too late.
    """
    service = Service(begin, tenant, forgetful)
    conversation_id = await service.conversation(
        max_tokens=-1, state_schema="summary", state_share=0.1, anchor_share=0, levels=(), protect=()
    )
    await service.say(conversation_id, 8)
    (canary,) = await add(service, conversation_id, MessageDraft(role="user", content=SECRET))
    for _ in range(2):
        await service.say(conversation_id, 8)
        await compact(service, conversation_id)
    await erase(service, conversation_id, canary)
    await service.container.compaction.execute(service.queue.ids[-1])
    if running:
        await service.container.manual.compact(tenant, conversation_id, CompactInput(wait=False), timeout=1)
        assert await service.container.compaction.take(service.queue.ids[-1], "worker")
    jobs = len(service.queue.ids)
    view = await service.container.states.restore(service.tenant, conversation_id, 1 if blank else 3)
    assert any((view.conversation.compressed_state or {}).values()) != blank
    assert len(service.queue.ids) == jobs + blank
    if blank:
        ended = await service.container.compaction.execute(service.queue.ids[-1])
        assert ended is not None
        assert (ended.trigger, ended.status) == ("erasure", "applied")
    row = await service.row(conversation_id)
    assert "crates" in str(row.compressed_state)
    assert row.boundary_seq == view.conversation.boundary_seq


def endless(joined_by: str) -> Any:
    """A summarizer whose story does not end, in several sentences or in a single one."""

    async def propose(request: SummaryRequest) -> Proposal:
        told = json.loads((await honest(request)).text)
        told["conversation_summary"] = joined_by.join([told["conversation_summary"]] * 200)
        return Proposal(text=json.dumps(told), finish="stop", model="fake")

    return propose


@pytest.mark.long
async def test_the_cap_holds_for_a_narrative_told_again(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    service = Service(begin, tenant, faithful(), faithful(), faithful(), endless(" "))
    conversation_id, canary = await with_canary(service)
    await erase(service, conversation_id, canary)
    ended = await service.container.compaction.execute(service.queue.ids[-1])
    row = await service.row(conversation_id)
    assert ended is not None
    assert ended.status == "applied"
    assert row.layout is not None
    state = row.compressed_state or {}
    assert layout_of(SESSION, state, served_as="pair", estimator="script").tokens <= 2 * 0.12 * 3_060
    assert 1 <= state["conversation_summary"].count("Shipments") < 200
    assert state["logos"]


@pytest.mark.long
async def test_a_narrative_of_which_nothing_fits_is_refused(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    service = Service(begin, tenant, faithful(), faithful(), faithful(), endless("; "))
    conversation_id, canary = await with_canary(service)
    await erase(service, conversation_id, canary)
    before = await service.row(conversation_id)
    ended = await service.container.compaction.execute(service.queue.ids[-1])
    assert ended is not None
    assert (ended.status, ended.reason) == ("rejected", "not_smaller")
    assert (await service.row(conversation_id)).compressed_state == before.compressed_state


@pytest.mark.long
async def test_nothing_to_tell_again_is_skipped(service: Service) -> None:
    conversation_id = await service.conversation(max_tokens=-1)
    await service.say(conversation_id, 14)
    await compact(service, conversation_id)
    for message in (await history(service, conversation_id))[:12]:
        await erase(service, conversation_id, message)
    ended = await service.container.compaction.execute(service.queue.ids[-1])
    row = await service.row(conversation_id)
    assert ended is not None
    assert (ended.status, ended.reason) == ("skipped", "nothing_to_compact")
    assert (row.covered.tokens, row.covered.messages, row.boundary_seq) == (0, 0, 12)
    assert (row.compressed_state or {})["logos"] == []


@pytest.mark.long
async def test_a_failed_re_making_leaves_the_digest_and_backs_off(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    service = Service(begin, tenant, faithful(), faithful(), faithful(), ModelUnavailableError("away", retryable=False))
    conversation_id, canary = await with_canary(service)
    await erase(service, conversation_id, canary)
    before = await service.row(conversation_id)
    ended = await service.container.compaction.execute(service.queue.ids[-1])
    after = await service.row(conversation_id)

    assert ended is not None
    assert ended.status == "failed"
    assert after.compressed_state == before.compressed_state
    assert after.state_version == before.state_version
    assert after.failure_count == before.failure_count + 1
    assert after.quiet.until is not None


@pytest.mark.long
async def test_twice_is_once(service: Service) -> None:
    conversation_id, canary = await with_canary(service)
    await erase(service, conversation_id, canary)
    row, events = await service.row(conversation_id), await service.events(conversation_id)
    await erase(service, conversation_id, canary)
    assert await service.row(conversation_id) == row
    assert await service.events(conversation_id) == events


async def test_what_is_not_there_is_not_found(service: Service) -> None:
    conversation_id, canary = await with_canary(service, compactions=0)
    other = await service.conversation()
    for conversation, message_id in ((other, canary.id), (conversation_id, UUID(int=5)), (UUID(int=5), canary.id)):
        with pytest.raises(NotFoundError):
            await service.container.erasure.erase(service.tenant, conversation, message_id)


@pytest.mark.long
async def test_two_at_once_are_both_erased(service: Service, engine: AsyncEngine) -> None:
    conversation_id, canary = await with_canary(service)
    other = (await history(service, conversation_id))[7]
    await asyncio.gather(erase(service, conversation_id, canary), erase(service, conversation_id, other))
    assert (await service.row(conversation_id)).content_epoch == 2
    assert CANARY not in await dump(engine)
    in_flight = [row for row in await service.compactions(conversation_id) if row.in_flight]
    assert [row.trigger for row in in_flight] == ["erasure"]


@pytest.mark.long
async def test_several_at_once_take_their_turns_and_each_writes_the_sums_once(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    conversation_id, _ = await with_canary(service)
    running, most, tries, renewed = 0, 0, 0, 0

    async def watched(transaction: Any) -> Any:
        nonlocal running, most
        running, most = running + 1, max(most, running + 1)
        try:
            return await run_with_retries(partial(tried, transaction))
        finally:
            running -= 1

    async def tried(transaction: Any, results: Any) -> Any:
        nonlocal tries
        tries += 1
        return await transaction(results)

    async def counted(self: MessageRepository, conversation_id: UUID, *, from_seq: int) -> None:
        nonlocal renewed
        renewed += 1
        await renew_sums(self, conversation_id, from_seq=from_seq)

    renew_sums = MessageRepository.renew_sums
    monkeypatch.setattr(retries, "MAX_BYTES_ON_LOOP", -1)  # everything counts as large
    monkeypatch.setattr(erasure, "run_with_retries", watched)
    monkeypatch.setattr(MessageRepository, "renew_sums", counted)
    some = (await history(service, conversation_id))[3:7]
    await asyncio.gather(*(erase(service, conversation_id, message) for message in some))
    assert [message.status for message in (await history(service, conversation_id))[3:7]] == ["erased"] * 4
    assert tries > len(some), "control: something was computed between two tries"
    assert (most, renewed) == (1, len(some))


async def test_what_others_erase_between_two_tries_is_read_again(
    service: Service, engine: AsyncEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard, entry = "The gardener buried a silver kettle beneath that oak.", "Gardener buried silver kettle"
    conversation_id, _ = await with_canary(service)
    first, second = await add(service, conversation_id, *[MessageDraft(role="user", content=heard)] * 2)
    await service.say(conversation_id, 13)
    await compact(service, conversation_id)
    await forge_newest(service, conversation_id, entry)
    elsewhere, waiting, reads = erasure.ErasureService(service.container.erasure._shell), [second], 0

    async def computed(self: retries.Results, work: Any, given: Any) -> None:
        if work.__name__ == "_texts_of_messages" and waiting:
            await elsewhere.erase(service.tenant, conversation_id, waiting.pop().id)
        await add_result(self, work, given)

    async def counted(self: MessageRepository, *given: Any, **named: Any) -> list[Message]:
        nonlocal reads
        reads += "max_bytes" in named
        return await between(self, *given, **named)

    add_result, between = retries.Results.add, MessageRepository.between
    monkeypatch.setattr(retries, "MAX_BYTES_ON_LOOP", -1)  # everything counts as large
    monkeypatch.setattr(retries.Results, "add", computed)
    monkeypatch.setattr(MessageRepository, "between", counted)
    assert entry in await dump(engine)
    await erase(service, conversation_id, first)
    assert not waiting
    assert "kettle" not in await dump(engine)
    assert reads == 3, "by each of them once, and by the first again"


async def test_a_message_in_the_tail_needs_no_new_narrative(service: Service, engine: AsyncEngine) -> None:
    conversation_id, _ = await with_canary(service)
    (late,) = await add(service, conversation_id, MessageDraft(role="user", content="The other word is Umbra-9921."))
    before = await service.row(conversation_id)
    await erase(service, conversation_id, late)
    after = await service.row(conversation_id)
    assert after.compressed_state == before.compressed_state
    assert after.layout == before.layout
    assert after.total.tokens == before.total.tokens - late.token_count
    assert all(row.trigger != "erasure" for row in await service.compactions(conversation_id))
    assert "Umbra-9921" not in await dump(engine)


async def test_the_last_message_is_answered_by_nobody_any_more(service: Service) -> None:
    conversation_id = await service.conversation()
    (last,) = await add(service, conversation_id, MessageDraft(role="user", content=SECRET))
    await erase(service, conversation_id, last)
    with pytest.raises(Exception, match="no unanswered user message"):
        await service.container.chat.start(service.tenant, conversation_id, ChatInput())
    await service.say(conversation_id, 1)
    assert [message.seq for message in await history(service, conversation_id)] == [1, 2]


async def test_the_first_message_is_no_longer_held(service: Service, engine: AsyncEngine) -> None:
    conversation_id = await service.conversation(max_tokens=-1)
    (first,) = await add(service, conversation_id, MessageDraft(role="user", content=SECRET))
    await service.say(conversation_id, 14)
    await compact(service, conversation_id)
    before = await service.row(conversation_id)
    await erase(service, conversation_id, first)
    after = await service.row(conversation_id)
    assert before.layout is not None
    assert after.layout is not None
    if first.is_protected:
        assert first.seq in before.layout.held
    assert first.seq not in after.layout.held
    assert after.total.held_tokens == 0
    assert CANARY not in await dump(engine)


def call(name: str, **arguments: Any) -> Part:
    return {"type": "tool_call", "id": name, "name": "lookup", "arguments": arguments}


def result(name: str, content: Any) -> Part:
    return {"type": "tool_result", "tool_call_id": name, "name": "lookup", "content": content}


async def with_tools(service: Service) -> tuple[UUID, Message, Message]:
    conversation_id = await service.conversation(max_tokens=-1)
    await service.say(conversation_id, 2)
    asked, answered, _ = await add(
        service,
        conversation_id,
        MessageDraft(role="assistant", content="I look it up.", parts=(call("c1", word=CANARY), call("c2", word="x"))),
        MessageDraft(role="tool", content="", parts=(result("c1", {"found": CANARY}), result("c2", "nothing"))),
        MessageDraft(role="assistant", content="It was found in the drawer."),
    )
    return conversation_id, asked, answered


def shapes(parts: Sequence[Mapping[str, Any]]) -> list[tuple[Any, Any]]:
    return [(part.get("id") or part.get("tool_call_id"), part.get("arguments", part.get("content"))) for part in parts]


async def test_a_tool_call_takes_its_result_along(service: Service, engine: AsyncEngine) -> None:
    conversation_id, asked, answered = await with_tools(service)
    await erase(service, conversation_id, asked)
    found = await history(service, conversation_id)
    stone, half = found[asked.seq - 1], found[answered.seq - 1]
    assert (stone.status, half.status) == ("erased", "erased")
    assert shapes(stone.parts) == [("c1", {}), ("c2", {})]
    assert shapes(half.parts) == [("c1", "erased"), ("c2", "erased")]
    assert CANARY not in await dump(engine)
    context = await service.container.context.assemble(service.tenant, conversation_id)
    assert not [part for message in context.messages for part in message.parts]
    assert (await service.events(conversation_id))[-2:] == ["message.erased", "message.erased"]


async def test_of_several_results_only_those_of_the_erased_call_go(service: Service, engine: AsyncEngine) -> None:
    conversation_id = await service.conversation(max_tokens=-1)
    first, _, both = await add(
        service,
        conversation_id,
        MessageDraft(role="assistant", content="One.", parts=(call("c1", word=CANARY),)),
        MessageDraft(role="assistant", content="Two.", parts=(call("c2", word="x"),)),
        MessageDraft(role="tool", content=CANARY, parts=(result("c1", CANARY), result("c2", "nothing"))),
    )
    await erase(service, conversation_id, first)
    half = (await history(service, conversation_id))[both.seq - 1]
    assert (half.status, half.content) == ("complete", "")
    assert shapes(half.parts) == [("c1", "erased"), ("c2", "nothing")]
    assert CANARY not in await dump(engine)


async def test_a_tool_result_takes_the_arguments_along(service: Service, engine: AsyncEngine) -> None:
    conversation_id, asked, answered = await with_tools(service)
    await erase(service, conversation_id, answered)
    half = (await history(service, conversation_id))[asked.seq - 1]
    assert (half.status, half.content) == ("complete", "I look it up.")
    assert shapes(half.parts) == [("c1", {}), ("c2", {})]
    assert CANARY not in await dump(engine)


async def test_a_pair_whose_ids_come_again_leaves_the_others_alone(service: Service) -> None:
    """Some clients number the calls of each answer from one."""
    conversation_id = await service.conversation(max_tokens=-1)
    made = await add(
        service,
        conversation_id,
        *(
            draft
            for place in ("Porto", "Turku", "Odense")
            for draft in (
                MessageDraft(role="assistant", content="", parts=(call("call_1", of=place),)),
                MessageDraft(role="tool", content="", parts=(result("call_1", f"rain in {place}"),)),
            )
        ),
    )
    await erase(service, conversation_id, made[3])
    left = await history(service, conversation_id)
    assert [one.status for one in left] == ["complete", "complete", "erased", "erased", "complete", "complete"]
    assert [shapes(one.parts)[0][1] for one in left] == [
        {"of": "Porto"}, "rain in Porto", {}, "erased", {"of": "Odense"}, "rain in Odense",
    ]  # fmt: skip


async def test_what_the_request_of_an_erased_reply_said_goes_with_it(
    begin: UnitOfWorkFactory, tenant: UUID, engine: AsyncEngine
) -> None:
    service = Service(begin, tenant)
    conversation_id = await service.conversation(max_tokens=-1)
    for told in (CANARY, "something else"):
        given = ChatInput(content="How are you?", request={"instructions": told})
        handle = await service.container.chat.start(service.tenant, conversation_id, given)
        await handle.result()
    asked, replied, *_ = await history(service, conversation_id)
    await erase(service, conversation_id, asked)
    assert CANARY in await dump(engine), "control: the response is still there"
    await erase(service, conversation_id, replied)
    assert CANARY not in await dump(engine)
    assert "something else" in await dump(engine)


@pytest.mark.long
async def test_a_pair_erased_after_it_was_folded(service: Service, engine: AsyncEngine) -> None:
    conversation_id, _, answered = await with_tools(service)
    await service.say(conversation_id, 14)
    await compact(service, conversation_id)
    await erase(service, conversation_id, answered)
    assert CANARY not in await dump(engine)
    ended = await service.container.compaction.execute(service.queue.ids[-1])
    assert ended is not None
    assert ended.status == "applied"
    assert CANARY not in await dump(engine)


@pytest.mark.case("44a-erased")
async def test_a_message_that_is_being_folded_right_now(
    begin: UnitOfWorkFactory, tenant: UUID, engine: AsyncEngine
) -> None:
    """Failure 44: the running row is superseded, and the summary that it was waiting for is never saved."""
    reached, go_on, think = asyncio.Event(), asyncio.Event(), faithful()

    async def slow(request: SummaryRequest) -> Proposal:
        proposed: Proposal = await think(request)
        reached.set()
        await go_on.wait()
        return proposed

    service = Service(begin, tenant, slow)
    conversation_id, canary = await with_canary(service, compactions=0)
    await service.say(conversation_id, 13)
    running = asyncio.create_task(compact(service, conversation_id))
    await reached.wait()
    await erase(service, conversation_id, canary)
    go_on.set()
    with pytest.raises(Exception, match="another change of the state"):
        await running
    row = await service.row(conversation_id)
    (ended,) = await service.compactions(conversation_id)
    assert (ended.status, ended.reason) == ("superseded", "stale")
    assert (row.state_version, row.boundary_seq) == (0, 0)
    assert CANARY not in await dump(engine)


@pytest.mark.long
@pytest.mark.parametrize(
    "guards",
    [
        pytest.param(1, marks=pytest.mark.case("44a-erased")),
        pytest.param(0, marks=pytest.mark.control("44a-erased")),
    ],
)
async def test_control_the_late_save_is_refused_by_the_epoch_alone_and_by_nothing_else(
    begin: UnitOfWorkFactory, tenant: UUID, engine: AsyncEngine, monkeypatch: pytest.MonkeyPatch, guards: int
) -> None:
    """If the running row is not ended, the epoch still refuses; without both guards the canary is installed."""

    async def nothing(*_: Any, **__: Any) -> None:
        return None

    monkeypatch.setattr(erasure.ErasureService, "_requeue", nothing)
    if not guards:
        monkeypatch.setattr(Chunk, "is_stale", lambda *_: False)
    gate, think = Gate(), faithful()

    async def slow(request: SummaryRequest) -> Proposal:
        await gate(request)
        return await think(request)  # type: ignore[no-any-return]

    service = Service(begin, tenant, slow)
    conversation_id, canary = await with_canary(service, compactions=0)
    await service.say(conversation_id, 13)
    asked = CompactInput(keep_tail_messages=2)
    compacting = service.container.manual.compact(service.tenant, conversation_id, asked, timeout=PATIENCE)
    running = asyncio.create_task(compacting)
    await gate.reached.wait()
    await erase(service, conversation_id, canary)
    gate.go_on.set()
    await asyncio.wait([running])
    assert (running.exception() is not None) is bool(guards)
    assert (CANARY in await dump(engine)) is not bool(guards)


@pytest.mark.long
async def test_a_re_making_that_runs_is_superseded_by_the_next_erasure(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    gate = Gate()
    service = Service(begin, tenant, faithful(), faithful(), faithful(), gate, honest)
    conversation_id, canary = await with_canary(service)
    await erase(service, conversation_id, canary)
    running = asyncio.create_task(service.container.compaction.execute(service.queue.ids[-1]))
    await gate.reached.wait()
    late = (await history(service, conversation_id))[-1]
    await erase(service, conversation_id, late)
    gate.go_on.set()
    ended = await running
    assert ended is not None
    assert ended.status == "superseded"
    again = await service.container.compaction.execute(service.queue.ids[-1])
    assert again is not None
    assert (again.trigger, again.status) == ("erasure", "applied")


@pytest.mark.long
async def test_a_manual_call_waits_for_the_re_making_and_then_folds(service: Service) -> None:
    conversation_id, canary = await with_canary(service)
    await service.say(conversation_id, 13)
    await erase(service, conversation_id, canary)
    row = await compact(service, conversation_id)
    triggers = [(one.trigger, one.status) for one in await service.compactions(conversation_id)]
    assert triggers == [*[("manual", "applied")] * 3, ("erasure", "applied"), ("manual", "applied")]
    assert (row.trigger, row.messages_covered) == ("manual", 13)


async def test_while_a_turn_runs(begin: UnitOfWorkFactory, tenant: UUID, engine: AsyncEngine) -> None:
    go_on, thinking = asyncio.Event(), asyncio.Event()

    async def meanwhile() -> None:
        thinking.set()
        await go_on.wait()

    chat = ScriptedChatModel(Reply(pieces=("Noted.",), meanwhile=meanwhile))
    service = Service(begin, tenant, chat=chat)
    conversation_id = await service.conversation()
    handle = await service.container.chat.start(service.tenant, conversation_id, ChatInput(content=SECRET))
    await thinking.wait()
    (asked,) = await history(service, conversation_id)
    await erase(service, conversation_id, asked)
    go_on.set()
    await handle.result()
    stone, reply = await history(service, conversation_id)
    assert (stone.status, reply.content) == ("erased", "Noted.")
    assert CANARY not in await dump(engine)


async def test_a_restore_brings_nothing_back(service: Service, engine: AsyncEngine) -> None:
    conversation_id, canary = await with_canary(service)
    await erase(service, conversation_id, canary)
    for number in (1, 2, 3):
        await service.container.states.restore(service.tenant, conversation_id, number)
        assert CANARY not in told(await service.row(conversation_id))
    assert CANARY not in await dump(engine)


@pytest.mark.long
async def test_a_message_that_only_an_older_version_covers(service: Service, engine: AsyncEngine) -> None:
    conversation_id = await service.conversation(max_tokens=-1)
    await service.say(conversation_id, 14)
    await compact(service, conversation_id)
    (canary,) = await add(service, conversation_id, MessageDraft(role="user", content=SECRET))
    await service.say(conversation_id, 13)
    await compact(service, conversation_id)
    await service.container.states.restore(service.tenant, conversation_id, 1)
    await erase(service, conversation_id, canary)
    assert CANARY not in await dump(engine)
    assert all(row.trigger != "erasure" for row in await service.compactions(conversation_id))


async def test_a_replayed_append_shows_the_tombstone(service: Service) -> None:
    conversation_id = await service.conversation()
    idem = Idem(key="once", fingerprint="f")
    drafts = [MessageDraft(role="user", content=SECRET)]
    (first,) = await service.container.messages.append(service.tenant, conversation_id, drafts, idem=idem)
    await erase(service, conversation_id, first)
    (again,) = await service.container.messages.append(service.tenant, conversation_id, drafts, idem=idem)
    assert (again.id, again.status, again.content) == (first.id, "erased", "")


async def test_words_of_a_client_beside_the_text_go_too(service: Service, engine: AsyncEngine) -> None:
    conversation_id = await service.conversation(max_tokens=-1)
    await service.say(conversation_id, 2)
    canary, asked, _ = await add(
        service,
        conversation_id,
        MessageDraft(role="user", content="Yes.", event_type=CANARY, model=CANARY, metadata={"note": CANARY}),
        MessageDraft(role="assistant", content="", parts=({**call("c1"), "name": CANARY},)),
        MessageDraft(role="tool", content="", parts=({**result("c1", "x"), "name": CANARY},)),
    )
    assert (await dump(engine)).count(CANARY) == 5
    await erase(service, conversation_id, canary)
    await erase(service, conversation_id, asked)
    assert CANARY not in await dump(engine)
    assert (await history(service, conversation_id))[canary.seq - 1].event_type == "casual"


async def test_a_known_event_type_stays_on_the_tombstone(service: Service) -> None:
    conversation_id = await service.conversation(max_tokens=-1)
    (goal,) = await add(service, conversation_id, MessageDraft(role="user", content=SECRET, event_type="goal"))
    await erase(service, conversation_id, goal)
    assert (await history(service, conversation_id))[goal.seq - 1].event_type == "goal"


@pytest.mark.long
async def test_a_focus_that_quotes_the_erased_goes_and_another_stays(service: Service, engine: AsyncEngine) -> None:
    conversation_id, canary = await with_canary(service, compactions=1)
    for focus in (f"the {CANARY} matter", "what the crates cost"):
        await service.container.manual.compact(
            service.tenant, conversation_id, CompactInput(focus=focus), timeout=PATIENCE
        )
    assert [row.request.focus for row in await service.compactions(conversation_id)][-2:] == [
        f"the {CANARY} matter",
        "what the crates cost",
    ]
    await erase(service, conversation_id, canary)
    assert CANARY not in await dump(engine)
    focuses = [row.request.focus for row in await service.compactions(conversation_id)]
    assert [focus for focus in focuses if focus] == ["what the crates cost"]


async def test_a_typed_command_and_the_summary_that_answered_it(service: Service, engine: AsyncEngine) -> None:
    conversation_id, canary = await with_canary(service, compactions=0)
    await service.say(conversation_id, 13)
    typed = f"/compact the {CANARY} matter"
    handle = await service.container.chat.start(service.tenant, conversation_id, ChatInput(content=typed))
    answered = (await handle.result()).reply
    assert CANARY in answered.content
    await erase(service, conversation_id, canary)
    await erase(service, conversation_id, (await history(service, conversation_id))[-2])
    assert CANARY not in await dump(engine)
    kept = (await history(service, conversation_id))[-1]
    assert "- Crates 1 to" in kept.content


@pytest.mark.daily(1)
@pytest.mark.parametrize("is_typed", [True, False])
async def test_a_state_that_was_made_with_a_focus_loses_its_words_with_the_message_that_said_them(
    begin: UnitOfWorkFactory, tenant: UUID, engine: AsyncEngine, *, is_typed: bool
) -> None:
    """Only the focus brought the words into the state: the message itself is after all that was folded."""

    async def echoing(request: SummaryRequest) -> Proposal:
        answer = json.loads((await honest(request)).text)
        if request.focus:
            last = request.messages[-1].seq
            answer["logos"].append({"text": f"Crates for {request.focus}", "from": [last], "replaces": []})
            answer["conversation_summary"] += f" They were asked about {request.focus}."
        return Proposal(text=json.dumps(answer), finish="stop", model="fake")

    service = Service(begin, tenant, echoing)
    conversation_id = await service.conversation(max_tokens=-1)
    await service.say(conversation_id, 17)
    if is_typed:
        typed = ChatInput(content="/compact quillmarsh")
        said = (await (await service.container.chat.start(service.tenant, conversation_id, typed)).result()).message
    else:
        (said,) = await add(
            service, conversation_id, MessageDraft(role="user", content="The matter of quillmarsh is only ours.")
        )
        given = CompactInput(focus="quillmarsh", keep_tail_messages=2)
        await service.container.manual.compact(service.tenant, conversation_id, given, timeout=PATIENCE)
    before = await service.row(conversation_id)
    assert "quillmarsh" in told(before)
    assert before.boundary_seq < said.seq
    await erase(service, conversation_id, said)
    found = [line for line in (await dump(engine)).splitlines() if "quillmarsh" in line]
    assert not found
    assert "Crates 1 to" in told(await service.row(conversation_id)), "what did not draw on the focus stays"


async def test_nothing_that_was_read_of_texts_is_kept_by_the_process_that_erases(service: Service) -> None:
    conversation_id, told = await with_canary(service)
    asked: list[str] = []

    @memoized()
    def read(text: str) -> int:
        asked.append(text)
        return len(text)

    read(SECRET)
    await erase(service, conversation_id, told)
    read(SECRET)
    assert asked == [SECRET, SECRET]


async def test_no_compiled_statement_keeps_its_first_values_in_the_process_that_erases(
    monkeypatch: pytest.MonkeyPatch, database_url: str
) -> None:
    monkeypatch.setattr(database, "create_async_engine", create_async_engine)  # other engines of tests share statements
    engine = make_engine(database_url)
    begin = unit_of_work_factory(engine)
    service = Service(begin, await make_tenant(begin, "forgetful"), faithful())

    def kept() -> str:
        statements: Any = engine.sync_engine._compiled_cache
        return str([bind.value for one in statements.values() for bind in one.binds.values()])

    conversation_id, told = await with_canary(service, compactions=1)
    assert CANARY in kept(), "the control"
    await erase(service, conversation_id, told)
    assert CANARY not in kept()

    conversations = service.container.conversations
    other = (await conversations.create(service.tenant, NewConversation(title=CANARY))).conversation.id
    assert CANARY in kept(), "the control"
    await conversations.delete(service.tenant, other)
    assert CANARY not in kept()
    await engine.dispose()
