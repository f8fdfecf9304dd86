"""Builds the core's tables at start, so that the first request need not."""

from __future__ import annotations

from app.core.retrieval.related_words import build_tables
from app.core.text.patterns import known
from app.usecases.history.preparing import warm


def warm_up() -> None:
    """Build what reading a message and looking for words need, and compile every pattern: about a second."""
    warm()
    build_tables()
    known()
