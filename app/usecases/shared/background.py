"""Tasks beside a process's requests and jobs.

``begin_task`` starts one that runs once. ``Background`` has work that is started again whenever it ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final

import structlog

from app.core.model.instruments import BACKGROUND_DEATHS
from app.usecases.ports import Clock, Meter
from app.usecases.shared.pauses import pause_after

FIRST_PAUSE_SECONDS: Final = 1.0
MAX_PAUSE_SECONDS: Final = 60.0
STEADY_SECONDS: Final = 60.0
"""After running this long, work is taken for well again, so its next pause is the first one."""

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


def begin_task(work: Coroutine[Any, Any, None], tasks: set[asyncio.Task[None]]) -> asyncio.Task[None]:
    """Start work that runs once, by itself. While it runs it is in ``tasks``; otherwise asyncio could drop it."""
    task = asyncio.create_task(work)
    tasks.add(task)
    task.add_done_callback(tasks.discard)
    return task


class Background:
    """The background work of one process, such as its sweeper."""

    def __init__(self, clock: Clock, meter: Meter) -> None:
        self._clock = clock
        self._meter = meter
        self._tasks: dict[str, _Task] = {}

    async def run_forever(self, name: str, work: Callable[[], Awaitable[None]]) -> None:
        """Run this work until cancelled. Whenever it ends or fails, start it again after a pause.

        ``name`` is a word for logs and metrics; ``work`` is cancelled at the end of the process.
        """
        task = self._tasks[name] = _Task(name, work, self._clock, self._meter)
        await task.run()

    @property
    def is_well(self) -> bool:
        """Whether all of this work runs, and has run for a while since it last ended."""
        return all(task.is_well for task in self._tasks.values())


class _Task:
    """One kind of work, started again after each end, with longer and longer pauses."""

    def __init__(self, name: str, work: Callable[[], Awaitable[None]], clock: Clock, meter: Meter) -> None:
        self._name = name
        self._work = work
        self._clock = clock
        self._meter = meter
        self._failures = 0
        self._began: float | None = None

    @property
    def is_well(self) -> bool:
        return not self._failures or self._seconds_running() >= STEADY_SECONDS

    async def run(self) -> None:
        while True:
            self._began = self._clock.monotonic()
            error = await self._error_at_end()
            self._failures = 1 if self.is_well else self._failures + 1
            self._began = None
            pause = pause_after(self._failures, FIRST_PAUSE_SECONDS, MAX_PAUSE_SECONDS)
            self._meter.count(BACKGROUND_DEATHS, task=self._name)
            _log.error("background.died", task=self._name, error=error, again_in_seconds=pause)
            await self._clock.sleep(pause)

    async def _error_at_end(self) -> str:
        """The kind of the error that ended the work.

        A cancellation that did not come from outside ends only the work.
        """
        try:
            await self._work()
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            return asyncio.CancelledError.__name__
        except Exception as error:  # noqa: BLE001 - whatever it was, the work must go on
            return type(error).__name__
        return "returned"

    def _seconds_running(self) -> float:
        return self._clock.monotonic() - self._began if self._began is not None else 0.0
