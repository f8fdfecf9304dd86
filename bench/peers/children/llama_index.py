"""LlamaIndex: ``Memory`` over its SQLAlchemy chat store.

It stores every message as a row of JSON. It sends the newest messages of up to 21 000 tokens (0.7 of ``token_limit``,
which is 30 000). Older ones are marked as archived, some 3 000 tokens at a time, and are not sent any more; without a
memory block, which is the default, nothing replaces them. For each message that is added, all active ones are read and
counted by tiktoken. A turn does what an agent does with a memory: it puts the user's message, reads the memory, and
puts the reply. A conversation is filled in batches.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from llama_index.core.llms import ChatMessage
from llama_index.core.memory import Memory
from sqlalchemy.ext.asyncio import create_async_engine

from bench.peers.children.protocol import SpokenMessage, database_url, serve

_AT_ONCE = 200


class LlamaIndex:
    """The memories on one database engine; each is made once."""

    def __init__(self) -> None:
        self._engine = create_async_engine(database_url("postgresql+asyncpg"))
        self._memories: dict[str, Any] = {}

    def _memory(self, conversation: str) -> Any:
        if conversation not in self._memories:
            self._memories[conversation] = Memory.from_defaults(session_id=conversation, async_engine=self._engine)
        return self._memories[conversation]

    async def fill(self, conversation: str, messages: Sequence[SpokenMessage]) -> None:
        """Add messages, some hundred at a time, since the time of a batch grows with the square of its size."""
        memory = self._memory(conversation)
        for start in range(0, len(messages), _AT_ONCE):
            some = messages[start : start + _AT_ONCE]
            await memory.aput_messages([ChatMessage(role=role, content=text) for role, text in some])

    async def turn(self, conversation: str, user: str, assistant: str) -> Any:
        """Play a turn: the messages that the memory returns would be sent."""
        memory = self._memory(conversation)
        await memory.aput(ChatMessage(role="user", content=user))
        sent = await memory.aget()
        await memory.aput(ChatMessage(role="assistant", content=assistant))
        return sent

    def prompt(self, sent: Any) -> list[SpokenMessage]:
        """The roles and texts of what would be sent."""
        return [(message.role.value, message.content) for message in sent]


if __name__ == "__main__":
    asyncio.run(serve(LlamaIndex(), ("llama-index-core", "sqlalchemy", "asyncpg", "tiktoken")))
