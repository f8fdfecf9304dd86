"""Sends jobs to the workers through Celery: the name of a task and an id.

A job is only a hint that there is work. The work itself is recorded in the database, where the sweeper finds everything
that no worker was told of.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Final
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit, urlunsplit
from uuid import UUID

import structlog
from celery import Celery
from kombu.pools import connections, producers

from app.circuit import Circuit
from app.core.model.timings import DEFAULT_TIMINGS
from app.infrastructure.attempts import attempt
from app.usecases.ports import JobKind

TASK_NAME: Final = "throughline.compact"
FORK_TASK_NAME: Final = "throughline.fork"
LATER_TASK_NAMES: Final[Mapping[JobKind, str]] = {
    "detail": "throughline.detail",
    "verification": "throughline.verify",
    "embedding": "throughline.embed",
    "cache": "throughline.cache",
    "anchors": "throughline.anchors",
    "fork": FORK_TASK_NAME,
}
QUEUE_NAME: Final = "throughline"

# The limits of each read from the broker's socket, and of the whole call: a broker that accepts but never answers must
# not block the service.
_SOCKET_SECONDS = 1.0
_SEND_SECONDS = 2.0
_THREADS = 2
# About 10 MB of ids. Without a limit, the sweeper, which sends waiting work again and again, would fill Redis while no
# worker runs.
MAX_WAITING_JOBS: Final = 10_000
# Work for later is not added to a longer queue: it can wait, and each job of this kind asks for the next when it ends.
MAX_WAITING_FOR_LATER: Final = 20
_LOWEST_PRIORITY: Final = 9  # the lowest priority: workers take everything else first

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class CeleryJobQueue:
    """``JobQueue`` on a Celery broker.

    After a failure nothing is sent for ``pause_seconds``; the sweeper sends the lost jobs again.
    """

    def __init__(self, url: str, *, pause_seconds: float = DEFAULT_TIMINGS.broker_pause_seconds) -> None:
        self._app = _producer(celery_broker_url(url))
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="job-queue")
        self._circuit = Circuit(pause_seconds)

    async def send(self, compaction_id: UUID, request_id: str | None = None) -> bool:
        """Send the job of a compaction. Returns within two seconds whether the broker took it.

        Soon after a failure the answer is False at once. The broker may have taken a job although the answer is false.
        Running it twice does no harm, since only one worker gets the lease of the compaction's row.
        """
        return await self._within_time(partial(self._send, compaction_id, request_id), compaction_id=compaction_id)

    async def send_later(self, kind: JobKind, id_: UUID) -> bool:
        """Ask for work that can wait, with the lowest priority; false if the broker is away.

        If the queue is already long, nothing is added and the answer is true: a worker that ends such work asks for the
        next.
        """
        return await self._within_time(
            partial(self._send_at_lowest_priority, LATER_TASK_NAMES[kind], id_), wanted=kind, id=id_
        )

    async def send_fork(self, conversation_id: UUID) -> bool:
        """Ask for the messages that a forked conversation still lacks, with the priority of compactions.

        It has that priority since a client waits for them.
        """
        send = partial(self._send, conversation_id, None, FORK_TASK_NAME)
        return await self._within_time(send, conversation_id=conversation_id)

    async def _within_time(self, send: Callable[[], bool], **log_fields: object) -> bool:
        call = partial(asyncio.get_running_loop().run_in_executor, self._threads, send)
        fields = {name: str(value) for name, value in log_fields.items()}
        return bool(await attempt(call, self._circuit, _SEND_SECONDS, "job_queue.send_failed", **fields))

    async def close(self) -> None:
        """End the threads and close the connections."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        await asyncio.to_thread(self._disconnect)

    def _disconnect(self) -> None:
        pool = self._app.pool
        pool.force_close_all()
        # kombu keeps one pool per address; a queue that this process opens later must not find a closed one.
        address = self._app.connection_for_write()
        for pools in (connections, producers):
            with suppress(KeyError):
                del pools[address]
        self._app.close()

    def _send(self, id_: UUID, request_id: str | None, task: str = TASK_NAME) -> bool:
        with self._app.producer_or_acquire() as producer:
            waiting: int = producer.channel.queue_declare(QUEUE_NAME).message_count
            if waiting >= MAX_WAITING_JOBS:
                _log.warning("job_queue.full", task=task, id=str(id_), waiting=waiting)
                return False
            self._app.send_task(
                task,
                args=[str(id_)],
                headers={"request_id": request_id},
                producer=producer,
                retry=False,
                ignore_result=True,
            )
        return True

    def _send_at_lowest_priority(self, task: str, id_: UUID) -> bool:
        with self._app.producer_or_acquire() as producer:
            if producer.channel.queue_declare(QUEUE_NAME).message_count < MAX_WAITING_FOR_LATER:
                self._app.send_task(
                    task,
                    args=[str(id_)],
                    priority=_LOWEST_PRIORITY,
                    producer=producer,
                    retry=False,
                    ignore_result=True,
                )
        return True


def celery_broker_url(redis_url: str) -> str:
    """The address of a Redis in the form that Celery reads, made from the form that redis-py reads.

    ``unix:///path?db=0`` becomes ``redis+socket:///path?virtual_host=0``, and ``rediss://`` checks certificates unless
    the address says otherwise (Celery's own default is not to).
    """
    parts = urlsplit(redis_url)
    query = dict(parse_qsl(parts.query))
    if parts.scheme == "unix":
        user, password = query.pop("username", parts.username or ""), query.pop("password", parts.password or "")
        access = f"{quote(unquote(user), safe='')}:{quote(unquote(password), safe='')}@" if user or password else ""
        return f"redis+socket://{access}{parts.path}?virtual_host={query.get('db', '0')}"
    path = f"/{query.pop('db')}" if "db" in query else parts.path
    if parts.scheme == "rediss":
        query.setdefault("ssl_cert_reqs", "required")
    return urlunsplit((parts.scheme, parts.netloc, path, urlencode(query), ""))


def _producer(broker_url: str) -> Celery:
    app = Celery("throughline-producer", broker=broker_url, set_as_current=False)
    app.conf.update(
        task_default_queue=QUEUE_NAME,
        task_serializer="json",
        task_ignore_result=True,
        broker_pool_limit=_THREADS,
        broker_connection_timeout=_SOCKET_SECONDS,
        broker_transport_options={
            "socket_timeout": _SOCKET_SECONDS,
            "socket_connect_timeout": _SOCKET_SECONDS,
            # Without this, the first use of a channel waits for the broker for ever, even with ``retry=False``.
            "max_retries": 0,
        },
    )
    return app
