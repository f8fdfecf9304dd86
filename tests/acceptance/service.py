"""The whole service from outside: API and worker as processes of their own, with logs, over given servers.

``running_service`` starts both as production does; each can be stopped, killed (with or without its children) and
started again, which is what tests of crashes need.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import ClassVar, Final

import httpx

from app.devserver.run import Commands
from app.settings import Settings
from tests.servers import ROOT, unused_port

START_SECONDS: Final = 90.0  # two seconds of imports on an idle machine
STOP_SECONDS: Final = 20.0
LOG_TAIL: Final = 12_000  # characters shown when a test fails
POLL: Final = 0.02
MAX_POLL_SECONDS: Final = 0.1
_UNEVENTFUL: Final = re.compile(r"http\.request .*status=2\d\d")


SHORT_TIMINGS: Final = {
    "THROUGHLINE_LEASE_SECONDS": "3",
    "THROUGHLINE_HEARTBEAT_SECONDS": "0.5",
    "THROUGHLINE_TURN_HEARTBEAT_SECONDS": "0.2",
    "THROUGHLINE_SWEEP_SECONDS": "1",
    "THROUGHLINE_RESEND_SECONDS": "2",
    "THROUGHLINE_STAND_IN_SECONDS": "2",
    "THROUGHLINE_POLL_SECONDS": "0.03",
    "THROUGHLINE_EVENT_POLL_SECONDS": "0.5",
    "THROUGHLINE_UNFOLLOWED_SECONDS": "1",
    "THROUGHLINE_BROKER_PAUSE_SECONDS": "1",
    "THROUGHLINE_REBUILD_SECONDS": "1",
    "THROUGHLINE_SHUTDOWN_SECONDS": "1",
}
"""The times that a service of the tests waits for; a lease still outlives the pauses of a busy machine."""


class NotReadyError(AssertionError):
    """Something did not come about in time; the message holds the log."""


def until(condition: Callable[[], object], seconds: float = 30.0, *, what: str = "it") -> None:
    """Return once the condition is true."""
    deadline, pause = time.monotonic() + seconds, POLL
    while not condition():
        if time.monotonic() > deadline:
            raise NotReadyError(f"{what} did not come about within {seconds} s")
        time.sleep(pause)
        pause = min(1.5 * pause, MAX_POLL_SECONDS)


def eventful(log: str) -> str:
    """The end of a log, without the requests that went well."""
    return "\n".join(line for line in log.splitlines() if not _UNEVENTFUL.search(line))[-LOG_TAIL:]


def children_of(pid: int) -> list[int]:
    """The processes that a process has started, or none if it has just ended."""
    found: list[int] = []
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            found += map(int, (task / "children").read_text().split())
    return found


class Process:
    """One process of the service, in a process group of its own."""

    def __init__(
        self, name: str, argv: tuple[str, ...], env: Mapping[str, str], folder: Path, ready: Callable[[Process], bool]
    ) -> None:
        self.name = name
        self._argv = argv
        self._env = env
        self._ready = ready
        self._folder = folder
        self._log = folder / f"{name}.log"
        self._popen: subprocess.Popen[bytes] | None = None
        self._started_at = 0
        self._test_began_at = 0

    @property
    def pid(self) -> int:
        assert self._popen is not None, f"{self.name} was never started"
        return self._popen.pid

    @property
    def alive(self) -> bool:
        return self._popen is not None and self._popen.poll() is None

    @property
    def log(self) -> str:
        """Everything written since the first start."""
        return self._log.read_text(errors="replace") if self._log.exists() else ""

    @property
    def log_since_start(self) -> str:
        return self.log[self._started_at :]

    @property
    def log_of_test(self) -> str:
        """What was logged during the running test, without the requests that succeeded."""
        return eventful(self.log[self._test_began_at :])

    def begin_test(self) -> None:
        """Let what is logged from now on belong to another test."""
        self._test_began_at = len(self.log)

    @property
    def children(self) -> list[int]:
        """Pool children of the worker; none for the API."""
        return children_of(self.pid)

    def start(self, *, wait: bool = True) -> None:
        """Start the process, and wait until it works."""
        assert not self.alive, f"{self.name} runs already"
        self._started_at = len(self.log)
        with self._log.open("ab") as output:
            self._popen = subprocess.Popen(
                self._argv, cwd=self._folder, env=self._env, stdout=output, stderr=subprocess.STDOUT, process_group=0
            )
        if wait:
            self.wait_ready()

    @property
    def ready(self) -> bool:
        """Whether the process works."""
        return self.alive and self._ready(self)

    def wait_ready(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while not self._ready(self):
            if not self.alive or time.monotonic() > deadline:
                raise NotReadyError(f"{self.name} is not ready:\n{self.log_since_start[-LOG_TAIL:]}")
            time.sleep(POLL)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the process without its children."""
        os.kill(self.pid, number)

    def stop(self) -> int:
        """Ask the process to end, wait, and kill the rest of its group. Return the exit code (negative: a signal)."""
        if self.alive:
            self.signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._wait(STOP_SECONDS)
        return self.kill()

    def kill(self) -> int:
        """``kill -9`` of the whole group, children included."""
        if self._popen is None:
            return 0
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        return self._wait(STOP_SECONDS)

    def end(self, seconds: float) -> int:
        """Wait until the process ends by itself, and return its exit code."""
        return self._wait(seconds)

    def restart(self) -> None:
        self.stop()
        self.start()

    def _wait(self, seconds: float) -> int:
        assert self._popen is not None
        return self._popen.wait(seconds)


