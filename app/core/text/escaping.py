"""Escapes texts that stand inside our elements, so that nothing in them can open or close one of our elements.

Only text that reads like one of *our* tags is escaped, so that ordinary markup and code stay as they are. ``escape`` is
for prompts of a summarizer and can be undone, ``escape_block`` is for the state block and keeps the value of JSON, and
``app/core/text/message_escaping.py`` is for messages outside of both.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Final

from app.core.text.patterns import capped, compiled

SERVED_TAGS: Final = (
    "session_state",
    "attached_file",
    "left_out",
    "recalled",
    "passage",
    "anchors",
    "digests",
    "days",
    "message",
)
"""The elements that occur in a context. Those of a summarizer's prompt are ordinary words to a chat model."""
TAGS: Final = (
    *SERVED_TAGS,
    "kept_verbatim",
    "previous_state",
    "statements",
    "passages",
    "entry",
    "text_part",
    "tool_call",
    "tool_result",
    "media_part",
    "focus",
    "instructions",
    "system_context",
    "claim",
)
"""Every element that the service writes around a text. Tags that begin like one are escaped too (``<messages>``)."""

_NAMES: Final = tuple(tag.replace("_", "") for tag in TAGS)
_BEGINNINGS: Final = frozenset(name[:length] for name in _NAMES for length in range(len(name)))
BRACKET: Final = compiled("[<\uff1c\ufe64‹«〈⟨\u2329˂ᐸᚲ❬❮❰⦑⦓⧼⟪《\ufe3d\ufe3f≺⪻≪⋘⪡⫷⋖⊰≮\U0001d236]")
_LAST_BRACKET: Final = compiled(rf"{BRACKET.pattern}(?![\s_-]{{0,8}}{BRACKET.pattern})")
"""A bracket that may begin a tag: one with nothing but blanks before the next one begins none."""
_LOOK_AHEAD: Final = 80  # characters between bracket and name that are skipped; a longer gap is itself suspicious

# Characters between the letters of a name that a reader does not notice: slashes and joiners, beside whole categories.
_SKIPPED: Final = frozenset("_-‐‑‒–—/\\⁄∕╱⧸\uff0f\uff3c\u115f\u1160\u3164\uffa0\u2800")
_SKIPPED_CATEGORIES: Final = frozenset({"Cf", "Cc", "Cs", "Cn", "Co", "Zs", "Zl", "Zp", "Mn", "Me"})

_CONFUSABLE: Final = str.maketrans(
    "асеһіјӏорѕѵхумтқкпгԁԛԝαεικνορτυσıɑɡɩօոսհցյᎪᎠᎬᏀᎻᎥᏞᎷᏢᎡᏚᎢꓮꓚꓓꓰꓝꓖꓧꓲꓡꓟꓠꓳꓑꓣꓢꓔꓴꓬⲥⲟⲣ",
    "acehijlopsvxymtkknrdqwaeikvoptuoiagionuhgjadeghilmprstacdefghilmnoprstuycop",
)
"""Letters of other alphabets with the plain letters that they look like. Latin ones are known by their names."""
_LATIN_LETTER: Final = capped(r"(?:.*LATIN .*(?:LETTER|CAPITAL)|.*SYMBOL LETTER) ([A-Z])(?: WITH .*)?$", 100)
"""The Unicode names of letters such as ø, ʂ, ꜱ, 🆂 and 🇸; no name is longer."""

