"""Reads what the database has of a campaign's conversations, once everything is at rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from app.storage.tables import IS_DUE
from bench.chaos.log import Json
from tests.acceptance.chaos import Books


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A row of ``messages``."""

    id: str
    seq: int
    role: str
    content: str
    status: str = "complete"
    is_command: bool = False
    message_sum: int = 0
    token_sum: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """A row of ``state_versions``."""

    version: int
    boundary_seq: int
    boundary_message_id: str | None
    compaction_id: str | None
    made_by: str = "compaction"


@dataclass(frozen=True, slots=True, kw_only=True)
class Compaction:
    """A row of ``compactions``."""

    id: str
    status: str
    trigger: str = "manual"
    from_seq: int | None = None
    to_seq: int | None = None
    before: int = 0
    after: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """A row of ``turns``."""

    id: str
    message_id: str
    reply_id: str | None
    status: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """A row of ``events``."""

    number: int
    type: str
    data: Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """A conversation with everything that belongs to it, each in its order."""

    id: str
    last_seq: int = 0
    last_event: int = 0
    boundary_seq: int = 0
    state_version: int = 0
    covered_messages: int = 0
    covered_tokens: int = 0
    total_messages: int = 0
    total_tokens: int = 0
    messages: Sequence[Message] = ()
    states: Sequence[State] = ()
    compactions: Sequence[Compaction] = ()
    turns: Sequence[Turn] = ()
    events: Sequence[Event] = ()
    by_seq: dict[int, Message] = field(init=False)
    by_id: dict[str, Message] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "by_seq", {one.seq: one for one in self.messages})
        object.__setattr__(self, "by_id", {one.id: one for one in self.messages})


def _rows_of(table: str, columns: str, order: str) -> str:
    """All rows of a conversation in a table."""
    return f"SELECT {columns} FROM {table} WHERE conversation_id = CAST(:id AS uuid) ORDER BY {order}"  # noqa: S608


_CONVERSATION: Final = (
    "SELECT last_seq, last_event, boundary_seq, state_version, covered_messages, covered_tokens, total_messages,"
    " total_tokens FROM conversations WHERE id = CAST(:id AS uuid)"
)
_MESSAGES: Final = _rows_of(
    "messages", "id::text AS id, seq, role, content, status, is_command, message_sum, token_sum", "seq"
)
_STATES: Final = _rows_of(
    "state_versions",
    "version, boundary_seq, boundary_message_id::text AS boundary_message_id, compaction_id::text AS compaction_id,"
    " made_by",
    "version",
)
_COMPACTIONS: Final = _rows_of(
    "compactions",
    "id::text AS id, status, trigger, from_seq, to_seq, state_version_before AS before, state_version_after AS after",
    "id",
)
_TURNS: Final = _rows_of(
    "turns", "id::text AS id, message_id::text AS message_id, reply_id::text AS reply_id, status", "id"
)
_EVENTS: Final = _rows_of("events", "number, type, data", "number")
AT_REST_SECONDS: Final = 30
"""For so many seconds nothing begins by itself once everything is at rest: enough time to read the database."""
_OPEN: Final = f"""
SELECT (SELECT count(*) FROM compactions WHERE status IN ('queued', 'running'))
    + (SELECT count(*) FROM turns WHERE status = 'running')
    + (SELECT count(*) FROM verifications WHERE status IN ('queued', 'running'))
    + (
        SELECT count(*) FROM conversations  -- at their trigger, after a failure, with a pause that ends too soon
        WHERE ({IS_DUE}) AND deleted_at IS NULL AND last_seq > quiet_until_seq AND context_tokens >= quiet_until_tokens
            AND (quiet_until IS NULL OR quiet_until <= now() + interval '{AT_REST_SECONDS} seconds')
    ) AS open
"""  # noqa: S608 - our own constants


def read_conversation(books: Books, id_: str) -> Conversation:
    """All rows of one conversation."""
    (head,) = books.rows(_CONVERSATION, id=id_)
    return Conversation(
        id=id_,
        **head,
        messages=[Message(**row) for row in books.rows(_MESSAGES, id=id_)],
        states=[State(**row) for row in books.rows(_STATES, id=id_)],
        compactions=[Compaction(**row) for row in books.rows(_COMPACTIONS, id=id_)],
        turns=[Turn(**row) for row in books.rows(_TURNS, id=id_)],
        events=[Event(**row) for row in books.rows(_EVENTS, id=id_)],
    )


def open_work(books: Books) -> int:
    """How many compactions, turns and verifications are not over, or will soon be claimed by a sweeper."""
    found: int = books.value(_OPEN)
    return found


def busy_connections(books: Books) -> list[str]:
    """What each busy connection does, and what and whom it waits for, in words: it explains why nothing goes on."""
    statement = """
        SELECT pid, state, wait_event_type, wait_event, pg_blocking_pids(pid) AS behind, left(query, 80) AS query
        FROM pg_stat_activity WHERE state <> 'idle' AND pid <> pg_backend_pid() ORDER BY query_start
    """
    return [" ".join(f"{name}={value}" for name, value in row.items()) for row in books.rows(statement)]
