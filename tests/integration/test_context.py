"""Contexts on a real database: anchors in truncation, tool pairs with a held half, and what an erasure leaves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from app.core.context.assembly import AssembledContext
from app.core.model.anchors import FoundAnchor
from app.core.model.conversation import Message
from app.core.model.errors import BudgetTooSmallError
from app.core.segments.message_analysis import Messages
from app.core.summarizer.offline.extractive import digest as extractive_digest
from app.core.text.memo import forget
from app.storage.repositories.anchors import AnchorRepository
from app.storage.repositories.messages import MessageRepository
from app.storage.unit_of_work import UnitOfWorkFactory
from app.usecases.compaction.manual import CompactInput
from app.usecases.context import context as module
from app.usecases.history.drafts import MessageDraft
from tests.builders import material, message, policy_of
from tests.integration.services import Service

TOLD = 73
"""The message with the secret: it is cut off, and near enough to the cut for a digest to tell it."""

FACT = "The archive listens on port 7443 and its region is eu-north-1."
SECRET = "The archive takes password=hunter2hunter2 since the audit of PostgreSQL 18."


@pytest.fixture
def service(begin: UnitOfWorkFactory, tenant: UUID) -> Service:
    return Service(begin, tenant)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[UUID]:
    """The conversation of each reading of the showable anchors."""
    seen: list[UUID] = []
    read = AnchorRepository.showable

    async def counted(self: AnchorRepository, conversation_id: UUID, **given: Any) -> tuple[list[FoundAnchor], int]:
        seen.append(conversation_id)
        return await read(self, conversation_id, **given)

    monkeypatch.setattr(AnchorRepository, "showable", counted)
    return seen


async def said(service: Service, conversation_id: UUID, *drafts: MessageDraft | str) -> list[Message]:
    made = [MessageDraft(role="user", content=one) if isinstance(one, str) else one for one in drafts]
    messages = await service.container.messages.append(service.tenant, conversation_id, made)
    await service.container.outbox.drain()
    return messages


async def assembled(service: Service, conversation_id: UUID, budget: int | None = None) -> AssembledContext:
    return await service.container.context.assemble(service.tenant, conversation_id, budget)


def block(context: AssembledContext) -> str:
    return next((one.content for one in context.messages if one.content.startswith("<session_state>")), "")


def seqs(context: AssembledContext) -> Sequence[int | None]:
    return [one.seq for one in context.messages]


async def overfull(service: Service, **policy: Any) -> UUID:
    """A conversation with more than the budget holds, with nothing compacted and a fact at the beginning."""
    conversation_id = await service.conversation(triggers=[], protect=[], **policy)
    await said(service, conversation_id, FACT, "Hello")
    await service.say(conversation_id, 70)
    (secret,) = await said(service, conversation_id, SECRET)
    assert secret.seq == TOLD
    await service.say(conversation_id, 100)
    return conversation_id


@pytest.mark.long
async def test_truncation_serves_the_anchors_of_what_it_cut_off(service: Service) -> None:
    conversation_id = await overfull(service)
    found = await assembled(service, conversation_id)

    assert found.truncated is not None
    assert FACT in block(found)
    assert "<left_out" in block(found)
    assert "PostgreSQL 18" in block(found)
    assert "hunter2hunter2" not in block(found)
    assert found == await assembled(service, conversation_id)


async def test_anchors_are_read_only_where_something_is_left_out(service: Service, reads: list[UUID]) -> None:
    small, large = await service.conversation(protect=[]), await overfull(service)
    await said(service, small, FACT, "Hello")
    reads.clear()
    await assembled(service, small)
    assert reads == []
    await assembled(service, small, 20)
    await assembled(service, large)
    assert reads == [small, large]


async def test_a_held_half_of_a_tool_pair_holds_the_other(service: Service) -> None:
    conversation_id = await service.conversation(protect=["constraint"])
    call = {"type": "tool_call", "id": "a", "name": "look", "arguments": {"for": "crates"}}
    result = {"type": "tool_result", "tool_call_id": "a", "content": "forty crates"}
    await said(
        service,
        conversation_id,
        "Look it up, please.",
        MessageDraft(role="assistant", content="", parts=(call,)),
        MessageDraft(role="tool", content="", parts=(result,), event_type="constraint"),
    )
    await service.say(conversation_id, 12)
    await service.container.manual.compact(service.tenant, conversation_id, CompactInput(), timeout=30.0)
    row = await service.row(conversation_id)
    found = await assembled(service, conversation_id)

    assert row.layout is not None
    assert row.layout.held == (2, 3)
    assert seqs(found)[3:5] == [2, 3]


async def test_a_result_is_never_served_without_its_call_however_large(service: Service) -> None:
    conversation_id = await service.conversation(context_window=8_000)
    call = {"type": "tool_call", "id": "1", "name": "write", "arguments": {"text": "ship " * 4_000}}
    await said(
        service,
        conversation_id,
        "Write it down.",
        MessageDraft(role="assistant", content="", parts=(call,)),
        MessageDraft(role="tool", content="", parts=({"type": "tool_result", "tool_call_id": "1", "content": "done"},)),
    )
    whole = await assembled(service, conversation_id)
    assert [one.role for one in whole.messages[1:]] == ["user", "assistant", "tool"]
    with pytest.raises(BudgetTooSmallError) as refused:
        await assembled(service, conversation_id, 200)
    enough = await assembled(service, conversation_id, refused.value.extra["minimum"])
    assert [one.role for one in enough.messages[-2:]] == ["assistant", "tool"]


async def test_what_was_erased_does_not_hide_the_last_message_however_large(service: Service) -> None:
    conversation_id = await service.conversation(context_window=8_000)
    *_, last = await said(service, conversation_id, "Hello", "ship " * 4_000, "Thank you.")
    await service.container.erasure.erase(service.tenant, conversation_id, last.id)
    with pytest.raises(BudgetTooSmallError) as refused:
        await assembled(service, conversation_id, 200)
    assert seqs(await assembled(service, conversation_id, refused.value.extra["minimum"]))[-1] == 2


async def test_a_digest_is_made_anew_after_an_erasure(service: Service) -> None:
    conversation_id = await overfull(service)
    before = await assembled(service, conversation_id)
    assert "PostgreSQL 18" in block(before)

    async with service.begin(service.tenant) as uow:
        erased = await uow.messages.at_seq(conversation_id, TOLD)
    await service.container.erasure.erase(service.tenant, conversation_id, erased.id)
    after = await assembled(service, conversation_id)

    assert "PostgreSQL 18" not in block(after)
    assert after.truncated is not None


def test_a_digest_is_made_anew_after_a_pin() -> None:
    """What is served word for word leaves its place in the digest to others."""
    policy = policy_of(context_window=4_500)
    told = [
        message(seq, f"We decided that crate {37 * seq} goes to Riga for {113 * seq} euros. " + "And so on. " * 20)
        for seq in range(1, 61)
    ]
    told[8] = message(9, "We decided: the code is AB-1234.")
    pinned = [replace(one, protected_reason="pinned") if one.seq == told[8].seq else one for one in told]

    def left_out(messages: list[Message]) -> str:
        whole = "\n".join(one.content for one in module._assembled(material(messages, policy=policy), None).messages)
        return whole[whole.index("<left_out") : whole.index("</left_out>")]

    before, after = left_out(told), left_out(pinned)
    forget()
    assert after == left_out(pinned)
    assert ["AB-1234" in before, "AB-1234" in after] == [True, False]


@pytest.mark.long
async def test_control_a_digest_known_by_its_messages_alone_would_be_served_again(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    conversation_id = await overfull(service)
    await assembled(service, conversation_id)
    kept: dict[int, str] = {}
    digest_of = module._digest_without_secrets

    def by_messages(span: Messages, max_tokens: int, locale: str) -> str:
        return kept.setdefault(1, digest_of(span, max_tokens, locale))

    monkeypatch.setattr(module, "_digest_without_secrets", by_messages)
    await assembled(service, conversation_id)
    async with service.begin(service.tenant) as uow:
        erased = await uow.messages.at_seq(conversation_id, TOLD)
    await service.container.erasure.erase(service.tenant, conversation_id, erased.id)

    assert "PostgreSQL 18" in block(await assembled(service, conversation_id))


ASKED = 200
"""The tokens of a context that is far smaller than its tail."""


@pytest.fixture
def tails(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of messages that each reading of the tail returned."""
    seen: list[int] = []
    read = MessageRepository.newest

    async def counted(self: MessageRepository, conversation_id: UUID, **given: Any) -> list[Message]:
        found = await read(self, conversation_id, **given)
        seen.append(len(found))
        return found

    monkeypatch.setattr(MessageRepository, "newest", counted)
    return seen


