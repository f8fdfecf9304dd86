"""Makes a segment for a range of messages that a client names, as a compaction would store it, folded or not.

The segment does not belong to the present state: no list shows it and no block serves it. But its id can always be
resolved, an erasure reaches it, and a compaction that cuts the same range takes it over.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final
from uuid import UUID

from app.core.model.conversation import Conversation, Message
from app.core.model.errors import ConflictError, NotFoldedError
from app.core.model.policies.policy import CompactionPolicy
from app.core.model.redaction import redact_messages
from app.core.model.segments import CutSegment, Segment
from app.core.planning.cuts import MESSAGES_READ_AFTER_RANGE, is_complete_range
from app.core.segments.describing import describe
from app.core.segments.segment_ids import ids_for, stem_of
from app.off_loop import off_loop
from app.storage.unit_of_work import UnitOfWork
from app.usecases.shared.shell import Shell

MAX_MESSAGES: Final = 1_000
MAX_TOKENS: Final = 32_000
"""The most tokens of a range, since a level is made from it in one go."""
_TRIES: Final = 5  # an erasure may come between reading and writing; then all is read again


async def segment_of_range(shell: Shell, tenant_id: UUID, conversation_id: UUID, first: int, last: int) -> Segment:
    """The segment with exactly this range; it is made if there is none.

    Raises:
        NotFoundError: There is no such conversation.
        NotFoldedError: The range is not finished, is too long, or nothing is said in it.
    """
    for _ in range(_TRIES):
        async with shell.uow(tenant_id) as uow:
            conversation = await uow.conversations.get(conversation_id)
            if known := await uow.segments.of_ranges(conversation_id, [(first, last)]):
                return known[0]
            policy = shell.resolver(conversation).policy
            spoken = await _finished(uow, conversation, policy, first, last)
        cut = await off_loop(_described_range, spoken, first, last)
        async with shell.uow(tenant_id) as uow:
            present = await uow.conversations.lock(conversation_id)
            if known := await uow.segments.of_ranges(conversation_id, [(first, last)]):
                return known[0]
            if present.content_epoch == conversation.content_epoch:
                segment = await _store_segment(uow, conversation_id, cut, shell.clock.now())
                await uow.commit()
                return segment
    raise ConflictError("the conversation changes too fast; try again")


async def _finished(
    uow: UnitOfWork, conversation: Conversation, policy: CompactionPolicy, first: int, last: int
) -> list[Message]:
    """The messages in the range that say something."""
    if last < first or last > conversation.last_seq:
        raise _range_error(f"the conversation ends with message {conversation.last_seq}: choose an earlier range")
    if last - first >= MAX_MESSAGES:
        raise _range_error(f"a range may have at most {MAX_MESSAGES} messages: choose a shorter one")
    outline = await uow.messages.outline(
        conversation.id, after_seq=first - 1, limit=last - first + 1 + MESSAGES_READ_AFTER_RANGE
    )
    complete = not outline or outline[-1].seq == conversation.last_seq
    if not is_complete_range(outline, last, complete=complete, estimator=policy.estimator):
        raise _range_error(
            "only finished messages have levels: the range holds a question that is not answered yet, or parts a tool"
            " call from its result"
        )
    if sum(item.token_count for item in outline if item.seq <= last) > MAX_TOKENS:
        raise _range_error(f"a range may have at most {MAX_TOKENS} tokens: choose a shorter one")
    spoken = [one for one in await uow.messages.between(conversation.id, first, last) if one.status != "erased"]
    if not spoken:
        raise _range_error("nothing is said in this range")
    return spoken


def _range_error(message: str) -> NotFoldedError:
    return NotFoldedError.of("to_seq", message)


def _described_range(spoken: Sequence[Message], first: int, last: int) -> CutSegment:
    return replace(describe(redact_messages(spoken)), from_seq=first, to_seq=last)


async def _store_segment(uow: UnitOfWork, conversation_id: UUID, cut: CutSegment, now: datetime) -> Segment:
    taken = await uow.segments.ids_like(conversation_id, [stem_of(cut.topic)])
    id_ = ids_for([cut.topic], taken)[0]
    segment = cut.stored_as(id_, conversation_id, created_at=now, is_current=False)
    await uow.segments.add([segment])
    return segment
