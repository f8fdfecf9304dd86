"""Messages before the first fold are stored without anchors; once needed, the same are found as at an append."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final
from uuid import UUID

import pytest

from app.core.model.anchors import Anchor
from app.core.model.conversation import Conversation
from app.core.model.errors import NotFoundError, TooLargeError
from app.core.model.records import Page
from app.settings import Settings
from app.storage.unit_of_work import UnitOfWorkFactory
from app.usecases.compaction import run, saving
from app.usecases.compaction.manual import CompactInput
from app.usecases.history import appending, due_anchors, preparing
from app.usecases.history.due_anchors import DueMessages, effects_of_due
from app.usecases.openai.forking import ForkPoint
from app.usecases.shared import retries
from app.usecases.shared.idempotency import Idem
from tests.fakes import ScriptedChatModel
from tests.integration.services import Gate, Service, block
from tests.integration.test_anchors import (
    ANSWER,
    ENDPOINT,
    FACTS,
    MYSQL,
    PATIENCE,
    POSTGRES,
    QUESTION,
    anchors,
    folded,
    said,
)
from tests.integration.test_regenerating import FRIDAY, MONDAY, again
from tests.integration.test_turns import chat

TALK: Final = (POSTGRES, QUESTION, *FACTS, MYSQL, ENDPOINT, ANSWER, "Nice weather today.", FRIDAY, MONDAY)


@pytest.fixture
def service(begin: UnitOfWorkFactory, tenant: UUID) -> Service:
    return Service(begin, tenant)


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Let appends find anchors before the first fold too, from the call on."""

    def begin() -> None:
        for module in (appending, preparing):
            monkeypatch.setattr(module, "defers_anchors", lambda _: False)

    return begin


async def stored(service: Service, conversation_id: UUID) -> list[Anchor]:
    """The stored anchors, without a search for more."""
    async with service.begin(service.tenant) as uow:
        found, _ = await uow.anchors.page(conversation_id, Page(limit=100, order="asc"))
        return found


async def of_the_store(service: Service, conversation_id: UUID) -> list[str]:
    """The statuses of the anchors about the store's database."""
    return [one.status for one in await stored(service, conversation_id) if one.content in {POSTGRES, MYSQL}]


def shapes(found: list[Anchor]) -> list[tuple[Any, ...]]:
    places = {one.id: (one.seq, one.offset) for one in found}
    return [
        (one.seq, one.offset, one.type, one.content, one.status, places.get(one.superseded_by or one.id), one.speaker)
        for one in found
    ]


@pytest.mark.daily(1)
@pytest.mark.parametrize("step", [1, 4, due_anchors.STEP])
async def test_they_are_those_that_appends_would_have_found(
    service: Service, monkeypatch: pytest.MonkeyPatch, at_once: Callable[[], None], step: int
) -> None:
    monkeypatch.setattr(due_anchors, "STEP", step)
    later, before = await service.conversation(), await service.conversation()
    for text in TALK:
        await said(service, later, text)
    assert await stored(service, later) == []
    before_reading = await service.row(later)
    found = await anchors(service, later)
    assert (await service.row(later)) == replace(before_reading, anchors_due_from=None), "nothing else is written"
    at_once()
    for text in TALK:
        await said(service, before, text)

    assert shapes(found) == shapes(await stored(service, before))
    assert {one.status for one in found} == {"active", "superseded"}
    assert (await service.row(later)).anchors_due_from is None


async def test_what_is_said_after_they_were_found_is_found_too(service: Service) -> None:
    conversation_id = await service.conversation()
    await said(service, conversation_id, POSTGRES)
    await anchors(service, conversation_id)
    await said(service, conversation_id, "Nice weather today.", MYSQL)
    assert (await service.row(conversation_id)).anchors_due_from == 2
    assert [(one.seq, one.status) for one in await anchors(service, conversation_id)] == [
        (1, "superseded"),
        (3, "active"),
    ]


async def test_the_first_fold_serves_them_and_appends_find_them_from_then_on(service: Service) -> None:
    conversation_id = await service.conversation()
    await said(service, conversation_id, "Good morning.", POSTGRES)
    await folded(service, conversation_id)
    assert POSTGRES in await block(service, conversation_id)
    await said(service, conversation_id, MYSQL)
    assert (await service.row(conversation_id)).anchors_due_from is None
    assert POSTGRES not in await block(service, conversation_id)
    assert await of_the_store(service, conversation_id) == ["superseded", "active"]


