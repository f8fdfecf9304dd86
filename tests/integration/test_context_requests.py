"""Contexts as clients request them: compacted if due, of chosen sections, counted once, with their segments."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from app.core.context.assembly import AssembledContext
from app.core.model.errors import BudgetTooSmallError
from app.core.model.model_io import Proposal, SummaryRequest
from app.storage.unit_of_work import UnitOfWorkFactory
from app.usecases.chat.starting import ChatInput
from app.usecases.compaction.manual import CompactInput
from app.usecases.context import requests as context_requests
from app.usecases.context.recalling import RecallRequest, WantedSections
from app.usecases.context.requests import ContextAsk, ContextView
from app.usecases.history.drafts import MessageDraft
from app.usecases.shared.idempotency import Idem, claim_key
from tests.fakes import ScriptedChatModel
from tests.integration.services import Service

FACT = "The lantern of the museum was repaired by Ferreira in an afternoon."
QUESTION = "Who repaired the lantern in the museum?"
QUERY = RecallRequest(query=QUESTION)
IF_NEEDED = ContextAsk(compact="if_needed")


@pytest.fixture
def service(begin: UnitOfWorkFactory, tenant: UUID) -> Service:
    return Service(begin, tenant)


async def folded(service: Service, **policy: Any) -> UUID:
    """A conversation with a covered fact, in one of several segments."""
    conversation_id = await service.conversation(triggers=[], protect=[], **policy)
    await service.say(conversation_id, 10)
    drafts = [MessageDraft(role="user", content=FACT), MessageDraft(role="assistant", content="Noted, Ferreira.")]
    await service.container.messages.append(service.tenant, conversation_id, drafts)
    await service.say(conversation_id, 21)
    everything = CompactInput(keep_tail_messages=0)
    await service.container.manual.compact(service.tenant, conversation_id, everything, timeout=20)
    return conversation_id


async def answered(service: Service, conversation_id: UUID, ask: ContextAsk, idem: Idem | None = None) -> ContextView:
    return await service.container.context_requests.answer(service.tenant, conversation_id, ask, idem=idem)


async def over_threshold(service: Service) -> UUID:
    """A conversation that a turn would compact before its call, and that nothing else compacts."""
    trigger = {"name": "sync", "on": "before_call", "at": {"share": 0.5}, "run": "inline"}
    conversation_id = await service.conversation(triggers=[trigger], target=0.4)
    await service.say(conversation_id, 41)
    return conversation_id


async def expansions(engine: AsyncEngine, conversation_id: UUID) -> list[tuple[str, int]]:
    statement = "SELECT way, passages FROM expansions WHERE conversation_id = $1"
    async with engine.connect() as connection:
        found = await connection.exec_driver_sql(statement, (conversation_id,))
        return [(row.way, row.passages) for row in found]


# Compacting


async def test_what_is_due_before_a_call_is_compacted_first(service: Service) -> None:
    conversation_id = await over_threshold(service)
    before = await answered(service, conversation_id, ContextAsk())
    found = await answered(service, conversation_id, IF_NEEDED)

    assert before.compaction is None
    assert before.context.gauge.breakdown.state == 0
    assert found.compaction is not None
    row = found.compaction.compaction
    assert (row.status, row.trigger, row.ran_in) == ("applied", "sync", "request")
    assert found.compaction.summary
    assert found.context.gauge.breakdown.state > 0
    assert found.context.gauge.tokens < before.context.gauge.tokens
    assert (await answered(service, conversation_id, IF_NEEDED)).compaction is None, "it is below the threshold now"
    assert [one.status for one in await service.compactions(conversation_id)] == ["applied"]


async def test_never_means_never(service: Service) -> None:
    conversation_id = await over_threshold(service)
    waiting = await service.compactions(conversation_id)
    for ask in (ContextAsk(), ContextAsk(recall_request=QUERY, counts=True)):
        assert (await answered(service, conversation_id, ask)).compaction is None
    assert await service.compactions(conversation_id) == waiting
    assert (await service.row(conversation_id)).state_version == 0


async def test_a_compaction_that_fails_costs_no_context(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    async def refuses(request: SummaryRequest) -> Proposal:
        return Proposal(text="I cannot help with that.", finish="stop", model="fake")

    service = Service(begin, tenant, refuses)
    conversation_id = await over_threshold(service)
    found = await answered(service, conversation_id, IF_NEEDED)

    assert found.compaction is not None
    assert found.compaction.compaction.status == "rejected"
    assert any(one.startswith("compaction_failed:") for one in found.context.warnings)
    assert len(found.context.messages) > 1


async def test_the_same_key_compacts_and_counts_once(service: Service, engine: AsyncEngine) -> None:
    conversation_id = await over_threshold(service)
    key = Idem(key="k", fingerprint="f")
    ask = ContextAsk(
        budget=400, compact="if_needed", counts=True, recall_request=RecallRequest(query="harbour number 3")
    )
    first = await answered(service, conversation_id, ask, key)
    await service.say(conversation_id, 41)
    again = await answered(service, conversation_id, ask, key)

    assert first.compaction is not None
    assert again.compaction is not None
    assert again.compaction.compaction.id == first.compaction.compaction.id
    assert len(await expansions(engine, conversation_id)) == 1

    await answered(service, conversation_id, ask, Idem(key="other", fingerprint="f"))
    assert len(await expansions(engine, conversation_id)) == 2, "the control: another key is another request"


# Counting


async def test_a_query_is_counted_and_a_look_is_not(service: Service, engine: AsyncEngine) -> None:
    conversation_id = await folded(service)
    await answered(service, conversation_id, ContextAsk(budget=300, recall_request=QUERY))
    assert await expansions(engine, conversation_id) == []

    found = await answered(service, conversation_id, ContextAsk(budget=300, recall_request=QUERY, counts=True))
    assert await expansions(engine, conversation_id) == [("automatic", len(found.context.recalled))]
    assert found.context.recalled

    await answered(service, conversation_id, ContextAsk(budget=300, counts=True))
    assert len(await expansions(engine, conversation_id)) == 1, "nothing was recalled"


@pytest.mark.daily(1)
@pytest.mark.parametrize(("reply", "used"), [("Ferreira did, in an afternoon.", True), ("Nobody knows.", False)])
async def test_what_a_turn_recalls_is_counted_once(
    begin: UnitOfWorkFactory, tenant: UUID, engine: AsyncEngine, reply: str, *, used: bool
) -> None:
    service = Service(begin, tenant, chat=ScriptedChatModel(reply))
    conversation_id = await folded(service, levels=[])
    handle = await service.container.chat.start(service.tenant, conversation_id, ChatInput(content=QUESTION))
    result = await handle.result()

    assert result.recalled
    assert await expansions(engine, conversation_id) == [("automatic", len(result.recalled))]
    async with engine.connect() as connection:
        found = await connection.exec_driver_sql("SELECT used FROM expansions")
        assert [row.used for row in found] == [used]
    assert set(result.recalled) == result.segments.keys()


async def test_between_the_calls_of_an_answer_the_same_is_recalled(service: Service, engine: AsyncEngine) -> None:
    conversation_id = await folded(service, levels=[])
    in_turn = RecallRequest(in_turn=True, record_id=uuid4())

    async def assembled() -> AssembledContext:
        return await service.container.context.assemble(service.tenant, conversation_id, recall_request=in_turn)

    async def said(*drafts: MessageDraft) -> None:
        await service.container.messages.append(service.tenant, conversation_id, list(drafts))

    await said(MessageDraft(role="user", content=QUESTION))
    before = await assembled()
    call = {"type": "tool_call", "id": "c", "name": "look", "arguments": {}}
    await said(
        MessageDraft(role="assistant", content="", parts=(call,)),
        MessageDraft(role="tool", content="", parts=({"type": "tool_result", "tool_call_id": "c", "content": "no"},)),
    )
    between = await assembled()
    await said(MessageDraft(role="assistant", content="Nobody knows."))
    after = await assembled()

    assert before.recalled
    assert [one.source.seq for one in between.recalled] == [one.source.seq for one in before.recalled]
    assert between.messages[: len(before.messages)] == before.messages, "the prefix is the same"
    assert after.recalled == ()
    assert len(await expansions(engine, conversation_id)) == 1


# Sections


def kinds(context: AssembledContext) -> set[str]:
    return {section.kind for section in context.sections}


@pytest.mark.long
async def test_recalled_messages_are_traced_to_their_segments(service: Service) -> None:
    conversation_id = await folded(service, segment_by={"by": "turns", "size": 3})
    found = await answered(service, conversation_id, ContextAsk(budget=400, recall_request=QUERY))
    recalled = [section for section in found.context.sections if section.kind == "recalled"]

    assert {seq for section in recalled for seq in section.seqs} == {one.source.seq for one in found.context.recalled}
    assert sum(section.tokens for section in recalled) == found.context.gauge.breakdown.recalled
    assert all(section.level == "full" and section.segment_id for section in recalled)
    assert len({section.segment_id for section in recalled}) > 1
    (holding,) = [section for section in recalled if 11 in section.seqs]
    async with service.begin(service.tenant) as uow:
        segment = await uow.segments.get(conversation_id, str(holding.segment_id))
    assert segment.from_seq <= 11 <= segment.to_seq


@pytest.mark.long
async def test_what_a_caller_leaves_out_is_left_out(service: Service) -> None:
    conversation_id = await folded(service)
    pinned = await service.say(conversation_id, 1)
    await service.container.pins.pin(service.tenant, conversation_id, pinned[0].id)
    await service.say(conversation_id, 30)
    await service.container.manual.compact(
        service.tenant, conversation_id, CompactInput(keep_tail_messages=2), timeout=20
    )
    everything = (await answered(service, conversation_id, ContextAsk(recall_request=QUERY))).context
    assert {"state", "digests", "held", "recalled", "tail"} <= kinds(everything)

    without = {
        "state": WantedSections(state=False),
        "digests": WantedSections(digests=False),
        "held": WantedSections(held=False),
        "recalled": WantedSections(recalled=False),
    }
    for name, wanted in without.items():
        ask = ContextAsk(recall_request=RecallRequest(query=QUESTION, wanted=wanted))
        found = (await answered(service, conversation_id, ask)).context
        left = getattr(found.gauge.breakdown, name)
        if name == "state":  # the block's own lines stay, for its other parts
            assert left < everything.gauge.breakdown.state / 2
            assert "logos" not in found.messages[1].content
        else:
            assert left == 0
            assert name not in kinds(found)
        others = {"digests", "held", "recalled", "tail"} - {name}
        assert others <= kinds(found)


@pytest.mark.long
async def test_digests_of_chosen_levels(service: Service) -> None:
    conversation_id = await folded(service, segment_by={"by": "turns", "size": 3}, anchor_share=0.0)

    async def levels(*chosen: Any) -> set[str | None]:
        asked = RecallRequest(wanted=WantedSections(levels=chosen))
        context = (await answered(service, conversation_id, ContextAsk(recall_request=asked))).context
        return {section.level for section in context.sections if section.kind == "digests" and section.segment_id}

    assert await levels("L3") == {"L3"}
    assert "L2" in await levels("L2", "L3")
    assert await levels() == set()


@pytest.mark.long
async def test_a_part_that_is_left_out_while_the_tail_is_cut(service: Service) -> None:
    """When other things have to go, nothing comes back that was not wanted."""
    conversation_id = await folded(service)
    await service.say(conversation_id, 30)
    wanted = WantedSections(state=False, anchors=False, digests=False, held=False)
    ask = ContextAsk(budget=400, recall_request=RecallRequest(wanted=wanted))
    found = (await answered(service, conversation_id, ask)).context
    assert kinds(found) <= {"system", "state", "tail"}
    assert found.gauge.tokens - found.gauge.breakdown.system <= 400
    assert "logos" not in "".join(message.content for message in found.messages[1:])


@pytest.mark.long
async def test_without_the_key_s_memory_it_would_count_twice(
    service: Service, engine: AsyncEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control of the key: if it is forgotten, every repetition counts."""

    async def forgotten(*args: Any) -> None:
        await claim_key(*args)

    conversation_id = await folded(service)
    monkeypatch.setattr(context_requests, "claim_key", forgotten)
    ask = ContextAsk(budget=300, recall_request=QUERY, counts=True)
    for _ in range(2):
        await answered(service, conversation_id, ask, Idem(key="k", fingerprint="f"))
    assert len(await expansions(engine, conversation_id)) == 2


async def test_the_minimum_that_a_refusal_names_is_enough_whatever_follows_the_question(service: Service) -> None:
    conversation_id = await service.conversation(triggers=[])
    drafts = [MessageDraft(role="user", content=f"{FACT} {QUESTION}"), MessageDraft(role="system", content="Be brief.")]
    await service.container.messages.append(service.tenant, conversation_id, drafts)

    with pytest.raises(BudgetTooSmallError) as refused:
        await answered(service, conversation_id, ContextAsk(budget=1))
    minimum = refused.value.extra["minimum"]

    view = await answered(service, conversation_id, ContextAsk(budget=minimum))
    assert [one.seq for one in view.context.messages if one.seq] == [1, 2]
    with pytest.raises(BudgetTooSmallError):
        await answered(service, conversation_id, ContextAsk(budget=minimum - 1))
