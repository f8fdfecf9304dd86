"""The verifications of a conversation, for those who look at them."""

from __future__ import annotations

from uuid import UUID

from app.core.model.records import Page, VerificationView
from app.usecases.shared.shell import Shell


class VerificationListing:
    """Lists verifications."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell

    async def page(
        self, tenant_id: UUID, conversation_id: UUID, page: Page
    ) -> tuple[list[VerificationView], str | None]:
        """A page of a conversation's verifications."""
        async with self._shell.uow(tenant_id) as uow:
            await uow.use_snapshot()  # otherwise one may be shown as done, and without the version that came of it
            await uow.conversations.get(conversation_id)
            return await uow.verifications.page(conversation_id, page)
