"""The SQL of messages: they are appended, and read by ranges of ``seq`` and of running sums."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final
from uuid import UUID

from sqlalchemy import (
    ARRAY,
    BigInteger,
    ColumnElement,
    Text,
    Uuid,
    and_,
    any_,
    bindparam,
    case,
    cast,
    func,
    insert,
    literal,
    literal_column,
    not_,
    or_,
    select,
    text,
    tuple_,
    update,
)
from sqlalchemy.dialects.postgresql import JSONB, JSONPATH
from sqlalchemy.orm import defer
from sqlmodel import col

from app.core.model.conversation import UNPROTECTED, Message, MessageText, Outline, Sums
from app.core.model.errors import NotFoundError
from app.core.model.pace import MessageSample
from app.core.model.policies.protection import DEMANDS, call_ids, call_partners
from app.core.model.records import Page
from app.core.retrieval.corpus import Source
from app.core.text.contents import Content, data_bytes, detached_contents, references
from app.core.text.token_counts import UNITS, Estimator, tokens_of
from app.off_loop import BYTES_PER_ITEM, in_slices, off_loop
from app.storage.repositories.base import Repository
from app.storage.repositories.conditions import not_deleted
from app.storage.repositories.contents import ContentRepository
from app.storage.repositories.cursor import BY_NUMBER, decode
from app.storage.repositories.mapping import as_dict, columns, new_parameters, new_values, record_from_row, without
from app.storage.repositories.message_keys import KEY_HOLDER
from app.storage.repositories.message_search import FoundMessages, MessageSearch
from app.storage.repositories.sizes import count_fitting, cut_to_fit, shown_bytes, text_bytes
from app.storage.repositories.term_keys import keys_of
from app.storage.repositories.utc_offsets import with_offset
from app.storage.tables import (
    ACTIVE,
    BELONGS_TO_CALL,
    CALL_KEYS,
    COMMAND,
    QUOTES_MESSAGES,
    AnchorRow,
    ConversationRow,
    MessageRow,
)
from app.storage.tenancy import keep_compiled

SUMMED_AT_ONCE = 2_000  # messages; rewriting their running sums takes a tenth of a second
PARTS_AT_ONCE = 2_000  # parts of messages to store; writing them as JSON takes some milliseconds
KEYING_SPEEDUP = 10  # computing term keys is this many times as fast as our slowest pattern
_seq = col(MessageRow.seq)
_QUOTES_PATH = "$[*].quotes[*] ? (@.from_seq <= $seq && @.to_seq >= $seq)"
# Literals, not parameters, in statements of the ORM too: see ``compiled``.
_IN_TALK = and_(~col(MessageRow.is_command), col(MessageRow.status) != literal_column("'superseded'"))
_NOT_ERASED = col(MessageRow.status) != literal_column("'erased'")
_REWRITTEN = (
    *("content", "parts", "status", "event_type", "token_count", "byte_length"),
    *("protected_reason", "is_pinned", "model", "usage", "reasoning"),
)
_NO_STALE_SUMS = {"stale_sums_from": None, "stale_sums_to": None}
_SUMS = (col(MessageRow.message_sum), col(MessageRow.token_sum), col(MessageRow.byte_sum))

_IN_CONVERSATION = col(MessageRow.conversation_id) == bindparam("conversation_id")
_ROWS: Any = select(MessageRow).options(
    *(defer(column, raiseload=True) for column in (col(MessageRow.term_keys), col(MessageRow.reasoning)))  # type: ignore[arg-type]
)
"""The rows without two columns that few readers want and that may be large."""
_BY_ID = _ROWS.where(_IN_CONVERSATION, col(MessageRow.id) == bindparam("message_id"))
_AT_SEQ = _ROWS.where(_IN_CONVERSATION, _seq == bindparam("seq"))
_IS_AMONG_SEQS = _seq == any_(bindparam("seqs", type_=ARRAY(BigInteger)))
_ALL_AT_SEQS = _ROWS.where(_IN_CONVERSATION, _IS_AMONG_SEQS).order_by(_seq)
_TALK_AT_SEQS = _ALL_AT_SEQS.where(_IN_TALK, _NOT_ERASED)
_CONTENTS_AT_SEQS = (
    select(col(MessageRow.content)).where(_IN_CONVERSATION, _IS_AMONG_SEQS, _IN_TALK, _NOT_ERASED).order_by(_seq)
)
_REASONING = select(col(MessageRow.id), col(MessageRow.reasoning)).where(
    col(MessageRow.id) == any_(bindparam("ids", type_=ARRAY(Uuid))), col(MessageRow.reasoning) != literal_column("''")
)
_BETWEEN = (
    _ROWS.where(_IN_CONVERSATION, ~col(MessageRow.is_command))
    .where(_seq.between(bindparam("from_seq"), bindparam("to_seq")))
    .order_by(_seq)
)
_IN_TALK_BETWEEN = _BETWEEN.where(_IN_TALK)
_THROUGH = _seq <= bindparam("through_seq")
_HELD_MESSAGES = _ROWS.where(_IN_CONVERSATION, col(MessageRow.is_protected), _IN_TALK, _THROUGH).order_by(_seq)
_HELD_WEIGHTS = select(
    func.coalesce(func.sum(col(MessageRow.token_count)), 0), func.coalesce(func.sum(col(MessageRow.byte_length)), 0)
).where(_IN_CONVERSATION, col(MessageRow.is_protected), _IN_TALK, _NOT_ERASED, _THROUGH)
_SUMS_AT = select(*_SUMS).where(_IN_CONVERSATION, _seq == bindparam("seq"))
_STALE_RANGE_AND_TOTAL = select(
    col(ConversationRow.stale_sums_from),
    col(ConversationRow.stale_sums_to),
    col(ConversationRow.last_seq),
    col(ConversationRow.total_messages),
    col(ConversationRow.total_tokens),
    col(ConversationRow.total_bytes),
).where(col(ConversationRow.id) == bindparam("conversation_id"))
_ANCHOR_TOKENS = (
    select(func.coalesce(func.sum(col(AnchorRow.token_count)), 0))
    .where(
        col(AnchorRow.tenant_id) == col(MessageRow.tenant_id),
        col(AnchorRow.conversation_id) == col(MessageRow.conversation_id),
        col(AnchorRow.seq) == _seq,
        text(f"anchors.{ACTIVE}"),
    )
    .correlate(MessageRow)
    .scalar_subquery()
)
"""The tokens of a message's active anchors."""
_OUTLINE = (
    select(
        _seq,
        col(MessageRow.role),
        col(MessageRow.token_count),
        col(MessageRow.byte_length),
        col(MessageRow.is_protected),
        not_(and_(_IN_TALK, _NOT_ERASED)).label("is_command"),
        _ANCHOR_TOKENS.label("anchor_tokens"),
        col(MessageRow.call_ids).label("calls"),
        col(MessageRow.result_ids).label("results"),
    )
    .where(_IN_CONVERSATION, bindparam("after_seq") < _seq)
    .order_by(_seq)
    .limit(bindparam("limit", type_=BigInteger))
)


