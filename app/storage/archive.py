"""Writes and reads the file of a backup: a ZIP with the rows of each table as COPY text, and a manifest to check them.

The manifest comes last and names, for each table, its columns, the number of its rows, and size and SHA-256 of its
text. COPY text is read by every version of PostgreSQL, and by people.
"""

from __future__ import annotations

import hashlib
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Annotated, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

FORMAT: Final = "throughline.backup"
MANIFEST: Final = "manifest.json"
_MAX_MANIFEST_BYTES: Final = 1_000_000
_CHUNK_BYTES: Final = 1_048_576
_COMPRESSION_LEVEL: Final = 3
"""The level of deflate. It takes half the time of the default level and gives a twentieth more bytes."""
DAMAGE_ERRORS: Final = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError)
"""The errors that reading a damaged ZIP raises; the last one is also raised for a ZIP with a password."""

Name = Annotated[str, Field(pattern=r"^[a-z_][a-z0-9_]{0,62}$")]
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Count = Annotated[int, Field(ge=0)]


class BackupError(Exception):
    """A backup or a restore is impossible for a reason that the user can remove. The message is one line."""


class _StrictModel(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class TableContent(_StrictModel):
    """The entry of a table in the manifest: its columns, and the size and hash of its text."""

    name: Name
    columns: tuple[Name, ...] = Field(strict=False)
    rows: Count
    bytes: Count
    sha256: Digest


class History(_StrictModel):
    """The number of conversations and messages, and the SHA-256 over all messages in their order."""

    conversations: Count
    messages: Count
    sha256: Digest


class Manifest(_StrictModel):
    """The manifest: what a backup holds."""

    format: Literal["throughline.backup"] = FORMAT
    version: Literal[1] = 1
    throughline: Annotated[str, Field(max_length=40)]
    """The version of the program that made it."""
    revision: Annotated[str, Field(max_length=40)]
    """Alembic's name for the version of the schema."""
    postgres: Annotated[str, Field(max_length=200)]
    made_at: Annotated[str, Field(max_length=40)]
    tables: tuple[TableContent, ...] = Field(strict=False)
    """The tables, each after those that it refers to."""
    history: History


class TableText:
    """The text of one table while it is written into the archive."""

    def __init__(self, target: IO[bytes], advance: Callable[[int], None]) -> None:
        self._target = target
        self._advance = advance
        self._hash = hashlib.sha256()
        self._rows = self._bytes = 0

    async def write(self, data: bytes) -> None:
        """Write a piece. Rows are counted by line ends, since the text of COPY has none within a row."""
        self._target.write(data)
        self._hash.update(data)
        rows = data.count(b"\n")
        self._rows += rows
        self._bytes += len(data)
        self._advance(rows)

    def content(self, name: str, columns: tuple[str, ...]) -> TableContent:
        """The entry of the manifest for the text written so far."""
        return TableContent(
            name=name, columns=columns, rows=self._rows, bytes=self._bytes, sha256=self._hash.hexdigest()
        )


class ArchiveWriter:
    """Writes the tables one after the other, then the manifest, in bounded memory."""

    def __init__(self, target: IO[bytes]) -> None:
        self._zip = zipfile.ZipFile(
            target, "w", zipfile.ZIP_DEFLATED, allowZip64=True, compresslevel=_COMPRESSION_LEVEL
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # After a failure, closing fails too; the first failure is the one to report.
        with suppress(OSError, ValueError):
            self._zip.close()

    @contextmanager
    def table(self, name: str, advance: Callable[[int], None]) -> Iterator[TableText]:
        """Yield an object that takes the text of the next table; ``advance`` is called with the rows of each piece."""
        with self._zip.open(_member_name(name), "w", force_zip64=True) as target:
            yield TableText(target, advance)

    def finish(self, manifest: Manifest) -> None:
        """Write the manifest and close the ZIP. Without this, a file is not a backup."""
        self._zip.writestr(MANIFEST, manifest.model_dump_json(indent=2))
        self._zip.close()


class ArchiveReader:
    """Reads a backup; call :meth:`verify` before using its content.

    Raises:
        BackupError: The file cannot be read, is not a backup, or has a later format.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        try:
            self._zip = zipfile.ZipFile(file)
        except OSError as error:
            raise BackupError(f"Cannot read {file}: {error.strerror}.") from None
        except (*DAMAGE_ERRORS, KeyError):
            raise self._not_a_backup() from None
        try:
            self.manifest = self._read_manifest()
        except BaseException:
            self._zip.close()
            raise

    def close(self) -> None:
        """Close the file."""
        self._zip.close()

    def verify(self, advance: Callable[[int], None]) -> None:
        """Read everything once, and compare it with the manifest; ``advance`` is called with the rows of each piece.

        Raises:
            BackupError: A table differs from what the manifest says.
        """
        expected = [_member_name(table.name) for table in self.manifest.tables]
        if sorted([*expected, MANIFEST]) != sorted(self._zip.namelist()):
            raise self._damaged("its tables are not those of its manifest")
        for table in self.manifest.tables:
            self._verify_table(table, advance)

    def chunks(self, table: TableContent) -> Iterator[bytes]:
        """The text of a table, in pieces."""
        try:
            with self._zip.open(_member_name(table.name)) as source:
                while chunk := source.read(_CHUNK_BYTES):
                    yield chunk
        except (*DAMAGE_ERRORS, KeyError):
            raise self._damaged(f"table {table.name} cannot be read") from None
        except OSError as error:
            raise BackupError(f"Cannot read {self._file}: {error.strerror or error}.") from None

    def _verify_table(self, table: TableContent, advance: Callable[[int], None]) -> None:
        digest, rows, size = hashlib.sha256(), 0, 0
        for chunk in self.chunks(table):
            digest.update(chunk)
            found = chunk.count(b"\n")
            rows, size = rows + found, size + len(chunk)
            if size > table.bytes:
                break
            advance(found)
        if (digest.hexdigest(), rows, size) != (table.sha256, table.rows, table.bytes):
            raise self._damaged(f"table {table.name} is not what the manifest says")

    def _read_manifest(self) -> Manifest:
        try:
            info = self._zip.getinfo(MANIFEST)
            if info.file_size > _MAX_MANIFEST_BYTES:
                raise self._not_a_backup()
            return Manifest.model_validate_json(self._zip.read(MANIFEST))
        except KeyError:
            raise self._not_a_backup() from None
        except ValidationError as error:
            if any(one["loc"] == ("version",) for one in error.errors()):
                raise BackupError(
                    f"{self._file} is a backup of a later format: restore it with the version that made it."
                ) from None
            raise self._damaged("its manifest cannot be understood") from None
        except DAMAGE_ERRORS:
            raise self._damaged("its manifest cannot be read") from None

    def _not_a_backup(self) -> BackupError:
        return BackupError(
            f"{self._file} is no backup of Throughline, or it was cut off: `throughline backup` makes one. "
            "Nothing was written."
        )

    def _damaged(self, why: str) -> BackupError:
        return BackupError(f"{self._file} was changed or damaged: {why}. Nothing was written; take another backup.")


def _member_name(table: str) -> str:
    return f"tables/{table}.copy"
