"""The ``<digests>`` element of the state block: what the covered segments say, with most detail for the newest.

Each segment is shown in one form: its L2, its L3, only its marker, or, with all older ones, as the single marker
``[earlier →L3:earlier]``. Steps to better forms are taken in a fixed order until the room is used up: so more room
never shows less.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from app.core.anchors.rendering import escape_served
from app.core.model.segments import LEVELS, Level, Marker, Segment, ServableSegment
from app.core.segments.markers import EARLIER_MARKER, render_marker
from app.core.text.escaping import clean
from app.core.text.identifiers import find_identifiers
from app.core.text.localization.catalogue import CATALOGUES, FALLBACK, Catalogue, catalogue_of
from app.core.text.memo import FIGURE_GROWTH, memoized
from app.core.text.shortening import clip, fitted
from app.core.text.token_counts import Estimator, estimate_text

DIGESTS_TAG: Final = "digests"

MARKER_ELEMENT_TOKENS: Final = 32
"""The tokens, by any estimator, of an element with only one marker, which leads to all segments."""

_TOPIC: Final = 80  # the most characters of a topic inside its marker
_MARKER: Final = 80  # the most tokens of a marker
_MAX_TOKENS: Final[Mapping[Level, int]] = {"L1": 900, "L2": 120, "L3": 60}
"""The most tokens of a served text by level: a text that is too long for its level must not push out the rest."""
_SEPARATOR: Final = ", "
_SELF_EXPLANATORY_KINDS: Final = frozenset({"date", "time", "money"})
"""Kinds of values whose form says what they are."""
_SAMPLE: Final = 8_000  # the most characters of a stored text that are looked at; more are never served
_SHRINK: Final = 0.8
_FORMS: Final = 10  # so many consecutive numbers have every plural form, or that of the teens, which is the longest
_ALL_LEVELS: Final[tuple[Level, ...]] = ("L3", "L2", "L1")
_LAYOUT_LEVELS: Final[tuple[Level, ...]] = ("L3", "L2")
"""The levels that a stored layout may show; L1 is only served if a larger budget was requested."""
_SHARES: Final[Mapping[str, int]] = {"marker": 1, "L3": 2, "L2": 4}
"""One in so many of the shown segments has at least this form: all have a marker, half an L3, a quarter an L2."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedDigests:
    """The digests that are served, and how many segments have none."""

    element: str = ""
    """The rendered element; empty if nothing fits, without segments, and if no level may be served."""
    shown: tuple[str, ...] = ()
    """The ids of the segments that have a line, in order of ``from_seq``."""
    levels: tuple[Level | None, ...] = ()
    """The level that is shown of each of these; ``None``: only its marker."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _DigestOptions:
    """The levels that may be served, the language, and how tokens are counted."""

    best: Level
    """The most detailed level, to which markers lead."""
    levels: Collection[Level]
    estimator: Estimator
    catalogue: Catalogue


@dataclass(frozen=True, slots=True, kw_only=True)
class _Step:
    """One segment, by its distance from the newest, in one of its forms."""

    order: tuple[int, int]
    rank: int
    level: Level | None
    line: str
    weight: int


def serve_digests(
    segments: Sequence[ServableSegment],
    *,
    total: int,
    levels: Collection[Level],
    max_tokens: int,
    estimator: Estimator = "script",
    locale: str = FALLBACK,
) -> ServedDigests:
    """The element for these segments within ``max_tokens`` tokens, including tags and markers.

    Args:
        segments: The newest segments of the current version, with their L2 and L3, in any order.
        total: The number of all segments of the version.
        levels: The levels that may be served.
        max_tokens: The most tokens of the whole element.
        estimator: How tokens are counted.
        locale: The conversation's locale.
    """
    catalogue = catalogue_of(locale)
    ordered = sorted(segments, key=lambda segment: segment.from_seq)
    total = max(total, len(ordered))
    if not levels or not total or max_tokens <= 0:
        return ServedDigests()
    options = _DigestOptions(best=_best_level(levels), levels=levels, estimator=estimator, catalogue=catalogue)
    taken = _steps_within(_steps(ordered[::-1], options, max_tokens), total, options, max_tokens)
    if taken is None:
        return ServedDigests()
    taken = taken[::-1]
    return ServedDigests(
        element=_element([step.line for step in taken], total - len(taken), catalogue),
        shown=tuple(segment.id for segment in ordered[len(ordered) - len(taken) :]),
        levels=tuple(step.level for step in taken),
    )


def _steps(newest: Sequence[ServableSegment], options: _DigestOptions, max_tokens: int) -> list[_Step]:
    """Every step that could have room, in the order in which they are taken.

    Segments need at least bare markers: beyond the room for these, no further segment is looked at.
    """
    found: list[_Step] = []
    spent = 0
    for rank, segment in enumerate(newest):
        for name, line, weight in _forms_shortest_first(segment, options, _LAYOUT_LEVELS):
            step = _Step(
                order=((rank + 1) * _SHARES[name], _SHARES[name]),
                rank=rank,
                level=next((level for level in LEVELS if level == name), None),
                line=line,
                weight=weight,
            )
            spent += step.weight if step.level is None else 0
            if spent > max_tokens:
                return sorted((one for one in found if one.order < step.order), key=lambda one: one.order)
            found.append(step)
    return sorted(found, key=lambda one: one.order)


def segment_lines(
    segment: ServableSegment,
    levels: Collection[Level],
    *,
    estimator: Estimator = "script",
    catalogue: Catalogue = CATALOGUES[FALLBACK],
) -> dict[str, tuple[str, int]]:
    """The segment's line and its tokens in each form: ``marker``, and its levels that may be served.

    It is empty if no level may be served.
    """
    if not levels:
        return {}
    options = _DigestOptions(best=_best_level(levels), levels=levels, estimator=estimator, catalogue=catalogue)
    return {name: (line, weight) for name, line, weight in _forms_shortest_first(segment, options, _ALL_LEVELS)}


def digests_element(lines: Sequence[str], hidden_count: int, locale: str = FALLBACK) -> str:
    """The ``<digests>`` element: the marker ``earlier`` for ``hidden_count`` more segments, then these lines."""
    return _element(lines, hidden_count, catalogue_of(locale)) if lines or hidden_count else ""


def _best_level(levels: Collection[Level]) -> Level:
    return next(level for level in LEVELS if level in levels)


def _forms_shortest_first(
    segment: ServableSegment, options: _DigestOptions, offered: Sequence[Level]
) -> Iterator[tuple[str, str, int]]:
    marker = _marker(segment.topic, segment.id, options.best)
    yield "marker", marker, _line_weight(marker, options.estimator)
    before = f"{marker} {range_text(segment, options.catalogue)}: "
    for level in offered:
        stored = segment.texts.get(level, "") if level in options.levels else ""
        text = _informative_tags(stored) if level == "L3" else stored
        line, weight = _line_and_weight(before, text, _MAX_TOKENS[level], options.estimator)
        if line:
            yield level, line, weight


@memoized(FIGURE_GROWTH)
def _informative_tags(tags: str) -> str:
    # Bare numbers are left out, since it is unknown what they count; ``4$`` is a rest of markup.
    return _SEPARATOR.join(filter(_is_informative_tag, tags[:_SAMPLE].split(_SEPARATOR)))


def _is_informative_tag(tag: str) -> bool:
    if any(map(str.isalpha, tag)):
        return True
    return not tag.endswith("$") and any(one.kind in _SELF_EXPLANATORY_KINDS for one in find_identifiers(tag))


def range_text(segment: Segment | ServableSegment, catalogue: Catalogue) -> str:
    """The words in a segment's line that say which messages it consists of."""
    return catalogue.text("context.digest.range", first=str(segment.from_seq), last=str(segment.to_seq))


