"""Holding a compaction: a heartbeat beside the work, and an error in it when the lease is lost."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from uuid import UUID

import structlog

from app.core.model.errors import DependencyUnavailableError
from app.core.model.records import Compaction
from app.storage.unit_of_work import UnitOfWorkFactory
from app.usecases.ports import Clock
from app.usecases.shared.heartbeats import with_heartbeat

log = structlog.get_logger(__name__)


class LeaseLostError(Exception):
    """Another process has the row now, or it has ended: nothing that this process made of it may be stored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """The right to work on a compaction."""

    tenant_id: UUID
    conversation_id: UUID
    compaction_id: UUID
    token: UUID

    @classmethod
    def of(cls, row: Compaction) -> Lease:
        """The lease that a claimed row carries."""
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


@asynccontextmanager
async def held(lease: Lease, *, uow: UnitOfWorkFactory, clock: Clock, every: float) -> AsyncIterator[None]:
    """Keep the lease alive while the body runs; raises ``LeaseLostError`` into the body when it is lost.

    ``every``: seconds between two heartbeats.
    """

    async def beat(lose: Callable[[], None]) -> None:
        while True:
            await clock.sleep(every)
            try:
                async with uow(lease.tenant_id) as work:
                    alive = await work.compactions.heartbeat(lease.compaction_id, lease.token)
                    await work.commit()
            except DependencyUnavailableError:
                log.warning("compaction.heartbeat_missed", compaction_id=str(lease.compaction_id))
                continue
            if not alive:
                lose()
                return

    async with with_heartbeat(beat, LeaseLostError):
        yield
