"""Tenants and API keys: stored hashed, compared in constant time, with scopes."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from app.domain.errors import ForbiddenError
from app.domain.records import Scope
from app.services.shell import Shell

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
