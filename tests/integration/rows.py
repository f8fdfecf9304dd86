"""Values for rows, and the few steps that all tests of the database need."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine
from sqlalchemy.util import greenlet_spawn

from app.core.model.anchors import Anchor
from app.core.model.conversation import Conversation, Message, Sums
from app.core.model.records import Compaction, IdempotencyRecord, Turn
from app.core.model.segments import EXTRACTIVE, Expansion, Level, Segment, SegmentLevel
from app.infrastructure.ids import new_id
from app.storage.scoped_session import TenantSession
from app.storage.unit_of_work import UnitOfWork, UnitOfWorkFactory

START = datetime(2026, 1, 2, 9, 0, 0, 123456, tzinfo=UTC)


def moment(seconds: float) -> datetime:
    """The moment this many seconds after the start."""
    return START + timedelta(seconds=seconds)


async def make_tenant(begin: UnitOfWorkFactory, name: str) -> UUID:
    tenant_id = new_id()
    async with begin(None) as unit:
        await unit.keys.add_tenant(tenant_id, name)
        await unit.commit()
    return tenant_id


def conversation(tenant_id: UUID, **fields: Any) -> Conversation:
    given: dict[str, Any] = {"id": new_id(), "tenant_id": tenant_id, "created_at": START, "updated_at": START}
    return Conversation(**given | fields)


async def stored(begin: UnitOfWorkFactory, tenant_id: UUID, **fields: Any) -> Conversation:
    """A conversation in the database."""
    made = conversation(tenant_id, **fields)
    async with begin(tenant_id) as unit:
        await unit.conversations.add(made)
        await unit.commit()
    return made


def message(conversation_id: UUID, seq: int, **fields: Any) -> Message:
    given: dict[str, Any] = {
        "id": new_id(),
        "conversation_id": conversation_id,
        "seq": seq,
        "role": "user",
        "content": f"message {seq}",
        "token_count": 10,
        "byte_length": 40,
        "created_at": moment(seq),
    }
    return Message(**given | fields)


def anchor(conversation_id: UUID, seq: int, **fields: Any) -> Anchor:
    given: dict[str, Any] = {
        "id": new_id(),
        "conversation_id": conversation_id,
        "message_id": uuid4(),
        "type": "decision",
        "content": f"anchor {seq}",
        "seq": seq,
        "offset": 0,
        "importance": 0.5,
        "token_count": 5,
        "created_at": moment(seq),
    }
    return Anchor(**given | fields)


def level(name: Level, text: str = "told", **fields: Any) -> SegmentLevel:
    given: dict[str, Any] = {"tokens": 3, "made_by": EXTRACTIVE, "content_hash": f"hash of {text}", "created_at": START}
    return SegmentLevel(level=name, text=text, **given | fields)


def segment(conversation_id: UUID, from_seq: int, to_seq: int, **fields: Any) -> Segment:
    given: dict[str, Any] = {
        "id": f"segment_{from_seq}",
        "topic": "auth discussion",
        "started_at": moment(from_seq),
        "ended_at": moment(to_seq),
        "messages": to_seq - from_seq + 1,
        "tokens": 10,
        "created_at": START,
    }
    return Segment(conversation_id=conversation_id, from_seq=from_seq, to_seq=to_seq, **given | fields)


def expansion(conversation_id: UUID, **fields: Any) -> Expansion:
    given: dict[str, Any] = {
        "id": new_id(),
        "way": "explicit",
        "passages": 1,
        "tokens": 9,
        "duration_ms": 2,
        "created_at": START,
    }
    return Expansion(conversation_id=conversation_id, **given | fields)


def weight(entry: Message) -> Sums:
    """The sums that a message adds to the running sums."""
    if entry.is_command or entry.status == "erased":
        return Sums()
    tokens, size = entry.token_count, entry.byte_length
    held = entry.is_protected
    return Sums(messages=1, tokens=tokens, bytes=size, held_tokens=tokens * held, held_bytes=size * held)


def running(messages: Sequence[Message], start: Sums | None = None) -> list[Sums]:
    """The running sums through each of the messages."""
    return list(accumulate((weight(entry) for entry in messages), Sums.plus, initial=start or Sums()))[1:]


async def resummed(unit: UnitOfWork, conversation_id: UUID) -> Sums:
    """Compute every running sum again from the weights, and return the sums through the last message."""
    row = await unit.conversations.lock(conversation_id)
    said = await unit.messages._summed_weights(conversation_id, 1, row.last_seq)
    await unit.conversations.update(conversation_id, total=said)
    await unit.messages.renew_sums(conversation_id, from_seq=1)
    while await unit.messages.renew_older_sums(conversation_id):
        pass
    return await unit.messages.sums_at(conversation_id, row.last_seq)


async def append(unit: UnitOfWork, messages: Sequence[Message]) -> None:
    """Append to a locked conversation, as the service does."""
    row = await unit.conversations.lock(messages[0].conversation_id)
    sums = running(messages, row.total)
    await unit.messages.append(messages, sums)
    last = messages[-1]
    await unit.conversations.update(
        row.id, last_seq=last.seq, last_message_id=last.id, last_message_at=last.created_at, total=sums[-1]
    )


async def talk(begin: UnitOfWorkFactory, tenant_id: UUID, messages: Sequence[Message]) -> None:
    """Append and commit."""
    async with begin(tenant_id) as unit:
        await append(unit, messages)
        await unit.commit()


def compaction(row: Conversation, **fields: Any) -> Compaction:
    given: dict[str, Any] = {
        "id": new_id(),
        "tenant_id": row.tenant_id,
        "conversation_id": row.id,
        "trigger": "background",
        "ran_in": "worker",
        "status": "queued",
        "requested_at": START,
    }
    return Compaction(**given | fields)


def turn(row: Conversation, **fields: Any) -> Turn:
    given: dict[str, Any] = {
        "id": new_id(),
        "tenant_id": row.tenant_id,
        "conversation_id": row.id,
        "message_id": uuid4(),
        "lease_until": START,
        "started_at": START,
    }
    return Turn(**given | fields)


def idempotent(key: str, **fields: Any) -> IdempotencyRecord:
    given: dict[str, Any] = {"fingerprint": "f", "ref": {"id": 1}, "status": 0, "created_at": START}
    return IdempotencyRecord(key=key, **given | fields)


async def connection_of(engine: AsyncEngine, session: TenantSession) -> AsyncConnection:
    """The connection of a session, in its transaction but without its scope; waiting writes are made first."""
    await session._write_waiting()
    connection = await greenlet_spawn(session._begun_connection)
    return AsyncConnection(engine, connection)
