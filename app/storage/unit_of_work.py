"""The unit of work on Postgres: one session, all repositories, and the events to publish."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, Protocol, Self, TypeVar
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncEngine

from app.core.model.records import Event
from app.core.model.timings import DEFAULT_TIMINGS, Timings
from app.storage.connection_shares import ConnectionShares
from app.storage.repositories.anchors import AnchorRepository
from app.storage.repositories.audit import AuditRepository
from app.storage.repositories.caches import CacheRepository
from app.storage.repositories.compactions import CompactionRepository
from app.storage.repositories.contents import ContentRepository
from app.storage.repositories.conversations import ConversationRepository
from app.storage.repositories.copies import ProviderCopyRepository
from app.storage.repositories.detail_calls import DetailCallRepository
from app.storage.repositories.embeddings import EmbeddingRepository
from app.storage.repositories.erasures import ErasureRepository
from app.storage.repositories.events import EventRepository
from app.storage.repositories.expansions import ExpansionRepository
from app.storage.repositories.files import FileRepository, ProviderFileRepository
from app.storage.repositories.idempotency import IdempotencyRepository
from app.storage.repositories.keys import KeyRepository
from app.storage.repositories.messages import MessageRepository
from app.storage.repositories.removal import RemovalRepository
from app.storage.repositories.segments import SegmentRepository
from app.storage.repositories.spending import SpendingRepository
from app.storage.repositories.states import StateRepository
from app.storage.repositories.statistics import StatisticsRepository
from app.storage.repositories.term_keys import TermKeyRepository
from app.storage.repositories.turns import TurnRepository
from app.storage.repositories.verifications import VerificationRepository
from app.storage.repositories.works import WorkRepository
from app.storage.scoped_session import TenantSession

R = TypeVar("R")


class Deliver(Protocol):
    """Sends what was committed."""

    async def __call__(self, events: Sequence[Event], jobs: Sequence[UUID], *, waits: bool) -> None:
        """Publish events, before this returns if ``waits``; hand queued compactions to workers."""
        ...


class _Lazy(Generic[R]):
    """A repository that is made when it is first used, since a transaction needs only few of them."""

    def __init__(self, make: Callable[[TenantSession], R]) -> None:
        self._make = make

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, unit: UnitOfWork, owner: type) -> R:
        made = self._make(unit.session)
        unit.__dict__[self._name] = made  # from now on it is found there first
        return made


class UnitOfWork:
    """One short transaction of one tenant, rolled back on exit unless committed. Only use cases commit.

    The connection is taken at the first statement. After ``commit`` the new events are in ``committed_events``. When
    the unit ends, they and ``jobs`` are given to ``deliver``, if it is set.
    """

    deliver: Deliver | None = None
    waits_for_delivery = True
    """Whether the end of the unit waits until its events are published."""

    conversations = _Lazy(ConversationRepository)
    messages = _Lazy(MessageRepository)
    contents = _Lazy(ContentRepository)
    term_keys = _Lazy(TermKeyRepository)
    states = _Lazy(StateRepository)
    anchors = _Lazy(AnchorRepository)
    segments = _Lazy(SegmentRepository)
    expansions = _Lazy(ExpansionRepository)
    detail_calls = _Lazy(DetailCallRepository)
    embeddings = _Lazy(EmbeddingRepository)
    verifications = _Lazy(VerificationRepository)
    statistics = _Lazy(StatisticsRepository)
    idempotency = _Lazy(IdempotencyRepository)
    keys = _Lazy(KeyRepository)
    works = _Lazy(WorkRepository)
    audit = _Lazy(AuditRepository)
    spending = _Lazy(SpendingRepository)
    erasures = _Lazy(ErasureRepository)
    copies = _Lazy(ProviderCopyRepository)
    files = _Lazy(FileRepository)
    file_copies = _Lazy(ProviderFileRepository)
    caches = _Lazy(CacheRepository)
    removal = _Lazy(RemovalRepository)

    def __init__(
        self,
        engine: AsyncEngine,
        tenant_id: UUID | None,
        timings: Timings = DEFAULT_TIMINGS,
        shares: ConnectionShares | None = None,
    ) -> None:
        self.session = TenantSession(engine, tenant_id, shares)
        self._added: list[Event] = []
        self._committed: tuple[Event, ...] = ()
        self._committed_jobs: list[UUID] = []
        self.jobs: list[UUID] = []
        """The compactions that this transaction queues for workers."""
        self.compactions = CompactionRepository(self.session, timings.lease_seconds)
        self.turns = TurnRepository(self.session, timings.lease_seconds)
        self.events = EventRepository(self.session, self._added)

    @property
    def committed_events(self) -> Sequence[Event]:
        """The committed events, in order."""
        return self._committed

    async def use_snapshot(self) -> None:
        """Let every statement of this transaction see the same moment. Call it before any other statement."""
        await self.session.use_snapshot()

    async def commit(self) -> None:
        """Commit the transaction."""
        await self.session.commit()
        self._committed = (*self._committed, *self._added)
        self._committed_jobs += self.jobs
        self._added.clear()
        self.jobs.clear()

    def forget_values(self) -> None:
        """Let the process forget the values of statements that it has sent. Call it after an erasure's commit."""
        self.session.forget_values()

    async def roll_back(self) -> None:
        """Undo what was not committed; the next statement begins another transaction."""
        self._added.clear()
        self.jobs.clear()
        await self.session.close()

    async def __aenter__(self) -> Self:
        """Begin."""
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Roll back what was not committed, give the connection back, and deliver what was committed."""
        await self.session.close()
        if self.deliver is not None and (self._committed or self._committed_jobs):
            await self.deliver(self._committed, self._committed_jobs, waits=self.waits_for_delivery)


UnitOfWorkFactory = Callable[[UUID | None], UnitOfWork]
"""The argument is the tenant; ``None`` = all tenants, for the sweeper, key look-ups and the worker's first read."""


def unit_of_work_factory(
    engine: AsyncEngine, timings: Timings = DEFAULT_TIMINGS, shares: ConnectionShares | None = None
) -> UnitOfWorkFactory:
    """Makes units of work over one engine; without ``shares`` a tenant may take all of its connections."""

    def begin(tenant_id: UUID | None) -> UnitOfWork:
        return UnitOfWork(engine, tenant_id, timings, shares)

    return begin
