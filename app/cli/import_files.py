"""Opens a file that is to be imported; a large export is read one conversation at a time.

A file of ChatGPT or Claude may have gigabytes, so at most one conversation is in memory at a time.
"""

from __future__ import annotations

import codecs
import json
import zipfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any, Final

from app.cli.complaints import ComplaintError
from app.cli.import_exports import Kind, export_kind, read_exported
from app.cli.import_formats import Imported, read_conversations
from app.cli.terminal_language import text_of
from app.core.text.patterns import compiled
from app.storage.archive import DAMAGE_ERRORS

MAX_EXPORT_BYTES: Final = 8_000_000_000
"""The most bytes of an export, unpacked."""
MAX_OTHER_FILE_BYTES: Final = 256_000_000
"""The most bytes of any other file, which is read as a whole."""
MAX_CONVERSATION_LENGTH: Final = 64_000_000
"""The most characters of one conversation in an export."""
_CHUNK_BYTES: Final = 1_000_000
_LIST_NAME: Final = compiled(r"(?:[^\\]{0,200}/)?conversations(?:-\d{1,6})?\.json")
_BACKUP_TABLE: Final = "tables/messages.copy"
_SPACE: Final = compiled(r"[ \t\r\n]*+")
_NEAR_END: Final = 12
"""An error so few characters before the end of the text read so far may mean that the rest is not read yet."""

Opener = Callable[[], AbstractContextManager[IO[bytes]]]


@dataclass(frozen=True, slots=True)
class Source:
    """A file's conversations. Each iteration reads the file again, and keeps no conversation in memory."""

    conversations: Callable[[], Iterator[Imported]]
    text: str = ""
    """The whole file, by which a repeated import is recognised; empty if each conversation has an identity."""


def open_source(file: Path) -> Source:
    """A file's conversations; its content shows what kind of file it is.

    Raises:
        ComplaintError: The file cannot be read, is too large, or contains nothing of that kind.
    """
    try:
        is_archive = _is_archive(file)
        openers: list[Opener] = _lists_in_archive(file) if is_archive else [lambda: file.open("rb")]
        kind = _kind_of_export(openers, str(file), may_be_other=not is_archive)
        if kind is not None:
            return Source(partial(_exported_conversations, openers, kind, str(file)))
        if is_archive:
            raise ComplaintError(text_of("import.empty", where=str(file)))
        if file.stat().st_size > MAX_OTHER_FILE_BYTES:
            limit = f"{MAX_OTHER_FILE_BYTES // 1_000_000:,}"
            raise ComplaintError(text_of("import.too_large", where=str(file), limit=limit))
        text = file.read_text(encoding="utf-8-sig")
    except OSError as error:
        why = str(error.strerror or error)
        raise ComplaintError(text_of("complaint.cannot_read", file=str(file), why=why)) from None
    except UnicodeDecodeError as error:
        raise ComplaintError(text_of("complaint.no_utf8", file=str(file), place=str(error.start))) from None
    found = read_conversations(text, str(file))
    return Source(lambda: iter(found), text)


def _is_archive(file: Path) -> bool:
    with file.open("rb") as stream:
        # Also by its name, since the text of a broken download would not show what is wrong.
        return stream.read(4) == b"PK\x03\x04" or file.suffix.lower() == ".zip"


def _lists_in_archive(file: Path) -> list[Opener]:
    """Functions that open each list of conversations in an archive."""
    try:
        with zipfile.ZipFile(file) as archive:
            names = sorted(name for name in archive.namelist() if _LIST_NAME.fullmatch(name))
            size = sum(archive.getinfo(name).file_size for name in names)
            is_backup = _BACKUP_TABLE in archive.namelist()
    except DAMAGE_ERRORS:
        raise ComplaintError(text_of("import.no_archive", where=str(file))) from None
    if is_backup:
        raise ComplaintError(text_of("import.is_backup", where=str(file)))
    if not names:
        raise ComplaintError(text_of("import.no_list_in_archive", where=str(file)))
    if size > MAX_EXPORT_BYTES:
        raise ComplaintError(text_of("import.too_large", where=str(file), limit=f"{MAX_EXPORT_BYTES // 1_000_000:,}"))
    return [partial(_ArchiveFile, file, name) for name in names]


