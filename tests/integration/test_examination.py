"""Examining and mending states over the database: what prevents it, what is followed back, and what is left alone."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Final
from uuid import UUID, uuid4

import pytest

from app.core.model.errors import CompactionInProgressError, NotFoundError, StateVersionMismatchError
from app.core.model.model_io import Proposal, SummaryRequest
from app.core.model.records import Page
from app.core.model.state import StateVersion
from app.storage.unit_of_work import UnitOfWorkFactory
from app.usecases.compaction.manual import CompactInput
from app.usecases.history.drafts import MessageDraft
from app.usecases.verification.examining import Examination
from tests.integration.services import Gate, Service, honest

SAID: Final = (
    "Now about the garden: the old apple tree must be cut, and Mrs Keller wants the wood for her stove.",
    "Then have the firm cut it in January when the ground is frozen, and let Mrs Keller take the wood that day.",
    "The harbour was quiet and the crates were counted twice, so that the list was closed early, and all went home.",
    "Noted: the wood of the apple tree goes to Mrs Keller, and the crates are counted for this week, nothing is open.",
)
QUOTE: Final = SAID[1]
STORY: Final = (
    "The garden and the apple tree were discussed, the tree will be cut, and Mrs Keller gets the wood for her stove. "
)
ALL: Final = CompactInput(keep_tail_messages=0)
PATIENCE: Final = 30.0


async def quoting(request: SummaryRequest) -> Proposal:
    """An answer as earlier checks would have changed it: an item is replaced by a sentence of a message."""
    seqs = [message.seq for message in request.messages if QUOTE in message.content]
    items = [
        {"text": QUOTE, "from": seqs, "replaces": []},
        {"text": "Mrs Keller gets the wood", "from": seqs, "replaces": []},
    ]
    told = {"logos": items, "pathos": [], "abstract": [], "conversation_summary": STORY * 2, "dropped": []}
    return Proposal(text=json.dumps(told), finish="stop", model="fake")


async def damaged(service: Service) -> UUID:
    """A conversation whose second compaction is recorded like one of that time, with one changed text."""
    conversation_id = await service.conversation(anchor_share=0.0, protect=[], recall="off")
    await service.say(conversation_id, 8, words=6)
    await service.container.manual.compact(service.tenant, conversation_id, ALL, timeout=PATIENCE)
    drafts = [MessageDraft(role="assistant" if place % 2 else "user", content=text) for place, text in enumerate(SAID)]
    await service.container.messages.append(service.tenant, conversation_id, drafts)
    await service.say(conversation_id, 4, words=6)
    await service.container.manual.compact(service.tenant, conversation_id, ALL, timeout=PATIENCE)
    last = (await service.compactions(conversation_id))[-1]
    attempts = tuple(replace(one, prompt_version=None) for one in last.attempts)
    async with service.begin(service.tenant) as uow:
        await uow.compactions.update_locked(last.id, attempts=attempts, entries=replace(last.entries, ungrounded=1))
        await uow.commit()
    return conversation_id


async def examine(service: Service, conversation_id: UUID, *, mend: bool = False) -> Examination:
    return await service.container.examination.examine(service.tenant, conversation_id, mend=mend)


async def newest(service: Service, conversation_id: UUID) -> StateVersion:
    async with service.begin(service.tenant) as uow:
        found, _ = await uow.states.page(conversation_id, Page(limit=1))
    return found[0]


@pytest.mark.long
async def test_what_is_mended_waits_for_the_verifier_as_before_and_a_restore_is_followed_back(
    begin: UnitOfWorkFactory, tenant: UUID
) -> None:
    service = Service(begin, tenant, honest, quoting)
    conversation_id = await damaged(service)
    before = await newest(service, conversation_id)
    done = await examine(service, conversation_id, mend=True)
    after, row = await newest(service, conversation_id), await service.row(conversation_id)
    assert [(one.kind, one.entry.text) for one in done.found] == [("quote", QUOTE)]
    assert (done.sound_version, done.messages, done.by_model) == (1, 8, True)
    assert (after.version, after.parent_version, after.made_by) == (before.version + 1, before.version, "verification")
    assert (before.verified, after.verified) == ("pending", "pending")
    async with service.begin(service.tenant) as uow:
        waiting = await uow.verifications.open_of(conversation_id)
        assert waiting is not None
        assert (await uow.states.get(conversation_id, before.version)).entries == before.entries
    assert [one.text for one in after.entries if one.in_doubt] == [QUOTE]
    assert (row.state_version, row.compressed_state, row.boundary_seq) == (after.version, after.state, 16)
    assert not (await examine(service, conversation_id, mend=True)).found
    entries, _ = await service.container.audit.page(tenant, Page(limit=9))
    assert [entry.action for entry in entries] == ["state.mended"], "the second time nothing was changed"
    await service.container.states.restore(tenant, conversation_id, 1)
    assert not (await examine(service, conversation_id)).found
    await service.container.states.restore(tenant, conversation_id, 2)
    again = await examine(service, conversation_id)
    assert ([one.version for one in again.found], again.sound_version, again.state_version) == ([2], 1, 5)
    async with begin(tenant) as uow:
        recorded = [one.action for one in (await uow.audit.page(Page(limit=9)))[0]]
    assert recorded.count("state.mended") == 1, "not for the second look, which found nothing"


async def test_only_what_was_mended_is_on_record_as_mended(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    service = Service(begin, tenant)
    conversation_id = await service.conversation()
    assert not (await examine(service, conversation_id, mend=True)).found
    async with begin(tenant) as uow:
        assert [one.action for one in (await uow.audit.page(Page(limit=9)))[0]] == [], "nothing was changed"


@pytest.mark.long
async def test_looking_waits_for_nobody_and_mending_for_a_compaction(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    gate = Gate()
    service = Service(begin, tenant, honest, quoting, gate)
    conversation_id = await damaged(service)
    before = await newest(service, conversation_id)
    await service.say(conversation_id, 8, words=6)
    running = asyncio.create_task(
        service.container.manual.compact(service.tenant, conversation_id, ALL, timeout=PATIENCE)
    )
    await asyncio.wait_for(gate.reached.wait(), PATIENCE)
    assert (await examine(service, conversation_id)).found
    with pytest.raises(CompactionInProgressError):
        await examine(service, conversation_id, mend=True)
    assert await newest(service, conversation_id) == before
    gate.go_on.set()
    assert (await running).compaction.status == "applied"
    mended = await examine(service, conversation_id, mend=True)
    assert [one.entry.text for one in mended.found] == [QUOTE]
    assert mended.state_version_now == before.version + 2


@pytest.mark.long
async def test_control_checks_of_today_and_other_versions_and_tenants(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    service = Service(begin, tenant, honest, quoting)
    conversation_id = await damaged(service)
    examination = service.container.examination
    with pytest.raises(StateVersionMismatchError):
        await examination.examine(tenant, conversation_id, mend=True, if_match=1)
    with pytest.raises(NotFoundError):
        await examination.examine(uuid4(), conversation_id)
    assert not (await examine(service, await service.conversation())).found, "there is no state"
    last = (await service.compactions(conversation_id))[-1]
    attempts = tuple(replace(one, prompt_version="summary-2") for one in last.attempts)
    async with service.begin(tenant) as uow:
        await uow.compactions.update_locked(last.id, attempts=attempts)
        await uow.commit()
    assert not (await examine(service, conversation_id, mend=True)).found
