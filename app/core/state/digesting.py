"""Chooses the digests that fit into the state block, each with the segment that it tells of."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from typing import Final

from app.core.model.segments import Level, ServableSegment, ShownSegment
from app.core.segments.digests import WAY_BACK, ServedDigests, serve_digests
from app.core.segments.markers import find
from app.core.segments.redundant import Said, with_own_values, without_said
from app.core.text.budget import made_to_fit
from app.core.text.localization.catalogue import FALLBACK
from app.core.text.token_counts import Estimator, estimate_text

BLOCK_SHARE: Final = 0.15
"""The share of the block for digests without exact values, or with values that stand elsewhere in the block."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Digests:
    """The digests that the state block shows of a conversation's segments."""

    element: str = ""
    """Rendered; empty when nothing is served."""
    segments: tuple[ShownSegment, ...] = ()
    """The segments that have a line of their own, by position."""


NO_DIGESTS = Digests()


@dataclass(frozen=True, slots=True, kw_only=True)
class Digestible:
    """Segments that digests can be served of."""

    segments: Sequence[ServableSegment] = ()
    """The newest ones, with their L2 and L3."""
    total: int = 0
    """How many there are, these included."""
    levels: Collection[Level] = ()
    """Which levels may be served; empty = no digests."""
    estimator: Estimator = "script"
    locale: str = FALLBACK
    """The conversation's."""
    said: Sequence[str] | None = None
    """The state's entries and the anchors, each one; ``None``: what they say is told again."""

    def beside(self, room: int, tokens: int, added: Callable[[str], int]) -> Digests:
        """The most that fits beside a state and anchors, without what these say already.

        Digests are at most ``BLOCK_SHARE`` of the block, but for those that hold exact values which stand nowhere else.

        Args:
            room: Tokens.
            tokens: What the block weighs without digests.
            added: As for ``within``.
        """
        if self.said is None:
            return self.within(room, added)
        said = Said(self.said)
        news = replace(self, segments=without_said(self.segments, said))
        share = max(int(tokens * BLOCK_SHARE / (1 - BLOCK_SHARE)), WAY_BACK)
        within_share = news.within(min(room, share), added)
        if room <= share or not (own := with_own_values(news.segments, said)):
            return within_share
        present = {one.id for one in own}
        shown = [one for one in as_laid_out(news.segments, within_share.segments) if one.id not in present]
        return replace(news, segments=[*shown, *own]).within(room, added)

    def within(self, room: int, added: Callable[[str], int]) -> Digests:
        """The most that fits.

        Args:
            room: Tokens.
            added: What an element adds to the block that it stands in; a little more or less than it weighs alone.
        """

        def serve(left: int) -> ServedDigests:
            return serve_digests(
                self.segments,
                total=self.total,
                levels=self.levels,
                room=left,
                estimator=self.estimator,
                locale=self.locale,
            )

        served = made_to_fit(serve, lambda served: added(served.element) - room if served.element else 0, room)
        places = {segment.id: segment for segment in self.segments}
        return Digests(
            element=served.element,
            segments=tuple(
                ShownSegment(id=name, level=level, from_seq=places[name].from_seq, to_seq=places[name].to_seq)
                for name, level in zip(served.shown, served.levels, strict=True)
            ),
        )


def as_laid_out(segments: Sequence[ServableSegment], shown: Sequence[ShownSegment]) -> list[ServableSegment]:
    """The segments that a layout shows; without levels where it shows only the marker."""
    levels = {one.id: one.level for one in shown}
    return [one if levels[one.id] else replace(one, texts={}) for one in segments if one.id in levels]


def shares_of(digests: Digests, tokens: int) -> list[tuple[ShownSegment | None, int]]:
    """``tokens`` shared out among the shown segments and, under ``None``, the element's own lines."""
    shown = {segment.id: segment for segment in digests.segments}
    lines = digests.element.splitlines()
    owners = [next((shown[one.segment_id] for one in find(line) if one.segment_id in shown), None) for line in lines]
    weights = [estimate_text(f"{line}\n") for line in lines]
    ends = [end * tokens // max(sum(weights), 1) for end in accumulate(weights, initial=0)]
    parts = [end - start for start, end in pairwise(ends)]
    own = sum(part for owner, part in zip(owners, parts, strict=True) if owner is None)
    each = [(owner, part) for owner, part in zip(owners, parts, strict=True) if owner is not None]
    return [(None, own), *each] if own else [*each]
