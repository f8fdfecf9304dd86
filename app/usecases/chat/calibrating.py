"""Learns a conversation's token factor from the sizes that providers report of its requests."""

from __future__ import annotations

from app.core.model.calibration import adjusted_factor
from app.core.model.conversation import Conversation
from app.storage.unit_of_work import UnitOfWork
from app.usecases.chat.reply import Answer
from app.usecases.shared.resolve import Resolved
from app.usecases.shared.shell import Shell


async def calibrated(
    uow: UnitOfWork, shell: Shell, conversation: Conversation, resolved_for_call: Resolved, answer: Answer
) -> Conversation:
    """The *locked* conversation, with its token factor adjusted by this answer.

    Each request of a turn counts separately. It counts only if the chat model itself reported the size of a request
    that was estimated here. So an unmetered model does not count (the offline model uses the same estimate), and
    neither does an estimate made by another estimator than the present one.
    """
    if not answer.metered or shell.resolver(conversation).policy.estimator != resolved_for_call.policy.estimator:
        return conversation
    factor = conversation.token_factor
    for estimated, reported in answer.token_counts:
        factor = adjusted_factor(factor, estimated=estimated, reported=reported)
    if factor == conversation.token_factor:
        return conversation
    return await uow.conversations.update(conversation.id, token_factor=factor)
