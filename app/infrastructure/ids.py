"""Identifiers: UUIDv7, so that ids made later sort later and indexes stay dense."""

from __future__ import annotations

from uuid import UUID

from uuid_utils.compat import uuid7


def new_id() -> UUID:
    """A fresh UUIDv7, as the standard library's ``UUID``."""
    return uuid7()
