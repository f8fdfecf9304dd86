"""Which message of a conversation waits for an answer."""

from __future__ import annotations

from typing import Final
from uuid import UUID

from app.core.model.conversation import Message
from app.storage.unit_of_work import UnitOfWork

REACH: Final = 200
"""Messages that are looked at: a turn that broke off more often than that between its calls is begun anew."""


async def waiting_message(uow: UnitOfWork, conversation_id: UUID) -> Message | None:
    """The user's message that nobody answered: the last one, or with nothing but calls and their results after it.

    So a turn that broke off between its calls can be taken up; one that was erased asks nothing.
    """
    last = await uow.messages.last(conversation_id)
    if last is None or last.role == "user":
        return _asks(last)
    if not is_inside_answer(last):
        return None
    near = await uow.messages.between(conversation_id, last.seq - REACH, last.seq)
    return _asks(next((message for message in reversed(near) if not is_inside_answer(message)), None))


def is_inside_answer(message: Message) -> bool:
    """Whether an answer goes on after it: a call, or a tool's result."""
    calls = any(part.get("type") == "tool_call" for part in message.parts)
    return message.role == "tool" or (message.role == "assistant" and calls)


def _asks(message: Message | None) -> Message | None:
    return message if message is not None and message.role == "user" and message.status != "erased" else None
