"""Sessions of browsers: a key is shown once, and a sealed token that names it stands for it for some hours."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final
from uuid import UUID

from app.core.model.errors import NotFoundError, UnauthenticatedError
from app.core.model.records import Scope
from app.usecases.admin.keys import KeyService, principal_of
from app.usecases.ports import Sealer
from app.usecases.shared.caller import Principal
from app.usecases.shared.shell import Shell

LIFE: Final = timedelta(hours=12)
SCOPES: Final[frozenset[Scope]] = frozenset({"read", "write"})
"""What a session may at most: operations want the key itself."""
LONGEST: Final = 1_000
"""Characters of a token; ours are shorter."""
ENDED: Final = "this session has ended: log in again"


@dataclass(frozen=True, slots=True)
class Session:
    """What a browser keeps."""

    token: str
    life: timedelta


class SessionService:
    """Makes tokens and reads them; nothing is stored. A revoked key's sessions end with it.

    The ``sealer`` is of sessions alone: no other token of ours opens as one.
    """

    def __init__(self, shell: Shell, keys: KeyService, sealer: Sealer) -> None:
        self._shell = shell
        self._keys = keys
        self._sealer = sealer

    async def begin(self, secret: str, address: str | None = None) -> Session:
        """A session of a key, as ``KeyService.known`` finds it and with its errors; ``address`` is who asks."""
        key = await self._keys.record_of(secret, address)
        until = self._shell.clock.now() + LIFE
        told = json.dumps({"key": str(key.id), "until": until.timestamp()})
        sealed = self._sealer.seal(told, key.tenant_id, await self._shell.sealing_secret(key.tenant_id))
        return Session(f"{key.tenant_id.hex}.{sealed}", LIFE)

    async def principal(self, token: str) -> Principal:
        """Who a token stands for. Raises ``UnauthenticatedError``."""
        tenant_id, sealed = _tenant_and_sealed(token)
        try:
            told = self._sealer.open(sealed, tenant_id, await self._shell.sealing_secret(tenant_id))
        except NotFoundError:
            told = None
        named = json.loads(told) if told is not None else None
        if named is None or named["until"] <= self._shell.clock.now().timestamp():
            raise UnauthenticatedError(ENDED)
        key = await self._keys.usable(tenant_id, UUID(named["key"]))
        if key is None:
            raise UnauthenticatedError(ENDED)
        return replace(principal_of(key), scopes=key.scopes & SCOPES)


def _tenant_and_sealed(token: str) -> tuple[UUID, str]:
    tenant, _, sealed = token[:LONGEST].partition(".")
    try:
        return UUID(hex=tenant), sealed
    except ValueError as error:
        raise UnauthenticatedError(ENDED) from error
