"""Hashes an ``Idempotency-Key``, and the request it came with: neither is stored as the client wrote it."""

from __future__ import annotations

import hashlib


def fingerprint(method: str, path: str, body: bytes) -> str:
    """SHA-256 over method, path and the body's bytes: the same key with anything else is a mistake of the client."""
    return hashlib.sha256(b"\n".join((method.encode(), path.encode(), body))).hexdigest()


def kept_key(key: str) -> str:
    """What is stored of a client's key: a client may make it of a message's text, and that may be erased."""
    return hashlib.sha256(key.encode()).hexdigest()
