"""Finds anchors of messages that were stored without looking for any: once they are needed, or by the worker.

Nothing serves or counts a conversation's anchors before its first fold, and most conversations are never folded. So
until then an append only records from which message on anchors are due. They are found before anybody reads anchors,
and before the first fold; if many messages are due, the worker finds them earlier.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, Literal
from uuid import UUID

import structlog

from app.core.model.anchors import Anchor
from app.core.model.conversation import Conversation, Message
from app.core.model.errors import TooLargeError
from app.off_loop import BYTES_PER_ITEM, MAX_BYTES_ON_LOOP, off_loop
from app.storage.unit_of_work import UnitOfWork
from app.usecases.compaction.claiming import refresh_sizes
from app.usecases.history.anchoring import (
    MAX_ACTIVE_ANCHORS,
    NO_ANCHOR_EFFECTS,
    AnchorEffects,
    effects_of,
    message_statements,
    store_anchors,
    update_if_active,
)
from app.usecases.history.holding import renew_layout
from app.usecases.ports import NewId
from app.usecases.shared.retries import Compute
from app.usecases.shared.shell import Shell

STEP: Final = 100
"""Messages that are read in one step. Once this many are due, the worker is asked to find their anchors."""
_STEP_BYTES: Final = 1_000_000
"""The most bytes of text that are read in one step; a longer message is read alone."""

Outcome = Literal["all", "some", "by_others"]
"""``all``: all due anchors are found. ``some``: the time ended before. ``by_others``: another process finds them."""

log = structlog.get_logger(__name__)


class AnchorsDueError(Exception):
    """Anchors are needed, but some messages have not been searched for them yet."""


def defers_anchors(conversation: Conversation) -> bool:
    """Whether appends leave anchors to be found later: true until the first fold."""
    return conversation.state_version == 0


def due_after(conversation: Conversation, stored: Sequence[Message]) -> int | None:
    """The first message in which anchors are due, once these are stored after the others."""
    if conversation.anchors_due_from is not None:
        return conversation.anchors_due_from
    return next((message.seq for message in stored if _is_spoken(message)), None)


def ask_worker(shell: Shell, before: Conversation, after: Conversation) -> None:
    """Ask the worker to find anchors, each time that a further step of messages is due."""
    first = after.anchors_due_from
    if first is not None and (after.last_seq - first + 1) // STEP > max(before.last_seq - first + 1, 0) // STEP:
        shell.outbox.send_later("anchors", after.id)


async def find_due_anchors(
    shell: Shell, tenant_id: UUID, conversation_id: UUID, *, seconds: float = math.inf, gives_way: bool = False
) -> Outcome:
    """Find the anchors that are due, a step at a time; nothing is locked while texts are read.

    A message that takes too long to read has no anchors.

    Args:
        shell: The ports.
        tenant_id: The tenant.
        conversation_id: The conversation.
        seconds: No further step begins after this time; one step is always made.
        gives_way: Stop if another process has found the anchors of the same step meanwhile; that process goes on.

    Raises:
        NotFoundError: There is no such conversation.
    """
    limit, until = STEP, shell.clock.monotonic() + seconds
    while True:
        async with shell.uow(tenant_id) as uow:
            conversation = await uow.conversations.get(conversation_id)
            due = await _due(uow, shell, conversation, shell.clock.now(), limit=limit)
        if due is None:
            return "all"
        try:
            effects = await _compute_effects(shell, conversation, due)
        except TooLargeError:
            if limit > 1:
                limit //= 2
                continue
            log.warning("anchors.not_read", conversation_id=str(conversation_id), seq=due.first_seq)
            limit, effects = STEP, NO_ANCHOR_EFFECTS
        is_first = await _store_if_unchanged(shell, conversation, due, effects)
        if gives_way and not is_first:
            return "by_others"
        if shell.clock.monotonic() >= until:
            return "some"


async def find_due_anchors_within(
    uow: UnitOfWork, shell: Shell, conversation: Conversation, *, compute: Compute
) -> Conversation:
    """Find due anchors within the transaction of a *locked* conversation that is about to serve them.

    Returns the conversation as it is afterwards.
    """
    while True:
        # The time is the same at each try of the transaction, and so is the result.
        now = conversation.last_message_at or conversation.created_at
        due = await _due(uow, shell, conversation, now, limit=STEP)
        if due is None:
            return conversation
        conversation = await _store_effects(uow, conversation, due, await compute(effects_of_due, due, size=due.size))


@dataclass(frozen=True, slots=True, kw_only=True)
class DueMessages:
    """Messages in which anchors are to be found, and the anchors that exist already."""

    first_seq: int
    next_seq: int | None
    """The first message of the next step; ``None`` at the end."""
    messages: tuple[Message, ...]
    before: tuple[Anchor, ...]
    """Active anchors of earlier messages."""
    present: tuple[Anchor, ...]
    """Anchors of these messages that are stored already, such as those that a fork took over."""
    new_id: NewId
    now: datetime

    @property
    def size(self) -> int:
        """The approximate size in bytes."""
        texts = sum(BYTES_PER_ITEM + len(message.content) for message in self.messages)
        return texts + BYTES_PER_ITEM * (len(self.before) + len(self.present))


def effects_of_due(due: DueMessages) -> AnchorEffects:
    """The anchors of due messages. Those of a superseded reply are withdrawn, and change nothing."""
    present = {_place_of(anchor): anchor for anchor in due.present}
    spoken = [message for message in due.messages if _is_spoken(message) and message.status != "superseded"]
    parsed = message_statements(spoken, new_id=due.new_id, now=due.now)
    found = [present.get(_place_of(anchor), anchor) for anchor in parsed.found]
    effects = effects_of(replace(parsed, found=found), due.before)
    made = [anchor for anchor in effects.new if _place_of(anchor) not in present]
    return AnchorEffects(new=(*made, *_withdrawn(due, present)), changed=effects.changed)


def _withdrawn(due: DueMessages, present: Mapping[tuple[int, int, str], Anchor]) -> list[Anchor]:
    superseded = [message for message in due.messages if _is_spoken(message) and message.status == "superseded"]
    found = message_statements(superseded, new_id=due.new_id, now=due.now).found
    return [replace(anchor, status="withdrawn") for anchor in found if _place_of(anchor) not in present]


def _place_of(anchor: Anchor) -> tuple[int, int, str]:
    # No two anchors of a conversation have the same place.
    return anchor.seq, anchor.offset, anchor.type


def _is_spoken(message: Message) -> bool:
    return message.is_part_of_talk and bool(message.content.strip())


async def _due(
    uow: UnitOfWork, shell: Shell, conversation: Conversation, now: datetime, *, limit: int
) -> DueMessages | None:
    """The next step, or ``None`` where nothing is due."""
    first = conversation.anchors_due_from
    if first is None:
        return None
    messages = await uow.messages.oldest(conversation.id, from_seq=first, limit=limit, max_bytes=_STEP_BYTES)
    last = messages[-1].seq if messages else conversation.last_seq
    return DueMessages(
        first_seq=first,
        next_seq=last + 1 if last < conversation.last_seq else None,
        messages=tuple(messages),
        before=tuple(await uow.anchors.active(conversation.id, through_seq=first - 1, limit=MAX_ACTIVE_ANCHORS)),
        present=tuple(await uow.anchors.between(conversation.id, first, last)),
        new_id=shell.new_id,
        now=now,
    )


async def _compute_effects(shell: Shell, conversation: Conversation, due: DueMessages) -> AnchorEffects:
    if due.size <= MAX_BYTES_ON_LOOP:
        return await off_loop(effects_of_due, due)
    return await shell.processes.run(conversation.tenant_id, effects_of_due, due)


async def _store_if_unchanged(shell: Shell, read_of: Conversation, due: DueMessages, effects: AnchorEffects) -> bool:
    """Store what was read, unless something was erased meanwhile.

    Returns whether no other process had stored these anchors first.
    """
    async with shell.uow(read_of.tenant_id) as uow:
        present = await uow.conversations.lock(read_of.id)
        if (present.anchors_due_from, present.content_epoch) == (due.first_seq, read_of.content_epoch):
            if due.next_seq is None and read_of.last_seq < present.last_seq:  # further messages came meanwhile
                due = replace(due, next_seq=read_of.last_seq + 1)
            kept = await _store_effects(uow, present, due, effects)
            if kept.layout is not None:  # the state is an older version, which was laid out again without these anchors
                await refresh_sizes(uow, await renew_layout(uow, shell, shell.resolver(kept)))
            await uow.commit()
    return present.anchors_due_from == due.first_seq


async def _store_effects(
    uow: UnitOfWork, conversation: Conversation, due: DueMessages, effects: AnchorEffects
) -> Conversation:
    await store_anchors(uow, conversation, await update_if_active(uow, conversation, effects))
    await uow.conversations.note_due_anchors(conversation.id, due.next_seq)
    return replace(conversation, anchors_due_from=due.next_seq)
