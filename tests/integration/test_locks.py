"""While a conversation is locked, almost nothing is computed, and never from values that have changed since."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from statistics import median
from typing import Any, Final
from uuid import UUID

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from app.core.model.conversation import Layout, Message
from app.core.model.model_io import ToolCall
from app.providers.offline import OfflineSummarizer
from app.settings import Settings
from app.storage.unit_of_work import UnitOfWorkFactory
from app.usecases.chat.starting import ChatInput
from app.usecases.compaction.manual import CompactInput
from app.usecases.history import appending, holding, preparing
from app.usecases.history.drafts import MessageDraft
from app.usecases.shared import layouts, retries
from app.usecases.shared.layouts import layout_from_sources
from app.usecases.shared.retries import Results
from bench.loop_locks import LockProbe
from bench.loop_requests import prose, talk
from tests.fakes import Reply, ScriptedChatModel
from tests.integration.services import Service
from tests.integration.test_tools import CALLER, SAMPLES
from tests.integration.test_turns import chat

PATIENCE: Final = 30.0
AT_ONCE: Final = 1
"""The most tries, so that everything is computed in the transaction."""
MAX_SHARE: Final = 0.6
"""The largest share of the CPU under the lock of the control, which reads or computes all in its transaction."""
ORDINARY: Final = 1_500
"""The characters of a message."""
ROUNDS: Final = 9
STORES: Final = (
    "order",
    "invoice",
    "parcel",
    "customer",
    "photo",
    "letter",
    "ticket",
    "price",
    "stock",
    "audit",
    "mail",
)


async def told(service: Service, messages: int, characters: int) -> tuple[UUID, list[Message]]:
    conversation_id = await service.conversation(context_window=messages * characters // 2, triggers=[])
    drafts = [
        MessageDraft(role=one["role"], content=one["content"]) for one in talk(messages, characters, seed=messages)
    ]
    return conversation_id, await service.container.messages.append(service.tenant, conversation_id, drafts)


async def compacted(service: Service, conversation_id: UUID) -> None:
    view = await service.container.manual.compact(
        service.tenant, conversation_id, CompactInput(keep_tail_messages=2), timeout=PATIENCE
    )
    assert view.compaction.status == "applied", view.compaction


@pytest.mark.long
async def test_what_compactions_and_erasures_compute_is_computed_without_the_lock(
    begin: UnitOfWorkFactory, tenant: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The CPU under the lock is compared with that of a transaction that computes everything itself."""
    service = Service(begin, tenant)
    monkeypatch.setattr(service.container.manual._shell.models, "_summarizers", {None: OfflineSummarizer()})

    async def locked(messages: int, characters: int) -> tuple[float, float]:
        conversation_id, stored = await told(service, messages, characters)
        probe = LockProbe()
        with probe.watching():
            await compacted(service, conversation_id)
            compacting = probe.taken()
            await service.container.erasure.erase(tenant, conversation_id, stored[3].id)
            return compacting, probe.taken()

    await locked(8, 300)  # statements and tables are made only once
    apart = await locked(20, 1_500)
    monkeypatch.setattr(retries, "MAX_TRIES", AT_ONCE)
    together = await locked(20, 1_500)
    for one, control in zip(apart, together, strict=True):
        assert one < MAX_SHARE * control, (apart, together)


