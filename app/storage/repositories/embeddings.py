"""The table ``embeddings``: a vector for each message, and up to which message a conversation has vectors.

The trigger ``release_embeddings`` removes a vector when its message is removed or changed, so that no code that erases
can forget to. Writing a vector and erasing a message both hold the conversation's lock. Times are the database's.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

from sqlalchemy import ARRAY, BigInteger, LargeBinary, and_, any_, case, false, literal, not_, or_, select, text, update
from sqlalchemy.dialects.postgresql import distinct_on, insert
from sqlmodel import col

from app.core.model.embedding import MessageVector
from app.storage.repositories.base import Repository
from app.storage.repositories.database_time import now
from app.storage.repositories.mapping import columns
from app.storage.tables import EMBEDDED, UNEMBEDDED, ConversationRow, DetailCallRow, EmbeddingRow

_embedding = EmbeddingRow
_conversation = ConversationRow
_NOT_DELETED = col(_conversation.deleted_at).is_(None)
_IS_DUE = or_(col(_conversation.embed_after).is_(None), col(_conversation.embed_after) <= now())
REPLACED_FOR: Final = timedelta(days=1)
"""How long a model leaves a conversation alone in which another model replaced its vectors.

So two processes with different models do not replace each other's vectors, and pay for it, time and again.
"""


class EmbeddingRepository(Repository):
    """Vectors of one tenant's messages."""

    async def due(self, model: str, *, limit: int, conversation_id: UUID | None = None) -> list[tuple[UUID, UUID]]:
        """Tenant and id of conversations with covered messages that lack a vector of this model and are due.

        It looks at all tenants, by two partial indexes: one for new messages, one for vectors of another model.
        """
        found: dict[tuple[UUID, UUID], None] = {}
        for wanted in (text(f"conversations.{UNEMBEDDED}"), _embedded_by_another(model)):
            statement = select(col(_conversation.tenant_id), col(_conversation.id)).where(
                wanted, _NOT_DELETED, _IS_DUE, _may_be_embedded_by(model)
            )
            if conversation_id is not None:
                statement = statement.where(col(_conversation.id) == conversation_id)
            for tenant_id, id_ in await self._session.rows(statement.limit(limit)):
                found[tenant_id, id_] = None
        return list(found)[:limit]

    async def claim(self, conversation_id: UUID, model: str, *, pause: timedelta) -> tuple[int, int] | None:
        """Reserve a conversation for the caller for ``pause``.

        Returns:
            The ``seq`` up to which messages have vectors of this model, and the ``seq`` up to which they shall have
            them; ``None`` where none is lacking, another process has the conversation, or another model replaced
            this one there a short time ago.
        """
        another = col(_conversation.embedded_model).is_distinct_from(model)
        through = case((another, 0), else_=col(_conversation.embedded_seq))
        statement = (
            update(_conversation)
            .where(
                col(_conversation.id) == conversation_id,
                _NOT_DELETED,
                _IS_DUE,
                _may_be_embedded_by(model),
                col(_conversation.boundary_seq) > through,
            )
            .values(embedded_model=model, embedded_seq=through, embed_after=now() + pause)
            .returning(col(_conversation.embedded_seq), col(_conversation.boundary_seq))
        )
        rows = await self._session.rows(statement)
        return (rows[0][0], rows[0][1]) if rows else None

    async def note_progress(
        self, conversation_id: UUID, model: str, *, through: int, pause: timedelta | None = None
    ) -> None:
        """Note that messages up to ``through`` have vectors, and that the work goes on after ``pause`` (or at once)."""
        values = {"embedded_seq": through, "embed_after": None if pause is None else now() + pause}
        of_model = and_(col(_conversation.id) == conversation_id, col(_conversation.embedded_model) == model)
        await self._session.execute(update(_conversation).where(of_model).values(**values))

    async def put(self, vectors: Sequence[MessageVector]) -> None:
        """Store vectors, replacing earlier ones. Raises ``NotFoundError`` if the message no longer exists."""
        if not vectors:
            return
        statement = insert(_embedding)
        names = ("model", "sha256", "dimensions", "vector")
        kept = {name: getattr(statement.excluded, name) for name in names}
        given = [columns(one, dimensions=one.dimensions) for one in vectors]
        key = ["tenant_id", "conversation_id", "seq"]
        await self._session.execute(statement.on_conflict_do_update(index_elements=key, set_=kept), given)

    async def vectors_by_hash(self, model: str, hashes: Collection[bytes]) -> dict[bytes, bytes]:
        """Vectors of this model for texts with these hashes, from any conversation of the tenant."""
        listed = literal(sorted(hashes), ARRAY(LargeBinary))
        found = (
            select(col(_embedding.sha256), col(_embedding.vector))
            .where(col(_embedding.model) == model, col(_embedding.sha256) == any_(listed))
            .ext(distinct_on(col(_embedding.sha256)))
            .order_by(col(_embedding.sha256))
        )
        return {sha256: vector for sha256, vector in await self._session.rows(found)}  # noqa: C416 - rows are no pairs

    async def dimensions(self, conversation_id: UUID, model: str) -> int:
        """How many numbers a vector of this model has in this conversation; 0 if the conversation has no vectors."""
        some = select(col(_embedding.dimensions)).where(_is_of_model(conversation_id, model)).limit(1)
        return await self._session.first(some) or 0

    async def vectors_by_seq(self, conversation_id: UUID, seqs: Collection[int], model: str) -> dict[int, bytes]:
        """The vectors of this model for messages with these ``seq``, where they have one."""
        listed = col(_embedding.seq) == any_(literal(sorted(seqs), ARRAY(BigInteger)))
        found = select(col(_embedding.seq), col(_embedding.vector)).where(
            _is_of_model(conversation_id, model), listed if seqs else false()
        )
        return {seq: vector for seq, vector in await self._session.rows(found)}  # noqa: C416 - rows are no pairs


def _is_of_model(conversation_id: UUID, model: str) -> Any:
    return and_(col(_embedding.conversation_id) == conversation_id, col(_embedding.model) == model)


def _may_be_embedded_by(model: str) -> Any:
    another = and_(col(_conversation.embedded_model).is_not(None), col(_conversation.embedded_model) != model)
    own_calls = select(col(DetailCallRow.id)).where(
        col(DetailCallRow.tenant_id) == col(_conversation.tenant_id),
        col(DetailCallRow.conversation_id) == col(_conversation.id),
        col(DetailCallRow.purpose) == "embedding",
        col(DetailCallRow.attempt)["model"].as_string() == model,
        col(DetailCallRow.called_at) > now() - REPLACED_FOR,
    )
    return or_(not_(another), not_(own_calls.exists()))


def _embedded_by_another(model: str) -> Any:
    name = col(_conversation.embedded_model)
    # Two ranges, since the index cannot be searched for an inequality.
    return and_(text(f"conversations.{EMBEDDED}"), or_(name < model, name > model), col(_conversation.boundary_seq) > 0)
