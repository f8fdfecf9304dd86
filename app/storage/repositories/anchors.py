"""The SQL of anchors."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, Final
from uuid import UUID

from sqlalchemy import (
    ARRAY,
    JSON,
    BigInteger,
    Uuid,
    all_,
    and_,
    any_,
    bindparam,
    case,
    delete,
    func,
    literal,
    literal_column,
    not_,
    or_,
    select,
    text,
    true,
    update,
)
from sqlalchemy.dialects.postgresql import insert
from sqlmodel import col

from app.core.model.anchors import Anchor, AnchorStatus, AnchorType, FoundAnchor, Ranking, Transition
from app.core.model.errors import NotFoundError
from app.core.model.records import Page
from app.off_loop import in_slices
from app.storage.repositories.base import Repository
from app.storage.repositories.cursor import BY_PLACE, cut_page, select_page
from app.storage.repositories.mapping import columns, new_parameters, new_values, record_from_row, record_maker, without
from app.storage.repositories.speaker_names import SPEAKER_NAME
from app.storage.repositories.utc_offsets import OWN_TIME
from app.storage.tables import ACTIVE, AnchorRow, MessageRow
from app.storage.tenancy import keep_compiled

_MESSAGE = (
    select(OWN_TIME.label("said_at"), SPEAKER_NAME)
    .where(col(MessageRow.id) == col(AnchorRow.message_id))
    .correlate(AnchorRow)
    .limit(literal_column("1"))
    .lateral("message")
)
"""Reads an anchor's message, which has a row of its own.

