"""Recall on a real database: contexts with a query, chat turns, what is never a candidate, and a recall that fails."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace
from functools import partial
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import select
from sqlmodel import col

from app.core.context.assembly import AssembledContext
from app.core.model.model_io import ContextMessage
from app.core.retrieval.corpus import Corpus
from app.core.retrieval.rendering import Passage
from app.core.text import memo
from app.storage.repositories.anchors import AnchorRepository
from app.storage.repositories.message_search import FoundMessages
from app.storage.repositories.messages import MessageRepository
from app.storage.tables import MessageRow
from app.storage.unit_of_work import UnitOfWorkFactory
from app.usecases.chat.starting import ChatInput
from app.usecases.chat.turn_handle import ChatResult
from app.usecases.compaction.manual import CompactInput
from app.usecases.context import context as context_module
from app.usecases.context.recalling import RecallRequest, RecallSources, WantedSections, corpus_of_sources
from app.usecases.history.drafts import MessageDraft
from app.usecases.shared.idempotency import Idem
from tests.fakes import ScriptedChatModel
from tests.integration.services import Service

FACT = "The lantern of the museum was repaired by Ferreira in an afternoon."
QUESTION = "Who repaired the lantern in the museum?"
ASKED = RecallRequest(query=QUESTION)
ANCHORS_READ = ("servable", "showable")
PATIENCE = 20.0
"""Seconds that a test waits for work in another thread."""


@pytest.fixture
def chat_model() -> ScriptedChatModel:
    return ScriptedChatModel()


@pytest.fixture
def service(begin: UnitOfWorkFactory, tenant: UUID, chat_model: ScriptedChatModel) -> Service:
    return Service(begin, tenant, chat=chat_model)


async def folded(service: Service, *, fact: str = FACT, **policy: Any) -> UUID:
    """A conversation with a fact at the beginning that is not in its state."""
    conversation_id = await service.conversation(**{"triggers": [], "protect": [], "levels": []} | policy)
    await service.say(conversation_id, 4)
    await said(service, conversation_id, fact)
    await service.say(conversation_id, 21)
    await service.container.manual.compact(
        service.tenant, conversation_id, CompactInput(keep_tail_messages=0), timeout=20
    )
    return conversation_id


async def fold(service: Service, conversation_id: UUID) -> None:
    everything = CompactInput(keep_tail_messages=0)
    await service.container.manual.compact(service.tenant, conversation_id, everything, timeout=20)


async def said(service: Service, conversation_id: UUID, *texts: str) -> list[UUID]:
    drafts = [MessageDraft(role="user", content=text) for text in texts]
    messages = await service.container.messages.append(service.tenant, conversation_id, drafts)
    return [message.id for message in messages]


async def context(
    service: Service, conversation_id: UUID, asked: RecallRequest = ASKED, budget: int | None = 400
) -> AssembledContext:
    return await service.container.context.assemble(service.tenant, conversation_id, budget, recall_request=asked)


async def turn(service: Service, conversation_id: UUID, content: str = QUESTION, **given: Any) -> ChatResult:
    handle = await service.container.chat.start(service.tenant, conversation_id, ChatInput(content=content, **given))
    return await handle.result()


def text_of(messages: tuple[ContextMessage, ...]) -> str:
    return "\n".join(message.content for message in messages)


async def test_a_query_brings_back_what_was_folded(service: Service) -> None:
    conversation_id = await folded(service)
    found = await context(service, conversation_id)
    without = await context(service, conversation_id, RecallRequest())

    assert FACT in text_of(found.messages)
    assert FACT not in text_of(without.messages), "the control"
    assert found.recalled[0].source.seq == 5
    assert found.gauge.tokens - found.gauge.breakdown.system <= 400


async def test_a_turn_recalls_by_itself_and_says_so(service: Service, chat_model: ScriptedChatModel) -> None:
    conversation_id = await folded(service)
    result = await turn(service, conversation_id)

    assert 5 in result.recalled
    assert FACT in chat_model.requests[-1].messages[-1].content
    assert chat_model.requests[-1].messages[-1].content.endswith(QUESTION)
    assert result.message.content == QUESTION, "what is stored is what the user said"


@pytest.mark.long
async def test_a_repeated_request_says_the_same(service: Service) -> None:
    conversation_id = await folded(service)
    idem = Idem(key="again", fingerprint="f")
    results = []
    for _ in range(2):
        given = ChatInput(content=QUESTION)
        handle = await service.container.chat.start(service.tenant, conversation_id, given, idem=idem)
        results.append(await handle.result())

    assert results[0].recalled == results[1].recalled != ()
    assert results[0].reply.id == results[1].reply.id


@pytest.mark.daily(2)
@pytest.mark.parametrize(
    ("policy", "given", "recalls"),
    [
        ({}, {"recall": False}, False),
        ({"recall": "off"}, {}, False),
        ({"recall": "off"}, {"recall": True}, True),
        ({}, {"content": "Thanks a lot!"}, False),
        ({}, {"content": "Thanks a lot!", "recall": True}, False),
    ],
)
async def test_policy_request_and_message_decide(
    service: Service, policy: dict[str, Any], given: dict[str, Any], *, recalls: bool
) -> None:
    result = await turn(service, await folded(service, **policy), **given)

    assert bool(result.recalled) is recalls
    assert result.warnings == ()


async def test_passages_reach_the_model(service: Service, chat_model: ScriptedChatModel) -> None:
    conversation_id = await service.conversation(triggers=[])
    await turn(service, conversation_id, passages=(Passage(text="Open from nine.", source="handbook"),))

    assert '<passage source="handbook">\nOpen from nine.\n</passage>' in chat_model.requests[-1].messages[-1].content


async def test_an_erased_message_is_never_recalled(service: Service) -> None:
    conversation_id = await folded(service)
    async with service.begin(service.tenant) as uow:
        fact = await uow.messages.at_seq(conversation_id, 5)
    await service.container.erasure.erase(service.tenant, conversation_id, fact.id)
    found = await context(service, conversation_id)

    assert "Ferreira" not in text_of(found.messages)
    assert 5 not in [one.source.seq for one in found.recalled]


async def test_what_another_process_erased_is_recalled_by_none_that_knows_it(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memo, "forget", lambda: None)
    conversation_id = await folded(service)
    assert FACT in text_of((await context(service, conversation_id)).messages)
    async with service.begin(service.tenant) as uow:
        fact = await uow.messages.at_seq(conversation_id, 5)
    await service.container.erasure.erase(service.tenant, conversation_id, fact.id)
    again = await context(service, conversation_id)
    assert "Ferreira" not in text_of(again.messages)
    assert fact.seq not in {one.source.seq for one in again.recalled}


@pytest.mark.long
async def test_a_typed_command_and_its_answer_are_never_recalled(service: Service) -> None:
    conversation_id = await service.conversation(triggers=[], protect=[])
    await service.say(conversation_id, 10)
    await turn(service, conversation_id, "/compact the lantern of the museum")
    await service.say(conversation_id, 10)
    await service.container.manual.compact(
        service.tenant, conversation_id, CompactInput(keep_tail_messages=0), timeout=20
    )
    found = await context(
        service, conversation_id, RecallRequest(query="the lantern of the museum, shipment of crates")
    )

    assert found.recalled
    assert "/compact" not in text_of(found.messages)


async def broken(self: object, conversation_id: UUID, **given: Any) -> FoundMessages:
    raise RuntimeError("the index is away")


async def test_a_recall_that_fails_never_fails_a_turn(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    conversation_id = await folded(service)
    monkeypatch.setattr(MessageRepository, "sources", broken)
    result = await turn(service, conversation_id)

    assert result.reply.content
    assert result.warnings == ("recall_failed",)
    assert result.recalled == ()
    with pytest.raises(RuntimeError):
        await context(service, conversation_id)  # a client that asks for it gets the error


async def refused(self: MessageRepository, conversation_id: UUID, **given: Any) -> list[Any]:
    divided = select(col(MessageRow.seq) / 0).where(col(MessageRow.conversation_id) == conversation_id)
    return await self._session.rows(divided)


async def test_a_recall_that_the_database_refuses_never_fails_a_turn(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if anchors are read after it, since not everything fits."""
    conversation_id = await folded(service)
    await service.say(conversation_id, 90)
    monkeypatch.setattr(MessageRepository, "sources", refused)
    result = await turn(service, conversation_id)

    assert set(result.warnings) == {"context_truncated", "recall_failed"}


