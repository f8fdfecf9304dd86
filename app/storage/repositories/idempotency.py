"""Rows of ``idempotency_keys``."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from sqlalchemy import delete, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlmodel import col

from app.core.model.errors import NotFoundError
from app.core.model.records import IdempotencyRecord
from app.storage.repositories.base import Repository
from app.storage.repositories.leases import began
from app.storage.repositories.mapping import columns, value
from app.storage.tables import IdempotencyRow

_key = col(IdempotencyRow.key)


class IdempotencyRepository(Repository):
    """Rows of ``idempotency_keys`` of one tenant."""

    def _own(self, key: str) -> str:
        """Keys of one end user's are apart from everybody else's."""
        user = self._session.end_user
        return key if user is None else hashlib.sha256(f"{user}\0{key}".encode()).hexdigest()

    async def claim(self, record: IdempotencyRecord) -> IdempotencyRecord | None:
        """Insert, or the record that is already there, locked: of two requests with one key the second waits."""
        key = self._own(record.key)
        statement = (
            insert(IdempotencyRow)
            .values(**columns(record, key=key, ref=dict(record.ref)))
            .on_conflict_do_nothing(index_elements=["tenant_id", "key"])
            .returning(_key)
        )
        # The record in the way may be deleted before it is read: then the key is free, and the insert comes again.
        while await self._session.first(statement) is None:
            row = await self._session.first(select(IdempotencyRow).where(_key == key).with_for_update())
            if row is not None:
                return value(IdempotencyRecord, row)
        return None

    async def get(self, key: str) -> IdempotencyRecord | None:
        """What a key stands for; ``None`` where it stands for nothing."""
        row = await self._session.first(select(IdempotencyRow).where(_key == self._own(key)))
        return None if row is None else value(IdempotencyRecord, row)

    async def update(self, key: str, *, ref: Mapping[str, Any], status: int) -> None:
        """Set what the key did, in the transaction that did it. Raises ``NotFoundError``."""
        changed = update(IdempotencyRow).where(_key == self._own(key)).values(ref=dict(ref), status=status)
        statement = changed.returning(_key)
        if await self._session.first(statement) is None:
            raise NotFoundError("No such idempotency key.")

    async def delete(self, key: str) -> None:
        """Forget a key whose request had no effect; no error when it is gone."""
        await self._session.execute(delete(IdempotencyRow).where(_key == self._own(key)))

    async def forget_older_than(self, age: timedelta) -> int:
        """Housekeeping; how many were forgotten."""
        statement = delete(IdempotencyRow).where(col(IdempotencyRow.created_at) < began() - age)
        return len(await self._session.all(statement.returning(_key)))
