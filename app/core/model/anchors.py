"""Anchors: items that are never compressed away."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal
from uuid import UUID

AnchorType = Literal["commitment", "decision", "unresolved_question", "critical_fact", "correction"]
AnchorStatus = Literal["active", "resolved", "superseded", "withdrawn"]
"""``withdrawn``: it never was an anchor."""
ClaimedStatus = Literal["resolved", "superseded", "withdrawn"]
"""What a summarizer may say has become of an anchor; it takes effect when the verifier agrees."""
Proposer = Literal["rule", "model", "user"]
Speaker = Literal["user", "assistant"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundAnchor:
    """A verbatim passage of a message that was recognised as an anchor, not yet stored."""

    type: AnchorType
    content: str
    """Verbatim, but for secrets, which stand as ``[REDACTED:kind]``."""
    seq: int
    """Its original position."""
    offset: int
    """The character of the message's content at which the anchor begins."""
    importance: float
    """0–1: beyond the allotment the least important stand behind the marker."""
    token_count: int
    """What its line in the block weighs."""
    proposed_by: Proposer = "rule"
    speaker: Speaker = "user"
    """Whose message it stands in."""
    pasted: bool = False
    """Whether it stands in a text that the speaker only shows (pasted or quoted)."""
    passed_over: bool = False
    """A language model was shown it and named others only, or gave it up: it is served after those."""
    claimed_status: ClaimedStatus | None = None
    """What a summarizer says has become of it, until it is verified: it is served after all others."""
    said_at: datetime | None = field(default=None, compare=False)
    """When its message was said, as the clock there showed it, where that is known: no column of its own, it is read
    with the anchor."""
    said_by: str = field(default="", compare=False)
    """The name that its message carries, as it was given: read in the same way; empty without one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Anchor(FoundAnchor):
    """A stored anchor. Its status is the conversation's, not a state version's: a restore leaves it."""

    id: UUID
    conversation_id: UUID
    message_id: UUID
    status: AnchorStatus = "active"
    superseded_by: UUID | None = None
    """The anchor that took its place."""
    claimed_seq: int | None = None
    """The message that the claim names."""
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Transition:
    """A change of an anchor's status that a later message brought about."""

    anchor_id: UUID
    status: AnchorStatus
    superseded_by: UUID | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AnchorClaim:
    """What a summarizer says has become of an anchor."""

    anchor_id: UUID
    status: ClaimedStatus
    seq: int | None = None
    """The message that shows it; ``None`` of one that never was an anchor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """What a language model said about the anchors that it was shown."""

    confirmed: tuple[UUID, ...] = ()
    """What was claimed of them before is forgotten."""
    passed_over: tuple[UUID, ...] = ()
    claims: tuple[AnchorClaim, ...] = ()
    given_up: tuple[UUID, ...] = ()
    """The anchors that it calls settled, untrue or useless, even where that is no claim that counts."""
