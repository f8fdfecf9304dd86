"""Which files can be attached, whether their bytes fit their media type, and how many tokens they take."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping
from email.message import Message
from typing import Final, Literal

from app.core.text.patterns import compiled
from app.core.text.token_counts import IMAGE_TOKENS, PAGE_TOKENS, UNKNOWN_PAGE_BYTES, estimate_text

FileKind = Literal["text", "image", "document", "audio", "video"]

LABEL_TOKENS: Final = 30
"""The tokens of the label around each file, without those of its name."""

_TEXTS: Final = frozenset(
    f"application/{name}"
    for name in (
        "json",
        "jsonl",
        "x-ndjson",
        "ld+json",
        "xml",
        "yaml",
        "x-yaml",
        "toml",
        "javascript",
        "typescript",
        "sql",
        "x-sh",
        "x-python",
        "rtf",
    )
)
_TEXT: Final = compiled(r"text/[a-z0-9][a-z0-9.+-]{0,60}")
_UNKNOWN_TEXTS: Final = frozenset({"text/event-stream", "text/rtf"})
_INFLATED: Final = 32_000_000
"""The most bytes to which the packed parts of a PDF are unpacked when its pages are counted."""
_STREAM_BYTES: Final = 4_000_000
_BEGINNING: Final = 1_024
"""How many bytes of a file are searched for its signature, if other bytes may stand before it."""


def _begins(*signatures: bytes) -> Callable[[bytes], bool]:
    return lambda data: data.startswith(signatures)


def _riff(form: bytes) -> Callable[[bytes], bool]:
    return lambda data: data[:4] == b"RIFF" and data[8:12] == form


def _is_mp3(data: bytes) -> bool:
    return data.startswith(b"ID3") or (data[:1] == b"\xff" and data[1:2] >= b"\xe0")  # eleven bits set begin a frame


def _is_aac(data: bytes) -> bool:
    return data.startswith((b"ADIF", b"\xff\xf0", b"\xff\xf1", b"\xff\xf8", b"\xff\xf9"))


def _is_mp4(data: bytes) -> bool:
    return data[4:8] == b"ftyp"


def _is_quicktime(data: bytes) -> bool:
    return data[4:8] in {b"ftyp", b"moov", b"mdat", b"wide", b"free"}


_SIGNED: Final[Mapping[str, tuple[FileKind, Callable[[bytes], bool]]]] = {
    "image/png": ("image", _begins(b"\x89PNG\r\n\x1a\n")),
    "image/jpeg": ("image", _begins(b"\xff\xd8\xff")),
    "image/gif": ("image", _begins(b"GIF87a", b"GIF89a")),
    "image/webp": ("image", _riff(b"WEBP")),
    "application/pdf": ("document", lambda data: b"%PDF-" in data[:_BEGINNING]),
    "audio/wav": ("audio", _riff(b"WAVE")),
    "audio/mpeg": ("audio", _is_mp3),
    "audio/aac": ("audio", _is_aac),
    "audio/ogg": ("audio", _begins(b"OggS")),
    "audio/flac": ("audio", _begins(b"fLaC")),
    "audio/mp4": ("audio", _is_mp4),
    "video/mp4": ("video", _is_mp4),
    "video/webm": ("video", _begins(b"\x1aE\xdf\xa3")),
    "video/quicktime": ("video", _is_quicktime),
}
"""Media types with a signature: the kind of file, and a function that checks how the bytes begin."""
_SAME: Final[Mapping[str, str]] = {
    "image/jpg": "image/jpeg",
    "audio/mp3": "audio/mpeg",
    "audio/x-wav": "audio/wav",
    "audio/x-flac": "audio/flac",
    "audio/x-m4a": "audio/mp4",
    "application/x-pdf": "application/pdf",
}
TAKEN: Final = (
    "text/* and JSON, XML, YAML, TOML, JavaScript, SQL as application/…, in UTF-8; application/pdf;"
    " image/png, jpeg, gif, webp; audio/wav, mpeg, aac, ogg, flac, mp4; video/mp4, webm, quicktime"
)
"""The accepted types in words, for an error about any other type."""


def media_type_of(content_type: str) -> str:
    """The media type that a ``Content-Type`` names, in its usual spelling; ``""`` if it names none that we accept."""
    header = Message()
    header["content-type"] = content_type[:200]
    named = content_type[:200].partition(";")[0].strip().lower()
    named = _SAME.get(named, named)
    is_utf8 = str(header.get_param("charset", "utf-8")).lower() in {"utf-8", "utf8", "us-ascii"}
    return named if kind_of(named) is not None and is_utf8 else ""


def kind_of(media_type: str) -> FileKind | None:
    """The kind of file of a media type; ``None`` for a type that cannot be attached."""
    if media_type in _SIGNED:
        return _SIGNED[media_type][0]
    is_text = media_type in _TEXTS or (_TEXT.fullmatch(media_type) and media_type not in _UNKNOWN_TEXTS)
    return "text" if is_text else None


def text_of(data: bytes) -> str | None:
    """The text of a file of kind ``text``, without a byte order mark; ``None`` if its bytes are not a text.

    Bytes with NUL or other control characters that no text has do not count as a text.
    """
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
    return None if _CONTROL.search(text) else text


_CONTROL: Final = compiled("[\x00-\x08\x0e-\x1a\x1c-\x1f]")


def is_what_it_says(data: bytes, media_type: str) -> bool:
    """Whether bytes fit a media type, judged by how they begin; for a text, whether all of them are UTF-8."""
    signed = _SIGNED.get(media_type)
    return text_of(data) is not None if signed is None else signed[1](data)


def file_tokens(data: bytes, media_type: str, name: str) -> int | None:
    """The tokens of a file with its label in a context; ``None`` if they cannot be computed from its bytes.

    The CPU time grows with the file: a fifth of a second for a text of a megabyte.
    """
    label = LABEL_TOKENS + estimate_text(name)
    match kind_of(media_type):
        case "text":
            return label + estimate_text(text_of(data) or "")
        case "image":
            return label + IMAGE_TOKENS
        case "document":
            return label + PAGE_TOKENS * pdf_pages(data)
        case _:
            return None


def pdf_pages(data: bytes) -> int:
    """The pages of a PDF: counted in its plain and packed objects, else estimated by its size; at least one."""
    pages = _count_of_pages(data) + sum(_count_of_pages(stream) for stream in _object_streams(data))
    return pages or max(1, -(-len(data) // UNKNOWN_PAGE_BYTES))


def _count_of_pages(data: bytes) -> int:
    count = place = 0
    while (place := data.find(b"/Type", place)) >= 0:
        place += len(b"/Type")
        value = data[place : place + 16].lstrip(b" \t\r\n\x00\x0c")
        # "/Pages" is the tree of pages.
        count += value.startswith(b"/Page") and not value[5:6].isalpha()
    return count


def _object_streams(data: bytes) -> Iterator[bytes]:
    """The packed objects of a PDF, unpacked as far as ``_INFLATED`` allows; no byte of the file is read twice."""
    place, left = 0, _INFLATED
    while left > 0 and (place := data.find(b"/ObjStm", place)) >= 0:
        place += len(b"/ObjStm")
        start = data.find(b"stream", place, place + _BEGINNING)
        if start < 0:
            continue
        start += len(b"stream")
        start += 2 if data[start : start + 2] == b"\r\n" else 1
        end = data.find(b"endstream", start, start + _STREAM_BYTES)
        place = end if end >= 0 else start + _STREAM_BYTES
        try:
            inflated = zlib.decompressobj().decompress(data[start:place], left)
        except zlib.error:
            continue
        left -= len(inflated)
        yield inflated
