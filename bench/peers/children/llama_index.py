"""LlamaIndex: ``Memory`` over its SQLAlchemy chat store.

It keeps every message as a row of JSON. It sends the newest messages of up to 21 000 tokens (0.7 of ``token_limit``,
which is 30 000): what is older is marked as archived, some 3 000 tokens at a time, and is sent no more; without a
memory block, and none is there by default, nothing is told of it. Each message that is added has all active ones read
and counted, by tiktoken. A turn does what an agent does of a memory: the user's message is put, the memory read, the
reply put. A conversation is filled by batches.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from llama_index.core.llms import ChatMessage
from llama_index.core.memory import Memory
from sqlalchemy.ext.asyncio import create_async_engine

from bench.peers.children.protocol import Said, database_url, serve

_AT_ONCE = 200


class LlamaIndex:
    """Memories of one engine, each made once."""

    def __init__(self) -> None:
        self._engine = create_async_engine(database_url("postgresql+asyncpg"))
        self._memories: dict[str, Any] = {}

    def _memory(self, conversation: str) -> Any:
        if conversation not in self._memories:
            self._memories[conversation] = Memory.from_defaults(session_id=conversation, async_engine=self._engine)
        return self._memories[conversation]

    async def fill(self, conversation: str, messages: Sequence[Said]) -> None:
        """Some hundred at a time: the time of a batch grows with its square."""
        memory = self._memory(conversation)
        for start in range(0, len(messages), _AT_ONCE):
            some = messages[start : start + _AT_ONCE]
            await memory.aput_messages([ChatMessage(role=role, content=text) for role, text in some])

    async def turn(self, conversation: str, user: str, assistant: str) -> Any:
        """What the memory gives is sent."""
        memory = self._memory(conversation)
        await memory.aput(ChatMessage(role="user", content=user))
        sent = await memory.aget()
        await memory.aput(ChatMessage(role="assistant", content=assistant))
        return sent

    def prompt(self, sent: Any) -> list[Said]:
        """Roles and texts."""
        return [(message.role.value, message.content) for message in sent]


if __name__ == "__main__":
    asyncio.run(serve(LlamaIndex(), ("llama-index-core", "sqlalchemy", "asyncpg", "tiktoken")))
