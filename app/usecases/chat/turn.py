"""What happens in a turn after its message is stored: compact if due, assemble, answer, store the reply."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any
from uuid import UUID

import structlog

from app.core.context.turn_options import NO_OPTIONS, TurnOptions
from app.core.model.conversation import Conversation, Message
from app.core.model.errors import (
    SEND_AGAIN,
    ContextOverWindowError,
    DependencyUnavailableError,
    DomainError,
    NotFoundError,
    TurnLostError,
)
from app.core.model.records import Compaction, Turn, TurnStatus
from app.core.retrieval.recall_use import uses_passages
from app.off_loop import off_loop
from app.storage.unit_of_work import UnitOfWork
from app.usecases.chat.calibrating import calibrated
from app.usecases.chat.failed_turn_event import add_failed_event
from app.usecases.chat.live_contexts import store_live_context
from app.usecases.chat.model_calls import TurnCallbacks
from app.usecases.chat.replaying import stored_result
from app.usecases.chat.reply import Answer, parts_of
from app.usecases.chat.tool_loop import ToolLoop
from app.usecases.chat.toolbox import Scope
from app.usecases.chat.turn_handle import REASONING, ChatEvent, ChatResult, TurnHandle, delta
from app.usecases.chat.turn_watch import Watch, lost_message_error, turn_lost_error, watched
from app.usecases.compaction.commands import CommandRunner
from app.usecases.compaction.due_triggers import claim_after_reply, claim_in_turn, end_quiet_of_turn
from app.usecases.compaction.inline import InlineClaim, InlineCompaction, InlineOutcome
from app.usecases.context.recalling import NO_RECALL_REQUEST, RecallRequest
from app.usecases.history.appending import append
from app.usecases.history.drafts import MessageDraft
from app.usecases.history.preparing import Prepared, prepare_and_run, prepared_if_possible
from app.usecases.shared.compaction_views import CompactionView, views_of
from app.usecases.shared.resolve import Resolved
from app.usecases.shared.retries import Compute, Results, through_short_outage
from app.usecases.shared.shell import Shell

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """A turn whose first transaction is committed."""

    turn: Turn
    message: Message
    """The message that the turn answers: the user's, or the last result of the client's tools."""
    question: Message
    """The user's message that the turn is about."""
    resolved: Resolved
    options: TurnOptions = NO_OPTIONS
    """The client's options for this turn only."""
    model: str | None = None
    recall_request: RecallRequest = NO_RECALL_REQUEST
    claim: InlineClaim | None = None
    events_after: int
    """The number of the last event before the turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ended:
    """A turn with its reply stored."""

    status: TurnStatus
    result: ChatResult
    number: int | None
    """The number of its last event, if known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stored:
    """The result of the last transaction of a turn."""

    reply: Message
    resolved: Resolved
    segments: Mapping[int, str]
    """The id of the segment of each recalled message."""
    number: int
    """The number of the turn's last event."""


