"""How long a request waits for a turn or a compaction before it is told to try again."""

from __future__ import annotations

from typing import Final

from app.bootstrap import Container

PATIENCE_SHARE: Final = 0.8
"""The share of a request's time limit that it may wait."""


def patience(services: Container) -> float:
    """The seconds that a request may wait."""
    return services.settings.request_timeout_seconds * PATIENCE_SHARE
