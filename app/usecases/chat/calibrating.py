"""Learns a conversation's token factor from the sizes that providers report of its requests."""

from __future__ import annotations

from app.core.model.calibration import learn
from app.core.model.conversation import Conversation
from app.storage.unit_of_work import UnitOfWork
from app.usecases.chat.reply import Answer
from app.usecases.shared.resolve import Resolved
from app.usecases.shared.shell import Shell


async def calibrated(
    uow: UnitOfWork, shell: Shell, conversation: Conversation, asked: Resolved, said: Answer
) -> Conversation:
    """A *locked* conversation with what this answer teaches about its token factor.

    Each request of a turn counts by itself. It counts only if the chat model reported its own count of a request that
    we estimated: not for a model that is not metered (the offline one counts as we do), nor for an estimate by another
    estimator than the present one.
    """
    if not said.metered or shell.resolver(conversation).policy.estimator != asked.policy.estimator:
        return conversation
    factor = conversation.token_factor
    for estimated, reported in said.weighed:
        factor = learn(factor, estimated=estimated, reported=reported)
    if factor == conversation.token_factor:
        return conversation
    return await uow.conversations.update(conversation.id, token_factor=factor)
