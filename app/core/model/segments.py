"""Segments as values: a stretch of covered messages, and what stands for it at each level of detail."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Final, Literal
from uuid import UUID

Level = Literal["L1", "L2", "L3"]
"""L1 a condensed narrative, L2 goals, decisions and where things stand, L3 keywords and names. L0 are the originals."""

LevelName = Literal["full", "detailed", "brief", "tags"]
"""The published names of L0 to L3."""

LEVELS: Final[tuple[Level, ...]] = ("L1", "L2", "L3")
LEVEL_BY_NAME: Final[Mapping[LevelName, Level | None]] = {"full": None, "detailed": "L1", "brief": "L2", "tags": "L3"}
NAME_BY_LEVEL: Final[Mapping[Level | None, LevelName]] = {level: name for name, level in LEVEL_BY_NAME.items()}

EXTRACTIVE: Final = "extractive"
"""The value of ``made_by`` for a level that code wrote; for other levels it is the model's name."""

EARLIER_ID: Final = "earlier"
"""The reserved segment id that stands for all covered segments of the current version, in pages."""
ANCHORS_ID: Final = "anchors"
"""The reserved segment id that stands for the active anchors for which the state block had no room."""
RESERVED_IDS: Final[frozenset[str]] = frozenset({EARLIER_ID, ANCHORS_ID})


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentLevel:
    """A segment at one level of detail, stored by itself."""

    level: Level
    text: str
    tokens: int
    made_by: str
    """``extractive``, or the name of the model."""
    content_hash: str
    """A hash of span, level, maker and the maker's prompt version: the key of the cache."""
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """A stretch of covered messages; its range never changes."""

    id: str
    """A readable id, unique in its conversation for ever: ``auth_discussion``, ``auth_discussion_2``."""
    conversation_id: UUID
    from_seq: int
    to_seq: int
    topic: str
    started_at: datetime
    ended_at: datetime
    messages: int
    """Commands and erased messages left out."""
    tokens: int
    """What the originals weigh."""
    identifiers: tuple[str, ...] = ()
    """The exact values in its messages, as they were written."""
    levels: Mapping[Level, SegmentLevel] = field(default_factory=dict)
    is_current: bool = True
    """Whether it is one of the current version's segments."""
    wants_detail: bool = False
    """Whether a model is still to write its L1, in the background."""
    detail_tries: int = 0
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ServableSegment:
    """The part of a segment that a context needs to show it at any level; nothing else is read."""

    id: str
    from_seq: int
    to_seq: int
    topic: str
    messages: int
    """Commands and erased messages left out."""
    tokens: int
    """What the originals weigh."""
    identifiers: int
    """How many exact values stand in it."""
    texts: Mapping[Level, str] = field(default_factory=dict)
    """Its text at each level that was read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownSegment:
    """A segment whose digest stands in a state block."""

    id: str
    level: Level | None
    """The level that is shown; ``None``: only its marker is."""
    from_seq: int
    to_seq: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CutSegment:
    """A stretch that was cut and described, before it has an id and a row."""

    from_seq: int
    to_seq: int
    topic: str
    started_at: datetime
    ended_at: datetime
    messages: int
    tokens: int
    identifiers: tuple[str, ...] = ()

    def stored_as(self, id_: str, conversation_id: UUID, *, created_at: datetime, is_current: bool = True) -> Segment:
        """The segment that is stored for this stretch, without levels."""
        own = {item.name: getattr(self, item.name) for item in fields(self)}
        return Segment(id=id_, conversation_id=conversation_id, created_at=created_at, is_current=is_current, **own)


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentDigest:
    """What a summarizer wrote about one of the stretches it was shown; unchecked until the gate has seen it."""

    number: int
    """1, 2, 3 … in the order of the request's ``segments``."""
    topic: str = ""
    brief: str = ""
    """L2."""
    tags: tuple[str, ...] = ()
    """L3."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Marker:
    """A pointer to a compressed text that can be expanded: ``[text →level:segment_id]``."""

    text: str
    level: Level
    segment_id: str


ExpansionWay = Literal["explicit", "search", "automatic"]
"""What asked for an expansion: a client or the model's ``expand_context``; ``search_history``; recall before a call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expansion:
    """One expansion, for the measures: ids and numbers, never text."""

    id: UUID
    conversation_id: UUID
    way: ExpansionWay
    level: LevelName | None = None
    segment_id: str | None = None
    passages: int
    """How many messages or levels it returned."""
    tokens: int
    used: bool | None = None
    """Whether the reply used what it returned; ``None`` while there is no reply, and if a client asked."""
    duration_ms: int
    created_at: datetime
