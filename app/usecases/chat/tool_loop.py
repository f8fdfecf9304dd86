"""The loop of a turn: ask the model, run the tools it calls, compact in between if due, ask again.

Each call and each result is a message, stored when it happens: a turn that is interrupted or crashes in between leaves
a call without a result, which is served with a stub.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TypeVar
from uuid import UUID

import structlog

from app.core.context.tools import MOST_CALLS
from app.core.model.model_io import ToolCall
from app.core.model.records import Event, Turn
from app.core.text.parts import Part
from app.storage.unit_of_work import UnitOfWork
from app.usecases.chat.asking import Asker
from app.usecases.chat.continuing import LiveContexts, keep_live
from app.usecases.chat.lookups import ToolResult
from app.usecases.chat.reply import Answer
from app.usecases.chat.toolbox import Scope, Toolbox
from app.usecases.chat.turn_watch import turn_lost
from app.usecases.compaction.due import claim_in_turn, due_between_calls
from app.usecases.compaction.inline import InlineClaim, InlineCompaction, InlineOutcome
from app.usecases.context.context import ContextService
from app.usecases.context.recalling import Asked
from app.usecases.history.appending import MessageDraft, append
from app.usecases.shared.resolve import Resolved
from app.usecases.shared.shell import Shell

USED_UP = "tool_calls_used_up"
LONGEST_NAME = 64  # characters: as providers take them
NAMELESS = "tool"

Value = TypeVar("Value")

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Telling:
    """Who follows the turn."""

    on_text: Callable[[str], None]
    on_events: Callable[[Sequence[Event]], None]
    """Events of the conversation, committed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stored:
    """A stored result, and what its transaction claimed."""

    resolved: Resolved
    claim: InlineClaim | None = None
    created_number: int = 0
    found: tuple[tuple[UUID, str], ...] = ()
    """Records of look-ups, each with what it brought back."""