@pytest.mark.long
async def test_what_an_ordinary_message_says_is_read_without_the_lock(
    begin: UnitOfWorkFactory, tenant: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The CPU under the lock of appends, compared with that of appends that are read in their transaction, in turns."""
    service = Service(begin, tenant)
    for module in (appending, preparing):  # as in a folded conversation
        monkeypatch.setattr(module, "defers_anchors", lambda _: False)
    conversation_id, _ = await told(service, 20, 1_500)
    taken: dict[int, list[float]] = {preparing.CHARS_IN_TRANSACTION: [], 10 * ORDINARY: []}
    probe = LockProbe()
    with probe.watching():
        for number in range(ROUNDS):
            for most, times in taken.items():
                monkeypatch.setattr(preparing, "CHARS_IN_TRANSACTION", most)
                draft = MessageDraft(role="user", content=prose(ORDINARY, number * 100_000 + most))
                await service.container.messages.append(tenant, conversation_id, [draft])
                times.append(probe.taken())
    apart, together = (median(times[1:]) for times in taken.values())  # the first one compiles statements
    assert apart < MAX_SHARE * together, taken


Meanwhile = Callable[[Service, UUID, list[Message]], Awaitable[Any]]


async def pinning(service: Service, conversation_id: UUID, messages: list[Message]) -> None:
    await service.container.pins.pin(service.tenant, conversation_id, messages[0].id)


async def restoring(service: Service, conversation_id: UUID, _: list[Message]) -> None:
    await service.container.states.restore(service.tenant, conversation_id, 1)


async def changing(service: Service, conversation_id: UUID, _: list[Message]) -> None:
    policy = (await service.row(conversation_id)).policy
    await service.container.conversations.patch(
        service.tenant, conversation_id, {"policy": {**policy, "served_as": "assistant"}}
    )


BUILDS, CORRECTION = (
    "We decided to use Jenkins for the builds.",
    "Correction: we use GitLab for the builds instead of Jenkins.",
)
CALL: Final = Reply(pieces=(CORRECTION,), calls=(ToolCall(id="0", name="order_status", arguments={"number": 1}),))


async def told_otherwise(service: Service, conversation_id: UUID, _: list[Message]) -> None:
    """The user says something that supersedes an anchor in the block."""
    await chat(service, conversation_id, CORRECTION)


async def replied(service: Service, conversation_id: UUID, _: list[Message]) -> None:
    """The model says it, at the end of a turn or when it calls a tool."""
    await chat(service, conversation_id, "And which one for the builds?")


async def replied_again(service: Service, conversation_id: UUID, _: list[Message]) -> None:
    """The reply that said it is made again, so that the anchor is there as before."""
    handle = await service.container.chat.start(service.tenant, conversation_id, ChatInput(regenerates=True))
    await asyncio.wait_for(handle.result(), PATIENCE)


async def many_anchors(service: Service) -> tuple[UUID, list[Message]]:
    """A compacted conversation whose layout is too large to be computed in a transaction."""
    conversation_id = await service.conversation(protect=[], context_window=8_000)
    said = [
        BUILDS,
        *(f"We decided to use Postgres {number} for the {store} store." for number, store in enumerate(STORES, 10)),
    ]
    drafts = [
        MessageDraft(role="user" if number else "assistant", content=content) for number, content in enumerate(said)
    ]
    messages = await service.container.messages.append(service.tenant, conversation_id, drafts)
    await service.say(conversation_id, 20)
    await compacted(service, conversation_id)
    return conversation_id, messages


FINE: Final = "As you like."
WAYS: Final[dict[str, tuple[Meanwhile, tuple[str | Reply, ...]]]] = {
    "pin": (pinning, ()),
    "restore": (restoring, ()),
    "policy": (changing, ()),
    "message": (told_otherwise, (FINE,)),
    "reply": (replied, (CORRECTION,)),
    "call": (replied, (CALL, FINE)),
    "regenerate": (replied_again, (CORRECTION, FINE)),
}
"""The action, and what the model says."""


@pytest.mark.daily(5)
@pytest.mark.parametrize("apart", [True, False], ids=["apart", "control"])
@pytest.mark.parametrize("way", WAYS)
async def test_what_is_served_is_laid_out_while_nobody_holds_the_row(
    begin: UnitOfWorkFactory,
    tenant: UUID,
    engine: AsyncEngine,
    monkeypatch: pytest.MonkeyPatch,
    way: str,
    *,
    apart: bool,
) -> None:
    act, script = WAYS[way]
    model = ScriptedChatModel(*script, profile=CALLER)
    service = Service(begin, tenant, chat=model, settings=Settings(tools=(f"{SAMPLES}:order_status",)))
    conversation_id, messages = await many_anchors(service)
    if act is replied_again:
        await replied(service, conversation_id, messages)
    loop, free = asyncio.get_running_loop(), list[bool]()
    before = await service.row(conversation_id)

    async def is_free() -> bool:
        async with engine.connect() as connection:
            locking = text("SELECT id FROM conversations WHERE id = :id FOR UPDATE SKIP LOCKED")
            return (await connection.execute(locking, {"id": conversation_id})).first() is not None

    def watched(*given: Any) -> Layout:
        free.append(asyncio.run_coroutine_threadsafe(is_free(), loop).result(PATIENCE))
        return layout_from_sources(*given)

    monkeypatch.setattr(layouts, "layout_from_sources", watched)
    if not apart:
        monkeypatch.setattr(retries, "MAX_TRIES", AT_ONCE)
    await act(service, conversation_id, messages)

    assert free == [apart]
    assert (await service.row(conversation_id)).layout_version == before.layout_version + 1


async def pinned(service: Service, conversation_id: UUID, messages: list[Message]) -> None:
    await service.container.pins.pin(service.tenant, conversation_id, messages[2].id)


async def appended(service: Service, conversation_id: UUID, _: list[Message]) -> None:
    await service.say(conversation_id, 1)


async def erased(service: Service, conversation_id: UUID, messages: list[Message]) -> None:
    await service.container.erasure.erase(service.tenant, conversation_id, messages[2].id)


def doing(
    monkeypatch: pytest.MonkeyPatch, service: Service, conversation_id: UUID, messages: list[Message], act: Meanwhile
) -> list[str]:
    """Do something once, while something is computed between two tries; return the names of all later computations."""
    add, computed = Results.add, list[str]()

    async def adding(results: Results, work: Callable[..., Any], given: tuple[Any, ...]) -> None:
        computed.append(work.__name__)
        if len(computed) == 1:
            await asyncio.wait_for(act(service, conversation_id, messages), PATIENCE)
        await add(results, work, given)

    monkeypatch.setattr(Results, "add", adding)
    return computed


@pytest.mark.parametrize(("act", "held", "times"), [(pinned, True, 2), (appended, False, 1)], ids=["pin", "control"])
async def test_a_pin_that_comes_while_the_layout_is_computed_is_served(
    begin: UnitOfWorkFactory,
    tenant: UUID,
    monkeypatch: pytest.MonkeyPatch,
    act: Meanwhile,
    *,
    held: bool,
    times: int,
) -> None:
    """Meanwhile nobody waits for the lock; the layout is computed again only if its values have changed."""
    service = Service(begin, tenant)
    conversation_id = await service.conversation(protect=[])
    messages = await service.say(conversation_id, 12)
    computed = doing(monkeypatch, service, conversation_id, messages, act)
    await compacted(service, conversation_id)
    row = await service.row(conversation_id)
    (compaction,) = await service.compactions(conversation_id)

    assert row.boundary_seq == 10
    assert row.layout is not None
    assert (messages[2].seq in row.layout.held) is held
    assert computed == ["_served_state"] * times
    assert compaction.fidelity is not None
    context = await service.container.context.assemble(tenant, conversation_id)
    assert (messages[2].content in [one.content for one in context.messages]) is held


@pytest.mark.parametrize("withdrawn", [True, False], ids=["withdrawn", "control"])
async def test_an_anchor_that_changes_while_the_layout_is_computed_is_served_as_it_is_then(
    begin: UnitOfWorkFactory, tenant: UUID, monkeypatch: pytest.MonkeyPatch, *, withdrawn: bool
) -> None:
    service = Service(begin, tenant)
    conversation_id = await service.conversation(protect=[])
    said = "We decided to use Postgres 15 for the order store."
    draft = MessageDraft(role="user", content=said)
    messages = await service.container.messages.append(tenant, conversation_id, [draft])
    messages += await service.say(conversation_id, 12)
    await service.container.anchors.work(conversation_id)
    async with begin(tenant) as uow:
        anchor = next(one for one in await uow.anchors.active(conversation_id, limit=20) if one.content == said)

    async def act(*_: Any) -> None:
        if withdrawn:
            await service.container.anchors.set_status(tenant, conversation_id, anchor.id, "withdrawn")

    doing(monkeypatch, service, conversation_id, messages, act)
    await compacted(service, conversation_id)
    layout = (await service.row(conversation_id)).layout

    assert layout is not None
    assert (anchor.content in layout.anchors) is not withdrawn


@pytest.mark.daily(1)
@pytest.mark.parametrize(("act", "status"), [(erased, "superseded"), (appended, "applied")], ids=["erased", "control"])
async def test_an_erasure_while_the_layout_is_computed_supersedes_it(
    begin: UnitOfWorkFactory, tenant: UUID, monkeypatch: pytest.MonkeyPatch, act: Meanwhile, status: str
) -> None:
    service = Service(begin, tenant)
    conversation_id = await service.conversation()
    messages = await service.say(conversation_id, 60)
    doing(monkeypatch, service, conversation_id, messages, act)
    await service.container.compaction.execute(service.queue.ids[0])
    found = [one.status for one in await service.compactions(conversation_id)]

    assert found[0] == status
    assert ((await service.row(conversation_id)).layout is None) is (status == "superseded")


async def test_a_message_that_somebody_else_erases_meanwhile_is_erased_once(
    begin: UnitOfWorkFactory, tenant: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = Service(begin, tenant)
    conversation_id = await service.conversation()
    messages = await service.say(conversation_id, 60)
    await service.container.compaction.execute(service.queue.ids[0])
    somebody_else = Service(begin, tenant, owner="process:two")  # within one process erasures take turns
    computed = doing(monkeypatch, somebody_else, conversation_id, messages, erased)
    await erased(service, conversation_id, messages)

    assert "_digest" in computed or "_rewritten_with_leaks" in computed
    assert (await service.events(conversation_id)).count("message.erased") == 1


async def test_what_a_new_policy_holds_is_decided_once_and_without_the_lock(
    begin: UnitOfWorkFactory, tenant: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    service, tries = Service(begin, tenant), list[int]()
    conversation_id = await service.conversation(protect=[])
    drafts = [
        MessageDraft(role="user", content=f"Rule {number}: be brief and polite.", event_type="constraint")
        for number in range(20)
    ]
    await service.container.messages.append(tenant, conversation_id, drafts)
    reasons: Callable[..., Any] = vars(holding)["reasons_within_budget"]

    def counted(*given: Any, **named: Any) -> Any:
        tries.append(len(given[1]))
        return reasons(*given, **named)

    monkeypatch.setattr(holding, "reasons_within_budget", counted)
    policy = {**(await service.row(conversation_id)).policy, "protect": ["constraint"]}
    view = await service.container.conversations.patch(tenant, conversation_id, {"policy": policy})

    assert tries == [20]
    assert view.conversation.total.held_tokens > 0
