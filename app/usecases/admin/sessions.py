"""Sessions of browsers: the browser shows a key once, and gets a sealed token that names the key for some hours."""

from __future__ import annotations

import json
from collections import OrderedDict
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final
from uuid import UUID

from app.core.model.errors import NotFoundError, UnauthenticatedError
from app.core.model.records import Scope
from app.usecases.admin.keys import KeyService, hash_of, principal_of
from app.usecases.ports import Sealer
from app.usecases.shared.caller import Principal
from app.usecases.shared.shell import Shell

LIFE: Final = timedelta(hours=12)
SCOPES: Final[frozenset[Scope]] = frozenset({"read", "write"})
"""The most scopes that a session may have; what the operator does needs the key itself."""
MAX_TOKEN_LENGTH: Final = 1_000
"""The most characters of a token that are read; real tokens are shorter."""
MAX_REFUSED: Final = 10_000
"""How many refused tokens a process remembers; the one that was refused first is forgotten first."""
ENDED: Final = "this session has ended: log in again"


@dataclass(frozen=True, slots=True)
class Session:
    """What a browser keeps: the token, and how long it is valid."""

    token: str
    life: timedelta


class SessionService:
    """Makes tokens and reads them; nothing is stored. A revoked key's sessions end with it.

    The ``sealer`` is used for sessions only, so no other token of this service is accepted as a session.
    """

    def __init__(self, shell: Shell, keys: KeyService, sealer: Sealer) -> None:
        self._shell = shell
        self._keys = keys
        self._sealer = sealer
        self._refused: OrderedDict[bytes, None] = OrderedDict()
        """The hashes of tokens that were not made here, or were sealed with another key of the operator."""

    async def begin(self, secret: str, address: str | None = None) -> Session:
        """Begin a session of a key; ``address`` is the address of the browser.

        Raises what ``KeyService.record_of`` raises.
        """
        key = await self._keys.record_of(secret, address)
        until = self._shell.clock.now() + LIFE
        payload = json.dumps({"key": str(key.id), "until": until.timestamp()})
        sealed = self._sealer.seal(payload, key.tenant_id, await self._shell.sealing_secret(key.tenant_id))
        token = f"{key.tenant_id.hex}.{sealed}"
        self._keys.failures.succeeded(hash_of(token))
        return Session(token, LIFE)

    async def principal(self, token: str, address: str | None = None) -> Principal:
        """The principal that a token names; ``address`` is the address of the browser.

        A token that was not made here is counted once, however often a browser sends it: who sends it again tries
        nothing new, and a page that is left open must not keep others of its address from logging in.

        Raises:
            UnauthenticatedError: The token is invalid or has ended.
            RateLimitedError: Too many tokens or keys from this address were not made here.
        """
        (tenant_id, sealed), digest = _tenant_and_sealed(token), hash_of(token)
        if digest in self._refused:
            raise UnauthenticatedError(ENDED)
        self._keys.failures.check(address, digest)
        try:
            payload = self._sealer.open(sealed, tenant_id, await self._shell.sealing_secret(tenant_id))
        except NotFoundError:
            payload = None
        if payload is None:
            self._keys.failures.failed(address)
            self._refused[digest] = None
            if len(self._refused) > MAX_REFUSED:
                self._refused.popitem(last=False)
            raise UnauthenticatedError(ENDED)
        self._keys.failures.succeeded(digest)
        named = json.loads(payload)
        if named["until"] <= self._shell.clock.now().timestamp():
            raise UnauthenticatedError(ENDED)
        key = await self._keys.usable(tenant_id, UUID(named["key"]))
        if key is None:
            raise UnauthenticatedError(ENDED)
        return replace(principal_of(key), scopes=key.scopes & SCOPES)


def _tenant_and_sealed(token: str) -> tuple[UUID, str]:
    tenant, _, sealed = token[:MAX_TOKEN_LENGTH].partition(".")
    try:
        return UUID(hex=tenant), sealed
    except ValueError as error:
        raise UnauthenticatedError(ENDED) from error
