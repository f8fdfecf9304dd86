"""The worker's tasks: each hands over to a service."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from structlog.contextvars import bound_contextvars

from app.adapters.job_queue import DETAIL_TASK_NAME, TASK_NAME
from worker.celery_app import app
from worker.runtime import runtime


@app.task(name=TASK_NAME, bind=True)  # type: ignore[untyped-decorator]  # Celery has no types
def compact(self: Any, compaction_id: str) -> None:
    """Perform a claimed compaction. Delivered twice, late or after it ended, it does nothing: the lease decides."""
    with bound_contextvars(request_id=self.request.get("request_id")):
        runtime.run(lambda container: container.compaction.execute(UUID(compaction_id), ran_in="worker"))


@app.task(name=DETAIL_TASK_NAME)  # type: ignore[untyped-decorator]  # Celery has no types
def detail(conversation_id: str) -> None:
    """Have one L1 of a conversation written, if one is wanted and nothing more urgent waits."""
    runtime.run(lambda container: container.detailing.work(UUID(conversation_id)))
