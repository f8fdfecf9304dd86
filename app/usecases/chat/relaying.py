"""Passes the events of a running turn on to followers in other processes, as numbered entries of a stream.

The turn does not know about this: for it the relay is one more listener. What counts is the turn as the database has
it. If the stream ends early or lacks an entry, followers get the rest from the database once the turn has ended.

Entries hold words of a conversation, and the server of the stream may write them to a disk. So they are encrypted with
a key that is kept in the turn's row until the turn ends. After that nobody can read them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import aclosing
from dataclasses import replace
from typing import Final
from uuid import UUID

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from app.core.model.records import Turn
from app.usecases.chat.turn_handle import PIECES, ChatEvent, TurnHandle, delta
from app.usecases.ports import Clock, TurnStreams

PAUSE_SECONDS: Final = 0.05  # seconds between two entries: more often nobody would notice
AGAIN_SECONDS: Final = 0.5  # seconds between two tries to send the same entry
NONCE: Final = 12  # bytes; the cipher requires this length
MAX_ENTRY_LENGTH: Final = 16_000  # characters of the reply, and of its reasoning, in one entry


class Seal:
    """Seals the entries of one turn, and opens them."""

    def __init__(self, turn_id: UUID, key: bytes) -> None:
        self._cipher = AESGCM(key)
        self._turn = turn_id.bytes

    @staticmethod
    def new_key() -> bytes:
        """A key for one turn."""
        return AESGCM.generate_key(bit_length=256)

    def seal(self, number: int, entry: bytes) -> bytes:
        """The entry, encrypted for this place in the stream only."""
        nonce = os.urandom(NONCE)
        return nonce + self._cipher.encrypt(nonce, entry, self._place_in_stream(number))

    def open(self, number: int, sealed: bytes) -> bytes:
        """The decrypted entry. Raises ``ValueError`` unless it was sealed with this key for this place."""
        try:
            return self._cipher.decrypt(sealed[:NONCE], sealed[NONCE:], self._place_in_stream(number))
        except InvalidTag as wrong:
            raise ValueError("the entry belongs to another turn") from wrong

    def _place_in_stream(self, number: int) -> bytes:
        return self._turn + number.to_bytes(8, "big")


async def relay(turn: Turn, handle: TurnHandle, streams: TurnStreams, clock: Clock) -> None:
    """Pass on all events until the turn ends. If the stream is away, it is tried again from the same entry."""
    if turn.stream_key is None:
        return
    seal, number = Seal(turn.id, turn.stream_key), 0
    async with aclosing(handle.batches()) as batches:
        async for events in batches:
            for entry in entries_of(events):
                number += 1
                sealed = seal.seal(number, entry)
                while not await streams.add(turn.id, number, sealed, is_last=events[-1].terminal):
                    if handle.ended:
                        return
                    await clock.sleep(AGAIN_SECONDS)
            await clock.sleep(PAUSE_SECONDS)


def entries_of(events: Iterable[ChatEvent]) -> Iterator[bytes]:
    """Events as entries of bounded size.

    The terminal event has only its type and number, since its result is stored.
    """
    batch: list[ChatEvent] = []
    size = 0
    for event in events:
        for piece in _short_pieces(event):
            length = len(piece.data.get("text", ""))
            if batch and size + length > MAX_ENTRY_LENGTH:
                yield _encoded(batch)
                batch, size = [], 0
            batch.append(piece)
            size += length
    if batch:
        yield _encoded(batch)


def events_in(entry: bytes) -> list[ChatEvent]:
    """The events of an entry."""
    rows = json.loads(entry.decode(errors="surrogatepass"))
    return [ChatEvent(type=type_, id=number, data=data) for type_, number, data in rows]


def _short_pieces(event: ChatEvent) -> Iterator[ChatEvent]:
    if event.type not in PIECES:
        yield replace(event, result=None, error=None)
        return
    text = event.data["text"]
    for start in range(0, len(text), MAX_ENTRY_LENGTH):
        yield delta(text[start : start + MAX_ENTRY_LENGTH], event.type)


def _encoded(events: Iterable[ChatEvent]) -> bytes:
    rows = [(event.type, event.id, dict(event.data)) for event in events]
    return json.dumps(rows, ensure_ascii=False, separators=(",", ":")).encode(errors="surrogatepass")