class _ArchiveFile:
    """One file of an archive, open."""

    def __init__(self, file: Path, name: str) -> None:
        self._archive = zipfile.ZipFile(file)
        self._name = name

    def __enter__(self) -> IO[bytes]:
        try:
            return self._archive.open(self._name)
        except DAMAGE_ERRORS:
            self._archive.close()
            raise ComplaintError(text_of("import.no_archive", where=str(self._archive.filename))) from None

    def __exit__(self, *_: object) -> None:
        self._archive.close()


def _kind_of_export(openers: list[Opener], name: str, *, may_be_other: bool) -> Kind | None:
    """The kind of an export, by its first conversation; ``None`` if it may be no export and is not a JSON list."""
    for opener in openers:
        with opener() as stream:
            try:
                first = next(_values_of_list(stream, name), None)
            except (ComplaintError, UnicodeDecodeError):
                if may_be_other:
                    return None
                raise
        if first is not None:
            return export_kind(first)
    return None


def _exported_conversations(openers: list[Opener], kind: Kind, name: str) -> Iterator[Imported]:
    number = messages = hidden = 0
    for opener in openers:
        with opener() as stream:
            for value in _values_of_list(stream, name):
                number += 1
                found = read_exported(value, kind, name, text_of("import.conversation", number=str(number)))
                messages, hidden = messages + len(found.messages), hidden + found.hidden
                if found.messages:
                    yield found
    if not messages:
        empty = text_of("import.empty", where=name)
        raise ComplaintError(f"{empty} ({text_of('import.hidden', count=hidden)})" if hidden else empty)


def _values_of_list(stream: IO[bytes], name: str) -> Iterator[Any]:
    """The values of a JSON list, one after the other. A value that is not a list is the only one.

    Raises:
        ComplaintError: The text is not JSON, or one value is too large or nested too deeply.
    """
    text = _JsonText(stream, name)
    if not text.skip("["):
        if not text.is_at_end:
            yield text.value()
        text.expect_end()
        return
    is_first = True
    while not text.skip("]"):
        if not is_first and not text.skip(","):
            raise text.json_error("a comma is missing")
        yield text.value()
        is_first = False
    text.expect_end()


class _JsonText:
    """JSON text that is read only as far as needed."""

    def __init__(self, stream: IO[bytes], name: str) -> None:
        self._stream = stream
        self._name = name
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")()
        self._json = json.JSONDecoder()
        self._text, self._place, self._ended = "", 0, False

    @property
    def is_at_end(self) -> bool:
        """Whether only white space is left."""
        while True:
            blank = _SPACE.match(self._text, self._place)
            self._place = blank.end() if blank else self._place
            if self._place < len(self._text):
                return False
            if not self._read_more():
                return True

    def skip(self, sign: str) -> bool:
        """Skip the sign, if it comes next, and return whether it did."""
        if self.is_at_end or self._text[self._place] != sign:
            return False
        self._place += 1
        return True

    def value(self) -> Any:
        """The next value."""
        if self.is_at_end:
            raise self.json_error("it ends too early")
        while True:
            try:
                found, self._place = self._json.raw_decode(self._text, self._place)
            except json.JSONDecodeError as error:
                if not self._may_be_cut_off(error) or not self._read_more():
                    raise self.json_error(error.msg.removesuffix(" starting at")) from None
            except RecursionError:
                raise self.json_error("nested too deeply") from None
            except ValueError as error:  # a number with thousands of digits
                raise self.json_error(str(error)) from None
            else:
                return found

    def expect_end(self) -> None:
        """Raises ``ComplaintError`` if something follows."""
        if not self.is_at_end:
            raise self.json_error("something follows its end")

    def json_error(self, why: str) -> ComplaintError:
        """The error for text that is not JSON."""
        return ComplaintError(text_of("import.no_json", where=self._name, why=why))

    def _may_be_cut_off(self, error: json.JSONDecodeError) -> bool:
        return error.msg.startswith("Unterminated") or error.pos >= len(self._text) - _NEAR_END

    def _read_more(self) -> bool:
        """Read as much again as was read so far, so that parsing a value repeatedly costs at most twice its length."""
        if self._ended:
            return False
        self._text, self._place = self._text[self._place :], 0
        if len(self._text) > MAX_CONVERSATION_LENGTH:
            raise ComplaintError(text_of("import.too_long", where=self._name, limit=f"{MAX_CONVERSATION_LENGTH:,}"))
        try:
            read = self._stream.read(max(_CHUNK_BYTES, len(self._text)))
        except DAMAGE_ERRORS:
            raise ComplaintError(text_of("import.no_archive", where=self._name)) from None
        self._ended = not read
        self._text += self._decoder.decode(read, final=self._ended)
        return bool(read)
