"""Keys of the word index: one 64-bit number for each stem of each conversation.

The conversation is part of what is hashed, so that one index over all messages finds those of one conversation without
a further condition. Keys are made with the stems of ``app.core.text.words``. A text that may be in one of the languages
of ``app.core.text.stemming`` also gets keys with that language's stems. When either changes, the keys of stored
messages are made again: ``throughline index-words``.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from typing import Any, Final
from uuid import UUID

from sqlalchemy import select, true, tuple_, update
from sqlmodel import col

from app.core.model.conversation import Message
from app.core.model.word_overlap import message_text
from app.core.text.stemming import guessed_language, stems_in
from app.core.text.words import stem, words
from app.off_loop import off_loop
from app.storage.repositories.base import Repository
from app.storage.repositories.contents import MessagePlace
from app.storage.repositories.sizes import READ_BYTES, count_fitting, text_bytes
from app.storage.tables import MessageRow

_KEY_BYTES: Final = 8  # a bigint in Postgres
_MESSAGE_FIELDS: Final = ("id", "conversation_id", "seq", "role", "content", "status", "is_command", "created_at")
_PLACE_COLUMNS: Final = (col(MessageRow.tenant_id), col(MessageRow.id))
_READ_COLUMNS: Final = tuple(
    col(getattr(MessageRow, name)) for name in (*_MESSAGE_FIELDS, "parts", "tenant_id", "term_keys")
)


class TermKeys:
    """Makes the keys of one conversation, each word only once."""

    def __init__(self, conversation_id: UUID) -> None:
        self._base = blake2b(conversation_id.bytes, digest_size=_KEY_BYTES)
        self._keys_by_word: dict[str, int] = {}

    def of_stem(self, stem_: str) -> int:
        """The key of a stem."""
        hashed = self._base.copy()
        hashed.update(stem_.encode("utf-8", "surrogatepass"))
        return int.from_bytes(hashed.digest(), "big", signed=True)

    def of_text(self, text: str) -> list[int]:
        """The keys of the stems of a text, each once."""
        keys = {self._of_word(word) for word in words(text)}
        if keys and (language := guessed_language(text)):
            keys.update(map(self.of_stem, frozenset(stems_in(text, language))))
        return sorted(keys)

    def of_message(self, message: Message) -> list[int]:
        """The keys of everything that a message says; a command or an erased message has none."""
        if message.is_command or message.status == "erased":
            return []
        return self.of_text(message_text(message))

    def _of_word(self, word: str) -> int:
        key = self._keys_by_word.get(word)
        if key is None:
            key = self._keys_by_word[word] = self.of_stem(stem(word))
        return key


def keys_of(messages: Iterable[Message]) -> list[list[int]]:
    """The keys of each message, in order."""
    makers: dict[UUID, TermKeys] = {}
    found: list[list[int]] = []
    for message in messages:
        maker = makers.get(message.conversation_id)
        if maker is None:
            maker = makers[message.conversation_id] = TermKeys(message.conversation_id)
        found.append(maker.of_message(message))
    return found


class TermKeyRepository(Repository):
    """Finds messages whose keys an earlier version made otherwise, and makes those keys again."""

    async def outdated(
        self, after: MessagePlace | None, *, limit: int
    ) -> tuple[list[MessagePlace], MessagePlace | None]:
        """Look at the next ``limit`` messages of all tenants, or at fewer where they are large.

        Returns:
            The messages that would get other keys today, and the place that was reached; ``None`` at the end.
        """
        place = tuple_(*_PLACE_COLUMNS)
        is_after = true() if after is None else place > after
        heads = (
            select(*_PLACE_COLUMNS, text_bytes().label("bytes")).where(is_after).order_by(*_PLACE_COLUMNS).limit(limit)
        )
        listed = await self._session.rows(heads)
        if not listed:
            return [], None
        count = max(count_fitting([head.bytes for head in listed], READ_BYTES), 1)
        last: MessagePlace = (listed[count - 1].tenant_id, listed[count - 1].id)
        rows = await self._session.rows(select(*_READ_COLUMNS).where(is_after, place <= last).order_by(*_PLACE_COLUMNS))
        made = await off_loop(keys_of, [_message(row) for row in rows])
        found = [(row.tenant_id, row.id) for row, keys in zip(rows, made, strict=True) if keys != sorted(row.term_keys)]
        return found, last if count < len(listed) or len(listed) == limit else None

    async def renew(self, message_id: UUID) -> bool:
        """Make a message's keys again from its present text; it may have been erased meanwhile."""
        is_message = col(MessageRow.id) == message_id
        rows = await self._session.rows(select(*_READ_COLUMNS).where(is_message).with_for_update(key_share=True))
        for row in rows:
            (keys,) = await off_loop(keys_of, [_message(row)])
            await self._session.execute(update(MessageRow).where(is_message).values(term_keys=keys))
        return bool(rows)


def _message(row: Any) -> Message:
    return Message(parts=tuple(row.parts), **{name: getattr(row, name) for name in _MESSAGE_FIELDS})
