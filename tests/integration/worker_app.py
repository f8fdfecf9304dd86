"""What ``test_worker`` starts: the real worker, with compactions that only hold their lease for a while.

The stand-in for ``app.bootstrap`` is in place before the worker asks for it. Each job writes lines to the file
``JOBS``: what happened, its id, the child, the request.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import random
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from uuid import UUID, uuid4

from sqlalchemy.ext.asyncio import AsyncEngine
from structlog.contextvars import get_contextvars

from app.core.model.records import Compaction, RanIn
from app.infrastructure.clock import SystemClock
from app.infrastructure.event_bus import RedisEventBus
from app.infrastructure.job_queue import CeleryJobQueue
from app.infrastructure.metrics import ProcessMeter
from app.settings import Settings
from app.storage.database import make_engine
from app.storage.unit_of_work import UnitOfWork, UnitOfWorkFactory, unit_of_work_factory
from app.usecases.compaction.sweeper import Sweeper
from app.usecases.shared.background import Background

HEARTBEAT_SECONDS = 0.2


class HoldingCompaction:
    def __init__(self, begin: UnitOfWorkFactory, owner: str) -> None:
        self._begin = begin
        self._owner = owner

    async def in_turn(self, hinted: UUID) -> UUID:
        async with self._begin(None) as uow:
            return await uow.compactions.next_in_turn(hinted) or hinted

    async def execute(self, compaction_id: UUID, *, ran_in: RanIn) -> Compaction | None:
        token = uuid4()
        async with self._begin(None) as uow:
            row = await uow.compactions.take(compaction_id, lease_token=token, ran_in=ran_in, owner=self._owner)
            await uow.commit()
        if row is None:
            return None
        note("started", compaction_id)
        if row.claims == 1 and os.environ.get("HANG"):
            ctypes.PyDLL(None).sleep(60)  # keeps the interpreter's lock, unlike CDLL
        for _ in range(round(float(os.environ["JOB_SECONDS"]) / HEARTBEAT_SECONDS)):
            await asyncio.sleep(HEARTBEAT_SECONDS)
            async with self._begin(None) as uow:
                alive = await uow.compactions.heartbeat(compaction_id, token)
                await uow.commit()
            if not alive:
                note("lost", compaction_id)
                return None
        async with self._begin(None) as uow:
            ended = await uow.compactions.update(compaction_id, token, status="applied", finished_at=datetime.now(UTC))
            await uow.commit()
        note("ended", compaction_id)
        return ended

    async def claim_due(self, tenant_id: UUID, conversation_id: UUID, /) -> UUID | None:
        raise NotImplementedError

    async def end_quiet_of_limit(self, tenant_id: UUID, conversation_id: UUID, /) -> None:
        raise NotImplementedError

    async def give_up(self, uow: UnitOfWork, row: Compaction, /) -> None:
        raise NotImplementedError


class NotingDetails:
    async def work(self, conversation_id: UUID | None = None) -> str:
        assert conversation_id is not None
        note("detail", conversation_id)
        return "not_wanted"


class NotingVerifications:
    async def work(self, conversation_id: UUID | None = None) -> str:
        assert conversation_id is not None
        note("verification", conversation_id)
        return "not_wanted"

    async def verify_after(self, compaction: Compaction | None) -> None:
        if compaction is not None:
            note("verified", compaction.id)


class NoModels:
    async def prepare(self) -> None:
        """Nothing to do: there are no models."""


@dataclass(frozen=True, kw_only=True)
class Parts:
    models: NoModels


@dataclass(frozen=True, kw_only=True)
class Container:
    owner: str
    parts: Parts
    engine: AsyncEngine
    bus: RedisEventBus
    compaction: HoldingCompaction
    detailing: NotingDetails
    verification: NotingVerifications
    sweeper: Sweeper
    background: Background

    async def drain(self) -> None:
        """Nothing to do: its jobs leave nothing behind."""

    async def close(self) -> None:
        await self.bus.close()
        await self.engine.dispose()


async def build_container(settings: Settings, owner: str) -> Container:
    assert settings.database_url
    assert settings.redis_url
    engine = make_engine(settings.database_url)
    begin = unit_of_work_factory(engine)
    compaction = HoldingCompaction(begin, owner)
    bus = RedisEventBus(settings.redis_url)
    queue = CeleryJobQueue(settings.redis_url)
    sweeper = Sweeper(begin, queue, compaction, bus, SystemClock(), owner, random.Random())
    return Container(
        owner=owner,
        parts=Parts(models=NoModels()),
        engine=engine,
        bus=bus,
        compaction=compaction,
        detailing=NotingDetails(),
        verification=NotingVerifications(),
        sweeper=sweeper,
        background=Background(SystemClock(), ProcessMeter()),
    )


def note(word: str, compaction_id: UUID) -> None:
    with Path(os.environ["JOBS"]).open("a") as jobs:
        jobs.write(f"{word} {compaction_id} {os.getpid()} {get_contextvars().get('request_id')}\n")


bootstrap = ModuleType("app.bootstrap")
bootstrap.build_container = build_container  # type: ignore[attr-defined]
bootstrap.Container = Container  # type: ignore[attr-defined]
sys.modules["app.bootstrap"] = bootstrap

from worker.celery_app import app  # noqa: E402 - after the stand-in

__all__ = ["app"]
