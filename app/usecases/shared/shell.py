"""What every service of the imperative shell works with."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final
from uuid import UUID

from app.core.context.media import MEDIA_BYTES
from app.core.model.timings import DEFAULT_TIMINGS, Timings
from app.storage.unit_of_work import UnitOfWorkFactory
from app.usecases.ports import Clock, EventBus, InThreads, Models, NewId, Processes, TurnStreams
from app.usecases.shared.outbox import Outbox
from app.usecases.shared.resolve import Resolver
from app.usecases.shared.work_records import WorkBook

SECRET_BYTES: Final = 32
STREAMS: Final = 20
"""Turns, the newest of a conversation, whose streams may be there still: of others they went long ago."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shell:
    """The ports, and the two helpers built on them alone."""

    uow: UnitOfWorkFactory
    models: Models
    bus: EventBus
    clock: Clock
    new_id: NewId
    owner: str
    """The name under which this process holds leases."""
    resolver: Resolver
    outbox: Outbox
    work: WorkBook
    """What this process works on."""
    streams: TurnStreams
    """What running turns tell, for followers in other processes."""
    processes: Processes = field(default_factory=InThreads)
    """Where texts are read that take seconds."""
    timings: Timings = DEFAULT_TIMINGS
    versions_kept: int = 0
    """Versions of its state that a conversation keeps, the newest; 0 = all."""
    verifies: bool = True
    """Whether the operator lets models verify what compactions wrote."""
    verify_wait: timedelta = timedelta(minutes=10)
    """How long at most a state waits for more to be verified with it; 0 = not at all."""
    caches: bool = True
    """Whether the operator lets providers keep caches that they are told to make."""
    media_bytes: int = MEDIA_BYTES
    """Characters of media that a request to a model, or a context, has at most."""

    async def sealing_secret(self, tenant_id: UUID) -> bytes:
        """What the tenant's own tokens are sealed with; made when it is first needed."""
        async with self.uow(tenant_id) as uow:
            secret = await uow.keys.sealing_secret(tenant_id, secrets.token_bytes(SECRET_BYTES))
            await uow.commit()
        return secret


class Service:
    """What does its work with the parts of the process alone."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell
