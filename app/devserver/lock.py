"""One owner per data folder: a file lock that the kernel releases with its process, and a note for other processes."""

from __future__ import annotations

import dataclasses
import fcntl
import json
import os
from pathlib import Path

_LOCK_NAME = "lock"
_NOTE_NAME = "running.json"
_GUESTS_NAME = "guests"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Note:
    """What the owner tells a process that finds the folder locked."""

    pid: int
    runtime: str
    """The folder of the sockets."""
    address: str | None = None
    """The address at which the owner serves HTTP, if it does."""
    lock: int | None = None
    """The number (inode) of its lock's file, which differs in a copy of the data folder."""


class DataDirLock:
    """The lock. A note without a held lock is left over and means nothing."""

    def __init__(self, data_dir: Path) -> None:
        self._path = data_dir / _LOCK_NAME
        self._note_path = data_dir / _NOTE_NAME
        self._descriptor: int | None = None
        self._guests: int | None = None

    def acquire(self) -> bool:
        """Take the lock if it is free."""
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return False
        self._descriptor = descriptor
        return True

    def release(self) -> None:
        """Release the lock, and everything that was taken with it."""
        for descriptor in (self._descriptor, self._guests):
            if descriptor is not None:
                os.close(descriptor)
        self._descriptor = self._guests = None

    def join_as_guest(self) -> bool:
        """Keep an owner that waits for its guests from stopping; false if one is just stopping."""
        return self._lock_guests(fcntl.LOCK_SH | fcntl.LOCK_NB)

    def close_to_guests(self, *, waits: bool) -> bool:
        """Admit no further guest once the last one has left; without ``waits``, return whether it has."""
        return self._lock_guests(fcntl.LOCK_EX if waits else fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _lock_guests(self, how: int) -> bool:
        if self._guests is None:
            self._guests = os.open(self._path.with_name(_GUESTS_NAME), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(self._guests, how)
        except BlockingIOError:
            return False
        return True

    def read(self) -> Note | None:
        """Return the owner's note; ``None`` if it is missing or damaged, or came with a copy of the folder."""
        try:
            note = Note(**json.loads(self._note_path.read_text()))
            return note if note.lock in {None, self._path.stat().st_ino} else None
        except (OSError, ValueError, TypeError):
            return None

    def write(self, note: Note) -> None:
        """Replace the note in one step, so that no reader sees half of it."""
        draft = self._note_path.with_suffix(".tmp")
        draft.write_text(json.dumps(dataclasses.asdict(note) | {"lock": self._path.stat().st_ino}))
        draft.replace(self._note_path)

    def clear(self) -> None:
        """Remove the note."""
        self._note_path.unlink(missing_ok=True)


def running_at(data_dir: Path) -> str | None:
    """Return the address, or else the process, that holds the data folder; ``None`` if it is free."""
    lock = DataDirLock(data_dir)
    try:
        if lock.acquire():
            lock.release()
            return None
    except OSError:
        return None
    note = lock.read()
    return (note.address or f"process {note.pid}") if note else "another process"
