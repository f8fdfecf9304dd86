"""Forks: a request that continues from a position before a conversation's end gets a conversation of its own.

The messages up to there are copied to the same positions, with the pins and anchors that users chose. A few are copied
at once, many by the worker. A fork is independent: what is erased in one of the two stays in the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final
from uuid import UUID

import structlog

from app.core.model.conversation import Conversation, Message
from app.core.model.errors import DependencyUnavailableError, ForkInProgressError, NotFoundError
from app.core.model.fieldwise import from_same_fields
from app.core.text.token_counts import Weight
from app.storage.repositories.sizes import READ_BYTES
from app.storage.unit_of_work import UnitOfWork
from app.usecases.compaction.claiming import refresh_sizes
from app.usecases.compaction.due_triggers import claim_at_rest
from app.usecases.files.attaching import fork_with_files
from app.usecases.history.appending import FORK_RETRY_AFTER, append
from app.usecases.history.drafts import MessageDraft
from app.usecases.history.removing import delete_conversation
from app.usecases.ports import JobQueue
from app.usecases.shared.idempotency import Idem, claim_key, record
from app.usecases.shared.shell import Shell

AT_ONCE: Final = 1_000
"""How many messages are copied while the client waits, if they have at most ``READ_BYTES`` together."""
STEP: Final = 500
"""How many messages the worker copies in one transaction."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ForkPoint:
    """The position at which a conversation is forked; later messages are not copied."""

    conversation_id: UUID
    through_seq: int
    """The last message that belongs to the fork."""


