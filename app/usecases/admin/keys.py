"""API keys and the tenants they belong to: makes, changes and revokes them, and checks a key at each request.

Only the hash of a key is stored, and hashes are compared in constant time.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import secrets
from collections.abc import Collection, Mapping
from contextlib import suppress
from contextvars import Context
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from app.core.model.errors import (
    DependencyUnavailableError,
    InvalidInputError,
    NotFoundError,
    UnauthenticatedError,
)
from app.core.model.records import ApiKey, Scope
from app.core.model.usage_limits import TENANT_ONLY, Limits
from app.storage.repositories.keys import ReadKey
from app.usecases.admin.invalid_keys import FailedKeys
from app.usecases.shared.caller import Principal, audit
from app.usecases.shared.shell import Shell

DEFAULT_TENANT = "default"
PREFIX = "tl_"
SHOWN_CHARACTERS = 11  # characters of a key that lists show: the prefix and eight of the secret
ALL_SCOPES: frozenset[Scope] = frozenset({"read", "write", "admin"})
USE_NOTED_EVERY: Final = timedelta(minutes=1)
"""The time of a key's last use is written at most this often."""
MAX_USER_ID_LENGTH: Final = 255
MAX_CACHED_KEYS: Final = 1_000
"""How many keys a process keeps in memory. At each use it asks the database only whether the key has changed."""


def principal_of(key: ApiKey) -> Principal:
    """The principal that a key stands for: tenant, scopes, end user and limits."""
    return Principal(
        tenant_id=key.tenant_id,
        scopes=key.scopes,
        key_id=key.id,
        user_id=key.user_id,
        limits=tuple(key.limits.items()),
    )


