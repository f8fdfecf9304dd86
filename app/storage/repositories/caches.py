"""The SQL of caches at providers: prefixes of requests, the conversations that use each, and costs and savings."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import and_, cast, delete, func, insert, or_, select, text, update
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlmodel import col

from app.core.model.caches import CacheEntry, ProviderCache
from app.storage.repositories.base import Repository
from app.storage.repositories.database_time import now, transaction_start
from app.storage.repositories.mapping import columns, record_from_row
from app.storage.tables import CACHE_DUE, TEXTS, CacheEntryRow, CacheMemberRow, ProviderCacheRow

_row = ProviderCacheRow
_member = CacheMemberRow


class CacheRepository(Repository):
    """Rows of ``provider_caches``, ``provider_cache_members`` and ``provider_cache_entries``.

    A *prefix* is what requests to one model begin with: system prompt, awareness block, tools and files. Each row of
    ``provider_caches`` is one prefix. A conversation is a *member* of the prefix that its requests begin with now.
    """

    async def find(self, model: str, account: str, fingerprint: str) -> ProviderCache | None:
        """The row of a prefix, if there is one."""
        row = await self._session.first(select(_row).where(_is_same_prefix(model, account, fingerprint)))
        return None if row is None else _cache(row)

    async def locked(self, cache: ProviderCache) -> ProviderCache:
        """The row of this prefix, locked until the end of the transaction. If there is none, it is inserted.

        Raises ``NotFoundError`` when there is no such tenant.
        """
        self._check_tenant(cache.tenant_id)
        await self._session.execute(upsert(_row).values(**_columns(cache)).on_conflict_do_nothing())
        same = _is_same_prefix(cache.model, cache.account, cache.fingerprint)
        return _cache(await self._session.first(select(_row).where(same).with_for_update()))

    async def get(self, cache_id: UUID) -> ProviderCache | None:
        """The cache with that id. In the system scope it may belong to any tenant."""
        row = await self._session.first(select(_row).where(col(_row.id) == cache_id))
        return None if row is None else _cache(row)

    async def update(self, cache_id: UUID, **values: Any) -> bool:
        """Change fields of a row, and return whether it exists."""
        changed = update(_row).where(col(_row.id) == cache_id).values(**values).returning(col(_row.id))
        return await self._session.first(changed) is not None

    async def note_lost(self, cache_id: UUID, name: str) -> bool:
        """Record that the provider no longer keeps the cache with that name; ``False`` if this was already known."""
        cleared = {"name": None, "made_at": None, "expires_at": None, "uses": 0, "due_at": None}
        which = (col(_row.id) == cache_id) & (col(_row.name) == name)
        return (
            await self._session.first(update(_row).where(which).values(**cleared).returning(col(_row.id))) is not None
        )

    async def take(self, cache_id: UUID, *, pause: timedelta) -> ProviderCache | None:
        """Claim a due row: count one more try, and make it due again after ``pause``. ``None`` if it is not due."""
        statement = (
            update(_row)
            .where(col(_row.id) == cache_id, col(_row.due_at) <= now())
            .values(tries=col(_row.tries) + 1, due_at=now() + pause)
            .returning(_row)
        )
        found = await self._session.first(statement)
        return None if found is None else _cache(found)

    async def due(self, *, limit: int) -> list[ProviderCache]:
        """The rows of all tenants that are due now, the longest due first. Read by the partial index."""
        statement = select(_row).where(text(f"provider_caches.{CACHE_DUE}"), col(_row.due_at) <= now())
        return [_cache(row) for row in await self._session.all(statement.order_by(col(_row.due_at)).limit(limit))]

    async def orphans(self, *, limit: int) -> list[ProviderCache]:
        """The due rows of all tenants that have no member any more."""
        statement = select(_row).where(text(f"provider_caches.{CACHE_DUE}"), col(_row.due_at) <= now(), ~_has_member())
        return [_cache(row) for row in await self._session.all(statement.order_by(col(_row.due_at)).limit(limit))]

    async def remove(self, cache_id: UUID, *, only_orphan: bool) -> ProviderCache | None:
        """Delete the row of a prefix and return it; with ``only_orphan`` only if it has no member."""
        which = [col(_row.id) == cache_id, *([~_has_member()] if only_orphan else [])]
        locked = select(_row).where(*which).with_for_update(skip_locked=True)
        row = await self._session.first(locked)
        if row is None:
            return None
        found = _cache(row)
        await self._session.execute(delete(_row).where(col(_row.id) == cache_id))
        return found

    async def minimum(self, model: str, account: str) -> int:
        """The fewest tokens that the provider caches, learnt from its refusals; 0 if it has refused nothing yet."""
        largest = select(func.max(col(_row.minimum))).where(col(_row.model) == model, col(_row.account) == account)
        return int(await self._session.first(largest) or 0)

    async def join(self, conversation_id: UUID, model: str, cache_id: UUID) -> None:
        """Make a conversation a member of a prefix, for one model, and end its membership in the one before."""
        mine = and_(col(_member.conversation_id) == conversation_id, col(_member.model) == model)
        before = await self._session.first(select(col(_member.cache_id)).where(mine))
        if before == cache_id:
            return
        new = upsert(_member).values(
            conversation_id=conversation_id, model=model, cache_id=cache_id, joined_at=func.transaction_timestamp()
        )
        changed = {"cache_id": new.excluded.cache_id, "joined_at": new.excluded.joined_at}
        keys = ["tenant_id", "conversation_id", "model"]
        await self._session.execute(new.on_conflict_do_update(index_elements=keys, set_=changed))
        if before is not None:
            await self._make_due_for_sweeper([before])

    async def leave(self, conversation_id: UUID, *, cache_id: UUID | None = None) -> int:
        """End all memberships of a conversation, or only that in one prefix; return how many there were.

        The prefixes become due, so that the sweeper deletes those without members.
        """
        mine = [col(_member.conversation_id) == conversation_id]
        if cache_id is not None:
            mine.append(col(_member.cache_id) == cache_id)
        gone = delete(_member).where(*mine).returning(col(_member.cache_id))
        return await self._make_due_for_sweeper(await self._session.all(gone))

    async def leave_with_files(self, files: Sequence[str]) -> int:
        """End all memberships in prefixes with one of these files (SHA-256 hashes).

        The prefixes become due, so that the sweeper deletes them. Returns how many there are.
        """
        if not files:
            return 0
        holding = select(col(_row.id)).where(col(_row.files).op("&&")(cast(list(files), TEXTS)))
        ids = await self._session.all(holding)
        await self._session.execute(delete(_member).where(col(_member.cache_id).in_(ids)))
        return await self._make_due_for_sweeper(ids)

    async def member(self, cache_id: UUID) -> UUID | None:
        """The newest member of a prefix, or ``None``."""
        statement = select(col(_member.conversation_id)).where(col(_member.cache_id) == cache_id)
        found: UUID | None = await self._session.first(statement.order_by(col(_member.joined_at).desc()).limit(1))
        return found

    async def of_conversation(self, conversation_id: UUID) -> list[ProviderCache]:
        """The prefixes that a conversation is a member of, the last used first."""
        mine = select(col(_member.cache_id)).where(col(_member.conversation_id) == conversation_id)
        statement = select(_row).where(col(_row.id).in_(mine)).order_by(col(_row.last_used_at).desc())
        return [_cache(row) for row in await self._session.all(statement)]

    async def kept_by_provider(self, *, limit: int) -> list[ProviderCache]:
        """The caches that a provider keeps now, the last used first; for an end user, those of their conversations."""
        which = [col(_row.expires_at) > transaction_start()]
        if self._session.end_user is not None:
            which.append(_has_member())
        statement = select(_row).where(*which).order_by(col(_row.last_used_at).desc())
        return [_cache(row) for row in await self._session.all(statement.limit(limit))]

    async def forget_idle(self, age: timedelta, *, limit: int) -> int:
        """Delete rows last used longer ago than ``age`` of which no provider keeps a cache; return how many."""
        is_gone = or_(col(_row.name).is_(None), col(_row.expires_at) < transaction_start())
        old = and_(col(_row.last_used_at) < transaction_start() - age, is_gone)
        return await self._delete_at_most(limit, _row, old)

    async def count(self) -> int:
        """How many caches providers keep for the tenant now."""
        kept = select(func.count()).select_from(_row).where(col(_row.expires_at) > transaction_start())
        return int(await self._session.first(kept) or 0)

    async def add_entry(self, entry: CacheEntry) -> None:
        """Insert one entry of what caches cost and save.

        Raises ``NotFoundError`` if its conversation or tenant does not exist.
        """
        await self._session.execute(insert(CacheEntryRow).values(**columns(entry)))

    async def _make_due_for_sweeper(self, ids: Sequence[UUID]) -> int:
        if ids:
            made_due = update(_row).where(col(_row.id).in_(ids)).values(due_at=now(), tries=0)
            await self._session.execute(made_due)
        return len(ids)


def _has_member() -> Any:
    # The tenant is compared too, since the key begins with it.
    whose = (col(_member.tenant_id) == col(_row.tenant_id)) & (col(_member.cache_id) == col(_row.id))
    return select(col(_member.conversation_id)).where(whose).exists()


def _is_same_prefix(model: str, account: str, fingerprint: str) -> Any:
    return and_(col(_row.model) == model, col(_row.account) == account, col(_row.fingerprint) == fingerprint)


def _cache(row: ProviderCacheRow) -> ProviderCache:
    return record_from_row(ProviderCache, row, files=tuple(row.files))


def _columns(cache: ProviderCache) -> dict[str, Any]:
    return columns(cache, files=list(cache.files))
