"""What the worker's parent process does in addition to Celery: it sweeps, and at the end it releases its jobs."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import structlog
from celery.signals import worker_ready, worker_shutdown, worker_shutting_down

from app.core.model.timings import DEFAULT_TIMINGS, Timings
from app.infrastructure.watchdog import watching
from app.settings import Settings
from worker.runtime import build

if TYPE_CHECKING:
    from app.bootstrap import Container

_JOIN_SECONDS = 5.0

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class ParentLoop:
    """A thread with its own loop and container. It sweeps until ``begin_release``, then releases jobs until ``stop``.

    ``factory`` builds the container on the loop that will use it. ``timings`` give the seconds between its attempts and
    between two releases.
    """

    def __init__(self, factory: Callable[[], Awaitable[Container]] = build, timings: Timings = DEFAULT_TIMINGS) -> None:
        self._factory = factory
        self._timings = timings
        self._thread = threading.Thread(target=self._main, name="sweeper", daemon=True)
        self._ready = threading.Event()
        self._loop: asyncio.AbstractEventLoop
        self._releasing = asyncio.Event()
        self._stopping = asyncio.Event()

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()
        self._ready.wait(_JOIN_SECONDS)

    def begin_release(self) -> None:
        """Stop sweeping, and put the children's jobs back into the queue without counting a crash.

        Safe in a signal handler.
        """
        self._call_in_loop(self._releasing.set)

    def stop(self) -> None:
        """Close everything, and wait some seconds for the end."""
        self._call_in_loop(self._releasing.set)
        self._call_in_loop(self._stopping.set)
        if self._thread.is_alive():
            self._thread.join(_JOIN_SECONDS)

    def _call_in_loop(self, callback: Callable[[], None]) -> None:
        if self._ready.is_set():
            with suppress(RuntimeError):  # the loop is closed, so nothing is left to stop
                self._loop.call_soon_threadsafe(callback)

    def _main(self) -> None:
        with asyncio.Runner() as runner:
            runner.run(self._run_until_stopped())

    async def _run_until_stopped(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._ready.set()
        container = await self._built_container()
        if container is None:
            return
        try:
            async with watching(self._timings.watchdog_seconds):
                await self._sweep(container)
                await self._release(container)
        finally:
            await container.close()

    async def _built_container(self) -> Container | None:
        while not self._releasing.is_set():
            try:
                return await self._factory()
            except Exception as error:  # noqa: BLE001 - whatever it was, the worker lives on
                _log.warning("worker.sweeper_start_failed", error=type(error).__name__)
            await _is_set_within(self._releasing, self._timings.rebuild_seconds)
        return None

    async def _sweep(self, container: Container) -> None:
        sweeping = asyncio.create_task(container.background.run_forever("sweeper", container.sweeper.run))
        await self._releasing.wait()
        sweeping.cancel()
        await asyncio.wait([sweeping])

    async def _release(self, container: Container) -> None:
        while True:
            await container.sweeper.release()
            # A job that a child takes after the first release is released by a later one.
            if await _is_set_within(self._stopping, self._timings.release_seconds):
                return


async def _is_set_within(event: asyncio.Event, seconds: float) -> bool:
    with suppress(TimeoutError):
        await asyncio.wait_for(event.wait(), seconds)
    return event.is_set()


_parent = ParentLoop(timings=Settings().timings)


def start_sweeping(**_: Any) -> None:
    """Start sweeping when the worker begins to take jobs."""
    _parent.start()


def release_jobs(**_: Any) -> None:
    """Release the jobs. The children notice within a heartbeat that their leases are lost, and stop."""
    _parent.begin_release()


def stop_sweeping(**_: Any) -> None:
    """Stop the thread after all children have ended."""
    _parent.stop()


worker_ready.connect(start_sweeping)
worker_shutting_down.connect(release_jobs)
worker_shutdown.connect(stop_sweeping)
