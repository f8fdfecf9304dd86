"""Begins a turn: finds or stores the message that it answers.

That message is a new message of the user, results of the client's tools, or a stored message without a reply.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self
from uuid import UUID

from app.core.context.turn_options import NO_OPTIONS, refuse_unsupported_options
from app.core.model.conversation import Conversation, Message
from app.core.model.errors import (
    ConversationMovedOnError,
    FieldError,
    InvalidInputError,
    TooLargeError,
    ToolsPendingError,
)
from app.core.text.parts import Part
from app.off_loop import BYTES_PER_ITEM, MAX_BYTES_ON_LOOP, off_loop
from app.storage.unit_of_work import UnitOfWork
from app.usecases.chat.chat_input import ChatInput, ToolResultInput
from app.usecases.chat.regenerating import supersede_reply
from app.usecases.compaction.commands import compact_command
from app.usecases.history.appending import append, check_expected_last, refuse_too_large, refuse_without_room
from app.usecases.history.drafts import MessageDraft
from app.usecases.history.preparing import NOTHING_PREPARED, Prepared, json_size, options_size, prepared_groups
from app.usecases.shared.exchange import Exchange, exchange_of
from app.usecases.shared.idempotency import Idem
from app.usecases.shared.resolve import Resolved
from app.usecases.shared.retries import Compute
from app.usecases.shared.shell import Shell


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedOpening:
    """What the request of a turn brings, as far as it is computed before the transaction that stores it."""

    history: Prepared = NOTHING_PREPARED
    """The client's messages before the user's message that are not stored yet."""
    new_messages: Prepared = NOTHING_PREPARED
    """The user's message."""
    results: Mapping[str, MessageDraft] = field(default_factory=dict)
    """Large tool results of the client as messages with counted tokens, by the id of the call."""

    def uncomputed(self) -> Self:
        """This opening without anchors: they are looked for within the transaction."""
        return replace(self, history=self.history.uncomputed(), new_messages=self.new_messages.uncomputed())


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """How a turn begins."""

    message: Message
    """The message that the turn answers: the user's, or the last tool result."""
    question: Message
    """The user's message; it may come before the tool result that the turn answers."""
    resolved: Resolved


async def opening_of(
    uow: UnitOfWork,
    shell: Shell,
    conversation: Conversation,
    given: ChatInput,
    earlier: Mapping[str, Any] | None,
    prepared: PreparedOpening,
    *,
    compute: Compute,
) -> Opening:
    """Store the request's new messages in a *locked* conversation, and say what the turn answers.

    Args:
        uow: The transaction that holds the conversation's lock.
        shell: What all services work with.
        conversation: The conversation, as it was locked.
        given: The request.
        earlier: What an earlier attempt of the same request recorded, if its turn died; the new turn continues it.
        prepared: What was computed of the request before the transaction.
        compute: Computes large parts off the event loop, or for the next try of the transaction.

    Raises:
        InvalidInputError: The request has no message, and nothing waits for a reply; or a result fits no call.
        ToolsPendingError: Calls of the client's tools wait, and results are missing.
        ConversationMovedOnError: Other messages were stored meanwhile.
        TooLargeError: The new messages can never fit into the budget.
    """
    opening = await _opening_without_media(uow, shell, conversation, given, earlier, prepared, compute)
    return replace(opening, message=await uow.contents.one_with_data(opening.message))


async def _opening_without_media(
    uow: UnitOfWork,
    shell: Shell,
    conversation: Conversation,
    given: ChatInput,
    earlier: Mapping[str, Any] | None,
    prepared: PreparedOpening,
    compute: Compute,
) -> Opening:
    resolved = shell.resolver(conversation, model=given.model)
    _refuse_if_no_room_for_messages(resolved, given)
    if earlier is not None:
        return await _opening_of_dead_turn(uow, shell, conversation, UUID(earlier["message_id"]))
    check_expected_last(conversation, given.expected_last_message_id)
    if given.regenerates:
        answered = await supersede_reply(uow, shell, conversation, compute=compute)
        return Opening(
            message=answered, question=answered, resolved=shell.resolver(await uow.conversations.get(conversation.id))
        )
    if given.results or given.has_message:
        return await _opening_of_appended(uow, shell, resolved, given, prepared, compute)
    return await _opening_of_unanswered(uow, shell, conversation)


