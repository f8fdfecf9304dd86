"""Rows of ``embeddings``, and how far the messages of a conversation have vectors. Times are the database's.

The database itself takes a vector away with its message, and when what the message says changes (the trigger
``release_embeddings``): no way of erasing can forget it. Whoever writes one holds the conversation's lock, as whoever
erases does.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import ARRAY, BigInteger, LargeBinary, and_, any_, case, false, literal, or_, select, text, update
from sqlalchemy.dialects.postgresql import distinct_on, insert
from sqlmodel import col

from app.core.model.embedding import MessageVector
from app.storage.repositories.base import Repository
from app.storage.repositories.leases import now
from app.storage.tables import EMBEDDED, UNEMBEDDED, ConversationRow, EmbeddingRow

_row = EmbeddingRow
_of = ConversationRow
_IS_THERE = col(_of.deleted_at).is_(None)
_IS_DUE = or_(col(_of.embed_after).is_(None), col(_of.embed_after) <= now())


class EmbeddingRepository(Repository):
    """Vectors of one tenant's messages."""

    async def wanting(self, model: str, *, limit: int, conversation_id: UUID | None = None) -> list[tuple[UUID, UUID]]:
        """(tenant, conversation) with covered messages that have no vector of this model yet, as far as they are due.

        Over all tenants by two partial indexes: one for what is new, one for vectors of another model.
        """
        found: dict[tuple[UUID, UUID], None] = {}
        for wanted in (text(f"conversations.{UNEMBEDDED}"), _embedded_by_another(model)):
            statement = select(col(_of.tenant_id), col(_of.id)).where(wanted, _IS_THERE, _IS_DUE)
            if conversation_id is not None:
                statement = statement.where(col(_of.id) == conversation_id)
            for tenant_id, id_ in await self._session.rows(statement.limit(limit)):
                found[tenant_id, id_] = None
        return list(found)[:limit]

    async def claim(self, conversation_id: UUID, model: str, *, pause: timedelta) -> tuple[int, int] | None:
        """Have a conversation left to the caller for so long; ``None`` where nothing is wanted, or it was taken.

        Returns:
            Through where its messages have vectors of this model, and the last one that is to have one.
        """
        another = col(_of.embedded_model).is_distinct_from(model)
        through = case((another, 0), else_=col(_of.embedded_seq))
        statement = (
            update(_of)
            .where(col(_of.id) == conversation_id, _IS_THERE, _IS_DUE, col(_of.boundary_seq) > through)
            .values(embedded_model=model, embedded_seq=through, embed_after=now() + pause)
            .returning(col(_of.embedded_seq), col(_of.boundary_seq))
        )
        rows = await self._session.rows(statement)
        return (rows[0][0], rows[0][1]) if rows else None

    async def settle(self, conversation_id: UUID, model: str, *, through: int, pause: timedelta | None = None) -> None:
        """Through where messages have vectors by now, and when to go on; ``None`` = at once."""
        values = {"embedded_seq": through, "embed_after": None if pause is None else now() + pause}
        of_model = and_(col(_of.id) == conversation_id, col(_of.embedded_model) == model)
        await self._session.execute(update(_of).where(of_model).values(**values))

    async def put(self, vectors: Sequence[MessageVector]) -> None:
        """Store vectors, in place of those that were there. Raises ``NotFoundError`` without the message."""
        if not vectors:
            return
        statement = insert(_row)
        names = ("model", "sha256", "dimensions", "vector")
        kept = {name: getattr(statement.excluded, name) for name in names}
        given = [
            {
                "conversation_id": one.conversation_id,
                "seq": one.seq,
                "model": one.model,
                "sha256": one.sha256,
                "dimensions": one.dimensions,
                "vector": one.vector,
            }
            for one in vectors
        ]
        key = ["tenant_id", "conversation_id", "seq"]
        await self._session.execute(statement.on_conflict_do_update(index_elements=key, set_=kept), given)

    async def known(self, model: str, hashes: Collection[bytes]) -> dict[bytes, bytes]:
        """Vectors that this model made of the same texts, by their hashes, in any conversation of the tenant."""
        listed = literal(sorted(hashes), ARRAY(LargeBinary))
        found = (
            select(col(_row.sha256), col(_row.vector))
            .where(col(_row.model) == model, col(_row.sha256) == any_(listed))
            .ext(distinct_on(col(_row.sha256)))
            .order_by(col(_row.sha256))
        )
        return {sha256: vector for sha256, vector in await self._session.rows(found)}  # noqa: C416 - rows are no pairs

    async def dimensions(self, conversation_id: UUID, model: str) -> int:
        """Numbers of the vectors of this model in a conversation; 0 where there is none."""
        some = select(col(_row.dimensions)).where(_is_of_model(conversation_id, model)).limit(1)
        return await self._session.first(some) or 0

    async def of(self, conversation_id: UUID, seqs: Collection[int], model: str) -> dict[int, bytes]:
        """The vectors of this model that these messages have, by ``seq``."""
        listed = col(_row.seq) == any_(literal(sorted(seqs), ARRAY(BigInteger)))
        found = select(col(_row.seq), col(_row.vector)).where(
            _is_of_model(conversation_id, model), listed if seqs else false()
        )
        return {seq: vector for seq, vector in await self._session.rows(found)}  # noqa: C416 - rows are no pairs


def _is_of_model(conversation_id: UUID, model: str) -> Any:
    return and_(col(_row.conversation_id) == conversation_id, col(_row.model) == model)


def _embedded_by_another(model: str) -> Any:
    name = col(_of.embedded_model)
    # Two ranges, since the index cannot be searched for an inequality.
    return and_(text(f"conversations.{EMBEDDED}"), or_(name < model, name > model), col(_of.boundary_seq) > 0)
