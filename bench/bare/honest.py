"""An honest bare service: what any service has to do for an append that is safe to repeat and leaves no gap.

The key is looked up by its hash; the append, in one transaction, claims the idempotency key, locks the conversation's
row, takes its next number, inserts the message, moves the counters and inserts an event, and commits once. A context
is the conversation and its messages. Started as ``uvicorn bench.bare.honest:create_app --factory``.
"""

from __future__ import annotations

import hashlib
import json
from typing import Annotated, Any, Final
from uuid import UUID

import asyncpg
from fastapi import Depends, FastAPI, Header, HTTPException, Request
from uuid_utils.compat import uuid7

from bench.bare.store import Context, Message, Written, message_of, pooled

SCHEMA: Final = """
CREATE SCHEMA IF NOT EXISTS honest;
CREATE TABLE IF NOT EXISTS honest.api_keys (
    secret_hash bytea PRIMARY KEY, tenant_id uuid NOT NULL, scopes text[] NOT NULL, revoked_at timestamptz
);
CREATE TABLE IF NOT EXISTS honest.conversations (
    tenant_id uuid, id uuid, last_seq bigint NOT NULL DEFAULT 0, last_event bigint NOT NULL DEFAULT 0,
    total_bytes bigint NOT NULL DEFAULT 0, last_message_at timestamptz, created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, id)
);
CREATE TABLE IF NOT EXISTS honest.messages (
    tenant_id uuid, id uuid, conversation_id uuid NOT NULL, seq bigint NOT NULL, role text NOT NULL,
    content text NOT NULL, created_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, id), UNIQUE (tenant_id, conversation_id, seq),
    FOREIGN KEY (tenant_id, conversation_id) REFERENCES honest.conversations ON DELETE CASCADE
);
CREATE TABLE IF NOT EXISTS honest.events (
    tenant_id uuid, conversation_id uuid, number bigint, type text NOT NULL, data jsonb NOT NULL,
    occurred_at timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (tenant_id, conversation_id, number),
    FOREIGN KEY (tenant_id, conversation_id) REFERENCES honest.conversations ON DELETE CASCADE
);
CREATE TABLE IF NOT EXISTS honest.idempotency_keys (
    tenant_id uuid, key text, fingerprint text NOT NULL, ref jsonb NOT NULL, status int NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (tenant_id, key)
);
"""
_KEY: Final = "SELECT tenant_id, scopes FROM honest.api_keys WHERE secret_hash = $1 AND revoked_at IS NULL"
_CLAIM: Final = (
    "INSERT INTO honest.idempotency_keys (tenant_id, key, fingerprint, ref, status) VALUES ($1, $2, $3, '{}', 0)"
    " ON CONFLICT DO NOTHING RETURNING key"
)
_BEFORE: Final = "SELECT fingerprint, ref FROM honest.idempotency_keys WHERE tenant_id = $1 AND key = $2 FOR UPDATE"
_LOCK: Final = (
    "SELECT last_seq, last_event FROM honest.conversations WHERE tenant_id = $1 AND id = $2 FOR NO KEY UPDATE"
)
_INSERT: Final = (
    "INSERT INTO honest.messages (tenant_id, id, conversation_id, seq, role, content, created_at)"
    " VALUES ($1, $2, $3, $4, $5, $6, now()) RETURNING id, seq, role, content, created_at"
)
_MOVE: Final = (
    "UPDATE honest.conversations SET last_seq = $3, last_event = $4, total_bytes = total_bytes + $5,"
    " last_message_at = now() WHERE tenant_id = $1 AND id = $2"
)
_EVENT: Final = (
    "INSERT INTO honest.events (tenant_id, conversation_id, number, type, data)"
    " VALUES ($1, $2, $3, 'message.created', $4)"
)
_DONE: Final = "UPDATE honest.idempotency_keys SET ref = $3, status = 201 WHERE tenant_id = $1 AND key = $2"
_MESSAGE: Final = "SELECT id, seq, role, content, created_at FROM honest.messages WHERE tenant_id = $1 AND id = $2"
_CONVERSATION: Final = "SELECT last_seq FROM honest.conversations WHERE tenant_id = $1 AND id = $2"
_MESSAGES: Final = (
    "SELECT id, seq, role, content, created_at FROM honest.messages"
    " WHERE tenant_id = $1 AND conversation_id = $2 ORDER BY seq"
)


