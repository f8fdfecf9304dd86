"""Starts a chat turn: its whole first transaction, and the task that runs the rest."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any
from uuid import UUID

from app.core.model.conversation import Conversation
from app.core.model.errors import TurnInProgressError
from app.core.model.records import Event, Turn
from app.storage.unit_of_work import UnitOfWork
from app.usecases.admin.limiting import LimitService
from app.usecases.chat.chat_input import ChatInput, ToolResultInput
from app.usecases.chat.failed_turn_event import add_failed_event
from app.usecases.chat.mirroring import Mirrors
from app.usecases.chat.opening import PreparedOpening, opening_of, prepared_opening, refuse_unfit_input
from app.usecases.chat.regenerating import SUPERSEDED
from app.usecases.chat.relaying import Seal, relay
from app.usecases.chat.replaying import replayed
from app.usecases.chat.turn import Started, TurnRunner, ref_of
from app.usecases.chat.turn_handle import ChatEvent, TurnHandle, created_event, ids_of
from app.usecases.compaction.due_triggers import claim_in_turn, due_before_call
from app.usecases.compaction.inline import InlineCompaction
from app.usecases.history.appending import append, check_expected_last, refuse_too_large, refuse_while_copied
from app.usecases.history.preparing import Prepared, prepare_and_run
from app.usecases.ports import Place
from app.usecases.shared.background import begin_task
from app.usecases.shared.idempotency import Idem, claim_key, record
from app.usecases.shared.retries import Compute, Results
from app.usecases.shared.shell import Shell

__all__ = ["ChatInput", "ChatService", "ToolResultInput"]

RETRY_AFTER = 2.0  # seconds after which a refused second turn is told to try again
CANCEL_SECONDS = 2.0  # seconds for a cancelled turn to end its row

NoteTurn = Callable[[UnitOfWork, Turn], Awaitable[None]]
"""A function of the caller that records the turn in the transaction that begins it."""


@dataclass(slots=True)
class _TurnPlace:
    """A place among the running turns. It is taken once, even if the transaction is repeated."""

    limits: LimitService
    place: Place | None = None
    is_taken: bool = False

    async def take(self) -> None:
        """Take the place, unless it is already taken. Raises ``RateLimitedError``."""
        if not self.is_taken:
            self.place = await self.limits.take("running_turns")
            self.is_taken = True

    def release(self) -> None:
        self.limits.release(self.place)


class ChatService:
    """Starts turns. Each runs in a task of its own, which goes on if its client leaves."""

    def __init__(self, shell: Shell, inline: InlineCompaction, runner: TurnRunner, limits: LimitService) -> None:
        self._shell = shell
        self._limits = limits
        self._inline = inline
        self._runner = runner
        self._mirrors = Mirrors(shell)
        self._handles: dict[UUID, TurnHandle] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(
        self,
        tenant_id: UUID,
        conversation_id: UUID,
        given: ChatInput,
        *,
        idem: Idem | None = None,
        note_turn: NoteTurn | None = None,
    ) -> TurnHandle:
        """Store the message and start the turn. Every 4xx is raised here, before anything is stored.

        Raises ``RateLimitedError`` if the caller has as many running turns as it may, has spent as much as it may, or
        follows as many turns by repeated requests as it may.
        """
        shell, turn_place = self._shell, _TurnPlace(self._limits)
        if given.model is not None:
            await shell.models.prepare(given.model)
        await refuse_unfit_input(shell, given)
        try:
            async with shell.work_records.record_work(tenant_id, conversation_id, "append"):
                begun = await prepare_and_run(
                    partial(prepared_opening, shell, tenant_id, conversation_id, given, idem),
                    partial(self._open_turn, tenant_id, conversation_id, given, idem, note_turn, turn_place),
                )
            if isinstance(begun, TurnHandle):
                turn_place.release()
                return begun
            started, events = begun
            handle = self._spawn(started, events, turn_place.place)
        except BaseException:
            turn_place.release()
            raise
        return handle

    async def _open_turn(
        self,
        tenant_id: UUID,
        conversation_id: UUID,
        given: ChatInput,
        idem: Idem | None,
        note_turn: NoteTurn | None,
        turn_place: _TurnPlace,
        ready: PreparedOpening,
        results: Results,
    ) -> TurnHandle | tuple[Started, Sequence[Event]]:
        """Run the first transaction and return its events; or return the turn that the same request began before."""
        shell = self._shell
        async with shell.uow(tenant_id) as uow:
            uow.waits_for_delivery = False  # its task runs the turn also if the caller is cancelled now
            before = await claim_key(uow, idem, shell.clock.now())
            if before is not None:
                first = await self._first_request_answer(uow, before)
                if first is not None:
                    return first
            await turn_place.take()
            is_command = any(draft.is_command for draft in ready.new_messages.drafts)
            if shell.models.chat(given.model).profile.metered and not is_command:  # a command asks no chat model
                await self._limits.check_chat(uow)
            conversation = await uow.conversations.lock(conversation_id)
            started = await self._begin(uow, conversation, given, before, ready, results)
            await record(uow, idem, ref_of(started.turn))
            if note_turn is not None:
                await note_turn(uow, started.turn)
            await uow.commit()
        return started, uow.committed_events

    async def follow(self, tenant_id: UUID, conversation_id: UUID) -> TurnHandle | None:
        """Follow the running turn from its beginning, in whichever process it runs; ``None`` if no turn runs.

        Raises:
            NotFoundError: The tenant has no such conversation.
        """
        async with self._shell.uow(tenant_id) as uow:
            await uow.conversations.get(conversation_id)
            turn = await uow.turns.running(conversation_id)
        return None if turn is None else self._handle_of_running(turn)

    async def follow_turn(self, tenant_id: UUID, turn_id: UUID, *, counts: bool = False) -> TurnHandle:
        """Follow a turn from its beginning. An ended turn gives the message, the whole reply in one piece, and the end.

        ``counts``: a running turn takes a place for a stream, until the present request ends.

        Raises:
            NotFoundError: The tenant has no such turn.
            RateLimitedError: ``counts`` is set, and the caller already has as many streams as it may.
        """
        async with self._shell.uow(tenant_id) as uow:
            turn = await uow.turns.get(turn_id)
            if turn.status != "running":
                return await replayed(uow, turn, self._shell.resolver)
        if counts:
            await self._limits.hold("open_streams")
        return self._handle_of_running(turn)

    async def interrupt(self, tenant_id: UUID, conversation_id: UUID, turn_id: UUID | None = None) -> Turn | None:
        """Stop the running reply, in whichever process it runs; ``None`` if none runs, or another than ``turn_id``."""
        async with self._shell.uow(tenant_id) as uow:
            await uow.conversations.get(conversation_id)
            turn = await uow.turns.request_interrupt(conversation_id, turn_id)
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
            await asyncio.wait(late, timeout=CANCEL_SECONDS)

    async def _begin(
        self,
        uow: UnitOfWork,
        conversation: Conversation,
        given: ChatInput,
        before: Mapping[str, Any] | None,
        ready: PreparedOpening,
        compute: Compute,
    ) -> Started:
        """Do everything of the first transaction except the commit."""
        refuse_while_copied(self._shell, conversation)  # also where nothing is appended before the reply
        if await uow.turns.running(conversation.id) is not None:
            raise _turn_in_progress()
        dead = await uow.turns.fail_expired_in_conversation(conversation.id)
        if dead is not None:  # end it here, sooner than a sweeper would
            await add_failed_event(uow, dead, self._shell.clock.now())
        last_before, last_event = conversation.last_seq, conversation.last_event
        if given.history and before is None:
            conversation, given = await self._with_history_stored(uow, conversation, given, ready.history, compute)
        opening = await opening_of(uow, self._shell, conversation, given, before, ready, compute=compute)
        input_from = last_before + 1 if opening.message.seq > last_before else opening.message.seq
        if before is not None:  # the input with which the dead turn began
            input_from = (await uow.turns.get(UUID(before["turn_id"]))).input_from_seq or input_from
        now = self._shell.clock.now()
        turn = await uow.turns.start(
            Turn(
                id=self._shell.new_id(),
                tenant_id=conversation.tenant_id,
                conversation_id=conversation.id,
                message_id=opening.message.id,
                input_from_seq=input_from,
                begun_at_seq=opening.resolved.conversation.last_seq,
                planned_reply_id=self._shell.new_id(),
                stream_key=Seal.new_key(),
                lease_until=now,
                started_at=now,
                request=given.request,
            )
        )
        if turn is None:
            raise _turn_in_progress()
        started = Started(
            turn=turn,
            message=opening.message,
            question=opening.question,
            resolved=opening.resolved,
            options=given.options,
            model=given.model,
            recall_request=replace(given.recall_request, record_id=turn.id),
            events_after=last_event,
        )
        return started if opening.message.is_command else await self._with_compaction_claimed(uow, started)

    async def _with_history_stored(
        self, uow: UnitOfWork, conversation: Conversation, given: ChatInput, ready: Prepared, compute: Compute
    ) -> tuple[Conversation, ChatInput]:
        check_expected_last(conversation, given.expected_last_message_id)
        refuse_too_large(self._shell.resolver(conversation, model=given.model), ready.drafts)
        _, resolved = await append(uow, self._shell, conversation, ready.drafts, prepared=ready, compute=compute)
        return resolved.conversation, replace(given, history=(), expected_last_message_id=None)

    async def _with_compaction_claimed(self, uow: UnitOfWork, started: Started) -> Started:
        resolved = started.resolved
        due = due_before_call(resolved.with_options(started.options), self._shell)
        if due is not None:
            return replace(started, claim=await self._inline.claim(uow, resolved, due))
        await claim_in_turn(uow, self._shell, resolved)
        return started

    async def _first_request_answer(self, uow: UnitOfWork, ref: Mapping[str, Any]) -> TurnHandle | None:
        turn = await uow.turns.get(UUID(ref["turn_id"]))
        running = await uow.turns.running(turn.conversation_id)
        if running is not None and running.id == turn.id:
            await self._limits.hold("open_streams")
            return self._handle_of_running(running)
        turn = await uow.turns.get(turn.id)  # it may have ended between the two reads
        # A turn that died has no answer; it is continued.
        return None if turn.reply_id is None else await replayed(uow, turn, self._shell.resolver)

    def _handle_of_running(self, turn: Turn) -> TurnHandle:
        return self._handles.get(turn.id) or self._mirrors.follow(turn)

    def _spawn(self, started: Started, events: Sequence[Event], place: Place | None) -> TurnHandle:
        turn = started.turn
        handle = self._handles[turn.id] = TurnHandle(monotonic=self._shell.clock.monotonic)
        created = [event for event in events if event.type == "message.created"]
        for event in created:
            handle.emit(ChatEvent(type=event.type, id=event.number, data={**event.data, **ids_of(turn)}))
        if not created:  # the message existed already
            handle.emit(created_event(started.message, turn))
        handle.emit_all([event for event in events if event.type == SUPERSEDED])
        running = begin_task(self._runner.run(started, handle), self._tasks)
        running.add_done_callback(lambda _: self._handles.pop(turn.id))
        running.add_done_callback(lambda _: self._limits.release(place))
        begin_task(relay(turn, handle, self._shell.streams, self._shell.clock), self._tasks)
        return handle


def _turn_in_progress() -> TurnInProgressError:
    return TurnInProgressError(
        "a turn of this conversation is running: wait for it, or interrupt it", retry_after=RETRY_AFTER
    )