class ToolLoop:
    """Answers a message, with as many calls of tools as are allowed."""

    def __init__(self, shell: Shell, *, context: ContextService, inline: InlineCompaction, toolbox: Toolbox) -> None:
        self._shell = shell
        self._context = context
        self._inline = inline
        self._toolbox = toolbox

    async def answer(
        self, scope: Scope, asked: Asked, *, stop: asyncio.Event, tell: Telling
    ) -> tuple[InlineOutcome, Answer]:
        """The reply, and the last compaction between calls.

        Raises:
            ModelFailedError: As ``Asker.ask``; what was stored until then stays.
            TurnLostError: Others have ended the turn.
        """
        asker = Asker(
            models=self._shell.models,
            context=self._context,
            live=LiveContexts(self._shell),
            turn=scope.turn,
            model=scope.model,
            asked=asked,
        )
        outcome, said, left = InlineOutcome(), None, MOST_CALLS
        while True:
            step = await asker.ask(with_tools=left > 0, stop=stop, on_text=tell.on_text)
            said = step if said is None else step.after(said)
            if step.interrupted or not step.calls:
                return outcome, said
            calls = [self._numbered(call) for call in step.calls[:left]]
            left -= len(calls)
            if left == 0:
                said = said.with_warnings((USED_UP,))
            await self._store_calls(scope, step, calls, tell)
            stored = await self._run(scope, calls, stop, tell)
            if stored is None:
                return outcome, said.stopped()
            said = said.having(stored.found)
            outcome = outcome.then(await self._compacted(stored, tell))

    def _numbered(self, call: ToolCall) -> ToolCall:
        """Under an id of ours: there are providers that number the calls of each answer from one."""
        return replace(call, id=f"call_{self._shell.new_id().hex}", name=call.name[:LONGEST_NAME] or NAMELESS)

    async def _run(self, scope: Scope, calls: Sequence[ToolCall], stop: asyncio.Event, tell: Telling) -> _Stored | None:
        """Run the calls one after the other, each result stored when it is there; ``None`` when interrupted."""
        stored: _Stored | None = None
        for number, call in enumerate(calls, 1):
            result = await _unless(stop, self._toolbox.run(scope, call, calls=len(calls)))
            if result is None:
                log.info("turn.interrupted_in_tool", call_id=call.id)
                return None
            before = stored.found if stored else ()
            stored = await self._store_result(scope, call, result, tell, is_last=number == len(calls))
            stored = replace(stored, found=(*before, *stored.found))
        return stored

    async def _store_calls(self, scope: Scope, step: Answer, calls: Sequence[ToolCall], tell: Telling) -> None:
        """The model's message with its calls; what it used is summed on the reply.

        A stateful model goes on from here only if all of its calls are there: each wants a result.
        """
        draft = MessageDraft(
            role="assistant", content=step.text, parts=tuple(_call_part(call) for call in calls), model=step.model
        )
        async with self._shell.uow(scope.turn.tenant_id) as uow:
            conversation = await uow.conversations.lock(scope.turn.conversation_id)
            await _still_running(uow, scope.turn)
            (stored,), _ = await append(uow, self._shell, conversation, [draft])
            if len(calls) == len(step.calls):
                await keep_live(uow, conversation.id, step, stored)
            await uow.commit()
        await self._told(uow.committed_events, (), tell)

    async def _store_result(
        self, scope: Scope, call: ToolCall, result: ToolResult, tell: Telling, *, is_last: bool
    ) -> _Stored:
        turn = scope.turn
        claim: InlineClaim | None = None
        jobs: list[UUID] = []
        async with self._shell.uow(turn.tenant_id) as uow:
            conversation = await uow.conversations.lock(turn.conversation_id)
            await _still_running(uow, turn)
            stored = result.at(conversation.content_epoch, conversation.locale)
            draft = MessageDraft(role="tool", content="", parts=(_result_part(call, stored),))
            _, resolved = await append(uow, self._shell, conversation, [draft])
            await uow.expansions.add(stored.expansions)
            if is_last:
                claim, jobs = await self._due(uow, resolved)
            await uow.commit()
        await self._told(uow.committed_events, jobs, tell)
        created = max(event.number for event in uow.committed_events if event.type == "message.created")
        found = tuple((expansion.id, stored.text) for expansion in stored.expansions)
        return _Stored(resolved=resolved, claim=claim, created_number=created, found=found)

    async def _due(self, uow: UnitOfWork, resolved: Resolved) -> tuple[InlineClaim | None, list[UUID]]:
        """Between calls: an inline claim where one is due, else a background one."""
        due = due_between_calls(resolved, self._shell)
        if due is not None:
            return await self._inline.claim(uow, resolved, due), []
        job = await claim_in_turn(uow, self._shell, resolved)
        return None, [job] if job else []

    async def _compacted(self, stored: _Stored, tell: Telling) -> InlineOutcome:
        if stored.claim is None:
            return InlineOutcome()
        return await self._inline.told(stored.resolved, stored.claim, after=stored.created_number, tell=tell.on_events)

    async def _told(self, events: Sequence[Event], jobs: Sequence[UUID], tell: Telling) -> None:
        await self._shell.outbox.deliver(events, jobs)
        tell.on_events([event for event in events if event.type == "message.created"])


async def _still_running(uow: UnitOfWork, turn: Turn) -> None:
    """Under the conversation's lock: a turn that others have ended adds nothing more. Raises ``TurnLostError``."""
    if await uow.turns.heartbeat(turn.id) is None:
        raise turn_lost()


async def _unless(stop: asyncio.Event, work: Awaitable[Value]) -> Value | None:
    """What the work comes to; ``None`` once ``stop`` is set, and the work is cancelled."""
    working, stopped = asyncio.ensure_future(work), asyncio.create_task(stop.wait())
    try:
        await asyncio.wait({working, stopped}, return_when=asyncio.FIRST_COMPLETED)
        return working.result() if working.done() else None
    finally:
        stopped.cancel()
        working.cancel()
        with suppress(asyncio.CancelledError, Exception):
            await working


def _call_part(call: ToolCall) -> Part:
    details = {"details": dict(call.details)} if call.details else {}
    return {"type": "tool_call", "id": call.id, "name": call.name, "arguments": dict(call.arguments), **details}


def _result_part(call: ToolCall, result: ToolResult) -> Part:
    quotes = {"quotes": [{"from_seq": first, "to_seq": last} for first, last in result.quotes]} if result.quotes else {}
    return {"type": "tool_result", "tool_call_id": call.id, "name": call.name, "content": result.text, **quotes}
