"""Readable ids of segments: ``auth_discussion``, ``auth_discussion_2``.

An id consists of lower-case letters of any script in their compatibility form, digits and underscores. It can be put
unchanged into the path of a URL and into a marker.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Container, Sequence
from typing import Final

from app.core.model.segments import RESERVED_IDS
from app.core.text.memo import word_memo
from app.core.text.patterns import compiled

FALLBACK: Final = "segment"
"""The id of a topic without a letter."""
MAX_STEM_LENGTH: Final = 36
"""The most characters of an id without its number, so that both together have about forty at most."""
MAX_ID_LENGTH: Final = 64
"""The most characters of any id; longer ones are not looked up."""

_BETWEEN: Final = compiled("_{2,}")
_APOSTROPHES: Final = compiled("(?<=[^\\W_])['’ʼ](?=[^\\W_])")
_INVISIBLE: Final = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u3164\uffa0")
"""Letters and marks that nobody can see."""
_VARIATIONS: Final = (("\ufe00", "\ufe0f"), ("\U000e0100", "\U000e01ef"))
_LETTERS: Final = frozenset({"Lu", "Ll", "Lt", "Lm", "Lo"})
_MARKS: Final = frozenset({"Mn", "Mc"})
_PASSES: Final = 4  # lower case and compatibility form, until neither changes anything


def stem_of(topic: str) -> str:
    """The id that a topic gets if it is the first of its name. It is never empty, but may be a reserved word."""
    plain = _comparable_text(_APOSTROPHES.sub("", topic))
    joined = _BETWEEN.sub("_", "".join(_character_in_id(plain, place) for place in range(len(plain)))).strip("_")
    if not any(unicodedata.category(character) in _LETTERS for character in joined):
        return FALLBACK
    return _cut_at_word_end(joined)


def ids_for(topics: Sequence[str], taken: Container[str]) -> list[str]:
    """An id for each topic, in order: unique, and neither taken nor reserved."""
    ids: dict[str, None] = {}
    numbers: dict[str, int] = {}
    for topic in topics:
        stem = stem_of(topic)
        number = numbers.get(stem, 1)
        while (found := stem if number == 1 else f"{stem}_{number}") in RESERVED_IDS or found in taken or found in ids:
            number += 1
        numbers[stem] = number
        ids[found] = None
    return list(ids)


@word_memo
def is_id(text: str) -> bool:
    """Whether a text could be an id: its characters, its case and its length."""
    return (
        0 < len(text) <= MAX_ID_LENGTH
        and _comparable_text(text) == text
        and all(character == "_" or _character_in_id(text, place) == character for place, character in enumerate(text))
    )


def _comparable_text(text: str) -> str:
    for _ in range(_PASSES):
        lower = unicodedata.normalize("NFKC", text).lower().replace("i\u0307", "i")  # from a Turkish capital
        folded = unicodedata.normalize("NFKC", lower)
        if folded == text:
            break
        text = folded
    return text


def _character_in_id(text: str, place: int) -> str:
    """The character itself if an id may have it (a letter, a digit, or a mark on a letter), else an underscore."""
    character = text[place]
    category = unicodedata.category(character)
    if _is_invisible(character):
        return ""
    if category in _LETTERS or category == "Nd":
        return character
    if category in _MARKS:
        before = unicodedata.category(text[place - 1]) if place else ""
        return character if before in _LETTERS | _MARKS else ""
    return "" if category in {"Cf", "Me"} else "_"


def _is_invisible(character: str) -> bool:
    return character in _INVISIBLE or any(first <= character <= last for first, last in _VARIATIONS)


def _cut_at_word_end(name: str) -> str:
    if len(name) <= MAX_STEM_LENGTH:
        return name
    head = name[: MAX_STEM_LENGTH + 1]
    end = head.rfind("_")
    return (head[:end] if end > MAX_STEM_LENGTH // 2 else head[:MAX_STEM_LENGTH]).strip("_")
