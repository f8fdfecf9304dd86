"""Reads the files of the page from the archive that is shipped with the service."""

from __future__ import annotations

import base64
import gzip
import hashlib
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from html.parser import HTMLParser
from importlib.resources import files
from types import MappingProxyType
from typing import Final

PACKAGE: Final = "app.ui"
ARCHIVE_NAME: Final = "ui.zip"
MEDIA_TYPES: Final[Mapping[str, str]] = {
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "txt": "text/plain; charset=utf-8",
    "json": "application/json",
    "svg": "image/svg+xml",
    "ico": "image/x-icon",
    "png": "image/png",
    "woff2": "font/woff2",
}
COMPRESSED_SUFFIXES: Final = frozenset({"html", "js", "css", "txt", "json", "svg"})
"""Endings of files that compression makes smaller."""
PAGE_POLICY: Final = (
    "default-src 'none'",
    # React and the plots set the size of elements by inline styles.
    "style-src 'self' 'unsafe-inline'",
    "img-src 'self' data:",
    "font-src 'self'",
    "connect-src 'self'",
    "manifest-src 'self'",
    "base-uri 'none'",
    "form-action 'self'",
    "frame-ancestors 'none'",
)
"""The content security policy of every page, without the scripts that the page may run."""


@dataclass(frozen=True)
class PageFile:
    """One file of the page."""

    name: str
    content: bytes

    @property
    def suffix(self) -> str:
        """The ending of the file's name."""
        return self.name.rpartition(".")[2]

    @property
    def media_type(self) -> str:
        """The file's ``Content-Type``."""
        return MEDIA_TYPES.get(self.suffix, "application/octet-stream")

    @property
    def is_immutable(self) -> bool:
        """Whether its name changes with its content."""
        return self.name.startswith("_next/static/")

    @cached_property
    def etag(self) -> str:
        """The ``ETag`` of the file's content."""
        return f'"{hashlib.sha256(self.content).hexdigest()[:32]}"'

    @cached_property
    def gzipped(self) -> bytes | None:
        """The file gzipped; ``None`` if that would not make it smaller."""
        return gzip.compress(self.content, 9, mtime=0) if self.suffix in COMPRESSED_SUFFIXES else None

    @cached_property
    def policy(self) -> str | None:
        """The content security policy of a page. Only the inline scripts that it was built with may run."""
        return policy_of(self.content.decode()) if self.suffix == "html" else None


class _InlineScripts(HTMLParser):
    """Finds the inline scripts of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self._is_inside = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._is_inside = tag == "script" and not any(name == "src" for name, _ in attrs)

    def handle_endtag(self, tag: str) -> None:
        self._is_inside = self._is_inside and tag != "script"

    def handle_data(self, data: str) -> None:
        if self._is_inside:
            self.found.append(data)


def policy_of(html: str) -> str:
    """The policy with a hash for each inline script."""
    reader = _InlineScripts()
    reader.feed(html)
    hashes = (hashlib.sha256(script.encode()).digest() for script in reader.found)
    named = sorted({f"'sha256-{base64.b64encode(one).decode()}'" for one in hashes})
    return "; ".join([*PAGE_POLICY, " ".join(["script-src 'self'", *named])])


@cache
def page_files() -> Mapping[str, PageFile]:
    """The page's files by their paths below ``/ui/``; empty if the page was not built."""
    found = files(PACKAGE) / ARCHIVE_NAME
    if not found.is_file():
        return MappingProxyType({})
    with found.open("rb") as stream, zipfile.ZipFile(stream) as archive:
        return MappingProxyType({name: PageFile(name, archive.read(name)) for name in archive.namelist()})