class Service:
    """One API and one worker over one database and one Redis."""

    running: ClassVar[list[Service]] = []
    """The services whose logs are worth showing when a test fails."""

    def __init__(self, folder: Path, *, database_url: str, redis_url: str, settings: Mapping[str, str]) -> None:
        """Prepare the two processes.

        Args:
            folder: For logs; also their working directory, so that no ``.env`` of the checkout is read.
            database_url: A migrated database.
            redis_url: A logical database of its own.
            settings: Further environment, such as ``GOOGLE_API_KEY``.
        """
        self.database_url = database_url
        self.redis_url = redis_url
        self.folder = folder
        self.settings = settings
        self._port = unused_port()
        env = {**os.environ, **self.environment, "PORT": str(self._port), **settings}
        commands = self._commands(Settings(_env_file=None, host="127.0.0.1", port=self._port))
        self.api = Process("api", commands.api, env, folder, self._api_ready)
        self.worker = Process("worker", commands.worker, env, folder, _worker_ready)

    @cached_property
    def url(self) -> str:
        """The address of the API."""
        return f"http://127.0.0.1:{self._port}"

    @property
    def environment(self) -> dict[str, str]:
        """The environment that a process needs to belong to this service."""
        return {
            "HOST": "127.0.0.1",
            "DATABASE_URL": self.database_url,
            "REDIS_URL": self.redis_url,
            "THROUGHLINE_EMBEDDED": "1",
            "THROUGHLINE_VERIFY": "off",  # tests/integration/test_verification*.py test them
            "THROUGHLINE_WORK_PROCESSES": "0",  # each takes seconds to start; tests/integration/test_loop.py tests them
            "PYTHONPATH": str(ROOT),
            "PYTHONUNBUFFERED": "1",
            "PYTHONWARNINGS": "ignore:You're running the worker with superuser privileges",
            "NO_COLOR": "1",
            **SHORT_TIMINGS,
        }

    def _commands(self, settings: Settings) -> Commands:
        """The commands that start the two processes."""
        return Commands.of(settings)

    @property
    def processes(self) -> tuple[Process, ...]:
        """The running processes, each with a log."""
        return self.api, self.worker

    def start(self, *, worker: bool = True) -> None:
        """Start both processes at once."""
        chosen = (self.api, self.worker) if worker else (self.api,)
        for process in chosen:
            process.start(wait=False)
        for process in chosen:
            process.wait_ready()

    def stop(self) -> None:
        """Ask both processes to end, then wait for each."""
        for process in (self.api, self.worker):
            if process.alive:
                process.signal(signal.SIGTERM)
        for process in self.processes:
            process.stop()

    def rest(self) -> None:
        """Nothing to do: no test uses the service for now, so that it need not look for work."""

    def wake(self) -> None:
        """Nothing to do: a test uses the service again."""

    def client(self, key: str | None = None) -> httpx.Client:
        """A client of the API that uses no proxy of the environment."""
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        limits = httpx.Limits(max_connections=200)
        return httpx.Client(base_url=self.url, headers=headers, timeout=60, trust_env=False, limits=limits)

    def _api_ready(self, _: Process) -> bool:
        with contextlib.suppress(httpx.HTTPError):
            return httpx.get(f"{self.url}/readyz", timeout=2, trust_env=False).is_success
        return False


def _worker_ready(worker: Process) -> bool:
    return " ready." in worker.log_since_start


@contextlib.contextmanager
def running_service(
    folder: Path, *, database_url: str, redis_url: str, worker: bool = True, settings: Mapping[str, str] | None = None
) -> Iterator[Service]:
    """Run a service, and end all its processes afterwards."""
    with started(
        Service(folder, database_url=database_url, redis_url=redis_url, settings=settings or {}), worker
    ) as up:
        yield up


@contextlib.contextmanager
def started(service: Service, worker: bool) -> Iterator[Service]:  # noqa: FBT001 - as ``start`` takes it
    """Run a service; it is stopped whatever happens."""
    Service.running.append(service)
    try:
        service.start(worker=worker)
        yield service
    finally:
        service.stop()
        Service.running.remove(service)