async def test_a_small_context_reads_little_of_a_large_tail(service: Service, tails: list[int]) -> None:
    conversation_id = await service.conversation(triggers=[], protect=[], context_window=1_000_000)
    last = (await service.say(conversation_id, 400, words=8))[-1]
    await service.container.anchors.work(conversation_id)
    tails.clear()
    found = await assembled(service, conversation_id, ASKED)

    most = module.LOADED_BUDGETS * ASKED + module.DIGEST_SOURCE_TIMES * ASKED
    assert tails[0] * last.token_count <= most < 400 * last.token_count
    assert found.messages[-1].seq == last.seq
    assert found.truncated is not None
    assert found.truncated[0] == 1
    await assembled(service, conversation_id)
    assert tails == [tails[0], 400]


@pytest.mark.parametrize("policy", [{}, {"on_failure": "keep_full", "oversized": "elide"}], ids=["truncate", "elide"])
async def test_what_fits_by_bytes_is_served_however_many_tokens_it_has(
    service: Service, policy: dict[str, Any]
) -> None:
    """What was not read would be missing without a warning and without ``truncated``."""
    codes = ["a_" * 200 for _ in range(25)]

    async def served_by(estimator: str, **given: Any) -> tuple[AssembledContext, int]:
        conversation_id = await service.conversation(triggers=[], protect=[], estimator=estimator, **given)
        await said(service, conversation_id, *codes)
        return await assembled(service, conversation_id), (await service.row(conversation_id)).total.tokens

    found, tokens = await served_by("bytes", **policy)
    assert tokens > module.LOADED_BUDGETS * found.gauge.budget > 2 * found.gauge.tokens
    assert [seq for seq in seqs(found) if seq is not None] == list(range(1, 26))
    assert (found.truncated, found.warnings) == (None, ())

    control, _ = await served_by("script")
    assert len(control.messages) < len(codes)
    assert control.truncated is not None, "what is left out is told"


