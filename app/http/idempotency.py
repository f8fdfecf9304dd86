"""Hashes an ``Idempotency-Key`` and its request, so that neither is stored as the client wrote it."""

from __future__ import annotations

import hashlib


def fingerprint(method: str, path: str, body: bytes) -> str:
    """SHA-256 over method, path and body. The same key with another hash is a mistake of the client."""
    return hashlib.sha256(b"\n".join((method.encode(), path.encode(), body))).hexdigest()


def kept_key(key: str) -> str:
    """What is stored of a client's key: a hash, since a key may contain text of a message, which may be erased."""
    return hashlib.sha256(key.encode()).hexdigest()
