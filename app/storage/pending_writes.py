"""Collects writes whose results are not needed, so that several are sent to the database in one message."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from app.storage import compiled
from app.storage.compiled import CompiledStatement, can_be_literals

MAX_JOINED_WRITES: Final = 6
"""The most writes that are sent in one statement. Each number of writes is a separate text that the server keeps."""
_MAX_LITERAL_LENGTH: Final = 2_000
"""The most characters of writes that are sent with ``COMMIT``, since their values are written into the text."""

Write = tuple[CompiledStatement, list[Any]]
"""A statement that writes, with its values."""


class PendingWrites:
    """The writes of a transaction that were not sent yet, in order."""

    def __init__(self) -> None:
        self._writes: list[Write] = []

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self._writes)

    def fits(self, count: int) -> bool:
        """Whether this many more rows still fit into one statement."""
        return len(self._writes) + count <= MAX_JOINED_WRITES

    def can_join(self, statement: CompiledStatement) -> bool:
        """Whether a statement that writes may be sent with the waiting ones: none of them touches the same rows."""
        return compiled.can_join(statement, [one for one, _ in self._writes])

    def add(self, statement: CompiledStatement, rows: Sequence[list[Any]]) -> None:
        """Let it wait, once for the values of each row."""
        self._writes += ((statement, values) for values in rows)

    def take(self) -> list[Write]:
        """Remove all waiting writes and return them."""
        taken, self._writes = self._writes, []
        return taken

    def text_with_values(self) -> str | None:
        """All waiting writes as one text that contains their values, to be sent with ``COMMIT``.

        ``None`` if none waits, if a value cannot be written into the text, or if the text would be long.
        """
        if not self._writes or not all(can_be_literals(values) for _, values in self._writes):
            return None
        text = "".join(f"{statement.text_with_values(values)};" for statement, values in self._writes)
        return text if len(text) <= _MAX_LITERAL_LENGTH else None
