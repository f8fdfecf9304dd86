"""Escapes a message for a chat model, so that nothing in it reads like an element or marker of the service.

If something reads like one, its first character is replaced: ``<`` by ``(``, a look-alike of it by ``ʼ``, the arrow of
a marker by ``->``. So a text never becomes longer, in tokens or bytes, and stays the same if it is escaped again or
parsed as JSON (docs/decisions/0023). The stored original is never changed.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any, Final

from app.core.text.escaping import BRACKET, SERVED_TAGS, as_json_writes, plain_letters, without_unseen
from app.core.text.patterns import compiled

ARROWS: Final = "→⟶➔➙➛➜➝➞➟➠➡➤⇒⇨⟹⭢\uffeb\U0001f852\U0001f862\U0001f872\U0001f812\U0001f81a\U0001f80a"
"""Characters that look like the arrow of a marker."""
_ARROW: Final = compiled(f"[{ARROWS}]")
EXCHANGED_ARROW: Final = "->"

LOOK_AHEAD: Final = 1_000
"""The most characters after a bracket or an arrow that are looked at. What may be a name and continues beyond them
counts as one of ours."""
_BEYOND: Final = ""
"""Stands for all characters after these."""
_BRACKET: Final = compiled(
    rf"({BRACKET.pattern})(?![\s_/\\-]{{0,8}}(?:[!-,.0-;=-@B-CE-KN-OQT-Z\[\]^`b-ce-kn-oqt-z{{-~]|{BRACKET.pattern}))"
)
"""A bracket that may begin one of our tags. The pattern rules out most other brackets of a text quickly."""
_MESSAGE: Final = "message"
_ATTRIBUTES: Final = ("role=", "of=", "part=", "seq=")
"""Our attributes: the tag ``<message>`` is so common that it only counts as ours with one of them."""
_NAMES: Final[tuple[str, ...]] = tuple(tag.replace("_", "") for tag in SERVED_TAGS)
_BEGINNINGS: Final = frozenset(name[:length] for name in _NAMES for length in range(len(name)))
_TYPES: Final = "SessionState|LeftOut|Recalled|Passage|Anchors|Digests"
_TYPE_ARGUMENT: Final = compiled(rf"(?<=[A-Za-z0-9_])<(?:{_TYPES})(?:[>,\\[|&?]| [|&=]| extends )")
_CLOSED_TYPE: Final = compiled(rf"</(?:{_TYPES})>")
_INVISIBLE: Final = frozenset({"Cf", "Cs", "Cn", "Co", "Mn", "Me"})
_JOINERS: Final = frozenset("_-")
_LETTER: Final = compiled("[A-Za-z]")
_LEVEL: Final = 2  # characters: the letter and its digit
_COLONS: Final = frozenset(":：﹕︓∶꞉ː։׃܃܄:˸")
"""Characters that a model may read as a colon, not only those that people type."""
_DEEPEST: Final = 64  # the most levels of a value, as in requests; deeper values are turned into text
_DATA: Final = frozenset({"type", "data"})
"""Keys of a part whose values are not words."""


def as_data(text: str, following: str = "") -> str:
    """The text without anything that reads like our tags or markers in any spelling, or that no person sees.

    Most texts stay as they are.

    Args:
        text: What somebody said.
        following: The text that is read directly after it, since a tag may be spread over both; ``LOOK_AHEAD``
            characters of it are enough. It has to be ``without_unseen``, as it is served.
    """
    exchanged = _exchanged(text, following)
    shown = without_unseen(exchanged)
    if shown != exchanged:  # a name may end where something stood that is read over
        shown = _exchanged(shown, following)
    return text if shown == text else shown


def escape_arrows(text: str) -> str:
    r"""The text with each arrow that reads like that of a marker as a JSON escape (``\u2192``)."""
    return _ARROW.sub(lambda found: as_json_writes(found) if _names_level(found) else found.group(), text)


def value_as_data(value: Any, depth: int = 0) -> Any:
    """A JSON value with ``as_data`` applied to every text in it, keys included; ``value`` itself if nothing changes."""
    if isinstance(value, str):
        return as_data(value)
    if not isinstance(value, Mapping | list | tuple):
        return value
    if depth == _DEEPEST:
        return as_data(json.dumps(value, ensure_ascii=False, default=str))
    if not isinstance(value, Mapping):
        items = [value_as_data(item, depth + 1) for item in value]
        return items if any(new is not old for new, old in zip(items, value, strict=True)) else value
    pairs = {
        as_data(str(key)): item if depth == 0 and key in _DATA else value_as_data(item, depth + 1)
        for key, item in value.items()
    }
    return value if _same(pairs, value) else pairs


def _exchanged(text: str, following: str) -> str:
    shown = text
    if _BRACKET.search(shown):
        has_types = _CLOSED_TYPE.search(shown) is None
        shown = _BRACKET.sub(lambda found: _exchanged_bracket(found, following, has_types=has_types), shown)
    return _ARROW.sub(lambda found: _exchanged_arrow(found, following), shown)


def _same(pairs: Mapping[str, Any], value: Mapping[str, Any]) -> bool:
    return pairs.keys() == value.keys() and all(pairs[key] is value[key] for key in value)


def _exchanged_bracket(found: re.Match[str], following: str, *, has_types: bool) -> str:
    bracket = found.group()
    if not _opens_element(found.string, found.end(), following):
        return bracket
    if has_types and _TYPE_ARGUMENT.match(found.string, found.start()):
        return bracket
    return "(" if bracket == "<" else "ʼ"


def _exchanged_arrow(found: re.Match[str], following: str) -> str:
    return EXCHANGED_ARROW if _names_level(found, following) else found.group()


def _names_level(found: re.Match[str], following: str = "") -> bool:
    return _is_level(_characters_ahead(found.string, found.end(), following))


def _characters_ahead(text: str, start: int, following: str) -> Iterator[str]:
    end = start + LOOK_AHEAD
    yield from map(text.__getitem__, range(start, min(len(text), end)))
    yield from following[: max(0, end - len(text))]
    if len(text) + len(following) >= end:
        yield _BEYOND


def _opens_element(text: str, start: int, following: str) -> bool:
    """Whether the text after a bracket reads like one of our names, and the name ends there.

    This takes linear time for a whole text, since no name continues after the next bracket.
    """
    name = ""
    characters = _characters_ahead(text, start, following)
    for character in characters:
        if character == _BEYOND:
            return True
        name += plain_letters(character)
        if name not in _BEGINNINGS:
            return (name in _NAMES and _is_whole_name(name, characters)) or _goes_beyond_a_name(name)
    return False


def _goes_beyond_a_name(name: str) -> bool:
    # One character may be read as several letters.
    return name not in _NAMES and name.startswith(_NAMES)


def _is_whole_name(name: str, characters: Iterator[str]) -> bool:
    for character in characters:
        if character == _BEYOND:
            return True
        if character in _JOINERS or unicodedata.category(character) in _INVISIBLE:
            continue
        if _LETTER.match(unicodedata.normalize("NFKD", character)):
            return False
        # "<message" alone may be anybody's tag: ours continues with an attribute.
        return name != _MESSAGE or _is_attribute(chain(character, characters))
    return name != _MESSAGE


def _is_attribute(characters: Iterator[str]) -> bool:
    read = ""
    for character in characters:
        if character == _BEYOND:
            return True
        read += plain_letters(character)
        if read in _ATTRIBUTES:
            return True
        if not any(attribute.startswith(read) for attribute in _ATTRIBUTES):
            return read.startswith(_ATTRIBUTES)
    return False


def _is_level(characters: Iterator[str]) -> bool:
    read = ""
    for character in characters:
        if character == _BEYOND or (len(read) == _LEVEL and character in _COLONS):
            return True
        read += plain_letters(character)
        if not (read in {"", "l"} or (len(read) == _LEVEL and read.startswith("l") and read[1].isdigit())):
            return False
    return False
