"""Chooses the digests that fit into the state block."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from typing import Final

from app.core.model.segments import Level, ServableSegment, ShownSegment
from app.core.segments.deduplication import StateWords, with_unique_values, without_repeated_levels
from app.core.segments.digests import MARKER_ELEMENT_TOKENS, ServedDigests, serve_digests
from app.core.segments.markers import find_markers
from app.core.text.budget import make_fitting
from app.core.text.localization.catalogue import FALLBACK
from app.core.text.token_counts import Estimator, estimate_text

BLOCK_SHARE: Final = 0.15
"""The share of the block for digests without exact values, or with values that are elsewhere in the block."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Digests:
    """The digests that the state block shows of a conversation's segments."""

    element: str = ""
    """The rendered element; empty if nothing is served."""
    segments: tuple[ShownSegment, ...] = ()
    """The segments that have a line of their own, by position."""


NO_DIGESTS = Digests()


@dataclass(frozen=True, slots=True, kw_only=True)
class DigestSource:
    """The segments of which digests can be served."""

    segments: Sequence[ServableSegment] = ()
    """The newest segments, with their L2 and L3."""
    total: int = 0
    """The number of all segments, including these."""
    levels: Collection[Level] = ()
    """The levels that may be served; empty = no digests."""
    estimator: Estimator = "script"
    locale: str = FALLBACK
    """The conversation's locale."""
    block_texts: Sequence[str] | None = None
    """The texts of the state's entries and of the anchors, which digests need not repeat; ``None``: they may."""

    def select_without_repeats(self, max_tokens: int, tokens: int, added_tokens: Callable[[str], int]) -> Digests:
        """The digests that fit beside a state and anchors, without what these already say.

        Digests take at most ``BLOCK_SHARE`` of the block, except those with exact values that are nowhere else.

        Args:
            max_tokens: The most tokens.
            tokens: The tokens of the block without digests.
            added_tokens: See ``select``.
        """
        if self.block_texts is None:
            return self.select(max_tokens, added_tokens)
        state_words = StateWords(self.block_texts)
        news = replace(self, segments=without_repeated_levels(self.segments, state_words))
        share = max(int(tokens * BLOCK_SHARE / (1 - BLOCK_SHARE)), MARKER_ELEMENT_TOKENS)
        within_share = news.select(min(max_tokens, share), added_tokens)
        if max_tokens <= share or not (own := with_unique_values(news.segments, state_words)):
            return within_share
        present = {one.id for one in own}
        shown = [one for one in shown_segments(news.segments, within_share.segments) if one.id not in present]
        return replace(news, segments=[*shown, *own]).select(max_tokens, added_tokens)

    def select(self, max_tokens: int, added_tokens: Callable[[str], int]) -> Digests:
        """As many digests as fit.

        Args:
            max_tokens: The most tokens.
            added_tokens: The tokens that an element adds to its block, which may differ a little from its own tokens.
        """

        def serve(left: int) -> ServedDigests:
            return serve_digests(
                self.segments,
                total=self.total,
                levels=self.levels,
                max_tokens=left,
                estimator=self.estimator,
                locale=self.locale,
            )

        served = make_fitting(
            serve, lambda served: added_tokens(served.element) - max_tokens if served.element else 0, max_tokens
        )
        places = {segment.id: segment for segment in self.segments}
        return Digests(
            element=served.element,
            segments=tuple(
                ShownSegment(id=name, level=level, from_seq=places[name].from_seq, to_seq=places[name].to_seq)
                for name, level in zip(served.shown, served.levels, strict=True)
            ),
        )


def shown_segments(segments: Sequence[ServableSegment], shown: Sequence[ShownSegment]) -> list[ServableSegment]:
    """The segments that a layout shows; one of which only the marker is shown has no levels."""
    levels = {one.id: one.level for one in shown}
    return [one if levels[one.id] else replace(one, texts={}) for one in segments if one.id in levels]


def digest_token_shares(digests: Digests, tokens: int) -> list[tuple[ShownSegment | None, int]]:
    """``tokens`` divided among the shown segments and, under ``None``, the element's own lines."""
    shown = {segment.id: segment for segment in digests.segments}
    lines = digests.element.splitlines()
    owners = [
        next((shown[one.segment_id] for one in find_markers(line) if one.segment_id in shown), None) for line in lines
    ]
    weights = [estimate_text(f"{line}\n") for line in lines]
    ends = [end * tokens // max(sum(weights), 1) for end in accumulate(weights, initial=0)]
    parts = [end - start for start, end in pairwise(ends)]
    own = sum(part for owner, part in zip(owners, parts, strict=True) if owner is None)
    each = [(owner, part) for owner, part in zip(owners, parts, strict=True) if owner is not None]
    return [(None, own), *each] if own else [*each]
