"""Follows a conversation's events: the table is authoritative, the bus only says when to look."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from uuid import UUID

from app.core.model.errors import FieldError, InvalidInputError, NotFoundError
from app.core.model.records import Event
from app.core.model.timings import DEFAULT_TIMINGS, Timings
from app.storage.unit_of_work import UnitOfWorkFactory
from app.usecases.ports import Clock, EventBus

# The time that is left until a heartbeat may be less than the clock can measure.
MIN_WAIT_SECONDS = 0.01
PAGE = 100


class EventFeed:
    """Events in order, each once, without gaps, for any number of readers.

    No unit of work is open while a reader waits or works. ``timings`` say how late an event may come while Redis is
    away.
    """

    def __init__(self, uow: UnitOfWorkFactory, bus: EventBus, clock: Clock, timings: Timings = DEFAULT_TIMINGS) -> None:
        self._uow = uow
        self._bus = bus
        self._clock = clock
        self._poll_seconds = timings.event_poll_seconds
        self._heartbeat_seconds = timings.event_heartbeat_seconds

    async def follow(
        self, tenant_id: UUID, conversation_id: UUID, after: int, *, newest: int | None = None, field: str = "after"
    ) -> AsyncGenerator[Event | None, None]:
        """Yield the events after number ``after``, stored and new ones, until the conversation is deleted.

        It also ends when an event that was sent is not stored any more, so that the reader begins anew.

        With ``newest`` at most that many of the stored ones come first. ``field`` is the name of ``after`` in errors.

        ``None`` is a heartbeat. It is the first item, once the arguments are found valid, so that a server can answer
        with an error before it begins to stream. Later it comes whenever there is no event for a while.

        Raises:
            NotFoundError: there is no such conversation of this tenant.
            InvalidInputError: ``after`` is neither 0 nor the number of an event of this conversation, or an event after
                it is no longer kept.
        """
        async with self._bus.subscribe(conversation_id) as wake_up:
            last = await self._checked_last_event(tenant_id, conversation_id, after, field)
            after = after if newest is None else max(after, last - newest)
            yield None
            spoke_at, woken = self._clock.monotonic(), False
            while True:
                events = await self._events_after(tenant_id, conversation_id, after)
                for event in events:
                    yield event
                    after, spoke_at, woken = event.number, self._clock.monotonic(), False
                if len(events) == PAGE:
                    continue
                quiet_for = self._clock.monotonic() - spoke_at
                # Woken without an event, or a long time without one: the conversation may have been deleted, or the
                # database replaced by a replica that lacks the last seconds.
                if (woken or quiet_for >= self._heartbeat_seconds) and not await self._has_event(
                    tenant_id, conversation_id, after
                ):
                    return
                if quiet_for >= self._heartbeat_seconds:
                    yield None
                    spoke_at, quiet_for = self._clock.monotonic(), 0.0
                pause = min(self._poll_seconds, self._heartbeat_seconds - quiet_for)
                woken = await wake_up.wait(max(pause, MIN_WAIT_SECONDS))

    async def _checked_last_event(self, tenant_id: UUID, conversation_id: UUID, after: int, field: str) -> int:
        async with self._uow(tenant_id) as uow:
            last = (await uow.conversations.get(conversation_id)).last_event
            count, first = await uow.events.count_and_first(conversation_id, after, last) if after > 0 else (0, None)
        if not 0 <= after <= last:
            raise InvalidInputError(
                f"The last event of this conversation is {last}.",
                errors=[
                    FieldError(
                        field=field,
                        message=f"must be the id of an event of this conversation, 0 to {last}; "
                        "leave it out to start from the first event",
                    )
                ],
            )
        # Events that are no longer kept cannot be sent, so a reader who lacks them has to begin anew. An event may be
        # kept longer than one after it, since their times come from the clocks of several processes.
        if after > 0 and count < last - after:
            message = "is too old: events after it are not kept any more; leave it out, and read the conversation anew"
            wrong = FieldError(field=field, message=message)
            raise InvalidInputError(f"The next event that is kept is {first or last + 1}.", errors=[wrong])
        return last

    async def _events_after(self, tenant_id: UUID, conversation_id: UUID, after: int) -> Sequence[Event]:
        async with self._uow(tenant_id) as uow:
            return await uow.events.after(conversation_id, after, limit=PAGE)

    async def _has_event(self, tenant_id: UUID, conversation_id: UUID, number: int) -> bool:
        try:
            async with self._uow(tenant_id) as uow:
                return (await uow.conversations.get(conversation_id)).last_event >= number
        except NotFoundError:
            return False
