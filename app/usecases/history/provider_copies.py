"""Deletes at providers of stateful models what they keep of conversations, once it has to be erased.

A row for each copy is written when the provider makes it.
"""

from __future__ import annotations

from typing import Any

from app.core.model.records import ProviderCopy
from app.storage.repositories.copies import CopyRepository
from app.storage.unit_of_work import UnitOfWork
from app.usecases.shared.copy_deletion import AT_ONCE, CopyDeletion


class ProviderCopyService(CopyDeletion[ProviderCopy]):
    """Has providers delete their copies of what was erased. A failed deletion is repeated, and given up in the end."""

    kind = "provider_copy"
    gone = frozenset({"model_not_found", "previous_response_not_found"})

    async def work(self) -> bool:
        """Delete some of the copies that are due, and return whether more may be due."""
        async with self._shell.uow(None) as uow:
            due = await uow.copies.due(limit=AT_ONCE)
        await self._delete_all(due)
        return len(due) == AT_ONCE

    def _copies(self, uow: UnitOfWork) -> CopyRepository[ProviderCopy]:
        return uow.copies

    async def _delete_at_provider(self, copy: ProviderCopy) -> None:
        await self._shell.models.store.delete(copy.model, copy.response_id)

    def _details(self, copy: ProviderCopy) -> dict[str, Any]:
        return {"conversation_id": str(copy.conversation_id)}
