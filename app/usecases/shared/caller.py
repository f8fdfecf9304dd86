"""Who sent the request that is being handled, for all code that runs in the request and in the tasks it starts.

The HTTP layer begins a request's scope once the key is known, and ends it with the request. Work without a request (of
the worker or the sweeper) has no scope: only the tenant's own limits hold for it.
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
from app.usecases.shared.optional_writes import optional_write
from app.usecases.shared.shell import Shell


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """A tenant, and what the key may do there."""

    tenant_id: UUID
    scopes: frozenset[Scope]
    key_id: UUID | None = None
    """The id of the key; ``None`` if the service needs no key. Then nothing is limited."""
    user_id: str | None = None
    """The only end user whose conversations the key may see and make; ``None`` = all of the tenant."""
    limits: tuple[tuple[str, Any], ...] = ()
    """The key's own limits, which replace those of the settings."""

    def require(self, scope: Scope) -> None:
        """Require a scope. Raises ``ForbiddenError`` if the key lacks it."""
        if scope not in self.scopes:
            raise ForbiddenError(f"this key lacks the scope {scope!r}: use one that has it")


@dataclass(slots=True)
class RequestScope:
    """One request while it is handled: its principal, and what has to be released at its end."""

    principal: Principal
    at_end: list[Callable[[], None]] = field(default_factory=list)
    """Functions that are called at the end of the request, the last one first."""
    held: set[str] = field(default_factory=set)
    """The kinds of limited places (a turn, a stream) that the request occupies until its end."""
    _tokens: tuple[Token[RequestScope | None], Token[str | None]] | None = None

    def begin(self) -> None:
        """Make this the current request of the running task."""
        self._tokens = (_current_request.set(self), end_user.set(self.principal.user_id))

    def end(self) -> None:
        """Release everything. It must be called in the task that called ``begin``."""
        while self.at_end:
            self.at_end.pop()()
        if self._tokens is not None:
            mine, users = self._tokens
            _current_request.reset(mine)
            end_user.reset(users)
            self._tokens = None


_current_request: Final[ContextVar[RequestScope | None]] = ContextVar("current_request", default=None)


def current_request() -> RequestScope | None:
    """The request that is being handled; ``None`` in work without a request."""
    return _current_request.get()


def current_principal() -> Principal | None:
    """The principal of the request that is being handled; ``None`` in work without a request."""
    present = _current_request.get()
    return None if present is None else present.principal


def current_user() -> str | None:
    """The only end user whose conversations the request may see and make; ``None`` = all of the tenant."""
    principal = current_principal()
    return None if principal is None else principal.user_id


async def audit(
    uow: UnitOfWork,
    shell: Shell,
    tenant_id: UUID,
    action: str,
    object_id: UUID | str | None = None,
    **data: Any,
) -> None:
    """Record an action and who did it, in the transaction of the action. ``data`` may hold ids and numbers only."""
    await uow.audit.add(_audit_entry(shell, tenant_id, action, object_id, _current_actor(), data))


async def audit_read(shell: Shell, tenant_id: UUID, action: str, object_id: UUID) -> None:
    """Record that something was read, and by whom; while the database takes no writes, log the entry instead."""
    entry = _audit_entry(shell, tenant_id, action, object_id, _current_actor(), {})
    named = {name: str(getattr(entry, name)) for name in ("tenant_id", "key_id", "actor", "action", "object_id")}
    with optional_write("audit.not_stored", **named, occurred_at=entry.occurred_at.isoformat()):
        async with shell.uow(tenant_id) as uow:
            await uow.audit.add(entry)
            await uow.commit()


async def audit_service(
    uow: UnitOfWork, shell: Shell, tenant_id: UUID, action: str, object_id: UUID | str, **data: Any
) -> None:
    """Record what the service did on its own initiative, in the same transaction.

    ``data`` may hold ids and numbers only.
    """
    await uow.audit.add(_audit_entry(shell, tenant_id, action, object_id, "service", data))


def _current_actor() -> Actor:
    principal = current_principal()
    return "cli" if principal is None else "key" if principal.key_id else "open"


def _audit_entry(
    shell: Shell,
    tenant_id: UUID,
    action: str,
    object_id: UUID | str | None,
    actor: Actor,
    data: Mapping[str, Any],
) -> AuditEntry:
    principal = current_principal()
    return AuditEntry(
        id=shell.new_id(),
        tenant_id=tenant_id,
        key_id=principal.key_id if principal else None,
        actor=actor,
        action=action,
        object_id=None if object_id is None else str(object_id),
        data=dict(data),
        occurred_at=shell.clock.now(),
    )