_UNSENDABLE: Final = compiled("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
_LIKE_A_REFERENCE: Final = compiled(r"&((?:amp;)*)#x(?=[0-9a-f]{1,6};)")
_REFERENCE: Final = compiled(r"&(?:#x(?P<code>[0-9a-f]{1,6});|amp;(?P<literal>(?:amp;)*#x)(?=[0-9a-f]{1,6};))")

_TAG_CHARACTERS: Final = compiled("[\U000e0000-\U000e007f]++")
"""Characters that nobody sees, one for each of ASCII: whole sentences can be written in them, and models read these."""
FLAG: Final = compiled("(?<=\U0001f3f4)[\U000e0030-\U000e0039\U000e0061-\U000e007a]{3,6}\U000e007f")
"""Their one honest use: the black flag before them and the name of a region are its flag, as that of Wales."""
_VARIATION: Final = "[\ufe00-\ufe0f\U000e0100-\U000e01ef]"
_VARIATIONS: Final = compiled(f"(?<=[A-Za-z\u00c0-\u052f\\s]){_VARIATION}++|({_VARIATION}){_VARIATION}++")
"""Characters that choose the form of the one before them. A second one in a row chooses nothing, nor does any behind a
letter of Latin, Greek or Cyrillic: one behind each letter would make another text that nobody sees.
"""
_UNSEEN_BYTES: Final = (b"\xf3\xa0", b"\xef\xb8")
"""How UTF-8 begins the characters of both."""
_UNSEEN: Final = "\ufffd"

_SURROGATE: Final = compiled("[\ud800-\udfff]")
_LINE_BREAK: Final = compiled("\r\n?|[\x85\u2028\u2029]")
_CONTROL: Final = compiled("[\x00-\x08\x0b-\x1f\x7f-\x9f\ufffe\uffff]")


def escape(text: str) -> str:
    """Escape brackets that begin one of our tags (or a look-alike), and characters that no JSON body may carry.

    ``unescape`` restores exactly the same text, whatever it was.
    """
    literal = _LIKE_A_REFERENCE.sub(r"&amp;\1#x", text)
    return _UNSENDABLE.sub(_reference, _LAST_BRACKET.sub(lambda found: _guard(found, _reference), literal))


def unescape(text: str) -> str:
    """The inverse of ``escape``."""
    return _REFERENCE.sub(_dereferenced, text)


def place_in_escaped(escaped: str, offsets: Sequence[int]) -> list[int]:
    """Maps places of a text (ascending offsets) to places in the text that ``escape`` made of it."""
    places: list[int] = []
    references = _REFERENCE.finditer(escaped)
    shift = 0  # how much longer the escaped text is up to ``end``
    following = next(references, None)
    for offset in offsets:
        while following is not None and following.end() - shift - _length_added_by(following) <= offset:
            shift += _length_added_by(following)
            following = next(references, None)
        inside = following is not None and following.start() < offset + shift
        places.append(following.start() if following is not None and inside else offset + shift)
    return places


def without_unseen(text: str) -> str:
    """The text without what could be written in it so that no person sees it.

    A row of tag characters is replaced by one ``�`` unless it makes a flag; of variation selectors in a row the first
    stays, if it can choose anything. Marks of direction and joiners stay: Arabic, Hebrew, Persian and many emoji need
    them.
    """
    if text.isascii():
        return text
    written = text.encode("utf-8", "surrogatepass")  # a search in bytes takes a fraction of a pattern's time
    if not any(start in written for start in _UNSEEN_BYTES):
        return text
    return _VARIATIONS.sub(_first, _TAG_CHARACTERS.sub(_seen, text))


def escape_block(text: str) -> str:
    r"""Escape for the served block: a bracket that begins one of our tags becomes ``\u003c``.

    JSON keeps its value, and no text inside can close the element around it.
    """
    return _LAST_BRACKET.sub(lambda found: _guard(found, as_json_writes), text)


def clean(text: str) -> str:
    """A derived text in storable form: no NUL, no lone surrogate, no control characters but tab and line feed."""
    joined = text
    if _SURROGATE.search(text):
        joined = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return _CONTROL.sub("", _LINE_BREAK.sub("\n", joined))


def _first(found: re.Match[str]) -> str:
    return found[1] or ""


def _seen(found: re.Match[str]) -> str:
    flag = FLAG.match(found.string, found.start())
    shown = flag.group() if flag else ""
    return shown if shown == found.group() else f"{shown}{_UNSEEN}"


def _reference(found: re.Match[str]) -> str:
    return f"&#x{ord(found.group()):x};"


def _length_added_by(found: re.Match[str]) -> int:
    return len(found.group()) - len(_dereferenced(found))


def _dereferenced(found: re.Match[str]) -> str:
    if found["literal"]:
        return f"&{found['literal']}"
    code = int(found["code"], 16)
    return chr(code) if code <= sys.maxunicode else found.group()


def _guard(found: re.Match[str], escaped: Callable[[re.Match[str]], str]) -> str:
    return escaped(found) if _begins_tag(found.string, found.end()) else found.group()


def _begins_tag(text: str, start: int) -> bool:
    name = ""
    for character in text[start : start + _LOOK_AHEAD]:
        name += plain_letters(character)
        if name not in _BEGINNINGS:
            return name.startswith(_NAMES)
    return name in _NAMES or len(text) - start >= _LOOK_AHEAD


@lru_cache(maxsize=4_096)
def plain_letters(character: str) -> str:
    """The plain letters as which a character is read; empty for a character that is not noticed."""
    if character in _SKIPPED or unicodedata.category(character) in _SKIPPED_CATEGORIES:
        return ""
    folded = unicodedata.normalize("NFKD", character).casefold().translate(_CONFUSABLE)
    return "".join(map(_plain_letter, folded))


def _plain_letter(letter: str) -> str:
    if unicodedata.category(letter) in _SKIPPED_CATEGORIES:
        return ""
    found = _LATIN_LETTER.match(unicodedata.name(letter, ""))
    return found[1].lower() if found else letter


def as_json_writes(found: re.Match[str]) -> str:
    r"""Matched characters as JSON escapes, in UTF-16 units: ``\u2192``."""
    units = found.group().encode("utf-16-be")
    return "".join(f"\\u{units[index : index + 2].hex()}" for index in range(0, len(units), 2))
