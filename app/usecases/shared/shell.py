"""What every service works with."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final
from uuid import UUID

from app.core.model.files import MEDIA_BYTES
from app.core.model.timings import DEFAULT_TIMINGS, Timings
from app.storage.unit_of_work import UnitOfWorkFactory
from app.usecases.ports import Clock, EventBus, InThreads, Models, NewId, Processes, TurnStreams
from app.usecases.shared.outbox import Outbox
from app.usecases.shared.resolve import Resolver
from app.usecases.shared.work_records import WorkRecords

SECRET_BYTES: Final = 32
STREAMS: Final = 20
"""The newest turns of a conversation, whose streams may still exist; the streams of older ones have expired."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shell:
    """The ports, and two helpers built on them."""

    uow: UnitOfWorkFactory
    models: Models
    bus: EventBus
    clock: Clock
    new_id: NewId
    owner: str
    """The name under which this process holds leases."""
    resolver: Resolver
    outbox: Outbox
    work_records: WorkRecords
    """The record of what this process works on."""
    streams: TurnStreams
    """The events of running turns, for followers in other processes."""
    processes: Processes = field(default_factory=InThreads)
    """Where texts are read if that may take seconds."""
    timings: Timings = DEFAULT_TIMINGS
    versions_kept: int = 0
    """How many state versions, the newest, a conversation keeps; 0 = all."""
    verifies: bool = True
    """Whether the operator lets models verify what compactions wrote."""
    verify_wait: timedelta = timedelta(minutes=10)
    """How long a state waits at most for others to be verified together with it; 0 = not at all."""
    caches: bool = True
    """Whether the operator lets providers keep caches that a request has to create."""
    media_bytes: int = MEDIA_BYTES
    """The most characters of media in a request to a model, or in a context."""

    async def sealing_secret(self, tenant_id: UUID) -> bytes:
        """The secret that seals the tenant's tokens; it is made when it is first needed."""
        async with self.uow(tenant_id) as uow:
            secret = await uow.keys.sealing_secret(tenant_id, secrets.token_bytes(SECRET_BYTES))
            await uow.commit()
        return secret


class Service:
    """A service that needs nothing but the parts of the process."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell
