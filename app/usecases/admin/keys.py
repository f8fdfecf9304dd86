"""Tenants and API keys: stored hashed, compared in constant time, with scopes."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Collection
from dataclasses import dataclass
from uuid import UUID

from app.core.model.errors import ForbiddenError, NotFoundError, UnauthenticatedError
from app.core.model.records import ApiKey, Scope
from app.storage.unit_of_work import UnitOfWork
from app.usecases.shared.shell import Shell

DEFAULT_TENANT = "default"
PREFIX = "tl_"
SHOWN = 11  # characters of a key that lists show: the prefix and eight of the secret
ALL_SCOPES: frozenset[Scope] = frozenset({"read", "write", "admin"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """Who asks: a tenant, and what the key may do there."""

    tenant_id: UUID
    scopes: frozenset[Scope]

    def require(self, scope: Scope) -> None:
        """Raises ``ForbiddenError`` when the key lacks the scope."""
        if scope not in self.scopes:
            raise ForbiddenError(f"this key lacks the scope {scope!r}: use one that has it")


class KeyService:
    """Knows keys by their hash only."""

    def __init__(self, shell: Shell, *, anonymous_allowed: bool) -> None:
        self._shell = shell
        self._anonymous_allowed = anonymous_allowed
        self._default_tenant: UUID | None = None

    @property
    def anonymous_allowed(self) -> bool:
        """Whether a request without a key is the default tenant's."""
        return self._anonymous_allowed

    async def authenticate(self, key: str | None) -> Principal:
        """The principal of a key; without one, the default tenant where that is allowed (loopback, embedded)."""
        if not key:
            if self._anonymous_allowed:
                return Principal(tenant_id=await self._default(), scopes=ALL_SCOPES)
            raise UnauthenticatedError("send a key: Authorization: Bearer <key>")
        found = await self.known(key)
        return Principal(tenant_id=found.tenant_id, scopes=found.scopes)

    async def known(self, key: str) -> ApiKey:
        """The record of a key. Raises ``UnauthenticatedError`` for one that is unknown or revoked."""
        digest = hash_of(key)
        async with self._shell.uow(None) as uow:
            found = await uow.keys.by_hash(digest)
        if found is None or not hmac.compare_digest(found.secret_hash, digest):
            raise UnauthenticatedError("this key is unknown or revoked")
        return found

    async def create(self, tenant: str, name: str, scopes: Collection[Scope]) -> tuple[ApiKey, str]:
        """A new key of a tenant, which is made when there is none of that name; the secret is shown only now."""
        secret = PREFIX + secrets.token_urlsafe(32)
        async with self._shell.uow(None) as uow:
            key = ApiKey(
                id=self._shell.new_id(),
                tenant_id=await self._tenant(uow, tenant),
                name=name,
                prefix=secret[:SHOWN],
                secret_hash=hash_of(secret),
                scopes=frozenset(scopes),
                created_at=self._shell.clock.now(),
            )
            await uow.keys.add(key)
            await uow.commit()
        return key, secret

    async def all(self) -> list[ApiKey]:
        """Every key, without its secret."""
        async with self._shell.uow(None) as uow:
            return await uow.keys.all()

    async def revoke(self, key_id: UUID) -> None:
        """The key stops working at once."""
        async with self._shell.uow(None) as uow:
            if not await uow.keys.revoke(key_id, self._shell.clock.now()):
                raise NotFoundError("no such key, or it is revoked already")
            await uow.commit()

    async def any(self) -> bool:
        """Whether any usable key exists."""
        async with self._shell.uow(None) as uow:
            return await uow.keys.any()

    async def ready(self) -> None:
        """Make the default tenant, so that the development mode has one."""
        await self._default()

    async def _default(self) -> UUID:
        if self._default_tenant is None:
            async with self._shell.uow(None) as uow:
                self._default_tenant = await self._tenant(uow, DEFAULT_TENANT)
                await uow.commit()
        return self._default_tenant

    async def _tenant(self, uow: UnitOfWork, name: str) -> UUID:
        """The tenant of that name; made when there is none, whoever makes it first."""
        found = await uow.keys.tenant_by_name(name)
        if found is None:
            await uow.keys.add_tenant(self._shell.new_id(), name)
            found = await uow.keys.tenant_by_name(name)
        if found is None:
            raise NotFoundError(f"the tenant {name!r} could not be made")
        return found


def hash_of(key: str) -> bytes:
    """SHA-256: keys are 256 random bits, so a slow hash would protect nothing."""
    return hashlib.sha256(key.encode(errors="replace")).digest()