class KeyService:
    """Makes, changes, revokes and checks keys."""

    def __init__(self, shell: Shell, *, anonymous_allowed: bool, failures_per_minute: int = 0) -> None:
        self._shell = shell
        self._anonymous_allowed = anonymous_allowed
        self._default_tenant: UUID | None = None
        self.failures = FailedKeys(failures_per_minute, shell.clock.monotonic)
        """Counts what was not valid, by address: keys and forged sessions."""
        self._cached: dict[bytes, ReadKey] = {}
        """The cached keys, by the hash of their secret."""
        self._uses_to_note: set[UUID] = set()
        self._noting: asyncio.Task[None] | None = None

    @property
    def anonymous_allowed(self) -> bool:
        """Whether a request without a key is treated as a request of the default tenant."""
        return self._anonymous_allowed

    async def authenticate(self, key: str | None, address: str | None = None) -> Principal:
        """The principal of a key; without a key the default tenant's, where that is allowed (loopback, embedded).

        Raises:
            UnauthenticatedError: The key is unknown, revoked or expired, or there is none.
            RateLimitedError: Too many keys from this address were refused.
        """
        if not key:
            if self._anonymous_allowed:
                return Principal(tenant_id=await self._default_tenant_id(), scopes=ALL_SCOPES)
            raise UnauthenticatedError("send a key: Authorization: Bearer <key>")
        return principal_of(await self.record_of(key, address))

    async def record_of(self, key: str, address: str | None = None) -> ApiKey:
        """The record of a key.

        Raises:
            UnauthenticatedError: The key is unknown, expired or revoked.
            RateLimitedError: Too many keys from this address were refused.
        """
        digest, now = hash_of(key), self._shell.clock.now()
        self.failures.check(address, digest)
        found = await self._stored(digest)
        if found is None or not hmac.compare_digest(found.secret_hash, digest) or not found.is_usable(now):
            self.failures.forget(digest)
            self.failures.failed(address)
            instead = "leave it out, for this server asks for none" if self._anonymous_allowed else "use another"
            raise UnauthenticatedError(f"this key is unknown, expired or revoked: {instead}")
        self.failures.succeeded(digest)
        self._note_use_soon(found, now)
        return found

    async def _stored(self, digest: bytes) -> ApiKey | None:
        """The key with that hash; ``None`` if there is none or it is revoked."""
        cached = self._cached.get(digest)
        async with self._shell.uow(None) as uow:
            if cached is not None and await uow.keys.is_unchanged(cached):
                return cached.key
            cached = await uow.keys.by_hash(digest)
        self._cached.pop(digest, None)
        if cached is None:
            return None
        if len(self._cached) >= MAX_CACHED_KEYS:
            self._cached.clear()
        self._cached[digest] = cached
        return cached.key

    async def usable(self, tenant_id: UUID, key_id: UUID) -> ApiKey | None:
        """The tenant's key with that id; ``None`` if it cannot be used now.

        For browser sessions, which name a key by its id.
        """
        now = self._shell.clock.now()
        async with self._shell.uow(tenant_id) as uow:
            try:
                found = await uow.keys.get(key_id)
            except NotFoundError:
                return None
        if not found.is_usable(now):
            return None
        self._note_use_soon(found, now)
        return found

    async def create(
        self,
        tenant: str,
        name: str,
        scopes: Collection[Scope],
        *,
        user_id: str | None = None,
        limits: Mapping[str, Any] | None = None,
        expires_at: datetime | None = None,
    ) -> tuple[ApiKey, str]:
        """Make a key. If no tenant has that name, make the tenant too.

        Returns:
            The key, and its secret, which cannot be read again.

        Raises:
            InvalidInputError: The name of the tenant or the end user is not valid, the expiry is past, or a key of
                one end user would have the scope admin.
            DependencyUnavailableError: The tenant is being erased.
        """
        now = self._shell.clock.now()
        if not tenant.strip() or not tenant.isprintable():
            raise InvalidInputError.of("tenant", "a tenant is named by printable characters")
        _refuse_unfit_user(scopes, user_id)
        _refuse_past(expires_at, now)
        secret, tenant_id = PREFIX + secrets.token_urlsafe(32), await self._usable_tenant(tenant)
        async with self._shell.uow(None) as uow:
            key = ApiKey(
                id=self._shell.new_id(),
                tenant_id=tenant_id,
                name=name,
                prefix=secret[:SHOWN_CHARACTERS],
                secret_hash=hash_of(secret),
                scopes=frozenset(scopes),
                user_id=user_id,
                limits=dict(limits or {}),
                created_at=now,
                expires_at=expires_at,
            )
            await uow.keys.add(key)
            await audit(uow, self._shell, key.tenant_id, "key.created", key.id)
            await uow.commit()
        return key, secret

    async def change(
        self, key_id: UUID, *, limits: Mapping[str, Any] | None = None, expires_at: datetime | None = None
    ) -> ApiKey:
        """Set limits or the expiry of a key.

        A limit with the value ``None`` is removed; limits that are not named stay as they are.

        Raises:
            NotFoundError: There is no such key, or it is revoked.
            InvalidInputError: The expiry is past.
        """
        _refuse_past(expires_at, self._shell.clock.now())
        async with self._shell.uow(None) as uow:
            found = await uow.keys.get(key_id)
            changes: dict[str, Any] = {} if expires_at is None else {"expires_at": expires_at}
            if limits is not None:
                changes["limits"] = {**found.limits, **limits}
            changed = await uow.keys.change(key_id, **changes) if changes else found
            if changed is None:
                raise NotFoundError("no such key, or it is revoked")
            await audit(uow, self._shell, found.tenant_id, "key.changed", key_id)
            await uow.commit()
        return changed

    async def all(self) -> list[ApiKey]:
        """The keys of all tenants."""
        async with self._shell.uow(None) as uow:
            return await uow.keys.all()

    async def tenants(self) -> dict[UUID, str]:
        """The name of every tenant."""
        async with self._shell.uow(None) as uow:
            return await uow.keys.tenant_names()

    async def revoke(self, key_id: UUID) -> None:
        """Revoke a key at once. Raises ``NotFoundError`` if there is no such key, or it is revoked already."""
        async with self._shell.uow(None) as uow:
            if not await uow.keys.revoke(key_id, self._shell.clock.now()):
                raise NotFoundError("no such key, or it is revoked already")
            await audit(uow, self._shell, (await uow.keys.get(key_id)).tenant_id, "key.revoked", key_id)
            await uow.commit()

    async def any(self) -> bool:
        """Whether any usable key exists."""
        async with self._shell.uow(None) as uow:
            return await uow.keys.any()

    async def drain(self) -> None:
        """Write the last uses of keys that are not yet written. Called when the process ends."""
        if self._noting is not None:
            await asyncio.wait([self._noting], timeout=self._shell.timings.heartbeat_seconds)
            self._noting.cancel()

    async def make_default_tenant(self) -> None:
        """Make the default tenant, for requests without a key, if it does not exist."""
        self._default_tenant = await self._tenant_made_if_missing(DEFAULT_TENANT)

    def _note_use_soon(self, key: ApiKey, now: datetime) -> None:
        if key.last_used_at is not None and now - key.last_used_at < USE_NOTED_EVERY:
            return
        self._uses_to_note.add(key.id)
        if self._noting is None or self._noting.done():
            self._noting = asyncio.create_task(self._write_uses(), context=Context())

    async def _write_uses(self) -> None:
        while self._uses_to_note:
            used = frozenset(self._uses_to_note)
            self._uses_to_note.clear()
            with suppress(DependencyUnavailableError):
                async with self._shell.uow(None) as uow:
                    await uow.keys.note_use(used)

    async def _default_tenant_id(self) -> UUID:
        """The tenant of requests without a key; made again if it was erased since the last request."""
        if self._default_tenant is None or not await self._is_in_use(self._default_tenant):
            self._default_tenant = await self._usable_tenant(DEFAULT_TENANT)
        return self._default_tenant

    async def _usable_tenant(self, name: str) -> UUID:
        """The tenant of that name, made if it does not exist.

        Raises ``DependencyUnavailableError`` while it is being erased: what it is given now would be erased too.
        """
        tenant_id = await self._tenant_made_if_missing(name)
        if not await self._is_in_use(tenant_id):
            raise DependencyUnavailableError(f"The tenant {name!r} is being erased; try again later.", retry_after=1.0)
        return tenant_id

    async def _is_in_use(self, tenant_id: UUID) -> bool:
        with suppress(DependencyUnavailableError):  # whatever needs the database will say so itself
            async with self._shell.uow(None) as uow:
                return await uow.keys.is_tenant_in_use(tenant_id)
        return True

    async def _tenant_made_if_missing(self, name: str) -> UUID:
        async with self._shell.uow(None) as uow:
            found = await uow.keys.tenant_by_name(name)
            if found is None:
                await uow.keys.add_tenant(self._shell.new_id(), name)
                found = await uow.keys.tenant_by_name(name)
                await uow.commit()
        if found is None:
            raise NotFoundError(f"the tenant {name!r} could not be made")
        return found


