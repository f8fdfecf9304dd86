"""The SQL that deletes the rows of deleted conversations in steps, and rows that are kept only for a time."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final
from uuid import UUID

from sqlalchemy import delete, select, text, update
from sqlmodel import col

from app.storage.repositories.base import Repository
from app.storage.repositories.database_time import transaction_start
from app.storage.tables import (
    COMPACTION_IN_FLIGHT,
    DELETED,
    RUNNING,
    VERIFICATION_OPEN,
    AnchorRow,
    CacheEntryRow,
    CompactionRow,
    ConversationRow,
    DetailCallRow,
    EmbeddingRow,
    EventRow,
    ExpansionRow,
    MessageRow,
    SegmentLevelRow,
    SegmentRow,
    StateVersionRow,
    TenantRow,
    TurnRow,
    VerificationRow,
)

LARGE_TABLES: Final[dict[Any, tuple[str, ...]]] = {
    EmbeddingRow: ("conversation_id", "seq"),
    MessageRow: ("conversation_id", "seq"),
    EventRow: ("conversation_id", "number"),
    SegmentLevelRow: ("conversation_id", "segment_id", "level"),
    SegmentRow: ("conversation_id", "id"),
    AnchorRow: ("conversation_id", "seq", "offset", "type"),
    StateVersionRow: ("conversation_id", "version"),
    CompactionRow: ("conversation_id", "id"),
    VerificationRow: ("conversation_id", "id"),
    TurnRow: ("conversation_id", "id"),
    ExpansionRow: ("conversation_id", "id"),
    DetailCallRow: ("conversation_id", "id"),
    CacheEntryRow: ("conversation_id", "id"),
}
"""Tables in which a conversation may have many rows, with the columns of the index that finds them. Rows of other
tables are deleted with the conversation's own row, by their foreign keys.
"""


class RemovalRepository(Repository):
    """Removes rows for good, a bounded number at a time."""

    async def remove(self, conversation_id: UUID, *, limit: int) -> int:
        """Delete at most ``limit`` rows of a deleted conversation; return how many. Fewer means that all are removed.

        If another process already removes it, nothing is done, and the result is as if all were removed.
        """
        row = ConversationRow
        locked = select(col(row.id)).where(col(row.id) == conversation_id, text(f"conversations.{DELETED}"))
        if await self._session.first(locked.with_for_update(key_share=True, skip_locked=True)) is None:
            return 0
        removed = 0
        for table, names in LARGE_TABLES.items():
            own = table.conversation_id == conversation_id
            order = tuple(getattr(table, name) for name in names)
            removed += await self._delete_at_most(limit - removed, table, own, order=order)
            if removed >= limit:
                return removed
        await self._session.execute(delete(row).where(col(row.id) == conversation_id))
        return removed

    async def stop(self, conversation_id: UUID) -> None:
        """Delete the rows of a conversation's running work; its processes notice this at their next heartbeat."""
        under_way: tuple[tuple[Any, str], ...] = (
            (CompactionRow, COMPACTION_IN_FLIGHT),
            (VerificationRow, VERIFICATION_OPEN),
            (TurnRow, RUNNING),
        )
        for table, condition in under_way:
            await self._session.execute(delete(table).where(table.conversation_id == conversation_id, text(condition)))
        wanting = (col(SegmentRow.conversation_id) == conversation_id) & col(SegmentRow.wants_detail)
        await self._session.execute(update(SegmentRow).where(wanting).values(wants_detail=False))

    async def forget_turns(self, age: timedelta, *, limit: int) -> int:
        """Delete turns that ended longer ago than ``age``, except responses, which clients delete; return how many."""
        row = TurnRow
        old = (
            (col(row.finished_at) < transaction_start() - age)
            & col(row.request).is_(None)
            & (col(row.status) != "running")
        )
        return await self._delete_at_most(limit, row, old)

    async def forget_measures(self, age: timedelta, *, limit: int) -> int:
        """Delete records of expansions, written details and caches that are older than ``age``; return how many."""
        removed = 0
        for table, at in (
            (ExpansionRow, ExpansionRow.created_at),
            (DetailCallRow, DetailCallRow.called_at),
            (CacheEntryRow, CacheEntryRow.at),
        ):
            removed += await self._delete_at_most(limit - removed, table, col(at) < transaction_start() - age)
        return removed

    async def remove_tenant(self) -> bool:
        """Delete the tenant and all its rows; ``False`` if it has conversations, or if it does not exist."""
        rows = ConversationRow
        if await self._session.first(select(col(rows.id)).limit(1)) is not None:
            return False
        own = col(TenantRow.tenant_id)
        return await self._session.first(delete(TenantRow).returning(own)) is not None
