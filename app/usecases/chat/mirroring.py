"""Follows turns that run in other processes: events are read from a stream, the end from the database.

The stream may be away, or lack entries. Then followers get the missing part of the reply in one piece, and the terminal
event, once the turn has ended.
"""

from __future__ import annotations

import asyncio
from typing import Final
from uuid import UUID

import structlog

from app.core.model.errors import DependencyUnavailableError, DomainError
from app.core.model.records import Turn
from app.usecases.chat.relaying import Seal, events_in
from app.usecases.chat.replaying import stored_end
from app.usecases.chat.turn_handle import ChatEvent, TurnHandle, created_event
from app.usecases.shared.background import begin_task
from app.usecases.shared.shell import Shell

FIRST_SECONDS: Final = 1.0
"""Seconds to wait for the first entry of a stream. A stream without any entry by then is taken to be away."""
LAST_SECONDS: Final = 1.0
"""Seconds to wait for the last entry once the turn has ended."""
NOTES_PER_TIMEOUT: Final = 3
"""How often a follower is recorded on the turn's row within ``unfollowed_seconds``."""
ENDINGS: Final = frozenset({"reply.completed", "reply.interrupted", "reply.failed"})

log = structlog.get_logger(__name__)


class Mirrors:
    """The turns of other processes that are followed in this process. Each is read once, for all who follow it."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell
        self._handles: dict[UUID, TurnHandle] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def follow(self, turn: Turn) -> TurnHandle:
        """Follow a running turn, from its beginning."""
        handle = self._handles.get(turn.id)
        if handle is None:
            handle = self._handles[turn.id] = TurnHandle(monotonic=self._shell.clock.monotonic)
            task = begin_task(self._mirror(turn, handle), self._tasks)
            task.add_done_callback(lambda _: self._handles.pop(turn.id))
        return handle

    async def close(self) -> None:
        """Stop following all turns; they go on in their processes."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _mirror(self, turn: Turn, handle: TurnHandle) -> None:
        relaying = asyncio.create_task(self._relay_stream(turn, handle))
        try:
            ended = await self._ended_turn(turn, handle)
            await asyncio.wait({relaying}, timeout=LAST_SECONDS)
            await self._emit_end(ended, handle, relaying.result() if relaying.done() else None)
        except DomainError as error:
            handle.emit(_failure(error))
        except asyncio.CancelledError:
            handle.emit(_failure(DependencyUnavailableError("the service is shutting down: follow the turn again")))
            raise
        except Exception:
            log.exception("turn.mirror_crashed", turn_id=str(turn.id))
            handle.emit(_failure(DomainError("the turn cannot be followed any more; it goes on")))
        finally:
            relaying.cancel()
            await asyncio.gather(relaying, return_exceptions=True)

    async def _relay_stream(self, turn: Turn, handle: TurnHandle) -> ChatEvent | None:
        try:
            last = await self._emit_streamed_events(turn, handle)
            if not handle.begun:
                await self._emit_created_event(turn, handle)
        except (DomainError, ValueError) as error:
            log.warning("turn.stream_failed", turn_id=str(turn.id), error=type(error).__name__)
            return None
        return last

    async def _emit_streamed_events(self, turn: Turn, handle: TurnHandle) -> ChatEvent | None:
        if turn.stream_key is None:
            return None
        seal, number = Seal(turn.id, turn.stream_key), 0
        async with self._shell.streams.follow(turn.id) as entries:
            while True:
                try:
                    async with asyncio.timeout(None if number else FIRST_SECONDS):
                        at, entry = await entries.get()
                except TimeoutError:
                    break
                number += 1
                if at != number:
                    break
                for event in events_in(seal.open(at, entry)):
                    if event.type in ENDINGS:
                        return event
                    handle.emit(event)
        log.warning("turn.stream_missing", turn_id=str(turn.id), entry=number)
        return None

    async def _emit_created_event(self, turn: Turn, handle: TurnHandle) -> None:
        async with self._shell.uow(turn.tenant_id) as uow:
            handle.emit(created_event(await uow.messages.get(turn.conversation_id, turn.message_id), turn))

    async def _ended_turn(self, turn: Turn, handle: TurnHandle) -> Turn:
        """Wait for the turn's end and return its row; until then, note followers on the row.

        Raises:
            NotFoundError: The conversation was deleted.
        """
        timings = self._shell.timings
        every = min(timings.event_poll_seconds, timings.unfollowed_seconds / NOTES_PER_TIMEOUT)
        async with self._shell.bus.subscribe(turn.conversation_id) as wake_up:
            while turn.status == "running":
                await wake_up.wait(every)
                try:
                    turn = await self._read_turn(turn, is_followed=handle.followers > 0)
                except DependencyUnavailableError:
                    log.warning("turn.look_missed", turn_id=str(turn.id))
        return turn

    async def _read_turn(self, turn: Turn, *, is_followed: bool) -> Turn:
        async with self._shell.uow(turn.tenant_id) as uow:
            if is_followed:
                await uow.turns.note_follower(turn.id)
                await uow.commit()
            return await uow.turns.get(turn.id)

    async def _emit_end(self, turn: Turn, handle: TurnHandle, last: ChatEvent | None) -> None:
        async with self._shell.uow(turn.tenant_id) as uow:
            end = await stored_end(uow, turn, self._shell.resolver, last.id if last else None)
        if not handle.begun:
            await self._emit_created_event(turn, handle)
        if last is None and end.result is not None:
            handle.emit_rest(end.result.reply)
        handle.emit(end)


def _failure(error: DomainError) -> ChatEvent:
    return ChatEvent(type="reply.failed", error=error)
