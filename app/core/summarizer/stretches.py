"""The stretches of a chunk that a summarizer describes beside the state: which, how, and in how much room."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from app.core.model.segments import CutSegment
from app.core.summarizer.prompt_rules import size_of

MOST_ASKED: Final = 40
"""Stretches per call, the newest: an answer about more gets careless, and what is old is served last."""
LEAST_TOKENS: Final = 40
"""A stretch below that is no longer than a note about it."""
BRIEF_TOKENS: Final = 60
"""What a summarizer is told; the gate lets pass twice that."""
MOST_TAGS: Final = 12

_OUTPUT_EACH: Final = 200  # tokens: brief, topic and tags with their keys, in scripts that need more of them too

_RULES: Final = """\
- "segments": for each stretch listed after the messages its number, a "topic" of two to six words, a "brief" of at \
most {size} (what was wanted, decided, where it ended), up to {tags} "tags" (names, identifiers, \
keywords): only from its own messages."""


def asked_about(segments: Sequence[CutSegment]) -> tuple[tuple[int, CutSegment], ...]:
    """(number, stretch) of those that a summarizer describes; the rest is left to code.

    Numbers count all of ``segments``, from 1.
    """
    worth = [(number, one) for number, one in enumerate(segments, start=1) if one.tokens >= LEAST_TOKENS]
    return tuple(worth[-MOST_ASKED:])


def output_room(segments: Sequence[CutSegment]) -> int:
    """The output tokens that their descriptions take."""
    return _OUTPUT_EACH * len(asked_about(segments))


def stretch_rules(language: str | None) -> str:
    """What a summarizer is told of them."""
    return _RULES.format(size=size_of(BRIEF_TOKENS, language), tags=MOST_TAGS)


def stretch_list(segments: Sequence[CutSegment]) -> str:
    """Which messages belong to each; empty when there is nothing to describe."""
    lines = [f"{number}: messages {one.from_seq} to {one.to_seq}" for number, one in asked_about(segments)]
    return "\n".join(["The stretches to describe:", *lines]) if lines else ""
