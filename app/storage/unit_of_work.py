"""The unit of work on Postgres: one session, every repository, the events to publish."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncEngine

from app.core.model.records import Event
from app.core.model.timings import DEFAULT_TIMINGS, Timings
from app.storage.repositories.anchors import SqlAnchors
from app.storage.repositories.compactions import SqlCompactions
from app.storage.repositories.conversations import SqlConversations
from app.storage.repositories.detail_calls import SqlDetailCalls
from app.storage.repositories.events import SqlEvents
from app.storage.repositories.expansions import SqlExpansions
from app.storage.repositories.idempotency import SqlIdempotency
from app.storage.repositories.keys import SqlKeys
from app.storage.repositories.messages import SqlMessages
from app.storage.repositories.segments import SqlSegments
from app.storage.repositories.states import SqlStates
from app.storage.repositories.statistics import SqlStatistics
from app.storage.repositories.turns import SqlTurns
from app.storage.repositories.verifications import SqlVerifications
from app.storage.repositories.works import SqlWorks
from app.storage.scoped_session import TenantSession
from app.usecases import ports


class SqlUnitOfWork:
    """``ports.UnitOfWork``; the connection is taken at the first statement."""

    conversations: ports.ConversationRepository
    messages: ports.MessageRepository
    compactions: ports.CompactionRepository
    states: ports.StateRepository
    anchors: ports.AnchorRepository
    segments: ports.SegmentRepository
    expansions: ports.ExpansionRepository
    detail_calls: ports.DetailCallRepository
    verifications: ports.VerificationRepository
    statistics: ports.StatisticsRepository
    turns: ports.TurnRepository
    events: ports.EventRepository
    idempotency: ports.IdempotencyRepository
    keys: ports.KeyRepository
    works: ports.WorkRepository

    def __init__(self, engine: AsyncEngine, tenant_id: UUID | None, timings: Timings = DEFAULT_TIMINGS) -> None:
        self.session = TenantSession(engine, tenant_id)
        self._added: list[Event] = []
        self._committed: tuple[Event, ...] = ()
        self.conversations = SqlConversations(self.session)
        self.messages = SqlMessages(self.session)
        self.compactions = SqlCompactions(self.session, timings.lease_seconds)
        self.states = SqlStates(self.session)
        self.anchors = SqlAnchors(self.session)
        self.segments = SqlSegments(self.session)
        self.expansions = SqlExpansions(self.session)
        self.detail_calls = SqlDetailCalls(self.session)
        self.verifications = SqlVerifications(self.session)
        self.statistics = SqlStatistics(self.session)
        self.turns = SqlTurns(self.session, timings.lease_seconds)
        self.events = SqlEvents(self.session, self._added)
        self.idempotency = SqlIdempotency(self.session)
        self.keys = SqlKeys(self.session)
        self.works = SqlWorks(self.session)

    @property
    def committed_events(self) -> Sequence[Event]:
        """Events of the last commit, in order."""
        return self._committed

    async def commit(self) -> None:
        """Make it so."""
        await self.session.commit()
        self._committed = tuple(self._added)
        self._added.clear()

    async def __aenter__(self) -> Self:
        """Begin."""
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Roll back what was not committed, give the connection back."""
        await self.session.close()


def unit_of_work_factory(engine: AsyncEngine, timings: Timings = DEFAULT_TIMINGS) -> ports.UnitOfWorkFactory:
    """Units of work over one engine."""

    def begin(tenant_id: UUID | None) -> ports.UnitOfWork:
        return SqlUnitOfWork(engine, tenant_id, timings)

    return begin
