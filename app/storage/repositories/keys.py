"""The SQL of tenants and their API keys."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any, get_args
from uuid import UUID

from sqlalchemy import Text, any_, bindparam, cast, delete, exists, func, literal, literal_column, or_, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlmodel import col

from app.core.model.errors import NotFoundError
from app.core.model.records import ApiKey, Scope
from app.storage.repositories.base import Repository
from app.storage.repositories.database_time import now
from app.storage.repositories.mapping import columns, record_from_row, without
from app.storage.tables import ApiKeyRow, ErasureRow, TenantRow
from app.storage.tenancy import keep_compiled

_USABLE = col(ApiKeyRow.revoked_at).is_(None)
_VERSION = cast(literal_column("api_keys.xmin"), Text)
"""The version of a row; every change gives it another one."""
_BY_HASH = select(*(getattr(ApiKeyRow, name) for name in ApiKeyRow.model_fields), _VERSION.label("version")).where(
    col(ApiKeyRow.secret_hash) == bindparam("secret_hash"), _USABLE
)
_SAME_VERSION = select(col(ApiKeyRow.id)).where(
    col(ApiKeyRow.tenant_id) == bindparam("of_tenant"),
    col(ApiKeyRow.id) == bindparam("key_id"),
    bindparam("version") == _VERSION,
    _USABLE,
)
_TENANT_IN_USE = select(col(TenantRow.tenant_id)).where(
    col(TenantRow.tenant_id) == bindparam("of_tenant"),
    ~exists().where(col(ErasureRow.tenant_id) == col(TenantRow.tenant_id), col(ErasureRow.user_id).is_(None)),
)
keep_compiled(_BY_HASH, _SAME_VERSION, _TENANT_IN_USE)
USER_SCOPE_PREFIX = "user:"
"""The prefix of the scope by which a stored key names the only end user whose conversations it sees."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadKey:
    """A key as it was read."""

    key: ApiKey
    version: str
    """The version of its row."""


