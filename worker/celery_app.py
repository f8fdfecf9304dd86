"""The Celery application of the worker: ``celery -A worker.celery_app worker``."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import sys
from typing import Any, Final

from celery import Celery
from celery.signals import after_setup_logger, worker_init

from app.core.model.errors import DependencyUnavailableError
from app.infrastructure.job_queue import QUEUE_NAME, celery_broker_url
from app.logs import RepeatedLineFilter
from app.process_settings import settings_of_process
from app.settings import Settings

# For a process that misses its own deadline: after this time it gets a signal, and after this further time it is
# killed.
_SOFT_LIMIT_GRACE_SECONDS: Final = 30
_HARD_LIMIT_GRACE_SECONDS: Final = 60
_SOCKET_TIMEOUT_SECONDS = 5.0
# How long a cold shutdown (SIGQUIT) waits for running jobs; their rows are released at once.
_SOFT_SHUTDOWN_SECONDS = 5.0
# A child imports nothing after the fork, but a machine under load may start it slowly.
_CHILD_START_SECONDS = 30.0
# Celery immediately retries a broker that refuses to write, and logs this ten times a second.
_REPEATED_LINE_SECONDS: Final = 30.0
logging.getLogger("celery.worker.consumer.consumer").addFilter(RepeatedLineFilter(_REPEATED_LINE_SECONDS))


def build_app(settings: Settings) -> Celery:
    """Configure Celery from the settings. Importing this module needs no broker; starting a worker does."""
    soft_limit = math.ceil(settings.timings.task_seconds) + _SOFT_LIMIT_GRACE_SECONDS
    hard_limit = soft_limit + _HARD_LIMIT_GRACE_SECONDS
    broker = celery_broker_url(settings.redis_url) if settings.redis_url else None
    celery = Celery("throughline", broker=broker, include=["worker.tasks", "worker.parent"])
    celery.conf.update(
        task_default_queue=QUEUE_NAME,
        task_serializer="json",
        accept_content=["json"],
        task_ignore_result=True,
        # A job is acknowledged when it is done. The message of a killed child is not put back, since a job that kills
        # its process would loop. The row's lease expires, and the sweeper, which counts crashes, sends the job again.
        task_acks_late=True,
        task_reject_on_worker_lost=False,
        worker_prefetch_multiplier=1,
        worker_concurrency=settings.worker_concurrency,
        task_soft_time_limit=soft_limit,
        task_time_limit=hard_limit,
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,
        # A broker that refuses to write, such as a replica or one without room, counts as away.
        broker_channel_error_retry=True,
        broker_transport_options={
            # A job that is unacknowledged for this long is delivered again; it is longer than the hard limit of a job.
            "visibility_timeout": 2 * hard_limit,
            "socket_timeout": _SOCKET_TIMEOUT_SECONDS,
            "socket_connect_timeout": _SOCKET_TIMEOUT_SECONDS,
            "health_check_interval": 10,
        },
        # Losing the broker says nothing about a running job; its lease does.
        worker_cancel_long_running_tasks_on_connection_loss=False,
        # The service's log lines are written unchanged, not wrapped into Celery's.
        worker_hijack_root_logger=False,
        worker_redirect_stdouts=False,
        worker_proc_alive_timeout=_CHILD_START_SECONDS,
        worker_soft_shutdown_timeout=_SOFT_SHUTDOWN_SECONDS,
    )
    return celery


_settings: Final = settings_of_process()
app = build_app(_settings)


def keep_libraries_quiet(*, logger: logging.Logger, loglevel: int, **_: Any) -> None:
    """Let only Celery log below a warning.

    Celery sets its level for all libraries. Clients of providers log the addresses of their requests, and another
    version may log more.
    """
    logger.setLevel(max(loglevel, logging.WARNING))
    logging.getLogger("celery").setLevel(loglevel)


def refuse_without_broker(**_: Any) -> None:
    """End with one clear line instead of trying Celery's default broker for ever."""
    if not app.conf.broker_url:
        sys.exit("REDIS_URL is not set: name a Redis for the worker, or start everything with `throughline run`.")


def refuse_without_database(**_: Any) -> None:
    """End with one clear line if every job would fail. If the database is away now, each job waits for it."""
    from app.storage.schema_fit import schema_complaint_at  # noqa: PLC0415 - for workers only, as in the parent's loop

    url = _settings.database_url
    if not url:
        sys.exit("DATABASE_URL is not set: name the database of the API, or start everything with `throughline run`.")
    with contextlib.suppress(DependencyUnavailableError):
        try:
            complaint = asyncio.run(schema_complaint_at(url))
        except ValueError as error:  # of the address; Celery would log an error, and go on
            sys.exit(str(error))
        if complaint:
            sys.exit(complaint)


after_setup_logger.connect(keep_libraries_quiet)
worker_init.connect(refuse_without_broker)
worker_init.connect(refuse_without_database)
