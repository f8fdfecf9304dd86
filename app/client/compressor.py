"""Three calls for levels of detail: make a level, read a level, make a context from levels."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final, Literal

from . import endpoints
from .asynchronous import AsyncThroughline
from .calls import Call, Id
from .endpoints import ContextOptions, LevelName
from .resources import Context, Segment
from .retrying import Retrying, Steps, exchange
from .synchronous import Throughline

Level = Literal[0, 1, 2, 3] | LevelName
"""0 full, 1 detailed, 2 brief, 3 tags."""
Stretch = Segment | str | tuple[int, int]
"""A segment, its id, or the first and last ``seq`` of a range."""
_NAMES: Final[tuple[LevelName, ...]] = ("full", "detailed", "brief", "tags")


class ContextCompressor:
    """Levels of detail of one conversation's segments, and contexts made of them."""

    def __init__(self, client: Throughline, conversation_id: Id) -> None:
        self._client = client
        self._conversation_id = conversation_id

    def compress(self, segment: Stretch, level: Level) -> Segment:
        """Make a level of a segment now and return it; 0 are the originals.

        Raises ``ValueError`` for an unknown level.
        """
        return self._client.run(lambda retrying: _compressed_segment(self._conversation_id, segment, level, retrying))

    def expand(self, segment_id: str, level: Level = 0) -> Segment:
        """A whole segment at a level, whatever its size; 0 are the originals.

        Raises ``ValueError`` for an unknown level.
        """
        return self._client.run(lambda retrying: _all_pages(self._conversation_id, segment_id, level, retrying))

    def assemble_context(
        self, conversation_id: Id, token_budget: int | None = None, options: ContextOptions | None = None
    ) -> Context:
        """A conversation's context within a budget."""
        return self._client.context(conversation_id, token_budget, **(options or {}))


class AsyncContextCompressor:
    """The asynchronous ``ContextCompressor``."""

    def __init__(self, client: AsyncThroughline, conversation_id: Id) -> None:
        self._client = client
        self._conversation_id = conversation_id

    async def compress(self, segment: Stretch, level: Level) -> Segment:
        """Make a level of a segment now and return it; 0 are the originals.

        Raises ``ValueError`` for an unknown level.
        """
        return await self._client.run(
            lambda retrying: _compressed_segment(self._conversation_id, segment, level, retrying)
        )

    async def expand(self, segment_id: str, level: Level = 0) -> Segment:
        """A whole segment at a level, whatever its size; 0 are the originals.

        Raises ``ValueError`` for an unknown level.
        """
        return await self._client.run(lambda retrying: _all_pages(self._conversation_id, segment_id, level, retrying))

    async def assemble_context(
        self, conversation_id: Id, token_budget: int | None = None, options: ContextOptions | None = None
    ) -> Context:
        """A conversation's context within a budget."""
        return await self._client.context(conversation_id, token_budget, **(options or {}))


def _compression_call(conversation_id: Id, segment: Stretch, level: Level) -> Call[Segment]:
    if isinstance(segment, tuple):
        return endpoints.make_level(conversation_id, _level_name(level), from_seq=segment[0], to_seq=segment[1])
    segment_id = segment.segment_id if isinstance(segment, Segment) else segment
    return endpoints.make_level(conversation_id, _level_name(level), segment_id=segment_id)


def _compressed_segment(conversation_id: Id, segment: Stretch, level: Level, retrying: Retrying) -> Steps[Segment]:
    made = yield from exchange(_compression_call(conversation_id, segment, level), retrying)
    if made.next_cursor is None:
        return made
    return (yield from _all_pages(conversation_id, made.segment_id, level, retrying))


def _all_pages(conversation_id: Id, segment_id: str, level: Level, retrying: Retrying) -> Steps[Segment]:
    call = endpoints.segment(conversation_id, segment_id, _level_name(level))
    whole = yield from exchange(call, retrying)
    while whole.next_cursor is not None:
        following = replace(call, params={**call.params, "after": whole.next_cursor})
        whole = whole.joined((yield from exchange(following, retrying)))
    return whole


def _level_name(level: Any) -> LevelName:
    if isinstance(level, int) and level not in range(len(_NAMES)):
        raise ValueError(f"there is no level {level}: 0 full, 1 detailed, 2 brief, 3 tags")
    # A name is sent unchanged; the service decides which names exist.
    name: LevelName = _NAMES[level] if isinstance(level, int) else level
    return name
