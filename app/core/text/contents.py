"""The data of media apart from the message that carries it: stored once, named by its SHA-256, loaded when it is shown.

A part has its data in one of two forms under ``data``: the text as it was given (Base64, or a data URL), or a reference
to the content that the text stands for. Both stand at the same place among the part's keys, and the second leads back
to the first byte for byte.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from app.core.text.parts import Part
from app.core.text.patterns import compiled

_HEAD: Final = compiled(r"data:[^,]{0,200}?;base64,")
_BASE64_OF: Final = 3
_BASE64_IN: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """Bytes under their hash."""

    sha256: str
    """64 hexadecimal digits."""
    data: bytes
    media_type: str


def taken_apart(parts: Sequence[Part]) -> tuple[tuple[Part, ...], dict[str, Content]]:
    """The parts with references in place of inline data, and the contents by hash; references stay as they are."""
    contents: dict[str, Content] = {}
    return tuple(_referring(part, contents) for part in parts), contents


def references(parts: Iterable[Part]) -> tuple[str, ...]:
    """The hashes that these parts refer to, each once, in order."""
    found = (reference["sha256"] for part in parts if (reference := _reference(part)) is not None)
    return tuple(sorted(set(found)))


def put_together(parts: Iterable[Part], contents: Mapping[str, bytes]) -> tuple[Part, ...]:
    """The parts with their data as it was given; that of a content which is not there any more is empty."""
    return tuple(_with_data(part, contents) for part in parts)


def data_bytes(part: Part) -> int:
    """Characters of a part's data as it is sent, whichever form it has; 0 for a part without."""
    reference = _reference(part)
    if reference is not None:
        size, head = int(reference["bytes"]), str(reference.get("head", ""))
        return len(head) + (size if reference.get("form") == "text" else encoded_bytes(size))
    data = part.get("data") if part.get("type") == "media" else None
    return len(data) if isinstance(data, str) else 0


def encoded_bytes(size: int) -> int:
    """Characters of Base64 for so many bytes."""
    return -(-size // _BASE64_OF) * _BASE64_IN


def data_mark(part: Part) -> str:
    """The hash of a part's data, the same in both forms; empty for a part without."""
    reference = _reference(part)
    if reference is not None:
        return str(reference["sha256"])
    data = part.get("data")
    return _content(data, "")[0].sha256 if isinstance(data, str) and data else ""


def _referring(part: Part, contents: dict[str, Content]) -> Part:
    data = part.get("data") if part.get("type") == "media" else None
    if not isinstance(data, str) or not data:
        return part
    content, described = _content(data, str(part.get("media_type") or ""))
    contents.setdefault(content.sha256, content)
    reference = {"sha256": content.sha256, "bytes": len(content.data), **described}
    return {key: reference if key == "data" else value for key, value in part.items()}


def _content(data: str, media_type: str) -> tuple[Content, dict[str, str]]:
    """What the text stands for, and how it is written again; what is no plain Base64 stands for itself."""
    head = found[0] if (found := _HEAD.match(data)) else ""
    try:
        decoded = base64.b64decode(data[len(head) :], validate=True)
    except (binascii.Error, ValueError):
        decoded = b""
    if decoded and base64.b64encode(decoded) == data[len(head) :].encode():
        return _hashed(decoded, media_type), {"head": head} if head else {}
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
