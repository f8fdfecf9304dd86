"""Messages: appended without a reply, one or many, and read back whole."""

from __future__ import annotations

from app.services.shell import Shell


class MessageService:
    """The session history: append-only."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell
