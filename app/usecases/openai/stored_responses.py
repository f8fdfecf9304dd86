"""Stored responses. A response is a turn: its output is the reply, its input what the request brought."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal
from uuid import UUID

from app.core.model.conversation import Message
from app.core.model.errors import DomainError, InvalidInputError, NotFoundError
from app.core.model.model_io import ToolCall
from app.core.model.records import Page, Turn
from app.core.text.contents import data_bytes
from app.off_loop import BYTES_PER_ITEM, off_loop
from app.storage.repositories.cursor import encode
from app.storage.repositories.sizes import PAGE_BYTES, READ_BYTES
from app.storage.unit_of_work import UnitOfWork
from app.usecases.chat.replaying import messages_before_reply
from app.usecases.chat.reply import client_calls_of
from app.usecases.chat.starting import ChatService
from app.usecases.history.erasure import ErasureService
from app.usecases.shared.shell import Shell

MAX_INPUT_MESSAGES: Final = 2_000
"""The most messages of one response's input that are read, the newest first, and at most ``READ_BYTES`` of them."""

Json = dict[str, Any]
Render = Callable[[Message], list[Json]]
"""Makes the items of a message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredResponse:
    """A response as it is stored."""

    turn: Turn
    reply: Message | None
    """The reply; ``None`` while it is being made, and if it failed."""
    open_calls: tuple[ToolCall, ...] = ()
    """The calls of the reply that wait for the client."""
    steps: tuple[Message, ...] = ()
    """The messages with calls of the service's tools before the reply; their texts belong to the output."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemPage:
    """A page of items."""

    items: tuple[Json, ...]
    has_more: bool


class StoredResponses:
    """Reads, stops and deletes responses; lists items."""

    def __init__(self, shell: Shell, *, chat: ChatService, erasure: ErasureService) -> None:
        self._shell = shell
        self._chat = chat
        self._erasure = erasure

    async def get(self, tenant_id: UUID, turn_id: UUID) -> StoredResponse:
        """One response. Raises ``NotFoundError``, also after it was deleted."""
        async with self._shell.uow(tenant_id) as uow:
            return await self._response_of_turn(uow, turn_id)

    async def cancel(self, tenant_id: UUID, turn_id: UUID) -> StoredResponse:
        """Stop a response that is being made and keep what it has so far. Raises ``NotFoundError``."""
        found = await self.get(tenant_id, turn_id)
        if found.turn.status != "running":
            return found
        await self._chat.interrupt(tenant_id, found.turn.conversation_id, turn_id)
        handle = await self._chat.follow_turn(tenant_id, turn_id)
        try:
            await handle.result()
        except DomainError:
            found = await self.get(tenant_id, turn_id)
            if found.turn.status == "running":
                raise
            return found  # it failed meanwhile, as its status shows
        return await self.get(tenant_id, turn_id)

    async def delete(self, tenant_id: UUID, turn_id: UUID) -> None:
        """Erase a response's output and input with everything derived. If it is still being made, it is stopped first.

        Raises:
            NotFoundError: There is no such response.
        """
        await self.cancel(tenant_id, turn_id)
        async with self._shell.uow(tenant_id) as uow:
            found = await self._response_of_turn(uow, turn_id)
            own_tools = self._shell.resolver.own_tools
            messages = [*await _input_of(uow, found), *await messages_before_reply(uow, found.turn, own_tools)]
            await uow.turns.forget_request(turn_id)  # first, since nothing leads to the turn once the output is erased
            await uow.commit()
        reply = [found.reply] if found.reply else []
        for message in [*messages, *reply]:
            await self._erasure.erase(tenant_id, message.conversation_id, message.id)

    async def input_page(
        self,
        tenant_id: UUID,
        turn_id: UUID,
        render: Render,
        *,
        limit: int,
        after: str | None,
        order: Literal["asc", "desc"],
    ) -> ItemPage:
        """A page of the items to which a response replied. Raises ``NotFoundError``."""
        async with self._shell.uow(tenant_id) as uow:
            messages = await _input_of(uow, await self._response_of_turn(uow, turn_id))
            pairs = await _rendered(messages, render)
            of_item = {item["id"]: message for item, message in pairs}
            items = [item for item, _ in (pairs if order == "asc" else reversed(pairs))]
            return await _with_data(uow, _page_after(items, limit, after), of_item, render)

    async def item_page(
        self,
        tenant_id: UUID,
        conversation_id: UUID,
        render: Render,
        *,
        limit: int,
        after: tuple[str, UUID] | None,
        order: Literal["asc", "desc"],
    ) -> ItemPage:
        """Items of a conversation, after the item with that id in that message. Raises ``NotFoundError``."""
        found: list[Json] = []
        async with self._shell.uow(tenant_id) as uow:
            last = (await uow.conversations.get(conversation_id)).last_seq
            step = 1 if order == "asc" else -1
            seq = 1 if order == "asc" else last
            if after is not None:
                message = await self._message_of_item(uow, conversation_id, after[1])
                seq = message.seq
                if message.status == "erased":  # it has no items any more: the page begins with the next message
                    seq, after = seq + step, None
            while 1 <= seq <= last:
                read = Page(limit=limit + 1, after=encode((seq - step,)), order=order)
                stored, cursor = await uow.messages.page(conversation_id, read)
                pairs = await _rendered(await uow.contents.with_data(stored), lambda message: render(message)[::step])
                found += [item for item, _ in pairs]
                page = _page_after(found, limit, after[0] if after else None)
                if page.has_more or (page.items and cursor is not None):  # the page may end early because of its size
                    return replace(page, has_more=True)
                if cursor is None:
                    break
                seq = stored[-1].seq + step
        return _page_after(found, limit, after[0] if after else None)

    async def message(self, tenant_id: UUID, conversation_id: UUID, message_id: UUID) -> Message:
        """One message of a conversation. Raises ``NotFoundError``."""
        async with self._shell.uow(tenant_id) as uow:
            await uow.conversations.get(conversation_id)
            return await uow.contents.one_with_data(await uow.messages.get(conversation_id, message_id))

    async def referred(self, tenant_id: UUID, message_id: UUID) -> Message:
        """A message that a request refers to, in any conversation of the tenant. Raises ``NotFoundError``."""
        async with self._shell.uow(tenant_id) as uow:
            found = await uow.contents.one_with_data(await uow.messages.find(message_id))
        if found.status == "erased":
            raise NotFoundError("No such item.")
        return found

    async def _response_of_turn(self, uow: UnitOfWork, turn_id: UUID) -> StoredResponse:
        turn = await uow.turns.get(turn_id)
        if turn.reply_id is None:
            return StoredResponse(turn=turn, reply=None)
        (reply,) = await uow.messages.with_reasoning([await uow.messages.get(turn.conversation_id, turn.reply_id)])
        if reply.status == "erased":
            raise NotFoundError("No such response.")
        own_tools = self._shell.resolver.own_tools
        before = await messages_before_reply(uow, turn, own_tools)
        return StoredResponse(
            turn=turn,
            reply=reply,
            open_calls=client_calls_of(reply, own_tools),
            steps=tuple(message for message in before if message.role == "assistant"),
        )

    async def _message_of_item(self, uow: UnitOfWork, conversation_id: UUID, message_id: UUID) -> Message:
        try:
            return await uow.messages.get(conversation_id, message_id)
        except NotFoundError:
            raise _no_such_item() from None


