"""Reads out a conversation with everything that belongs to it, in pages, so that little of it is in memory at once."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final, TypeVar
from uuid import UUID

from app.core.model.anchors import Anchor
from app.core.model.conversation import Message
from app.core.model.files import ConversationFile
from app.core.model.records import Page
from app.core.model.state import StateVersion
from app.storage.unit_of_work import UnitOfWork
from app.usecases.history.conversations import ConversationService, ConversationView
from app.usecases.history.due_anchors import find_due_anchors
from app.usecases.shared.caller import audit_read
from app.usecases.shared.optional_writes import optional_write
from app.usecases.shared.shell import Shell

PAGE: Final = 500

Row = TypeVar("Row")
Read = Callable[[UnitOfWork, Page], Awaitable[tuple[list[Row], str | None]]]


class ExportService:
    """Reads out a conversation, up to a message or version that the caller names.

    So the caller can leave out what is appended while an export runs.
    """

    def __init__(self, shell: Shell, conversations: ConversationService) -> None:
        self._shell = shell
        self._conversations = conversations

    async def conversation(self, tenant_id: UUID, conversation_id: UUID) -> ConversationView:
        """The conversation itself. Records in the audit log that it is exported. Raises ``NotFoundError``.

        While the database takes no writes, the entry is logged instead, and anchors that are due are left out.
        """
        found = await self._conversations.get(tenant_id, conversation_id)
        await audit_read(self._shell, tenant_id, "conversation.exported", conversation_id)
        return found

    async def messages(
        self, tenant_id: UUID, conversation_id: UUID, *, through_seq: int, with_data: bool = True
    ) -> AsyncIterator[Message]:
        """Every message up to that ``seq``, in order. The data of media is read only ``with_data``.

        Raises ``NotFoundError`` if the conversation is deleted meanwhile, so that no part of it looks like the whole.
        """

        async def read(uow: UnitOfWork, page: Page) -> tuple[list[Message], str | None]:
            messages, cursor = await uow.messages.page(conversation_id, page)
            messages = await uow.messages.with_reasoning(messages)
            return (await uow.contents.with_data(messages) if with_data else messages), cursor

        last = 0
        async for message in self._rows_of_all_pages(tenant_id, read):
            if message.seq > through_seq:
                return
            yield message
            last = message.seq
        if last < through_seq:
            async with self._shell.uow(tenant_id) as uow:
                await uow.conversations.get(conversation_id)

    async def states(
        self, tenant_id: UUID, conversation_id: UUID, *, through_version: int
    ) -> AsyncIterator[StateVersion]:
        """Every version of the state up to that one, in order."""
        async for version in self._rows_of_all_pages(
            tenant_id, lambda uow, page: uow.states.page(conversation_id, page)
        ):
            if version.version > through_version:
                return
            yield version

    async def anchors(self, tenant_id: UUID, conversation_id: UUID, *, through_seq: int) -> AsyncIterator[Anchor]:
        """Every anchor up to that ``seq``, in order of position."""
        with optional_write("anchors.not_found_now", conversation_id=str(conversation_id)):
            await find_due_anchors(self._shell, tenant_id, conversation_id)
        async for anchor in self._rows_of_all_pages(
            tenant_id, lambda uow, page: uow.anchors.page(conversation_id, page)
        ):
            if anchor.seq > through_seq:
                return
            yield anchor

    async def files(self, tenant_id: UUID, conversation_id: UUID) -> AsyncIterator[tuple[ConversationFile, bytes]]:
        """Every file with its bytes, in order. A file that is removed meanwhile is left out.

        Raises ``NotFoundError`` if the conversation is deleted meanwhile.
        """
        async with self._shell.uow(tenant_id) as uow:
            await uow.conversations.get(conversation_id)
            files = await uow.files.of_conversation(conversation_id)
        for file in files:
            async with self._shell.uow(tenant_id) as uow:
                await uow.conversations.get(conversation_id)
                found = await uow.contents.read([file.sha256])
            if file.sha256 in found:
                yield file, found[file.sha256]

    async def _rows_of_all_pages(self, tenant_id: UUID, read: Read[Row]) -> AsyncIterator[Row]:
        cursor: str | None = None
        while True:
            async with self._shell.uow(tenant_id) as uow:
                rows, cursor = await read(uow, Page(limit=PAGE, after=cursor, order="asc"))
            for row in rows:
                yield row
            if cursor is None:
                return
