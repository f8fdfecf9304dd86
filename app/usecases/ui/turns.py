"""Turns for a frontend of the AI SDK: its last message, results of its tools, or a reply that is made again."""

from __future__ import annotations

from dataclasses import dataclass, replace
from uuid import UUID

from app.core.model.conversation import Message
from app.core.model.errors import NotFoundError, NotRegenerableError
from app.storage.unit_of_work import UnitOfWork
from app.usecases.chat.chat_input import ChatInput
from app.usecases.chat.starting import ChatService
from app.usecases.chat.turn_handle import TurnHandle
from app.usecases.shared.exchange import Exchange, exchange_of
from app.usecases.shared.idempotency import Idem
from app.usecases.shared.shell import Shell


@dataclass(frozen=True, slots=True, kw_only=True)
class RegenerationRequest:
    """Which reply the frontend wants made again."""

    named: str | None = None
    """The id of the reply, or of the message that it answers; frontends choose the ids of messages."""
    question: str | None = None
    """The text of that message, if the request contains it."""


class FrontendTurnService:
    """Starts turns for a frontend, which keeps messages of its own besides the stored ones."""

    def __init__(self, shell: Shell, chat: ChatService) -> None:
        self._shell = shell
        self._chat = chat

    async def submit(
        self, tenant_id: UUID, conversation_id: UUID, named: str, given: ChatInput, idem: Idem | None
    ) -> TurnHandle:
        """Answer the frontend's last message.

        A message with the id of a stored message was read from the history. It is not stored again, and answered only
        if it still waits.

        Raises:
            ConversationMovedOnError: Another request has already answered it.
        """
        id_ = _uuid(named) if given.has_message else None
        if id_ is not None:
            given = await self._given_if_stored_before(tenant_id, conversation_id, id_, given)
        return await self._chat.start(tenant_id, conversation_id, given, idem=idem)

    async def regenerate(
        self,
        tenant_id: UUID,
        conversation_id: UUID,
        regeneration: RegenerationRequest,
        given: ChatInput,
        idem: Idem | None,
    ) -> TurnHandle:
        """Make the last reply again. If the last turn failed and its message waits, answer that message.

        Raises:
            NotRegenerableError: The frontend means another reply than the last one, or there is no reply.
        """
        async with self._shell.uow(tenant_id) as uow:
            await uow.conversations.get(conversation_id)
            exchange = await exchange_of(uow, conversation_id)
            if not await _is_last_exchange_meant(uow, conversation_id, exchange, regeneration):
                raise NotRegenerableError("only the last reply can be made again: read the history, it has moved on")
        return await self._chat.start(
            tenant_id, conversation_id, replace(given, regenerates=not exchange.awaits_reply), idem=idem
        )

    async def _given_if_stored_before(
        self, tenant_id: UUID, conversation_id: UUID, id_: UUID, given: ChatInput
    ) -> ChatInput:
        async with self._shell.uow(tenant_id) as uow:
            await uow.conversations.get(conversation_id)
            if await _message_or_none(uow, conversation_id, id_) is None:
                return given
            exchange = await exchange_of(uow, conversation_id)
        if exchange.awaits_reply and exchange.question is not None and exchange.question.id == id_:
            return replace(given, content=None, parts=())
        return replace(given, expected_last_message_id=id_)


async def _is_last_exchange_meant(
    uow: UnitOfWork, conversation_id: UUID, exchange: Exchange, regeneration: RegenerationRequest
) -> bool:
    id_ = _uuid(regeneration.named) if regeneration.named else None
    stored = await _message_or_none(uow, conversation_id, id_) if id_ else None
    if stored is not None:
        return exchange.question is None or stored.seq >= exchange.question.seq
    if regeneration.question is not None:
        return exchange.question is not None and exchange.question.content.strip() == regeneration.question.strip()
    return regeneration.named is None


async def _message_or_none(uow: UnitOfWork, conversation_id: UUID, id_: UUID) -> Message | None:
    try:
        return await uow.messages.get(conversation_id, id_)
    except NotFoundError:
        return None


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None
