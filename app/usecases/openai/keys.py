"""Keys for requests that come without one: an SDK that tries again says so, or at least sends the same again."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from app.usecases.shared.idempotency import Idem

LIFE: Final = timedelta(minutes=10)
"""Longer than any SDK tries, and shorter than anybody says the same again by chance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """What tells a request from a repeated one."""

    body: bytes
    tries: int | None = None
    """How often the SDK says that it has tried before; ``None`` where it does not count."""
    own: Idem | None = None
    """The key that the client gave itself."""

    def key(self, place: str, *, fixes_place: bool) -> Idem:
        """The key of this request.

        Args:
            place: The conversation, or the response, that it goes on from. Without one there is no key: equal words
                of two users would be taken for one request.
            fixes_place: Whether the same body at that place can only be the same request. A conversation grows, and
                the same words may be said in it twice; a response stays where it is.
        """
        if self.own is not None:
            return self.own
        digest = hashlib.sha256(self.body).hexdigest()
        told = f"openai\n{place}\n{digest}"
        is_first = self.tries == 0 or (self.tries is None and not fixes_place)
        return Idem(key=hashlib.sha256(told.encode()).hexdigest(), fingerprint=digest, lives=LIFE, renews=is_first)
