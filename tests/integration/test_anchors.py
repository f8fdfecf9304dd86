"""Anchors on a real database: found at the append, changed by what is said later, served verbatim, set by hand."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any
from uuid import UUID, uuid4

import pytest

from app.core.anchors.transitions import transitions
from app.core.model.anchors import Anchor, FoundAnchor
from app.core.model.conversation import Message, Role
from app.core.model.errors import NotFoundError
from app.core.model.model_io import Proposal, SummaryRequest
from app.core.model.records import Page
from app.core.planning.triggers import quiet_after
from app.storage.unit_of_work import UnitOfWorkFactory
from app.usecases.compaction import chunk
from app.usecases.compaction.manual import CompactInput
from app.usecases.history import anchoring, appending, erasure
from app.usecases.history.anchoring import add_proposed, proposed_anchors
from app.usecases.history.drafts import MessageDraft
from tests.integration.rows import anchor, make_tenant
from tests.integration.services import WORDS, Gate, Service, block, honest, proposal

PATIENCE = 30.0
FACTS = (
    "We decided to store invoices in Frankfurt.",
    "Let's use Kotlin for the Android client.",
    "The deadline for the tax filing is 31 March 2027.",
    "My phone number is +49 170 5550199.",
    "Our budget for the kitchen is 12,400 euros.",
    "My daughter's name is Henrike.",
)
POSTGRES = "Let's use Postgres for the order store."
MYSQL = "No, let's use MySQL for the order store instead of Postgres."
ENDPOINT = "My API endpoint is https://api.example.com/v2 and the limit is 500 requests."
QUESTION = "What is the retention period for the audit log?"
ANSWER = "The retention period for the audit log is 90 days."


@pytest.fixture
def service(begin: UnitOfWorkFactory, tenant: UUID) -> Service:
    return Service(begin, tenant)


async def said(service: Service, conversation_id: UUID, *texts: str, **given: Any) -> list[Message]:
    drafts = [MessageDraft(**({"role": "user", "content": text} | given)) for text in texts]
    messages = await service.container.messages.append(service.tenant, conversation_id, drafts)
    await service.container.outbox.drain()
    return messages


async def anchors(service: Service, conversation_id: UUID, **given: Any) -> list[Anchor]:
    """The anchors, without those of the talk that fills a conversation."""
    page = Page(limit=100, order="asc")
    found, _ = await service.container.anchors.page(service.tenant, conversation_id, page, **given)
    return [one for one in found if not one.content.startswith(WORDS[:12])]


def shape(found: list[Anchor]) -> list[tuple[int, str, str, str]]:
    return [(one.seq, one.type, one.content, one.status) for one in found]


async def folded(service: Service, conversation_id: UUID) -> None:
    """Append until a state covers everything but a short tail."""
    await service.say(conversation_id, 12)
    await service.container.manual.compact(service.tenant, conversation_id, CompactInput(), timeout=PATIENCE)


class TestAtTheAppend:
    async def test_anchors_stand_verbatim_at_their_place(self, service: Service) -> None:
        conversation_id = await service.conversation()
        messages = await said(service, conversation_id, f"Hello there. {POSTGRES}", "Nice weather today.", ENDPOINT)
        found = await anchors(service, conversation_id)

        assert [(one.seq, one.type) for one in found] == [(1, "decision"), (3, "critical_fact")]
        for one in found:
            source = messages[one.seq - 1]
            assert one.message_id == source.id
            assert source.content[one.offset : one.offset + len(one.content)] == one.content
            assert (one.status, one.proposed_by, one.superseded_by) == ("active", "rule", None)
        assert found[0].content == POSTGRES

    async def test_commands_tools_and_the_system_say_none(self, service: Service) -> None:
        conversation_id = await service.conversation()
        await said(service, conversation_id, POSTGRES, is_command=True, event_type="command")
        await said(service, conversation_id, POSTGRES, role="system")
        call = {"type": "tool_call", "id": "a", "name": "f", "arguments": {}}
        await said(service, conversation_id, "", role="assistant", parts=(call,))
        result = {"type": "tool_result", "tool_call_id": "a", "content": POSTGRES}
        await said(service, conversation_id, POSTGRES, role="tool", parts=(result,))
        assert await anchors(service, conversation_id) == []
        await said(service, conversation_id, POSTGRES)
        assert len(await anchors(service, conversation_id)) == 1  # the control: here it is a fact

    async def test_a_correction_supersedes_what_it_corrects(self, service: Service) -> None:
        conversation_id = await service.conversation()
        await said(service, conversation_id, POSTGRES)
        await said(service, conversation_id, MYSQL)
        old, new = await anchors(service, conversation_id)

        assert (old.content, old.status, old.superseded_by) == (POSTGRES, "superseded", new.id)
        assert (new.content, new.status) == (MYSQL, "active")
        assert await anchors(service, conversation_id, status="active") == [new]
        assert await anchors(service, conversation_id, type_="decision") == [old]

    @pytest.mark.daily(1)
    @pytest.mark.parametrize("covers_correction", [True, False])
    async def test_what_an_erased_correction_superseded_is_active_again(
        self, service: Service, *, covers_correction: bool
    ) -> None:
        """As in a fork or an import of the same history, in which nothing corrects it."""
        conversation_id = await service.conversation(max_tokens=-1, protect=())
        await said(service, conversation_id, POSTGRES)
        correction = MessageDraft(role="user", content=MYSQL)
        if covers_correction:
            (made,) = await service.container.messages.append(service.tenant, conversation_id, [correction])
        await service.say(conversation_id, 16)
        given = CompactInput(keep_tail_messages=2)
        await service.container.manual.compact(service.tenant, conversation_id, given, timeout=30)
        if not covers_correction:
            (made,) = await service.container.messages.append(service.tenant, conversation_id, [correction])
        layout = (await service.row(conversation_id)).layout
        assert layout is not None
        assert POSTGRES not in layout.anchors
        assert (await anchors(service, conversation_id))[0].status == "superseded"
        await service.container.erasure.erase(service.tenant, conversation_id, made.id)

        (old, *_) = await anchors(service, conversation_id)
        assert (old.content, old.status, old.superseded_by) == (POSTGRES, "active", None)
        layout = (await service.row(conversation_id)).layout
        assert layout is not None
        assert POSTGRES in layout.anchors

    async def test_an_answered_question_is_resolved(self, service: Service) -> None:
        conversation_id = await service.conversation()
        await said(service, conversation_id, QUESTION)
        assert [one.status for one in await anchors(service, conversation_id)] == ["active"]
        await said(service, conversation_id, ANSWER, role="assistant")
        assert (await anchors(service, conversation_id))[0].status == "resolved"

    @pytest.mark.long
    async def test_a_batch_is_what_its_messages_are_one_by_one(self, service: Service) -> None:
        talk = [POSTGRES, ENDPOINT, MYSQL, QUESTION, *[WORDS.format(seq=seq) for seq in range(60)]]
        once, single = await service.conversation(), await service.conversation()
        await said(service, once, *talk)
        for text in talk:
            await said(service, single, text)
        assert shape(await anchors(service, once)) == shape(await anchors(service, single))
        assert {one.status for one in await anchors(service, once)} == {"active", "superseded"}


def anchors_of(block_: str) -> str:
    """The element of the anchors; the digests tell what was said as well, whether or not it still holds."""
    return block_.partition("<anchors>")[2].partition("</anchors>")[0]


class TestServed:
    async def test_every_active_one_stands_verbatim_in_the_block(self, service: Service) -> None:
        conversation_id = await service.conversation(protect=[])
        await said(service, conversation_id, POSTGRES, ENDPOINT)
        await folded(service, conversation_id)
        served = await block(service, conversation_id)
        row = await service.row(conversation_id)

        assert POSTGRES in served
        assert ENDPOINT in served
        assert row.layout is not None
        gauge = (await service.container.conversations.get(service.tenant, conversation_id)).gauge
        assert gauge.breakdown.anchors == row.layout.anchor_tokens > 0
        assert gauge.anchors_behind_marker == 0

    async def test_beyond_the_share_the_gauge_says_how_many_stand_behind_the_marker(self, service: Service) -> None:
        conversation_id = await service.conversation(protect=[], anchor_share=0.03)
        await said(service, conversation_id, *FACTS)
        await folded(service, conversation_id)
        row = await service.row(conversation_id)
        gauge = (await service.container.conversations.get(service.tenant, conversation_id)).gauge

        assert row.layout is not None
        assert gauge.anchors_behind_marker == row.layout.anchors_behind_marker > 0
        assert "[anchors →L3:anchors]" in await block(service, conversation_id)

    @pytest.mark.parametrize("guarded", [True, False], ids=["rendered again", "control"])
    async def test_what_is_said_later_changes_what_is_served_at_once(
        self, service: Service, monkeypatch: pytest.MonkeyPatch, *, guarded: bool
    ) -> None:
        if not guarded:

            async def left_alone(_uow: Any, _shell: Any, resolved: Any, **_: Any) -> Any:
                return resolved

            monkeypatch.setattr(appending, "renew_layout", left_alone)
        conversation_id = await service.conversation(protect=[])
        await said(service, conversation_id, POSTGRES, ENDPOINT)
        await folded(service, conversation_id)
        before = await service.row(conversation_id)
        await said(service, conversation_id, MYSQL)
        after = await service.row(conversation_id)
        served = await block(service, conversation_id)

        assert ENDPOINT in served
        assert (POSTGRES not in served) is guarded
        assert (after.layout_version == before.layout_version + 1) is guarded
        assert after.state_version == before.state_version

    async def test_what_changes_nothing_in_the_block_leaves_its_bytes(self, service: Service) -> None:
        conversation_id = await service.conversation(protect=[])
        await said(service, conversation_id, ENDPOINT)
        await folded(service, conversation_id)
        before = await service.row(conversation_id)
        await said(service, conversation_id, POSTGRES)
        await said(service, conversation_id, MYSQL)  # supersedes an anchor whose message is in the tail
        after = await service.row(conversation_id)

        assert [one.status for one in await anchors(service, conversation_id)] == ["active", "superseded", "active"]
        assert (after.layout, after.layout_version) == (before.layout, before.layout_version)


class TestByHand:
    async def test_a_status_changes_what_is_served(self, service: Service) -> None:
        conversation_id = await service.conversation(protect=[])
        await said(service, conversation_id, POSTGRES, ENDPOINT)
        await folded(service, conversation_id)
        first, second = await anchors(service, conversation_id)
        before = await service.row(conversation_id)
        set_status = service.container.anchors.set_status

        settled = await set_status(service.tenant, conversation_id, first.id, "resolved")
        assert settled == replace(first, status="resolved")
        served, row = await block(service, conversation_id), await service.row(conversation_id)
        assert POSTGRES not in anchors_of(served)
        assert ENDPOINT in served
        assert row.layout_version == before.layout_version + 1
        assert row.context_tokens < before.context_tokens
        assert await set_status(service.tenant, conversation_id, first.id, "resolved") == settled
        assert await service.row(conversation_id) == row

        await set_status(service.tenant, conversation_id, first.id, "active")
        again = await service.row(conversation_id)
        assert (again.layout, again.context_tokens) == (before.layout, before.context_tokens)
        assert await anchors(service, conversation_id) == [replace(first, proposed_by="user"), second]

    async def test_one_in_the_tail_changes_no_block(self, service: Service) -> None:
        conversation_id = await service.conversation(protect=[])
        await folded(service, conversation_id)
        await said(service, conversation_id, POSTGRES)
        (found,) = await anchors(service, conversation_id)
        before = await service.row(conversation_id)
        await service.container.anchors.set_status(service.tenant, conversation_id, found.id, "superseded")
        assert (await service.row(conversation_id)).layout_version == before.layout_version

    async def test_a_restore_leaves_statuses(self, service: Service) -> None:
        conversation_id = await service.conversation(protect=[])
        await said(service, conversation_id, POSTGRES, ENDPOINT)
        await folded(service, conversation_id)
        first, _ = await anchors(service, conversation_id)
        await service.container.anchors.set_status(service.tenant, conversation_id, first.id, "resolved")
        await service.container.states.restore(service.tenant, conversation_id, 1)

        assert [one.status for one in await anchors(service, conversation_id)] == ["resolved", "active"]
        served = await block(service, conversation_id)
        assert POSTGRES not in anchors_of(served)
        assert ENDPOINT in served

    async def test_other_tenants_and_other_conversations_find_none(
        self, service: Service, begin: UnitOfWorkFactory
    ) -> None:
        conversation_id, other = await service.conversation(), await service.conversation()
        await said(service, conversation_id, POSTGRES)
        (found,) = await anchors(service, conversation_id)
        stranger = await make_tenant(begin, f"stranger {uuid4()}")
        for tenant_id, place, id_ in (
            (stranger, conversation_id, found.id),
            (service.tenant, other, found.id),
            (service.tenant, uuid4(), found.id),
            (service.tenant, conversation_id, uuid4()),
        ):
            with pytest.raises(NotFoundError):
                await service.container.anchors.set_status(tenant_id, place, id_, "resolved")
        for tenant_id, place in ((stranger, conversation_id), (service.tenant, uuid4())):
            with pytest.raises(NotFoundError):
                await service.container.anchors.page(tenant_id, place, Page())
        assert await anchors(service, other) == []
        assert await anchors(service, conversation_id) == [found]


class TestProposed:
    async def test_they_are_the_model_s_and_know_what_came_after(self, service: Service) -> None:
        conversation_id = await service.conversation()
        span = await said(service, conversation_id, f"Well. {POSTGRES}", "Nice weather.", MYSQL)
        (rule, correction) = await anchors(service, conversation_id)
        proposed = [
            found(1, POSTGRES, offset=1),  # at another place than the rule found it
            found(1, POSTGRES, offset=rule.offset),  # at the same place: it stays the rule's
            found(2, "Nice weather.", type="critical_fact"),
        ]
        async with service.begin(service.tenant) as uow:
            shell = service.container.conversations._shell
            resolved = shell.resolver(await uow.conversations.lock(conversation_id))
            await add_proposed(uow, resolved, proposed_anchors(shell, proposed, span[:2]), span[:2])
            await uow.commit()
        stored = {(one.seq, one.offset): one for one in await anchors(service, conversation_id)}

        assert len(stored) == 4
        assert stored[1, rule.offset] == rule
        assert stored[2, 0].proposed_by == "model"
        assert stored[2, 0].message_id == span[1].id
        assert stored[2, 0].status == "active"
        assert stored[1, 1].status == "superseded"
        assert stored[3, correction.offset] == correction

    @pytest.mark.parametrize(("role", "with_span"), [("user", True), ("assistant", True), ("user", False)])
    async def test_only_a_user_s_own_words_correct_what_a_user_stated(
        self, service: Service, monkeypatch: pytest.MonkeyPatch, role: Role, *, with_span: bool
    ) -> None:
        """The span says who said a proposed correction; one of an assistant does not change a user's fact."""
        conversation_id = await service.conversation()
        stated, corrected = "The database listens on port 5433.", "databases listening at 5440 these days"
        span = await said(service, conversation_id, stated)
        drafts = [MessageDraft(role=role, content=f"Mind you: {corrected}, as gulls do.")]
        span += await service.container.messages.append(service.tenant, conversation_id, drafts)
        known = {one.seq: one for one in await anchors(service, conversation_id)}
        assert (known[1].type, known[1].status) == ("critical_fact", "active")
        proposed = found(2, corrected, type="correction", offset=len("Mind you: "))
        if not with_span:  # control
            monkeypatch.setattr(anchoring, "transitions", lambda active, new, _: transitions(active, new, []))
        async with service.begin(service.tenant) as uow:
            shell = service.container.conversations._shell
            resolved = shell.resolver(await uow.conversations.lock(conversation_id))
            await add_proposed(uow, resolved, proposed_anchors(shell, [proposed], span), span)
            await uow.commit()
        stored = {one.id: one for one in await anchors(service, conversation_id)}
        (mine,) = [one for one in stored.values() if one.proposed_by == "model"]

        expected = ("superseded", mine.id) if role == "user" and with_span else ("active", None)
        assert (stored[known[1].id].status, stored[known[1].id].superseded_by) == expected

    async def test_a_verbatim_quote_of_the_model_is_served_and_an_invented_one_is_not(
        self, begin: UnitOfWorkFactory, tenant: UUID
    ) -> None:
        said_so, invented = "gulls sat on the old wall", "gulls sat on the new wall"

        async def proposing(request: SummaryRequest) -> Proposal:
            made = proposal(request)
            quotes = [{"type": "critical_fact", "quote": quote, "seq": 1} for quote in (said_so, invented)]
            return replace(made, text=json.dumps(json.loads(made.text) | {"anchors": quotes}))

        service = Service(begin, tenant, proposing)
        conversation_id = await service.conversation(protect=[])
        (first,) = await said(service, conversation_id, f"On walk one the {said_so}, as they do.")
        assert await anchors(service, conversation_id) == []
        await folded(service, conversation_id)
        (one,) = await anchors(service, conversation_id)

        assert (one.proposed_by, one.type, one.status) == ("model", "critical_fact", "active")
        assert one.message_id == first.id
        assert first.content[one.offset : one.offset + len(one.content)] == one.content
        assert said_so in one.content
        assert one.content in await block(service, conversation_id)
        assert (await service.row(conversation_id)).layout_version == 1


