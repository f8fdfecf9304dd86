"""Media data stored apart from messages: each content once, named by its SHA-256, loaded when it is shown.

Under ``data`` a part has its data in one of two forms: the text as it was given (Base64 or a data URL), or a reference
to the stored content. Both have the same place among the part's keys, and the given text can be restored from the
reference byte for byte.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import unquote_to_bytes

from app.core.text.parts import Part
from app.core.text.patterns import compiled

_HEAD: Final = compiled(r"data:[^,]{0,200}?;base64,")
_DATA: Final = "data:"
_NO_LINE_BREAKS: Final = str.maketrans("-_", "+/", "\r\n\t")
"""Makes plain Base64 of the URL variant, which has two other signs, and of Base64 in lines, as mail has it."""
_CHARACTERS_PER_PIECE: Final = 65_536  # characters
_BYTES_PER_GROUP: Final = 3
_CHARACTERS_PER_GROUP: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """Bytes with their hash."""

    sha256: str
    """The hash in 64 hexadecimal digits."""
    data: bytes
    media_type: str


def detached_contents(parts: Sequence[Part]) -> tuple[tuple[Part, ...], dict[str, Content]]:
    """The parts with references in place of inline data, and these contents by hash; existing references are kept."""
    contents: dict[str, Content] = {}
    return tuple(_with_reference(part, contents) for part in parts), contents


def references(parts: Iterable[Part]) -> tuple[str, ...]:
    """The hashes that these parts refer to, each once, in order."""
    found = (reference["sha256"] for part in parts if (reference := _reference(part)) is not None)
    return tuple(sorted(set(found)))


def with_contents(parts: Iterable[Part], contents: Mapping[str, bytes]) -> tuple[Part, ...]:
    """The parts with their data as it was given; the data of a content that no longer exists is empty."""
    return tuple(_with_data(part, contents) for part in parts)


def data_bytes(part: Part) -> int:
    """The characters of a part's data as it is sent, in either form; 0 without data."""
    reference = _reference(part)
    if reference is not None:
        size, head = int(reference["bytes"]), str(reference.get("head", ""))
        return len(head) + (size if reference.get("form") == "text" else encoded_bytes(size))
    return len(_data_of_media(part))


def decoded_bytes(part: Part) -> int:
    """The approximate bytes of a part's decoded data, the same for both forms."""
    return data_bytes(part) * _BYTES_PER_GROUP // _CHARACTERS_PER_GROUP


def inline_base64(part: Part) -> str | None:
    """A part's inline data in plain Base64; ``None`` if it has none, or none that can be read.

    Base64 and data URLs are read; a data URL may be percent-encoded, and may stand in place of the address. Base64 may
    have line breaks and use the URL alphabet, but may not have spaces: otherwise words would be taken for data.
    """
    given = _data_of_media(part)
    return from_data_url(given)[1] if is_data_url(given) else _plain_base64(given)


def is_data_url(text: str) -> bool:
    """Whether a text is a data URL, not an address."""
    return text[: len(_DATA)].lower() == _DATA


def from_data_url(url: str) -> tuple[str, str | None]:
    """The media type of a data URL (empty if it has none), and its data in plain Base64 (``None`` if unreadable)."""
    head, _, data = url.partition(",")
    media_type, *parameters = head[len(_DATA) :].split(";")
    if parameters and parameters[-1].strip().lower() == "base64":
        return media_type, _plain_base64(_unquoted(data).decode(errors="replace") if "%" in data else data)
    return media_type, base64.b64encode(_unquoted(data)).decode() or None


def _unquoted(text: str) -> bytes:
    # The text is decoded in pieces: the standard library uses more than a hundred bytes for each escape.
    found, place = bytearray(), 0
    while place < len(text):
        end = place + _CHARACTERS_PER_PIECE
        escape = text.rfind("%", end - 2, end)  # an escape that the end of the piece would split
        end = escape if escape != -1 else end
        found += unquote_to_bytes(text[place:end])
        place = end
    return bytes(found)


def shown_address(part: Part) -> str:
    """The address of a medium, or its data as a data URL."""
    url, data = part.get("url"), str(part.get("data") or "")
    if url or is_data_url(data):
        return str(url or data)
    return f"data:{part.get('media_type') or 'application/octet-stream'};base64,{data}"


def named_address(part: Part) -> str:
    """The address of a part to be named in words; empty if the data itself stands in its place."""
    url = str(part.get("url") or "")
    return "" if is_data_url(url) else url


def encoded_bytes(size: int) -> int:
    """How many characters of Base64 this many bytes take."""
    return -(-size // _BYTES_PER_GROUP) * _CHARACTERS_PER_GROUP


def data_hash(part: Part) -> str:
    """The hash of a part's data, the same for both forms; empty without data."""
    reference = _reference(part)
    if reference is not None:
        return str(reference["sha256"])
    data = part.get("data")
    return _content_and_form(data, "")[0].sha256 if isinstance(data, str) and data else ""


def _data_of_media(part: Part) -> str:
    if part.get("type") != "media":
        return ""
    data, url = part.get("data"), part.get("url")
    if isinstance(data, str):
        return data
    return url if isinstance(url, str) and is_data_url(url) else ""


def _plain_base64(text: str) -> str | None:
    if is_base64(text):
        return text or None
    plain = text.translate(_NO_LINE_BREAKS).rstrip("=")
    plain += "=" * (-len(plain) % _CHARACTERS_PER_GROUP)
    return plain if plain and is_base64(plain) else None


def is_base64(text: str) -> bool:
    """Whether a text is plain Base64 and nothing else."""
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return False
    return True


def _with_reference(part: Part, contents: dict[str, Content]) -> Part:
    data = part.get("data") if part.get("type") == "media" else None
    if not isinstance(data, str) or not data:
        return part
    content, described = _content_and_form(data, str(part.get("media_type") or ""))
    contents.setdefault(content.sha256, content)
    reference = {"sha256": content.sha256, "bytes": len(content.data), **described}
    return {key: reference if key == "data" else value for key, value in part.items()}


def _content_and_form(data: str, media_type: str) -> tuple[Content, dict[str, str]]:
    head = found[0] if (found := _HEAD.match(data)) else ""
    try:
        decoded = base64.b64decode(data[len(head) :], validate=True)
    except (binascii.Error, ValueError):
        decoded = b""
    if decoded and base64.b64encode(decoded) == data[len(head) :].encode():
        return _hashed(decoded, media_type), {"head": head} if head else {}
    # A text that is not plain Base64 is stored as text.
    return _hashed(data.encode(), media_type), {"form": "text"}


def _hashed(data: bytes, media_type: str) -> Content:
    return Content(sha256=hashlib.sha256(data).hexdigest(), data=data, media_type=media_type)


def _reference(part: Part) -> Mapping[str, Any] | None:
    data = part.get("data") if part.get("type") == "media" else None
    return data if isinstance(data, Mapping) and isinstance(data.get("sha256"), str) else None


def _with_data(part: Part, contents: Mapping[str, bytes]) -> Part:
    reference = _reference(part)
    if reference is None:
        return part
    found = contents.get(reference["sha256"], b"")
    written = found.decode() if reference.get("form") == "text" else base64.b64encode(found).decode()
    data = f"{reference.get('head', '')}{written}" if found else ""
    return {key: data if key == "data" else value for key, value in part.items()}
