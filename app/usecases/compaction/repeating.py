"""Decides whether a compaction would find nothing to fold, like the last one; then none is started."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from app.core.model.policies.policy import Trigger
from app.core.planning.compaction import NothingToFold
from app.core.planning.triggers import quiet_after
from app.storage.unit_of_work import UnitOfWork
from app.usecases.compaction.chunk import UNLIMITED_TOKENS, before_running_turn, plan, read_tail
from app.usecases.shared.resolve import Resolved

NOTHING_FOLDED: Final = frozenset({"nothing_to_compact", "irreducible_floor"})
"""Reasons for which a conversation that is over its trigger is left quiet."""


async def would_repeat(uow: UnitOfWork, resolved: Resolved, trigger: Trigger, *, turn_is_over: bool = False) -> bool:
    """Whether a due trigger of a *locked* conversation would find nothing to fold, as the last compaction did.

    If so, the conversation stays quiet until it has grown by the same amount again. So a period in which nothing can be
    folded makes one row, however long it lasts. No model is asked and no text is read.

    ``turn_is_over``: the running turn ends in this transaction, so that its messages may be folded afterwards.
    """
    conversation = resolved.conversation
    if conversation.quiet.reason not in NOTHING_FOLDED:
        return False
    request = trigger.request()
    if not turn_is_over:
        request = await before_running_turn(uow, conversation.id, request)
    found = plan(resolved, await read_tail(uow, resolved), request, UNLIMITED_TOKENS)
    if not isinstance(found, NothingToFold) or found.reason != conversation.quiet.reason:
        return False
    quiet = quiet_after(
        resolved.policy,
        resolved.budgets,
        seen_seq=conversation.last_seq,
        predicted_tokens=resolved.conversation.counted(found.predicted_tokens),
        lasting_floor=found.lasting,
    )
    await uow.conversations.update(conversation.id, quiet=replace(quiet, reason=found.reason))
    return True
