"""The SQL of state versions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from pydantic import TypeAdapter
from sqlalchemy import (
    ARRAY,
    BigInteger,
    Text,
    Uuid,
    and_,
    any_,
    cast,
    func,
    insert,
    literal,
    literal_column,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import distinct_on
from sqlalchemy.orm import aliased
from sqlalchemy.sql import ColumnElement
from sqlmodel import col

from app.core.model.errors import NotFoundError
from app.core.model.records import Page
from app.core.model.repairs import Repair
from app.core.model.state import StateEntry, StateVersion, VerificationCounts
from app.off_loop import in_slices
from app.storage.repositories.base import Repository
from app.storage.repositories.cursor import BY_NUMBER, select_page
from app.storage.repositories.mapping import (
    LAYOUT,
    as_dict,
    columns,
    record_from_row,
    sums_columns,
    sums_from_row,
    without,
)
from app.storage.repositories.sizes import cut_to_fit
from app.storage.tables import StateVersionRow

_ENTRIES_ADAPTER = TypeAdapter(tuple[StateEntry, ...])
_REPAIRS_ADAPTER = TypeAdapter(tuple[Repair, ...])
_COUNTS_ADAPTER = TypeAdapter(VerificationCounts | None)
_number = col(StateVersionRow.version)
_WRITTEN_BY: Final[ColumnElement[str]] = literal_column("state_versions.xmin::text || state_versions.ctid::text")
"""A value that changes whenever a row is written: its transaction and its position in the table."""
_WITHOUT_STATE = select(
    *(getattr(StateVersionRow, name) for name in StateVersionRow.model_fields if name not in {"state", "layout"})
)
READ_AT_ONCE: Final = 50
"""How many versions are read at once."""
_LARGE_COLUMNS = ("state", "entries", "layout", "repairs")
_ROW_BYTES = func.octet_length(
    func.concat(*(cast(col(getattr(StateVersionRow, name)), Text) for name in _LARGE_COLUMNS))
)
_IS_KEPT = ~col(StateVersionRow.is_forgotten)
_IS_PENDING = col(StateVersionRow.verified) == "pending"
FORGOTTEN_AT_ONCE = 100
_REWRITTEN = ("state", "entries", "layout", "repairs", "verified", "verification")


class KnownVersions:
    """A cache of state versions, by number and written row. Equal entries are kept once."""

    def __init__(self) -> None:
        self.versions: Final[dict[tuple[int, str], StateVersion]] = {}
        self._entries: Final[dict[StateEntry, StateEntry]] = {}

    def version_of(self, row: Any) -> StateVersion:
        """The version in a row, without state and layout. An entry that is already known is not kept twice."""
        version = _version(row, state={}, layout=None)
        return replace(version, entries=tuple(self._entries.setdefault(entry, entry) for entry in version.entries))


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """The versions of a conversation that wait for a verifier."""

    versions: int
    since: datetime
    """When the oldest of these versions was written."""
    tokens_before: int
    """Tokens of the messages that were covered before the oldest of them."""


class StateRepository(Repository):
    """Rows of ``state_versions``."""

    async def add(self, conversation_id: UUID, version: StateVersion) -> None:
        """Insert a version.

        Raises ``NotFoundError`` if there is no conversation, ``ConflictError`` if the version exists already.
        """
        values = {"conversation_id": conversation_id, **_columns(version)}
        await self._session.execute(insert(StateVersionRow).values(**values))

    async def get(self, conversation_id: UUID, version: int) -> StateVersion:
        """One version. Raises ``NotFoundError``, also if the version was forgotten."""
        row = await self._row(conversation_id, version)
        if row is None:
            raise NotFoundError("No such state version.")
        if row.is_forgotten:
            raise NotFoundError(f"State version {version} is not kept any more: GET …/states lists those that are.")
        return _version(row)

    async def parent_of(self, conversation_id: UUID, version: StateVersion) -> StateVersion | None:
        """The version that another one goes on from; ``None`` if that was forgotten, or if there is none."""
        row = await self._row(conversation_id, version.parent_version) if version.parent_version else None
        return None if row is None or row.is_forgotten else _version(row)

    async def remembered_parent_of(self, conversation_id: UUID, version: StateVersion) -> StateVersion | None:
        """The version that another one goes on from; of a forgotten one, the entries that the other still has."""
        row = await self._row(conversation_id, version.parent_version) if version.parent_version else None
        if row is None or not row.is_forgotten:
            return None if row is None else _version(row)
        entries = tuple(entry for entry in version.entries if entry.since_version <= row.version)
        return replace(_version(row), state_schema=version.state_schema, entries=entries)

    async def page(self, conversation_id: UUID, page: Page) -> tuple[list[StateVersion], str | None]:
        """A page of versions; fewer than asked for if they are large."""
        of_this = and_(col(StateVersionRow.conversation_id) == conversation_id, _IS_KEPT)
        heads = select_page(select(_number, _ROW_BYTES.label("bytes")).where(of_this), page, (_number,), BY_NUMBER)
        shown, cursor = cut_to_fit(await self._session.rows(heads), page, lambda head: (head.version,))
        these = _number == any_(literal([head.version for head in shown], ARRAY(BigInteger)))
        order = _number.asc() if page.order == "asc" else _number.desc()
        found = await self._session.all(select(StateVersionRow).where(of_this, these).order_by(order))
        return await in_slices(_version, found), cursor

    async def since_boundary(self, conversation_id: UUID, seq: int, known: KnownVersions) -> list[StateVersion]:
        """Every version whose boundary is at or after that ``seq``, oldest first, without state and layout.

        There may be thousands, and most of their entries are the same as in the version before: each is kept once.

        Args:
            conversation_id: The conversation, which is locked.
            seq: The position of a message.
            known: The versions that were read before; rows that were not written since are not read again.
        """
        since = and_(col(StateVersionRow.conversation_id) == conversation_id, col(StateVersionRow.boundary_seq) >= seq)
        heads = select(_number, _WRITTEN_BY.label("written_by")).where(since, _IS_KEPT).order_by(_number)
        keys = [(head.version, head.written_by) for head in await self._session.rows(heads)]
        unknown = [key for key in keys if key not in known.versions]
        for first in range(0, len(unknown), READ_AT_ONCE):
            some = dict(unknown[first : first + READ_AT_ONCE])
            these = _number == any_(literal(list(some), ARRAY(BigInteger)))
            rows = await self._session.rows(_WITHOUT_STATE.where(since, these))
            for version in await in_slices(known.version_of, rows):
                known.versions[version.version, some[version.version]] = version
        return [known.versions[key] for key in keys]

    async def segments_since_boundary(self, conversation_id: UUID, seq: int) -> list[str]:
        """The segments made by the versions whose boundary is at or after that ``seq``, forgotten versions included."""
        statement = select(func.unnest(col(StateVersionRow.segment_ids))).where(
            col(StateVersionRow.conversation_id) == conversation_id, col(StateVersionRow.boundary_seq) >= seq
        )
        return sorted(set(await self._session.all(statement)))

    async def forget(self, conversation_id: UUID, *, through: int) -> int:
        """Empty the ``FORGOTTEN_AT_ONCE`` versions up to ``through``; return how many were not empty yet."""
        some = _number.between(through - FORGOTTEN_AT_ONCE + 1, through)
        empty: dict[str, Any] = {"state": {}, "entries": [], "repairs": [], "layout": None, "is_forgotten": True}
        statement = (
            update(StateVersionRow)
            .where(col(StateVersionRow.conversation_id) == conversation_id, some, _IS_KEPT)
            .values(**empty)
            .returning(_number)
        )
        return len(await self._session.all(statement))

    async def rewrite(self, conversation_id: UUID, version: StateVersion) -> None:
        """Store a version's ``state``, ``entries``, ``covered``, ``layout``, ``repairs`` and ``verified`` again.

        For erasures, and for verdicts that change only the order in which entries are served from the next version on.
        """
        values = _columns(version)
        await self._session.execute(
            update(StateVersionRow)
            .where(col(StateVersionRow.conversation_id) == conversation_id, _number == version.version)
            .values(
                **{name: item for name, item in values.items() if name.startswith("covered_") or name in _REWRITTEN}
            )
        )

    async def mark_verified(
        self, conversation_id: UUID, version: int, counts: VerificationCounts | None = None
    ) -> None:
        """Record that a model verified a version, and what it found."""
        await self._session.execute(
            update(StateVersionRow)
            .where(col(StateVersionRow.conversation_id) == conversation_id, _number == version)
            .values(verified="model", verification=_COUNTS_ADAPTER.dump_python(counts, mode="json"))
        )

    async def end_waiting(self, conversation_id: UUID, *, before: int, after: int = 0) -> None:
        """Record that pending versions between ``after`` and ``before`` are verified by code only."""
        between = (_number > after, _number < before)
        await self._session.execute(
            update(StateVersionRow)
            .where(col(StateVersionRow.conversation_id) == conversation_id, *between, _IS_PENDING)
            .values(verified="exact")
        )

    async def waiting(self, conversation_id: UUID) -> Waiting | None:
        """A summary of the versions that wait for a verifier; ``None`` if none waits."""
        parent = aliased(StateVersionRow)
        is_parent = and_(
            col(parent.tenant_id) == col(StateVersionRow.tenant_id),
            col(parent.conversation_id) == col(StateVersionRow.conversation_id),
            col(parent.version) == col(StateVersionRow.parent_version),
        )
        statement = (
            select(
                func.count().over(),
                col(StateVersionRow.created_at),
                func.coalesce(col(parent.covered_tokens), 0),
            )
            .outerjoin(parent, is_parent)
            .where(col(StateVersionRow.conversation_id) == conversation_id, _IS_PENDING)
            .order_by(_number)
            .limit(1)
        )
        for versions, since, tokens in await self._session.rows(statement):
            return Waiting(versions=versions, since=since, tokens_before=tokens)
        return None

    async def repairs_of(self, compaction_ids: Sequence[UUID]) -> dict[UUID, tuple[Repair, ...]]:
        """The repairs to the summaries of these compactions, over all versions that each of them wrote."""
        compaction_id = col(StateVersionRow.compaction_id)
        listed = literal(list(compaction_ids), ARRAY(Uuid))
        rows = await self._session.rows(
            select(compaction_id, col(StateVersionRow.repairs))
            .where(compaction_id == any_(listed), func.jsonb_array_length(col(StateVersionRow.repairs)) > 0)
            .order_by(compaction_id, _number)
        )
        found: dict[UUID, tuple[Repair, ...]] = {}
        for id_, repairs in rows:
            found[id_] = (*found.get(id_, ()), *_REPAIRS_ADAPTER.validate_python(repairs))
        return found

    async def by_compaction(self, compaction_ids: Sequence[UUID]) -> dict[UUID, StateVersion]:
        """The last version that each of these compactions wrote, in one query; none that was forgotten."""
        compaction_id = col(StateVersionRow.compaction_id)
        listed = literal(list(compaction_ids), ARRAY(Uuid))
        rows = await self._session.all(
            select(StateVersionRow)
            .where(compaction_id == any_(listed), _IS_KEPT)
            .ext(distinct_on(compaction_id))
            .order_by(compaction_id, _number.desc())
        )
        return {row.compaction_id: _version(row) for row in rows}

    async def _row(self, conversation_id: UUID, version: int) -> StateVersionRow | None:
        found: StateVersionRow | None = await self._session.first(
            select(StateVersionRow).where(col(StateVersionRow.conversation_id) == conversation_id, _number == version)
        )
        return found


def _columns(version: StateVersion) -> dict[str, Any]:
    return without(columns(version), "covered") | {
        "state": as_dict(version.state),
        "entries": _ENTRIES_ADAPTER.dump_python(version.entries, mode="json"),
        "layout": LAYOUT.dump_python(version.layout, mode="json"),
        "segment_ids": list(version.segment_ids),
        "repairs": _REPAIRS_ADAPTER.dump_python(version.repairs, mode="json"),
        "verification": _COUNTS_ADAPTER.dump_python(version.verification, mode="json"),
        **sums_columns("covered", version.covered),
    }


def _version(row: Any, **left_out: Any) -> StateVersion:
    given = left_out or {"layout": LAYOUT.validate_python(row.layout)}
    return record_from_row(
        StateVersion,
        row,
        covered=sums_from_row("covered", row),
        entries=_ENTRIES_ADAPTER.validate_python(row.entries),
        segment_ids=tuple(row.segment_ids),
        repairs=_REPAIRS_ADAPTER.validate_python(row.repairs),
        verification=_COUNTS_ADAPTER.validate_python(row.verification),
        **given,
    )
