"""What exists as long as one process of the worker: an event loop and a container, both made after the fork."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

import structlog
from celery.exceptions import SoftTimeLimitExceeded
from celery.signals import worker_init, worker_process_init, worker_process_shutdown

from app.core.model.errors import InvalidInputError
from app.core.model.timings import DEFAULT_TIMINGS, Timings
from app.infrastructure.garbage import importing, settle_garbage_collector
from app.infrastructure.ids import owner_name
from app.infrastructure.watchdog import watching
from app.settings import Settings

if TYPE_CHECKING:
    from app.bootstrap import Container

T = TypeVar("T")

OWNER: Final = owner_name("worker")
"""The owner's name in this worker's leases. It is made in the parent, so that all child processes inherit the same."""

_ROUNDS_TO_NOTICE: Final = 8
"""So many rounds of the event loop suffice to read a server's last message and the end of a connection, and to tell its
pool.
"""

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


async def build() -> Container:
    """Build the container of this process, or of this thread's loop."""
    from app.bootstrap import build_container  # noqa: PLC0415 - two seconds of imports, for workers only

    container = await build_container(Settings(), owner=OWNER)
    try:
        await container.parts.models.prepare()
    except InvalidInputError as error:
        _log.warning("worker.model_unavailable", detail=error.detail)  # each job logs this as well
    return container


class Runtime:
    """Runs coroutines, one at a time, on a lasting loop and container, since pools of connections belong to a loop.

    ``timings`` give the time limit of a task, and the time after which a blocked loop ends its process.
    """

    def __init__(
        self,
        timings: Timings = DEFAULT_TIMINGS,
    ) -> None:
        self._timings = timings
        self._runner: asyncio.Runner | None = None
        self._container: Container | None = None

    def start(self) -> None:
        """Make the loop and the container, if they do not exist."""
        if self._runner is None:
            self._runner = asyncio.Runner()
        if self._container is None:
            self._container = self._runner.run(build())

    def run(self, job: Callable[[Container], Awaitable[T]]) -> T:
        """Run a job with the container, within its time limit and in the caller's context variables."""
        self.start()
        assert self._runner is not None  # noqa: S101 - for the type checker: start() made both
        assert self._container is not None  # noqa: S101 - the same
        try:
            return self._runner.run(self._in_time(job, self._container), context=contextvars.copy_context())
        except SoftTimeLimitExceeded:
            # A signal raised it in the middle of the loop, so nothing on the loop can be trusted any more.
            self.stop()
            raise

    async def _in_time(self, job: Callable[[Container], Awaitable[T]], container: Container) -> T:
        async with watching(self._timings.watchdog_seconds):
            try:
                async with asyncio.timeout(self._timings.task_seconds):
                    await _notice_closed_connections()
                    return await job(container)
            finally:
                # The loop does not run until the next job: work that stayed on record would count as a crash.
                await container.drain()

    def stop(self) -> None:
        """Close the container, then the loop; the next job makes new ones."""
        runner, container = self._runner, self._container
        self._runner = self._container = None
        if runner is not None:
            with runner:
                if container is not None:
                    runner.run(_awaited(container.close()))


runtime = Runtime(timings=Settings().timings)


def import_before_the_fork(**_: Any) -> None:
    """Import modules that the children share.

    Otherwise each child would need seconds of a job's lease, and megabytes of its own.
    """
    with importing():
        from app.bootstrap import import_models  # noqa: PLC0415 - two seconds of imports, for workers only

    import_models(Settings())
    settle_garbage_collector()


def start_child(**_: Any) -> None:
    """Make the process ready before the first job; if that fails now, the first job tries again."""
    try:
        runtime.start()
    except Exception as error:  # noqa: BLE001 - a dependency that is away must not end the child
        _log.warning("worker.start_failed", error=type(error).__name__)


def stop_child(**_: Any) -> None:
    """Close the connections."""
    runtime.stop()


async def _notice_closed_connections() -> None:
    # The loop did not run between two jobs. Without this, the pool would lend a connection that the server has closed.
    for _ in range(_ROUNDS_TO_NOTICE):
        await asyncio.sleep(0)


async def _awaited(awaitable: Awaitable[T]) -> T:
    return await awaitable


worker_init.connect(import_before_the_fork)
worker_process_init.connect(start_child)
worker_process_shutdown.connect(stop_child)
