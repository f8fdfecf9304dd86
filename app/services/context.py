"""What a model would be sent: loads a bounded part of the history, and lets the core put it together."""

from __future__ import annotations

from app.services.shell import Shell

LOADED_BUDGETS = 2  # one budget that may be served, and one before it that a digest tells of
ON_LOOP = 48  # messages: more than this is put together off the event loop
DIGESTS = 256  # digests kept per process; each is a pure function of its messages


class ContextService:
    """Contexts and their sizes; never compacts."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell
