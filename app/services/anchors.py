"""Anchors as clients see them: listed, and their status set by hand."""

from __future__ import annotations

from uuid import UUID

from app.domain.anchors.values import Anchor, AnchorStatus, AnchorType, Transition
from app.domain.conversation import Conversation
from app.domain.records import Page
from app.services.claims import refresh_sizes
from app.services.holding import laid_out_again
from app.services.shell import Shell


class AnchorService:
    """Anchors of a conversation; a status belongs to the conversation, not to a version of its state."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell

    async def page(
        self,
        tenant_id: UUID,
        conversation_id: UUID,
        page: Page,
        *,
        type_: AnchorType | None = None,
        status: AnchorStatus | None = None,
    ) -> tuple[list[Anchor], str | None]:
        """By position, those of a type and a status if given. Raises ``NotFoundError``."""
        async with self._shell.uow(tenant_id) as uow:
            await uow.conversations.get(conversation_id)
            return await uow.anchors.page(conversation_id, page, type_=type_, status=status)

    async def set_status(self, tenant_id: UUID, conversation_id: UUID, anchor_id: UUID, status: AnchorStatus) -> Anchor:
        """Set a status; what is served changes in the same transaction. Raises ``NotFoundError``."""
        shell = self._shell
        async with shell.uow(tenant_id) as uow:
            conversation = await uow.conversations.lock(conversation_id)
            anchor = await uow.anchors.get(conversation_id, anchor_id)
            if anchor.status == status:
                return anchor
            await uow.anchors.change(conversation_id, [Transition(anchor_id=anchor_id, status=status)])
            if is_served(conversation, anchor):
                laid_out = await laid_out_again(uow, shell, shell.resolver(conversation))
                await refresh_sizes(uow, laid_out)
            changed = await uow.anchors.get(conversation_id, anchor_id)
            await uow.commit()
        return changed


def is_served(conversation: Conversation, anchor: Anchor) -> bool:
    """Whether an anchor stands in the block while it is active, or behind its marker."""
    layout = conversation.layout
    return layout is not None and anchor.seq <= conversation.boundary_seq and anchor.seq not in layout.held
