"""Streams a conversation's events: those after the last one that a client has seen, then each new one."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Annotated, Final
from uuid import UUID

from fastapi import Header, Query, Response

from app.core.model.notifications import Notification
from app.core.model.records import Event
from app.http.dependencies import Services, Shutdown, Tenant
from app.http.event_schemas import stream_of
from app.http.notifications import Notifier
from app.http.present import present_event
from app.http.refusals import invalid_field
from app.http.routing import keyed_router
from app.http.sse import EventStream, Steps, frame, retry_preamble

MAX_EVENT_DIGITS: Final = 18
"""The most digits of a number that certainly fits into 64 bits."""

router = keyed_router("/conversations/{conversation_id}/events", "events")


@router.get(
    "",
    response_class=Response,
    responses={200: stream_of("ConversationEvent", "Server-sent events, one `ConversationEvent` each.")},
)
async def follow_events(
    conversation_id: UUID,
    services: Services,
    tenant: Tenant,
    stopping: Shutdown,
    after: Annotated[str | None, Query(description="The id of the last event seen; absent = from the first.")] = None,
    newest: Annotated[
        int | None, Query(ge=0, le=1_000, description="Of the events so far at most so many, the newest.")
    ] = None,
    last_event_id: Annotated[str | None, Header(alias="Last-Event-ID", description="Wins over `after`.")] = None,
    accept_language: Annotated[
        str | None, Header(alias="Accept-Language", description="Of notifications; else the conversation's `locale`.")
    ] = None,
) -> Response:
    """Every event once, in order, without a gap between stored and new events."""
    field, given = ("Last-Event-ID", last_event_id) if last_event_id else ("after", after)
    after_event = event_number(field, given)
    following = services.feed.follow(tenant, conversation_id, after_event, newest=newest, field=field)
    notifier = Notifier(services, tenant, conversation_id, accept_language)
    steps = Steps(_with_notifications(following, notifier), services.settings.timings.stream_heartbeat_seconds)
    await steps.peek()
    return EventStream(steps, _frame, stopping=stopping, preamble=retry_preamble())


def event_number(field: str, given: str | None) -> int:
    """The number of the last event that a client has seen; 0 if it has seen none.

    Raises:
        InvalidInputError: The given value is not the id of an event.
    """
    if given is None:
        return 0
    if not (given.isascii() and given.isdigit() and len(given) <= MAX_EVENT_DIGITS):
        raise invalid_field(field, "must be the id of an event: a decimal number")
    return int(given)


@dataclass(frozen=True, slots=True)
class _NotifiedEvent:
    event: Event
    notification: Notification | None


async def _with_notifications(
    following: AsyncGenerator[Event | None, None], notifier: Notifier
) -> AsyncIterator[_NotifiedEvent | None]:
    async with aclosing(following):
        async for event in following:
            yield None if event is None else _NotifiedEvent(event, await notifier.notification(event.type, event.data))


def _frame(notified: _NotifiedEvent) -> bytes:
    event = notified.event
    return frame(event.type, present_event(event, notified.notification), event.number)
