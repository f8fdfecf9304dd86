"""Collects writes of which nothing is read back, so that several go to the database in one message."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from app.storage import compiled
from app.storage.compiled import CompiledStatement, can_be_literals

JOINED: Final = 6
"""Writes that go out in one statement, at most: each number of them is a text of its own for the server to keep."""
_MAX_LITERAL_TEXT: Final = 2_000
"""Characters of writes that go out with ``COMMIT``: their values are written into the text."""

Write = tuple[CompiledStatement, list[Any]]
"""A statement that writes, with its values."""


class PendingWrites:
    """The writes of a transaction that were not sent yet, in their order."""

    def __init__(self) -> None:
        self._writes: list[Write] = []

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self._writes)

    def has_room(self, count: int) -> bool:
        """Whether that many more rows still fit into one statement."""
        return len(self._writes) + count <= JOINED

    def can_join(self, statement: CompiledStatement) -> bool:
        """Whether a statement that writes may go out with them: none of them touches the same rows."""
        return compiled.can_join(statement, [one for one, _ in self._writes])

    def add(self, statement: CompiledStatement, rows: Sequence[list[Any]]) -> None:
        """Have it wait, once with the values of each row."""
        self._writes += ((statement, values) for values in rows)

    def take(self) -> list[Write]:
        """All of them; from now on none waits."""
        taken, self._writes = self._writes, []
        return taken

    def text_with_values(self) -> str | None:
        """All of them as one text with their values in it, to go out with ``COMMIT``.

        ``None`` where none waits, where a value cannot be written so, and where the text would be long.
        """
        if not self._writes or not all(can_be_literals(values) for _, values in self._writes):
            return None
        text = "".join(f"{statement.text_with_values(values)};" for statement, values in self._writes)
        return text if len(text) <= _MAX_LITERAL_TEXT else None
