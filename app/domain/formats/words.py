"""Parts as words, and the forms of ids, names and arguments that providers accept."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from app.domain.conversation import Part
from app.domain.formats.values import Media, Piece, Text

ID_LENGTH: Final = 40  # OpenAI's limit, the narrowest
NAME_LENGTH: Final = 64  # the same
_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9_-]")


def beside(content: str, parts: Sequence[Part]) -> list[Part]:
    """The parts that say more than the content: clients often give a text both ways."""
    return [part for part in parts if part.get("type") != "text" or in_words(part) not in content]


def piece_of(part: Part) -> Piece | None:
    """A part of a user's message: inline data where it is such, else words; ``None`` when it says nothing."""
    media = _inline(part) if part.get("type") == "media" else None
    if media is not None:
        return media
    words = in_words(part)
    return Text(words) if words.strip() else None


def in_words(part: Part) -> str:
    """A part that can only be told: its text, or what it is."""
    match part.get("type"):
        case "media":
            where = f" at {part['url']}" if part.get("url") else ""
            return f"[attached: {part.get('media_type') or 'a file'}{where}]"
        case "tool_call":
            return f"[call of {part.get('name') or 'a tool'}: {as_text(part.get('arguments', {}))}]"
        case "tool_result":
            return f"[result of {part.get('name') or 'a tool'}: {as_text(part.get('content', ''))}]"
        case _:
            return str(part["text"]) if "text" in part else as_text(dict(part))


def as_text(value: Any) -> str:
    """A value as text: itself, or its JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def arguments_of(arguments: Any) -> dict[str, Any]:
    """Arguments as an object: a client may have stored them as JSON text, or as anything."""
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except ValueError:
            return {"input": arguments}
    if isinstance(arguments, Mapping):
        return dict(arguments)
    return {} if arguments is None else {"input": arguments}


def tool_name(name: Any) -> str:
    """A name that every provider accepts."""
    return _NOT_IN_NAMES.sub("_", str(name or "tool"))[:NAME_LENGTH]


class Ids:
    """Ids of calls as every provider accepts them, no two alike."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._numbers: dict[str, int] = {}

    def like(self, given: Any) -> str:
        """The id as given where providers accept it, else one like it; a repeated one gets a number."""
        stem = _NOT_IN_NAMES.sub("_", str(given or "call"))[:ID_LENGTH]
        found = stem
        while found in self._taken:
            number = self._numbers[stem] = self._numbers.get(stem, 1) + 1
            ending = f"_{number}"
            found = f"{stem[: ID_LENGTH - len(ending)]}{ending}"
        self._taken.add(found)
        return found


def _inline(part: Part) -> Media | None:
    """Data that is given with the message. What is given by address is named in words: nobody here opens it."""
    media_type = str(part.get("media_type") or "").lower()
    data = str(part.get("data") or "").rpartition("base64,")[2]  # a data URL is accepted as well as bare base64
    return Media(media_type, data) if data and media_type and is_base64(data) else None


def is_base64(text: str) -> bool:
    """Whether it is data and nothing else."""
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return False
    return True
