"""What every service of the imperative shell works with."""

from __future__ import annotations

from dataclasses import dataclass

from app.core.model.timings import DEFAULT_TIMINGS, Timings
from app.storage.unit_of_work import UnitOfWorkFactory
from app.usecases.ports import Clock, EventBus, Models, NewId
from app.usecases.shared.outbox import Outbox
from app.usecases.shared.resolve import Resolver
from app.usecases.shared.working import WorkBook


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
    timings: Timings = DEFAULT_TIMINGS
    verifies: bool = True
    """Whether the operator lets models verify what compactions wrote."""
