"""Divides texts and lists into pages: of whole sentences, words or messages, at least one on each page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from app.core.anchors.rendering import escape_served
from app.core.model.segments import Level, Marker, Segment
from app.core.segments.digests import range_text
from app.core.segments.markers import render_marker
from app.core.text.budget import first_fitting
from app.core.text.escaping import clean
from app.core.text.localization.catalogue import FALLBACK, catalogue_of
from app.core.text.sentences import starts_within
from app.core.text.shortening import clip
from app.core.text.token_counts import estimate_text

TOPIC: Final = 80
"""The most characters of a topic inside its marker."""
_BACK: Final = 0.5  # a page ends with a sentence only if that fills at least this share of it
_MAX_CHARACTERS_PER_TOKEN: Final = 40
"""The most characters of one token, so that a page looks only at a bounded part of a long text."""


def page_end(text: str, start: int, max_tokens: int) -> int:
    """The end of the page that begins at ``start``. All pages together are the whole text, without overlaps."""
    most = min(len(text), start + max_tokens * _MAX_CHARACTERS_PER_TOKEN)
    if estimate_text(text[start:most]) <= max_tokens:
        return most
    low, high = start + 1, most
    while high - low > 1:  # the text up to ``low`` fits, unless its first character alone has too many tokens
        middle = (low + high) // 2
        if estimate_text(text[start:middle]) <= max_tokens:
            low = middle
        else:
            high = middle
    starts = starts_within(text, start + int(_BACK * (low - start)), low)
    return starts[-1] if starts else max(text.rfind(" ", start, low), text.rfind("\n", start, low)) + 1 or low


def rows_within(weights: Sequence[int], max_tokens: int) -> int:
    """How many of the first rows have at most ``max_tokens`` together; at least one, if there is any."""
    return max(len(first_fitting(weights, max_tokens, int)), min(len(weights), 1))


def segment_marker(segment: Segment, level: Level) -> Marker:
    """The marker that leads to a segment."""
    return Marker(text=clip(clean(segment.topic), TOPIC), level=level, segment_id=segment.id)


def segment_line(segment: Segment, level: Level, locale: str = FALLBACK) -> str:
    """A segment's line in the list of all: its marker, its place, and its L3, which cannot imitate a marker."""
    stored = segment.levels.get("L3")
    tags = escape_served(" ".join(stored.text.split())) if stored else ""
    place = f"{render_marker(segment_marker(segment, level))} {range_text(segment, catalogue_of(locale))}"
    return f"{place}: {tags}" if tags else place