async def test_a_corpus_that_fails_never_fails_a_turn(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    conversation_id = await folded(service)
    monkeypatch.setattr(context_module, "corpus_of_sources", lambda sources, conversation_id: 1 / 0)
    result = await turn(service, conversation_id)

    assert result.warnings == ("recall_failed",)
    with pytest.raises(ZeroDivisionError):
        await context(service, conversation_id)  # a client that asks for it gets the error


async def test_what_was_found_is_taken_apart_while_the_database_looks_for_anchors(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    conversation_id = await folded(service)
    before = await context(service, conversation_id)
    taken_apart = threading.Event()
    waited: list[bool] = []
    for name in ANCHORS_READ:
        monkeypatch.setattr(AnchorRepository, name, waiting_for(taken_apart, getattr(AnchorRepository, name), waited))

    def noted(sources: RecallSources, of: UUID) -> Corpus:
        corpus = corpus_of_sources(sources, of)
        taken_apart.set()
        return corpus

    monkeypatch.setattr(context_module, "corpus_of_sources", noted)
    found = await context(service, conversation_id)

    assert waited == [True], "the anchors are read, and wait until the other work is done"
    assert found == before


def waiting_for(event: threading.Event, read: Any, waited: list[bool]) -> Any:
    async def waiting(self: AnchorRepository, conversation_id: UUID, **given: Any) -> Any:
        waited.append(await asyncio.to_thread(event.wait, PATIENCE))
        return await read(self, conversation_id, **given)

    return waiting


async def test_without_anchors_a_request_ends_at_once_and_leaves_no_work(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    conversation_id = await folded(service)
    for name in ANCHORS_READ:
        monkeypatch.setattr(AnchorRepository, name, broken)
    others = asyncio.all_tasks()
    with pytest.raises(RuntimeError):
        await context(service, conversation_id)
    if left := asyncio.all_tasks() - others:
        await asyncio.wait(left, timeout=PATIENCE)

    assert asyncio.all_tasks() <= others, "what was being taken apart was let go"


async def test_anchors_that_are_not_wanted_are_not_read(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    conversation_id = await folded(service)
    asked = replace(ASKED, wanted=WantedSections(anchors=False))
    before = await context(service, conversation_id, asked)
    for name in ANCHORS_READ:
        monkeypatch.setattr(AnchorRepository, name, broken)

    assert await context(service, conversation_id, asked) == before
    with pytest.raises(RuntimeError):
        await context(service, conversation_id)  # the control


async def test_a_conversation_that_is_served_whole_is_not_searched(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    conversation_id = await service.conversation(triggers=[])
    await said(service, conversation_id, FACT)
    monkeypatch.setattr(MessageRepository, "sources", broken)

    assert FACT in text_of((await context(service, conversation_id, budget=None)).messages)
    assert (await turn(service, conversation_id)).warnings == ()


async def test_for_a_query_without_a_budget_nothing_is_read_that_could_only_make_way(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    conversation_id = await folded(service)
    before = await context(service, conversation_id, budget=None)
    for name in ANCHORS_READ:
        monkeypatch.setattr(AnchorRepository, name, broken)
    found = await context(service, conversation_id, budget=None)

    assert FACT in text_of(found.messages)
    assert found == before
    with pytest.raises(RuntimeError):
        await context(service, conversation_id)  # within a budget they may have to be searched


async def test_what_is_known_of_a_conversation_is_not_read_again_and_what_came_since_is(service: Service) -> None:
    conversation_id = await folded(service)
    async with service.begin(service.tenant) as uow:
        read = partial(uow.messages.sources, conversation_id, stems=[], limit=10)
        found = await read()
        whole = found.sources
        begun = replace(found, sources=whole[:7])
        longer = (await read(known=begun)).sources
        other = [one._replace(text="Of another talk.") for one in whole[:7]]
        strange = (await read(known=replace(begun, sources=other))).sources
        erased = (await read(known=replace(begun, content_epoch=found.content_epoch - 1))).sources

    assert whole == longer == strange == erased
    assert not any(new is old for new, old in zip(erased, whole, strict=True)), "something was erased since"
    assert [new is old for new, old in zip(longer, whole, strict=True)][:8] == [*[True] * 6, False, False]
    assert not any(new is old for new, old in zip(strange, whole, strict=True))


async def test_another_tenants_conversation_gives_nothing(service: Service, begin: UnitOfWorkFactory) -> None:
    conversation_id = await folded(service)
    async with begin(UUID(int=7)) as uow:
        found = await uow.messages.sources(conversation_id, stems=["lantern"], limit=10)

    assert list(found.sources) == []


@pytest.mark.long
async def test_recall_does_not_hold_up_the_event_loop(service: Service) -> None:
    conversation_id = await service.conversation(triggers=[], protect=[], context_window=100_000)
    for _ in range(4):
        await service.say(conversation_id, 250)
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.005)
            ticks += 1

    ticking = asyncio.create_task(tick())
    await context(service, conversation_id, RecallRequest(query="the shipment of crates on a grey morning"), 2_000)
    ticking.cancel()

    assert ticks >= 5


PEOPLE = {
    "Anna": "We decided to use Postgres 16 for the ledger.",
    "Björn": FACT,
    "Chloé": "Let's pay 400 EUR by 3 May.",
}


async def test_anchors_recalled_lines_and_hits_say_who_of_several_people_spoke(service: Service) -> None:
    conversation_id = await service.conversation(triggers=[], protect=[], levels=[])
    drafts = [MessageDraft(role="user", content=text, metadata={"name": name}) for name, text in PEOPLE.items()]
    await service.container.messages.append(service.tenant, conversation_id, drafts)
    await service.say(conversation_id, 24)
    await fold(service, conversation_id)
    found = await context(service, conversation_id, budget=900)
    told = text_of(found.messages)
    page = await service.container.search.find(service.tenant, conversation_id, QUESTION, limit=9)

    assert f"- decision #1 (user Anna): {PEOPLE['Anna']}" in told
    assert "(user Chloé)" in told
    assert f"U (Björn): {FACT}" in told
    assert found.gauge.tokens - found.gauge.breakdown.system <= 900
    assert next(hit for hit in page.hits if hit.seq == 2).said_by == "Björn"