It is looked up for each anchor: if there are few messages, a plain join would read all messages of the tenant.
"""
_MESSAGE_FIELDS = {
    "said_at": _MESSAGE.c.said_at,
    "said_by": func.coalesce(_MESSAGE.c.said_by, literal_column("''")).label("said_by"),
}
"""The fields of an anchor that are read from its message."""
_UNREAD_MESSAGE_FIELDS: dict[str, Any] = {"said_at": None, "said_by": ""}
"""The values of these fields if they are not read."""


def _column(name: str) -> Any:
    return _MESSAGE_FIELDS[name] if name in _MESSAGE_FIELDS else col(getattr(AnchorRow, name))


_FIELDS = tuple(item.name for item in fields(Anchor))
_COLUMNS = tuple(map(_column, _FIELDS))
_SERVED_FIELDS = tuple(item.name for item in fields(FoundAnchor))
_SERVED = tuple(map(_column, _SERVED_FIELDS))
_ANCHORS = select(*_COLUMNS).select_from(AnchorRow).outerjoin(_MESSAGE, true())
_NOT_READ: Final[Mapping[str, Any]] = {
    "said_at": literal_column("NULL::timestamptz"),
    "said_by": literal_column("''::text"),
}
_ROWS_ALONE: Any = select(*(_NOT_READ.get(name, column) for name, column in zip(_FIELDS, _COLUMNS, strict=True)))
"""Anchors without what stands in their messages, of which each would be looked up."""
_SERVABLES = select(*_SERVED).select_from(AnchorRow).outerjoin(_MESSAGE, true())
_make_anchor, _make_served = record_maker(Anchor), record_maker(FoundAnchor)
_POSITION_AND_TYPE = ("tenant_id", "conversation_id", "seq", "offset", "type")
MAX_CHOSEN_ANCHORS = 1_000
_POSITION = (col(AnchorRow.seq), col(AnchorRow.offset), col(AnchorRow.id))
_NO_END = 2**62
"""A number larger than every ``seq``."""


def _newest_active(wanted: Any) -> Any:
    return (
        wanted.where(col(AnchorRow.conversation_id) == bindparam("conversation_id"))
        .where(col(AnchorRow.seq) <= bindparam("through_seq"), text(f"{AnchorRow.__tablename__}.{ACTIVE}"))
        .order_by(*(column.desc() for column in _POSITION))
        .limit(bindparam("limit", type_=BigInteger))
    )


def _best_for_context() -> Any:
    """The statement for active anchors that ``ServableAnchors`` may show within ``max_tokens``, and how many it hides.

    An anchor is free (``is_free``) if no user chose it and its message is covered, but not held: every draft of a
    context may show it. Of several anchors with the same type and content only one is shown, the first in the window. A
    free anchor without such a duplicate has the same rank in every draft. So if the free anchors that rank higher take
    more than ``max_tokens``, it is never shown, and need not be read.

    Most of the time goes into sorting. So contents are compared by a hash of 64 bits, and all criteria that come before
    importance are one number.
    """
    row, big = AnchorRow, BigInteger
    free = and_(
        col(row.seq) <= bindparam("covered_seq", type_=big),
        col(row.seq) != all_(bindparam("held", type_=ARRAY(big))),
        col(row.proposed_by) != "user",
    )
    names = ("id", "seq", "importance", "offset", "token_count", "type")
    claimed = case((col(row.claimed_status).is_(None), 0), else_=4)
    rank = claimed + case((col(row.passed_over), 2), else_=0) + case((col(row.proposed_by) == "model", 0), else_=1)
    newest = _newest_active(
        select(
            *(col(getattr(row, name)) for name in names),
            and_(col(row.speaker) == "user", not_(col(row.pasted))).label("is_own"),
            func.hashtextextended(col(row.type).concat(col(row.content)), 0).label("words"),
            free.label("is_free"),
            rank.label("rank"),
        )
    ).subquery()
    of = newest.c
    order = (of.is_free, of.is_own.desc(), of.seq.desc(), of.offset.desc())
    before = func.lag(of.is_free).over(partition_by=of.words, order_by=order).label("before")
    labelled = select(*of, before).subquery()
    alone = and_(labelled.c.is_free, labelled.c.before.is_(None))
    ranks = (labelled.c.rank, labelled.c.importance.desc(), labelled.c.seq, labelled.c.offset, labelled.c.type)
    through = func.sum(case((alone, labelled.c.token_count), else_=0)).over(order_by=ranks, rows=(None, 0))
    is_hidden = and_(alone, through - labelled.c.token_count > bindparam("max_tokens", type_=big)).label("is_hidden")
    ranked = (
        select(labelled.c.id, is_hidden)
        .where(or_(not_(labelled.c.is_free), labelled.c.before.is_distinct_from(True)))  # noqa: FBT003 - a value of SQL
        .cte("ranked")
    )
    shown = func.array(select(ranked.c.id).where(not_(ranked.c.is_hidden)).scalar_subquery())
    hidden = select(func.count()).select_from(ranked).where(ranked.c.is_hidden).scalar_subquery()
    return _SERVABLES.add_columns(hidden).where(col(row.id) == any_(shown))


_ACTIVE = _newest_active(_ROWS_ALONE)
_ACTIVE_AS_SAID = _newest_active(_ANCHORS)
_SERVABLE = _newest_active(_SERVABLES)
_SHOWABLE = _best_for_context()
_CLAIMED = _ACTIVE_AS_SAID.where(col(AnchorRow.claimed_status).is_not(None))
_CHOSEN = _ACTIVE_AS_SAID.where(col(AnchorRow.proposed_by) == "user")
_ACTIVE_SINCE = _ACTIVE.where(bindparam("from_seq") <= col(AnchorRow.seq))
_AMONG_IDS = _ACTIVE.where(col(AnchorRow.id) == any_(bindparam("ids", type_=ARRAY(Uuid))))
_NEWEST_TEXTS = _newest_active(select(col(AnchorRow.id), col(AnchorRow.seq), col(AnchorRow.content))).subquery()
_TEXTS_AS_JSON = select(func.json_agg(func.json_build_array(*_NEWEST_TEXTS.c), type_=JSON))
_NEWEST_SEQS = _newest_active(select(col(AnchorRow.seq))).subquery()
_SEQS_AS_JSON = select(func.json_agg(_NEWEST_SEQS.c.seq, type_=JSON))
_SUPERSEDED = (
    select(col(AnchorRow.content))
    .where(col(AnchorRow.conversation_id) == bindparam("conversation_id"), col(AnchorRow.status) == "superseded")
    .order_by(*(column.desc() for column in _POSITION))
    .limit(bindparam("limit", type_=BigInteger))
)
_INSERT = insert(AnchorRow).values(without(new_parameters(Anchor), *_MESSAGE_FIELDS)).on_conflict_do_nothing()
_CHANGE = (
    update(AnchorRow)
    .where(col(AnchorRow.conversation_id) == bindparam("of"), col(AnchorRow.id) == bindparam("anchor_id"))
    .values(new_parameters(also=("status", "superseded_by")) | {"claimed_status": None, "claimed_seq": None})
)
keep_compiled(
    _ACTIVE,
    _ACTIVE_AS_SAID,
    _SERVABLE,
    _SHOWABLE,
    _CLAIMED,
    _CHOSEN,
    _ACTIVE_SINCE,
    _AMONG_IDS,
    _TEXTS_AS_JSON,
    _SEQS_AS_JSON,
    _SUPERSEDED,
    _INSERT,
    _CHANGE,
)

_CLEARED: Final[Mapping[str, None]] = {"superseded_by": None, "claimed_status": None, "claimed_seq": None}
"""The columns of an anchor that nothing has replaced, and of which no model claims so."""


class AnchorRepository(Repository):
    """Rows of ``anchors``."""

    async def add(self, anchors: Sequence[Anchor]) -> None:
        """Insert anchors. An anchor that exists at the same place with the same type stays as it is."""
        if anchors:
            rows = await in_slices(lambda anchor: new_values(without(columns(anchor), *_MESSAGE_FIELDS)), anchors)
            await self._session.write(_INSERT, rows)

    async def get(self, conversation_id: UUID, anchor_id: UUID) -> Anchor:
        """An anchor. Raises ``NotFoundError``."""
        row = await self._session.first(_anchors_of(conversation_id).where(col(AnchorRow.id) == anchor_id))
        if row is None:
            raise NotFoundError("No such anchor.")
        return record_from_row(Anchor, row, **_UNREAD_MESSAGE_FIELDS)

    async def active(
        self, conversation_id: UUID, *, through_seq: int | None = None, limit: int = 1_000, as_said: bool = False
    ) -> list[Anchor]:
        """The newest ``limit`` active anchors (up to that ``seq``), in order of position.

        Only ``as_said`` have they what their lines show of their messages: when and by whom they were said. Without it
        they are read in half the time.
        """
        wanted = _ACTIVE_AS_SAID if as_said else _ACTIVE
        return await in_slices(_make_anchor, await self._newest_in_order(wanted, conversation_id, through_seq, limit))

    async def still_active(self, conversation_id: UUID, ids: Sequence[UUID | str]) -> list[Anchor]:
        """The active anchors among these, in order of position, as ``active`` reads them."""
        if not ids:
            return []
        these = [UUID(str(id_)) for id_ in ids]
        return await in_slices(
            _make_anchor, await self._newest_in_order(_AMONG_IDS, conversation_id, None, len(ids), ids=these)
        )

    async def active_since(
        self, conversation_id: UUID, from_seq: int, *, limit: int, through_seq: int | None = None
    ) -> list[Anchor]:
        """The newest ``limit`` active anchors from that ``seq`` on (up to the other), as ``active`` reads them."""
        rows = await self._newest_in_order(_ACTIVE_SINCE, conversation_id, through_seq, limit, from_seq=from_seq)
        return await in_slices(_make_anchor, rows)

    async def between(self, conversation_id: UUID, from_seq: int, to_seq: int) -> list[Anchor]:
        """The anchors of these messages, whatever their status, in order of position."""
        statement = (
            _anchors_of(conversation_id).where(col(AnchorRow.seq).between(from_seq, to_seq)).order_by(*_POSITION)
        )
        return [record_from_row(Anchor, row, **_UNREAD_MESSAGE_FIELDS) for row in await self._session.all(statement)]

    async def active_texts(self, conversation_id: UUID, *, limit: int) -> list[tuple[str, int, str]]:
        """Id, ``seq`` and content of the newest ``limit`` active anchors, in order of position.

        All are read as text, also the ids: this takes a tenth of the time of whole anchors.
        """
        given = {"conversation_id": conversation_id, "through_seq": _NO_END, "limit": limit}
        return (await self._session.first(_TEXTS_AS_JSON, **given) or [])[::-1]

    async def active_seqs(self, conversation_id: UUID, *, limit: int) -> list[int]:
        """The ``seq`` of the newest ``limit`` active anchors, in any order, in a twentieth of ``active``'s time."""
        given = {"conversation_id": conversation_id, "through_seq": _NO_END, "limit": limit}
        return await self._session.first(_SEQS_AS_JSON, **given) or []

    async def superseded_texts(self, conversation_id: UUID, *, limit: int) -> list[str]:
        """The contents of the newest superseded anchors, the newest first."""
        return await self._session.all(_SUPERSEDED, conversation_id=conversation_id, limit=limit)

    async def servable(
        self, conversation_id: UUID, *, through_seq: int | None = None, limit: int = 1_000
    ) -> list[FoundAnchor]:
        """Active anchors with only the fields that a context needs, in half the time of ``active``."""
        return await in_slices(
            _make_served, await self._newest_in_order(_SERVABLE, conversation_id, through_seq, limit)
        )

    async def showable(
        self, conversation_id: UUID, *, covered_seq: int, held: Sequence[int], max_tokens: int, limit: int
    ) -> tuple[list[FoundAnchor], int]:
        """The active anchors that can be shown within ``max_tokens``, in any order, and the number of the others.

        Args:
            conversation_id: The conversation.
            covered_seq: Up to this message only held messages are served.
            held: The held messages up to there.
            max_tokens: The most tokens for anchors, by their stored estimates.
            limit: How many anchors are looked at, the newest.
        """
        given = {
            "conversation_id": conversation_id,
            "covered_seq": covered_seq,
            "held": list(held),
            "max_tokens": max_tokens,
        }
        rows = await self._session.rows(_SHOWABLE, through_seq=_NO_END, limit=limit, **given)
        return [_make_served(row[:-1]) for row in rows], rows[0][-1] if rows else 0

    async def page(
        self,
        conversation_id: UUID,
        page: Page,
        *,
        type_: AnchorType | None = None,
        status: AnchorStatus | None = None,
        as_said: bool = False,
    ) -> tuple[list[Anchor], str | None]:
        """A page of anchors by position (``seq``, offset, id); ``as_said`` as for ``active``."""
        statement = (_ANCHORS if as_said else _ROWS_ALONE).where(col(AnchorRow.conversation_id) == conversation_id)
        if type_ is not None:
            statement = statement.where(col(AnchorRow.type) == type_)
        if status is not None:
            statement = statement.where(col(AnchorRow.status) == status)
        found = list(map(_make_anchor, await self._session.rows(select_page(statement, page, _POSITION, BY_PLACE))))
        return cut_page(found, page.limit, lambda anchor: (anchor.seq, anchor.offset, anchor.id))

    async def claimed(self, conversation_id: UUID, *, through_seq: int, limit: int) -> list[Anchor]:
        """The newest ``limit`` active anchors up to that ``seq`` with an unsettled claim, in order of position."""
        return await in_slices(_make_anchor, await self._newest_in_order(_CLAIMED, conversation_id, through_seq, limit))

    async def store_ranking(self, conversation_id: UUID, ranking: Ranking) -> None:
        """Store a model's ranking: the anchors it passed over, and its claims. A user's anchors stay as they are."""
        of_others = col(AnchorRow.proposed_by) != "user"
        await self.unclaim(conversation_id, ranking.confirmed)
        for ids, passed_over in ((ranking.confirmed, False), (ranking.passed_over, True)):
            if ids:
                await self._session.execute(
                    _update_of(conversation_id, ids).where(of_others).values(passed_over=passed_over)
                )
        for claim in ranking.claims:
            statement = _update_of(conversation_id, [claim.anchor_id]).where(text(ACTIVE), of_others)
            await self._session.execute(statement.values(claimed_status=claim.status, claimed_seq=claim.seq))

    async def unclaim(self, conversation_id: UUID, ids: Sequence[UUID]) -> None:
        """Remove the claims about these anchors."""
        if ids:
            await self._session.execute(_update_of(conversation_id, ids).values(claimed_status=None, claimed_seq=None))

    async def set_by_user(self, conversation_id: UUID, anchor_id: UUID, status: AnchorStatus) -> None:
        """Set the status that a user chose. An anchor that a user keeps or makes active counts as chosen."""
        values: dict[str, Any] = {"status": status, "superseded_by": None, "claimed_status": None, "claimed_seq": None}
        if status == "active":
            values |= {"proposed_by": "user", "passed_over": False}
        await self._session.execute(_update_of(conversation_id, [anchor_id]).values(**values))

    async def chosen(self, conversation_id: UUID, *, through_seq: int) -> list[Anchor]:
        """The active anchors up to that ``seq`` that a user chose to keep, in order of position."""
        return await in_slices(
            _make_anchor, await self._newest_in_order(_CHOSEN, conversation_id, through_seq, MAX_CHOSEN_ANCHORS)
        )

    async def choose(self, anchors: Sequence[Anchor]) -> None:
        """Store anchors as chosen by a user. An existing one at the same place with the same type becomes chosen."""
        if not anchors:
            return
        insertion = insert(AnchorRow)
        theirs = {"status": "active", "proposed_by": "user", "passed_over": False, "superseded_by": None}
        await self._session.execute(
            insertion.on_conflict_do_update(index_elements=_POSITION_AND_TYPE, set_=theirs),
            [without(columns(anchor), *_MESSAGE_FIELDS) for anchor in anchors],
        )

    async def change(self, conversation_id: UUID, transitions: Sequence[Transition]) -> None:
        """Set statuses, and remove the claims about these anchors."""
        rows = [
            new_values({"status": transition.status, "superseded_by": transition.superseded_by})
            | {"of": conversation_id, "anchor_id": transition.anchor_id}
            for transition in transitions
        ]
        await self._session.write(_CHANGE, rows)

    async def withdraw_of(self, conversation_id: UUID, seq: int) -> tuple[int, int]:
        """Withdraw the anchors of a message, and reactivate those that they superseded; return the number of each."""
        here = col(AnchorRow.conversation_id) == conversation_id
        withdrawn = await self._session.all(
            update(AnchorRow)
            .where(here, col(AnchorRow.seq) == seq)
            .values(status="withdrawn", **_CLEARED)
            .returning(col(AnchorRow.id))
        )
        if not withdrawn:
            return 0, 0
        reactivation = (
            update(AnchorRow)
            .where(here, col(AnchorRow.superseded_by).in_(withdrawn))
            .values(status="active", **_CLEARED)
        )
        return len(withdrawn), len(await self._session.all(reactivation.returning(col(AnchorRow.id))))

    async def delete_of(self, conversation_id: UUID, seqs: Sequence[int]) -> tuple[int, int]:
        """Delete the anchors of these messages, and reactivate those that they superseded; return the number of each.

        An anchor whose successor was itself superseded stays superseded, by the next one. Claims that were made because
        of these messages are cleared.
        """
        listed = literal(list(seqs), ARRAY(BigInteger))
        here = col(AnchorRow.conversation_id) == conversation_id
        await self._session.execute(
            update(AnchorRow)
            .where(here, col(AnchorRow.claimed_seq) == any_(listed))
            .values(claimed_status=None, claimed_seq=None)
        )
        of_messages = (here, col(AnchorRow.seq) == any_(listed))
        read = (col(AnchorRow.id), col(AnchorRow.status), col(AnchorRow.superseded_by))
        rows = {row.id: row for row in await self._session.rows(select(*read).where(*of_messages))}
        by_successor: defaultdict[tuple[bool, UUID | None], list[UUID]] = defaultdict(list)
        for row in rows.values():
            by_successor[_what_follows(row, rows)].append(row.id)
        reactivated = 0
        for (is_outdated, successor), ids in by_successor.items():
            superseded = (here, col(AnchorRow.superseded_by).in_(ids), col(AnchorRow.seq) != all_(listed))
            values = {"superseded_by": successor} if is_outdated else {"status": "active", **_CLEARED}
            changed = update(AnchorRow).where(*superseded).values(**values).returning(col(AnchorRow.id))
            reactivated += len(await self._session.all(changed)) * (not is_outdated)
        await self._session.execute(delete(AnchorRow).where(*of_messages))
        return len(rows), reactivated

    async def _newest_in_order(
        self, wanted: Any, conversation_id: UUID, through_seq: int | None, limit: int, **given: Any
    ) -> Sequence[Any]:
        given |= {"conversation_id": conversation_id, "limit": limit}
        through_seq = _NO_END if through_seq is None else through_seq
        return (await self._session.records(wanted, through_seq=through_seq, **given))[::-1]


def _what_follows(row: Any, deleted: Mapping[UUID, Any]) -> tuple[bool, UUID | None]:
    """Whether an anchor was outdated itself, and the anchor that is left in its place, if it is known."""
    while row.superseded_by in deleted:
        row = deleted[row.superseded_by]
    return row.status == "superseded", row.superseded_by


def _anchors_of(conversation_id: UUID) -> Any:
    return select(AnchorRow).where(col(AnchorRow.conversation_id) == conversation_id)


def _update_of(conversation_id: UUID, ids: Sequence[UUID]) -> Any:
    return update(AnchorRow).where(col(AnchorRow.conversation_id) == conversation_id, col(AnchorRow.id).in_(list(ids)))
