"""What a model would be sent: loads a bounded part of the history, and lets the core put it together."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import lru_cache
from uuid import UUID

from app.domain.assembly import AssembledContext, Material, assemble
from app.domain.conversation import Conversation, Message
from app.domain.extractive import digest as extractive_digest
from app.domain.schemas import schema_named
from app.domain.tokens import estimate_text, weigh
from app.ports import UnitOfWork
from app.services.appending import MessageDraft
from app.services.resolve import Resolved
from app.services.shell import Shell

LOADED_BUDGETS = 2  # one budget that may be served, and one before it that a digest tells of
ON_LOOP = 48  # messages: more than this is put together off the event loop
DIGESTS = 256  # digests kept per process; each is a pure function of its messages


class ContextService:
    """Contexts and their sizes; never compacts."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell

    async def assemble(
        self, tenant_id: UUID, conversation_id: UUID, budget: int | None = None, *, model: str | None = None
    ) -> AssembledContext:
        """The context within the policy's budget, or within ``budget`` tokens after the system prompt."""
        async with self._shell.uow(tenant_id) as uow:
            resolved = self._shell.resolver(await uow.conversations.get(conversation_id), model=model)
            material = await load(uow, resolved)
        if len(material.tail) + len(material.held) <= ON_LOOP:
            return _assembled(material, budget)
        return await asyncio.to_thread(_assembled, material, budget)

    async def count_tokens(self, text: str | None, drafts: Sequence[MessageDraft] | None) -> int:
        """What a text, or messages, would weigh."""
        weights = [weigh(draft.role, draft.content, draft.parts).tokens for draft in drafts or ()]
        return sum(weights) + (await asyncio.to_thread(estimate_text, text) if text else 0)


async def load(uow: UnitOfWork, resolved: Resolved) -> Material:
    """Read what a context can be made of: one query for the tail, bounded by the budget."""
    conversation, budgets = resolved.conversation, resolved.budgets
    most = max(LOADED_BUDGETS * budgets.budget, budgets.window)
    tail = await uow.messages.newest(conversation.id, after_seq=conversation.boundary_seq, max_tokens=most)
    held = await _held(uow, conversation, tail)
    loaded = sum(message.token_count for message in tail)
    return Material(
        conversation=conversation,
        schema=schema_named(conversation.state_schema) if conversation.state_schema else resolved.schema,
        policy=resolved.policy,
        budgets=budgets,
        system=resolved.system,
        held=tuple(message for message in held if _says_something(message)),
        tail=tuple(message for message in tail if _says_something(message)),
        unloaded_tokens=max(conversation.total.tokens - conversation.covered.tokens - loaded, 0),
    )


async def _held(uow: UnitOfWork, conversation: Conversation, tail: Sequence[Message]) -> list[Message]:
    """Held messages that the loaded tail does not show: covered ones, and those before what was loaded."""
    before = tail[0].seq - 1 if tail else conversation.last_seq
    return await uow.messages.held(conversation.id, through_seq=before) if before else []


def _says_something(message: Message) -> bool:
    """An answer interrupted before its first word stands in the history, but tells a model nothing."""
    return bool(message.content or message.parts)


def _assembled(material: Material, budget: int | None) -> AssembledContext:
    locale = material.conversation.locale

    def digest(messages: Sequence[Message], max_tokens: int) -> str:
        return _digest(_Span(tuple(messages)), max_tokens, locale)

    return assemble(material, digest=digest, budget=budget)


class _Span:
    """Messages as a cache key: the same ids are the same immutable messages."""

    def __init__(self, messages: tuple[Message, ...]) -> None:
        self.messages = messages
        self._key = (messages[0].id, messages[-1].id, len(messages))

    def __hash__(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Span) and self._key == other._key


@lru_cache(maxsize=DIGESTS)
def _digest(span: _Span, max_tokens: int, locale: str) -> str:
    return extractive_digest(span.messages, max_tokens, locale)
