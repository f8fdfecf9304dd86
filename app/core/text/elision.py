"""Shows a giant text in part: its head, its tail, and the exact values between them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from app.core.text.identifiers import identifiers
from app.core.text.localization.catalogue import FALLBACK, Catalogue, catalogue_of
from app.core.text.sentences import starts_within
from app.core.text.token_counts import estimate_text

_HEAD_SHARE: Final = 0.55  # share of the room: the beginning says what a text is
_TAIL_SHARE: Final = 0.25  # share of the room: conclusions, results and questions stand at the end
_VALUES_SHARE: Final = 0.15  # share of the room for exact values from between; the rest is for the note about them
_WINDOW_CHARACTERS: Final = 10_000  # characters of one sample that is searched for values
_MAX_WINDOWS: Final = 8  # samples, evenly spread: they bound the time for a message of any size
_SHRINK_FACTOR: Final = (
    0.8  # the factor of one shortening; a few are enough, since texts are about equally dense throughout
)
_MAX_CHARACTERS_TO_SENTENCE: Final = (
    200  # the most characters given up so that no statement is shown without its end or its beginning
)


def elide(text: str, tokens: int, locale: str = FALLBACK) -> str:
    """The text itself if it has at most ``tokens`` (script estimate), else its head, tail and values between.

    The note on what was left out is in the language of ``locale``.
    """
    weight = estimate_text(text)
    if weight <= tokens:
        return text
    characters = max(0, int(tokens * len(text) / weight))
    catalogue = catalogue_of(locale)
    values = _values(text[int(characters * _HEAD_SHARE) : len(text) - int(characters * _TAIL_SHARE)])
    while characters:
        shown = _shortened(text, characters, values, catalogue)
        if estimate_text(shown) <= tokens:
            return shown
        characters = int(characters * _SHRINK_FACTOR)
    return _note(len(text), "", catalogue)


def size_limits(sizes: Sequence[int], total: int) -> list[int]:
    """The size limit of each, so that all have at most ``total`` together: only the largest are cut, to one size."""
    remaining, allowed = total, dict[int, int]()
    for count, index in zip(range(len(sizes), 0, -1), sorted(range(len(sizes)), key=sizes.__getitem__), strict=True):
        allowed[index] = min(sizes[index], max(remaining, 0) // count)
        remaining -= allowed[index]
    return [allowed[index] for index in range(len(sizes))]


def _shortened(text: str, characters: int, values: Sequence[str], catalogue: Catalogue) -> str:
    head = _sentence_end_before(text, int(characters * _HEAD_SHARE))
    tail = _sentence_start_after(text, len(text) - int(characters * _TAIL_SHARE))
    note = _note(tail - head, _even_sample(values, int(characters * _VALUES_SHARE)), catalogue)
    return f"{text[:head]}\n{note}\n{text[tail:]}"


def _note(count: int, values: str, catalogue: Catalogue) -> str:
    named = catalogue.text("context.elided_values", values=values) if values else ""
    return catalogue.text("context.elided", count=str(count), named=named)


def _sentence_end_before(text: str, place: int) -> int:
    least = max(0, place - _MAX_CHARACTERS_TO_SENTENCE)
    starts = starts_within(text, least, place)
    return starts[-1] if starts else (text.rfind(" ", least, place) + 1 or place)


def _sentence_start_after(text: str, place: int) -> int:
    most = min(len(text), place + _MAX_CHARACTERS_TO_SENTENCE)
    starts = starts_within(text, place, most)
    return starts[0] if starts else (text.find(" ", place, most) + 1 or place)


def _values(middle: str) -> list[str]:
    step = max(_WINDOW_CHARACTERS, len(middle) // _MAX_WINDOWS)
    windows = (middle[start : start + _WINDOW_CHARACTERS] for start in range(0, len(middle), step))
    return list(dict.fromkeys(value for window in windows for value in identifiers(window)))


def _even_sample(values: Sequence[str], characters: int) -> str:
    if not values or characters <= 0:
        return ""
    length = sum(len(value) + 2 for value in values)
    step = max(1, -(-length // characters))
    # The sample is spread evenly: later values matter as much as earlier ones.
    chosen = ", ".join(values[::step])
    return chosen if len(chosen) <= characters else ""
