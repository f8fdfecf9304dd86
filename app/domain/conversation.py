"""The values a conversation is made of, as the core and the services see them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

Role = Literal["user", "assistant", "system", "tool"]
MessageStatus = Literal["complete", "interrupted", "erased"]
ProtectedReason = Literal["initial_objective", "system", "compressible"]
Part = Mapping[str, Any]

UNPROTECTED: frozenset[str] = frozenset({"compressible"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Sums:
    """Running sums over messages 1..seq; commands weigh nothing. ``held_*`` counts held messages only."""

    tokens: int = 0
    bytes: int = 0
    held_tokens: int = 0
    held_bytes: int = 0

    def plus(self, other: Sums) -> Sums:
        """The sums one message (or one run of messages) further."""
        return Sums(
            tokens=self.tokens + other.tokens,
            bytes=self.bytes + other.bytes,
            held_tokens=self.held_tokens + other.held_tokens,
            held_bytes=self.held_bytes + other.held_bytes,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One entry of the session history. ``seq`` is 1, 2, 3 … without gaps; originals never change."""

    id: UUID
    conversation_id: UUID
    seq: int
    role: Role
    content: str
    parts: tuple[Part, ...] = ()
    event_type: str = "casual"
    status: MessageStatus = "complete"
    is_command: bool = False
    """Marked by the service: a typed ``/compact`` and its answer. Shown in the history, never in a context."""
    protected_reason: ProtectedReason = "compressible"
    token_count: int = 0
    byte_length: int = 0
    model: str | None = None
    usage: Mapping[str, Any] | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    created_at: datetime

    @property
    def is_protected(self) -> bool:
        """Held: served verbatim also once it is covered."""
        return self.protected_reason not in UNPROTECTED

    @property
    def turn(self) -> int:
        """The 0-based position, as the Sessions Pattern counts."""
        return self.seq - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Outline:
    """What the planner needs of a message: everything but its text."""

    seq: int
    role: Role
    token_count: int
    byte_length: int
    is_protected: bool = False
    is_command: bool = False
    calls: frozenset[str] = frozenset()
    """Ids of the tool calls this message makes."""
    results: frozenset[str] = frozenset()
    """Ids of the tool calls this message answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quiet:
    """When nothing triggers: all three must be over. ``reason`` says why it is quiet."""

    until_seq: int = 0
    """Some message after this one must exist."""
    until_tokens: int = 0
    """The context must weigh at least this much."""
    until: datetime | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """How the state block is served; stored with the state version, so that served bytes stay the same."""

    text: str
    """The block's content, the rendered ``<session_state>`` element."""
    tokens: int
    """What the whole block adds to a context, its acknowledgement included."""
    held: tuple[int, ...] = ()
    """``seq`` of the held messages that follow the block."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """The stored row. Sums make utilization O(1): no turn recounts history."""

    id: UUID
    tenant_id: UUID
    title: str | None = None
    user_id: str | None = None
    locale: str = "en"
    system_prompt: str = ""
    preset: str = "semantic"
    policy: Mapping[str, Any] = field(default_factory=dict)
    """The overrides as given; the resolved policy comes from ``presets.resolve``."""
    state_schema: str | None = None
    compressed_state: Mapping[str, Any] | None = None
    compressed_at_message_id: UUID | None = None
    boundary_seq: int = 0
    state_version: int = 0
    layout: Layout | None = None
    layout_version: int = 0
    compression_count: int = 0
    scratchpad: Mapping[str, Any] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    last_seq: int = 0
    last_message_id: UUID | None = None
    last_message_at: datetime | None = None
    last_event: int = 0
    total: Sums = field(default_factory=Sums)
    """Sums through ``last_seq``."""
    covered: Sums = field(default_factory=Sums)
    """Sums through ``boundary_seq``."""
    context_tokens: int = 0
    trigger_tokens: int | None = None
    """``context_tokens`` at or above this is due; ``None`` = never by itself."""
    quiet: Quiet = field(default_factory=Quiet)
    failure_count: int = 0
    """Failed automatic compactions in a row; sets the back-off."""
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens and money of model calls, as the provider reported them; ``cost_usd`` is ``None`` when unknown."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cost_usd: float | None = None

    def plus(self, other: Usage) -> Usage:
        """The sum; an unknown cost counts as nothing beside a known one."""
        costs = [cost for cost in (self.cost_usd, other.cost_usd) if cost is not None]
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            cost_usd=sum(costs) if costs else None,
        )

    def as_dict(self) -> dict[str, Any]:
        """The JSON form that is stored and shown."""
        return {
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "cached_tokens": self.cached_tokens,
            "cost_usd": self.cost_usd,
        }
