"""Keys of the word index: one 64-bit number for each stem of each conversation.

The conversation is part of what is hashed, so that one index over all messages finds those of one conversation
without another condition. Keys are made with the stems of ``app.core.text.words``, and of a text that may be in one of
the languages of ``app.core.text.stemming`` with its stems too: when those change, the keys of stored messages must be
made again, by a migration like the one that made them first.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from typing import Final
from uuid import UUID

from app.core.model.conversation import Message
from app.core.model.overlap import message_text
from app.core.text.stemming import guess, stem_in
from app.core.text.words import words

_BYTES: Final = 8  # Postgres' bigint


class TermKeys:
    """Makes the keys of one conversation, each word only once."""

    def __init__(self, conversation_id: UUID) -> None:
        self._base = blake2b(conversation_id.bytes, digest_size=_BYTES)
        self._of_words: dict[tuple[str, str | None], int] = {}

    def of_stem(self, stem_: str) -> int:
        """The key of a stem."""
        hashed = self._base.copy()
        hashed.update(stem_.encode("utf-8", "surrogatepass"))
        return int.from_bytes(hashed.digest(), "big", signed=True)

    def of_text(self, text: str) -> list[int]:
        """The keys of the stems of a text, each once."""
        found = words(text)
        keys = {self._of_word(word, None) for word in found}
        if found and (language := guess(text)):
            keys.update(self._of_word(word, language) for word in found)
        return sorted(keys)

    def of_message(self, message: Message) -> list[int]:
        """The keys of all that a message says; a command and an erased message say nothing."""
        if message.is_command or message.status == "erased":
            return []
        return self.of_text(message_text(message))

    def _of_word(self, word: str, language: str | None) -> int:
        key = self._of_words.get((word, language))
        if key is None:
            key = self._of_words[word, language] = self.of_stem(stem_in(word, language))
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
