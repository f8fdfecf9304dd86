"""The bytes of providers' answers: how many are read, and how a stream of events reaches a client that is strict."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from typing import Any, Final

from pydantic_ai.providers import Provider

ANSWER_BYTES: Final = 64_000_000
"""The most bytes of one answer, unpacked. The longest answers of models have 128,000 tokens, each in an event of its
own with some 350 bytes.
"""
_EVENTS: Final = "text/event-stream"
_UNUSED_FIELDS: Final = (b":", b"event:", b"id:", b"retry:")
"""The lines of events that are no data. A line that begins with a colon is a comment, by which gateways keep a
connection open.
"""
_NO_DATA: Final = frozenset({b"", b"[DONE]"})
"""Data that gateways for several providers send, of which Google's client knows nothing."""
_LINE_ENDS: Final = {
    character.encode(): f"\\u{ord(character):04x}".encode() for character in "\v\f\x1c\x1d\x1e\x85\u2028\u2029"
}
"""Characters that end no line of a stream of events, but do end one for the client; each as it is written in JSON."""

_Pieces = Callable[[], AsyncIterator[bytes]]


class AnswerTooLargeError(Exception):
    """A provider's answer has, or may have, more than ``ANSWER_BYTES``."""


def limit_answers(provider: Provider[Any], *, repairs_events: bool = False) -> None:
    """Have the client of a provider read at most ``ANSWER_BYTES`` of each answer, and none that is packed twice.

    Packed once, a piece of 64 kB has at most 64 MB; packed twice, it may have thousands of times that.

    Some clients of providers are not of the kind that can be told so; they are left as they are.

    Args:
        provider: A provider whose client it made itself.
        repairs_events: Whether streams of events are put into the form that Google's client understands.
    """

    async def limit(response: Any) -> None:
        is_packed_twice = "," in response.headers.get("content-encoding", "")
        response.aiter_bytes = _limited(response.aiter_bytes, refuses=is_packed_twice)
        if repairs_events and response.headers.get("content-type", "").lower().startswith(_EVENTS):
            response.aiter_bytes = _repaired(response.aiter_bytes)

    hooks: dict[str, list[Callable[[Any], Awaitable[None]]]] | None
    hooks = getattr(getattr(provider, "_own_http_client", None), "event_hooks", None)
    if hooks is not None:
        hooks["response"].append(limit)


def _limited(read: _Pieces, *, refuses: bool) -> _Pieces:
    async def limited() -> AsyncIterator[bytes]:
        if refuses:
            raise AnswerTooLargeError
        size = 0
        async with aclosing(read()) as pieces:  # type: ignore[type-var]
            async for piece in pieces:
                size += len(piece)
                if size > ANSWER_BYTES:
                    raise AnswerTooLargeError
                yield piece

    return limited


def _repaired(read: _Pieces) -> _Pieces:
    async def repaired() -> AsyncIterator[bytes]:
        begun: list[bytes] = []  # pieces of a line that has not ended
        async with aclosing(read()) as pieces:  # type: ignore[type-var]
            async for piece in pieces:
                *lines, rest = piece.split(b"\n")
                for line in lines:
                    if (whole := _repaired_line(b"".join([*begun, line]))) is not None:
                        yield whole + b"\n"
                    begun.clear()
                begun.append(rest)
        if last := _repaired_line(b"".join(begun)):
            yield last

    return repaired


def _repaired_line(line: bytes) -> bytes | None:
    """A line as Google's client understands it; ``None`` if it has no data."""
    if line.startswith(_UNUSED_FIELDS):
        return None
    if line.startswith(b"data:"):
        data = line.removeprefix(b"data:").strip()
        if data in _NO_DATA:
            return None
        line = b"data: " + data
    for end, escaped in _LINE_ENDS.items():
        line = line.replace(end, escaped)
    return line
