"""The segments of a chunk that a summarizer describes with the state: which ones, how, and in how many tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from app.core.model.segments import CutSegment
from app.core.summarizer.prompt_rules import size_of

MAX_DESCRIBED_SEGMENTS: Final = 40
"""The most segments per call, the newest: answers about more become careless, and old ones are served last."""
MIN_SEGMENT_TOKENS: Final = 40
"""The fewest tokens of a segment that is described: a smaller one is no longer than a description of it."""
BRIEF_TOKENS: Final = 60
"""The tokens of a brief that a summarizer is asked for; the checks accept twice as many."""
MAX_TAGS: Final = 12

_OUTPUT_EACH: Final = 200  # tokens: brief, topic and tags with their keys, in scripts that need more of them too

_RULES: Final = """\
- "segments": for each stretch listed after the messages its number, a "topic" of two to six words, a "brief" of at \
most {size} (what was wanted, decided, where it ended), up to {tags} "tags" (names, identifiers, \
keywords): only from its own messages."""


def described_segments(segments: Sequence[CutSegment]) -> tuple[tuple[int, CutSegment], ...]:
    """(number, segment) of each segment that a summarizer describes; code describes the others.

    Numbers count all of ``segments``, from 1.
    """
    large_enough = [(number, one) for number, one in enumerate(segments, start=1) if one.tokens >= MIN_SEGMENT_TOKENS]
    return tuple(large_enough[-MAX_DESCRIBED_SEGMENTS:])


def digest_output_tokens(segments: Sequence[CutSegment]) -> int:
    """The output tokens for the descriptions of these segments."""
    return _OUTPUT_EACH * len(described_segments(segments))


def segment_rules(language: str | None) -> str:
    """The rules for describing segments, for a summarizer."""
    return _RULES.format(size=size_of(BRIEF_TOKENS, language), tags=MAX_TAGS)


def segment_list(segments: Sequence[CutSegment]) -> str:
    """The list of segments with their messages; empty if there is nothing to describe."""
    lines = [f"{number}: messages {one.from_seq} to {one.to_seq}" for number, one in described_segments(segments)]
    return "\n".join(["The stretches to describe:", *lines]) if lines else ""
