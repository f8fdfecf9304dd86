"""Releases a conversation that was set aside, once somebody has examined it."""

from __future__ import annotations

from uuid import UUID

import structlog

from app.usecases.history.conversations import ConversationService, ConversationView
from app.usecases.shared.caller import audit
from app.usecases.shared.shell import Shell

log = structlog.get_logger(__name__)


class ReleaseService:
    """Releases conversations that were set aside, for operators."""

    def __init__(self, shell: Shell, conversations: ConversationService) -> None:
        self._shell = shell
        self._conversations = conversations

    async def release(self, tenant_id: UUID, conversation_id: UUID) -> ConversationView:
        """Reset its count of crashes, so that it is worked on again.

        A conversation that is not set aside stays unchanged.

        Raises:
            NotFoundError: There is no such conversation.
        """
        shell = self._shell
        async with shell.uow(tenant_id) as uow:
            row = await uow.conversations.lock(conversation_id)
            crashes = await uow.works.forget_crashes(conversation_id)
            if crashes is not None and crashes.set_aside_at is not None:
                data = {"reason": crashes.kind, "crashes": crashes.count}
                await uow.events.add(conversation_id, "conversation.released", data, shell.clock.now())
                await audit(uow, shell, tenant_id, "conversation.released", conversation_id, **data)
                log.warning("conversation.released", conversation_id=str(conversation_id), **data)
            await uow.commit()
        return self._conversations.view(row)