def found(seq: int, content: str, **given: Any) -> FoundAnchor:
    known: dict[str, Any] = {"type": "decision", "offset": 0, "importance": 0.5, "token_count": 9}
    return FoundAnchor(seq=seq, content=content, **known | given)


class TestSaving:
    @pytest.mark.daily(1)
    @pytest.mark.parametrize("guards", [1, 2, 0], ids=["compared when saved", "ended by the erasure", "control"])
    async def test_an_erasure_in_the_middle_makes_a_run_stale(
        self, begin: UnitOfWorkFactory, tenant: UUID, monkeypatch: pytest.MonkeyPatch, *, guards: int
    ) -> None:
        async def nothing(*_: Any, **__: Any) -> None:
            pass

        if guards < 2:
            monkeypatch.setattr(erasure, "end_row", nothing)
        if guards < 1:
            monkeypatch.setattr(chunk, "_version_numbers", lambda row: (row.state_version, row.boundary_seq, 0))
        gate = Gate()
        service = Service(begin, tenant, gate)
        conversation_id = await service.conversation()
        await service.say(conversation_id, 60)
        running = asyncio.create_task(service.container.compaction.execute(service.queue.ids[0]))
        await gate.reached.wait()
        async with begin(tenant) as uow:
            read = await uow.messages.at_seq(conversation_id, 5)
        await service.container.erasure.erase(tenant, conversation_id, read.id)
        gate.go_on.set()
        ended = await asyncio.wait_for(running, PATIENCE)

        assert ended is not None
        expected = ("superseded", "stale") if guards else ("applied", None)
        assert (ended.status, ended.reason) == expected
        assert (await service.row(conversation_id)).state_version == (0 if guards else 1)

    async def test_sizes_and_quiet_are_as_evaluation_sees_them(self, begin: UnitOfWorkFactory, tenant: UUID) -> None:
        service = Service(begin, tenant, honest)
        conversation_id = await service.conversation(max_tokens=-1)
        await service.say(conversation_id, 60)
        async with begin(tenant) as uow:
            await uow.conversations.update(conversation_id, token_factor=1.4)
            await uow.commit()
        view = await service.container.manual.compact(tenant, conversation_id, CompactInput(), timeout=PATIENCE)
        row = await service.row(conversation_id)
        resolved = service.container.conversations._shell.resolver(row)

        assert view.compaction.status == "applied"
        assert row.context_tokens == resolved.tokens == view.compaction.tokens_after
        assert resolved.tokens > resolved.breakdown.total
        assert row.quiet == quiet_after(
            resolved.policy, resolved.budgets, seen_seq=row.last_seq, predicted_tokens=resolved.tokens
        )
        assert (row.context_messages, row.trigger_messages) == (row.last_seq - row.boundary_seq, None)


async def test_an_outline_reckons_with_the_anchors_of_the_tail(service: Service) -> None:
    conversation_id = await service.conversation(protect=[])
    await said(service, conversation_id, POSTGRES, "Nice weather today.")
    (one,) = await anchors(service, conversation_id)
    async with service.begin(service.tenant) as uow:
        await uow.anchors.add([anchor(conversation_id, 2, status="resolved")])
        outline = await uow.messages.outline(conversation_id, after_seq=0, limit=9)
    assert [line.anchor_tokens for line in outline] == [one.token_count, 0]