class TurnRunner:
    """Runs turns to their end. Whatever fails, the user's message stays stored and the turn's row ends."""

    def __init__(self, shell: Shell, *, inline: InlineCompaction, commands: CommandRunner, loop: ToolLoop) -> None:
        self._shell = shell
        self._inline = inline
        self._commands = commands
        self._loop = loop

    async def run(self, started: Started, handle: TurnHandle) -> None:
        """Run a turn. The handle gets all its events, the terminal event last."""
        shell, turn = self._shell, started.turn
        interrupts = started.resolved.policy.on_disconnect == "interrupt"
        unfollowed_seconds = shell.timings.unfollowed_seconds if interrupts else math.inf
        with structlog.contextvars.bound_contextvars(turn_id=str(turn.id), conversation_id=str(turn.conversation_id)):
            try:
                async with watched(
                    turn,
                    handle,
                    uow=shell.uow,
                    bus=shell.bus,
                    every=shell.timings.turn_heartbeat_seconds,
                    unfollowed_seconds=unfollowed_seconds,
                ) as watch:
                    ended = await self._run_turn(started, handle, watch)
                handle.emit_calls(ended.result.open_calls)
                handle.emit(ChatEvent(type=f"reply.{ended.status}", id=ended.number, result=ended.result))
            except DomainError as error:
                await self._fail(started, error, handle)
            except asyncio.CancelledError:
                await asyncio.shield(self._fail(started, _shutting_down(), handle))
                raise
            except Exception:
                log.exception("turn.crashed")
                await self._fail(started, DomainError("the turn failed unexpectedly; its message is stored"), handle)

    async def _run_turn(self, started: Started, handle: TurnHandle, watch: Watch) -> _Ended:
        if started.message.is_command:
            turn, locale = started.turn, started.resolved.conversation.locale
            send = self._inline.sender(turn.tenant_id, turn.conversation_id, started.events_after, handle.emit_all)
            outcome, answer = await self._commands.run(
                turn, started.message, locale, stop=watch.stop, send_new_events=send
            )
            if answer.text:
                handle.emit(delta(answer.text))
        else:
            before = await self._inline.settle_with_events(
                started.resolved, started.claim, stop=watch.stop, after=started.events_after, on_events=handle.emit_all
            )
            try:
                between, answer = await self._model_answer(started, handle, watch.stop)
            except ContextOverWindowError as error:
                raise before.explained(error) from error
            outcome = before.followed_by(between)
        watch.storing = True
        return await through_short_outage(partial(self._store, started, outcome, answer), self._shell.clock)

    async def _model_answer(
        self, started: Started, handle: TurnHandle, stop: asyncio.Event
    ) -> tuple[InlineOutcome, Answer]:
        """The model's answer, and the compactions between its calls."""
        resolved, options = started.resolved, started.options
        scope = Scope(
            turn=started.turn,
            message=started.question,
            model=started.model,
            locale=resolved.conversation.locale,
            options=options,
            reasoning=options.settings.reasoning or resolved.policy.reasoning,
        )
        followers = TurnCallbacks(
            on_text=lambda text: handle.emit(delta(text)),
            on_reasoning=lambda text: handle.emit(delta(text, REASONING)),
            on_recalled=handle.emit_recalled,
            on_events=handle.emit_all,
        )
        return await self._loop.answer(scope, started.recall_request, stop=stop, followers=followers)

    async def _store(self, started: Started, outcome: InlineOutcome, answer: Answer) -> _Ended:
        shell, turn = self._shell, started.turn
        drafts = () if answer.stored else (_reply(started, answer),)
        uses = await self._uses_of_records(started, answer)
        stored = await prepare_and_run(
            partial(prepared_if_possible, shell, turn.tenant_id, turn.conversation_id, drafts),
            partial(self._end_turn, started, outcome, answer, uses),
        )
        if stored is None:
            return await self._reply_stored_earlier(started)
        result = ChatResult(
            message=started.message,
            reply=stored.reply,
            gauge=stored.resolved.gauge,
            compaction=await self._compaction_view(outcome.row),
            warnings=_warnings(outcome, answer),
            recalled=answer.recalled,
            segments=stored.segments,
            open_calls=answer.open_calls,
            finish=answer.finish,
        )
        return _Ended(status=_status(answer), result=result, number=stored.number)

    async def _end_turn(
        self,
        started: Started,
        outcome: InlineOutcome,
        answer: Answer,
        uses: Sequence[tuple[UUID, bool]],
        ready: Prepared,
        results: Results,
    ) -> _Stored | None:
        """Run the last transaction; ``None`` if another process has already ended the turn."""
        shell, turn, status = self._shell, started.turn, _status(answer)
        async with shell.uow(turn.tenant_id) as uow:
            locked = await uow.conversations.lock(turn.conversation_id)
            ended = await uow.turns.end(
                turn.id,
                status=status,
                reply_id=answer.stored.id if answer.stored else answer.reply_id or turn.planned_reply_id,
                compaction_id=outcome.row.id if outcome.row else None,
                warnings=_warnings(outcome, answer),
                recalled=answer.recalled,
                finished_at=shell.clock.now(),
            )
            if ended is None:
                return None
            awake = await end_quiet_of_turn(uow, locked, started.message)
            conversation = await calibrated(uow, shell, awake, started.resolved, answer)
            reply, resolved = await self._store_reply(uow, conversation, answer, ready, results)
            if answer.open_calls:
                await claim_in_turn(uow, shell, resolved)
            else:
                await claim_after_reply(uow, shell, resolved, reply)
            data = {"message_id": str(reply.id), "seq": reply.seq, "in_reply_to": str(started.message.id)}
            event = await uow.events.add(turn.conversation_id, f"reply.{status}", data, shell.clock.now())
            segments = await uow.segments.covering(turn.conversation_id, answer.recalled)
            for expansion_id, used in uses:
                await uow.expansions.mark_used([expansion_id], used=used)
            await uow.commit()
        return _Stored(reply=reply, resolved=resolved, segments=segments, number=event.number)

    async def _store_reply(
        self, uow: UnitOfWork, conversation: Conversation, answer: Answer, ready: Prepared, compute: Compute
    ) -> tuple[Message, Resolved]:
        if answer.stored is not None:
            reply = await uow.messages.note_usage(conversation.id, answer.stored.id, answer.usage.as_dict())
            reply = replace(reply, reasoning=answer.stored.reasoning)
            return reply, self._shell.resolver(conversation)
        (reply,), resolved = await append(uow, self._shell, conversation, ready.drafts, prepared=ready, compute=compute)
        await store_live_context(uow, conversation.id, answer, reply)
        return reply, resolved

    async def _reply_stored_earlier(self, started: Started) -> _Ended:
        # An earlier try may have been committed although its answer was lost.
        async with self._shell.uow(started.turn.tenant_id) as uow:
            turn = await uow.turns.get(started.turn.id)
            result = await stored_result(uow, turn, self._shell.resolver)
        if result is None:
            raise turn_lost_error()
        return _Ended(status=turn.status, result=result, number=None)

    async def _uses_of_records(self, started: Started, answer: Answer) -> list[tuple[UUID, bool]]:
        """The ids of the turn's recorded expansions, each with whether the reply used it.

        The record of the turn's recall has the id of the turn.
        """
        turn, question = started.turn, started.question.content
        recorded_texts = [(record, [text]) for record, text in answer.found]
        if answer.recalled:
            async with self._shell.uow(turn.tenant_id) as uow:
                recalled = await uow.messages.contents_at_seqs(turn.conversation_id, answer.recalled)
            recorded_texts.append((turn.id, recalled))

        def compare() -> list[tuple[UUID, bool]]:
            return [(record, uses_passages(answer.text, texts, question=question)) for record, texts in recorded_texts]

        return await off_loop(compare) if recorded_texts else []

    async def _compaction_view(self, row: Compaction | None) -> CompactionView | None:
        if row is None:
            return None
        async with self._shell.uow(row.tenant_id) as uow:
            (view,) = await views_of(uow, [await uow.compactions.get(row.id)])
        return view

    async def _fail(self, started: Started, error: DomainError, handle: TurnHandle) -> None:
        """End the turn's row as failed, and emit the error; the message stays stored, unless the database lost it."""
        number = None
        try:
            number = await self._record_failure(started, error)
        except (DependencyUnavailableError, NotFoundError, TurnLostError) as away:
            log.warning("turn.failure_not_recorded", code=error.stable_code)
            if isinstance(away, TurnLostError) or (
                isinstance(error, TurnLostError) and isinstance(away, NotFoundError)
            ):
                error = away  # the message is gone too, or the conversation was deleted
        except Exception:
            log.exception("turn.failure_crashed")  # followers are told all the same; a sweeper ends the row
        error.extra.setdefault("message_id", str(started.message.id))
        log.warning("turn.failed", code=error.stable_code, reason=error.extra.get("reason"))
        handle.emit(ChatEvent(type="reply.failed", id=number, error=error))

    async def _record_failure(self, started: Started, error: DomainError) -> int | None:
        """Record the failure and return its event's number; ``None`` if another process has ended the turn.

        Raises ``TurnLostError`` if the database has lost the message.
        """
        turn, now = started.turn, self._shell.clock.now()
        async with self._shell.uow(turn.tenant_id) as uow:
            await uow.conversations.lock(turn.conversation_id)
            ended = await uow.turns.end(turn.id, status="failed", error_code=error.stable_code, finished_at=now)
            if ended is None:
                try:
                    await uow.messages.get(turn.conversation_id, turn.message_id)
                except NotFoundError:
                    raise lost_message_error() from None
                return None
            event = await add_failed_event(uow, ended, now)
            await uow.commit()
        return event.number


def _status(answer: Answer) -> TurnStatus:
    return "interrupted" if answer.interrupted else "completed"


def _warnings(outcome: InlineOutcome, answer: Answer) -> tuple[str, ...]:
    return (*outcome.warnings, *answer.warnings)


def ref_of(turn: Turn) -> dict[str, Any]:
    """What is stored with the idempotency key of the request that began this turn."""
    return {"turn_id": str(turn.id), "message_id": str(turn.message_id)}


def _reply(started: Started, answer: Answer) -> MessageDraft:
    return MessageDraft(
        id=answer.reply_id or started.turn.planned_reply_id,
        role="assistant",
        content=answer.text,
        parts=parts_of(answer.open_calls),
        utc_offset=started.message.utc_offset,
        event_type="command" if started.message.is_command else "casual",
        is_command=started.message.is_command,
        model=answer.model or None,
        usage=answer.usage.as_dict(),
        reasoning=answer.reasoning,
        status="interrupted" if answer.interrupted else "complete",
    )


def _shutting_down() -> DomainError:
    return DependencyUnavailableError(f"the service is shutting down; the message is stored: {SEND_AGAIN}")
