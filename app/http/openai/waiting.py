"""How long a request waits: for a turn or a compaction before it is told to try again, and then for first words."""

from __future__ import annotations

from typing import Final

from app.bootstrap import Container

PATIENCE_SHARE: Final = 0.8
"""The share of a request's time limit that it may wait."""


def patience(services: Container) -> float:
    """The seconds that a request may wait."""
    return services.settings.request_timeout_seconds * PATIENCE_SHARE


def patience_with_words(services: Container) -> float:
    """The seconds that a stream may wait for its first words after that, before it begins without them."""
    return services.settings.request_timeout_seconds * (1 - PATIENCE_SHARE) / 2