class ForkService:
    """Copies the beginnings of conversations."""

    def __init__(self, shell: Shell, queue: JobQueue) -> None:
        self._shell = shell
        self._queue = queue

    async def fork(self, tenant_id: UUID, place: ForkPoint, idem: Idem) -> UUID:
        """The fork at that position for that request. A repeated request under the key gets the same fork.

        Raises:
            ForkInProgressError: The fork is long and still being copied.
            NotFoundError: There is no such conversation.
        """
        fork = await self._make_fork(tenant_id, place, idem, self._shell.new_id())
        if fork.is_being_copied and place.through_seq <= AT_ONCE:
            fork = await self._copied_further(fork, claims=False)
        if fork.is_being_copied and not await self._queue.send_fork(fork.id):
            fork = await self._copied_here(fork)
        if not fork.is_being_copied:
            return fork.id
        raise ForkInProgressError(
            f"the {place.through_seq} messages up to there are being copied into a conversation of this request's own:"
            " send it again in a moment",
            retry_after=FORK_RETRY_AFTER,
        )

    async def drop_if_unused(self, tenant_id: UUID, fork_id: UUID, idem: Idem) -> None:
        """Delete a fork whose request was refused, with the key ``idem`` under which it was made.

        It stays if another request went on in it.
        """
        with suppress(NotFoundError):
            async with self._shell.uow(tenant_id) as uow:
                fork = await uow.conversations.lock(fork_id)
                if fork.last_seq != fork.forked_through or await uow.turns.newest(fork_id) is not None:
                    return
                await delete_conversation(uow, fork_id)
                await uow.idempotency.delete(idem.key)
                await uow.commit()

    async def work(self, conversation_id: UUID) -> None:
        """Copy the rest of a fork's messages, in the worker. It does no harm if two workers do so at once."""
        shell = self._shell
        try:
            async with shell.uow(None) as uow:
                fork = await uow.conversations.get(conversation_id)
            while fork.is_being_copied:
                fork = await self._copied_further(fork)
        except NotFoundError:
            log.info("fork.gone", conversation_id=str(conversation_id))
        except DependencyUnavailableError as error:
            log.warning("fork.not_now", conversation_id=str(conversation_id), reason=error.stable_code)

    async def _copied_here(self, fork: Conversation) -> Conversation:
        """Copy within the request, since no worker can be told while the broker is away.

        It takes at most as long as a client is told to wait.
        """
        clock = self._shell.clock
        until = clock.monotonic() + FORK_RETRY_AFTER
        while fork.is_being_copied and clock.monotonic() < until:
            fork = await self._copied_further(fork)
        return fork

    async def _make_fork(self, tenant_id: UUID, place: ForkPoint, idem: Idem, id_: UUID) -> Conversation:
        """The transaction that makes the empty fork.

        Nothing is copied in it: whoever erases all conversations of a user has to see the fork before it has a text.
        """
        async with self._shell.uow(tenant_id) as uow:
            before = await claim_key(uow, idem, self._shell.clock.now())
            if before is not None:
                fork = await uow.conversations.get(UUID(before["fork_id"]))
            else:
                fork = self._new(await uow.conversations.get(place.conversation_id), place, id_)
                await uow.conversations.add(fork)
                fork = await refresh_sizes(uow, self._shell.resolver(fork))
                await record(uow, idem, {"fork_id": str(fork.id)})
                await uow.commit()
        return fork

    async def _copied_further(self, fork: Conversation, *, claims: bool = True) -> Conversation:
        """The fork with as many further messages as are copied at once.

        ``claims``: when all are copied, a compaction that is due is claimed. A turn that begins now does that itself.
        """
        shell = self._shell
        async with shell.uow(fork.tenant_id) as uow:
            fork = await self._with_next_copied(uow, await uow.conversations.lock(fork.id))
            if claims and not fork.is_being_copied and await uow.conversations.is_there(fork.id):
                await claim_at_rest(uow, shell, shell.resolver(fork))
            await uow.commit()
        return fork

    def _new(self, source: Conversation, place: ForkPoint, id_: UUID) -> Conversation:
        """An empty conversation with the settings of the source."""
        now = self._shell.clock.now()
        return Conversation(
            id=id_,
            tenant_id=source.tenant_id,
            title=source.title,
            user_id=source.user_id,
            locale=source.locale,
            system_prompt=source.system_prompt,
            preset=source.preset,
            preset_version=source.preset_version,
            policy=source.policy,
            metadata=source.metadata,
            forked_from=source.id,
            forked_through=place.through_seq,
            created_at=now,
            updated_at=now,
        )

    async def _with_next_copied(self, uow: UnitOfWork, fork: Conversation) -> Conversation:
        """The *locked* fork with as many further messages as are copied at once."""
        source = fork.forked_from
        if source is None or not fork.is_being_copied:
            return fork
        drafts = await _next_copies(uow, fork) if await uow.conversations.is_there(source) else []
        if not drafts:  # the source was deleted meanwhile
            await uow.conversations.delete(fork.id)
            return replace(fork, forked_through=fork.last_seq)
        _, resolved = await append(uow, self._shell, fork, drafts, is_copy=True)
        if resolved.conversation.is_being_copied:
            return resolved.conversation
        await self._carry_chosen_anchors(uow, resolved.conversation, source)
        return await fork_with_files(uow, self._shell, resolved.conversation, source)

    async def _carry_chosen_anchors(self, uow: UnitOfWork, fork: Conversation, source: UUID) -> None:
        chosen = await uow.anchors.chosen(source, through_seq=fork.last_seq)
        there = await uow.messages.at_seqs(fork.id, sorted({anchor.seq for anchor in chosen})) if chosen else []
        ids = {message.seq: message.id for message in there}
        await uow.anchors.choose(
            [
                replace(anchor, id=self._shell.new_id(), conversation_id=fork.id, message_id=ids[anchor.seq])
                for anchor in chosen
            ]
        )


async def _next_copies(uow: UnitOfWork, fork: Conversation) -> list[MessageDraft]:
    source, first, last = fork.forked_from, fork.last_seq + 1, fork.forked_through or 0
    if source is None or first > last:
        return []
    size = AT_ONCE if last <= AT_ONCE else STEP
    through = min(last, first + size - 1)
    found = await uow.messages.all_between(source, first, through, max_bytes=READ_BYTES)
    if found and found[-1].seq == last:
        found = _with_answer_in_force(found)
    return [_copied_draft(message) for message in found]


def _with_answer_in_force(messages: Sequence[Message]) -> list[Message]:
    """The last messages of a fork: the reply that it goes on from is its answer, also if another took its place."""
    at = max((number for number, one in enumerate(messages) if one.role != "tool"), default=0)
    return [
        replace(one, status="complete") if number == at and one.status == "superseded" else one
        for number, one in enumerate(messages)
    ]


def _copied_draft(message: Message) -> MessageDraft:
    weight = Weight(tokens=message.token_count, bytes=message.byte_length)
    return from_same_fields(MessageDraft, message, id=None, reasoning="", weight=weight)