def _newest_within(weight: Any, running_sum: Any) -> Any:
    last = (
        select(running_sum.label("sum"), _seq)
        .where(_IN_CONVERSATION, _IN_TALK)
        .order_by(_seq.desc())
        .limit(1)
        .cte("newest")
    )
    floor = select(last.c.sum - bindparam("most")).scalar_subquery()
    is_last = _seq == select(last.c.seq).scalar_subquery()
    # Read from the end back to the first message that does not fit; older messages are not looked at.
    too_old = (
        select(_seq)
        .where(_IN_CONVERSATION, _IN_TALK, running_sum < floor)
        .order_by(_seq.desc())
        .limit(1)
        .scalar_subquery()
    )
    after = func.greatest(bindparam("after_seq", type_=BigInteger), too_old)
    within = _ROWS.where(_IN_CONVERSATION, _IN_TALK, after < _seq, running_sum >= floor)
    return within.where(or_(running_sum - weight >= floor, is_last)).order_by(_seq)


_NEWEST: Final[Mapping[Estimator, Any]] = {
    "script": _newest_within(col(MessageRow.token_count), col(MessageRow.token_sum)),
    "bytes": _newest_within(col(MessageRow.byte_length), col(MessageRow.byte_sum)),
}
_HEADS = select(_seq, shown_bytes().label("bytes")).where(_IN_CONVERSATION).limit(bindparam("limit", type_=BigInteger))
_PAGE_HEADS: Final[Mapping[str, Any]] = {
    "asc": _HEADS.where(_seq > bindparam("after")).order_by(_seq),
    "desc": _HEADS.where(_seq < bindparam("after")).order_by(_seq.desc()),
}
_BEFORE_FIRST: Final[Mapping[str, tuple[int]]] = {"asc": (0,), "desc": (2**62,)}
"""The position from which a page without a cursor begins, by its order."""
_DERIVED = (
    *("meta", "call_ids", "result_ids", "contents", "is_protected"),
    *("message_sum", "token_sum", "byte_sum", "term_keys", "utc_offset"),
)
"""Columns of a message's row that are not fields of ``Message``."""
_INSERT = insert(MessageRow).values(without(new_parameters(Message, also=_DERIVED), "metadata"))
keep_compiled(
    _BY_ID,
    _AT_SEQ,
    _ALL_AT_SEQS,
    _TALK_AT_SEQS,
    _CONTENTS_AT_SEQS,
    _REASONING,
    _BETWEEN,
    _IN_TALK_BETWEEN,
    _HELD_MESSAGES,
    _HELD_WEIGHTS,
    _SUMS_AT,
    _STALE_RANGE_AND_TOTAL,
    _OUTLINE,
    *_NEWEST.values(),
    *_PAGE_HEADS.values(),
    _INSERT,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _StaleSums:
    """Messages whose running sums are still those from before an erasure."""

    first: int
    last: int
    through: Sums
    """The right sums through the last of them."""


class MessageRepository(Repository):
    """Rows of ``messages``: appended, never changed.

    Messages are read with references in place of the data of their media, and without their reasoning.
    ``ContentRepository.with_data`` puts the data in where a message is sent or shown, and ``with_reasoning`` the
    reasoning where it is shown.
    """

    async def append(self, messages: Sequence[Message], sums: Sequence[Sums]) -> None:
        """Insert messages in one round trip; ``sums[i]`` are the running sums through ``messages[i]``.

        Inline data of media is stored separately, and only once. Raises ``NotFoundError`` when there is no such
        conversation, and ``ConflictError`` when a copied message refers to data that was erased meanwhile.
        """
        keys = await _index_keys(messages)
        stored, contents = await _without_inline_data(messages)
        rows = await in_slices(
            lambda one: new_values(_columns(one[0], one[1]) | {"term_keys": one[2]}),
            list(zip(stored, sums, keys, strict=True)),
        )
        if rows:
            for some in _slices_by_parts(rows):
                await self._session.write(_INSERT, some)
            await ContentRepository(self._session).store_and_count_uses(contents, [row["new_contents"] for row in rows])

    async def get(self, conversation_id: UUID, message_id: UUID) -> Message:
        """One message. Raises ``NotFoundError``."""
        return _message(await self._session.first(_BY_ID, conversation_id=conversation_id, message_id=message_id))

    async def with_reasoning(self, messages: Sequence[Message]) -> list[Message]:
        """The messages with the reasoning that their models showed; no query is made if no model wrote any of them."""
        made = [message.id for message in messages if message.role == "assistant"]
        if not made:
            return list(messages)
        found = {one.id: one.reasoning for one in await self._session.rows(_REASONING, ids=made)}
        return [
            replace(message, reasoning=found[message.id]) if message.id in found else message for message in messages
        ]

    async def find(self, message_id: UUID) -> Message:
        """One message, in whichever conversation of the tenant. Raises ``NotFoundError``."""
        return _message(
            await self._session.first(_ROWS.where(col(MessageRow.id) == message_id, not_deleted(MessageRow)))
        )

    async def at_seq(self, conversation_id: UUID, seq: int) -> Message:
        """One message by position. Raises ``NotFoundError``."""
        return _message(await self._session.first(_AT_SEQ, conversation_id=conversation_id, seq=seq))

    async def last(
        self, conversation_id: UUID, *, role: str | None = None, stands_alone: bool = False
    ) -> Message | None:
        """The newest message that is neither a command nor superseded (of that role, if given).

        With ``stands_alone`` it has something to say, and is no result of a tool.
        """
        statement = _rows_of(conversation_id).where(_IN_TALK).order_by(_seq.desc()).limit(1)
        if role is not None:
            statement = statement.where(col(MessageRow.role) == role)
        if stands_alone:
            statement = statement.where(_NOT_ERASED, col(MessageRow.role) != "tool", col(MessageRow.byte_length) > 0)
        row = await self._session.first(statement)
        return None if row is None else _message(row)

    async def page(self, conversation_id: UUID, page: Page) -> tuple[list[Message], str | None]:
        """A page of messages by ``seq``: as many as asked for, or fewer if they are large together; one at least."""
        (after,) = decode(page.after, BY_NUMBER) if page.after is not None else _BEFORE_FIRST[page.order]
        given = {"conversation_id": conversation_id, "after": after, "limit": page.limit + 1}
        listed = await self._session.rows(_PAGE_HEADS[page.order], **given)
        shown, cursor = cut_to_fit(listed, page, lambda head: (head.seq,))
        if not shown:
            return [], None
        seqs = [head.seq for head in shown]
        found = await self._messages(_ALL_AT_SEQS, conversation_id=conversation_id, seqs=seqs)
        return found if page.order == "asc" else found[::-1], cursor

    async def outline(self, conversation_id: UUID, *, after_seq: int, limit: int) -> list[Outline]:
        """The oldest ``limit`` messages after ``after_seq``, without text."""
        rows = await self._session.rows(_OUTLINE, conversation_id=conversation_id, after_seq=after_seq, limit=limit)
        return await in_slices(_outline, rows)

    async def steps(self, conversation_id: UUID, estimator: Estimator, *, limit: int) -> list[MessageSample]:
        """The newest ``limit`` messages, oldest first, with only what the conversation's pace depends on."""
        row = MessageRow
        counted = [col(row.usage).op("->")(name) for name in ("input_tokens", "cached_tokens")]
        what = (col(row.role), col(row.token_count), col(row.byte_length), col(row.created_at))
        statement = select(*what, not_(and_(_IN_TALK, _NOT_ERASED)), *counted).where(
            col(row.conversation_id) == conversation_id
        )
        return [
            MessageSample(
                role=role,
                tokens=0 if is_command else tokens_of(tokens, bytes_, estimator),
                at=at,
                is_command=is_command,
                input_tokens=asked or 0,
                cached_tokens=cached or 0,
            )
            for role, tokens, bytes_, at, is_command, asked, cached in reversed(
                await self._session.rows(statement.order_by(_seq.desc()).limit(limit))
            )
        ]

    async def all_texts(
        self, conversation_id: UUID, *, after_seq: int, limit: int, max_bytes: int
    ) -> list[MessageText]:
        """The oldest ``limit`` messages after ``after_seq``, commands and superseded replies included.

        They are fewer if together they have more than ``max_bytes``, but one at least.
        """
        row, here = MessageRow, (col(MessageRow.conversation_id) == conversation_id, after_seq < _seq)
        listed = await self._session.rows(select(_seq, text_bytes()).where(*here).order_by(_seq).limit(limit))
        count = max(count_fitting([size for _, size in listed], max_bytes), 1)
        names = ("seq", "role", "status", "is_command", "content", "parts")
        statement = select(*(col(getattr(row, name)) for name in names), col(row.meta)).where(*here)
        rows = await self._session.rows(statement.order_by(_seq).limit(count))
        return [MessageText(**dict(zip((*names, "metadata"), found, strict=True))) for found in rows]

    async def between(
        self,
        conversation_id: UUID,
        from_seq: int,
        to_seq: int,
        *,
        superseded: bool = False,
        max_bytes: int | None = None,
    ) -> list[Message]:
        """Messages of a range, inclusive, without commands; superseded replies only if ``superseded``.

        With ``max_bytes`` only the newest of them, as many as have no more bytes together.
        """
        wanted = ~col(MessageRow.is_command) if superseded else _IN_TALK
        if max_bytes is not None:
            heads = select(_seq, text_bytes()).where(col(MessageRow.conversation_id) == conversation_id, wanted)
            listed = await self._session.rows(heads.where(_seq.between(from_seq, to_seq)).order_by(_seq.desc()))
            count = count_fitting([size for _, size in listed], max_bytes)
            from_seq = listed[count - 1][0] if count else to_seq + 1
        return await self._messages(
            _BETWEEN if superseded else _IN_TALK_BETWEEN,
            conversation_id=conversation_id,
            from_seq=from_seq,
            to_seq=to_seq,
        )

    async def oldest(self, conversation_id: UUID, *, from_seq: int, limit: int, max_bytes: int) -> list[Message]:
        """The oldest ``limit`` messages from that ``seq`` on, in order: without commands, with superseded replies.

        Together they have at most ``max_bytes``, or there is only one.
        """
        heads = select(_seq, text_bytes()).where(
            col(MessageRow.conversation_id) == conversation_id, ~col(MessageRow.is_command), from_seq <= _seq
        )
        listed = await self._session.rows(heads.order_by(_seq).limit(limit))
        if not listed:
            return []
        count = max(count_fitting([size for _, size in listed], max_bytes), 1)
        return await self.between(conversation_id, from_seq, listed[count - 1][0], superseded=True)

    async def in_ranges(self, conversation_id: UUID, ranges: Sequence[tuple[int, int]]) -> list[Message]:
        """Messages of these ranges, each inclusive, in order, without commands and superseded replies."""
        if not ranges:
            return []
        firsts, lasts = (literal(list(seqs), ARRAY(BigInteger)) for seqs in zip(*ranges, strict=True))
        wanted = func.unnest(firsts, lasts).table_valued("first", "last", name="wanted").render_derived()
        inside = select(wanted.c.first).where(_seq.between(wanted.c.first, wanted.c.last)).exists()
        between = _seq.between(min(first for first, _ in ranges), max(last for _, last in ranges))
        return await self._messages(_rows_of(conversation_id).where(_IN_TALK, between, inside).order_by(_seq))

    async def all_between(
        self, conversation_id: UUID, from_seq: int, to_seq: int, *, max_bytes: int | None = None, newest: bool = False
    ) -> list[Message]:
        """Messages of a range, inclusive, commands included.

        With ``max_bytes`` only the oldest of them (or the ``newest``), as many as have no more bytes together; one at
        least.
        """
        here = (col(MessageRow.conversation_id) == conversation_id, _seq.between(from_seq, to_seq))
        if max_bytes is None:
            return await self._messages(_rows_of(conversation_id).where(*here).order_by(_seq))
        heads = select(_seq, text_bytes()).where(*here).order_by(_seq.desc() if newest else _seq)
        return await self._first_within(conversation_id, await self._session.rows(heads), max_bytes)

    async def newest(
        self,
        conversation_id: UUID,
        *,
        after_seq: int,
        max_tokens: int,
        estimator: Estimator = "script",
        each_at_most: int | None = None,
    ) -> list[Message]:
        """The newest messages after ``after_seq`` that have at most ``max_tokens`` together, in order.

        Tokens are counted by ``estimator``. Commands and superseded replies are left out. The newest message is always
        included. With ``each_at_most`` a message counts no more tokens than that, so that a very large one does not
        exclude the messages before it; every message after ``after_seq`` is read then.
        """
        if each_at_most is not None:
            return await self._newest_counted(conversation_id, after_seq, max_tokens, each_at_most, estimator)
        most = max_tokens * UNITS[estimator]
        found = await self._messages(
            _NEWEST[estimator], conversation_id=conversation_id, after_seq=after_seq, most=most
        )
        # Stale running sums let through too many messages: they still include what was erased.
        return _newest_of_weight(found, most, estimator)

    async def _newest_counted(
        self, conversation_id: UUID, after_seq: int, max_tokens: int, each_at_most: int, estimator: Estimator
    ) -> list[Message]:
        weight = col(MessageRow.token_count if estimator == "script" else MessageRow.byte_length)
        counted = func.least(weight, each_at_most * UNITS[estimator])
        sums = (
            select(
                _seq.label("seq"),
                func.sum(counted).over(order_by=_seq.desc()).label("through"),
                func.row_number().over(order_by=_seq.desc()).label("place"),
            )
            .where(col(MessageRow.conversation_id) == conversation_id, _IN_TALK, after_seq < _seq)
            .subquery()
        )
        near = select(sums.c.seq).where(or_(sums.c.through <= max_tokens * UNITS[estimator], sums.c.place == 1))
        return await self._messages(_rows_of(conversation_id).where(_seq.in_(near)).order_by(_seq))

    async def held(self, conversation_id: UUID, *, through_seq: int) -> list[Message]:
        """Protected messages up to that ``seq``, in order."""
        return await self._messages(_HELD_MESSAGES, conversation_id=conversation_id, through_seq=through_seq)

    async def sums_at(self, conversation_id: UUID, seq: int) -> Sums:
        """The sums through that message; zeros for 0. Raises ``NotFoundError``.

        The sums of held messages are computed from a small index, so that holding one message changes no other row.
        """
        if seq == 0:
            return Sums()
        stale = await self._stale_sums(conversation_id)
        if stale is not None and stale.first <= seq <= stale.last:
            sums = stale.through.minus(await self._summed_weights(conversation_id, seq + 1, stale.last))
        else:
            sums = await self._stored_sums(conversation_id, seq)
        return sums.plus(await self.held_at(conversation_id, seq))

    async def held_at(self, conversation_id: UUID, seq: int) -> Sums:
        """The sums of the held messages up to that one, without the other sums."""
        ((held_tokens, held_bytes),) = await self._session.rows(
            _HELD_WEIGHTS, conversation_id=conversation_id, through_seq=seq
        )
        return Sums(held_tokens=int(held_tokens), held_bytes=int(held_bytes))

    async def _stored_sums(self, conversation_id: UUID, seq: int) -> Sums:
        found = await self._session.rows(_SUMS_AT, conversation_id=conversation_id, seq=seq)
        if not found:
            raise _not_found()
        messages, tokens, bytes_ = found[0]
        return Sums(messages=messages, tokens=tokens, bytes=bytes_)

    async def _stale_sums(self, conversation_id: UUID) -> _StaleSums | None:
        """The messages whose running sums are still to be renewed, and the right sums through the last of them."""
        found = await self._session.rows(_STALE_RANGE_AND_TOTAL, conversation_id=conversation_id)
        if not found or found[0].stale_sums_to is None:
            return None
        first, last, newest, *total = found[0]
        if last >= newest:
            messages, tokens, bytes_ = total
            return _StaleSums(first=first, last=last, through=Sums(messages=messages, tokens=tokens, bytes=bytes_))
        after = await self._stored_sums(conversation_id, last + 1)
        through = after.minus(await self._summed_weights(conversation_id, last + 1, last + 1))
        return _StaleSums(first=first, last=last, through=through)

    async def _summed_weights(self, conversation_id: UUID, first: int, last: int) -> Sums:
        row = MessageRow
        sums = [func.coalesce(func.sum(weight), 0) for weight in (1, col(row.token_count), col(row.byte_length))]
        statement = select(*sums).where(
            col(row.conversation_id) == conversation_id, _seq.between(first, last), _IN_TALK, _NOT_ERASED
        )
        ((messages, tokens, bytes_),) = await self._session.rows(statement)
        return Sums(messages=int(messages), tokens=int(tokens), bytes=int(bytes_))

    async def known_calls(self, conversation_id: UUID, ids: Sequence[str]) -> frozenset[str]:
        """Which of these tool call ids were made in this conversation."""
        statement = select(col(MessageRow.call_ids)).where(
            col(MessageRow.conversation_id) == conversation_id, _belongs_to_calls(conversation_id, ids)
        )
        made = {call_id for call_ids in await self._session.all(statement) for call_id in call_ids}
        return frozenset(ids) & made

    async def set_protection(self, conversation_id: UUID, reasons: Mapping[int, str]) -> Sums:
        """Set ``protected_reason`` of the messages with the given ``seq``s, and return the sums of the conversation."""
        by_reason: dict[str, list[int]] = defaultdict(list)
        for seq, reason in reasons.items():
            by_reason[reason].append(seq)
        for reason, seqs in by_reason.items():
            listed = literal(seqs, ARRAY(BigInteger))
            await self._session.execute(
                update(MessageRow)
                .where(col(MessageRow.conversation_id) == conversation_id, _seq == any_(listed))
                .values(protected_reason=reason, is_protected=reason not in UNPROTECTED)
            )
        return await self._total_sums(conversation_id)

    async def renew_sums(self, conversation_id: UUID, *, from_seq: int) -> None:
        """Renew the running sums from that message on: the newest ones at once, others by ``renew_older_sums``.

        The conversation's total is right already. Until all running sums are renewed, the sums through an older message
        are computed from the token counts and byte lengths of the messages.
        """
        row = ConversationRow
        await self._session.execute(
            update(row)
            .where(col(row.id) == conversation_id, col(row.last_seq) >= from_seq)
            .values(
                stale_sums_from=func.least(col(row.stale_sums_from), from_seq),  # LEAST ignores NULL
                stale_sums_to=col(row.last_seq),
            )
        )
        await self.renew_older_sums(conversation_id)

    async def renew_older_sums(self, conversation_id: UUID) -> bool:
        """Renew ``SUMMED_AT_ONCE`` more running sums, from the end backwards; return whether more are left.

        The caller holds the conversation's lock. Each step begins at a sum that is right, so that nothing is lost if a
        step is skipped or repeated.
        """
        stale = await self._stale_sums(conversation_id)
        if stale is None:
            return False
        first = max(stale.first, stale.last - SUMMED_AT_ONCE + 1)
        await self._renew_running_sums(conversation_id, first, stale.last, stale.through)
        has_more = stale.first < first
        stale_range = {"stale_sums_from": stale.first, "stale_sums_to": first - 1} if has_more else _NO_STALE_SUMS
        await self._session.execute(
            update(ConversationRow).where(col(ConversationRow.id) == conversation_id).values(**stale_range)
        )
        return has_more

    async def _total_sums(self, conversation_id: UUID) -> Sums:
        newest = select(func.max(_seq)).where(col(MessageRow.conversation_id) == conversation_id)
        return await self.sums_at(conversation_id, await self._session.first(newest) or 0)

    async def protectable(
        self,
        conversation_id: UUID,
        *,
        roles: Collection[str],
        event_types: Collection[str],
        seqs: Collection[int],
    ) -> list[Message]:
        """The messages whose protection is decided again after a policy change, in order.

        They are the first message, pinned messages, messages that are protected or ``over_allotment``,
        messages of the given roles or event types, and messages at the given positions; commands, superseded replies
        and erased messages are left out.
        """
        row = MessageRow
        may_be_held = or_(
            col(row.protected_reason) != "compressible",
            col(row.is_pinned),
            col(row.role).in_(roles),
            col(row.event_type).in_(event_types),
            _seq == any_(literal([1, *seqs], ARRAY(BigInteger))),
        )
        return await self._messages(_rows_of(conversation_id).where(_IN_TALK, _NOT_ERASED, may_be_held).order_by(_seq))

    async def texts_by_role(
        self, conversation_id: UUID, *, role: str, after_seq: int, limit: int
    ) -> list[tuple[int, str]]:
        """Positions and texts of the next messages of a role, in order, without commands and erased messages."""
        statement = (
            select(_seq, col(MessageRow.content))
            .where(col(MessageRow.conversation_id) == conversation_id, after_seq < _seq)
            .where(_IN_TALK, _NOT_ERASED, col(MessageRow.role) == role)
            .order_by(_seq)
            .limit(limit)
        )
        return [(seq, content) for seq, content in await self._session.rows(statement)]

    async def pin(self, conversation_id: UUID, message_id: UUID, *, is_pinned: bool, reason: str) -> Message:
        """Set ``is_pinned`` and ``protected_reason``. The caller updates the sums (``set_protection``)."""
        statement = (
            update(MessageRow)
            .where(col(MessageRow.conversation_id) == conversation_id, col(MessageRow.id) == message_id)
            .values(is_pinned=is_pinned, protected_reason=reason, is_protected=reason not in UNPROTECTED)
            .returning(MessageRow)
        )
        return _message(await self._session.first(statement))

    async def note_usage(self, conversation_id: UUID, message_id: UUID, usage: Mapping[str, Any]) -> Message:
        """Store the token usage of the turn that made this message, which becomes known after it was stored."""
        statement = (
            update(MessageRow)
            .where(col(MessageRow.conversation_id) == conversation_id, col(MessageRow.id) == message_id)
            .values(usage=dict(usage))
            .returning(MessageRow)
        )
        return _message(await self._session.first(statement))

    async def supersede(self, message: Message) -> Sums:
        """Give the last message, commands apart, the status ``superseded``; return the total without it."""
        row, of = MessageRow, col(MessageRow.conversation_id) == message.conversation_id
        lighter = {
            "message_sum": col(row.message_sum) - 1,
            "token_sum": col(row.token_sum) - message.token_count,
            "byte_sum": col(row.byte_sum) - message.byte_length,
        }
        await self._session.execute(update(row).where(of, _seq >= message.seq).values(**lighter))
        await self._session.execute(
            update(row)
            .where(of, _seq == message.seq)
            .values(status="superseded", is_pinned=False, protected_reason="compressible", is_protected=False)
        )
        return await self._total_sums(message.conversation_id)

    async def erase(self, conversation_id: UUID, changed: Sequence[Message]) -> None:
        """Store these messages' ``content``, ``parts``, ``status``, weights, reason, ``usage`` and ``metadata``.

        This is the one exception to "never changed": it stores tombstones, and the stubs of the other halves of tool
        pairs.
        """
        for message, keys in zip(changed, await _index_keys(changed), strict=True):
            values = _columns(message, Sums()) | {"term_keys": keys}
            names = (*_REWRITTEN, "call_ids", "result_ids", "contents", "meta", "is_protected", "term_keys")
            await self._session.execute(
                update(MessageRow)
                .where(col(MessageRow.conversation_id) == conversation_id, col(MessageRow.id) == message.id)
                .values(**{name: values[name] for name in names})
            )

    async def other_halves(
        self, conversation_id: UUID, calls: Collection[str], *, of: Sequence[Message], most: int | None = None
    ) -> list[Message]:
        """The other halves of the tool pairs whose one half is among these messages, for the given call ids.

        They are in order of ``seq``; with ``most`` at most so many, the newest. Ids recur, with some clients in every
        turn, so a result belongs to the last earlier call with its id.
        """
        if not calls:
            return []
        wanted = frozenset(calls)
        listed = select(_seq, col(MessageRow.call_ids), col(MessageRow.result_ids)).where(
            col(MessageRow.conversation_id) == conversation_id, _belongs_to_calls(conversation_id, sorted(wanted))
        )
        having = [*await self._session.rows(listed), *((one.seq, *call_ids(one)) for one in of)]
        places = {seq: (wanted.intersection(made), wanted.intersection(answered)) for seq, made, answered in having}
        found = sorted(call_partners(places, frozenset(one.seq for one in of)))
        if not found:
            return []
        seqs = _seq == any_(literal(found[-most:] if most else found, ARRAY(BigInteger)))
        return await self._messages(_rows_of(conversation_id).where(seqs).order_by(_seq))

    async def quoting(self, conversation_id: UUID, seq: int) -> list[Message]:
        """Later results of tools that quote this message (a part's ``quotes`` are ranges of ``seq``), in order."""
        parts, place = cast(col(MessageRow.parts), JSONB), cast({"seq": seq}, JSONB)
        quotes = func.jsonb_path_exists(parts, cast(_QUOTES_PATH, JSONPATH), place, literal(value=True))
        is_there = (col(MessageRow.role) == "tool", col(MessageRow.status) != "erased", _seq > seq)
        # The condition is written as in the index: few messages can quote, and only these are looked into.
        return await self._messages(
            _rows_of(conversation_id).where(*is_there, text(QUOTES_MESSAGES), quotes).order_by(_seq)
        )

    async def command_answers(self, conversation_id: UUID, *, after_seq: int, max_bytes: int) -> list[Message]:
        """The service's oldest answers to typed commands after that ``seq``, in order.

        Together they have at most ``max_bytes``, or there is only one.
        """
        # The condition is written as in the index, so that it is used.
        answers = (text(f"messages.{COMMAND}"), col(MessageRow.role) == "assistant", after_seq < _seq)
        heads = select(_seq, text_bytes()).where(col(MessageRow.conversation_id) == conversation_id, *answers)
        return await self._first_within(conversation_id, await self._session.rows(heads.order_by(_seq)), max_bytes)

    async def protected_tokens(self, conversation_id: UUID, estimator: Estimator) -> int:
        """The tokens of all protected messages, pinned ones included, except those with the reason ``system``."""
        row = MessageRow
        statement = select(
            func.coalesce(func.sum(col(row.token_count)), 0), func.coalesce(func.sum(col(row.byte_length)), 0)
        ).where(
            col(row.conversation_id) == conversation_id,
            col(row.is_protected),
            _IN_TALK,
            col(row.protected_reason) != "system",
        )
        ((tokens, bytes_),) = await self._session.rows(statement)
        return tokens_of(int(tokens), int(bytes_), estimator)

    async def at_seqs(self, conversation_id: UUID, seqs: Sequence[int]) -> list[Message]:
        """The messages at these positions, in order of ``seq``, without commands and erased messages."""
        return await self._messages(_TALK_AT_SEQS, conversation_id=conversation_id, seqs=list(seqs))

    async def contents_at_seqs(self, conversation_id: UUID, seqs: Sequence[int]) -> list[str]:
        """The contents of the messages of ``at_seqs``, without the rest of their rows."""
        return await self._session.all(_CONTENTS_AT_SEQS, conversation_id=conversation_id, seqs=list(seqs))

    async def goals_and_constraints(self, conversation_id: UUID, seqs: Sequence[int]) -> list[int]:
        """Which of these messages set a constraint or a goal: a user's message, by the client's mark or by a rule."""
        if not seqs:
            return []
        sets_goal = or_(
            col(MessageRow.event_type).in_(DEMANDS),
            col(MessageRow.protected_reason) == "goal_statement",
        )
        wanted = _seq == any_(literal(list(seqs), ARRAY(BigInteger)))
        rows = select(_seq).where(
            col(MessageRow.conversation_id) == conversation_id,
            _NOT_ERASED,
            col(MessageRow.role) == "user",
            sets_goal,
            wanted,
        )
        return [seq for (seq,) in await self._session.rows(rows.order_by(_seq))]

    async def sources(
        self,
        conversation_id: UUID,
        *,
        stems: Sequence[str],
        limit: int,
        text: str = "",
        neighbours: bool = True,
        known: FoundMessages | None = None,
        through_seq: int | None = None,
    ) -> FoundMessages:
        """The messages to look through for these stems: all of a small conversation, some of a larger one.

        A small conversation has at most 1 500 messages.

        From a larger one at most ``limit`` messages with these stems are read, those with the rarest stems first. The
        best quarter of them, 150 at least, are read with their neighbours, up to two places away. Without
        ``neighbours`` only messages with the stems are read, from a small conversation too. ``text`` is looked up by
        the stems of its own language and of the conversation's. Messages that are ``known`` (the first ones of a small
        conversation) are not read again as long as nothing is erased from it. Messages after ``through_seq`` change
        nothing, if ``neighbours`` are not wanted either; ``None`` = all messages count.
        """
        message_search = MessageSearch(self._session, conversation_id, through_seq=through_seq)
        return await message_search.sources(stems, text, limit=limit, neighbours=neighbours, known=known)

    async def containing(
        self,
        conversation_id: UUID,
        texts: Sequence[str],
        *,
        stems: Sequence[str],
        limit: int,
        through_seq: int | None = None,
    ) -> list[Source]:
        """The newest messages that contain each of these texts literally; case and kinds of spaces are ignored.

        They are the newest up to ``through_seq``; ``None`` = of all.

        A long text is searched for by its first 200 characters: the caller checks whether the rest follows. With
        ``stems``, all of which the message must have, the index is used; otherwise the newest 20 000 messages are read.
        """
        message_search = MessageSearch(self._session, conversation_id, through_seq=through_seq)
        return await message_search.containing(texts, stems=stems, limit=limit)

    async def _first_within(
        self, conversation_id: UUID, listed: Sequence[tuple[int, int]], max_bytes: int
    ) -> list[Message]:
        """The messages at the first of these positions that fit into ``max_bytes`` together, one at least, by ``seq``.

        Each position in ``listed`` comes with its size.
        """
        if not listed:
            return []
        count = max(count_fitting([size for _, size in listed], max_bytes), 1)
        these = _seq == any_(literal([seq for seq, _ in listed[:count]], ARRAY(BigInteger)))
        return await self._messages(_rows_of(conversation_id).where(these).order_by(_seq))

    async def _messages(self, statement: Any, /, **given: Any) -> list[Message]:
        return await in_slices(_message, await self._session.all(statement, **given))

    async def _renew_running_sums(self, conversation_id: UUID, first: int, last: int, through: Sums) -> None:
        """Compute the running sums of a range from the weights; rows whose sums stay the same are not written.

        The rows are joined by their physical place. By any other column the planner, which expects one row in a
        conversation, would compute all the sums again for every message.
        """
        row = MessageRow
        here = and_(col(row.conversation_id) == conversation_id, _seq.between(first, last))
        weights = {
            "message_sum": through.messages - _weight_of_later_messages(1),
            "token_sum": through.tokens - _weight_of_later_messages(col(row.token_count)),
            "byte_sum": through.bytes - _weight_of_later_messages(col(row.byte_length)),
        }
        place: ColumnElement[Any] = literal_column("messages.ctid")
        fresh = (
            select(place.label("place"), *(weight.label(name) for name, weight in weights.items()))
            .where(here)
            .subquery()
        )
        sums = {name: fresh.c[name] for name in weights}
        await self._session.execute(
            update(row)
            .where(here, place == fresh.c.place)
            .where(tuple_(*_SUMS) != tuple_(*sums.values()))
            .values(**sums)
        )


def _rows_of(conversation_id: UUID) -> Any:
    return _ROWS.where(col(MessageRow.conversation_id) == conversation_id)


def _newest_of_weight(messages: Sequence[Message], most: int, estimator: Estimator) -> list[Message]:
    through, first = 0, len(messages)
    for place in range(len(messages) - 1, -1, -1):
        message = messages[place]
        if message.status != "erased":
            through += message.token_count if estimator == "script" else message.byte_length
        if through > most and first < len(messages):
            break
        first = place
    return list(messages[first:])


def _weight_of_later_messages(weight: Any) -> Any:
    counted = case((and_(_IN_TALK, _NOT_ERASED), weight), else_=0)
    return cast(func.sum(counted).over(order_by=_seq.desc()) - counted, BigInteger)


def _belongs_to_calls(conversation_id: UUID, ids: Sequence[str]) -> Any:
    calls: ColumnElement[Any] = literal_column(f"({CALL_KEYS})")
    # The index holds the conversation's id as an entry among the call ids.
    own, wanted = (literal(words, ARRAY(Text)) for words in ([str(conversation_id)], list(ids)))
    held = (text(f"({BELONGS_TO_CALL})"), calls.op("&&")(wanted), calls.op("@>")(own))
    found = select(col(KEY_HOLDER.seq)).where(col(KEY_HOLDER.conversation_id) == conversation_id, *held)
    # A subquery as an array is read once. In a join the keys of all the conversation's messages would be read for each
    # of its messages, since Postgres expects few rows in a new conversation.
    return _seq == any_(func.array(found.scalar_subquery(), type_=ARRAY(BigInteger)))


async def _without_inline_data(messages: Sequence[Message]) -> tuple[list[Message], dict[str, Content]]:
    """The messages with references in place of inline data, and the data; much data is handled off the event loop."""
    contents: dict[str, Content] = {}

    def take() -> list[Message]:
        stored = []
        for message in messages:
            parts, found = detached_contents(message.parts)
            contents.update(found)
            stored.append(replace(message, parts=parts) if found else message)
        return stored

    size = sum(BYTES_PER_ITEM + data_bytes(part) for message in messages for part in message.parts)
    return await off_loop(take, size=size), contents


async def _index_keys(messages: Sequence[Message]) -> list[list[int]]:
    return await off_loop(
        keys_of, messages, size=sum(BYTES_PER_ITEM + one.byte_length for one in messages) // KEYING_SPEEDUP
    )


def _not_found() -> NotFoundError:
    return NotFoundError("No such message.")


def _slices_by_parts(rows: Sequence[dict[str, Any]]) -> Iterator[Sequence[dict[str, Any]]]:
    # The parts of a slice are written as JSON in one go, which blocks the event loop.
    some, parts = list[dict[str, Any]](), 0
    for row in rows:
        if some and parts + len(row["new_parts"]) > PARTS_AT_ONCE:
            yield some
            some, parts = [], 0
        some.append(row)
        parts += len(row["new_parts"])
    yield some


def _columns(message: Message, through: Sums) -> dict[str, Any]:
    parts = [dict(part) for part in message.parts]
    return without(columns(message), "metadata") | {
        "parts": parts,
        "call_ids": [part["id"] for part in parts if part.get("type") == "tool_call"],
        "result_ids": [part["tool_call_id"] for part in parts if part.get("type") == "tool_result"],
        "contents": list(references(parts)),
        "usage": as_dict(message.usage),
        "meta": as_dict(message.metadata),
        "is_protected": message.is_protected,
        "message_sum": through.messages,
        "token_sum": through.tokens,
        "byte_sum": through.bytes,
        "utc_offset": message.utc_offset,
    }


def _outline(row: Any) -> Outline:
    return record_from_row(Outline, row, calls=frozenset(row.calls), results=frozenset(row.results))


def _message(row: MessageRow | None) -> Message:
    if row is None:
        raise _not_found()
    created_at = with_offset(row.created_at, row.utc_offset)
    return record_from_row(Message, row, parts=tuple(row.parts), metadata=row.meta, reasoning="", created_at=created_at)