@pytest.mark.parametrize("tries", [1, retries.MAX_TRIES])
async def test_the_first_fold_heeds_what_is_said_while_the_model_writes(
    begin: UnitOfWorkFactory, tenant: UUID, monkeypatch: pytest.MonkeyPatch, tries: int
) -> None:
    monkeypatch.setattr(retries, "MAX_TRIES", tries)
    gate = Gate()
    service = Service(begin, tenant, gate)
    conversation_id = await service.conversation()
    await said(service, conversation_id, "Good morning.", POSTGRES)
    await service.say(conversation_id, 12)
    compacting = asyncio.create_task(
        service.container.manual.compact(service.tenant, conversation_id, CompactInput(), timeout=PATIENCE)
    )
    await gate.reached.wait()
    await said(service, conversation_id, MYSQL, *["It is a long way to the harbour, and wet."] * 60)
    assert await of_the_store(service, conversation_id) == ["active"]
    gate.go_on.set()
    await asyncio.wait_for(compacting, PATIENCE)

    assert (await service.row(conversation_id)).anchors_due_from is None
    assert await of_the_store(service, conversation_id) == ["superseded", "active"]
    assert POSTGRES not in await block(service, conversation_id)


async def test_a_dry_run_reckons_with_them(service: Service) -> None:
    conversation_id = await service.conversation()
    await said(service, conversation_id, "Good morning.", POSTGRES)
    await service.say(conversation_id, 12)
    manual = service.container.manual
    plan = await manual.compact(service.tenant, conversation_id, CompactInput(dry_run=True), timeout=PATIENCE)
    assert await of_the_store(service, conversation_id) == ["active"]
    again = await manual.compact(service.tenant, conversation_id, CompactInput(dry_run=True), timeout=PATIENCE)
    assert plan.compaction.tokens_after == again.compaction.tokens_after


async def test_a_context_that_leaves_messages_out_shows_them(service: Service) -> None:
    conversation_id = await service.conversation(triggers=[], protect=[])
    await said(service, conversation_id, POSTGRES)
    await service.say(conversation_id, 40, words=4)
    whole = await service.container.context.assemble(service.tenant, conversation_id, 100_000)
    assert await stored(service, conversation_id) == [], "a whole one needs none"
    assert POSTGRES in [message.content for message in whole.messages]
    cut = await service.container.context.assemble(service.tenant, conversation_id, 600)
    assert cut.truncated is not None
    assert await of_the_store(service, conversation_id) == ["active"]
    assert POSTGRES in "".join(message.content for message in cut.messages)
    assert POSTGRES not in [message.content for message in cut.messages]


