"""Google's Agent Development Kit: ``DatabaseSessionService``.

It stores every event as a row of JSON. It sends every event of the session; ``EventsCompactionConfig`` is optional. A
turn does what its ``Runner`` does with a session: it loads the session with all its events, appends the user's event,
then the reply's. It cannot append many events at once, so a conversation is filled with the rows that
``append_event`` would write, by the service's own classes.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Any

from google.adk.events import Event
from google.adk.sessions import DatabaseSessionService
from google.adk.sessions.schemas.v1 import StorageEvent
from google.genai.types import Content, Part
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine

from bench.peers.children.protocol import SpokenMessage, database_url, serve

_AT_ONCE = 5_000
_NAMES = {"app_name": "bench", "user_id": "user"}


class Adk:
    """One session service."""

    def __init__(self) -> None:
        self._engine = create_async_engine(database_url("postgresql+asyncpg"))
        self._service = DatabaseSessionService(db_engine=self._engine)

    async def fill(self, conversation: str, messages: Sequence[SpokenMessage]) -> None:
        """Insert rows, some thousand at a time; their times are in the past, one after the other."""
        session = await self._service.create_session(**_NAMES, session_id=conversation)
        began = time.time() - len(messages)
        async with AsyncSession(self._engine) as opened, opened.begin():
            for start in range(0, len(messages), _AT_ONCE):
                some = enumerate(messages[start : start + _AT_ONCE], start)
                events = (_event(role, text, f"i{place // 2}", began + place) for place, (role, text) in some)
                opened.add_all([StorageEvent.from_event(session, event) for event in events])
                await opened.flush()
                opened.expunge_all()

    async def turn(self, conversation: str, user: str, assistant: str) -> Any:
        """Play a turn: the events of the session, with the user's, would be sent."""
        session = await self._service.get_session(**_NAMES, session_id=conversation)
        invocation = f"i{len(session.events)}"
        await self._service.append_event(session, _event("user", user, invocation))
        sent = list(session.events)
        await self._service.append_event(session, _event("assistant", assistant, invocation))
        return sent

    def prompt(self, sent: Any) -> list[SpokenMessage]:
        """The roles and texts of what would be sent."""
        return [(event.content.role, event.content.parts[0].text) for event in sent]


def _event(role: str, text: str, invocation: str, at: float | None = None) -> Event:
    author, role = ("user", "user") if role == "user" else ("agent", "model")
    content = Content(role=role, parts=[Part(text=text)])
    event = Event(author=author, invocation_id=invocation, content=content)
    return event if at is None else event.model_copy(update={"timestamp": at})


if __name__ == "__main__":
    asyncio.run(serve(Adk(), ("google-adk", "sqlalchemy", "asyncpg")))
