"""Seals data that a client keeps for the service: encrypted, authenticated, readable for one tenant only."""

from __future__ import annotations

import os
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Final
from uuid import UUID

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

PREFIX: Final = "tl1."
NONCE_BYTES: Final = 12
KEY_BYTES: Final = 32


class AesSealer:
    """``Sealer`` by AES-256-GCM.

    Without a ``secret`` of the operator, each tenant has its own in the database. A token that was sealed for another
    ``purpose`` cannot be opened.
    """

    def __init__(self, secret: str | None = None, *, purpose: str = "input") -> None:
        self._secret = secret.encode() if secret else None
        self._purpose = purpose.encode()

    def seal(self, text: str, tenant_id: UUID, secret: bytes) -> str:
        """The text as a token; ``secret`` is the tenant's own key."""
        nonce = os.urandom(NONCE_BYTES)
        sealed = AESGCM(self._derived_key(tenant_id, secret)).encrypt(nonce, text.encode(), tenant_id.bytes)
        return PREFIX + urlsafe_b64encode(nonce + sealed).decode()

    def open(self, token: str, tenant_id: UUID, secret: bytes) -> str | None:
        """The text in a token; ``None`` if the token is foreign, was changed, or belongs to another tenant."""
        try:
            sealed = urlsafe_b64decode(token.removeprefix(PREFIX).encode("ascii"))
            key = AESGCM(self._derived_key(tenant_id, secret))
            return key.decrypt(sealed[:NONCE_BYTES], sealed[NONCE_BYTES:], tenant_id.bytes).decode()
        except (ValueError, InvalidTag):
            return None

    def _derived_key(self, tenant_id: UUID, secret: bytes) -> bytes:
        derived = HKDF(
            algorithm=SHA256(),
            length=KEY_BYTES,
            salt=None,
            info=b"throughline %b %b" % (self._purpose, tenant_id.bytes),
        )
        return derived.derive(self._secret or secret)
