"""How long a request waits for a turn or a compaction, before it is told to try again."""

from __future__ import annotations

from typing import Final

from app.bootstrap import Container

SHARE: Final = 0.8
"""Of the time that a request may take at most."""


def patience(services: Container) -> float:
    """Seconds."""
    return services.settings.request_timeout_seconds * SHARE
