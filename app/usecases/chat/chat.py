"""Starting a chat turn: everything of its first transaction, and the task that goes on from there."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

from app.core.model.conversation import Conversation
from app.core.model.errors import IdempotencyInProgressError, TurnInProgressError
from app.core.model.records import Event, Turn
from app.storage.unit_of_work import UnitOfWork
from app.usecases.chat.chat_input import ChatInput, ToolResultInput
from app.usecases.chat.opening import opening_of
from app.usecases.chat.reply import finish_of, made_calls
from app.usecases.chat.turn import Started, TurnRunner, ref_of
from app.usecases.chat.turn_end import tell_failed
from app.usecases.chat.turn_handle import ChatEvent, ChatResult, TurnHandle, created_event
from app.usecases.compaction.due import claim_in_turn, due_before_call
from app.usecases.compaction.inline import InlineCompaction
from app.usecases.shared.compaction_views import views_of
from app.usecases.shared.idempotency import Idem, done_before, record
from app.usecases.shared.shell import Shell

__all__ = ["ChatInput", "ChatService", "ToolResultInput"]

RETRY_AFTER = 2.0  # seconds that a second turn is asked to wait
LAST_WORDS = 2.0  # seconds for a cancelled turn to end its row


class ChatService:
    """Starts turns; each runs in a task of its own, whatever becomes of its client."""

    def __init__(self, shell: Shell, inline: InlineCompaction, runner: TurnRunner) -> None:
        self._shell = shell
        self._inline = inline
        self._runner = runner
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
                replayed = await self._replay(uow, before)
                if replayed is not None:
                    return replayed
            conversation = await uow.conversations.lock(conversation_id)
            started = await self._begin(uow, conversation, given, before)
            await record(uow, idem, ref_of(started.turn))
            await uow.commit()
        await self._shell.outbox.deliver(uow.committed_events, [started.job] if started.job else [])
        created = [event for event in uow.committed_events if event.type == "message.created"]
        return self._spawn(_with_events(replace(started, idem=idem), created), created)

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
        opening = await opening_of(uow, self._shell, conversation, given, before)
        now = self._shell.clock.now()
        turn = await uow.turns.start(
            Turn(
                id=self._shell.new_id(),
                tenant_id=conversation.tenant_id,
                conversation_id=conversation.id,
                message_id=opening.message.id,
                lease_until=now,
                started_at=now,
            )
        )
        if turn is None:
            raise _turn_in_progress()
        started = Started(
            turn=turn,
            message=opening.message,
            question=opening.question,
            resolved=opening.resolved,
            brought=given.brought,
            model=given.model,
            asked=replace(given.asked, record_id=turn.id),
        )
        return started if opening.message.is_command else await self._with_claim(uow, started)

    async def _with_claim(self, uow: UnitOfWork, started: Started) -> Started:
        """Before the call: an inline claim where one is due, else a background one."""
        resolved = started.resolved
        due = due_before_call(resolved.bringing(started.brought), self._shell)
        if due is not None:
            return replace(started, claim=await self._inline.claim(uow, resolved, due))
        return replace(started, job=await claim_in_turn(uow, self._shell, resolved))

    async def _replay(self, uow: UnitOfWork, ref: Mapping[str, Any]) -> TurnHandle | None:
        """The first response again; ``None`` when that turn died and is to be taken up again."""
        turn = await uow.turns.get(UUID(ref["turn_id"]))
        if turn.reply_id is None:
            running = await uow.turns.running(turn.conversation_id)
            if running is not None and running.id == turn.id:
                raise IdempotencyInProgressError("the first request with this key still runs", retry_after=RETRY_AFTER)
            turn = await uow.turns.get(turn.id)  # it may have ended between the two looks
        if turn.reply_id is None:
            return None
        rows = [await uow.compactions.get(turn.compaction_id)] if turn.compaction_id else []
        recalled = tuple(ref.get("recalled", ()))
        reply = await uow.messages.get(turn.conversation_id, turn.reply_id)
        open_calls = made_calls(reply, ref.get("open_calls", ()))
        result = ChatResult(
            message=await uow.messages.get(turn.conversation_id, turn.message_id),
            reply=reply,
            gauge=self._shell.resolver(await uow.conversations.get(turn.conversation_id)).gauge,
            compaction=next(iter(await views_of(uow, rows)), None),
            warnings=turn.warnings,
            recalled=recalled,
            segments=tuple(await uow.segments.covering(turn.conversation_id, recalled)),
            open_calls=open_calls,
            finish=finish_of(reply, turn.warnings, open_calls),
        )
        return _replayed(result)

    def _spawn(self, started: Started, created: Sequence[Event]) -> TurnHandle:
        turn, policy = started.turn, started.resolved.policy

        async def abandoned() -> None:
            if policy.on_disconnect == "interrupt":
                await self.interrupt(turn.tenant_id, turn.conversation_id)

        handle = TurnHandle(on_abandoned=abandoned)
        if created:
            handle.emit_all(created)
        else:  # it was there already
            handle.emit(created_event(started.message))
        task = asyncio.create_task(self._runner.run(started, handle))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return handle


def _with_events(started: Started, created: Sequence[Event]) -> Started:
    """Where the first transaction left the conversation's event numbers."""
    return replace(started, events_after=created[0].number) if created else started


def _replayed(result: ChatResult) -> TurnHandle:
    """A repeated stream: the message, the whole reply at once, the end."""
    handle = TurnHandle()
    handle.emit(created_event(result.message))
    handle.emit(ChatEvent(type="reply.delta", data={"text": result.reply.content}))
    handle.emit_calls(result.open_calls)
    ending = "interrupted" if result.reply.status == "interrupted" else "completed"
    handle.emit(ChatEvent(type=f"reply.{ending}", result=result))
    return handle


def _turn_in_progress() -> TurnInProgressError:
    return TurnInProgressError(
        "a turn of this conversation is running: wait for it, or interrupt it", retry_after=RETRY_AFTER
    )
