"""Keys for requests that come without one: an SDK announces a retry, or at least sends the same body again."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from app.usecases.shared.idempotency import Idem

LIFE: Final = timedelta(minutes=10)
"""How long a key holds: longer than any SDK retries, and too short for the same words to be repeated by chance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestAttempt:
    """What distinguishes a request from a repeated one."""

    body: bytes
    tries: int | None = None
    """How many earlier tries the SDK reports; ``None`` if it does not count them."""
    own: Idem | None = None
    """The key that the client itself gave."""

    def key(self, place: str, *, fixes_place: bool) -> Idem:
        """The key of this request.

        Args:
            place: The conversation or response that the request continues. Without one there is no key, since equal
                words of two users would be taken for one request.
            fixes_place: Whether the same body at that place can only be the same request. A conversation grows, and the
                same words may be said in it twice; a response stays where it is.
        """
        if self.own is not None:
            return self.own
        digest = hashlib.sha256(self.body).hexdigest()
        identity = f"openai\n{place}\n{digest}"
        is_first = self.tries == 0 or (self.tries is None and not fixes_place)
        return Idem(
            key=hashlib.sha256(identity.encode()).hexdigest(), fingerprint=digest, lifetime=LIFE, is_first_try=is_first
        )
