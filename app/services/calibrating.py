"""What a provider reports of our requests, learned as the conversation's token factor."""

from __future__ import annotations

from app.domain.conversation import Conversation
from app.domain.weighing.calibration import learn
from app.ports import UnitOfWork
from app.services.reply import Answer
from app.services.resolve import Resolved
from app.services.shell import Shell


async def calibrated(
    uow: UnitOfWork, shell: Shell, conversation: Conversation, asked: Resolved, said: Answer
) -> Conversation:
    """A *locked* conversation with what this answer teaches of its size.

    Learns only from the chat model's own count of a request that we estimated ourselves: never from a model that is
    not metered (the offline one counts as we do), nor from an estimate by another estimator than the present one.
    """
    reported, same = said.usage.input_tokens, shell.resolver(conversation).policy.estimator == asked.policy.estimator
    if not (said.estimated and reported and same and said.metered):
        return conversation
    factor = learn(conversation.token_factor, estimated=said.estimated, reported=reported)
    if factor == conversation.token_factor:
        return conversation
    return await uow.conversations.update(conversation.id, token_factor=factor)
