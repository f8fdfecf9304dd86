"""What both bare services have in common: the request's and the response's shapes, and a pool of connections."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import datetime
from typing import Any, Final, Literal
from uuid import UUID

import asyncpg
from fastapi import FastAPI
from pydantic import BaseModel, Field
from sqlalchemy.engine import make_url

POOL: Final = 10


class Written(BaseModel):
    """A message as a client sends it."""

    role: Literal["user", "assistant", "system"]
    content: str = Field(min_length=1, max_length=4_000_000)


class Message(Written):
    """A message as it is stored."""

    id: UUID
    seq: int
    created_at: datetime


class Context(BaseModel):
    """The messages of a conversation, oldest first."""

    messages: list[Message]


def address() -> str:
    """The address in ``DATABASE_URL``, in the form that asyncpg reads."""
    url = make_url(os.environ["DATABASE_URL"])
    return url.set(drivername="postgresql").render_as_string(hide_password=False)


def pooled(schema: str) -> Callable[[FastAPI], AbstractAsyncContextManager[None]]:
    """A lifespan that makes the tables and keeps a pool at ``app.state.pool``."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with asyncpg.create_pool(address(), min_size=POOL, max_size=POOL) as pool:
            await pool.execute(schema)
            app.state.pool = pool
            yield

    return lifespan


def message_of(row: Any) -> Message:
    """A row as a message."""
    return Message.model_validate(dict(row))
