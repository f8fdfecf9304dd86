"""Anchors: items that are never compressed away."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal
from uuid import UUID

AnchorType = Literal["commitment", "decision", "unresolved_question", "critical_fact", "correction"]
AnchorStatus = Literal["active", "resolved", "superseded"]
Proposer = Literal["rule", "model", "user"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundAnchor:
    """A verbatim passage of a message that was recognised as an anchor, not yet stored."""

    type: AnchorType
    content: str
    """Verbatim, but for secrets, which stand as ``[REDACTED:kind]``."""
    seq: int
    """Its original position."""
    offset: int
    """Where it begins in the message's content, in characters."""
    importance: float
    """0–1: beyond the allotment the least important stand behind the marker."""
    token_count: int
    """What its line in the block weighs."""
    proposed_by: Proposer = "rule"
    said_at: datetime | None = field(default=None, compare=False)
    """When its message was said, where that is known: no column of its own, it is read with the anchor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Anchor(FoundAnchor):
    """A stored anchor. Its status is the conversation's, not a state version's: a restore leaves it."""

    id: UUID
    conversation_id: UUID
    message_id: UUID
    status: AnchorStatus = "active"
    superseded_by: UUID | None = None
    """The anchor that took its place."""
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Transition:
    """A change of an anchor's status that a later message brought about."""

    anchor_id: UUID
    status: AnchorStatus
    superseded_by: UUID | None = None
