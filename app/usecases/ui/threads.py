"""Reads conversations for frontends of the AI SDK."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from app.core.model.conversation import Message
from app.core.model.records import ERASURE_TRIGGER, Page
from app.storage.repositories.cursor import encode
from app.storage.repositories.sizes import READ_BYTES
from app.storage.unit_of_work import UnitOfWork
from app.usecases.shared.exchange import REACH, is_inside_answer
from app.usecases.shared.shell import Service
from app.usecases.ui.entries import (
    ANSWER_ROLES,
    Entry,
    Group,
    entries_of,
    group_around,
    groups_of,
    turns_of,
)

SHOWN_STATUSES = frozenset({"running", "applied", "skipped", "rejected", "failed", "superseded"})
"""Statuses of compactions that a transcript shows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Passages:
    """Recalled messages, and the current segments that contain them."""

    messages: Mapping[int, Message] = field(default_factory=dict)
    """The messages by position, without those that were erased meanwhile."""
    segments: Mapping[int, str] = field(default_factory=dict)
    """The ids of the segments by position."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Thread:
    """A page of a conversation."""

    entries: tuple[Entry, ...]
    """The entries in the requested order."""
    passages: Passages
    cursor: str | None
    own_tools: frozenset[str]
    """Names of the tools that the service runs itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Beginning:
    """Where the answer of a turn begins."""

    id: UUID
    """The id of the entry that the answer belongs to."""
    before: Group
    """What the entry contained before the turn: calls and their results."""


class ThreadService(Service):
    """Reads entries: a page of them, or the one that a turn belongs to."""

    @property
    def own_tools(self) -> frozenset[str]:
        """Names of the tools that the service runs itself."""
        return self._shell.resolver.own_tools

    async def page(self, tenant_id: UUID, conversation_id: UUID, page: Page) -> Thread:
        """A page of stored messages as entries. An answer at the end of the page is read to its own end.

        What a running turn has stored of its answer is left out, since its stream sends it.
        """
        async with self._shell.uow(tenant_id) as uow:
            conversation = await uow.conversations.get(conversation_id)
            found, _ = await uow.messages.page(conversation_id, page)
            messages = await _with_whole_answer(uow, sorted(found, key=lambda message: message.seq), page)
            shown = await uow.messages.with_reasoning(await uow.contents.with_data(messages))
            entries = await _entries(uow, conversation_id, shown)
            passages = await _passages(uow, conversation_id, [seq for entry in entries for seq in entry.recalled])
        return Thread(
            entries=tuple(entries if page.order == "asc" else reversed(entries)),
            passages=passages,
            cursor=_next_page_cursor(messages, page, conversation.last_seq),
            own_tools=self.own_tools,
        )

    async def beginning(self, tenant_id: UUID, conversation_id: UUID, turn_id: UUID) -> Beginning:
        """The entry that a turn continues or begins. Raises ``NotFoundError``."""
        async with self._shell.uow(tenant_id) as uow:
            turn = await uow.turns.get(turn_id)
            answered = await uow.messages.get(conversation_id, turn.message_id)
            near = await _around(uow, answered)
            begun_at = turn.begun_at_seq or answered.seq
            earlier = groups_of(message for message in near if message.seq <= begun_at)
            goes_on = bool(earlier) and is_inside_answer(earlier[-1][-1])
            before = tuple(await uow.messages.with_reasoning(earlier[-1])) if goes_on else ()
            since = await _message_id_at(uow, conversation_id, before[0].seq - 1) if before else None
            turns = await uow.turns.between(conversation_id, since, turn.id) if before else []
        live, _ = turns_of(before, None, turns) if before else ([], [])
        first = live[0] if live else turn
        return Beginning(id=first.planned_reply_id or first.reply_id or first.id, before=before)

    async def passages(self, tenant_id: UUID, conversation_id: UUID, seqs: Sequence[int]) -> Passages:
        """The messages at these positions, with their segments."""
        async with self._shell.uow(tenant_id) as uow:
            return await _passages(uow, conversation_id, seqs)


async def _around(uow: UnitOfWork, message: Message) -> list[Message]:
    id_, seq = message.conversation_id, message.seq
    earlier = await uow.messages.all_between(id_, max(seq - REACH, 1), seq, max_bytes=READ_BYTES, newest=True)
    return [*earlier, *await uow.messages.all_between(id_, seq + 1, seq + REACH, max_bytes=READ_BYTES)]


async def _with_whole_answer(uow: UnitOfWork, messages: list[Message], page: Page) -> list[Message]:
    """A page, and the rest of the answer at its end."""
    if not messages:
        return []
    conversation_id, first, last = messages[0].conversation_id, messages[0].seq, messages[-1].seq
    if page.order == "asc":
        further = await uow.messages.all_between(conversation_id, last + 1, last + REACH, max_bytes=READ_BYTES)
        _, end = group_around(groups_of([*messages, *further]), last)
        return [*messages, *(message for message in further if message.seq <= end)]
    earlier = await uow.messages.all_between(
        conversation_id, max(first - REACH, 1), first - 1, max_bytes=READ_BYTES, newest=True
    )
    begin, end = group_around(groups_of([*earlier, *messages]), first - 1)
    return [*(message for message in earlier if begin <= message.seq and end >= first), *messages]


def _next_page_cursor(messages: Sequence[Message], page: Page, last_seq: int) -> str | None:
    if not messages:
        return None
    seq, end = (messages[-1].seq, last_seq) if page.order == "asc" else (messages[0].seq, 1)
    return None if seq == end else encode((seq,))


async def _entries(uow: UnitOfWork, conversation_id: UUID, messages: Sequence[Message]) -> list[Entry]:
    if not messages:
        return []
    running = await uow.turns.running(conversation_id)
    since = await _message_id_at(uow, conversation_id, messages[0].seq - 1)
    until = await _message_id_at(uow, conversation_id, messages[-1].seq + 1) or (running.id if running else None)
    begun_at = math.inf if running is None or running.begun_at_seq is None else running.begun_at_seq
    messages_to_show = [message for message in messages if message.seq <= begun_at or message.role not in ANSWER_ROLES]
    turns = await uow.turns.between(conversation_id, since, until)
    ids_on_page = {message.id for message in messages}
    first_beyond = min((turn.id for turn in turns if turn.reply_id and turn.reply_id not in ids_on_page), default=until)
    rows = await uow.compactions.between(conversation_id, since, first_beyond)
    shown = [row for row in rows if row.status in SHOWN_STATUSES and row.trigger != ERASURE_TRIGGER]
    return entries_of(groups_of(messages_to_show), turns, shown)


async def _message_id_at(uow: UnitOfWork, conversation_id: UUID, seq: int) -> UUID | None:
    found = await uow.messages.all_between(conversation_id, seq, seq)
    return found[0].id if found else None


async def _passages(uow: UnitOfWork, conversation_id: UUID, seqs: Sequence[int]) -> Passages:
    wanted = sorted(set(seqs))
    if not wanted:
        return Passages()
    return Passages(
        messages={message.seq: message for message in await uow.messages.at_seqs(conversation_id, wanted)},
        segments=await uow.segments.covering(conversation_id, wanted),
    )
