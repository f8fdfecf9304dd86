"""Reads texts that take seconds in other processes, which do not slow the event loop and can be ended.

The processes are those of ``anyio.to_process``: each is started as a program of its own (without a fork, so threads do
no harm), is killed with the task that waits for it, and ends with its parent.
"""

from __future__ import annotations

import asyncio
import contextlib
import pickle
from collections.abc import Callable
from importlib import import_module
from typing import Any, Final, TypeVar, cast
from uuid import UUID

import structlog
from anyio import BrokenWorkerProcess, CapacityLimiter, to_process

from app.core.model.errors import DependencyUnavailableError, TooLargeError
from app.off_loop import WorkShares, off_loop

Given = TypeVar("Given")
Result = TypeVar("Result")

_PRELOADED_MODULE: Final = "app.usecases.history.preparing"
"""The module that a new process imports before it gets any work."""
_RETRY_AFTER_SECONDS: Final = 1.0

log = structlog.get_logger(__name__)


class ProcessPool:
    """A pool of processes, of which one tenant may use all but one.

    ``count`` processes run at once; a process whose work takes longer than ``seconds`` is killed.
    """

    def __init__(self, count: int, seconds: float) -> None:
        self._count = count
        self._seconds = seconds
        self._places = asyncio.Semaphore(count)
        self._limiter: CapacityLimiter | None = None
        self._shares = WorkShares(max(count - 1, 1))
        self._starting: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Start every process in advance."""
        await asyncio.gather(*(self._start_process() for _ in range(self._count)))

    async def run(self, tenant_id: UUID, work: Callable[[Given], Result], given: Given) -> Result:
        """The result of a module-level function for a value; both are pickled.

        Raises:
            TooLargeError: The work took too long and was ended.
            DependencyUnavailableError: The process ended.
        """
        request = await off_loop(pickle.dumps, (work, given), pickle.HIGHEST_PROTOCOL)
        async with self._shares.hold(tenant_id), self._places:
            answer = await self._answer_of_process(request)
        return cast("Result", await off_loop(pickle.loads, answer, size=len(answer)))

    async def close(self) -> None:
        """Start no further processes; running ones end with the loop."""
        for task in self._starting:
            task.cancel()
        await asyncio.gather(*self._starting, return_exceptions=True)

    async def _answer_of_process(self, request: bytes) -> bytes:
        try:
            async with asyncio.timeout(self._seconds):
                return await to_process.run_sync(
                    _pickled_result, request, cancellable=True, limiter=self._anyio_limiter()
                )
        except TimeoutError:
            self._start_another()
            log.warning("work.ended", seconds=self._seconds)
            raise TooLargeError(
                f"reading the texts took longer than {self._seconds:g} seconds and was ended, nothing is stored: send"
                " them in smaller parts",
                extra={"seconds": self._seconds},
            ) from None
        except BrokenWorkerProcess:
            self._start_another()
            log.warning("work.process_ended")
            raise DependencyUnavailableError(
                "the process that read the texts ended, nothing is stored: try again, or send them in smaller parts",
                retry_after=_RETRY_AFTER_SECONDS,
            ) from None

    def _anyio_limiter(self) -> CapacityLimiter:
        # Made here, since it needs a running loop. The pool's own limit, which is fair among tenants, applies before
        # this one.
        if self._limiter is None:
            self._limiter = CapacityLimiter(self._count)
        return self._limiter

    def _start_another(self) -> None:
        # The next request then need not wait for its imports.
        task = asyncio.create_task(self._start_process(), name="start a process")
        self._starting.add(task)
        task.add_done_callback(self._starting.discard)

    async def _start_process(self) -> None:
        with contextlib.suppress(BrokenWorkerProcess):  # the first work then starts one
            await to_process.run_sync(_import_needed, cancellable=True, limiter=self._anyio_limiter())


def _import_needed() -> None:
    import_module(_PRELOADED_MODULE).warm()


def _pickled_result(request: bytes) -> bytes:
    work, given = cast("tuple[Callable[[Any], Any], Any]", pickle.loads(request))  # noqa: S301 - our own
    return pickle.dumps(work(given), pickle.HIGHEST_PROTOCOL)
