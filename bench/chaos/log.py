"""Records what the clients of a campaign were told: every acknowledgement, with times on one clock."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The acknowledgement of a request; a field is ``None`` if the door does not give it."""

    message_id: str | None = None
    seq: int | None = None
    reply_id: str | None = None
    reply: str | None = None
    """The whole reply."""
    pieces: str | None = None
    """The pieces of the streamed reply, joined."""


@dataclass(slots=True, kw_only=True)
class SentMessage:
    """One message of a client, and its outcome. No other message has the same content."""

    client: str
    door: str
    conversation: str
    content: str
    asked_at: float
    answered_at: float | None = None
    tries: int = 0
    answers: list[Answer] = field(default_factory=list)
    """The first answer, and those to the same request sent again."""
    refused: str | None = None
    """The code of a final refusal; it is then open whether the message took effect."""


@dataclass(slots=True, kw_only=True)
class Erased:
    """A message that a client had erased."""

    conversation: str
    message_id: str
    content: str
    asked_at: float
    answered_at: float | None = None


@dataclass(slots=True, kw_only=True)
class Restored:
    """An earlier state that a client had restored."""

    conversation: str
    version: int
    asked_at: float
    answered_at: float | None = None
    made: int | None = None
    """The version that it became, or a later one."""


@dataclass(slots=True, kw_only=True)
class Compacted:
    """A compaction that a client asked for."""

    conversation: str
    asked_at: float
    answered_at: float | None = None
    compaction_id: str | None = None
    status: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """One message as a client saw it."""

    seq: int
    id: str | None
    content: str
    has_parts: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """The newest messages of a conversation, or its context, as a client got them."""

    conversation: str
    asked_at: float
    shown: tuple[Shown, ...]
    """The messages seen: in order of ``seq``, or in the order of the context."""
    is_context: bool = False
    truncated: bool = False
    is_last: bool = False
    """Whether everything was at rest by then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Followed:
    """Everything that a follower of events got, as pairs of number and type."""

    follower: str
    conversation: str
    events: tuple[tuple[int, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """The time during which a fault lasted."""

    fault: str
    began_at: float
    ended_at: float


@dataclass(slots=True, kw_only=True)
class Log:
    """All records; several threads may add to it at the same time."""

    said: list[SentMessage] = field(default_factory=list)
    erased: list[Erased] = field(default_factory=list)
    restored: list[Restored] = field(default_factory=list)
    compacted: list[Compacted] = field(default_factory=list)
    reads: list[Read] = field(default_factory=list)
    followed: list[Followed] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)
    defects: list[str] = field(default_factory=list)
    """Descriptions of things that no client should ever see."""
    ended_at: float = 0.0
    """The time when no client waited any more."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def defect(self, text: str) -> None:
        """Record a defect; the same text is recorded only once."""
        with self._lock:
            if text not in self.defects:
                self.defects.append(text)

    def write(self, path: Path) -> None:
        """Write lines of JSON, each with the name of a list and one of its rows."""
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w", encoding="utf-8") as file:
            for line in self._lines():
                file.write(json.dumps(line, ensure_ascii=False) + "\n")

    def _lines(self) -> Iterable[Json]:
        for name in ("said", "erased", "restored", "compacted", "reads", "followed", "spans"):
            for row in getattr(self, name):
                yield {"list": name, **asdict(row)}
