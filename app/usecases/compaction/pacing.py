"""Measures a conversation's pace, which adaptive thresholds follow, from its rows."""

from __future__ import annotations

from app.core.model.pace import MAX_COMPACTIONS, MAX_MESSAGES, Pace, pace_of
from app.storage.unit_of_work import UnitOfWork
from app.usecases.shared.resolve import Resolved


async def measured_pace(uow: UnitOfWork, resolved: Resolved) -> Pace | None:
    """The pace at the end of a turn whose messages are stored in this transaction."""
    conversation = resolved.conversation
    steps = await uow.messages.steps(conversation.id, resolved.policy.estimator, limit=MAX_MESSAGES)
    seconds = await uow.compactions.durations(conversation.id, limit=MAX_COMPACTIONS)
    return pace_of(steps, seconds, factor=conversation.token_factor)