class KeyRepository(Repository):
    """Tenants and API keys; ``by_hash`` works without a tenant."""

    async def add_tenant(self, tenant_id: UUID, name: str) -> None:
        """Insert a tenant unless it exists or another has the name. A tenant that is just being made is waited for."""
        self._check_tenant(tenant_id)
        statement = insert(TenantRow).values(tenant_id=tenant_id, name=name)
        await self._session.execute(statement.on_conflict_do_nothing())

    async def tenant_by_name(self, name: str) -> UUID | None:
        """The tenant's id."""
        found: UUID | None = await self._session.first(
            select(col(TenantRow.tenant_id)).where(col(TenantRow.name) == name)
        )
        return found

    async def is_tenant_in_use(self, tenant_id: UUID) -> bool:
        """Whether the tenant exists and is not being erased. It takes one round trip."""
        self._check_tenant(tenant_id)
        return bool(await self._session.run_alone(_TENANT_IN_USE, of_tenant=tenant_id))

    async def free_tenant_name(self, tenant_id: UUID) -> None:
        """Rename a tenant of which only what providers keep is left, so that another one may have its name."""
        self._check_tenant(tenant_id)
        name = f"erased {tenant_id}"
        is_named_otherwise = (col(TenantRow.tenant_id) == tenant_id, col(TenantRow.name) != name)
        await self._session.execute(update(TenantRow).where(*is_named_otherwise).values(name=name))

    async def tenant_names(self) -> dict[UUID, str]:
        """The name of every tenant, or only of the unit of work's tenant if it has one."""
        names = select(col(TenantRow.tenant_id), col(TenantRow.name))
        return {tenant_id: name for tenant_id, name in await self._session.rows(names)}  # noqa: C416 - rows are no pairs

    async def sealing_secret(self, tenant_id: UUID, fresh: bytes) -> bytes:
        """The tenant's secret, which seals data that its clients keep; if there is none yet, ``fresh`` becomes it.

        Raises ``NotFoundError``.
        """
        self._check_tenant(tenant_id)
        secret, is_tenant = col(TenantRow.sealing_secret), col(TenantRow.tenant_id) == tenant_id
        # It is written once and then only read: with each request of a browser, also while nothing can be written.
        found: bytes | None = await self._session.first(select(secret).where(is_tenant))
        if found is None:
            made = update(TenantRow).where(is_tenant).values(sealing_secret=func.coalesce(secret, fresh))
            found = await self._session.first(made.returning(secret))
        if found is None:
            raise NotFoundError("No such tenant.")
        return found

    async def add(self, key: ApiKey) -> None:
        """Insert. Raises ``NotFoundError`` when there is no such tenant."""
        self._check_tenant(key.tenant_id)
        values = without(columns(key, scopes=_stored_scopes(key), limits=dict(key.limits)), "user_id")
        await self._session.execute(insert(ApiKeyRow).values(**values))

    async def by_hash(self, secret_hash: bytes) -> ReadKey | None:
        """The key with that hash, unless revoked."""
        rows = await self._session.rows(_BY_HASH, secret_hash=secret_hash)
        return ReadKey(key=_key(rows[0]), version=rows[0].version) if rows else None

    async def is_unchanged(self, read: ReadKey) -> bool:
        """Whether the key is stored as it was read.

        It takes one round trip, while reading the key again takes three.
        """
        self._check_tenant(read.key.tenant_id)
        of = {"of_tenant": read.key.tenant_id, "key_id": read.key.id, "version": read.version}
        return bool(await self._session.run_alone(_SAME_VERSION, **of))

    async def get(self, key_id: UUID) -> ApiKey:
        """A key, even if it is revoked or expired. Raises ``NotFoundError``."""
        row = await self._session.first(select(ApiKeyRow).where(col(ApiKeyRow.id) == key_id))
        if row is None:
            raise NotFoundError("No such key.")
        return _key(row)

    async def usable(self, key_ids: Collection[UUID]) -> frozenset[UUID]:
        """The ids among these of keys that are neither revoked nor expired."""
        expires = col(ApiKeyRow.expires_at)
        lives = or_(expires.is_(None), expires > now())
        found = select(col(ApiKeyRow.id)).where(col(ApiKeyRow.id).in_(key_ids), _USABLE, lives)
        return frozenset(await self._session.all(found))

    async def change(self, key_id: UUID, **changes: Any) -> ApiKey | None:
        """Set ``limits`` or ``expires_at`` of a key; ``None`` if there is no such key or it is revoked."""
        statement = update(ApiKeyRow).where(col(ApiKeyRow.id) == key_id, _USABLE).values(**changes)
        row = await self._session.first(statement.returning(ApiKeyRow))
        return None if row is None else _key(row)

    async def note_use(self, key_ids: Collection[UUID]) -> None:
        """Set the time of their last use to now."""
        self._session.autocommit()
        statement = update(ApiKeyRow).where(col(ApiKeyRow.id).in_(key_ids)).values(last_used_at=now())
        await self._session.execute(statement)

    async def all(self) -> list[ApiKey]:
        """Every key (of the tenant, if the unit of work has one), oldest first."""
        order = (col(ApiKeyRow.created_at), col(ApiKeyRow.id))
        return [_key(row) for row in await self._session.all(select(ApiKeyRow).order_by(*order))]

    async def revoke(self, key_id: UUID, at: datetime) -> bool:
        """Revoke a key; ``False`` if there is no such key or it is revoked already."""
        statement = update(ApiKeyRow).where(col(ApiKeyRow.id) == key_id, _USABLE).values(revoked_at=at)
        return await self._session.first(statement.returning(col(ApiKeyRow.id))) is not None

    async def remove_of_user(self, user_id: str) -> int:
        """Delete the keys of one end user, and return how many."""
        of = literal(USER_SCOPE_PREFIX + user_id) == any_(col(ApiKeyRow.scopes))
        return len(await self._session.all(delete(ApiKeyRow).where(of).returning(col(ApiKeyRow.id))))

    async def any(self) -> bool:
        """Whether any usable key exists (in the whole database, without a tenant)."""
        return bool(await self._session.first(select(exists(select(col(ApiKeyRow.id)).where(_USABLE)))))


def _stored_scopes(key: ApiKey) -> list[str]:
    own = [] if key.user_id is None else [USER_SCOPE_PREFIX + key.user_id]
    return sorted([*key.scopes, *own])


def _key(row: Any) -> ApiKey:
    users = [word.removeprefix(USER_SCOPE_PREFIX) for word in row.scopes if word.startswith(USER_SCOPE_PREFIX)]
    scopes = frozenset(scope for scope in get_args(Scope) if scope in row.scopes)
    return record_from_row(ApiKey, row, scopes=scopes, user_id=users[0] if users else None)
