"""The whole service in this process: the API over ASGI and the worker's own code, on one loop in one thread.

What differs from processes of their own: Celery carries no job (the queue calls the worker's container directly), and
nothing can be killed. Tests that need either are marked ``processes``.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import socket
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import ClassVar, Final
from unittest import mock
from uuid import UUID

import httpx
import structlog
import uvicorn
from fastapi import FastAPI

from app import bootstrap
from app.bootstrap import Container
from app.main import create_app
from app.settings import Settings
from app.usecases.ports import JobKind
from tests.acceptance.asgi import Transport
from tests.acceptance.service import Service, eventful, started

_PATIENCE: Final = 30.0  # seconds until the loop has started or ended
_JOBS: Final = 2
"""The most jobs at the same time, as with two children of a worker."""


class DirectQueue:
    """``JobQueue`` whose jobs the worker's container performs on the same loop."""

    def __init__(self) -> None:
        self._slots = asyncio.Semaphore(_JOBS)
        self._jobs: set[asyncio.Task[object]] = set()
        self.worker: Container
        """The container that performs the jobs."""

    async def send(self, compaction_id: UUID, request_id: str | None = None) -> bool:
        self._start(self.worker.compaction.execute(compaction_id, ran_in="worker"))
        return True

    async def send_later(self, kind: JobKind, id_: UUID) -> bool:
        worker = self.worker
        work: Mapping[JobKind, Callable[[UUID], Coroutine[object, object, object]]] = {
            "detail": worker.detailing.work,
            "verification": worker.verification.work,
            "embedding": worker.embedding.work,
            "cache": worker.caches.make_or_renew,
            "anchors": worker.anchors.work,
        }
        self._start(work[kind](id_))
        return True

    async def send_fork(self, conversation_id: UUID) -> bool:
        self._start(self.worker.forks.work(conversation_id))
        return True

    async def stop(self) -> None:
        """Cancel the running jobs, and wait for their end."""
        for job in self._jobs:
            job.cancel()
        await asyncio.gather(*self._jobs, return_exceptions=True)

    def _start(self, job: Coroutine[object, object, object]) -> None:
        task = asyncio.create_task(self._run(job))
        self._jobs.add(task)
        task.add_done_callback(self._jobs.discard)

    async def _run(self, job: Coroutine[object, object, object]) -> None:
        async with self._slots:
            await job


class LocalLog:
    """Stands for a process in tests that read what a service has logged."""

    name = "log"
    _written: ClassVar = io.StringIO()
    """The log of all services of this process, which share its loggers."""

    def __init__(self) -> None:
        self._started_at = self._test_began_at = self._written.tell()
        structlog.configure(logger_factory=structlog.PrintLoggerFactory(self._written))

    def begin_test(self) -> None:
        """Let what is logged from now on belong to another test."""
        self._test_began_at = self._written.tell()

    @property
    def log(self) -> str:
        """Everything logged since the service was made."""
        return self._written.getvalue()[self._started_at :]

    @property
    def log_of_test(self) -> str:
        """What was logged during the running test, without the requests that succeeded."""
        return eventful(self._written.getvalue()[self._test_began_at :])


class LocalService(Service):
    """The same service without processes; ``client`` calls the application directly."""

    def __init__(self, folder: Path, *, database_url: str, redis_url: str, settings: Mapping[str, str]) -> None:
        super().__init__(folder, database_url=database_url, redis_url=redis_url, settings=settings)
        with mock.patch.dict(os.environ, {**self.environment, **settings}), contextlib.chdir(folder):
            self._settings = Settings(_env_file=None)
        self._loop = asyncio.new_event_loop()
        self._started = threading.Event()
        self._ending = asyncio.Event()
        self._thread = threading.Thread(target=self._main, name="service", daemon=True)
        self._failure: BaseException | None = None
        self._app: FastAPI
        self._log: LocalLog
        self._has_worker = True
        self._is_resting = False

    @property
    def processes(self) -> tuple[LocalLog, ...]:  # type: ignore[override]
        return (self._log,)

    @cached_property
    def url(self) -> str:
        """An address that other programs can call; it is served from its first use on."""
        listener = socket.create_server(("127.0.0.1", 0))
        config = uvicorn.Config(self._app, log_level="error", lifespan="off", timeout_graceful_shutdown=1)
        self._server = uvicorn.Server(config)
        asyncio.run_coroutine_threadsafe(self._server.serve(sockets=[listener]), self._loop)
        return f"http://127.0.0.1:{listener.getsockname()[1]}"

    def client(self, key: str | None = None) -> httpx.Client:
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        transport = Transport(self._app, self._loop)
        return httpx.Client(base_url="http://127.0.0.1:8000", headers=headers, timeout=60, transport=transport)

    def start(self, *, worker: bool = True) -> None:
        self._has_worker = worker
        self._thread.start()
        assert self._started.wait(_PATIENCE), "the service did not start"
        if self._failure is not None:
            raise self._failure

    def stop(self) -> None:
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._ending.set)
            self._thread.join(_PATIENCE)
            assert not self._thread.is_alive(), "the service did not end"

    def rest(self) -> None:
        self._is_resting = True

    def wake(self) -> None:
        self._is_resting = False

    def _main(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._live())
        except BaseException as error:  # noqa: BLE001 - raised in the thread that waits for the start
            self._failure = error
        finally:
            self._started.set()
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.close()

    async def _live(self) -> None:
        async with contextlib.AsyncExitStack() as stack:
            queue = DirectQueue() if self._has_worker else None
            if queue is not None:
                queue.worker = await stack.enter_async_context(self._container("worker:local", queue))
                stack.push_async_callback(queue.stop)
            container = await stack.enter_async_context(self._container("process:local", queue))
            self._let_rest(container)
            self._app = create_app(self._settings, container)
            self._log = LocalLog()
            await stack.enter_async_context(self._app.router.lifespan_context(self._app))
            stack.push_async_callback(self._stop_serving)
            self._started.set()
            await self._ending.wait()

    @contextlib.asynccontextmanager
    async def _container(self, owner: str, queue: DirectQueue | None) -> AsyncIterator[Container]:
        """The container of an API or a worker. Without a queue its jobs go to the broker, where nobody takes them."""
        parts = bootstrap._parts(self._settings)
        container = Container(self._settings, replace(parts, queue=queue) if queue else parts, owner)
        try:
            yield container
        finally:
            await container.close()

    def _let_rest(self, container: Container) -> None:
        """Let the service not sweep while no test uses it: it would do so twice a second while other tests run."""
        sweep = container.sweeper.sweep

        async def sweep_unless_resting() -> None:
            if not self._is_resting:
                await sweep()

        setattr(container.sweeper, "sweep", sweep_unless_resting)  # noqa: B010 - for mypy

    async def _stop_serving(self) -> None:
        if "url" in self.__dict__:
            self._server.should_exit = self._server.force_exit = True
            await asyncio.sleep(0.2)


@contextlib.contextmanager
def local_service(
    folder: Path, *, database_url: str, redis_url: str, worker: bool = True, settings: Mapping[str, str] | None = None
) -> Iterator[Service]:
    """Run a service in this process, and remove it afterwards."""
    local = LocalService(folder, database_url=database_url, redis_url=redis_url, settings=settings or {})
    with started(local, worker) as service:
        yield service