@memoized(FIGURE_GROWTH)
def _marker(topic: str, segment_id: str, best: Level) -> str:
    text = clip(" ".join(clean(topic[:_SAMPLE]).split()), _TOPIC)
    while estimate_text(mark := render_marker(Marker(text=text, level=best, segment_id=segment_id))) > _MARKER and text:
        text = text[: int(_SHRINK * len(text))].rstrip()  # escaping made the marker too long
    return mark


@memoized(FIGURE_GROWTH)
def _line_and_weight(before: str, text: str, most: int, estimator: Estimator) -> tuple[str, int]:
    # The text is put on one line, and can neither close the element nor imitate a marker.
    served = escape_served(fitted(" ".join(clean(text[:_SAMPLE]).split()), most))
    line = f"{before}{served}" if served else ""
    return line, _line_weight(line, estimator)


def _steps_within(steps: Sequence[_Step], total: int, options: _DigestOptions, max_tokens: int) -> list[_Step] | None:
    """The last step taken for each segment, newest first, if as many as fit are taken; ``None``: no element fits."""
    frame = _line_weight(f"<{DIGESTS_TAG}>", options.estimator) + _line_weight(f"</{DIGESTS_TAG}>", options.estimator)
    earlier = _earlier_weight(total, options)
    weights: dict[int, int] = {}
    spent, taken = frame, -1
    for count, step in enumerate([None, *steps]):
        if step is not None:
            spent += step.weight - weights.get(step.rank, 0)
            weights[step.rank] = step.weight
        if spent + (earlier if len(weights) < total else 0) <= max_tokens:
            taken = count
    if taken < 0:
        return None
    last = {step.rank: step for step in steps[:taken]}
    return [last[rank] for rank in sorted(last)]


def _element(lines: Sequence[str], hidden_count: int, catalogue: Catalogue) -> str:
    first = [_earlier_line(hidden_count, catalogue)] if hidden_count else []
    return "\n".join([f"<{DIGESTS_TAG}>", *first, *lines, f"</{DIGESTS_TAG}>"])


def _earlier_line(count: int, catalogue: Catalogue) -> str:
    return f"{render_marker(EARLIER_MARKER)} {catalogue.text('context.digest.segments', count=str(count))}"


def _earlier_weight(total: int, options: _DigestOptions) -> int:
    # A smaller number of segments may have a longer plural form.
    lines = {_earlier_line(count, options.catalogue) for count in range(max(total - _FORMS, 0), total + 1)}
    return max(_line_weight(line, options.estimator) for line in lines)


def _line_weight(line: str, estimator: Estimator) -> int:
    # The line break is counted too: so whole lines never have more tokens together than separately.
    return estimate_text(f"{line}\n", estimator)
