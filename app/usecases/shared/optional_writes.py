"""Writes that a read can do without: while Postgres is read-only they are skipped, so that the read is served."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import structlog

from app.core.model.errors import DatabaseReadOnlyError

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@contextmanager
def optional_write(event: str, **fields: Any) -> Iterator[None]:
    """End the block without an error if the database takes no writes, and log that as ``event`` with these fields.

    The block has a transaction of its own, or is the end of one: after a refused write a transaction reads nothing
    more. All other errors pass.
    """
    try:
        yield
    except DatabaseReadOnlyError:
        _log.warning(event, **fields)
