"""``throughline run``: everything a newcomer needs, from one command, until Ctrl-C."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import httpx

from app.devserver import AlreadyRunningError, EmbeddedServers, running_at
from app.devserver.configured import address
from app.devserver.preflight import check_database, check_models, check_port, check_redis, check_tools, migrate
from app.devserver.servers import prepare_data_dir
from app.devserver.supervisor import Child, Emit, Signals, StopRequestedError, Supervisor
from app.settings import Settings

# Children import `app` and `worker` from here, whatever their working directory is.
_ROOT = Path(__file__).resolve().parents[2]
_ROOT_WARNING = "ignore:You're running the worker with superuser privileges"
# Imports take two seconds, or minutes on a machine under load. A process that fails is noticed at once.
_READY_SECONDS = 600.0
_STILL_STARTING_SECONDS = 45.0
# The server's own limit ends open streams within this time; running turns get their time after it.
_API_GRACE_SECONDS = 5
# After that time it ends the turns that still run, on record, and closes everything. If it were killed before, they
# would run until their leases end.
_API_CLOSING_SECONDS = 5.0
# The worker puts its job back into the queue when it is asked to stop.
_WORKER_PATIENCE = 10.0

Command = tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Commands:
    """The two processes of the service; tests use small replacements."""

    api: Command
    worker: Command

    @classmethod
    def of(cls, settings: Settings) -> Commands:
        """The commands of the real processes."""
        python = (sys.executable, "-m")
        api = ("app.main", "--host", settings.host, "--port", str(settings.port), "--grace", str(_API_GRACE_SECONDS))
        worker = ("celery", "-q", "-A", "worker.celery_app", "worker", "-n", f"throughline-{settings.port}@%h")
        pool = ("--concurrency", str(settings.worker_concurrency), "--loglevel", settings.log_level.upper())
        # The workers of one machine do not listen to each other's gossip.
        alone = ("--without-gossip", "--without-mingle", "--without-heartbeat")
        return cls(api=(*python, *api), worker=(*python, *worker, *pool, *alone))


class Service:
    """Servers, migrations, API and worker: started in this order, stopped in reverse."""

    def __init__(self, settings: Settings, *, emit: Emit, commands: Commands | None = None) -> None:
        self._settings = settings
        self._emit = emit
        self._commands = commands or Commands.of(settings)
        self._servers: EmbeddedServers | None = None
        self._env: dict[str, str] = {}

    def check(self) -> None:
        """Check first everything that a person may have to correct."""
        settings, embedded = self._settings, self._embeds_servers
        if embedded and (owner := running_at(settings.data_dir)):
            raise AlreadyRunningError(
                f"Throughline already runs over {settings.data_dir}: {owner}. "
                "Stop it, or set THROUGHLINE_DATA_DIR and PORT for a second one."
            )
        check_port(settings.host, settings.port)
        check_tools(settings.tools)
        check_models(settings)
        if embedded:
            prepare_data_dir(settings.data_dir)
        if settings.database_url:
            check_database(settings.database_url)
        if settings.redis_url:
            check_redis(settings.redis_url)

    def run(self, started: Callable[[], None], stopping: Callable[[], None]) -> None:
        """Run until a signal asks for the end, then return."""
        with Signals() as signals, ExitStack() as cleanup:
            try:
                self._run(signals, cleanup, started)
            except StopRequestedError:
                stopping()
            finally:
                signals.begin_stop()

    def _run(self, signals: Signals, cleanup: ExitStack, started: Callable[[], None]) -> None:
        self.check()
        self._emit("run", "starting; the first time takes longest")
        if self._embeds_servers:
            cleanup.callback(lambda: self._stop_servers(force=signals.forced))
        self._env = self._start_servers()
        migrate(self._env["DATABASE_URL"])
        supervisor = Supervisor(self._children(), revive=self._revive, emit=self._emit)
        cleanup.callback(lambda: supervisor.stop(lambda: signals.forced))
        supervisor.start(self._is_ready, seconds=_READY_SECONDS, told_each=_STILL_STARTING_SECONDS)
        if self._servers:
            self._servers.announce(address(self._settings))
        started()
        supervisor.watch()

    @property
    def _embeds_servers(self) -> bool:
        return not (self._settings.database_url and self._settings.redis_url)

    def _start_servers(self) -> dict[str, str]:
        """Start the servers that no setting names, and return the environment for the children."""
        settings = self._settings
        urls = {"DATABASE_URL": settings.database_url, "REDIS_URL": settings.redis_url}
        if self._embeds_servers:
            self._servers = EmbeddedServers(
                settings.data_dir, postgres=not settings.database_url, valkey=not settings.redis_url
            )
            endpoints = self._servers.start(attach=False)
            urls["DATABASE_URL"] = settings.database_url or endpoints.database_url
            urls["REDIS_URL"] = settings.redis_url or endpoints.redis_url
        return {**child_environment(settings), **{name: url for name, url in urls.items() if url}}

    def _stop_servers(self, *, force: bool) -> None:
        if self._servers:
            self._servers.stop(force=force)

    def _revive(self) -> list[str]:
        return self._servers.revive() if self._servers else []

    def _children(self) -> list[Child]:
        commands, env, emit = self._commands, self._env, self._emit
        api_patience = _API_GRACE_SECONDS + self._settings.timings.shutdown_seconds + _API_CLOSING_SECONDS
        return [
            Child("API", commands.api, env=env, emit=emit, patience=api_patience),
            Child("worker", commands.worker, env=env, emit=emit, patience=_WORKER_PATIENCE),
        ]

    def _is_ready(self) -> bool:
        try:
            # No proxy of the environment is used between the service's own processes.
            return httpx.get(f"{address(self._settings)}/readyz", timeout=2.0, trust_env=False).is_success
        except httpx.HTTPError:
            return False


def child_environment(settings: Settings) -> dict[str, str]:
    """The environment that passes on all settings, wherever they come from, so that every process has the same."""
    # PG* variables of a shell would redirect the driver in spite of DATABASE_URL.
    inherited = {name: value for name, value in os.environ.items() if settings.database_url or name[:2] != "PG"}
    return {
        **inherited,
        "PYTHONPATH": os.pathsep.join(filter(None, (str(_ROOT), os.environ.get("PYTHONPATH")))),
        "PYTHONUNBUFFERED": "1",
        # As root the worker prints long warnings, which do not apply: here it serves one developer on a private socket.
        "PYTHONWARNINGS": ",".join(filter(None, (os.environ.get("PYTHONWARNINGS"), _ROOT_WARNING))),
        "HOST": settings.host,
        "PORT": str(settings.port),
        "THROUGHLINE_DATA_DIR": str(Path(settings.data_dir).absolute()),
        "THROUGHLINE_EMBEDDED": "0" if settings.database_url else "1",
    }
