"""Finds out on each occasion which trigger is due (``core.planning.triggers``), and claims the compaction.

A claim is made in the same transaction as the change that made the compaction due.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from app.core.model.conversation import Conversation, Message, QuietPeriod
from app.core.model.policies.policy import TURN_ENDS, Moment, Trigger
from app.core.planning.triggers import (
    ends_turn,
    first_due_trigger,
    moments_at_rest,
    moments_of_append,
    moments_of_reply,
)
from app.storage.unit_of_work import UnitOfWork
from app.usecases.compaction.claiming import claim_queued, new_compaction
from app.usecases.compaction.repeating import NOTHING_FOLDED, would_repeat
from app.usecases.compaction.spend_guard import SPEND_LIMIT
from app.usecases.shared.resolve import Resolved
from app.usecases.shared.shell import Shell
from app.usecases.shared.work_records import is_set_aside


def due_before_call(resolved: Resolved, shell: Shell) -> Trigger | None:
    """The inline trigger that a turn has to answer before it calls the model."""
    return _due_trigger(_with_quiet_of_turn(resolved), shell, {"before_call"})


def due_between_calls(resolved: Resolved, shell: Shell) -> Trigger | None:
    """The inline trigger that a turn has to answer before it gives the model a tool's result."""
    return _due_trigger(_with_quiet_of_turn(resolved), shell, {"between_calls"})


async def claim_in_turn(uow: UnitOfWork, shell: Shell, resolved: Resolved) -> None:
    """Claim for the worker what is due after a message inside a turn.

    Call it only if no inline trigger is due (``due_before_call``, ``due_between_calls``): for that the turn waits.
    """
    await _claim_if_due(uow, shell, resolved, {"stored"})


async def claim_after_append(uow: UnitOfWork, shell: Shell, resolved: Resolved, last: Message) -> None:
    """Claim what is due after a client appended messages. ``last`` is the newest of them."""
    moments = moments_of_append(resolved.policy, turn_is_over=ends_turn(last))
    await _claim_if_due(uow, shell, resolved, moments)


async def claim_after_reply(uow: UnitOfWork, shell: Shell, resolved: Resolved, reply: Message) -> None:
    """Claim what is due after the reply of a turn.

    The answer to a command does not change the context, so nothing is claimed after it.
    """
    if not reply.is_command:
        moments = moments_of_reply(interrupted=reply.status == "interrupted")
        await _claim_if_due(uow, shell, resolved, moments)


async def end_quiet_of_turn(uow: UnitOfWork, conversation: Conversation, question: Message) -> Conversation:
    """A *locked* conversation at the end of the turn that this message began.

    If nothing could be folded between the calls of the turn, the turn itself was in the way; that is over now. The
    reason of the quiet is kept, so that it is not reported again if still nothing can be folded.
    """
    quiet = conversation.quiet
    began_inside = question.seq < quiet.until_seq <= conversation.last_seq
    if not (began_inside and quiet.reason in NOTHING_FOLDED):
        return conversation
    return await uow.conversations.update(conversation.id, quiet=QuietPeriod(reason=quiet.reason))


async def claim_at_rest(uow: UnitOfWork, shell: Shell, resolved: Resolved) -> None:
    """Claim what is due without a new message: after a change of the policy, or for the sweeper."""
    last = await uow.messages.last(resolved.conversation.id)
    completed = last is not None and last.status != "interrupted" and ends_turn(last)
    moments = moments_at_rest(resolved.policy, "completed" if completed else "interrupted")
    await _claim_if_due(uow, shell, resolved, moments)


async def _claim_if_due(uow: UnitOfWork, shell: Shell, resolved: Resolved, moments: Collection[Moment]) -> None:
    trigger = _due_trigger(resolved, shell, moments)
    if trigger is None or await is_set_aside(uow, resolved.conversation.id):
        return
    if not await would_repeat(uow, resolved, trigger, turn_is_over=not TURN_ENDS.isdisjoint(moments)):
        row = new_compaction(resolved, shell, trigger=trigger.name, request=trigger.request(), ran_in="worker")
        await claim_queued(uow, row, shell.clock.now())


def _with_quiet_of_turn(resolved: Resolved) -> Resolved:
    # A turn that is refused for its size also tries again right after a failure, since a summary may be possible by
    # now.
    conversation, policy = resolved.conversation, resolved.policy
    refused = policy.on_failure == "keep_full" and resolved.tokens > resolved.budgets.window
    after_failure = conversation.quiet.until is not None and conversation.quiet.reason != SPEND_LIMIT
    return (
        replace(resolved, conversation=replace(conversation, quiet=QuietPeriod()))
        if refused and after_failure
        else resolved
    )


def _due_trigger(resolved: Resolved, shell: Shell, moments: Collection[Moment]) -> Trigger | None:
    return first_due_trigger(resolved.policy, resolved.budgets, moments=moments, **resolved.sizes(shell.clock.now()))
