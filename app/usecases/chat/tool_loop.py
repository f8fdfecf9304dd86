"""The loop of a turn: ask the model, run the tools it calls, compact in between if due, ask again.

Each call and each result is a message that is stored when it happens. If a turn is interrupted or crashes in between, a
call without a result remains; it is served with a stub.

Tools of the client are not run here: a step that calls one is the last of the turn, and its message is the reply. If
the same step calls tools of the service, they are run first, so that only the client's results are missing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from uuid import UUID

import structlog

from app.core.context.tools import MAX_CALLS
from app.core.model.conversation import Message
from app.core.model.model_io import ToolCall
from app.core.model.records import Event, Turn
from app.core.text.parts import Part
from app.storage.unit_of_work import UnitOfWork
from app.usecases.caching.prefixes import PrefixCaches
from app.usecases.chat.live_contexts import LiveContexts, store_live_context
from app.usecases.chat.lookups import ToolResult
from app.usecases.chat.model_calls import ModelCaller, TurnCallbacks
from app.usecases.chat.reply import Answer, parts_of, refuse_no_answer
from app.usecases.chat.toolbox import Scope, Toolbox
from app.usecases.chat.turn_watch import turn_lost_error
from app.usecases.compaction.due_triggers import claim_in_turn, due_between_calls
from app.usecases.compaction.inline import InlineClaim, InlineCompaction, InlineOutcome
from app.usecases.context.context import ContextService
from app.usecases.context.recalling import RecallRequest
from app.usecases.history.appending import append
from app.usecases.history.drafts import MessageDraft
from app.usecases.history.preparing import Prepared, prepare_and_run, prepared_if_possible, weighed
from app.usecases.shared.resolve import Resolved
from app.usecases.shared.retries import Results, run_with_retries
from app.usecases.shared.shell import Shell
from app.usecases.shared.stopping import unless_stopped

CALLS_USED_UP = "tool_calls_used_up"
MAX_NAME_LENGTH = 64  # characters: as providers take them
NAMELESS = "tool"
MAX_OPEN_CALLS = 64
"""The most calls of the client's tools in one step. A model that makes more has gone wrong; the rest are left out."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Called:
    """The calls of one step in the model's order, with ids given by the service."""

    calls: tuple[ToolCall, ...]
    theirs: frozenset[str]
    """Names of the client's tools."""

    @property
    def own_calls(self) -> tuple[ToolCall, ...]:
        """The calls that the service runs."""
        return tuple(call for call in self.calls if call.name not in self.theirs)

    @property
    def client_calls(self) -> tuple[ToolCall, ...]:
        """The calls that the client runs."""
        return tuple(call for call in self.calls if call.name in self.theirs)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stored:
    """A stored tool result, and the compaction that its transaction claimed."""

    resolved: Resolved
    claim: InlineClaim | None = None
    created_number: int = 0
    found: tuple[tuple[UUID, str], ...] = ()
    """For each look-up, the id of its record and what it found."""


