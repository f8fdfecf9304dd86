"""The SQL of expansions: how much was recalled or expanded, in numbers."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import bindparam, update
from sqlalchemy.dialects.postgresql import insert
from sqlmodel import col

from app.core.model.segments import Expansion
from app.storage.repositories.base import Repository
from app.storage.repositories.mapping import columns, new_parameters, new_values
from app.storage.tables import ExpansionRow
from app.storage.tenancy import keep_compiled

_INSERT = insert(ExpansionRow).values(new_parameters(Expansion))
_MARK_USED = update(ExpansionRow).where(col(ExpansionRow.id) == bindparam("of")).values(used=bindparam("is_used"))
keep_compiled(_INSERT, _MARK_USED)


class ExpansionRepository(Repository):
    """Rows of ``expansions``: what was recalled or expanded, in numbers."""

    async def add(self, expansions: Sequence[Expansion]) -> None:
        """Insert. If the conversation does not exist, the commit raises ``NotFoundError``."""
        await self._session.write(_INSERT, [new_values(columns(expansion)) for expansion in expansions])

    async def mark_used(self, expansion_ids: Sequence[UUID], *, used: bool) -> None:
        """Record whether a reply used what these expansions brought back."""
        await self._session.write(_MARK_USED, [{"of": one, "is_used": used} for one in expansion_ids])
