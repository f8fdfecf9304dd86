"""Two things that change a conversation at the same time: neither undoes the other.

Each has its control: the same with the guard taken out, which comes to nothing good.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import nullcontext, suppress
from datetime import timedelta
from functools import partial
from itertools import pairwise
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine
from structlog.testing import capture_logs

from app import bootstrap
from app.core.context.turn_options import TurnOptions
from app.core.model.conversation import QuietPeriod, Usage
from app.core.model.errors import (
    DependencyUnavailableError,
    ForkInProgressError,
    ModelFailedError,
    ModelUnavailableError,
    NotFoundError,
    SummarizerFailedError,
)
from app.core.model.live_context import sent_conversation
from app.core.model.model_io import CallSettings, ChatRequest, Proposal, StepEvent, SummaryRequest, ToolSpec
from app.core.model.records import Compaction, Page, Turn
from app.http.openai.conversations import create_openai_conversation
from app.http.openai.response_requests import ConversationRequest
from app.infrastructure import ids
from app.settings import Settings
from app.storage.repositories.conversations import ConversationRepository
from app.storage.repositories.idempotency import IdempotencyRepository
from app.storage.unit_of_work import UnitOfWork, UnitOfWorkFactory
from app.usecases.chat import live_contexts
from app.usecases.chat.chat_input import ChatInput
from app.usecases.chat.live_contexts import LiveContexts
from app.usecases.chat.reply import Answer
from app.usecases.chat.turn_handle import TurnHandle
from app.usecases.compaction import ending, saving
from app.usecases.compaction.job import Job
from app.usecases.compaction.manual import CompactInput
from app.usecases.files.attaching import NewFile
from app.usecases.history import export, removing
from app.usecases.history.conversations import NewConversation
from app.usecases.history.drafts import MessageDraft
from app.usecases.openai import forking, openings, stored_answers
from app.usecases.openai.answering import Prompt
from app.usecases.openai.conversation_names import ConversationName
from app.usecases.openai.forking import ForkPoint, ForkService
from app.usecases.openai.openings import Openings
from app.usecases.openai.retry_keys import RequestAttempt
from app.usecases.openai.stored_answers import Request
from app.usecases.shared.idempotency import Idem
from app.usecases.shared.resolve import Resolved
from tests.cases import guarded
from tests.fakes import Reply, ScriptedChatModel, ScriptedSummarizer
from tests.integration.services import WORDS, Gate, Service, history, honest
from tests.integration.test_set_aside import on_record
from tests.integration.test_turns import JUMP, chat, filled, start
from tests.integration.test_verification import (
    BALLAST,
    CACHE,
    LIE,
    TREE,
    TRUE,
    against_the_lie,
    answered,
    append,
    candidate,
    compact,
    newest,
    rows,
    verdicts,
    work,
)
from tests.unit.test_gate_digests import SERVER

PATIENCE = 30.0
GUARDED = pytest.mark.parametrize("is_guarded", [True, False], ids=["as it is", "control"])


class Held:
    """A step that waits until the test lets it continue."""

    def __init__(self, then: Callable[[Any], Awaitable[Proposal]]) -> None:
        self.reached = asyncio.Event()
        self.go_on = asyncio.Event()
        self._then = then

    async def __call__(self, request: Any) -> Proposal:
        self.reached.set()
        await self.go_on.wait()
        return await self._then(request)


async def no_answer(_: Any) -> Proposal:
    raise ModelUnavailableError("unauthorized", retryable=False)


async def message_at(service: Service, conversation_id: UUID, seq: int) -> UUID:
    async with service.begin(service.tenant) as uow:
        return (await uow.messages.at_seq(conversation_id, seq)).id


# --- the policy, and pins, while a compaction runs


@pytest.mark.daily(1)
@guarded("44a-changed")
async def test_a_budget_lowered_while_a_compaction_runs_is_met_at_once(
    begin: UnitOfWorkFactory, tenant: UUID, monkeypatch: pytest.MonkeyPatch, *, is_guarded: bool
) -> None:
    """The quiet period after a compaction follows the policy by which it was planned."""
    if not is_guarded:
        monkeypatch.setattr(Resolved, "has_same_rules", lambda *_: True)
    gate = Gate()
    service = Service(begin, tenant, gate)
    conversation_id = await service.conversation(context_window=16_000)
    await service.fill(conversation_id, 9_000)
    running = asyncio.create_task(service.container.compaction.execute(service.queue.ids[0]))
    await gate.reached.wait()
    changes = {"policy": {"context_window": 4_000}}
    await service.container.conversations.patch(tenant, conversation_id, changes)
    gate.go_on.set()
    ended = await asyncio.wait_for(running, PATIENCE)
    assert ended is not None
    assert ended.status == "applied"
    assert (await service.row(conversation_id)).context_tokens > 3_060

    due = await service.container.compaction.claim_due(tenant, conversation_id)
    assert (due is not None) == is_guarded
    if due is not None:
        await service.container.compaction.execute(due)
        assert (await service.row(conversation_id)).context_tokens < 2_601


async def anchored_while_compacted(
    begin: UnitOfWorkFactory, tenant: UUID, *, by_users: int
) -> tuple[Service, Compaction]:
    """A compaction under a policy without anchors, which changes to one that serves all of them while it runs.

    ``by_users`` is the number of messages that are nothing but an anchor; 0: the second compaction of a usual talk.
    """
    service = Service(begin, tenant)
    conversation_id = await service.conversation(max_tokens=-1, anchor_share=0.0, protect=[], recall="off")
    policy = (await service.row(conversation_id)).policy
    all_of_them = CompactInput(keep_tail_messages=0)
    if by_users:
        said = [MessageDraft(role="user", content=WORDS.format(seq=place)) for place in range(1, by_users + 1)]
        reply = MessageDraft(role="assistant", content="Noted.")
        await service.container.messages.append(tenant, conversation_id, [*said, reply])
    else:
        await service.say(conversation_id, 20)
        await service.container.manual.compact(tenant, conversation_id, all_of_them, timeout=30)
        await service.say(conversation_id, 8)
    gate = Gate()
    service.summarizer._script._entries = [gate]
    compacting = asyncio.create_task(service.container.manual.compact(tenant, conversation_id, all_of_them, timeout=30))
    await gate.reached.wait()
    await service.container.conversations.patch(tenant, conversation_id, {"policy": {**policy, "anchor_share": None}})
    gate.go_on.set()
    await asyncio.gather(compacting, return_exceptions=True)
    return service, (await service.compactions(conversation_id))[-1]


@pytest.mark.case("44a-changed")
async def test_sizes_are_by_the_rules_that_hold_when_a_state_is_stored(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    service, row = await anchored_while_compacted(begin, tenant, by_users=0)
    stored = await service.row(row.conversation_id)
    assert stored.layout is not None
    assert stored.layout.anchor_tokens
    assert (row.status, row.tokens_after) == ("applied", stored.context_tokens)
    assert (row.tokens_after or 0) < (row.tokens_before or 0)


@pytest.mark.case("44a-changed")
async def test_what_saves_nothing_by_the_rules_that_hold_now_is_not_stored(
    begin: UnitOfWorkFactory, tenant: UUID
) -> None:
    service, row = await anchored_while_compacted(begin, tenant, by_users=11)
    stored = await service.row(row.conversation_id)
    assert (row.status, row.reason, len(row.attempts)) == ("superseded", "stale", 1)
    assert (stored.state_version, stored.compression_count) == (0, 0)
    async with begin(tenant) as uow:
        assert not (await uow.segments.page(stored.id, Page(limit=10)))[0], "all of it is rolled back"


@pytest.mark.daily(1)
@pytest.mark.parametrize("is_unpinned", [True, False], ids=["unpinned", "control"])
async def test_what_is_unpinned_while_a_compaction_runs_ends_the_quiet_after_it(
    begin: UnitOfWorkFactory, tenant: UUID, *, is_unpinned: bool
) -> None:
    gate = Gate()
    service = Service(begin, tenant, gate)
    conversation_id = await filled(service, 0.72)
    pinned = await message_at(service, conversation_id, 3)
    await service.container.pins.pin(tenant, conversation_id, pinned)
    running = asyncio.create_task(service.container.compaction.execute(service.queue.ids[0]))
    await gate.reached.wait()
    if is_unpinned:
        await service.container.pins.unpin(tenant, conversation_id, pinned)
    gate.go_on.set()
    await asyncio.wait_for(running, PATIENCE)
    assert ((await service.row(conversation_id)).quiet == QuietPeriod()) == is_unpinned


# --- a turn that waited in vain, and how the other compaction ended


@pytest.mark.daily(1)
@guarded("41-vain")
async def test_a_turn_that_waited_for_what_failed_puts_no_other_turn_off(
    begin: UnitOfWorkFactory, tenant: UUID, monkeypatch: pytest.MonkeyPatch, *, is_guarded: bool
) -> None:
    """Otherwise turns would be cut for as long as a job may take, although none runs."""
    if not is_guarded:
        monkeypatch.setattr(ending, "_end_quiet_of_wait", _does_nothing)
    held = Held(no_answer)
    service = Service(begin, tenant, held, honest)
    conversation_id = await filled(service, sync_deadline=0.5)
    compacting = service.container.manual.compact(tenant, conversation_id, CompactInput(), timeout=PATIENCE)
    by_hand = asyncio.create_task(compacting)
    await held.reached.wait()
    first = await chat(service, conversation_id, JUMP)
    assert "compaction_deadline" in first.warnings
    held.go_on.set()
    with pytest.raises(SummarizerFailedError):
        await by_hand

    again = await chat(service, conversation_id, "And now?")
    assert (again.compaction is not None) == is_guarded
    is_slow = "compaction_deadline" in again.warnings  # on a busy machine half a second may be too short for a fold
    assert is_slow or (await service.row(conversation_id)).state_version == int(is_guarded)


async def _does_nothing(*_: object) -> None:
    return


async def test_a_deletion_while_a_turn_waits_for_a_compaction_is_no_defect(
    begin: UnitOfWorkFactory, tenant: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    held, looked = Held(no_answer), asyncio.Event()
    service = Service(begin, tenant, held, honest)
    conversation_id, compaction = await filled(service), service.container.compaction
    take = compaction.take

    async def noted(*given: Any) -> Compaction | None:
        looked.set()
        return await take(*given)

    monkeypatch.setattr(compaction, "take", noted)
    by_hand = asyncio.create_task(
        service.container.manual.compact(tenant, conversation_id, CompactInput(), timeout=PATIENCE)
    )
    await held.reached.wait()
    with capture_logs() as logs:
        waiting = asyncio.create_task(chat(service, conversation_id, JUMP))
        await asyncio.wait_for(looked.wait(), PATIENCE)
        await service.container.conversations.delete(tenant, conversation_id)
        with pytest.raises(NotFoundError):
            await asyncio.wait_for(waiting, PATIENCE)
    held.go_on.set()
    with suppress(NotFoundError):
        await by_hand
    assert [one["event"] for one in logs if one["log_level"] == "error"] == []


# --- going back while verdicts are made


async def judged_while_going_back(
    begin: UnitOfWorkFactory, tenant: UUID, meanwhile: Callable[[Service, UUID], Awaitable[object]]
) -> tuple[Service, UUID]:
    """The third state replaced what the second had told by a lie; meanwhile somebody goes back to the first.

    What the verifier finds would put back what the lie replaced.
    """
    held = Held(verdicts(against_the_lie))  # type: ignore[arg-type]  # a function

    async def third(request: SummaryRequest) -> Proposal:
        (old,) = (entry.id for entry in request.previous if entry.text == TRUE)
        return answered(candidate([(LIE, [], [old])], "Mr Brandt and the harbour were talked about."))

    service = Service(begin, tenant)
    made = ScriptedSummarizer(
        candidate([(CACHE, [1, 2], [])], "The build server was repaired."),
        candidate([(TRUE, [len(SERVER + BALLAST) + 3], [])], "The garden and the apple tree were discussed."),
        third,
        verifications=[held],
    )
    service.summarizer = made
    service.container.parts.models._summarizers[None] = made  # type: ignore[attr-defined]
    conversation_id = await service.conversation(anchor_share=0.0, protect=[], recall="off")
    for said in (SERVER + BALLAST, TREE + BALLAST, BALLAST + BALLAST):
        await append(service, conversation_id, said)
        assert (await compact(service, conversation_id)).status == "applied"
    assert LIE in str((await newest(service, conversation_id)).state)
    judging = asyncio.create_task(work(service, conversation_id))
    await asyncio.wait_for(held.reached.wait(), PATIENCE)
    await meanwhile(service, conversation_id)
    held.go_on.set()
    await asyncio.wait_for(judging, PATIENCE)
    return service, conversation_id


@pytest.mark.daily(1)
@guarded("44b")
async def test_verdicts_on_a_state_that_was_left_put_nothing_into_the_one_gone_back_to(
    begin: UnitOfWorkFactory, tenant: UUID, engine: AsyncEngine, *, is_guarded: bool
) -> None:
    """No erasure of its message would find an entry from after the boundary."""

    async def goes_back(service: Service, conversation_id: UUID) -> None:
        await service.container.states.restore(tenant, conversation_id, 1)
        if not is_guarded:
            async with engine.begin() as connection:
                await connection.execute(text("UPDATE conversations SET content_epoch = content_epoch - 1"))

    service, conversation_id = await judged_while_going_back(begin, tenant, goes_back)
    last = await newest(service, conversation_id)
    assert last.boundary_seq == len(SERVER + BALLAST)
    behind = [entry.text for entry in last.entries if max(entry.from_seqs, default=0) > last.boundary_seq]
    assert (behind == []) == is_guarded
    seq = len(SERVER + BALLAST) + 3
    await service.container.erasure.erase(tenant, conversation_id, await message_at(service, conversation_id, seq))
    assert (TRUE in str(await newest(service, conversation_id))) != is_guarded


@pytest.mark.case("44b")
async def test_a_state_gone_back_to_meanwhile_is_judged_itself(
    begin: UnitOfWorkFactory, tenant: UUID, engine: AsyncEngine
) -> None:
    async def goes_back(service: Service, conversation_id: UUID) -> None:
        await service.container.states.restore(tenant, conversation_id, 1)

    service, conversation_id = await judged_while_going_back(begin, tenant, goes_back)
    assert [(status, tries) for status, _, tries in await rows(engine, conversation_id)] == [("queued", 0)]
    asked = service.summarizer.verification_requests
    assert await work(service, conversation_id) == "verified"
    told = {claim.text for claim in asked[-1].claims}
    assert CACHE in told
    assert LIE not in told
    assert (await newest(service, conversation_id)).verified == "model"


# --- an erasure's run while its process ends


async def erased_with(service: Service) -> UUID:
    """Erase a message, so that the narrative has to be told again; returns the id of the compaction that does this."""
    conversation_id = await service.conversation(max_tokens=-1)
    await service.say(conversation_id, 20)
    view = await service.container.manual.compact(service.tenant, conversation_id, CompactInput(), timeout=PATIENCE)
    assert view.compaction.status == "applied"
    second = await message_at(service, conversation_id, 2)
    await service.container.erasure.erase(service.tenant, conversation_id, second)
    (row,) = [one for one in await service.compactions(conversation_id) if one.trigger == "erasure"]
    return row.id


@pytest.mark.daily(1)
@guarded("44e")
async def test_while_a_narrative_is_told_anew_the_process_works_on_nothing(
    begin: UnitOfWorkFactory, tenant: UUID, monkeypatch: pytest.MonkeyPatch, *, is_guarded: bool
) -> None:
    """Even if two processes are killed while they wait for the model, the conversation must not be set aside."""
    if not is_guarded:
        monkeypatch.setattr(Job, "_summarizer_off_record", lambda _, summarizer: summarizer)
    gate = Gate()
    service = Service(begin, tenant, honest, gate)
    running = asyncio.create_task(service.container.compaction.execute(await erased_with(service)))
    await asyncio.wait_for(gate.reached.wait(), PATIENCE)
    await service.container.work_records.drain()
    assert (await on_record(service) == []) == is_guarded
    gate.go_on.set()
    ended = await asyncio.wait_for(running, PATIENCE)
    assert ended is not None
    assert ended.status == "applied"


async def test_a_narrative_told_anew_is_served_by_the_policy_that_holds_then(
    begin: UnitOfWorkFactory, tenant: UUID
) -> None:
    gate = Gate()
    service = Service(begin, tenant, honest, gate)
    row_id = await erased_with(service)
    conversation_id = (await service.container.manual.get(tenant, row_id)).compaction.conversation_id
    running = asyncio.create_task(service.container.compaction.execute(row_id))
    await asyncio.wait_for(gate.reached.wait(), PATIENCE)
    before = await service.row(conversation_id)
    assert before.layout is not None
    assert before.layout.anchors
    changes = {"policy": {**before.policy, "anchor_share": 0.0}}
    await service.container.conversations.patch(tenant, conversation_id, changes)
    gate.go_on.set()
    ended = await asyncio.wait_for(running, PATIENCE)
    stored = await service.row(conversation_id)

    assert ended is not None
    assert (ended.status, stored.state_version) == ("applied", before.state_version + 1)
    assert stored.layout is not None
    assert stored.layout.anchors == ""


async def test_a_narrative_is_told_anew_though_a_file_is_removed_meanwhile(
    begin: UnitOfWorkFactory, tenant: UUID
) -> None:
    """Nothing would tell it again: the digest in its place would stay until the next compaction."""
    gate = Gate()
    service = Service(begin, tenant, honest, gate)
    row_id = await erased_with(service)
    conversation_id = (await service.container.manual.get(tenant, row_id)).compaction.conversation_id
    given = NewFile(name="a.txt", media_type="text/plain", data=b"The crates are blue.")
    file = await service.container.files.add(tenant, conversation_id, given)
    running = asyncio.create_task(service.container.compaction.execute(row_id))
    await asyncio.wait_for(gate.reached.wait(), PATIENCE)
    await service.container.files.remove(tenant, conversation_id, file.id)
    gate.go_on.set()
    ended = await asyncio.wait_for(running, PATIENCE)
    assert ended is not None
    assert ended.status == "applied"


async def test_a_narrative_that_is_not_told_in_time_leaves_its_call_on_record(
    begin: UnitOfWorkFactory, tenant: UUID
) -> None:
    """A call that was not answered in time is paid for all the same."""
    service = Service(begin, tenant, honest, Gate(), settings=Settings(job_seconds=2))
    row = await service.container.compaction.execute(await erased_with(service))
    assert row is not None
    assert (row.status, row.reason) == ("failed", "deadline")
    assert [attempt.reason for attempt in row.attempts] == ["deadline"]


# --- a history imported while its beginning is folded


@pytest.mark.daily(1)
@guarded("44c")
async def test_what_is_imported_while_a_model_thinks_is_not_read_under_the_lock(
    begin: UnitOfWorkFactory, tenant: UUID, monkeypatch: pytest.MonkeyPatch, *, is_guarded: bool
) -> None:
    due_at_save: list[int | None] = []
    save = saving._save

    async def noted(shell: Any, lease: Any, *given: Any) -> Any:
        due_at_save.append((await service.row(lease.conversation_id)).anchors_due_from)
        return await save(shell, lease, *given)

    monkeypatch.setattr(saving, "_save", noted)
    if not is_guarded:
        monkeypatch.setattr(saving, "find_due_anchors", _does_nothing)
    gate = Gate()
    service = Service(begin, tenant, gate)
    conversation_id = await filled(service, 0.72)
    running = asyncio.create_task(service.container.compaction.execute(service.queue.ids[0]))
    await asyncio.wait_for(gate.reached.wait(), PATIENCE)
    await service.say(conversation_id, 300, words=1)
    gate.go_on.set()
    ended = await asyncio.wait_for(running, PATIENCE)
    assert ended is not None
    assert ended.status == "applied"
    assert (due_at_save[0] is None) == is_guarded


# --- a reply that a provider keeps, while its conversation goes


async def noted_while_deleting(service: Service, conversation_id: UUID) -> int:
    """Let a reply come between the two halves of a deletion; returns how many copies are to be deleted then."""
    conversation = await service.row(conversation_id)
    turn = Turn(
        id=UUID(int=7),
        tenant_id=service.tenant,
        conversation_id=conversation_id,
        message_id=conversation.last_message_id or UUID(int=0),
        lease_until=conversation.created_at,
        started_at=conversation.created_at,
    )
    said = Answer(text="Yes.", model="maker:model", usage=Usage(), kept_id="resp_1")
    live = LiveContexts(service.container.chat._shell)
    async with service.begin(service.tenant) as uow:
        await removing.delete_conversation(uow, conversation_id)
        noting = asyncio.create_task(live.note_copy(turn, said, sent_conversation(conversation)))
        await asyncio.wait({noting}, timeout=0.5)
        await uow.commit()
    await asyncio.wait_for(noting, PATIENCE)
    async with service.begin(None) as uow:
        return len(await uow.copies.due(limit=9))


@pytest.mark.daily(1)
@guarded("44d")
async def test_what_a_provider_keeps_of_a_reply_that_came_as_its_conversation_went_is_deleted(
    begin: UnitOfWorkFactory, tenant: UUID, monkeypatch: pytest.MonkeyPatch, *, is_guarded: bool
) -> None:
    async def looks_only(uow: UnitOfWork, conversation_id: UUID, _: object) -> bool:
        return await uow.conversations.is_there(conversation_id)

    if not is_guarded:
        monkeypatch.setattr(live_contexts, "_is_unchanged", looks_only)
    service = Service(begin, tenant)
    conversation_id = await service.conversation()
    await service.say(conversation_id, 2)
    assert await noted_while_deleting(service, conversation_id) == int(is_guarded)


async def test_a_reply_to_a_message_that_is_erased_is_stopped(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    async def erase_and_think() -> None:
        question = (await history(service, conversation_id))[-1]
        await service.container.erasure.erase(tenant, conversation_id, question.id)
        await asyncio.sleep(PATIENCE)

    model = ScriptedChatModel(Reply(pieces=("Your code is 4711.",), meanwhile=erase_and_think), "Fine.")
    service = Service(begin, tenant, chat=model, settings=Settings(turn_heartbeat_seconds=0.05))
    conversation_id = await service.conversation()
    async with asyncio.timeout(5):
        stopped = await chat(service, conversation_id, "My code is 4711.")
    assert (stopped.reply.status, stopped.reply.content) == ("interrupted", "")
    assert (await chat(service, conversation_id, "Well?")).reply.content == "Fine."


# --- a fork while the broker is away


@pytest.mark.parametrize(
    "is_away",
    [
        pytest.param(True, id="away", marks=pytest.mark.case("32-fork")),
        pytest.param(False, id="control", marks=pytest.mark.control("32-fork")),
    ],
)
async def test_a_long_fork_is_made_while_the_broker_is_away(
    begin: UnitOfWorkFactory, tenant: UUID, monkeypatch: pytest.MonkeyPatch, *, is_away: bool
) -> None:
    """Control: if workers hear of the fork, the request leaves it to them."""
    monkeypatch.setattr("app.usecases.openai.forking.AT_ONCE", 10)
    monkeypatch.setattr("app.usecases.openai.forking.STEP", 8)
    service = Service(begin, tenant)
    conversation_id = await service.conversation()
    await service.say(conversation_id, 20, words=1)
    service.queue.away = is_away
    forks: ForkService = service.container.forks
    place, idem = ForkPoint(conversation_id=conversation_id, through_seq=18), Idem(key="fork", fingerprint="one")
    if is_away:
        fork = await forks.fork(tenant, place, idem)
        assert [one.content for one in await history(service, fork)] == [WORDS.format(seq=seq) for seq in range(1, 19)]
    else:
        with pytest.raises(ForkInProgressError):
            await forks.fork(tenant, place, idem)


@GUARDED
async def test_nobody_writes_between_the_messages_of_a_fork_that_are_still_to_be_copied(
    begin: UnitOfWorkFactory, tenant: UUID, monkeypatch: pytest.MonkeyPatch, *, is_guarded: bool
) -> None:
    """A fork is listed while it is copied, and stays half copied if the worker dies; a write continues the copying."""
    monkeypatch.setattr("app.usecases.openai.forking.AT_ONCE", 10)
    service = Service(begin, tenant)
    conversation_id = await service.conversation()
    await service.say(conversation_id, 20, words=1)
    forks: ForkService = service.container.forks
    place, idem = ForkPoint(conversation_id=conversation_id, through_seq=18), Idem(key="fork", fingerprint="one")
    with pytest.raises(ForkInProgressError):
        await forks.fork(tenant, place, idem)
    (fork,) = service.queue.forks
    if not is_guarded:
        monkeypatch.setattr("app.usecases.history.appending.refuse_while_copied", lambda *_: None)
    with pytest.raises(ForkInProgressError) if is_guarded else nullcontext():
        await service.container.messages.append(tenant, fork, [MessageDraft(role="user", content="Meanwhile.")])
    await service.container.outbox.drain()
    assert service.queue.later["fork"] == [fork] * is_guarded
    await forks.work(fork)
    said = [one.content for one in await history(service, fork)]
    assert (said == [WORDS.format(seq=seq) for seq in range(1, 19)]) == is_guarded
    await service.container.messages.append(tenant, fork, [MessageDraft(role="user", content="Now.")])


@pytest.mark.parametrize("copied", [10, 9], ids=["regenerated", "answered"])
async def test_no_model_is_asked_for_a_reply_to_a_fork_that_is_still_being_copied(
    begin: UnitOfWorkFactory, tenant: UUID, monkeypatch: pytest.MonkeyPatch, copied: int
) -> None:
    """The reply could not be stored between the messages that come."""
    monkeypatch.setattr("app.usecases.openai.forking.AT_ONCE", 5)
    monkeypatch.setattr("app.usecases.openai.forking.STEP", copied)
    service = Service(begin, tenant)
    conversation_id = await service.conversation()
    await service.say(conversation_id, 20, words=1)
    place, idem = ForkPoint(conversation_id=conversation_id, through_seq=18), Idem(key="fork", fingerprint="one")
    with pytest.raises(ForkInProgressError):
        await service.container.forks.fork(tenant, place, idem)
    (fork,) = service.queue.forks
    await service.container.forks._copied_further(await service.row(fork))
    given = ChatInput(regenerates=copied == 10)
    with pytest.raises(ForkInProgressError):
        await (await service.container.chat.start(tenant, fork, given)).result()
    assert service.chat_model.requests == []
    await service.container.forks.work(fork)
    assert {one.status for one in await history(service, fork)} == {"complete"}


@pytest.mark.parametrize("words", [30, 1], ids=["with a due compaction", "control"])
async def test_a_fork_goes_if_its_source_is_deleted_while_it_is_copied(
    begin: UnitOfWorkFactory, tenant: UUID, monkeypatch: pytest.MonkeyPatch, *, words: int
) -> None:
    """Control: if no compaction is due for what was copied."""
    monkeypatch.setattr("app.usecases.openai.forking.AT_ONCE", 10)
    monkeypatch.setattr("app.usecases.openai.forking.STEP", 8)
    service = Service(begin, tenant)
    conversation_id = await service.conversation()
    await service.say(conversation_id, 20, words=words)
    forks: ForkService = service.container.forks
    place, idem = ForkPoint(conversation_id=conversation_id, through_seq=18), Idem(key="fork", fingerprint="one")
    with pytest.raises(ForkInProgressError):
        await forks.fork(tenant, place, idem)
    (fork,) = service.queue.forks
    await forks._copied_further(await service.row(fork))
    await service.container.conversations.delete(tenant, conversation_id)
    await forks.work(fork)
    with pytest.raises(NotFoundError):
        await service.row(fork)


async def test_a_fork_that_is_made_while_its_user_is_erased_does_not_stay(
    begin: UnitOfWorkFactory, tenant: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = Service(begin, tenant)
    made = await service.container.conversations.create(tenant, NewConversation(user_id="anna"))
    await service.say(made.conversation.id, 6)
    removal, read = service.container.removal, forking._next_copies
    erasure = await removal.erase_user(tenant, "anna")

    async def erase() -> None:
        while await removal.status(erasure.id):
            await removal.work()

    async def read_before_the_erasure(*given: Any) -> list[MessageDraft]:
        found = await read(*given)
        await asyncio.wait({erasing}, timeout=0.3)  # it may have to wait for the fork
        return found

    monkeypatch.setattr(forking, "_next_copies", read_before_the_erasure)
    place, idem = ForkPoint(conversation_id=made.conversation.id, through_seq=4), Idem(key="fork", fingerprint="one")
    copying = asyncio.create_task(service.container.forks.fork(tenant, place, idem))
    erasing = asyncio.create_task(erase())
    await asyncio.wait_for(asyncio.gather(copying, erasing, return_exceptions=True), PATIENCE)
    async with begin(tenant) as uow:
        assert await uow.conversations.of_user("anna", limit=10) == []


# --- what goes with a response, whatever the clocks of its processes say


@pytest.fixture
def set_clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[timedelta], None]:
    """Sets how far the clock that makes the ids is off."""
    off = timedelta()

    def new_id() -> UUID:
        return UUID(
            int=ids.new_id().int + (round(off.total_seconds() * 1_000) << 80)
        )  # its first 48 bits hold the time

    def sets(by: timedelta) -> None:
        nonlocal off
        off = by

    monkeypatch.setattr(bootstrap, "new_id", new_id)
    return sets


async def left_after_deleting_response_to(service: Service, conversation_id: UUID, question: str) -> list[str]:
    """Delete the response that answered this question, and return the contents that are not erased."""
    said = await history(service, conversation_id)
    reply = next(after for before, after in pairwise(said) if before.content == question)
    async with service.begin(service.tenant) as uow:
        turn = await uow.turns.replied_by(conversation_id, {reply.id})
    assert turn is not None
    await service.container.openai.responses.delete(service.tenant, turn.id)
    return [message.content for message in await history(service, conversation_id) if message.status != "erased"]


async def ask_afresh(service: Service, tries: int | None, own: Idem | None = None) -> None:
    """Send a request that names no conversation, like an SDK that counts its tries, or with a key of its own."""
    prompt, attempt = (
        Prompt(messages=(MessageDraft(role="user", content="One?"),)),
        RequestAttempt(body=b"{}", tries=tries, own=own),
    )
    request = Request(prompt=prompt, attempt=attempt, patience=5)
    begun = await service.container.openai.stored.in_new_conversation(service.tenant, request)
    await asyncio.wait_for(begun.handle.result(), PATIENCE)


@guarded("43-died")
async def test_a_retry_takes_up_the_turn_that_failed_for_the_first_try(
    begin: UnitOfWorkFactory, tenant: UUID, monkeypatch: pytest.MonkeyPatch, *, is_guarded: bool
) -> None:
    """Control: the note about the turn does not say which message it answers."""
    if not is_guarded:
        monkeypatch.setattr("app.usecases.openai.openings.ref_of", lambda turn: {"turn_id": str(turn.id)})
    service = Service(begin, tenant, chat=ScriptedChatModel(ModelUnavailableError("server_error"), "At last."))
    with pytest.raises(ModelFailedError):
        await ask_afresh(service, 0)
    with nullcontext() if is_guarded else pytest.raises(KeyError):
        await ask_afresh(service, 1)
    (made,), _ = await service.container.conversations.page(tenant, Page(limit=10))
    said = [one.content for one in await history(service, made.conversation.id)]
    assert said == ["One?", *["At last."] * is_guarded]


@guarded("43-died")
async def test_a_retry_finds_the_turn_whose_process_died_as_it_had_begun(
    begin: UnitOfWorkFactory, tenant: UUID, monkeypatch: pytest.MonkeyPatch, *, is_guarded: bool
) -> None:
    """Control: if neither the turn nor its conversation is noted when it begins, the model is asked again."""

    async def die(*_: object) -> None:
        raise asyncio.CancelledError

    async def note_nothing(*_: object) -> None:
        pass

    service = Service(begin, tenant)
    with monkeypatch.context() as dying:
        dying.setattr(service.container.openai.stored, "_begun_turn", die)
        if not is_guarded:
            dying.setattr(Openings, "note", note_nothing)
            dying.setattr(stored_answers, "_key_of_new_conversation", lambda *_: None)
        with pytest.raises(asyncio.CancelledError):
            await ask_afresh(service, 0)
    await ask_afresh(service, 1)
    made, _ = await service.container.conversations.page(tenant, Page(limit=10))
    assert len(made) == (1 if is_guarded else 2)


@pytest.mark.daily(2)
@guarded("44f")
@pytest.mark.parametrize("is_keyed", [True, False], ids=["key", "count"])
async def test_a_retry_goes_on_in_the_conversation_of_a_try_that_died_before_its_turn(
    begin: UnitOfWorkFactory, tenant: UUID, monkeypatch: pytest.MonkeyPatch, *, is_keyed: bool, is_guarded: bool
) -> None:
    """Control: if the conversation is made under no key, the retry makes another one, and the first stays empty."""

    async def die(*_: object, **__: object) -> None:
        raise asyncio.CancelledError

    async def drop_nothing(*_: object) -> None:
        pass

    if not is_guarded:
        monkeypatch.setattr(stored_answers, "_key_of_new_conversation", lambda *_: None)
    monkeypatch.setattr(openings, "PATIENCE", 0.1)
    service = Service(begin, tenant)
    own = Idem(key="a key", fingerprint="a body") if is_keyed else None
    with monkeypatch.context() as dying:
        dying.setattr(service.container.chat, "start", die)
        dying.setattr(Openings, "drop", drop_nothing)
        with pytest.raises(asyncio.CancelledError):
            await ask_afresh(service, None if is_keyed else 0, own)
    for tries in (1, 2):
        await ask_afresh(service, None if is_keyed else tries, own)
    made, _ = await service.container.conversations.page(tenant, Page(limit=10))
    assert sorted([one.conversation.last_seq for one in made]) == ([2] if is_guarded else [0, 2])
    if not is_keyed:
        await ask_afresh(service, 0)
        again, _ = await service.container.conversations.page(tenant, Page(limit=10))
        assert len(again) == len(made) + 1, "who says the same again means it"


@pytest.mark.parametrize("is_freed", [True, False], ids=["guarded", "control"])
async def test_a_key_whose_request_was_refused_begins_a_conversation_when_it_is_sent_again(
    begin: UnitOfWorkFactory, tenant: UUID, monkeypatch: pytest.MonkeyPatch, *, is_freed: bool
) -> None:
    """Control: if the key goes on standing for the conversation that was dropped, nothing is found under it."""

    async def refuse(*_: object, **__: object) -> None:
        raise DependencyUnavailableError("not now")

    async def delete_nothing(*_: object) -> None:
        pass

    service, own = Service(begin, tenant), Idem(key="a key", fingerprint="a body")
    with monkeypatch.context() as refusing:
        refusing.setattr(service.container.chat, "start", refuse)
        if not is_freed:
            refusing.setattr(IdempotencyRepository, "delete", delete_nothing)
        with pytest.raises(DependencyUnavailableError):
            await ask_afresh(service, None, own)
    with nullcontext() if is_freed else pytest.raises(NotFoundError):
        await ask_afresh(service, None, own)
    made, _ = await service.container.conversations.page(tenant, Page(limit=10))
    assert [one.conversation.last_seq for one in made] == [2] * is_freed


@pytest.mark.parametrize("is_followed", [True, False], ids=["failed", "control"])
async def test_a_response_that_fails_while_it_is_cancelled_is_told_as_failed(
    begin: UnitOfWorkFactory, tenant: UUID, monkeypatch: pytest.MonkeyPatch, *, is_followed: bool
) -> None:
    """Control: if the turn cannot be followed and goes on, nobody says that it was cancelled."""
    held = asyncio.Event()

    class Failing(ScriptedChatModel):
        async def step(self, request: ChatRequest) -> AsyncIterator[StepEvent]:
            await held.wait()
            async for event in super().step(request):
                yield event

    async def fail(*_: object) -> None:
        if is_followed:
            held.set()

    async def break_off(_: TurnHandle) -> None:
        raise DependencyUnavailableError("the service is shutting down")

    service = Service(begin, tenant, chat=Failing(ModelUnavailableError("server_error")))
    conversation_id = await service.conversation()
    await start(service, conversation_id, "One?")
    async with begin(tenant) as uow:
        turn = await uow.turns.running(conversation_id)
    assert turn is not None
    monkeypatch.setattr(service.container.chat, "interrupt", fail)
    if not is_followed:
        monkeypatch.setattr(TurnHandle, "result", break_off)
    with nullcontext() if is_followed else pytest.raises(DependencyUnavailableError):
        cancelled = await asyncio.wait_for(service.container.openai.responses.cancel(tenant, turn.id), PATIENCE)
        assert cancelled.turn.status == "failed"
    held.set()


@pytest.mark.daily(1)
@guarded("34-clocks")
async def test_a_response_is_deleted_with_its_own_input_alone(
    begin: UnitOfWorkFactory,
    tenant: UUID,
    engine: AsyncEngine,
    set_clock: Callable[[timedelta], None],
    *,
    is_guarded: bool,
) -> None:
    """The turn before was made by a process whose clock is an hour ahead; the first messages came without a turn."""
    service = Service(begin, tenant)
    conversation_id = await service.conversation()
    await append(service, conversation_id, ["Kept from before.", "So it was."])
    for number, minutes in enumerate((0, 60, 2)):
        set_clock(timedelta(minutes=minutes))
        await chat(service, conversation_id, f"Question {number}.")
    if not is_guarded:
        async with engine.begin() as connection:
            await connection.execute(text("UPDATE turns SET input_from_seq = 1"))
    left = await left_after_deleting_response_to(service, conversation_id, "Question 2.")
    stays = ["Kept from before.", "So it was.", "Question 0.", "All right.", "Question 1.", "All right."]
    assert (left == stays) == is_guarded


async def test_a_response_is_deleted_with_the_history_that_its_request_brought(
    begin: UnitOfWorkFactory, tenant: UUID
) -> None:
    service = Service(begin, tenant)
    conversation_id = await service.conversation()
    await append(service, conversation_id, ["A", "B", "C", "D"])
    brought = (MessageDraft(role="user", content="E"), MessageDraft(role="assistant", content="F"))
    given = ChatInput(history=brought, content="G")
    handle = await service.container.chat.start(tenant, conversation_id, given)
    await asyncio.wait_for(handle.result(), PATIENCE)
    assert await left_after_deleting_response_to(service, conversation_id, "G") == ["A", "B", "C", "D"]


async def test_a_message_that_a_dead_turn_left_goes_with_the_response_that_answers_it(
    begin: UnitOfWorkFactory, tenant: UUID
) -> None:
    service = Service(begin, tenant, chat=ScriptedChatModel(ModelUnavailableError("server_error"), "At last."))
    conversation_id = await service.conversation()
    await append(service, conversation_id, ["A", "B"])
    brought = (MessageDraft(role="user", content="C"), MessageDraft(role="assistant", content="D"))
    given, idem = ChatInput(history=brought, content="E"), Idem(key="one", fingerprint="one")
    for _ in range(2):
        handle = await service.container.chat.start(tenant, conversation_id, given, idem=idem)
        with suppress(ModelFailedError):
            await asyncio.wait_for(handle.result(), PATIENCE)
    assert await left_after_deleting_response_to(service, conversation_id, "E") == ["A", "B"]


@guarded("34-clocks")
async def test_a_page_shows_earlier_replies_while_a_turn_runs_whatever_the_clocks_say(
    begin: UnitOfWorkFactory,
    tenant: UUID,
    engine: AsyncEngine,
    set_clock: Callable[[timedelta], None],
    *,
    is_guarded: bool,
) -> None:
    held = asyncio.Event()
    chat_model = ScriptedChatModel("First.", Reply(pieces=("Second.",), meanwhile=held.wait))
    service = Service(begin, tenant, chat=chat_model)
    conversation_id = await service.conversation()
    set_clock(timedelta(minutes=60))
    await chat(service, conversation_id, "One?")
    set_clock(timedelta(0))
    handle = await start(service, conversation_id, "Two?")
    if not is_guarded:
        async with engine.begin() as connection:
            await connection.execute(text("UPDATE turns SET begun_at_seq = 0"))
    thread = await service.container.ui_threads.page(tenant, conversation_id, Page(limit=10, order="asc"))
    held.set()
    await asyncio.wait_for(handle.result(), PATIENCE)
    shown = [message.content for entry in thread.entries for message in entry.messages]
    assert (shown == ["One?", "First.", "Two?"]) == is_guarded


# --- a request that is sent again after its turn died


@pytest.mark.case("43-died")
async def test_a_request_taken_up_again_is_answered_as_it_asked(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    """Control: the first try shows the instructions and tools of the request."""
    chat_model = ScriptedChatModel(ModelUnavailableError("server_error"), "At last.")
    service = Service(begin, tenant, chat=chat_model)
    conversation_id = await service.conversation()
    tool = ToolSpec(name="weather", description="Tells the weather.", parameters={"type": "object"})
    prompt = Prompt(
        messages=(MessageDraft(role="user", content="And in Porto?"),),
        options=TurnOptions(instructions="Answer in rhymes.", tools=(tool,), settings=CallSettings(temperature=0.5)),
    )
    own = Idem(key="one", fingerprint="one")
    request = Request(
        prompt=prompt, attempt=RequestAttempt(body=b"{}", own=own), patience=PATIENCE, echo={"metadata": {}}
    )
    begun = []
    for _ in range(2):
        begun.append(await service.container.openai.stored.in_conversation(tenant, conversation_id, request))
        with suppress(ModelFailedError):
            await asyncio.wait_for(begun[-1].handle.result(), PATIENCE)
    first, second = chat_model.requests
    assert "weather" in [one.name for one in first.tools]
    assert "Answer in rhymes." in first.messages[0].content
    assert (second.tools, second.settings) == (first.tools, first.settings)
    assert second.messages == first.messages
    async with begin(tenant) as uow:
        assert (await uow.turns.get(begun[-1].turn_id)).request == {"metadata": {}}


async def test_a_request_goes_on_from_a_response_although_another_one_has_just_begun_to(
    begin: UnitOfWorkFactory, tenant: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The turn of the other request runs when this one is about to begin: this one does not wait, and gets a fork."""
    may_end = asyncio.Event()

    async def held() -> None:
        await may_end.wait()

    model = ScriptedChatModel("First.", Reply(pieces=("Slowly.",), meanwhile=held), "At once.")
    service = Service(begin, tenant, chat=model)
    answers, chat = service.container.openai.stored, service.container.chat
    others, start = [], chat.start

    def asking(content: str) -> Request:
        prompt = Prompt(messages=(MessageDraft(role="user", content=content),))
        return Request(prompt=prompt, attempt=RequestAttempt(body=content.encode()), patience=5)

    async def start_late(*args: Any, **named: Any) -> TurnHandle:
        monkeypatch.setattr(chat, "start", start)
        others.append(await answers.after_response(tenant, first.turn_id, asking("Two?")))
        while len(model.requests) < 2:  # noqa: ASYNC110 - the model has no event for it
            await asyncio.sleep(0.01)
        return await start(*args, **named)

    first = await answers.in_new_conversation(tenant, asking("One?"))
    await asyncio.wait_for(first.handle.result(), PATIENCE)
    monkeypatch.setattr(chat, "start", start_late)
    fork = await answers.after_response(tenant, first.turn_id, asking("Or?"))
    said = [(await asyncio.wait_for(fork.handle.result(), PATIENCE)).reply.content]
    may_end.set()
    said.append((await asyncio.wait_for(others[0].handle.result(), PATIENCE)).reply.content)
    assert said == ["At once.", "Slowly."]
    assert (fork.forked_from, others[0].conversation.id) == (first.conversation.id, first.conversation.id)