async def test_a_reply_that_gave_way_changes_nothing(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    service = Service(begin, tenant, chat=ScriptedChatModel(MONDAY, "I see."))
    conversation_id = await service.conversation()
    await said(service, conversation_id, FRIDAY, role="assistant")
    await chat(service, conversation_id, "When does it come?")
    await again(service, conversation_id)
    found = await anchors(service, conversation_id)
    assert [(one.seq, one.status) for one in found] == [(1, "active"), *((3, "withdrawn") for _ in found[1:])]
    assert len(found) > 1


async def test_nothing_erased_is_kept_of_what_was_being_read(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    conversation_id = await service.conversation()
    first, *_ = await said(service, conversation_id, POSTGRES, ENDPOINT, "And so on. " * 300)
    loop = asyncio.get_running_loop()
    erasing = [service.container.erasure.erase(service.tenant, conversation_id, first.id)]
    read = list[DueMessages]()

    def disturbed(due: DueMessages) -> Any:
        read.append(due)
        if erasing:
            asyncio.run_coroutine_threadsafe(erasing.pop(), loop).result(PATIENCE)
        return effects_of_due(due)

    monkeypatch.setattr(due_anchors, "effects_of_due", disturbed)
    assert [one.seq for one in await anchors(service, conversation_id)] == [2]
    assert [POSTGRES in str(due.messages) for due in read] == [True, False]


async def test_a_fold_by_a_version_that_finds_none_is_laid_out_again_with_them(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def none(*_: Any) -> None: ...

    async def unchanged(_: Any, __: Any, conversation: Conversation, **___: Any) -> Conversation:
        return conversation

    conversation_id = await service.conversation()
    await said(service, conversation_id, "Good morning.", POSTGRES)
    with monkeypatch.context() as before:
        before.setattr(run, "find_due_anchors", none)
        before.setattr(saving, "find_due_anchors", none)
        before.setattr(saving, "find_due_anchors_within", unchanged)
        await folded(service, conversation_id)
    before_that = (await service.row(conversation_id)).layout
    await anchors(service, conversation_id)
    row = await service.row(conversation_id)

    assert before_that is not None
    assert POSTGRES not in before_that.anchors
    assert row.layout is not None
    assert POSTGRES in row.layout.anchors
    assert row.anchors_due_from is None


async def test_two_that_look_at_once_find_them_once(service: Service) -> None:
    conversation_id = await service.conversation()
    await said(service, conversation_id, *TALK)
    found = await asyncio.gather(*(anchors(service, conversation_id) for _ in range(4)))
    assert all(shapes(one) == shapes(found[0]) for one in found)
    assert len(found[0]) > len(FACTS)


async def test_a_message_that_takes_too_long_has_none_and_keeps_nobody_from_theirs(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    conversation_id = await service.conversation()
    await said(service, conversation_id, *["Nice weather today."] * 10, POSTGRES, "Endless.", ENDPOINT)

    def reading(due: DueMessages) -> Any:
        if any(message.content == "Endless." for message in due.messages):
            raise TooLargeError("it took too long")
        return effects_of_due(due)

    monkeypatch.setattr(due_anchors, "effects_of_due", reading)
    assert [one.seq for one in await anchors(service, conversation_id)] == [11, 13]
    assert (await service.row(conversation_id)).anchors_due_from is None


@pytest.mark.daily(1)
@pytest.mark.parametrize(("read_before", "ended_as"), [(3, ("queued", 0)), (0, ("failed", 1))])
async def test_a_job_whose_time_went_into_reading_goes_on_in_the_next_one(
    begin: UnitOfWorkFactory, tenant: UUID, monkeypatch: pytest.MonkeyPatch, read_before: int, ended_as: tuple[str, int]
) -> None:
    service = Service(begin, tenant, settings=Settings(job_seconds=1))
    conversation_id = await service.conversation()
    await said(service, conversation_id, *TALK)
    await service.say(conversation_id, 12)
    asked = CompactInput(wait=False)
    compactions, manual = service.container.compaction, service.container.manual
    queued = (await manual.compact(service.tenant, conversation_id, asked, timeout=PATIENCE)).compaction
    reading, left = due_anchors._compute_effects, iter(range(read_before))

    async def stuck(*given: Any) -> Any:
        return await reading(*given) if next(left, None) is not None else await asyncio.sleep(PATIENCE)

    with monkeypatch.context() as patched:
        patched.setattr(due_anchors, "STEP", 1)
        patched.setattr(due_anchors, "_compute_effects", stuck)
        put_back = await compactions.execute(queued.id)
    assert put_back is not None
    assert (put_back.status, put_back.claims) == ended_as
    assert (await service.row(conversation_id)).anchors_due_from == read_before + 1
    again = await Service(begin, tenant).container.compaction.execute(queued.id)  # a second may be too short here
    assert (again.status if again else None) == ("applied" if read_before else None)


async def test_the_worker_is_asked_for_each_further_step(service: Service) -> None:
    conversation_id = await service.conversation(context_window=1_000_000)
    await said(service, conversation_id, *TALK)
    assert service.queue.later["anchors"] == []
    for asked in (1, 2):
        await said(service, conversation_id, *["Nice weather today."] * due_anchors.STEP)
        assert service.queue.later["anchors"] == [conversation_id] * asked
    await service.container.anchors.work(conversation_id)
    assert len(await stored(service, conversation_id)) > len(FACTS)
    assert (await service.row(conversation_id)).anchors_due_from is None


async def test_a_job_of_the_worker_takes_some_seconds_and_asks_for_the_next(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    conversation_id = await service.conversation()
    await said(service, conversation_id, *TALK)
    with monkeypatch.context() as patched:
        patched.setattr(due_anchors, "STEP", 2)
        patched.setattr("app.usecases.history.anchors._JOB_SECONDS", 0.0)
        for asked in (1, 2):
            await service.container.anchors.work(conversation_id)
            assert (await service.row(conversation_id)).anchors_due_from == 2 * asked + 1
            assert service.queue.later["anchors"] == [conversation_id] * asked
    await service.container.anchors.work(conversation_id)
    assert (await service.row(conversation_id)).anchors_due_from is None
    assert service.queue.later["anchors"] == [conversation_id] * 2, "the control: nothing is left to ask for"


async def test_of_two_jobs_of_the_worker_one_gives_way(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    conversation_id = await service.conversation()
    await said(service, conversation_id, *TALK)
    reading, steps, both = due_anchors._compute_effects, list[int](), asyncio.Barrier(2)

    async def counted(shell: Any, conversation: Conversation, due: DueMessages) -> Any:
        steps.append(due.first_seq)
        if due.first_seq == 1:
            await both.wait()
        return await reading(shell, conversation, due)

    monkeypatch.setattr(due_anchors, "STEP", 2)
    monkeypatch.setattr(due_anchors, "_compute_effects", counted)
    await asyncio.gather(*(service.container.anchors.work(conversation_id) for _ in range(2)))
    assert steps.count(1) == 2
    assert sorted(set(steps)) == list(range(1, len(TALK) + 1, 2))
    assert len(steps) == len(set(steps)) + 1, "only the first step is read twice"
    assert (await service.row(conversation_id)).anchors_due_from is None


async def test_a_context_waits_a_moment_for_anchors_and_says_that_more_are_due(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    conversation_id = await service.conversation(triggers=[], protect=[])
    await said(service, conversation_id, POSTGRES)
    await service.say(conversation_id, 40, words=4)
    context = service.container.context
    with monkeypatch.context() as patched:
        patched.setattr(due_anchors, "STEP", 10)
        patched.setattr("app.usecases.context.context._MAX_SECONDS_FOR_ANCHORS", 0.0)
        early = await context.assemble(service.tenant, conversation_id, 600)
    assert "anchors_due" in early.warnings
    assert (await service.row(conversation_id)).anchors_due_from == 11, "what was found is kept"
    assert POSTGRES in "".join(message.content for message in early.messages), "and served"
    assert service.queue.later["anchors"] == [conversation_id], "the worker finds the others"
    later = await context.assemble(service.tenant, conversation_id, 600)
    assert "anchors_due" not in later.warnings, "the control"
    assert (await service.row(conversation_id)).anchors_due_from is None


async def test_no_list_of_segments_waits_for_them_before_there_is_a_segment(service: Service) -> None:
    expansions = service.container.expansion
    conversation_id = await service.conversation()
    await said(service, conversation_id, *TALK)
    assert await expansions.page(service.tenant, conversation_id, Page()) == ([], None)
    assert (await expansions.expand(service.tenant, conversation_id, "earlier", "tags")).segments == ()
    with pytest.raises(NotFoundError):
        await expansions.expand(service.tenant, conversation_id, "a" * 12)
    assert (await service.row(conversation_id)).anchors_due_from == 1


async def test_the_worker_passes_over_a_conversation_that_is_gone(service: Service) -> None:
    conversation_id = await service.conversation()
    await said(service, conversation_id, POSTGRES)
    await service.container.conversations.delete(service.tenant, conversation_id)
    await service.container.anchors.work(conversation_id)


async def test_a_user_s_choice_stays_in_a_fork(service: Service) -> None:
    conversation_id = await service.conversation()
    await said(service, conversation_id, POSTGRES, MYSQL)
    chosen = (await anchors(service, conversation_id))[0]
    await service.container.anchors.set_status(service.tenant, conversation_id, chosen.id, "active")
    place, idem = ForkPoint(conversation_id=conversation_id, through_seq=2), Idem(key="fork", fingerprint="one")
    fork = await service.container.forks.fork(service.tenant, place, idem)

    assert [one.seq for one in await stored(service, fork)] == [1]
    found = [(one.seq, one.status, one.proposed_by) for one in await anchors(service, fork)]
    assert found == [(1, "active", "user"), (2, "active", "rule")]
