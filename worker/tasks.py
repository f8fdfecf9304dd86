"""The worker's tasks: each calls a service."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any
from uuid import UUID

from structlog.contextvars import bound_contextvars

from app.infrastructure.job_queue import (
    FORK_TASK_NAME,
    LATER_TASK_NAMES,
    TASK_NAME,
)
from worker.celery_app import app
from worker.runtime import runtime

if TYPE_CHECKING:
    from app.bootstrap import Container


@app.task(name=TASK_NAME, bind=True)  # type: ignore[untyped-decorator]  # Celery has no types
def compact(self: Any, compaction_id: str) -> None:
    """Perform a claimed compaction: the named one, or another whose tenant's turn it is.

    A job that is delivered twice, late or after the end does no harm: the lease decides.
    """
    with bound_contextvars(request_id=self.request.get("request_id")):
        runtime.run(lambda container: compact_and_verify(container, UUID(compaction_id)))


async def compact_and_verify(container: Container, hinted: UUID) -> None:
    """Run a compaction and, once it is applied, verify what it wrote. A failed verification does not fail the job."""
    chosen = await container.compaction.in_turn(hinted)
    for compaction_id in dict.fromkeys((chosen, hinted)):
        # The hint's request did not ask for another compaction.
        with nullcontext() if compaction_id == hinted else bound_contextvars(request_id=None):
            ended = await container.compaction.execute(compaction_id, ran_in="worker")
            await container.verification.verify_after(ended)
        if ended is not None:  # else another worker chose it too, and there is no further hint of the named one
            return


@app.task(name=LATER_TASK_NAMES["detail"])  # type: ignore[untyped-decorator]  # Celery has no types
def detail(conversation_id: str) -> None:
    """Have one L1 of a conversation written, if one is wanted and nothing more urgent waits."""
    runtime.run(lambda container: container.detailing.work(UUID(conversation_id)))


@app.task(name=LATER_TASK_NAMES["verification"])  # type: ignore[untyped-decorator]  # Celery has no types
def verify(conversation_id: str) -> None:
    """Have a conversation's newest state verified, if it waits for that and nothing more urgent does."""
    runtime.run(lambda container: container.verification.work(UUID(conversation_id)))


@app.task(name=LATER_TASK_NAMES["embedding"])  # type: ignore[untyped-decorator]  # Celery has no types
def embed(conversation_id: str) -> None:
    """Have vectors made of some of a conversation's messages, if they are wanted."""
    runtime.run(lambda container: container.embedding.work(UUID(conversation_id)))


@app.task(name=LATER_TASK_NAMES["cache"])  # type: ignore[untyped-decorator]  # Celery has no types
def cache(cache_id: str) -> None:
    """Have a provider's cache made or renewed, if it is still wanted."""
    runtime.run(lambda container: container.caches.make_or_renew(UUID(cache_id)))


@app.task(name=LATER_TASK_NAMES["anchors"])  # type: ignore[untyped-decorator]  # Celery has no types
def find_anchors(conversation_id: str) -> None:
    """Find the anchors that are due in a conversation."""
    runtime.run(lambda container: container.anchors.work(UUID(conversation_id)))


@app.task(name=FORK_TASK_NAME)  # type: ignore[untyped-decorator]  # Celery has no types
def fork(conversation_id: str) -> None:
    """Copy the messages that a forked conversation still lacks."""
    runtime.run(lambda container: container.forks.work(UUID(conversation_id)))