async def test_a_first_message_under_a_name_is_stored_once_although_another_request_brought_it_meanwhile(
    begin: UnitOfWorkFactory, tenant: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other request is answered after this one has read that nothing is stored: so this one asks again."""
    service = Service(begin, tenant, chat=ScriptedChatModel("First.", "Second."))
    stored, chat = service.container.openai.stored, service.container.chat
    prompt = Prompt(messages=(MessageDraft(role="user", content="Hello"),))
    request = Request(prompt=prompt, attempt=RequestAttempt(body=b"{}"), patience=5)
    start = chat.start

    async def answered() -> UUID:
        begun = await stored.under_name(tenant, ConversationName(text="a chat"), request, only_new=False)
        assert begun is not None
        await asyncio.wait_for(begun.handle.result(), PATIENCE)
        return begun.conversation.id

    async def start_late(*args: Any, **named: Any) -> TurnHandle:
        monkeypatch.setattr(chat, "start", start)
        await answered()
        return await start(*args, **named)

    monkeypatch.setattr(chat, "start", start_late)
    said = await history(service, await answered())
    assert [(message.content, message.status) for message in said] == [
        ("Hello", "complete"),
        ("First.", "superseded"),
        ("Second.", "complete"),
    ]


@pytest.mark.parametrize("is_first", [True, False], ids=["first try", "sent again"])
async def test_a_conversation_that_is_made_again_in_vain_is_kept_if_there_is_something_in_it(
    begin: UnitOfWorkFactory, tenant: UUID, monkeypatch: pytest.MonkeyPatch, *, is_first: bool
) -> None:
    """Repeat the same request under its key, with the database away for a moment."""
    service = Service(begin, tenant)
    attempt = RequestAttempt(body=b"{}", own=Idem(key="make", fingerprint="make"))
    item = {"type": "message", "role": "user", "content": "Keep this."}
    body = ConversationRequest.model_validate({"items": [item]})
    create = partial(create_openai_conversation, service.container, tenant, attempt, body)
    if not is_first:
        await create()

    async def away(*_: object, **__: object) -> None:
        raise DependencyUnavailableError("the database is away")

    monkeypatch.setattr(service.container.messages, "append", away)
    with pytest.raises(DependencyUnavailableError):
        await create()
    async with begin(tenant) as uow:
        rows, _ = await uow.conversations.page(Page(limit=10), user_id=None)
    assert [row.last_seq for row in rows] == ([] if is_first else [1])


# --- an export while its conversation is deleted


@guarded("44g")
@pytest.mark.parametrize("read", ["messages", "files"])
async def test_an_export_of_what_is_deleted_meanwhile_does_not_end_as_if_it_were_whole(
    begin: UnitOfWorkFactory, tenant: UUID, monkeypatch: pytest.MonkeyPatch, read: str, *, is_guarded: bool
) -> None:
    monkeypatch.setattr(export, "PAGE", 2)
    service = Service(begin, tenant)
    conversation_id = await service.conversation()
    await append(service, conversation_id, ["One.", "Two.", "Three."])
    for name in ("a.txt", "b.txt"):
        await service.container.files.add(
            tenant, conversation_id, NewFile(name=name, media_type="text/plain", data=name.encode())
        )
    exports = service.container.export
    pieces: AsyncIterator[Any] = (
        exports.messages(tenant, conversation_id, through_seq=3)
        if read == "messages"
        else exports.files(tenant, conversation_id)
    )
    await anext(pieces)
    await service.container.conversations.delete(tenant, conversation_id)
    if not is_guarded:
        monkeypatch.setattr(ConversationRepository, "get", _does_nothing)
    with pytest.raises(NotFoundError) if is_guarded else nullcontext():
        [one async for one in pieces]
