"""Divides texts and lists into pages: whole sentences or words, whole messages, at least one a page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from app.core.anchors.rendering import escape_served
from app.core.model.segments import Level, Marker, Segment
from app.core.segments.digests import place_of
from app.core.segments.markers import render
from app.core.text.budget import first_fitting
from app.core.text.escaping import clean
from app.core.text.localization.catalogue import FALLBACK, catalogue_of
from app.core.text.sentences import starts_within
from app.core.text.shortening import clip
from app.core.text.token_counts import estimate_text

TOPIC: Final = 80
"""Characters of a topic inside its marker."""
_BACK: Final = 0.5  # of a page: a sentence that ends before is too short to end the page with
_MOST_SIGNS: Final = 40  # characters that one token may weigh, so that a page looks at a bounded part of a long text


def page_end(text: str, start: int, max_tokens: int) -> int:
    """The end of the page that begins at ``start``. All pages together are the text, every character once."""
    most = min(len(text), start + max_tokens * _MOST_SIGNS)
    if estimate_text(text[start:most]) <= max_tokens:
        return most
    low, high = start + 1, most
    while high - low > 1:  # what fits ends at ``low``, but for a first sign that alone weighs more
        middle = (low + high) // 2
        if estimate_text(text[start:middle]) <= max_tokens:
            low = middle
        else:
            high = middle
    starts = starts_within(text, start + int(_BACK * (low - start)), low)
    return starts[-1] if starts else max(text.rfind(" ", start, low), text.rfind("\n", start, low)) + 1 or low


def rows_within(weights: Sequence[int], max_tokens: int) -> int:
    """How many of the first rows weigh at most so much together; one in any case, if there is any."""
    return max(len(first_fitting(weights, max_tokens, int)), min(len(weights), 1))


def segment_marker(segment: Segment, level: Level) -> Marker:
    """The marker that leads to a segment."""
    return Marker(text=clip(clean(segment.topic), TOPIC), level=level, segment_id=segment.id)


def segment_line(segment: Segment, level: Level, locale: str = FALLBACK) -> str:
    """A segment in the list of all: its marker, its place, and its L3, which cannot pass for a marker."""
    stored = segment.levels.get("L3")
    tags = escape_served(" ".join(stored.text.split())) if stored else ""
    place = f"{render(segment_marker(segment, level))} {place_of(segment, catalogue_of(locale))}"
    return f"{place}: {tags}" if tags else place
