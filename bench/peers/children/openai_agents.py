"""OpenAI Agents SDK: ``SQLAlchemySession``.

It stores every item as a row of JSON. It sends the whole history: ``SessionSettings.limit`` is ``None`` unless it is
set, and compaction (``OpenAIResponsesCompactionSession``, by OpenAI's own service) is optional. A turn does what
``Runner.run`` does with a session: it reads the history, adds the user's message, then the reply.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from agents.extensions.memory import SQLAlchemySession
from sqlalchemy.ext.asyncio import create_async_engine

from bench.peers.children.protocol import SpokenMessage, database_url, serve


class OpenAIAgents:
    """The sessions on one database engine."""

    def __init__(self) -> None:
        self._engine = create_async_engine(database_url("postgresql+asyncpg"))

    def _session(self, conversation: str) -> Any:
        return SQLAlchemySession(conversation, engine=self._engine, create_tables=True)

    async def fill(self, conversation: str, messages: Sequence[SpokenMessage]) -> None:
        """Add all messages at once."""
        await self._session(conversation).add_items([_item(*one) for one in messages])

    async def turn(self, conversation: str, user: str, assistant: str) -> Any:
        """Play a turn: the history and the new message would be sent."""
        session = self._session(conversation)
        asked = _item("user", user)
        history = await session.get_items()
        await session.add_items([asked])
        await session.add_items([_item("assistant", assistant)])
        return [*history, asked]

    def prompt(self, sent: Any) -> list[SpokenMessage]:
        """The roles and texts of what would be sent."""
        return [(item["role"], item["content"]) for item in sent]


def _item(role: str, text: str) -> dict[str, str]:
    return {"role": role, "content": text}


if __name__ == "__main__":
    asyncio.run(serve(OpenAIAgents(), ("openai-agents", "sqlalchemy", "asyncpg")))
