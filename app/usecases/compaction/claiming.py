"""How a compaction is claimed: a row in the transaction of whatever made it due."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from app.core.model.conversation import Conversation, QuietPeriod
from app.core.model.records import Compaction, FoldRequest, RanIn
from app.core.planning.triggers import trigger_messages, trigger_tokens
from app.storage.unit_of_work import UnitOfWork
from app.usecases.compaction.attempts import TURNED_AWAY
from app.usecases.shared.pauses import pause_after
from app.usecases.shared.resolve import Resolved
from app.usecases.shared.shell import Shell

BACK_OFF = timedelta(seconds=30)  # doubled with each failure in a row
MAX_BACK_OFF = timedelta(hours=1)
MAX_OUTAGE_FAILURES: Final = 5
"""How many failures of an outage count at most, so that no pause in it is longer than eight minutes: it says nothing
about the conversation, and may be over at any time.
"""
_STEPS: Final = 1_000
"""How many lengths the longest pause in an outage has, by the conversation's id, from half of it on.

Those who were turned away together would otherwise come back together for ever: one of them asks the model, and if it
is away at that moment, nobody asks again for eight minutes.
"""
MAX_FAILURES: Final = 30
"""How many failures in a row, about a day, until a conversation is retried only after a new message. Otherwise an
abandoned conversation would ask its model, and get a row, every hour for ever.
"""
MAX_WOKEN: Final = 1_000
"""How many conversations are let go on at once after an outage; the next success lets others."""
ABANDONED_AFTER = timedelta(days=1)
"""How long after its last message a conversation is no longer retried in an outage."""
OUTAGES: Final = TURNED_AWAY | {"model_unavailable"}
"""Reasons of failures in which no model answered. A timeout is none: it may cost, and be the conversation's own."""


async def claim_queued(uow: UnitOfWork, row: Compaction, now: datetime) -> Compaction | None:
    """Insert a row for a worker, which gets its id after the commit; ``None`` if a compaction is already in flight."""
    claimed = await uow.compactions.claim(row)
    if claimed is not None:
        uow.jobs.append(claimed.id)
        await record_event(uow, claimed, "compaction.queued", now)
    return claimed


async def claim_running(
    uow: UnitOfWork, resolved: Resolved, shell: Shell, *, trigger: str, request: FoldRequest, ran_in: RanIn
) -> Compaction | None:
    """Take the conversation's slot for a run in this process; ``None`` if a compaction is already in flight."""
    row = new_compaction(resolved, shell, trigger=trigger, request=request, ran_in=ran_in, running=True)
    claimed = await uow.compactions.claim(row)
    if claimed is not None:
        await record_event(uow, claimed, "compaction.started", shell.clock.now())
    return claimed


def new_compaction(
    resolved: Resolved,
    shell: Shell,
    *,
    trigger: str,
    request: FoldRequest,
    ran_in: RanIn,
    running: bool = False,
    retry_of: UUID | None = None,
) -> Compaction:
    """A row for this conversation: queued, or running with a lease of this process."""
    conversation, now = resolved.conversation, shell.clock.now()
    return Compaction(
        id=shell.new_id(),
        tenant_id=conversation.tenant_id,
        conversation_id=conversation.id,
        trigger=trigger,
        ran_in=ran_in,
        status="running" if running else "queued",
        strategy=conversation.preset,
        request=request,
        tokens_before=resolved.tokens,
        state_version_before=conversation.state_version,
        retry_of=retry_of,
        lease_token=shell.new_id() if running else None,
        owner=shell.owner if running else None,
        requested_at=now,
        started_at=now if running else None,
    )


def numbers_of(row: Compaction) -> dict[str, Any]:
    """The ids and numbers that an event has of a compaction."""
    return {
        "compaction_id": str(row.id),
        "trigger": row.trigger,
        "ran_in": row.ran_in,
        "status": row.status,
        "reason": row.reason,
        "messages_covered": row.messages_covered,
        "from_seq": row.from_seq,
        "to_seq": row.to_seq,
        "tokens_before": row.tokens_before,
        "tokens_after": row.tokens_after,
        "state_version": row.state_version_after,
        "duration_ms": row.duration_ms,
    }


async def record_event(uow: UnitOfWork, row: Compaction, type_: str, now: datetime) -> None:
    """An event about a compaction."""
    await uow.events.add(row.conversation_id, type_, numbers_of(row), now)


async def refresh_sizes(uow: UnitOfWork, resolved: Resolved, **changes: Any) -> Conversation:
    """Store the sizes that the sweeper's index uses, after anything that changed the sums or the policy.

    ``changes`` are further fields of the row that the same statement stores.
    """
    return await uow.conversations.update(resolved.conversation.id, **changes, **sizes_of(resolved))


def sizes_of(resolved: Resolved) -> dict[str, int | None]:
    """The sizes that the sweeper's index uses, by the names of the conversation's fields."""
    return {
        "context_tokens": resolved.tokens,
        "trigger_tokens": trigger_tokens(resolved.policy, resolved.budgets),
        "context_messages": resolved.messages,
        "trigger_messages": trigger_messages(resolved.policy),
    }


def failures_in_a_row(conversation: Conversation, reason: str) -> int:
    """How often automatic compactions have failed, with one that fails now; of an outage a few count at most."""
    failures = conversation.failure_count + 1
    return max(conversation.failure_count, min(failures, MAX_OUTAGE_FAILURES)) if reason in OUTAGES else failures


def quiet_after_failure(
    conversation: Conversation, reason: str, now: datetime, *, at_least: timedelta = timedelta(0)
) -> QuietPeriod:
    """Back off after a failed automatic compaction: half a minute, doubled each time, at most an hour.

    While no model answers, it is four to eight minutes at most, and half a minute if the conversation had just been let
    go on, since another process's circuit may still be open. After ``MAX_FAILURES`` in a row, or in an outage a day
    after the last message, there is also no retry until a new message comes. ``at_least`` is the wait that the provider
    asked for.
    """
    failures = failures_in_a_row(conversation, reason)
    given_up = failures >= MAX_FAILURES
    if reason in OUTAGES:
        failures = min(failures, MAX_OUTAGE_FAILURES) if conversation.quiet.until else 1
        idle = now - (conversation.last_message_at or conversation.created_at)
        given_up = idle > ABANDONED_AFTER and conversation.quiet.reason in OUTAGES
    pause = pause_after(failures, BACK_OFF, MAX_BACK_OFF)
    if reason in OUTAGES and failures == MAX_OUTAGE_FAILURES:
        pause -= pause / 2 * (conversation.id.int % _STEPS) / _STEPS
    return QuietPeriod(
        until_seq=conversation.last_seq if given_up else 0,
        until=now + min(max(pause, at_least), MAX_BACK_OFF),
        reason=reason,
    )