async def refuse_unfit_input(shell: Shell, given: ChatInput) -> None:
    """Refuse instructions, tools and schemas that cannot be sent to the turn's model.

    Large schemas are checked off the event loop.

    Raises:
        InvalidInputError: What the client brings is out of contract, or more than the model can take.
    """
    options, profile = given.options, shell.models.chat(given.model).profile
    if options != NO_OPTIONS:
        await off_loop(lambda: refuse_unsupported_options(options, profile, reserved_names=shell.resolver.own_tools))


async def _opening_of_appended(
    uow: UnitOfWork, shell: Shell, resolved: Resolved, given: ChatInput, prepared: PreparedOpening, compute: Compute
) -> Opening:
    """Append the user's new message, the results of the client's tools, or both."""
    conversation, drafts = resolved.conversation, [*prepared.new_messages.drafts]
    exchange = Exchange()
    if given.results:
        exchange = await exchange_of(uow, conversation.id)
        drafts = [*await _result_drafts(uow, shell, conversation, exchange, given, prepared), *drafts]
    extended = resolved.with_options(given.options)
    refuse_too_large(extended, drafts, together=True)
    if not drafts[-1].is_command:
        refuse_without_room(extended, drafts)
    messages, resolved = await append(uow, shell, conversation, drafts, prepared=prepared.new_messages, compute=compute)
    asked = messages[-1] if given.has_message else exchange.question
    return Opening(message=messages[-1], question=asked or messages[-1], resolved=resolved)


async def prepared_opening(
    shell: Shell, tenant_id: UUID, conversation_id: UUID, given: ChatInput, idem: Idem | None
) -> PreparedOpening:
    """Count tokens and find anchors of the request's messages before the transaction."""
    groups = [given.history, [_user_draft(given)] if given.has_message else []]
    history, new_messages = await prepared_groups(
        shell, tenant_id, conversation_id, groups, gap_before_last=len(given.results), idem=idem
    )
    results = await _weighed_results(shell, tenant_id, conversation_id, given)
    if options_size(given.options) > MAX_BYTES_ON_LOOP:
        async with shell.uow(tenant_id) as uow:
            conversation = await uow.conversations.get(conversation_id)
        # The tokens are counted here and remembered, so the transaction does not count them.
        await off_loop(shell.resolver(conversation, model=given.model).with_options, given.options)
    return PreparedOpening(history=history, new_messages=new_messages, results=results)


async def _weighed_results(
    shell: Shell, tenant_id: UUID, conversation_id: UUID, given: ChatInput
) -> dict[str, MessageDraft]:
    """Large tool results as messages with counted tokens; small ones are counted in the transaction."""
    sizes = (BYTES_PER_ITEM * (1 + len(result.media)) + json_size(result.content) for result in given.results)
    if sum(sizes) <= MAX_BYTES_ON_LOOP:
        return {}
    async with shell.uow(tenant_id) as uow:
        await uow.conversations.get(conversation_id)
        waiting = (await exchange_of(uow, conversation_id)).unanswered
    known = [result for result in given.results if result.tool_call_id in waiting]
    drafts = [_result_draft(waiting[result.tool_call_id], result) for result in known]
    weights = await off_loop(lambda: [draft.computed_weight() for draft in drafts])
    return {
        result.tool_call_id: replace(draft, weight=weight)
        for result, draft, weight in zip(known, drafts, weights, strict=True)
    }


def _user_draft(given: ChatInput) -> MessageDraft:
    content = given.content or ""
    command = not given.parts and compact_command(content) is not None
    if command and given.results:
        raise InvalidInputError.of("content", "a command comes alone: send the results in a request before it")
    return MessageDraft(
        role="user",
        content=content,
        parts=given.parts,
        event_type="command" if command else given.event_type,
        metadata=given.metadata,
        utc_offset=given.utc_offset,
        is_command=command,
    )


async def _result_drafts(
    uow: UnitOfWork,
    shell: Shell,
    conversation: Conversation,
    exchange: Exchange,
    given: ChatInput,
    prepared: PreparedOpening,
) -> list[MessageDraft]:
    """One message for each result.

    Results may be missing only if a user message comes with the request; the model is then shown a stub for each.
    """
    waiting = exchange.unanswered
    wrong = await _wrong_results(uow, conversation, exchange, waiting, given.results)
    if wrong:
        raise InvalidInputError("; ".join(one.message for one in wrong[:3]), errors=wrong)
    came = {result.tool_call_id for result in given.results}
    missing = [id_ for id_ in exchange.left_to_client(shell.resolver.own_tools) if id_ not in came]
    if missing and not given.has_message:
        raise _missing_results_error(missing)
    drafts = (_result_draft(waiting[result.tool_call_id], result) for result in given.results)
    weighed = prepared.results
    return [
        known if (known := weighed.get(result.tool_call_id)) and known.parts == draft.parts else draft
        for result, draft in zip(given.results, drafts, strict=True)
    ]


