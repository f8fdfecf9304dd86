"""A naive bare service: a plain insert and a plain select, without keys, locks, events or safe repetition.

Two appends at once may fail on the same number. Started as ``uvicorn bench.bare.naive:create_app --factory``.
"""

from __future__ import annotations

from typing import Final
from uuid import UUID

from fastapi import FastAPI, Request
from uuid_utils.compat import uuid7

from bench.bare.store import Context, Message, Written, message_of, pooled

SCHEMA: Final = """
CREATE SCHEMA IF NOT EXISTS naive;
CREATE TABLE IF NOT EXISTS naive.messages (
    id uuid PRIMARY KEY, conversation_id uuid NOT NULL, seq bigint NOT NULL, role text NOT NULL, content text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(), UNIQUE (conversation_id, seq)
);
"""
_INSERT: Final = (
    "INSERT INTO naive.messages (id, conversation_id, seq, role, content)"
    " SELECT $1, $2, coalesce(max(seq), 0) + 1, $3, $4 FROM naive.messages WHERE conversation_id = $2"
    " RETURNING id, seq, role, content, created_at"
)
_MESSAGES: Final = (
    "SELECT id, seq, role, content, created_at FROM naive.messages WHERE conversation_id = $1 ORDER BY seq"
)


async def begin() -> dict[str, UUID]:
    """A new conversation: nothing but its id."""
    return {"id": uuid7()}


async def append(conversation_id: UUID, body: Written, request: Request) -> Message:
    """Append a message."""
    row = await request.app.state.pool.fetchrow(_INSERT, uuid7(), conversation_id, body.role, body.content)
    return message_of(row)


async def context(conversation_id: UUID, request: Request) -> Context:
    """The conversation's messages."""
    rows = await request.app.state.pool.fetch(_MESSAGES, conversation_id)
    return Context(messages=[message_of(row) for row in rows])


def create_app() -> FastAPI:
    """The application."""
    app = FastAPI(lifespan=pooled(SCHEMA))
    app.post("/conversations", status_code=201)(begin)
    app.post("/conversations/{conversation_id}/messages", status_code=201)(append)
    app.get("/conversations/{conversation_id}/context")(context)
    return app
