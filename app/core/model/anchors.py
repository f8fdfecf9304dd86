"""Anchors: items that are never compressed away."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal
from uuid import UUID

AnchorType = Literal["commitment", "decision", "unresolved_question", "critical_fact", "correction"]
AnchorStatus = Literal["active", "resolved", "superseded", "withdrawn"]
"""``withdrawn``: the passage should never have been an anchor."""
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
    """The message in which the anchor stands."""
    offset: int
    """The character of the message's content at which the anchor begins."""
    importance: float
    """From 0 to 1. If the anchors exceed their allotment, the least important ones are left to the marker."""
    token_count: int
    """The tokens of its line in the state block."""
    proposed_by: Proposer = "rule"
    speaker: Speaker = "user"
    """The speaker of the message in which it stands."""
    pasted: bool = False
    """Whether it stands in a text that the speaker only shows, pasted or quoted."""
    passed_over: bool = False
    """Whether a language model that was shown it named only others, or gave it up: it is served after those."""
    claimed_status: ClaimedStatus | None = None
    """What a summarizer says has become of it, until it is verified: it is served after all others."""
    said_at: datetime | None = field(default=None, compare=False)
    """When its message was said, by the speaker's own clock; ``None`` if unknown. It has no column of its own: it is
    read with the anchor."""
    said_by: str = field(default="", compare=False)
    """The speaker's name as its message gives it; empty without one. It is read in the same way."""


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
    """The message that shows it; ``None`` for a passage that should never have been an anchor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """What a language model said about the anchors that it was shown."""

    confirmed: tuple[UUID, ...] = ()
    """The anchors that it calls worth keeping; earlier claims about them are forgotten."""
    passed_over: tuple[UUID, ...] = ()
    claims: tuple[AnchorClaim, ...] = ()
    given_up: tuple[UUID, ...] = ()
    """The anchors that it calls settled, untrue or useless, even where that does not count as a claim."""
