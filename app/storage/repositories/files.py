"""The SQL of files: those attached to conversations, and the copies that providers keep of them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import ARRAY, Text, and_, any_, delete, exists, func, insert, literal, select, text, update
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlmodel import col

from app.core.model.errors import NotFoundError
from app.core.model.files import ConversationFile, ProviderFile
from app.core.model.records import Page
from app.storage.repositories.base import Repository
from app.storage.repositories.copies import CopyRepository
from app.storage.repositories.cursor import BY_ID, cut_page, select_page
from app.storage.repositories.database_time import now
from app.storage.repositories.mapping import columns, record_from_row
from app.storage.tables import IN_USE, ContentRow, FileRow, ProviderFileRow

_file = FileRow
_copy = ProviderFileRow
_IS_WANTED = col(_copy.delete_after).is_(None)


class FileRepository(Repository):
    """Rows of ``files``. Their bytes are contents, which the code that adds a file counts up."""

    async def add(self, file: ConversationFile) -> None:
        """Insert, in a *locked* conversation."""
        self._check_tenant(file.tenant_id)
        await self._session.execute(insert(_file).values(**columns(file)))

    async def get(self, conversation_id: UUID, file_id: UUID) -> ConversationFile:
        """A file. Raises ``NotFoundError``."""
        row = await self._session.first(select(_file).where(_is_file(conversation_id, file_id)))
        if row is None:
            raise NotFoundError("No such file.")
        return record_from_row(ConversationFile, row)

    async def of_conversation(self, conversation_id: UUID) -> list[ConversationFile]:
        """All files of a conversation, in the order in which they were attached."""
        statement = select(_file).where(col(_file.conversation_id) == conversation_id).order_by(col(_file.id))
        return [record_from_row(ConversationFile, row) for row in await self._session.all(statement)]

    async def page(self, conversation_id: UUID, page: Page) -> tuple[list[ConversationFile], str | None]:
        """A page of a conversation's files, in the order in which they were attached, and the next cursor."""
        statement = select(_file).where(col(_file.conversation_id) == conversation_id)
        rows = await self._session.all(select_page(statement, page, (col(_file.id),), BY_ID))
        return cut_page([record_from_row(ConversationFile, row) for row in rows], page.limit, lambda one: (one.id,))

    async def sums(self, conversation_id: UUID) -> tuple[int, int, int]:
        """The number of files, their bytes and their tokens."""
        sums = (
            func.count(),
            func.coalesce(func.sum(col(_file.bytes)), 0),
            func.coalesce(func.sum(col(_file.tokens)), 0),
        )
        found = await self._session.rows(select(*sums).where(col(_file.conversation_id) == conversation_id))
        count, size, tokens = found[0]
        return int(count), int(size), int(tokens)

    async def remove(self, conversation_id: UUID, file_id: UUID) -> bool:
        """Delete the row of a file; ``False`` if there is none."""
        gone = delete(_file).where(_is_file(conversation_id, file_id)).returning(col(_file.id))
        return await self._session.first(gone) is not None

    async def remove_all(self, conversation_id: UUID) -> int:
        """Delete the rows of all files of a conversation, and return how many."""
        gone = delete(_file).where(col(_file.conversation_id) == conversation_id).returning(col(_file.id))
        return len(await self._session.all(gone))


class ProviderFileRepository(CopyRepository[ProviderFile]):
    """Rows of ``provider_files``.

    The database marks them for deletion when their last file is removed (``release_file``).
    """

    row = ProviderFileRow
    record = ProviderFile
    key = ("account", "name")

    async def in_use(self, account: str, sha256s: Sequence[str], *, lasting: timedelta) -> dict[str, ProviderFile]:
        """By hash, the copies of these contents that are not to be deleted and last at least ``lasting`` longer."""
        wanted = col(_copy.sha256) == any_(literal(list(sha256s), ARRAY(Text)))
        lasts = col(_copy.expires_at) > now() + lasting
        statement = select(_copy).where(col(_copy.account) == account, wanted, _IS_WANTED, lasts)
        return {row.sha256: record_from_row(ProviderFile, row) for row in await self._session.all(statement)}

    async def note(self, copy: ProviderFile, *, lasting: timedelta) -> ProviderFile:
        """Record a copy, and return the copy to use from now on, which may be one of another process.

        An expired copy is replaced. If no file has the content any more, or a usable copy exists already, the given one
        is marked for deletion.
        """
        self._check_tenant(copy.tenant_id)
        content = select(col(ContentRow.sha256)).where(col(ContentRow.sha256) == copy.sha256)
        await self._session.first(content.with_for_update(read=True))  # a transaction that deletes the last file waits
        same = and_(col(_copy.account) == copy.account, col(_copy.sha256) == copy.sha256, _IS_WANTED)
        is_expiring = col(_copy.expires_at) <= now() + lasting
        await self._session.execute(update(_copy).where(same, is_expiring).values(delete_after=now()))
        statement = (
            upsert(_copy)
            .values(**columns(copy))
            .on_conflict_do_nothing(index_elements=["tenant_id", "account", "sha256"], index_where=text(IN_USE))
        )
        await self._session.execute(statement)
        used = record_from_row(ProviderFile, await self._session.first(select(_copy).where(same)))
        is_needed = exists().where(col(_file.tenant_id) == col(_copy.tenant_id), col(_file.sha256) == copy.sha256)
        if used.name != copy.name:
            await self._session.execute(insert(_copy).values(**columns(copy, delete_after=now())))
        await self._session.execute(update(_copy).where(same, ~is_needed).values(delete_after=now()))
        return used

    async def mark_for_deletion(self, account: str, names: Sequence[str]) -> int:
        """Make these copies due for deletion, and return how many exist."""
        named = col(_copy.name) == any_(literal(list(names), ARRAY(Text)))
        is_one = and_(col(_copy.account) == account, named, _IS_WANTED)
        marked = update(_copy).where(is_one).values(delete_after=now()).returning(col(_copy.name))
        return len(await self._session.all(marked))

    async def forget_expired(self, *, limit: int) -> int:
        """Delete the rows, of all tenants, of copies that providers have deleted by themselves; return their number."""
        return await self._delete_at_most(limit, _copy, col(_copy.expires_at) <= now())


def _is_file(conversation_id: UUID, file_id: UUID) -> Any:
    return and_(col(_file.conversation_id) == conversation_id, col(_file.id) == file_id)
