"""Makes the events of an ended turn again, from what is stored."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Final

from app.core.context.tools import MAX_CALLS
from app.core.model.conversation import Message
from app.core.model.errors import SEND_AGAIN, DomainError, ModelFailedError
from app.core.model.records import Turn
from app.storage.repositories.sizes import READ_BYTES
from app.storage.unit_of_work import UnitOfWork
from app.usecases.chat.reply import client_calls_of, finish_of
from app.usecases.chat.turn_handle import ChatEvent, ChatResult, TurnHandle, created_event
from app.usecases.shared.compaction_views import views_of
from app.usecases.shared.exchange import is_inside_answer
from app.usecases.shared.resolve import Resolver

MAX_MESSAGES_OF_TURN: Final = 10 * MAX_CALLS
"""The most messages after the beginning of a turn that are looked through for its own: calls, results and the reply."""


async def stored_result(uow: UnitOfWork, turn: Turn, resolver: Resolver) -> ChatResult | None:
    """The result of an ended turn; ``None`` if it has no reply."""
    if turn.reply_id is None:
        return None
    rows = [await uow.compactions.get(turn.compaction_id)] if turn.compaction_id else []
    (reply,) = await uow.messages.with_reasoning([await uow.messages.get(turn.conversation_id, turn.reply_id)])
    open_calls = client_calls_of(reply, resolver.own_tools)
    return ChatResult(
        message=await uow.contents.one_with_data(await uow.messages.get(turn.conversation_id, turn.message_id)),
        reply=reply,
        gauge=resolver(await uow.conversations.get(turn.conversation_id)).gauge,
        compaction=next(iter(await views_of(uow, rows)), None),
        warnings=turn.warnings,
        recalled=turn.recalled,
        segments=await uow.segments.covering(turn.conversation_id, turn.recalled),
        open_calls=open_calls,
        finish=finish_of(reply, turn.warnings, open_calls),
    )


async def stored_end(uow: UnitOfWork, turn: Turn, resolver: Resolver, number: int | None = None) -> ChatEvent:
    """The terminal event of a turn that has ended."""
    result = await stored_result(uow, turn, resolver)
    if result is None:
        return ChatEvent(type="reply.failed", id=number, error=_error_from_code(turn))
    return ChatEvent(type=f"reply.{turn.status}", id=number, result=result)


async def replayed(uow: UnitOfWork, turn: Turn, resolver: Resolver) -> TurnHandle:
    """An ended turn as a stream: the message, what was recalled, the whole reasoning, the whole reply, the end."""
    handle, end = TurnHandle(), await stored_end(uow, turn, resolver)
    if end.result is not None:
        handle.steps = await messages_before_reply(uow, turn, resolver.own_tools)
    handle.emit(created_event(await uow.messages.get(turn.conversation_id, turn.message_id), turn))
    if end.result is not None:
        if end.result.recalled:
            handle.emit_recalled(end.result.recalled)
        handle.emit_rest(end.result.reply)
        handle.emit_calls(end.result.open_calls)
    handle.emit(end)
    return handle


async def messages_before_reply(uow: UnitOfWork, turn: Turn, own_tools: Collection[str]) -> list[Message]:
    """The messages with calls of tools that an *ended* turn stored besides its reply, and the results of these calls.

    If the reply itself has calls of the service's tools (``own_tools``), their results come after it.
    """
    if turn.begun_at_seq is None or turn.finished_at is None:
        return []
    first = turn.begun_at_seq + 1
    found = await uow.messages.all_between(
        turn.conversation_id, first, first + MAX_MESSAGES_OF_TURN - 1, max_bytes=READ_BYTES
    )
    # Clients may add other messages while a turn runs, and results for calls of earlier turns.
    inside = [one for one in found if is_inside_answer(one)]
    if turn.reply_id is None:
        inside, results = [one for one in inside if one.created_at <= turn.finished_at], []
    else:
        # Times would not show where the turn ends: they come from several processes, or from a client.
        reply = await uow.messages.get(turn.conversation_id, turn.reply_id)
        results = own_results_after(reply, inside, own_tools)
        inside = [one for one in inside if one.seq < reply.seq]
    calls = {part["id"] for message in inside for part in message.parts if part.get("type") == "tool_call"}
    own = [message for message in inside if _answered_calls(message) <= calls]
    return await uow.messages.with_reasoning([*own, *results])


def own_results_after(reply: Message, following: Iterable[Message], own_tools: Collection[str]) -> list[Message]:
    """The results of a reply's calls of ``own_tools``, among the messages that follow it."""
    calls = {part["id"] for part in reply.parts if part.get("type") == "tool_call" and part.get("name") in own_tools}
    return [one for one in following if one.seq > reply.seq and _answered_calls(one) & calls]


def _answered_calls(message: Message) -> set[str]:
    return {part["tool_call_id"] for part in message.parts if part.get("type") == "tool_result"}


def _error_from_code(turn: Turn) -> DomainError:
    code = turn.error_code or DomainError.code
    kind = next((kind for kind in _kind_and_narrower(DomainError) if kind.code == code), ModelFailedError)
    detail = f"the turn failed; its message is stored: {SEND_AGAIN}"
    return kind(detail, code=code, extra={"message_id": str(turn.message_id)})


def _kind_and_narrower(kind: type[DomainError]) -> Iterator[type[DomainError]]:
    yield kind
    for narrower in kind.__subclasses__():
        yield from _kind_and_narrower(narrower)