async def tenant_of(request: Request, authorization: Annotated[str, Header()]) -> UUID:
    """The tenant of the key. Raises 401 for an unknown one, 403 without the scope."""
    digest = hashlib.sha256(authorization.removeprefix("Bearer ").encode()).digest()
    found = await request.app.state.pool.fetchrow(_KEY, digest)
    if found is None:
        raise HTTPException(401, "this key is unknown or revoked")
    if "write" not in found["scopes"]:
        raise HTTPException(403, "this key may not write")
    tenant: UUID = found["tenant_id"]
    return tenant


Tenant = Annotated[UUID, Depends(tenant_of)]


async def begin(request: Request, tenant: Tenant) -> dict[str, UUID]:
    """A new conversation."""
    made = uuid7()
    await request.app.state.pool.execute(
        "INSERT INTO honest.conversations (tenant_id, id) VALUES ($1, $2)", tenant, made
    )
    return {"id": made}


async def append(
    conversation_id: UUID,
    body: Written,
    request: Request,
    tenant: Tenant,
    idempotency_key: Annotated[str | None, Header()] = None,
) -> Message:
    """Append a message; the same key gives the same message again."""
    async with request.app.state.pool.acquire() as connection, connection.transaction():
        before = await _done_before(connection, tenant, idempotency_key, body)
        if before is not None:
            return before
        return await _appended(connection, tenant, conversation_id, body, idempotency_key)


async def _done_before(connection: Any, tenant: UUID, key: str | None, body: Written) -> Message | None:
    fingerprint = hashlib.sha256(body.model_dump_json().encode()).hexdigest()
    if key is None or await connection.fetchval(_CLAIM, tenant, key, fingerprint) is not None:
        return None
    known = await connection.fetchrow(_BEFORE, tenant, key)
    if known["fingerprint"] != fingerprint:
        raise HTTPException(422, "this key was used for another request")
    return message_of(await connection.fetchrow(_MESSAGE, tenant, UUID(json.loads(known["ref"])["message_id"])))


async def _appended(
    connection: asyncpg.Connection, tenant: UUID, conversation_id: UUID, body: Written, key: str | None
) -> Message:
    held = await connection.fetchrow(_LOCK, tenant, conversation_id)
    if held is None:
        raise HTTPException(404, "no such conversation")
    seq, number = held["last_seq"] + 1, held["last_event"] + 1
    row = await connection.fetchrow(_INSERT, tenant, uuid7(), conversation_id, seq, body.role, body.content)
    message = message_of(row)
    await connection.execute(_MOVE, tenant, conversation_id, seq, number, len(body.content.encode()))
    ref = json.dumps({"message_id": str(message.id), "seq": seq, "role": body.role})
    await connection.execute(_EVENT, tenant, conversation_id, number, ref)
    if key is not None:
        await connection.execute(_DONE, tenant, key, ref)
    return message


async def context(conversation_id: UUID, request: Request, tenant: Tenant) -> Context:
    """The conversation's messages. Raises 404 where there is no such conversation."""
    async with request.app.state.pool.acquire() as connection:
        if await connection.fetchval(_CONVERSATION, tenant, conversation_id) is None:
            raise HTTPException(404, "no such conversation")
        rows = await connection.fetch(_MESSAGES, tenant, conversation_id)
    return Context(messages=[message_of(row) for row in rows])


def create_app() -> FastAPI:
    """The application."""
    app = FastAPI(lifespan=pooled(SCHEMA))
    app.post("/conversations", status_code=201)(begin)
    app.post("/conversations/{conversation_id}/messages", status_code=201)(append)
    app.get("/conversations/{conversation_id}/context")(context)
    return app
