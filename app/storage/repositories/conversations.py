"""The SQL of conversations."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import fields, replace
from functools import lru_cache
from typing import Any
from uuid import UUID

from sqlalchemy import (
    ARRAY,
    Uuid,
    and_,
    any_,
    bindparam,
    delete,
    exists,
    func,
    insert,
    literal,
    or_,
    select,
    text,
    tuple_,
    update,
)
from sqlmodel import col

from app.core.model.conversation import Conversation, LiveContext, QuietPeriod
from app.core.model.errors import NotFoundError
from app.core.model.records import Page
from app.storage.repositories.base import Repository
from app.storage.repositories.cursor import BY_TIME_AND_ID, select_page
from app.storage.repositories.database_time import is_over, now
from app.storage.repositories.mapping import (
    LAYOUT,
    PACE,
    REMOVED_POLICY_FIELDS,
    as_dict,
    columns,
    new_parameters,
    new_values,
    record_from_row,
    sums_columns,
    sums_from_row,
    without,
)
from app.storage.repositories.sizes import cut_to_fit
from app.storage.tables import (
    COMPACTION_IN_FLIGHT,
    DELETED,
    IS_DUE,
    RUNNING,
    STALE_SUMS,
    CompactionRow,
    ConversationRow,
    CrashRow,
    TurnRow,
)
from app.storage.tenancy import keep_compiled

_LOOKS_PER_END = 5
_NOT_LISTED = ("compressed_state", "scratchpad")
_JSON_FIELDS = ("policy", "compressed_state", "scratchpad")
_NOT_DELETED = col(ConversationRow.deleted_at).is_(None)
_IS_CONVERSATION = and_(col(ConversationRow.id) == bindparam("conversation_id"), _NOT_DELETED)
_GET = select(ConversationRow).where(_IS_CONVERSATION)
_EPOCH = select(col(ConversationRow.content_epoch)).where(_IS_CONVERSATION)
_LOCK = _GET.with_for_update(key_share=True)
_BASE_UPDATE = update(ConversationRow).where(_IS_CONVERSATION)


@lru_cache(maxsize=128)
def _update_of(names: frozenset[str], returned: Any = ConversationRow) -> Any:
    if unknown := names.difference(ConversationRow.model_fields):
        raise ValueError(f"no columns: {', '.join(sorted(unknown))}")
    statement = _BASE_UPDATE.values({"updated_at": now()} | new_parameters(also=sorted(names))).returning(returned)
    keep_compiled(statement)
    return statement


_LISTED_AT = func.coalesce(col(ConversationRow.last_message_at), col(ConversationRow.created_at))
_LISTED_BYTES = (
    func.octet_length(col(ConversationRow.system_prompt)) + func.pg_column_size(col(ConversationRow.meta))
).label("bytes")
_LISTED_ROWS = select(
    *(getattr(ConversationRow, name) for name in ConversationRow.model_fields if name not in _NOT_LISTED)
).where(col(ConversationRow.id) == any_(bindparam("ids", type_=ARRAY(Uuid))), _NOT_DELETED)
keep_compiled(_GET, _EPOCH, _LOCK, _LISTED_ROWS)


class ConversationRepository(Repository):
    """Rows of ``conversations`` of one tenant.

    A deleted conversation cannot be found any more while its rows are removed.
    """

    on_read: Callable[[Conversation], Awaitable[None]] | None = None
    """Awaited with each conversation after it was read: it counts the tokens of large system prompts off the loop."""

    async def _read(self, row: ConversationRow | None) -> Conversation:
        return await self._weigh(_conversation(row))

    async def _weigh(self, conversation: Conversation) -> Conversation:
        if self.on_read is not None:
            await self.on_read(conversation)
        return conversation

    async def add(self, conversation: Conversation) -> None:
        """Insert. Raises ``NotFoundError`` when there is no such tenant."""
        self._check_tenant(conversation.tenant_id)
        await self._session.execute(insert(ConversationRow).values(**_columns(columns(conversation))))

    async def get(self, conversation_id: UUID) -> Conversation:
        """Read without a lock. Raises ``NotFoundError``."""
        return await self._read(await self._session.first(_GET, conversation_id=conversation_id))

    async def lock(self, conversation_id: UUID) -> Conversation:
        """Read a conversation with a lock for which other writers wait. Every writer begins with it.

        Raises ``NotFoundError``. A conversation has to be locked before any of its compactions or turns, otherwise two
        writers deadlock. The lock is ``FOR NO KEY UPDATE``, so that other transactions can insert rows that refer to
        the conversation. With a plain ``FOR UPDATE`` two transactions could deadlock: one that inserts a compaction
        would wait for this lock because of the foreign key, while this one waits for it at the unique index.
        """
        return await self._read(await self._session.first(_LOCK, conversation_id=conversation_id))

    async def update(self, conversation_id: UUID, **changes: Any) -> Conversation:
        """Set fields by their names in ``Conversation``.

        Composed fields (``total``, ``covered``, ``quiet``, ``live`` …) are given as values.
        """
        values = _columns(changes)
        given = {"conversation_id": conversation_id, **new_values(values)}
        return await self._read(await self._session.change(_update_of(frozenset(values)), **given))

    async def update_locked(self, known: Conversation, **changes: Any) -> Conversation:
        """Like ``update``, for a conversation that this transaction locked; it reads only ``updated_at`` back."""
        self._check_tenant(known.tenant_id)
        values = _columns(changes)
        given = {"conversation_id": known.id, **new_values(values)}
        updated_at = await self._session.change(_update_of(frozenset(values), col(ConversationRow.updated_at)), **given)
        if updated_at is None:
            raise _not_found()
        return replace(known, **changes, updated_at=updated_at)

    async def note_due_anchors(self, conversation_id: UUID, first_seq: int | None) -> None:
        """Set from which message on anchors are due.

        ``updated_at`` stays, since nothing that clients see has changed.
        """
        statement = update(ConversationRow).where(_IS_CONVERSATION).values(anchors_due_from=first_seq)
        await self._session.execute(statement, conversation_id=conversation_id)

    async def page(self, page: Page, *, user_id: str | None) -> tuple[list[Conversation], str | None]:
        """A page in the order of ``last_message_at`` (or ``created_at``), then id; and the next cursor.

        State and scratchpad are left out. There are fewer rows than asked for if they are large.
        """
        heads = select(col(ConversationRow.id), _LISTED_AT.label("at"), _LISTED_BYTES).where(_NOT_DELETED)
        if user_id is not None:
            heads = heads.where(col(ConversationRow.user_id) == user_id)
        listed = await self._session.rows(
            select_page(heads, page, (_LISTED_AT, col(ConversationRow.id)), BY_TIME_AND_ID)
        )
        shown, cursor = cut_to_fit(listed, page, lambda head: (head.at, head.id))
        found = {row.id: row for row in await self._session.rows(_LISTED_ROWS, ids=[head.id for head in shown])}
        rows = (found[head.id] for head in shown if head.id in found)
        return [await self._weigh(_conversation(row, compressed_state=None, scratchpad={})) for row in rows], cursor

    async def locales(self, conversation_ids: Collection[UUID]) -> dict[UUID, str]:
        """The language of each of these conversations that exists."""
        row = ConversationRow
        statement = select(col(row.id), col(row.locale)).where(col(row.id).in_(conversation_ids), _NOT_DELETED)
        return dict(await self._session.rows(statement))

    async def delete(self, conversation_id: UUID) -> None:
        """Delete a short conversation with everything derived (foreign keys cascade). Raises ``NotFoundError``."""
        statement = delete(ConversationRow).where(_IS_CONVERSATION).returning(col(ConversationRow.id))
        if await self._session.first(statement, conversation_id=conversation_id) is None:
            raise _not_found()

    async def hide(self, conversation_id: UUID) -> None:
        """Hide a deleted conversation from everybody at once; ``RemovalRepository`` removes its rows.

        Raises ``NotFoundError``.
        """
        # Sweepers and workers, which look at all tenants, must not find it any more.
        idle = {"deleted_at": now(), "trigger_tokens": None, "trigger_messages": None, "live": None}
        statement = (
            update(ConversationRow).where(_IS_CONVERSATION).values(**_columns(idle)).returning(col(ConversationRow.id))
        )
        if await self._session.first(statement, conversation_id=conversation_id) is None:
            raise _not_found()

    async def of_user(self, user_id: str | None, *, limit: int, deleted: bool = False) -> list[UUID]:
        """Conversations of that end user, or of all users (``None``); if ``deleted``, deleted ones with rows left."""
        statement = select(col(ConversationRow.id)).where(~_NOT_DELETED if deleted else _NOT_DELETED)
        if user_id is not None:
            statement = statement.where(col(ConversationRow.user_id) == user_id)
        return await self._session.all(statement.limit(limit))

    async def is_there(self, conversation_id: UUID) -> bool:
        """Whether the conversation exists and is not deleted."""
        return await self._session.first(_EPOCH, conversation_id=conversation_id) is not None

    async def is_being_removed(self, conversation_id: UUID) -> bool:
        """Whether the conversation is deleted and still has rows."""
        own = select(col(ConversationRow.id)).where(col(ConversationRow.id) == conversation_id, ~_NOT_DELETED)
        return await self._session.first(own) is not None

    async def with_stale_sums(self, *, limit: int) -> list[tuple[UUID, UUID]]:
        """Tenant and id of conversations whose running sums have to be computed again, over all tenants."""
        row = ConversationRow
        statement = select(col(row.tenant_id), col(row.id)).where(text(f"conversations.{STALE_SUMS}"), _NOT_DELETED)
        return [(tenant_id, id_) for tenant_id, id_ in await self._session.rows(statement.limit(limit))]

    async def deleted(self, *, limit: int) -> list[tuple[UUID, UUID]]:
        """Tenant and id of deleted conversations that still have rows, over all tenants, the first deleted first."""
        row = ConversationRow
        statement = select(col(row.tenant_id), col(row.id)).where(text(f"conversations.{DELETED}"))
        found = await self._session.rows(statement.order_by(col(row.deleted_at)).limit(limit))
        return [(tenant_id, id_) for tenant_id, id_ in found]

    async def due(self, *, limit: int) -> list[tuple[UUID, UUID]]:
        """Tenant and id of conversations that are due for a compaction, over all tenants. Read by the partial index.

        A conversation is due if ``context_tokens >= trigger_tokens``, its quiet is over (all three conditions of
        ``QuietPeriod``), no row is in flight, and no turn with a live lease runs. Times are those of the database.
        """
        row = ConversationRow
        statement = (
            select(col(row.tenant_id), col(row.id))
            .where(text(f"({IS_DUE})"), _NOT_DELETED)
            .where(col(row.last_seq) > col(row.quiet_until_seq))
            .where(col(row.context_tokens) >= col(row.quiet_until_tokens))
            .where(is_over(col(row.quiet_until)))
            .where(~_exists_for_conversation(CompactionRow).where(text(COMPACTION_IN_FLIGHT)))
            .where(~_exists_for_conversation(CrashRow).where(col(CrashRow.set_aside_at).is_not(None)))
            .where(~_exists_for_conversation(TurnRow).where(text(RUNNING), col(TurnRow.lease_until) > now()))
            .order_by(func.random())
            .limit(limit)
        )
        return [(tenant_id, id_) for tenant_id, id_ in await self._session.rows(statement)]

    async def quiet_for(self, reason: str, *, limit: int, after: tuple[UUID, UUID] | None) -> list[tuple[UUID, UUID]]:
        """Tenant and id of conversations that are due but for a quiet with that reason, over all tenants, in order.

        Only a quiet that ends at some time counts. Read by the partial index; ``after`` is the last one of the page
        before.
        """
        row = ConversationRow
        place = tuple_(col(row.tenant_id), col(row.id))
        statement = (
            select(col(row.tenant_id), col(row.id))
            .where(text(f"({IS_DUE})"), _NOT_DELETED, col(row.quiet_reason) == reason, ~is_over(col(row.quiet_until)))
            .order_by(col(row.tenant_id), col(row.id))
            .limit(limit)
        )
        if after is not None:
            statement = statement.where(place > tuple_(*map(literal, after)))
        return [(tenant_id, id_) for tenant_id, id_ in await self._session.rows(statement)]

    async def end_quiet(
        self, reasons: Collection[str], *, limit: int, attempts: Collection[Mapping[str, str]] = ()
    ) -> int:
        """End the quiet of some conversations that are due but for a quiet with one of these reasons; return how many.

        Over all tenants, and only a quiet that ends at some time. With ``attempts`` only those whose newest compaction
        made one with these fields; at most ``_LOOKS_PER_END`` times as many are looked at, others each time, since
        thousands may wait for another model. One that another transaction has locked is left out.
        """
        row, newest = ConversationRow, CompactionRow
        key = col(row.tenant_id), col(row.id)
        quiet = select(*key).where(
            text(f"({IS_DUE})"), _NOT_DELETED, col(row.quiet_reason).in_(reasons), ~is_over(col(row.quiet_until))
        )
        if attempts:
            of_row = col(newest.tenant_id) == col(row.tenant_id), col(newest.conversation_id) == col(row.id)
            made = select(col(newest.attempts)).where(*of_row).order_by(col(newest.id).desc()).limit(1)
            with_attempts = quiet.add_columns(made.scalar_subquery().label("attempts")).order_by(func.random())
            looked_at = with_attempts.limit(_LOOKS_PER_END * limit).cte("looked_at")
            matches = or_(*(looked_at.c.attempts.contains([dict(one)]) for one in attempts))
            quiet = quiet.where(tuple_(*key).in_(select(looked_at.c.tenant_id, looked_at.c.id).where(matches)))
        found = quiet.limit(limit).with_for_update(key_share=True, skip_locked=True).cte("found")
        ended = update(row).where(tuple_(*key).in_(select(found.c.tenant_id, found.c.id)))
        ended = ended.values(_columns({"quiet": QuietPeriod()}))
        return len((await self._session.execute(ended.returning(col(row.id)))).all())


def _exists_for_conversation(table: type[CompactionRow | CrashRow | TurnRow]) -> Any:
    # The tenant is compared too, since the system scope does not add it.
    return exists().where(
        col(table.tenant_id) == col(ConversationRow.tenant_id), col(table.conversation_id) == col(ConversationRow.id)
    )


def _not_found() -> NotFoundError:
    return NotFoundError("No such conversation.")


def _columns(changes: dict[str, Any]) -> dict[str, Any]:
    """Fields of ``Conversation`` as columns, with composed fields split."""
    values = without(changes, "total", "covered", "quiet", "layout", "live", "pace", "metadata", *_JSON_FIELDS)
    values |= {name: as_dict(changes[name]) for name in _JSON_FIELDS if name in changes}
    for name in ("total", "covered"):
        if name in changes:
            values |= sums_columns(name, changes[name])
    if "quiet" in changes:
        values |= {f"quiet_{name}": item for name, item in columns(changes["quiet"]).items()}
    if "live" in changes:
        values |= _live_columns(changes["live"])
    if "layout" in changes:
        values["layout"] = LAYOUT.dump_python(changes["layout"], mode="json")
    if "pace" in changes:
        values["pace"] = PACE.dump_python(changes["pace"], mode="json")
    if "metadata" in changes:
        values["meta"] = as_dict(changes["metadata"])
    return values


def _live_columns(live: LiveContext | None) -> dict[str, Any]:
    names = [item.name for item in fields(LiveContext)]
    return {f"live_{name}": getattr(live, name, None) for name in names}


def _live_context(row: ConversationRow) -> LiveContext | None:
    if row.live_model is None or row.live_response_id is None or row.live_through_seq is None:
        return None
    return LiveContext(model=row.live_model, response_id=row.live_response_id, through_seq=row.live_through_seq)


def _conversation(row: ConversationRow | None, **left_out: Any) -> Conversation:
    if row is None:
        raise _not_found()
    quiet = QuietPeriod(
        until_seq=row.quiet_until_seq,
        until_tokens=row.quiet_until_tokens,
        until=row.quiet_until,
        reason=row.quiet_reason,
    )
    return record_from_row(
        Conversation,
        row,
        policy=without(row.policy, *REMOVED_POLICY_FIELDS),
        total=sums_from_row("total", row),
        covered=sums_from_row("covered", row),
        quiet=quiet,
        layout=None if row.layout is None else LAYOUT.validate_python(row.layout),
        pace=None if row.pace is None else PACE.validate_python(row.pace),
        live=_live_context(row),
        metadata=row.meta,
        **left_out,
    )