@pytest.mark.daily(1)
@pytest.mark.parametrize("limit", [200, 1_000_000])
async def test_a_digest_tells_of_a_bounded_part_of_what_is_left_out(
    service: Service, monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    weights: list[int] = []

    def noted(span: Messages, max_tokens: int, locale: str) -> str:
        weights.append(sum(message.token_count for message in span.messages))
        return extractive_digest(span.messages, max_tokens, locale)

    conversation_id = await overfull(service, context_window=100_000)
    total = (await service.row(conversation_id)).total.tokens
    monkeypatch.setattr(module, "_digest_without_secrets", noted)
    monkeypatch.setattr(module, "DIGEST_SOURCE_TOKENS", limit)
    found = await assembled(service, conversation_id, 2_000)

    assert "<left_out" in block(found)
    assert found.truncated is not None
    assert found.truncated[0] == 1
    assert weights[0] <= limit
    assert (weights[0] > total // 4) == (limit > total)


async def test_an_asked_budget_does_not_change_when_a_compaction_is_due(service: Service) -> None:
    conversation_id = await service.conversation()
    await service.say(conversation_id, 20)
    await service.container.anchors.work(conversation_id)
    stored = await assembled(service, conversation_id)
    squeezed = await assembled(service, conversation_id, ASKED)

    assert squeezed.gauge.tokens < stored.gauge.tokens
    assert squeezed.gauge.tokens == squeezed.gauge.breakdown.total
    assert stored.gauge.tokens_until_compaction
    assert squeezed.gauge.status == stored.gauge.status
    assert squeezed.gauge.tokens_until_compaction == stored.gauge.tokens_until_compaction
