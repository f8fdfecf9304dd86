"""Rows of ``contents``: the data of media, each once for a tenant, counted up by whoever stores a message.

The database itself counts down when a message is erased or deleted, and takes a content away with its last message
(the trigger ``release_contents``): no way of deleting can forget it. Rows are locked in the order of their hashes.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from sqlalchemy import ARRAY, BigInteger, Text, any_, cast, func, literal, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlmodel import col

from app.core.model.conversation import Message
from app.core.model.errors import ConflictError
from app.core.text.contents import Content, data_bytes, put_together, references
from app.storage.repositories.base import Repository
from app.storage.tables import ContentRow

ON_LOOP: Final = 100_000
"""Characters of data; more are written as Base64 off the event loop."""
_row = ContentRow


class ContentRepository(Repository):
    """Contents by their hashes."""

    async def count_up(self, contents: Mapping[str, Content], uses: Sequence[Sequence[str]]) -> None:
        """Add messages that refer to contents: new ones are stored, present ones counted.

        Args:
            contents: What may be new, by hash.
            uses: The hashes that each of the messages refers to, each once.

        Raises:
            ConflictError: One is not given, and its last message was erased meanwhile.
        """
        counts = Counter(sha256 for of_message in uses for sha256 in of_message)
        await self._store([contents[sha256] for sha256 in sorted(counts) if sha256 in contents], counts)
        await self._count({sha256: count for sha256, count in counts.items() if sha256 not in contents})

    async def filled(self, messages: Sequence[Message]) -> list[Message]:
        """The messages with their data as it was given; without any, they are returned as they are, unasked."""
        wanted = references(part for message in messages for part in message.parts)
        if not wanted:
            return list(messages)
        found = await self.read(wanted)

        def fill() -> list[Message]:
            return [replace(message, parts=put_together(message.parts, found)) for message in messages]

        size = sum(data_bytes(part) for message in messages for part in message.parts)
        return fill() if size <= ON_LOOP else await asyncio.to_thread(fill)

    async def filled_one(self, message: Message) -> Message:
        """The same of one message."""
        return (await self.filled([message]))[0]

    async def read(self, sha256s: Iterable[str]) -> dict[str, bytes]:
        """The contents of these hashes, as far as they are there."""
        wanted = col(_row.sha256) == any_(literal(sorted(sha256s), ARRAY(Text)))
        found = select(col(_row.sha256), col(_row.bytes)).where(wanted)
        return {sha256: data for sha256, data in await self._session.rows(found)}  # noqa: C416 - rows are no pairs

    async def _store(self, contents: Sequence[Content], counts: Mapping[str, int]) -> None:
        if not contents:
            return
        statement = insert(_row)
        more = {"uses": col(_row.uses) + statement.excluded.uses}
        rows = [
            {
                "sha256": content.sha256,
                "bytes": content.data,
                "media_type": content.media_type,
                "size": len(content.data),
                "uses": counts[content.sha256],
            }
            for content in contents
        ]
        await self._session.execute(
            statement.on_conflict_do_update(index_elements=["tenant_id", "sha256"], set_=more), rows
        )

    async def _count(self, counts: Mapping[str, int]) -> None:
        if not counts:
            return
        hashes = sorted(counts)
        listed = literal(hashes, ARRAY(Text))
        locked = select(col(_row.sha256)).where(col(_row.sha256) == any_(listed)).order_by(col(_row.sha256))
        if len(await self._session.all(locked.with_for_update())) < len(counts):
            raise ConflictError("what a message refers to was erased meanwhile: try again")
        numbers = literal([counts[sha256] for sha256 in hashes], ARRAY(BigInteger))
        place = func.array_position(listed, col(_row.sha256))
        more = cast(numbers, ARRAY(BigInteger))[place]
        await self._session.execute(
            update(_row).where(col(_row.sha256) == any_(listed)).values(uses=col(_row.uses) + more)
        )
