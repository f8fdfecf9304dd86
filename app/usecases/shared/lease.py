"""Leases: a heartbeat renews the lease of running work, and the work gets an error if another process takes it over."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from uuid import UUID

import structlog

from app.core.model.errors import DependencyUnavailableError
from app.core.model.records import Compaction
from app.storage.unit_of_work import UnitOfWork, UnitOfWorkFactory
from app.usecases.ports import Clock
from app.usecases.shared.heartbeats import with_heartbeat

log = structlog.get_logger(__name__)


class LeaseLostError(Exception):
    """Another process has the row now, or the row has ended. This process must not store results for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """The right of one process to work on a compaction; a process that takes it over changes the row's token."""

    tenant_id: UUID
    conversation_id: UUID
    compaction_id: UUID
    token: UUID

    @classmethod
    def of(cls, row: Compaction) -> Lease:
        """The lease of a claimed row. Raises ``LeaseLostError`` if the row has none."""
        if row.lease_token is None:
            raise LeaseLostError
        return cls(
            tenant_id=row.tenant_id,
            conversation_id=row.conversation_id,
            compaction_id=row.id,
            token=row.lease_token,
        )


def check_held(row: Compaction, lease: Lease) -> Compaction:
    """The row, if this lease still holds it. Raises ``LeaseLostError`` otherwise."""
    if row.lease_token != lease.token or not row.in_flight:
        raise LeaseLostError
    return row


def keep_lease(
    lease: Lease, *, uow: UnitOfWorkFactory, clock: Clock, every: float
) -> AbstractAsyncContextManager[None]:
    """Keep a compaction's lease alive while the body runs, as ``keep_work`` does."""

    async def beat(work: UnitOfWork) -> bool:
        return await work.compactions.heartbeat(lease.compaction_id, lease.token)

    # Of no tenant: the tenant's requests must not hold a heartbeat up, else another process would take the work over.
    return keep_work(beat, uow=partial(uow, None), clock=clock, every=every, of=("compaction", lease.compaction_id))


@asynccontextmanager
async def keep_work(
    renew: Callable[[UnitOfWork], Awaitable[bool]],
    *,
    uow: Callable[[], AbstractAsyncContextManager[UnitOfWork]],
    clock: Clock,
    every: float,
    of: tuple[str, UUID],
) -> AsyncIterator[None]:
    """Renew the lease of some work while the body runs; raises ``LeaseLostError`` in the body when it is lost.

    Args:
        renew: Renews the lease. Returns false if this process no longer has it.
        uow: Opens the unit of work of a heartbeat.
        clock: Time.
        every: Seconds between two heartbeats.
        of: Kind and id of the work, for the log.
    """
    kind, id_ = of
    missed = f"{kind}.heartbeat_missed"

    async def beat(lose: Callable[[], None]) -> None:
        while True:
            await clock.sleep(every)
            try:
                async with uow() as work:
                    is_ours = await renew(work)
                    await work.commit()
            except DependencyUnavailableError:
                log.warning(missed, **{f"{kind}_id": str(id_)})
                continue
            if not is_ours:
                lose()
                return

    async with with_heartbeat(beat, LeaseLostError):
        yield