def _result_draft(call: Part, result: ToolResultInput) -> MessageDraft:
    part = {"type": "tool_result", "tool_call_id": call["id"], "name": call.get("name"), "content": result.content}
    return MessageDraft(role="tool", content="", parts=(part, *result.media))


async def _wrong_results(
    uow: UnitOfWork,
    conversation: Conversation,
    exchange: Exchange,
    waiting: Mapping[str, Part],
    results: Sequence[ToolResultInput],
) -> list[FieldError]:
    ids = [result.tool_call_id for result in results]
    others = [id_ for id_ in ids if id_ not in waiting]
    known = await uow.messages.known_calls(conversation.id, others) if others else frozenset()
    wrong: list[FieldError] = []
    for number, id_ in enumerate(ids):
        if id_ in ids[:number]:
            why = "is given twice"
        elif id_ in waiting:
            continue
        elif id_ in exchange.answered:
            why = "has its result already"
        else:
            why = "does not wait any more: later messages came" if id_ in known else "is no call of this conversation"
        wrong.append(FieldError(field=f"tool_results.{number}.tool_call_id", message=f"the call {id_[:64]!r} {why}"))
    return wrong


async def _opening_of_unanswered(uow: UnitOfWork, shell: Shell, conversation: Conversation) -> Opening:
    exchange = await exchange_of(uow, conversation.id)
    turn = await uow.turns.newest(conversation.id)
    if not exchange.awaits_reply:
        raise InvalidInputError.of("content", "content cannot be empty: there is no unanswered user message")
    missing = await _calls_left_to_client(uow, shell, conversation, exchange)
    if missing:
        raise _missing_results_error(missing)
    failed = (message for message in exchange.since if turn is not None and message.id == turn.message_id)
    return _opening(shell, conversation, exchange, next(failed, exchange.question or exchange.since[-1]))


async def _opening_of_dead_turn(uow: UnitOfWork, shell: Shell, conversation: Conversation, message_id: UUID) -> Opening:
    message = await uow.messages.get(conversation.id, message_id)
    if message.is_command:
        return Opening(message=message, question=message, resolved=shell.resolver(conversation))
    exchange = await exchange_of(uow, conversation.id)
    waits = exchange.awaits_reply and exchange.contains(message)
    if not waits or await _calls_left_to_client(uow, shell, conversation, exchange):
        raise ConversationMovedOnError("newer messages follow this one: repeat the request with a new Idempotency-Key")
    return _opening(shell, conversation, exchange, message)


def _opening(shell: Shell, conversation: Conversation, exchange: Exchange, message: Message) -> Opening:
    return Opening(message=message, question=exchange.question or message, resolved=shell.resolver(conversation))


async def _calls_left_to_client(
    uow: UnitOfWork, shell: Shell, conversation: Conversation, exchange: Exchange
) -> list[str]:
    unanswered = exchange.left_to_client(shell.resolver.own_tools)
    if not unanswered:
        return []
    if await uow.turns.replied_by(conversation.id, exchange.makers_of(unanswered)) is not None:
        return unanswered
    # The client never heard of the calls of a turn that died, so it need not answer them. Without any turn it did: they
    # were appended, or the record of their turn was removed after its time.
    asked = {message.id for message in (exchange.question, *exchange.since) if message is not None}
    return [] if await uow.turns.died_with(conversation.id, asked) else unanswered


def _refuse_if_no_room_for_messages(resolved: Resolved, given: ChatInput) -> None:
    extended, budget = resolved.with_options(given.options), resolved.budgets.budget
    if extended is resolved or extended.conversation.counted(extended.fixed_tokens) < budget:
        return
    size = extended.system_tokens - resolved.system_tokens
    raise TooLargeError(
        f"instructions, tools and schema of this request have {size} tokens, and with the system prompt nothing is left"
        f" of a budget of {budget}: send less, or raise policy.context_window",
        extra={"limit": max(budget - resolved.fixed_tokens, 0), "size": size},
    )


def _missing_results_error(missing: Sequence[str]) -> ToolsPendingError:
    named = ", ".join(missing)
    message = f"results are missing of the calls {named}: send them all, or a new message instead"
    return ToolsPendingError(
        message, errors=[FieldError(field="tool_results", message=message)], extra={"missing": list(missing)}
    )
