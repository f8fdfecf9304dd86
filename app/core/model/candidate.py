"""A summarizer's answer as values: entries that it adds or gives up, and what it says about anchors and stretches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from app.core.model.anchors import AnchorType, ClaimedStatus
from app.core.model.segments import SegmentDigest


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateItem:
    """One proposed text of a list field."""

    field: str
    text: str
    from_seqs: tuple[int, ...] = ()
    replaces: tuple[str, ...] = ()
    """Ids of entries that this text takes the place of."""
    unproven: tuple[str, ...] = ()
    """Replaced entries that the text no longer covers, since code cut a part of it: they are kept, in doubt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateDrop:
    """A proposal to forget an entry; valid only with a known reason and a source in the new span."""

    entry: str
    reason: str
    by_seq: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AnchorProposal:
    """A passage that the model would keep word for word. It is accepted only if its message has exactly these words."""

    type: AnchorType
    quote: str
    seq: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AnchorAnswer:
    """What the model says about an anchor that was shown to it."""

    id: str
    claims: ClaimedStatus | None
    """What has become of the anchor; ``None``: it is worth keeping."""
    by_seq: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A proposal that could be read; visible to nobody until the gate has passed it."""

    items: tuple[CandidateItem, ...] = ()
    narrative: Mapping[str, str]
    """Narrative fields that have a text."""
    dropped: tuple[CandidateDrop, ...] = ()
    anchors: tuple[AnchorProposal, ...] = ()
    anchor_answers: tuple[AnchorAnswer, ...] = ()
    """The model's word on each anchor that was shown to it."""
    digests: tuple[SegmentDigest, ...] = ()
    """Digests of the request's segments. Missing ones are made by code."""

    def texts(self) -> list[str]:
        """Every proposed text, narratives first."""
        return [*self.narrative.values(), *(item.text for item in self.items)]
