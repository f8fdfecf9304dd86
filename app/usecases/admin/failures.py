"""Limits how often a minute an address may try keys that are not valid."""

from __future__ import annotations

import ipaddress
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from app.core.model.allowances import SlidingCount
from app.core.model.errors import RateLimitedError

MOST_ADDRESSES: Final = 10_000
MOST_KNOWN: Final = 10_000
IPV6_NETWORK: Final = 64
"""Bits of an address that its holder cannot choose."""


class FailedKeys:
    """Counts failures in this process, in bounded memory: the address that was heard of longest ago is forgotten first.

    A key that was good a while ago is let through however often others fail from its address, so that nobody can shut
    out those behind the same proxy.

    ``most`` is failures a minute and address; 0 = any number.
    """

    def __init__(self, most: int, monotonic: Callable[[], float]) -> None:
        self._most = most
        self._monotonic = monotonic
        self._failed: OrderedDict[str, SlidingCount] = OrderedDict()
        self._good: OrderedDict[bytes, None] = OrderedDict()

    def check(self, address: str | None, digest: bytes) -> None:
        """Check an address before a key is looked up. Raises ``RateLimitedError``."""
        if not self._most or address is None or digest in self._good:
            return
        count, now = self._failed.get(_address_to_count(address)), self._monotonic()
        wait = count.standing(now, self._most, "key").wait if count else 0.0
        if not wait:
            return
        raise RateLimitedError(
            "too many requests with keys that are not valid came from this address: wait, and check the key",
            retry_after=wait,
            extra={"reason": "failed_keys", "limit": self._most},
        )

    def failed(self, address: str | None) -> None:
        """A key was unknown, revoked or expired."""
        if address is None:
            return
        name = _address_to_count(address)
        self._failed[name] = self._failed.pop(name, SlidingCount()).plus(self._monotonic())
        if len(self._failed) > MOST_ADDRESSES:
            self._failed.popitem(last=False)

    def succeeded(self, digest: bytes) -> None:
        """A key was good."""
        self._good[digest] = None
        self._good.move_to_end(digest)
        if len(self._good) > MOST_KNOWN:
            self._good.popitem(last=False)

    def forget(self, digest: bytes) -> None:
        """Forget a key that was valid before and no longer is."""
        self._good.pop(digest, None)


def _address_to_count(address: str) -> str:
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return address[:64]
    if found.version == 4:  # noqa: PLR2004 - IPv4
        return address
    # Whoever has an IPv6 network chooses its single addresses freely.
    return str(ipaddress.ip_network((found, IPV6_NETWORK), strict=False))
