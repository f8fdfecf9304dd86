"""Identifiers: UUIDv7, so that ids made later sort later and indexes stay dense."""

from __future__ import annotations

import os
import secrets
import socket
from uuid import UUID

from uuid_utils.compat import uuid7


def new_id() -> UUID:
    """A new UUIDv7, as the standard library's ``UUID``."""
    return uuid7()


def owner_name(kind: str) -> str:
    """A name for the leases of this process only. Containers may share host names and process numbers."""
    return f"{kind}:{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"
