"""Live contexts: what a stateful chat model continues from, when that is kept, and when it is given up."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from uuid import UUID

import structlog

from app.core.context.assembly import AssembledContext, ContextInputs
from app.core.context.live_context import calls_in, live_context_addition
from app.core.context.turn_options import NO_OPTIONS, TurnOptions
from app.core.model.conversation import Conversation, LiveContext, Message
from app.core.model.errors import (
    DependencyUnavailableError,
    InvalidInputError,
    ModelUnavailableError,
    NotFoundError,
)
from app.core.model.live_context import SentConversation, live_context_after, sent_conversation
from app.core.model.model_io import Continuation
from app.core.model.records import ProviderCopy, Turn
from app.core.retrieval.rendering import Passage
from app.off_loop import BYTES_PER_ITEM, off_loop
from app.storage.unit_of_work import UnitOfWork
from app.usecases.chat.reply import Answer
from app.usecases.context.media import with_media
from app.usecases.shared.resolve import Resolved
from app.usecases.shared.retries import through_short_outage
from app.usecases.shared.shell import Service

REBUILT = "live_context_rebuilt"
"""The warning: the provider was sent the whole context again, although a live context existed."""
REFUSALS = frozenset({"previous_response_not_found", "model_not_found", "context_too_long", "bad_request"})
"""Reasons for which a provider refuses to continue. It may still accept the whole context, so no turn fails by them."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Resumed:
    """A live context, and what its provider is sent next."""

    live: LiveContext
    context: AssembledContext
    continuation: Continuation


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveContextLookup:
    """What is known of a conversation before a stateful model is asked."""

    sent: SentConversation
    resumed: Resumed | None = None
    """How to continue; ``None`` = the whole context has to be sent."""


class LiveContexts(Service):
    """Reads live contexts, and gives them up."""

    async def lookup(
        self,
        turn: Turn,
        model: str | None,
        passages: tuple[Passage, ...] = (),
        options: TurnOptions = NO_OPTIONS,
    ) -> LiveContextLookup | None:
        """The response after which a stateful chat model continues in this turn; ``None`` for a stateless one.

        ``passages`` are sent with the message that the turn answers, unless the provider already has that message. The
        client's ``options`` are sent with each request, since a provider does not keep them.
        """
        profile = self._shell.models.chat(model).profile
        if not profile.stateful:
            return None
        async with self._shell.uow(turn.tenant_id) as uow:
            conversation = await uow.conversations.get(turn.conversation_id)
            sent, live = sent_conversation(conversation), conversation.live
            if live is None or live.model != profile.name:
                return LiveContextLookup(sent=sent)
            last = await uow.messages.at_seq(conversation.id, live.through_seq)
            resolved = self._shell.resolver(conversation, model=model).with_options(options)
            material = await _material_since(uow, resolved, live)
        passages = passages if any(message.id == turn.message_id for message in material.tail) else ()
        resumed = await _resumed(live, last, material, passages)
        if resumed is not None:
            context = await with_media(self._shell, turn.tenant_id, resumed.context)
            resumed = replace(resumed, context=context)
        return LiveContextLookup(sent=sent, resumed=resumed)

    async def note_copy(self, turn: Turn, answer: Answer, sent: SentConversation | None) -> None:
        """Record the copy that the provider keeps, so that it can be deleted later.

        If something was erased meanwhile, it is deleted at once.
        """
        if answer.kept_id is None or sent is None:
            return
        copy = ProviderCopy(
            tenant_id=turn.tenant_id,
            response_id=answer.kept_id,
            conversation_id=turn.conversation_id,
            model=answer.model,
            made_at=self._shell.clock.now(),
        )
        try:
            await through_short_outage(partial(self._note, copy, sent), self._shell.clock)
        except (DependencyUnavailableError, NotFoundError):  # nobody would ever have it deleted
            with suppress(ModelUnavailableError, InvalidInputError):
                await self._shell.models.store.delete(copy.model, copy.response_id)
            raise

    async def _note(self, copy: ProviderCopy, sent: SentConversation) -> None:
        async with self._shell.uow(copy.tenant_id) as uow:
            is_unchanged = await _is_unchanged(uow, copy.conversation_id, sent)
            await uow.copies.note(copy)
            if not is_unchanged:
                await uow.copies.mark_for_deletion(copy.conversation_id)
            await uow.commit()

    async def forget(self, turn: Turn, live: LiveContext, reason: str) -> None:
        """Forget a context from which the provider no longer continues."""
        log.warning("live_context.let_go", reason=reason, model=live.model)
        async with self._shell.uow(turn.tenant_id) as uow:
            conversation = await uow.conversations.lock(turn.conversation_id)
            if conversation.live == live:
                await uow.conversations.update(conversation.id, live=None)
                await uow.commit()


async def _is_unchanged(uow: UnitOfWork, conversation_id: UUID, sent: SentConversation) -> bool:
    """Whether nothing was erased since the context was read. Waits for a running erasure or deletion to end."""
    try:
        return (await uow.conversations.lock(conversation_id)).content_epoch == sent.content_epoch
    except NotFoundError:
        return False


async def store_live_context(uow: UnitOfWork, conversation_id: UUID, answer: Answer, stored: Message) -> None:
    """Record which context the model's provider keeps, in the transaction that stores the reply."""
    if answer.response_id is None or answer.sent is None:
        return
    present = await uow.conversations.get(conversation_id)
    newest = LiveContext(model=answer.model, response_id=answer.response_id, through_seq=stored.seq)
    live = live_context_after(present, answer.sent, newest)
    if live != present.live:
        await uow.conversations.update(conversation_id, live=live)


async def _material_since(uow: UnitOfWork, resolved: Resolved, live: LiveContext) -> ContextInputs:
    """The messages after the live context, as material, read in one bounded query."""
    conversation, budgets = resolved.conversation, resolved.budgets
    before = await uow.messages.sums_at(conversation.id, live.through_seq)
    most = max(budgets.budget, budgets.window)
    since = await uow.messages.newest(
        conversation.id, after_seq=live.through_seq, max_tokens=most, estimator=resolved.policy.estimator
    )
    there = sum(message.status != "erased" for message in since)
    is_whole = there >= conversation.total.messages - before.messages
    return ContextInputs(
        conversation=_only_after_live_context(conversation, live),
        schema=resolved.schema,
        policy=resolved.policy,
        budgets=budgets,
        system=resolved.system,
        held=(),
        tail=tuple(since),
        unloaded_tokens=0 if is_whole else most,
        tools=resolved.tools,
        schema_tokens=resolved.schema_tokens,
    )


def _only_after_live_context(conversation: Conversation, live: LiveContext) -> Conversation:
    # The provider already has the files and the earlier messages, so no state is sent.
    return replace(conversation, boundary_seq=live.through_seq, compressed_state=None, layout=None, file_tokens=0)


async def _resumed(
    live: LiveContext, last: Message, material: ContextInputs, passages: tuple[Passage, ...]
) -> Resumed | None:
    size = sum(BYTES_PER_ITEM + one.byte_length for one in material.tail)
    context = await off_loop(live_context_addition, material, passages, size=size)
    calls = calls_in(last)
    if context is None or (len(context.messages) == 1 and not calls):  # only the system prompt
        return None
    continuation = Continuation(response_id=live.response_id, open_calls=calls)
    return Resumed(live=live, context=context, continuation=continuation)
