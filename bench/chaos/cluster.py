"""Two APIs and two workers with one PostgreSQL and one Valkey, and a proxy on every connection between them."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import httpx
from sqlalchemy.engine import make_url

from app.devserver import Endpoints
from app.devserver.run import Commands
from app.settings import Settings
from app.storage.migrations import run_migrations
from bench.chaos.clocked import VARIABLE
from bench.chaos.links import Links
from bench.chaos.plan import BROKER_LINKS, CLIENT_LINKS, DATABASE_LINKS, MODEL_LINK, NODES
from tests.acceptance.chaos import OwnServers
from tests.acceptance.service import NotReadyError, Process, Service
from tests.gemini_server import Gemini, gemini_process
from tests.servers import execute_sql

REQUEST_SECONDS: Final = 10.0
"""How many seconds a client waits for an answer before it asks again."""
_SETTINGS: Final = {
    "THROUGHLINE_WORKER_CONCURRENCY": "1",
    "THROUGHLINE_REQUEST_TIMEOUT_SECONDS": "15",
    "THROUGHLINE_CHAT_TIMEOUT_SECONDS": "4",
    "THROUGHLINE_COMPACTION_TIMEOUT_SECONDS": "4",
    "THROUGHLINE_MODEL_PAUSE_SECONDS": "2",
    "THROUGHLINE_EVENT_HEARTBEAT_SECONDS": "2",
    "THROUGHLINE_TENANT_CALLS_PER_HOUR": "1000000",
    "THROUGHLINE_TENANT_LIMITS": '{"requests_per_minute": null, "chat_calls_per_hour": null, "chat_usd_per_hour": null,'
    ' "compaction_usd_per_hour": null}',
    "THROUGHLINE_KEY_LIMITS": '{"requests_per_minute": null}',
}
POSTGRES_SOCKET: Final = ".s.PGSQL.5432"


class Node(Service):
    """One API and one worker, whose clock can be set."""

    def __init__(self, folder: Path, *, database_url: str, redis_url: str, gemini_url: str) -> None:
        folder.mkdir()
        self.clock = folder / "clock"
        settings = {
            **_SETTINGS,
            VARIABLE: str(self.clock),
            "GOOGLE_API_KEY": "test",
            "GOOGLE_GEMINI_BASE_URL": gemini_url,
        }
        super().__init__(folder, database_url=database_url, redis_url=redis_url, settings=settings)

    def _commands(self, settings: Settings) -> Commands:
        plain = super()._commands(settings.model_copy(update={"worker_concurrency": 1}))
        return Commands(api=_clocked(plain.api), worker=_clocked(plain.worker))


def _clocked(command: tuple[str, ...]) -> tuple[str, ...]:
    """The same command (``python -m MODULE …``) under a clock that can be set."""
    python, flag, *module = command
    return (python, flag, "bench.chaos.clocked", *module)


class Front(Service):
    """The service as clients see it: the addresses of its APIs, each behind its proxy, used in turn."""

    def __init__(self, folder: Path, addresses: tuple[str, ...]) -> None:
        super().__init__(folder, database_url="", redis_url="", settings={})
        self._addresses = itertools.cycle(addresses)

    def client(self, key: str | None = None) -> httpx.Client:
        """A client of the next API."""
        timeout = httpx.Timeout(REQUEST_SECONDS, connect=2)
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        return httpx.Client(base_url=next(self._addresses), headers=headers, timeout=timeout, trust_env=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """Everything that a campaign runs and breaks."""

    servers: OwnServers
    nodes: tuple[Node, ...]
    front: Front
    links: Links
    gemini: Gemini

    @property
    def processes(self) -> dict[str, Process]:
        """APIs and workers by their names in a plan."""
        named = zip(NODES, self.nodes, strict=True)
        return {f"{one.name}-{name}": one for name, node in named for one in node.processes}

    @property
    def database_url(self) -> str:
        """The address of the database without a proxy, for checks."""
        return self.servers.endpoints.database_url


@contextlib.contextmanager
def running_cluster(folder: Path) -> Iterator[Cluster]:
    """Run a cluster that is ready; it is stopped whatever happens."""
    with OwnServers(folder / "servers") as servers, gemini_process() as gemini, Links() as links:
        _keep_memory_apart(servers)
        run_migrations(servers.endpoints.database_url)
        model = links.open(MODEL_LINK, gemini.url.replace("http", "tcp"))
        nodes = tuple(
            _node(folder / name, links, servers.endpoints, f"http://127.0.0.1:{model}", number)
            for number, name in enumerate(NODES)
        )
        ports = [
            links.open(link, node.url.replace("http", "tcp")) for link, node in zip(CLIENT_LINKS, nodes, strict=True)
        ]
        front = Front(folder, tuple(f"http://127.0.0.1:{port}" for port in ports))
        cluster = Cluster(servers=servers, nodes=nodes, front=front, links=links, gemini=gemini)
        try:
            for process in cluster.processes.values():
                process.start(wait=False)
            wait_ready(cluster)
            yield cluster
        finally:
            for node in nodes:
                node.stop()


def _keep_memory_apart(servers: OwnServers) -> None:
    """Let PostgreSQL keep its shared memory in System V segments, which a limit on file sizes does not affect.

    Otherwise the limit that imitates a full disk would also take memory away, which no full disk does: recovery would
    then fail at once, and PostgreSQL 18 may wait for ever for a recovery that has ended.
    """
    execute_sql(servers.endpoints.database_url, "ALTER SYSTEM SET dynamic_shared_memory_type = 'sysv'")
    servers.kill("PostgreSQL")
    servers.revive()


def wait_ready(cluster: Cluster) -> None:
    """Return once every process does its work, which may take long on a busy machine."""
    for process in cluster.processes.values():
        for last in (False, False, True):
            try:
                process.wait_ready()
            except NotReadyError:
                if last or not process.alive:
                    raise
            else:
                break


def _node(folder: Path, links: Links, servers: Endpoints, gemini_url: str, number: int) -> Node:
    """A node whose connections to the servers go through proxies of its own."""
    database, broker = make_url(servers.database_url), servers.redis_url.partition("?")[0]
    socket = f"unix://{database.query['host']}/{POSTGRES_SOCKET}"
    database_port = links.open(DATABASE_LINKS[number], socket)
    broker_port = links.open(BROKER_LINKS[number], broker)
    return Node(
        folder,
        database_url=database.set(host="127.0.0.1", port=database_port, query={}).render_as_string(hide_password=False),
        redis_url=f"redis://127.0.0.1:{broker_port}/0",
        gemini_url=gemini_url,
    )
