"""The SQL of ``contents``: the data of media, each stored once for a tenant, with a count of its messages.

Code that stores a message adds to the count. The database itself counts down when a message is erased or deleted, and
removes a content with its last message (the trigger ``release_contents``), so that no code that deletes can forget it.
Rows are locked in the order of their hashes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from sqlalchemy import ARRAY, BigInteger, Text, and_, any_, cast, func, literal, select, true, tuple_, update
from sqlalchemy.dialects.postgresql import insert
from sqlmodel import col

from app.core.model.conversation import Message
from app.core.model.errors import ConflictError
from app.core.text.contents import Content, data_bytes, detached_contents, references, with_contents
from app.off_loop import BYTES_PER_ITEM, off_loop
from app.storage.repositories.base import Repository
from app.storage.tables import ContentRow, MessageRow

_row = ContentRow
_message = MessageRow
MessagePlace = tuple[UUID, UUID]
"""How far a pass over all messages has come: the id of a tenant, and of one of its messages."""


@dataclass(frozen=True, slots=True)
class InlineMessage:
    """The ids of a message whose parts may still contain data."""

    tenant_id: UUID
    conversation_id: UUID
    id: UUID


class ContentRepository(Repository):
    """Contents by their hashes."""

    async def store_and_count_uses(self, contents: Mapping[str, Content], uses: Sequence[Sequence[str]]) -> None:
        """Add messages that refer to contents: new contents are stored, existing ones counted up.

        ``contents`` are those that may be new, by hash; ``uses`` are the hashes that each message refers to, each once.

        Raises:
            ConflictError: A content is not given, and its last message was erased meanwhile.
        """
        counts = Counter(sha256 for of_message in uses for sha256 in of_message)
        await self._store([contents[sha256] for sha256 in sorted(counts) if sha256 in contents], counts)
        await self._add_uses({sha256: count for sha256, count in counts.items() if sha256 not in contents})

    async def with_data(self, messages: Sequence[Message]) -> list[Message]:
        """The messages with their data as it was given.

        If they have none, they are returned unchanged, without a query.
        """
        wanted = references(part for message in messages for part in message.parts)
        if not wanted:
            return list(messages)
        found = await self.read(wanted)

        def fill() -> list[Message]:
            return [replace(message, parts=with_contents(message.parts, found)) for message in messages]

        size = sum(BYTES_PER_ITEM + data_bytes(part) for message in messages for part in message.parts)
        return await off_loop(fill, size=size)

    async def one_with_data(self, message: Message) -> Message:
        """One message with its data put back."""
        return (await self.with_data([message]))[0]

    async def read(self, sha256s: Iterable[str]) -> dict[str, bytes]:
        """The contents with these hashes, as far as they exist."""
        wanted = col(_row.sha256) == any_(literal(sorted(sha256s), ARRAY(Text)))
        found = select(col(_row.sha256), col(_row.data)).where(wanted)
        return {sha256: data for sha256, data in await self._session.rows(found)}  # noqa: C416 - rows are no pairs

    async def with_inline_data(
        self, after: MessagePlace | None, *, limit: int
    ) -> tuple[list[InlineMessage], MessagePlace | None]:
        """Look at the next ``limit`` messages for those that may hold their data inline, as older versions stored it.

        Returns:
            Those that may, and the place that was reached; ``None`` at the end.
        """
        key = tuple_(col(_message.tenant_id), col(_message.id))
        is_after = true() if after is None else key > after
        places = select(col(_message.tenant_id), col(_message.id)).where(is_after).order_by(*key).limit(limit)
        read = await self._session.rows(places)
        if not read:
            return [], None
        last = (read[-1].tenant_id, read[-1].id)
        parts = cast(col(_message.parts), Text)
        may_hold_data = and_(col(_message.contents) == [], parts.like('%"media"%'), parts.like('%"data"%'))
        found = select(col(_message.tenant_id), col(_message.conversation_id), col(_message.id))
        rows = await self._session.rows(found.where(is_after, key <= last, may_hold_data).order_by(*key))
        return [InlineMessage(*row) for row in rows], last if len(read) == limit else None

    async def move_inline_data(self, conversation_id: UUID, message_id: UUID) -> bool:
        """Move the data within a message to rows of its own, in a *locked* conversation; ``False`` if it has none."""
        is_message = (col(_message.conversation_id) == conversation_id, col(_message.id) == message_id)
        parts = await self._session.first(select(col(_message.parts)).where(*is_message))
        parts_without_data, contents = await off_loop(detached_contents, parts or [])
        if not contents:
            return False
        hashes, stored = list(references(parts_without_data)), [dict(part) for part in parts_without_data]
        await self._session.execute(update(_message).where(*is_message).values(parts=stored, contents=hashes))
        await self.store_and_count_uses(contents, [hashes])
        return True

    async def _store(self, contents: Sequence[Content], counts: Mapping[str, int]) -> None:
        if not contents:
            return
        statement = insert(_row)
        more = {"uses": col(_row.uses) + statement.excluded.uses}
        rows = [
            {
                "sha256": content.sha256,
                "data": content.data,
                "media_type": content.media_type,
                "size": len(content.data),
                "uses": counts[content.sha256],
            }
            for content in contents
        ]
        await self._session.execute(
            statement.on_conflict_do_update(index_elements=["tenant_id", "sha256"], set_=more), rows
        )

    async def _add_uses(self, counts: Mapping[str, int]) -> None:
        if not counts:
            return
        hashes = sorted(counts)
        listed = literal(hashes, ARRAY(Text))
        locked = select(col(_row.sha256)).where(col(_row.sha256) == any_(listed)).order_by(col(_row.sha256))
        if len(await self._session.all(locked.with_for_update())) < len(counts):
            raise ConflictError("what a message refers to was erased meanwhile: try again")
        numbers = literal([counts[sha256] for sha256 in hashes], ARRAY(BigInteger))
        more = func.unnest(listed, numbers).table_valued("sha256", "count", name="more").render_derived()
        await self._session.execute(
            update(_row).where(col(_row.sha256) == more.c.sha256).values(uses=col(_row.uses) + more.c["count"])
        )
