"""Starting a chat turn: everything of its first transaction, and the task that goes on from there."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from app.core.model.conversation import Conversation, Message
from app.core.model.errors import (
    ConversationMovedOnError,
    FieldError,
    InvalidInputError,
    TurnInProgressError,
)
from app.core.model.records import Event, Turn
from app.core.retrieval.serving import Passage
from app.storage.unit_of_work import UnitOfWork
from app.usecases.chat.mirroring import Mirrors
from app.usecases.chat.regenerating import SUPERSEDED, supersede_reply
from app.usecases.chat.relaying import Seal, relay
from app.usecases.chat.replaying import replayed
from app.usecases.chat.turn import Started, TurnRunner, ref_of
from app.usecases.chat.turn_end import tell_failed
from app.usecases.chat.turn_handle import TurnHandle, created_event
from app.usecases.compaction.commands import compact_command
from app.usecases.compaction.due import claim_in_turn, due_before_call
from app.usecases.compaction.inline import InlineCompaction
from app.usecases.context.recalling import Asked
from app.usecases.history.appending import (
    MessageDraft,
    append,
    check_expected_last,
    refuse_too_large,
    refuse_without_room,
)
from app.usecases.shared.idempotency import Idem, done_before, record
from app.usecases.shared.resolve import Resolved
from app.usecases.shared.shell import Shell
from app.usecases.shared.waiting import waiting_message

RETRY_AFTER = 2.0  # seconds that a second turn is asked to wait
LAST_WORDS = 2.0  # seconds for a cancelled turn to end its row


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatInput:
    """What a client says; without ``content`` the last unanswered user message is answered."""

    content: str | None = None
    event_type: str = "casual"
    model: str | None = None
    expected_last_message_id: UUID | None = None
    recall: bool | None = None
    """Overrides the policy for this turn."""
    passages: tuple[Passage, ...] = ()
    """Served before the message, beside what is recalled."""
    regenerates: bool = False
    """Whether the last reply is made again: it gives way, and the message before it is answered."""

    @property
    def asked(self) -> Asked:
        """What to recall."""
        return Asked(in_turn=True, recall=self.recall, passages=self.passages)


class ChatService:
    """Starts turns; each runs in a task of its own, whatever becomes of its client."""

    def __init__(self, shell: Shell, inline: InlineCompaction, runner: TurnRunner) -> None:
        self._shell = shell
        self._inline = inline
        self._runner = runner
        self._mirrors = Mirrors(shell)
        self._handles: dict[UUID, TurnHandle] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(
        self, tenant_id: UUID, conversation_id: UUID, given: ChatInput, *, idem: Idem | None = None
    ) -> TurnHandle:
        """Store the message and start the turn. Every 4xx is raised here, before anything is stored."""
        if given.model is not None:
            await self._shell.models.prepare(given.model)
        shell = self._shell
        async with shell.work.on_record(tenant_id, conversation_id, "append"), shell.uow(tenant_id) as uow:
            before = await done_before(uow, idem, self._shell.clock.now())
            if before is not None:
                first = await self._first(uow, before)
                if first is not None:
                    return first
            conversation = await uow.conversations.lock(conversation_id)
            started = await self._begin(uow, conversation, given, before)
            await record(uow, idem, ref_of(started.turn))
            await uow.commit()
        handle = self._spawn(_with_events(started, uow.committed_events), uow.committed_events)
        await self._shell.outbox.deliver(uow.committed_events, [started.job] if started.job else [])
        return handle

    async def follow(self, tenant_id: UUID, conversation_id: UUID) -> TurnHandle | None:
        """The running turn from its beginning, in whichever process it runs; ``None`` when none runs.

        Raises:
            NotFoundError: The tenant has no such conversation.
        """
        async with self._shell.uow(tenant_id) as uow:
            await uow.conversations.get(conversation_id)
            turn = await uow.turns.running(conversation_id)
        return None if turn is None else self._followed(turn)

    async def follow_turn(self, tenant_id: UUID, turn_id: UUID) -> TurnHandle:
        """A turn from its beginning; of one that has ended the message, the reply at once, and the end.

        Raises:
            NotFoundError: The tenant has no such turn.
        """
        async with self._shell.uow(tenant_id) as uow:
            turn = await uow.turns.get(turn_id)
            if turn.status != "running":
                return await replayed(uow, turn, self._shell.resolver)
        return self._followed(turn)

    async def interrupt(self, tenant_id: UUID, conversation_id: UUID) -> Turn | None:
        """Stop the running reply, in whichever process it runs; ``None`` when none runs."""
        async with self._shell.uow(tenant_id) as uow:
            await uow.conversations.get(conversation_id)
            turn = await uow.turns.request_interrupt(conversation_id)
            await uow.commit()
        if turn is not None:
            await self._shell.bus.hint(conversation_id, "interrupt")
        return turn

    async def close(self, patience: float) -> None:
        """Let running turns finish for ``patience`` seconds, then end them."""
        await self._mirrors.close()
        if not self._tasks:
            return
        _, late = await asyncio.wait(self._tasks, timeout=patience)
        for task in late:
            task.cancel()
        if late:
            await asyncio.wait(late, timeout=LAST_WORDS)

    async def _begin(
        self, uow: UnitOfWork, conversation: Conversation, given: ChatInput, before: Mapping[str, Any] | None
    ) -> Started:
        """Everything of the first transaction but its commit."""
        if await uow.turns.running(conversation.id) is not None:
            raise _turn_in_progress()
        dead = await uow.turns.fail_dead(conversation.id)
        if dead is not None:  # sooner than any sweeper
            await tell_failed(uow, dead, self._shell.clock.now())
        message, resolved = await self._message(uow, conversation, given, before)
        now = self._shell.clock.now()
        turn = await uow.turns.start(
            Turn(
                id=self._shell.new_id(),
                tenant_id=conversation.tenant_id,
                conversation_id=conversation.id,
                message_id=message.id,
                planned_reply_id=self._shell.new_id(),
                stream_key=Seal.new_key(),
                lease_until=now,
                started_at=now,
            )
        )
        if turn is None:
            raise _turn_in_progress()
        asked = replace(given.asked, record_id=turn.id)
        started = Started(turn=turn, message=message, resolved=resolved, model=given.model, asked=asked)
        return started if message.is_command else await self._with_claim(uow, started)

    async def _message(
        self, uow: UnitOfWork, conversation: Conversation, given: ChatInput, before: Mapping[str, Any] | None
    ) -> tuple[Message, Resolved]:
        """The message to answer: the new one, or the one that waits."""
        if before is not None:
            return await self._taken_up(uow, conversation, UUID(before["message_id"]))
        check_expected_last(conversation, given.expected_last_message_id)
        if given.regenerates:
            answered = await supersede_reply(uow, self._shell, conversation)
            return answered, self._shell.resolver(await uow.conversations.get(conversation.id))
        if given.content is None:
            return await self._unanswered(uow, conversation)
        command = compact_command(given.content) is not None
        draft = MessageDraft(
            role="user",
            content=given.content,
            event_type="command" if command else given.event_type,
            is_command=command,
        )
        resolved = self._shell.resolver(conversation, model=given.model)
        refuse_too_large(resolved, [draft])
        if not command:
            refuse_without_room(resolved, draft)
        messages, resolved = await append(uow, self._shell, conversation, [draft])
        return messages[0], resolved

    async def _unanswered(self, uow: UnitOfWork, conversation: Conversation) -> tuple[Message, Resolved]:
        """The user's message that nobody answered."""
        waiting = await waiting_message(uow, conversation.id)
        if waiting is None:
            message = "content cannot be empty: there is no unanswered user message"
            raise InvalidInputError(message, errors=[FieldError(field="content", message=message)])
        return waiting, self._shell.resolver(conversation)

    async def _taken_up(
        self, uow: UnitOfWork, conversation: Conversation, message_id: UUID
    ) -> tuple[Message, Resolved]:
        """The message of a turn that died, if nothing came after it but its own calls and their results."""
        message = await uow.messages.get(conversation.id, message_id)
        waiting = None if message.is_command else await waiting_message(uow, conversation.id)
        if not message.is_command and (waiting is None or waiting.id != message_id):
            raise ConversationMovedOnError("other messages came after this one: send it again under a new key")
        return message, self._shell.resolver(conversation)

    async def _with_claim(self, uow: UnitOfWork, started: Started) -> Started:
        """Before the call: an inline claim where one is due, else a background one."""
        resolved = started.resolved
        due = due_before_call(resolved, self._shell)
        if due is not None:
            return replace(started, claim=await self._inline.claim(uow, resolved, due))
        return replace(started, job=await claim_in_turn(uow, self._shell, resolved))

    async def _first(self, uow: UnitOfWork, ref: Mapping[str, Any]) -> TurnHandle | None:
        """The turn that answers the first request, or its response; ``None`` when it died and is to be taken up."""
        turn = await uow.turns.get(UUID(ref["turn_id"]))
        running = await uow.turns.running(turn.conversation_id)
        if running is not None and running.id == turn.id:
            return self._followed(running)
        turn = await uow.turns.get(turn.id)  # it may have ended between the two looks
        return None if turn.reply_id is None else await replayed(uow, turn, self._shell.resolver)

    def _followed(self, turn: Turn) -> TurnHandle:
        """A running turn; one of this process whose task is about to begin is followed like any other's."""
        return self._handles.get(turn.id) or self._mirrors.follow(turn)

    def _spawn(self, started: Started, events: Sequence[Event]) -> TurnHandle:
        turn = started.turn
        handle = self._handles[turn.id] = TurnHandle(monotonic=self._shell.clock.monotonic)
        handle.emit(created_event(started.message, turn, started.created_number))
        handle.emit_all([event for event in events if event.type == SUPERSEDED])
        running = self._begin_task(self._runner.run(started, handle))
        running.add_done_callback(lambda _: self._handles.pop(turn.id))
        self._begin_task(relay(turn, handle, self._shell.streams, self._shell.clock))
        return handle

    def _begin_task(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


def _with_events(started: Started, events: Sequence[Event]) -> Started:
    """Where the first transaction left the conversation's event numbers."""
    created = next((event.number for event in events if event.type == "message.created"), None)
    return replace(started, created_number=created, events_after=created or 0)


def _turn_in_progress() -> TurnInProgressError:
    return TurnInProgressError(
        "a turn of this conversation is running: wait for it, or interrupt it", retry_after=RETRY_AFTER
    )