async def _input_of(uow: UnitOfWork, response: StoredResponse) -> list[Message]:
    """The messages that the request brought, up to the one that was answered; an erased one is empty."""
    turn = response.turn
    last = (await uow.messages.get(turn.conversation_id, turn.message_id)).seq
    first = max(turn.input_from_seq or last, last - MAX_INPUT_MESSAGES + 1)
    messages = await uow.messages.all_between(turn.conversation_id, first, last, max_bytes=READ_BYTES, newest=True)
    return [one for one in messages if one.status != "erased"]


async def _rendered(messages: Sequence[Message], render: Render) -> list[tuple[Json, Message]]:
    """Each item with the message that it belongs to. Many items are made off the event loop."""
    size = sum(BYTES_PER_ITEM * (1 + len(message.parts)) for message in messages)
    return await off_loop(lambda: [(item, message) for message in messages for item in render(message)], size=size)


async def _with_data(uow: UnitOfWork, page: ItemPage, of_item: Mapping[str, Message], render: Render) -> ItemPage:
    """The page with the data of its media. If the data is large, the page has fewer items, but at least one."""
    fitting: dict[UUID, Message] = {}
    count, bytes_left = 0, PAGE_BYTES
    for item in page.items:
        message = of_item[item["id"]]
        if message.id not in fitting:
            bytes_left -= sum(data_bytes(part) for part in message.parts)
            if bytes_left < 0 and fitting:
                break
            fitting[message.id] = message
        count += 1
    filled = await uow.contents.with_data(list(fitting.values()))
    shown = {item["id"]: item for item, _ in await _rendered(filled, render)}
    items = tuple(shown[item["id"]] for item in page.items[:count])
    return ItemPage(items=items, has_more=page.has_more or count < len(page.items))


def _page_after(items: Sequence[Json], limit: int, after: str | None) -> ItemPage:
    start = 0
    if after is not None:
        start = next((number for number, item in enumerate(items, 1) if item["id"] == after), 0)
        if not start:
            raise _no_such_item()
    page = items[start : start + limit]
    return ItemPage(items=tuple(page), has_more=len(items) > start + limit)


def _no_such_item() -> InvalidInputError:
    return InvalidInputError.of("after", "there is no such item in this list")
