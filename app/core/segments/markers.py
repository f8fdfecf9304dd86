r"""Markers in served text: ``[topic →L1:segment_id]`` says what can be expanded.

``render_marker`` writes them, ``find_markers`` reads them back from a text, ``parse_marker`` reads a marker as a model
repeats it. Characters that would break a marker are escaped as in JSON (``\u005b``), so that any topic is restored
unchanged. All functions take linear time.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from app.core.model.segments import EARLIER_ID, LEVELS, Level, Marker
from app.core.segments.segment_ids import MAX_ID_LENGTH, is_id
from app.core.text.escaping import FLAG, as_json_writes, escape_block
from app.core.text.message_escaping import ARROWS
from app.core.text.patterns import compiled

EARLIER_MARKER: Final = Marker(text=EARLIER_ID, level="L3", segment_id=EARLIER_ID)
"""The marker for the segments for which there was no room; it expands to the paged list of all segments."""

_BREAKING: Final = compiled(
    f"{FLAG.pattern}|"
    f"[\\\\\\[\\]{ARROWS}\x00-\x1f\x7f-\x9f\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]"
)
"""Brackets, arrows, line breaks, characters that turn or hide a text, and the backslash, so that it can be undone.

Flags of regions are found as well, since they are to stay.
"""
_ESCAPES: Final = compiled(r"(?:\\u[0-9a-f]{4})+")
_POINTER: Final = compiled(rf"→(L[123]):([^\s\[\]:→\\]{{1,{MAX_ID_LENGTH}}})\]")
_NOT_IN_LABEL: Final = compiled(f"[\\]{ARROWS}\n\r]")

_MAX_CALL_LENGTH: Final = 4_000  # the most characters of a text that may name one segment
_QUOTES: Final = " \t\r\n\"'`“”«»*"
_NAMED_SEGMENT: Final = compiled(
    rf"(?:(?:[{ARROWS}]|[-=]{{1,2}}>)\s{{0,4}})?[Ll]\s?([0-9])\s{{0,4}}:\s{{0,4}}([^\s\[\]:]{{1,{MAX_ID_LENGTH}}})"
)
_LAST_POINTER: Final = compiled(rf"(?:[{ARROWS}]|[-=]{{1,2}}>)\s{{0,4}}[Ll]\s?[0-9]\s{{0,4}}:")


def render_marker(marker: Marker) -> str:
    """The marker as it is served; ``find_markers`` returns the same marker again."""
    text = escape_block(_BREAKING.sub(_escaped, marker.text))
    return f"[{text}{' ' if text else ''}→{marker.level}:{marker.segment_id}]"


def find_markers(text: str) -> list[Marker]:
    """All markers of a text, in order: only what ``render_marker`` writes, not similar texts."""
    found: list[Marker] = []
    done = 0
    for pointer in _POINTER.finditer(text):
        opening = text.rfind("[", done, pointer.start())
        if opening >= 0 and is_id(pointer[2]):
            label = text[opening + 1 : pointer.start()]
            if not _NOT_IN_LABEL.search(label) and (not label or label.endswith(" ")):
                found.append(Marker(text=_unescaped(label[:-1]), level=_level_named(pointer[1]), segment_id=pointer[2]))
        done = pointer.end()
    return found


def parse_marker(text: str) -> Marker | None:
    """The marker that a model's call names, with or without brackets, with any arrow, or as a bare id (read as L1).

    ``None`` for anything else: two markers, a level that does not exist, a sentence.
    """
    if len(text) > _MAX_CALL_LENGTH:
        return None
    exact = find_markers(text)
    if exact:
        return exact[0] if len(exact) == 1 and render_marker(exact[0]) == text.strip(_QUOTES) else None
    plain = text.strip(_QUOTES)
    label = ""
    if plain.startswith("[") and plain.endswith("]"):
        plain = plain[1:-1]
        starts = [place.start() for place in _LAST_POINTER.finditer(plain)]
        if len(starts) == 1:
            label, plain = plain[: starts[0]].strip(), plain[starts[0] :]
    plain = plain.strip(_QUOTES)
    match = _NAMED_SEGMENT.fullmatch(plain)
    level, name = (f"L{match[1]}", match[2]) if match else ("L1", plain)
    name = unicodedata.normalize("NFKC", name.strip(_QUOTES)).lower()
    if level not in LEVELS or not is_id(name):
        return None
    return Marker(text=_unescaped(label), level=_level_named(level), segment_id=name)


def _level_named(name: str) -> Level:
    return next(level for level in LEVELS if level == name)


def _escaped(found: re.Match[str]) -> str:
    return found.group() if len(found.group()) > 1 else as_json_writes(found)


def _unescaped(text: str) -> str:
    return _ESCAPES.sub(_decoded_character, text)


def _decoded_character(found: re.Match[str]) -> str:
    return bytes.fromhex(found.group().replace("\\u", "")).decode("utf-16-be", "surrogatepass")