def hash_of(key: str) -> bytes:
    """The SHA-256 of a key. Keys are 256 random bits: a slow hash would protect them no better."""
    return hashlib.sha256(key.encode(errors="replace")).digest()


def parse_limits(words: Collection[str]) -> dict[str, Any]:
    """Limits from the command line: ``name=number``, or ``name=none`` to remove one.

    Raises:
        InvalidInputError: A word is not a limit; the message names the word.
    """
    given: dict[str, Any] = {}
    for word in words:
        name, _, value = word.partition("=")
        given[name] = None if value == "none" else value
        try:
            if name in TENANT_ONLY:
                raise ValueError(name)  # noqa: TRY301 - told below
            given[name] = getattr(Limits.model_validate({name: given[name]}), name)
        except (ValueError, AttributeError):
            names = ", ".join(name for name in Limits.model_fields if name not in TENANT_ONLY)
            message = f"{word!r} is no limit: write NAME=NUMBER or NAME=none, NAME being one of {names}"
            raise InvalidInputError.of("limits", message) from None
    return given


def _refuse_unfit_user(scopes: Collection[Scope], user_id: str | None) -> None:
    if user_id is None:
        return
    if not user_id.strip() or len(user_id) > MAX_USER_ID_LENGTH or not user_id.isprintable():
        raise InvalidInputError.of(
            "user_id", f"an end user is named by at most {MAX_USER_ID_LENGTH} printable characters"
        )
    if "admin" in scopes:
        raise InvalidInputError.of("scopes", "a key of one end user cannot have the scope admin: choose read and write")


def _refuse_past(expires_at: datetime | None, now: datetime) -> None:
    if expires_at is not None and expires_at <= now:
        raise InvalidInputError.of("expires_at", "a key must expire later than now: to end one, revoke it")
