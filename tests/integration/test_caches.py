"""Providers' caches behind the turn: one process at a time, money, and every way in which a cache ends.

On real Postgres, before the scripted Gemini server, through the real client.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

import pytest

from app.bootstrap import Container, Parts, make_models
from app.core.model.caches import ProviderCache
from app.core.model.errors import DependencyUnavailableError
from app.core.model.records import Page, ProviderCopy
from app.core.model.usage_limits import Limits
from app.infrastructure.clock import SystemClock
from app.storage.tenancy import end_user
from app.storage.unit_of_work import UnitOfWorkFactory
from app.usecases.caching.caches import NOBODY
from app.usecases.chat.starting import ChatInput
from app.usecases.files.attaching import NewFile
from app.usecases.history.conversations import NewConversation
from app.usecases.shared import retries
from tests.chosen_settings import chosen_settings
from tests.fakes import FakeJobQueue, LocalTurnStreams, well
from tests.gemini_server import Gemini
from tests.integration.services import Outage, PollingBus

MODEL: Final = "google:gemini-3-flash-preview"
PROMPT: Final = "You keep the books of a harbour, and answer like it. " * 500
ALWAYS: Final = {"context_window": 64_000, "max_tokens": -1, "cache": "always"}
PATIENCE: Final = 30.0
LATE: Final = timedelta(seconds=220)

Build = Callable[..., Container]


@pytest.fixture
async def build(gemini: Gemini, begin: UnitOfWorkFactory) -> AsyncIterator[Build]:
    """The services of a process; its jobs wait in ``FakeJobQueue.caches``."""
    built: list[Container] = []

    async def yes() -> bool:
        return True

    def one(uow: UnitOfWorkFactory = begin, **given: Any) -> Container:
        settings = chosen_settings(
            chat_model=MODEL,
            compaction_model="offline",
            google_api_key="key",
            google_base_url=gemini.url,
            **given,
        )
        parts = Parts(
            uow=uow,
            bus=PollingBus(),
            queue=FakeJobQueue(),
            streams=LocalTurnStreams(),
            models=make_models(settings),
            clock=SystemClock(),
            database_state=well,
            row_security=yes,
        )
        built.append(Container(settings, parts, f"process:{len(built)}"))
        return built[-1]

    yield one
    for container in built:
        await container.parts.models.close()  # type: ignore[attr-defined]  # the registry's own


async def talk(container: Container, tenant: UUID, **policy: Any) -> UUID:
    given = NewConversation(policy=ALWAYS | policy, system_prompt=PROMPT)
    return (await container.conversations.create(tenant, given)).conversation.id


async def say(container: Container, tenant: UUID, conversation_id: UUID, content: str = "Hello.") -> tuple[str, ...]:
    """Do a turn, and return its warnings."""
    handle = await container.chat.start(tenant, conversation_id, ChatInput(content=content))
    result = await asyncio.wait_for(handle.result(), PATIENCE)
    await container.outbox.drain()
    return result.warnings


def wanted(container: Container) -> UUID:
    """The cache that a worker was asked to make or renew."""
    queue = container.parts.queue
    assert isinstance(queue, FakeJobQueue)
    return queue.later["cache"][-1]


async def known(begin: UnitOfWorkFactory, cache_id: UUID) -> ProviderCache | None:
    async with begin(None) as uow:
        return await uow.caches.get(cache_id)


async def swept(container: Container) -> None:
    """Do the work of a few sweeps."""
    for _ in range(3):
        for chore in (container.removal, container.caches, container.copies):
            await chore.work()


async def test_an_end_user_is_shown_the_caches_of_their_own_conversations_alone(build: Build, tenant: UUID) -> None:
    one = build()
    shown: dict[str | None, list[int]] = {}
    for user in ("alice", "bob"):
        given = NewConversation(policy=ALWAYS, system_prompt=f"{user}: {PROMPT}", user_id=user)
        conversation_id = (await one.conversations.create(tenant, given)).conversation.id
        await say(one, tenant, conversation_id)
        await one.caches.make_or_renew(wanted(one))
    for reader in ("alice", "bob", "carol", None):
        seen_by = end_user.set(reader)
        living = (await one.stats.service(tenant)).caches.living
        end_user.reset(seen_by)
        shown[reader] = [cache.tokens for cache in living]
    assert shown[None] == [*shown["bob"], *shown["alice"]]
    assert (len(shown["alice"]), len(shown["bob"]), shown["carol"]) == (1, 1, [])


async def test_two_workers_make_one_cache(build: Build, begin: UnitOfWorkFactory, tenant: UUID, gemini: Gemini) -> None:
    one, other = build(), build()
    conversation_id = await talk(one, tenant)
    await say(one, tenant, conversation_id)
    cache_id = wanted(one)
    gemini.caches(hold=True)
    making = [asyncio.create_task(each.caches.make_or_renew(cache_id)) for each in (one, other)]
    (first, *_), _ = await asyncio.wait(making, return_when=asyncio.FIRST_COMPLETED)
    assert await first == "nothing", "while the other one makes it"
    gemini.caches(hold=False)
    assert sorted(await asyncio.gather(*making)) == ["made", "nothing"]
    assert len(gemini.cache_calls("POST")) == 1
    assert await other.caches.make_or_renew(cache_id) == "nothing", "what is done is not done again"
    row = await known(begin, cache_id)
    assert row is not None
    assert (row.name, row.due_at, row.tries) == (gemini.caches()[0]["name"], None, 0)


async def test_what_it_costs_counts_against_what_chats_may_spend(
    build: Build, begin: UnitOfWorkFactory, tenant: UUID, gemini: Gemini
) -> None:
    container = build()
    conversation_id = await talk(container, tenant)
    await say(container, tenant, conversation_id)
    assert await container.caches.make_or_renew(wanted(container)) == "made"
    tokens = gemini.caches()[0]["usageMetadata"]["totalTokenCount"]
    async with begin(tenant) as uow:
        (spent,) = await uow.spending.by_minute("chat", key_id=NOBODY)
    assert (spent.calls, spent.tokens) == (1, tokens)
    assert spent.usd == pytest.approx(tokens * 1.5 / 1e6)
    # Half of a limit below that is used up: the next cache waits, but no turn does.
    poor = build(tenant_limits=Limits(chat_usd_per_hour=spent.usd))
    other_id = await talk(poor, tenant, levels=[])
    assert await say(poor, tenant, other_id) == ()
    assert await poor.caches.make_or_renew(wanted(poor)) == "later"
    assert len(gemini.cache_calls("POST")) == 1


@pytest.mark.parametrize("seconds", [1, 30])
async def test_one_that_is_made_while_the_database_is_away_is_stored_or_taken_back(
    build: Build,
    begin: UnitOfWorkFactory,
    tenant: UUID,
    gemini: Gemini,
    monkeypatch: pytest.MonkeyPatch,
    seconds: float,
) -> None:
    monkeypatch.setattr(retries, "OUTAGE_TRIES", 3)
    outage = Outage(begin, seconds)
    container = build(outage)
    await say(container, tenant, await talk(container, tenant))
    cache_id = wanted(container)
    store, make = container.parts.models.store, container.parts.models.store.make_cache

    async def make_cache(*given: Any) -> Any:
        made = await make(*given)
        outage.begin()
        return made

    monkeypatch.setattr(type(store), "make_cache", lambda _, *given: make_cache(*given))
    making = container.caches.make_or_renew(cache_id)
    if seconds == 1:
        assert await making == "made"
        row = await known(begin, cache_id)
        assert row is not None
        assert row.name == gemini.caches()[0]["name"]
    else:
        with pytest.raises(DependencyUnavailableError):
            await making
        assert gemini.caches() == [], "nobody would ever delete it"


async def test_a_tenant_goes_when_the_provider_keeps_nothing_of_it(
    build: Build, begin: UnitOfWorkFactory, tenant: UUID, gemini: Gemini
) -> None:
    container = build()
    conversation_id = await talk(container, tenant)
    await say(container, tenant, conversation_id)
    await container.caches.make_or_renew(wanted(container))
    name = gemini.caches()[0]["name"]
    gemini.caches(refuse=429, refuse_times=1)
    erasure = await container.removal.erase_tenant(tenant)
    await swept(container)
    assert len(gemini.caches()) == 1, "the first try was refused"
    assert await container.removal.status(erasure.id) is not None, "so the tenant is there still"
    async with begin(tenant) as uow:  # as if the pause had ended
        await uow.copies.forget(name)
        await uow.copies.note(
            ProviderCopy(
                tenant_id=tenant,
                response_id=name,
                conversation_id=conversation_id,
                model=MODEL,
                made_at=container.parts.clock.now(),
                delete_after=container.parts.clock.now(),
            )
        )
        await uow.commit()
    await swept(container)
    assert gemini.caches() == []
    assert await container.removal.status(erasure.id) is None


async def test_the_operators_switch_ends_them_all(
    build: Build, begin: UnitOfWorkFactory, tenant: UUID, gemini: Gemini
) -> None:
    container = build()
    conversation_id = await talk(container, tenant)
    await say(container, tenant, conversation_id)
    cache_id = wanted(container)
    await container.caches.make_or_renew(cache_id)
    await swept(container)
    assert len(gemini.caches()) == 1, "the control: nothing ends what is in use"
    without = build(provider_caches="off")
    await say(without, tenant, conversation_id, "Again.")
    assert "cachedContent" not in gemini.requests("chat")[-1]["body"]
    await swept(without)
    assert gemini.caches() == []
    assert await known(begin, cache_id) is None


@pytest.mark.long
async def test_one_that_is_made_for_a_conversation_that_was_deleted_meanwhile_is_taken_back(
    build: Build, tenant: UUID, gemini: Gemini
) -> None:
    container = build()
    conversation_id = await talk(container, tenant)
    await say(container, tenant, conversation_id)
    gemini.caches(hold=True)
    making = asyncio.create_task(container.caches.make_or_renew(wanted(container)))
    async with asyncio.timeout(PATIENCE):
        while not gemini.cache_calls("POST"):  # noqa: ASYNC110 - the server tells nobody
            await asyncio.sleep(0.01)
    await container.conversations.delete(tenant, conversation_id)
    await container.caches.work()
    gemini.caches(hold=False)
    assert await making == "nothing"
    assert len(gemini.caches()) == 1
    await swept(container)
    assert gemini.caches() == []


async def test_one_that_holds_an_erased_file_goes(
    build: Build, begin: UnitOfWorkFactory, tenant: UUID, gemini: Gemini
) -> None:
    container = build()
    conversation_id = await talk(container, tenant)
    await say(container, tenant, conversation_id)
    cache_id = wanted(container)
    await container.caches.make_or_renew(cache_id)
    async with begin(tenant) as uow:
        await uow.caches.update(cache_id, files=["a" * 64])
        await uow.commit()
    for file, left in (("b" * 64, 1), ("a" * 64, 0)):
        async with begin(tenant) as uow:
            assert await uow.caches.leave_with_files([file]) == 1 - left
            await uow.commit()
        await swept(container)
        assert len(gemini.caches()) == left


async def test_files_in_it_count_in_the_provider_s_tokens_like_the_prompt(
    build: Build, begin: UnitOfWorkFactory, tenant: UUID
) -> None:
    container = build()
    conversation_id = await talk(container, tenant)
    plan = NewFile(name="plan.md", media_type="text/markdown", data=b"The depot opens on Monday. " * 500)
    await container.files.add(tenant, conversation_id, plan)
    async with begin(tenant) as uow:
        row = await uow.conversations.update(conversation_id, token_factor=1.4)
        await uow.commit()
    context = await container.context.assemble(tenant, conversation_id)
    assert context.caching is not None
    before_messages = context.gauge.breakdown.system + context.gauge.breakdown.files
    assert row.file_tokens > 1_000
    assert abs(context.caching.tokens - before_messages) <= 1, "both are rounded up"
    shown = (await container.stats.conversation(tenant, conversation_id)).caches
    assert shown.tokens == before_messages


async def _remove_file(container: Container, tenant: UUID, conversation_id: UUID) -> None:
    (file,), _ = await container.files.page(tenant, conversation_id, Page())
    await container.files.remove(tenant, conversation_id, file.id)


async def _switch_off(container: Container, tenant: UUID, conversation_id: UUID) -> None:
    await container.conversations.patch(tenant, conversation_id, {"policy": {"cache": "off"}})


@pytest.mark.parametrize("change", [_remove_file, _switch_off])
async def test_one_that_its_conversation_gave_up_while_a_turn_ran_goes(
    build: Build, tenant: UUID, gemini: Gemini, change: Callable[[Container, UUID, UUID], Awaitable[None]]
) -> None:
    container = build()
    conversation_id = await talk(container, tenant)
    plan = NewFile(name="plan.md", media_type="text/markdown", data=b"The depot opens on Monday.")
    await container.files.add(tenant, conversation_id, plan)
    await say(container, tenant, conversation_id)
    await container.caches.make_or_renew(wanted(container))
    gemini.script("chat", {"name": "honest", "hold": True})
    turn = asyncio.create_task(say(container, tenant, conversation_id, "Again."))
    await asyncio.to_thread(gemini.wait_for, "chat", 2)
    await change(container, tenant, conversation_id)
    gemini.release()
    await turn
    assert len(gemini.caches()) == 1, "no sweep came before the turn's end"
    await swept(container)
    await container.outbox.drain()
    assert await container.caches.make_or_renew(wanted(container)) == "nothing"
    await swept(container)
    assert gemini.caches() == []


async def test_one_that_cannot_be_renewed_since_it_is_gone_is_forgotten(
    build: Build, begin: UnitOfWorkFactory, tenant: UUID, gemini: Gemini
) -> None:
    container = build()
    conversation_id = await talk(container, tenant, cache_ttl=300)
    await say(container, tenant, conversation_id)
    cache_id = wanted(container)
    await container.caches.make_or_renew(cache_id)
    row = await known(begin, cache_id)
    assert row is not None
    assert row.expires_at is not None
    async with begin(tenant) as uow:  # as if the cache were old
        await uow.caches.update(cache_id, expires_at=row.expires_at - LATE)
        await uow.commit()
    gemini.caches(lost_as=404)
    await say(container, tenant, conversation_id, "Again.")
    gemini.caches(forget=True)
    assert await container.caches.make_or_renew(cache_id) == "failed"
    forgotten = await known(begin, cache_id)
    assert forgotten is not None
    assert (forgotten.name, forgotten.life) == (None, None)
    gemini.caches(forget=True)
    await say(container, tenant, conversation_id, "And again.")
    assert await container.caches.make_or_renew(cache_id) == "made"
    assert (await known(begin, cache_id) or forgotten).name == gemini.caches()[0]["name"] != row.name