class ToolLoop:
    """Answers a message, with up to the allowed number of tool calls."""

    def __init__(self, shell: Shell, *, context: ContextService, inline: InlineCompaction, toolbox: Toolbox) -> None:
        self._shell = shell
        self._context = context
        self._inline = inline
        self._toolbox = toolbox

    async def answer(
        self, scope: Scope, recall_request: RecallRequest, *, stop: asyncio.Event, followers: TurnCallbacks
    ) -> tuple[InlineOutcome, Answer]:
        """The reply, or the calls that the client has to run; and the last compaction between calls.

        Raises:
            ModelFailedError: As ``ModelCaller.ask`` raises it; everything stored until then stays.
            TurnLostError: Another process has ended the turn.
        """
        model_caller = ModelCaller(
            models=self._shell.models,
            uow=self._shell.uow,
            context=self._context,
            live=LiveContexts(self._shell),
            caches=PrefixCaches(self._shell),
            turn=scope.turn,
            model=scope.model,
            recall_request=recall_request,
            options=scope.options,
            reasoning=scope.reasoning,
            followers=followers,
        )
        outcome, so_far, left = InlineOutcome(), None, MAX_CALLS
        while True:
            step = await model_caller.ask(with_own_tools=left > 0, stop=stop)
            so_far = step if so_far is None else step.after(so_far)
            if step.interrupted or not step.calls:
                return outcome, so_far
            called = self._calls_to_make(step, scope, left)
            left -= len(called.own_calls)
            if left == 0:
                so_far = so_far.with_warnings((CALLS_USED_UP,))
            if len(called.calls) < len(step.calls):
                so_far = replace(so_far, response_id=None)  # the provider waits for the results of all its calls
            if not called.calls:
                refuse_no_answer("other", step)
                return outcome, replace(so_far, finish="stop")  # nobody runs the calls, so its text is the reply
            if not called.own_calls:
                return outcome, so_far.with_open_calls(called.client_calls, None)
            reply_id = scope.turn.planned_reply_id if called.client_calls else None
            message = await self._store_calls(scope, step, called.calls, followers, id_=reply_id)
            stored = await self._run(scope, called.own_calls, stop, followers, goes_on=not called.client_calls)
            if stored is None:
                return outcome, so_far.stopped(self._shell.new_id() if called.client_calls else None)
            so_far = so_far.with_found(stored.found)
            if called.client_calls:
                return outcome, so_far.with_open_calls(called.client_calls, message)
            settled = await self._inline.settle_with_events(
                stored.resolved, stored.claim, stop=stop, after=stored.created_number, on_events=followers.on_events
            )
            outcome = outcome.followed_by(settled)

    def _calls_to_make(self, step: Answer, scope: Scope, left: int) -> _Called:
        theirs, calls_left = scope.options.names, {True: MAX_OPEN_CALLS, False: left}
        calls: list[ToolCall] = []
        made = [*map(self._with_own_id, step.calls)]
        # In a stored reply all calls but those of the service's tools are the client's.
        known = theirs | self._shell.resolver.own_tools if theirs & {call.name for call in made} else None
        for call in made:
            if known is not None and call.name not in known:
                continue
            is_theirs = call.name in theirs
            if calls_left[is_theirs] > 0:
                calls.append(call)
            calls_left[is_theirs] -= 1
        return _Called(calls=tuple(calls), theirs=theirs)

    def _with_own_id(self, call: ToolCall) -> ToolCall:
        # Some providers number the calls of each answer from one.
        return replace(call, id=f"call_{self._shell.new_id().hex}", name=call.name[:MAX_NAME_LENGTH] or NAMELESS)

    async def _run(
        self, scope: Scope, calls: Sequence[ToolCall], stop: asyncio.Event, followers: TurnCallbacks, *, goes_on: bool
    ) -> _Stored | None:
        """Run the calls one after the other, and store each result as it arrives; ``None`` when interrupted.

        ``goes_on``: the model is asked again with the results, so a due compaction is claimed with the last one.
        """
        stored: _Stored | None = None
        for number, call in enumerate(calls, 1):
            result = await unless_stopped(stop, self._toolbox.run(scope, call, calls=len(calls)))
            if result is None:
                log.info("turn.interrupted_in_tool", call_id=call.id)
                return None
            before = stored.found if stored else ()
            claims_compaction = goes_on and number == len(calls)
            stored = await self._store_result(scope, call, result, followers, claims_compaction=claims_compaction)
            stored = replace(stored, found=(*before, *stored.found))
        return stored

    async def _store_calls(
        self, scope: Scope, step: Answer, calls: Sequence[ToolCall], followers: TurnCallbacks, *, id_: UUID | None
    ) -> Message:
        """Store the model's message with its calls. The reply later has the usage of all steps.

        A stateful model can continue from here only if all its calls are stored: each needs a result. ``id_`` is the id
        of the reply if the message is the reply, since it also has calls for the client.
        """
        draft = MessageDraft(
            id=id_,
            role="assistant",
            content=step.text,
            parts=parts_of(calls),
            model=step.model,
            reasoning=step.reasoning,
        )
        turn = scope.turn
        stored, events = await prepare_and_run(
            partial(prepared_if_possible, self._shell, turn.tenant_id, turn.conversation_id, [draft]),
            partial(self._append_calls, scope, step if len(calls) == len(step.calls) else None),
        )
        _show_created(events, followers)
        return stored

    async def _append_calls(
        self, scope: Scope, live: Answer | None, ready: Prepared, results: Results
    ) -> tuple[Message, Sequence[Event]]:
        turn = scope.turn
        async with self._shell.uow(turn.tenant_id) as uow:
            conversation = await uow.conversations.lock(turn.conversation_id)
            await _check_still_running(uow, turn)
            (stored,), _ = await append(uow, self._shell, conversation, ready.drafts, prepared=ready, compute=results)
            if live is not None:
                await store_live_context(uow, conversation.id, live, stored)
            await uow.commit()
        return stored, uow.committed_events

    async def _store_result(
        self, scope: Scope, call: ToolCall, result: ToolResult, followers: TurnCallbacks, *, claims_compaction: bool
    ) -> _Stored:
        draft = await weighed(_result_draft(call, result))
        once = partial(self._append_result, scope, call, result, draft, claims_compaction)
        stored, events = await run_with_retries(once)
        _show_created(events, followers)
        return replace(stored, created_number=max(one.number for one in events if one.type == "message.created"))

    async def _append_result(
        self,
        scope: Scope,
        call: ToolCall,
        result: ToolResult,
        draft: MessageDraft,
        claims_compaction: bool,  # noqa: FBT001 - given by ``partial``
        results: Results,
    ) -> tuple[_Stored, Sequence[Event]]:
        """The transaction, and its events."""
        turn = scope.turn
        claim: InlineClaim | None = None
        async with self._shell.uow(turn.tenant_id) as uow:
            conversation = await uow.conversations.lock(turn.conversation_id)
            await _check_still_running(uow, turn)
            stored = result.at(conversation.content_epoch, conversation.locale)
            drafts = [draft if stored is result else _result_draft(call, stored)]
            _, resolved = await append(uow, self._shell, conversation, drafts, compute=results)
            await uow.expansions.add(stored.expansions)
            if claims_compaction:
                claim = await self._claimed_between_calls(uow, resolved, scope)
            await uow.commit()
        found = tuple((expansion.id, stored.text) for expansion in stored.expansions)
        return _Stored(resolved=resolved, claim=claim, found=found), uow.committed_events

    async def _claimed_between_calls(self, uow: UnitOfWork, resolved: Resolved, scope: Scope) -> InlineClaim | None:
        due = due_between_calls(resolved.with_options(scope.options), self._shell)
        if due is not None:
            return await self._inline.claim(uow, resolved, due)
        await claim_in_turn(uow, self._shell, resolved)
        return None


def _show_created(events: Sequence[Event], followers: TurnCallbacks) -> None:
    followers.on_events([event for event in events if event.type == "message.created"])


async def _check_still_running(uow: UnitOfWork, turn: Turn) -> None:
    # The conversation is locked, so that a turn which another process has ended adds nothing more.
    if await uow.turns.heartbeat(turn.id) is None:
        raise turn_lost_error()


def _result_draft(call: ToolCall, result: ToolResult) -> MessageDraft:
    return MessageDraft(role="tool", content="", parts=(_result_part(call, result),))


def _result_part(call: ToolCall, result: ToolResult) -> Part:
    quotes = {"quotes": [{"from_seq": first, "to_seq": last} for first, last in result.quotes]} if result.quotes else {}
    return {"type": "tool_result", "tool_call_id": call.id, "name": call.name, "content": result.text, **quotes}
