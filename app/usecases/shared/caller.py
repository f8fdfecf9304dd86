"""Who sent the request that is being handled: known to everything that a request does, and to the tasks that it starts.

The edge begins it once the key is known, and ends it with the request. Work that nobody asked for (the worker, the
sweeper) has none, and is bound by the tenant's own limits alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import ContextVar, Token
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

from app.core.model.errors import ForbiddenError
from app.core.model.records import Actor, AuditEntry, Scope
from app.storage.tenancy import end_user
from app.storage.unit_of_work import UnitOfWork
from app.usecases.shared.shell import Shell


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """A tenant, and what the key may do there."""

    tenant_id: UUID
    scopes: frozenset[Scope]
    key_id: UUID | None = None
    """``None``: no key was asked for. Nothing is limited then."""
    user_id: str | None = None
    """The end user whose conversations alone it sees and makes."""
    limits: tuple[tuple[str, Any], ...] = ()
    """The key's own, in place of those of the settings."""

    def require(self, scope: Scope) -> None:
        """Raises ``ForbiddenError`` when the key lacks the scope."""
        if scope not in self.scopes:
            raise ForbiddenError(f"this key lacks the scope {scope!r}: use one that has it")


@dataclass(slots=True)
class Asking:
    """A request under way: whose it is, and what is given back when it ends."""

    principal: Principal
    at_end: list[Callable[[], None]] = field(default_factory=list)
    """Called when it ends, the last first."""
    held: set[str] = field(default_factory=set)
    """Kinds of places that it has until then."""
    _tokens: tuple[Token[Asking | None], Token[str | None]] | None = None

    def begin(self) -> None:
        """From now on, everything that this task does is asked for by the principal."""
        self._tokens = (_asking.set(self), end_user.set(self.principal.user_id))

    def end(self) -> None:
        """In the task that began it: let go of everything."""
        while self.at_end:
            self.at_end.pop()()
        if self._tokens is not None:
            mine, users = self._tokens
            _asking.reset(mine)
            end_user.reset(users)
            self._tokens = None


_asking: Final[ContextVar[Asking | None]] = ContextVar("asking", default=None)


def asking() -> Asking | None:
    """The request that is being handled; ``None`` in work that nobody asked for."""
    return _asking.get()


def asker() -> Principal | None:
    """Whose request is being handled; ``None`` in work that nobody asked for."""
    present = _asking.get()
    return None if present is None else present.principal


def own_user() -> str | None:
    """The end user whose conversations alone the key sees and makes; ``None`` = all of the tenant."""
    principal = asker()
    return None if principal is None else principal.user_id


async def audit(
    uow: UnitOfWork,
    shell: Shell,
    tenant_id: UUID,
    action: str,
    object_id: UUID | str | None = None,
    **data: Any,
) -> None:
    """Record who did it, in the transaction that does it. ``data``: ids and numbers only."""
    principal = asker()
    actor: Actor = "cli" if principal is None else "key" if principal.key_id else "open"
    await _add_audit_entry(uow, shell, tenant_id, action, object_id, actor, data)


async def audit_own(
    uow: UnitOfWork, shell: Shell, tenant_id: UUID, action: str, object_id: UUID | str, **data: Any
) -> None:
    """Record what the service did by itself, in the transaction that does it. ``data``: ids and numbers only."""
    await _add_audit_entry(uow, shell, tenant_id, action, object_id, "service", data)


async def _add_audit_entry(
    uow: UnitOfWork,
    shell: Shell,
    tenant_id: UUID,
    action: str,
    object_id: UUID | str | None,
    actor: Actor,
    data: Mapping[str, Any],
) -> None:
    principal = asker()
    entry = AuditEntry(
        id=shell.new_id(),
        tenant_id=tenant_id,
        key_id=principal.key_id if principal else None,
        actor=actor,
        action=action,
        object_id=None if object_id is None else str(object_id),
        data=dict(data),
        occurred_at=shell.clock.now(),
    )
    await uow.audit.add(entry)
