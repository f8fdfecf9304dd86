"""Deletes conversations: one, or all of an end user or of a tenant. They are hidden at once, and removed in steps."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import Final
from uuid import UUID

import structlog

from app.core.model.conversation import Conversation
from app.core.model.errors import NotFoundError
from app.core.model.records import Erasure
from app.core.text import memo
from app.off_loop import off_loop
from app.storage.unit_of_work import UnitOfWork
from app.usecases.shared.caller import audit
from app.usecases.shared.shell import STREAMS, Service

SHORT: Final = 2_000
"""A conversation with at most this many messages and events is removed at once, in some tenths of a second."""
ROWS: Final = 5_000
"""How many rows one transaction removes."""
CONVERSATIONS: Final = 50
"""How many conversations of an end user one transaction deletes."""
ABREAST: Final = 20
"""How many deleted conversations, and how many erasures, one sweep looks at."""

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


async def delete_conversation(uow: UnitOfWork, conversation_id: UUID) -> list[UUID]:
    """Delete a conversation for everybody, and make copies at providers due for deletion.

    A long one is only hidden; ``RemovalService`` removes its rows. Raises ``NotFoundError``.

    Returns:
        The turns whose streams may still be in Redis.
    """
    return await delete_conversations(uow, [conversation_id])


async def delete_conversations(uow: UnitOfWork, conversation_ids: Sequence[UUID]) -> list[UUID]:
    """Delete some conversations of a tenant, as ``delete_conversation`` does. Call it once in a transaction."""
    conversations = [await uow.conversations.lock(id_) for id_ in conversation_ids]
    if conversations:
        await uow.spending.keep_of_deleted(conversations[0].tenant_id, conversation_ids)
    return [turn for conversation in conversations for turn in await _delete_locked(uow, conversation)]


async def _delete_locked(uow: UnitOfWork, conversation: Conversation) -> list[UUID]:
    turns = await uow.turns.newest_ids(conversation.id, limit=STREAMS)
    await uow.copies.mark_for_deletion(conversation.id)
    await uow.files.remove_all(conversation.id)
    await uow.caches.leave(conversation.id)
    if conversation.last_seq + conversation.last_event <= SHORT:
        await uow.conversations.delete(conversation.id)
    else:
        await uow.conversations.hide(conversation.id)
        await uow.removal.stop(conversation.id)
    return turns


class RemovalService(Service):
    """Removes deleted rows, a bounded number at a time, and continues where it was interrupted."""

    async def erase_user(self, tenant_id: UUID, user_id: str) -> Erasure:
        """Begin to erase an end user: all conversations, and the user's own keys, which end at once."""
        async with self._shell.uow(tenant_id) as uow:
            keys = await uow.keys.remove_of_user(user_id)
            erasure = await self._begin_erasure(uow, tenant_id, user_id)
            await audit(uow, self._shell, tenant_id, "user.erased", erasure.id, keys=keys)
            await uow.commit()
        return erasure

    async def erase_tenant(self, tenant_id: UUID) -> Erasure:
        """Begin to erase a tenant: its keys end at once, its conversations in steps, the rest with the last of them."""
        async with self._shell.uow(tenant_id) as uow:
            for key in await uow.keys.all():
                await uow.keys.revoke(key.id, self._shell.clock.now())
            erasure = await self._begin_erasure(uow, tenant_id, None)
            await audit(uow, self._shell, tenant_id, "tenant.erased", erasure.id)
            await uow.commit()
        return erasure

    async def tenant_named(self, name: str) -> UUID:
        """The tenant of that name. Raises ``NotFoundError``."""
        async with self._shell.uow(None) as uow:
            found = await uow.keys.tenant_by_name(name)
        if found is None:
            raise NotFoundError(f"There is no tenant {name!r}.")
        return found

    async def work(self) -> bool:
        """Do one bounded step of each kind of work; return whether more is left. Many processes may do so at once.

        A step that fails holds up no other; it is tried again with the next call.
        """
        async with self._shell.uow(None) as uow:
            erasures = await uow.erasures.unfinished(limit=ABREAST)
            deleted = await uow.conversations.deleted(limit=ABREAST)
            stale = await uow.conversations.with_stale_sums(limit=ABREAST)
        left = False
        for tenant_id, conversation_id in stale:
            left |= await _despite_failure("sums", self._renew_sums(tenant_id, conversation_id))
        for tenant_id, conversation_id in deleted:
            left |= await _despite_failure("rows", self._remove_rows(tenant_id, conversation_id))
        for erasure in erasures:  # after the removals, since the last removal lets an erasure end
            left |= await _despite_failure("erasure", self._erase(erasure))
        return left

    async def status(self, erasure_id: UUID) -> Erasure | None:
        """How far an erasure has come; ``None`` if nothing is left to do."""
        async with self._shell.uow(None) as uow:
            return await uow.erasures.find(erasure_id)

    async def _begin_erasure(self, uow: UnitOfWork, tenant_id: UUID, user_id: str | None) -> Erasure:
        now = self._shell.clock.now()
        erasure = Erasure(id=self._shell.new_id(), tenant_id=tenant_id, user_id=user_id, requested_at=now)
        await uow.erasures.add(erasure)
        return erasure

    async def _remove_rows(self, tenant_id: UUID, conversation_id: UUID) -> bool:
        async with self._shell.uow(tenant_id) as uow:
            removed = await uow.removal.remove(conversation_id, limit=ROWS)
            await uow.commit()
        return removed >= ROWS

    async def _renew_sums(self, tenant_id: UUID, conversation_id: UUID) -> bool:
        async with self._shell.uow(tenant_id) as uow:
            try:
                await uow.conversations.lock(conversation_id)
            except NotFoundError:  # deleted meanwhile
                return False
            left = await uow.messages.renew_older_sums(conversation_id)
            await uow.commit()
        return left

    async def _erase(self, found: Erasure) -> bool:
        """Delete some conversations of an erasure. Once none is left, delete the erasure's end user or tenant."""
        async with self._shell.uow(found.tenant_id) as uow:
            erasure = await uow.erasures.lock(found.id)
            if erasure is None:  # another process works on it
                return False
            ids = await uow.conversations.of_user(erasure.user_id, limit=CONVERSATIONS)
            turns = await delete_conversations(uow, ids)
            if ids:
                await uow.erasures.count_deleted(erasure.id, len(ids))
            ended = not ids and await self._is_all_removed(uow, erasure)
            await uow.commit()
            uow.forget_values()
        await self._tell_others(ids, turns)
        if ended:
            kind = "tenant" if erasure.user_id is None else "user"
            _log.info("erasure.done", erasure_id=str(erasure.id), kind=kind, conversations=erasure.conversations)
        return bool(ids)

    async def _is_all_removed(self, uow: UnitOfWork, erasure: Erasure) -> bool:
        if await uow.conversations.of_user(erasure.user_id, limit=1, deleted=True):
            return False
        if erasure.user_id is not None:
            await uow.erasures.end(erasure.id)
            return True
        # The tenant is deleted last, since providers are asked on its behalf to delete their copies.
        kept = await uow.copies.count() + await uow.file_copies.count() + await uow.caches.count()
        if kept:
            await uow.keys.free_tenant_name(erasure.tenant_id)
            return False
        return await uow.removal.remove_tenant()

    async def _tell_others(self, conversation_ids: Sequence[UUID], turns: Sequence[UUID]) -> None:
        await off_loop(memo.forget)
        if turns:
            await self._shell.streams.forget(turns)
        for conversation_id in conversation_ids:
            await self._shell.bus.hint(conversation_id, "deleted")


async def _despite_failure(kind: str, step: Awaitable[bool]) -> bool:
    try:
        return await step
    except Exception as error:  # noqa: BLE001 - the next sweep tries again
        _log.warning("removal.step_failed", kind=kind, error=type(error).__name__)
        return False
