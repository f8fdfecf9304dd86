"""How a compaction's row ends: its status, its one event, and what follows for the conversation."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

import structlog

from app.core.model.conversation import Conversation, QuietPeriod
from app.core.model.records import Attempt, Compaction, CompactionStatus
from app.storage.unit_of_work import UnitOfWork
from app.usecases.compaction.attempts import WITHHELD, AttemptsResult
from app.usecases.compaction.claiming import failures_in_a_row, numbers_of, quiet_after_failure, record_event
from app.usecases.shared.lease import Lease, check_held
from app.usecases.shared.shell import Shell

EVENTS: dict[CompactionStatus, str] = {
    "applied": "compaction.applied",
    "skipped": "compaction.skipped",
    "rejected": "compaction.failed",
    "failed": "compaction.failed",
    "superseded": "compaction.failed",
}
FAILURES = frozenset({"failed", "rejected"})
WAIT_TIMED_OUT: Final = "waited_in_vain"
"""Why a conversation is quiet although a compaction is in flight: a turn had no time left to wait for it."""

log = structlog.get_logger(__name__)


async def end_row(
    shell: Shell,
    uow: UnitOfWork,
    row: Compaction,
    *,
    status: CompactionStatus,
    reason: str | None,
    attempted: AttemptsResult | None = None,
) -> Compaction:
    """End a row whose last step applied nothing; the caller has locked the conversation.

    If an earlier chunk was committed, the row is ``applied``: with the reason ``partial``, unless there was simply no
    more to fold. A failed automatic row makes the conversation quiet for a while; a row that ran out of time between
    chunks does not.
    """
    changes = _attempt_columns(row, attempted) if attempted else {}
    if row.state_version_after is None:
        ended = await finish(shell, uow, row, status=status, reason=reason, **changes)
    else:
        complete = status == "skipped" and reason == "nothing_to_compact"
        ended = await finish(shell, uow, row, status="applied", reason=None if complete else "partial", **changes)
        await count_compaction(uow, row)
        if reason == "deadline":
            await uow.conversations.update(row.conversation_id, quiet=QuietPeriod())
            return ended
    if status in FAILURES:
        await _quiet_conversation(shell, uow, row, reason or status, attempted)
    return ended


async def end_held(
    shell: Shell, lease: Lease, *, status: CompactionStatus, reason: str | None, attempted: AttemptsResult | None = None
) -> Compaction:
    """``end_row`` in a transaction of its own. Raises ``LeaseLostError`` if the row is no longer held."""
    async with shell.uow(lease.tenant_id) as uow:
        await uow.conversations.lock(lease.conversation_id)
        row = check_held(await uow.compactions.get(lease.compaction_id), lease)
        ended = await end_row(shell, uow, row, status=status, reason=reason, attempted=attempted)
        await uow.commit()
    return ended


async def finish(
    shell: Shell, uow: UnitOfWork, row: Compaction, *, status: CompactionStatus, **changes: Any
) -> Compaction:
    """Write the end on the row and record its event; turns wait for it no longer."""
    if status == "applied":
        changes = _with_reason_withheld(changes, row)
    now = shell.clock.now()
    ended = await uow.compactions.end(
        row.id, status=status, finished_at=now, lease_token=None, lease_until=None, **changes
    )
    await record_event(uow, ended, EVENTS[status], now)
    await _end_quiet_of_wait(uow, row.conversation_id)
    _log_end(ended)
    return ended


async def _end_quiet_of_wait(uow: UnitOfWork, conversation_id: UUID) -> None:
    conversation = await uow.conversations.get(conversation_id)
    if conversation.quiet.reason == WAIT_TIMED_OUT:
        await uow.conversations.update(conversation_id, quiet=QuietPeriod())


async def count_compaction(uow: UnitOfWork, row: Compaction) -> Conversation:
    """Add one to the conversation's count of compactions: once for each row that applied something."""
    conversation = await uow.conversations.get(row.conversation_id)
    return await uow.conversations.update(conversation.id, compression_count=conversation.compression_count + 1)


async def add_calls(uow: UnitOfWork, row: Compaction, attempted: AttemptsResult) -> Compaction:
    """Record calls on a row of a *locked* conversation, whoever has its lease: they were paid for all the same."""
    columns = _attempt_columns(row, attempted)
    columns.pop("model", None)  # another run may have ended the row by another model
    return await uow.compactions.update_locked(row.id, **columns) if columns else row


def _attempt_columns(row: Compaction, attempted: AttemptsResult) -> dict[str, Any]:
    """The row's fields with the calls of one more chunk, unless they are saved already."""
    calls = len(attempted.attempts)
    starts = range(len(row.attempts) - calls + 1)
    if not calls or any(row.attempts[start : start + calls] == attempted.attempts for start in starts):
        return {}
    return {
        "attempts": (*row.attempts, *attempted.attempts),
        "usage": row.usage.plus(attempted.usage),
        "model": attempted.attempts[-1].model,
    }


def _with_reason_withheld(changes: dict[str, Any], row: Compaction) -> dict[str, Any]:
    attempts: tuple[Attempt, ...] = changes.get("attempts", row.attempts)
    withheld = any(attempt.reason == WITHHELD for attempt in attempts)
    return {**changes, "reason": changes.get("reason") or (WITHHELD if withheld else None)}


async def _quiet_conversation(
    shell: Shell, uow: UnitOfWork, row: Compaction, reason: str, attempted: AttemptsResult | None
) -> None:
    # A failed manual call delays only its caller.
    if row.trigger == "manual":
        return
    conversation = await uow.conversations.get(row.conversation_id)
    at_least = timedelta(seconds=attempted.retry_after if attempted else 0.0)
    failures = failures_in_a_row(conversation, reason)
    quiet = quiet_after_failure(conversation, reason, shell.clock.now(), at_least=at_least)
    if _is_refused_for_good(attempted):
        quiet = replace(quiet, until_seq=conversation.last_seq)
    await uow.conversations.update(conversation.id, failure_count=failures, quiet=quiet)


def _is_refused_for_good(attempted: AttemptsResult | None) -> bool:
    """Whether the same messages would be refused again, whatever a model wrote."""
    return attempted is not None and attempted.is_final


def _log_end(row: Compaction) -> None:
    write = log.warning if row.status in FAILURES or row.reason == "partial" else log.info
    write(EVENTS[row.status], conversation_id=str(row.conversation_id), **numbers_of(row))
