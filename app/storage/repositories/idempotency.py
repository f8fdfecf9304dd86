"""The SQL of idempotency keys."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from sqlalchemy import bindparam, delete, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlmodel import col

from app.core.model.errors import NotFoundError
from app.core.model.records import IdempotencyRecord
from app.storage.repositories.base import Repository
from app.storage.repositories.database_time import transaction_start
from app.storage.repositories.mapping import columns, new_parameters, new_values, record_from_row
from app.storage.scoped_session import TenantSession
from app.storage.tables import IdempotencyRow
from app.storage.tenancy import keep_compiled

_key = col(IdempotencyRow.key)
_IS_KEY = _key == bindparam("of_key")
_CLAIM = (
    insert(IdempotencyRow)
    .values(**new_parameters(IdempotencyRecord))
    .on_conflict_do_nothing(index_elements=["tenant_id", "key"])
    .returning(_key)
)
_GET = select(IdempotencyRow).where(_IS_KEY)
_LOCK = _GET.with_for_update()
_NEW_VALUES: dict[str, Any] = {"ref": bindparam("new_ref"), "status": bindparam("new_status")}
_UPDATE = update(IdempotencyRow).where(_IS_KEY).values(_NEW_VALUES).returning(_key)
keep_compiled(_CLAIM, _GET, _LOCK, _UPDATE)


class IdempotencyRepository(Repository):
    """Rows of ``idempotency_keys`` of one tenant."""

    def __init__(self, session: TenantSession) -> None:
        super().__init__(session)
        self._claimed: set[str] = set()
        """The keys inserted in this transaction, which therefore exist."""

    def _stored_key(self, key: str) -> str:
        user = self._session.end_user
        return key if user is None else hashlib.sha256(f"{user}\0{key}".encode()).hexdigest()

    async def claim(self, record: IdempotencyRecord) -> IdempotencyRecord | None:
        """Insert, or return the existing record, locked. Of two requests with one key the second waits."""
        key = self._stored_key(record.key)
        given = new_values(columns(record, key=key, ref=dict(record.ref)))
        # The existing record may be deleted before it is read; then the key is free, and the insert is repeated.
        while not await self._session.begin_with(_CLAIM, **given):
            row = await self._session.first(_LOCK, of_key=key)
            if row is not None:
                return record_from_row(IdempotencyRecord, row)
        self._claimed.add(key)
        return None

    async def get(self, key: str) -> IdempotencyRecord | None:
        """The record of a key; ``None`` if there is none."""
        row = await self._session.first(_GET, of_key=self._stored_key(key))
        return None if row is None else record_from_row(IdempotencyRecord, row)

    async def update(self, key: str, *, ref: Mapping[str, Any], status: int) -> None:
        """Set what the key did, in the transaction that did it. Raises ``NotFoundError``."""
        given = new_values({"ref": dict(ref), "status": status}) | {"of_key": self._stored_key(key)}
        if given["of_key"] in self._claimed:
            await self._session.write(_UPDATE, [given])
        elif await self._session.change(_UPDATE, **given) is None:
            raise NotFoundError("No such idempotency key.")

    async def delete(self, key: str) -> None:
        """Delete the key of a request that had no effect. No error is raised if it does not exist."""
        self._claimed.discard(self._stored_key(key))
        await self._session.execute(delete(IdempotencyRow).where(_key == self._stored_key(key)))

    async def forget_older_than(self, age: timedelta, *, limit: int) -> int:
        """Delete older rows, at most ``limit``, and return how many."""
        return await self._delete_at_most(
            limit, IdempotencyRow, col(IdempotencyRow.created_at) < transaction_start() - age
        )
