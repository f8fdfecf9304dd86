"""Limits how often per minute one address may try invalid keys."""

from __future__ import annotations

import ipaddress
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from app.core.model.errors import RateLimitedError
from app.core.model.usage_limits import SlidingCount

MAX_ADDRESSES: Final = 10_000
MAX_KNOWN_KEYS: Final = 10_000
IPV6_NETWORK: Final = 64
"""How many leading bits of an IPv6 address are compared: the holder of a network chooses the rest freely."""


class FailedKeys:
    """Counts failures in this process, in bounded memory: the address that failed longest ago is forgotten first.

    A key that was accepted a while ago is let through, however many other keys fail from its address. So nobody can
    lock out the other users of a shared proxy.

    ``most`` is the number of failures allowed per minute and address; 0 = no limit.
    """

    def __init__(self, most: int, monotonic: Callable[[], float]) -> None:
        self._most = most
        self._monotonic = monotonic
        self._failed: OrderedDict[str, SlidingCount] = OrderedDict()
        self._good: OrderedDict[bytes, None] = OrderedDict()

    def check(self, address: str | None, digest: bytes) -> None:
        """Check an address before a key is looked up. Raises ``RateLimitedError`` if too many keys failed from it."""
        if not self._most or address is None or digest in self._good:
            return
        count, now = self._failed.get(_address_to_count(address)), self._monotonic()
        wait = count.limit_usage(now, self._most, "key").wait if count else 0.0
        if not wait:
            return
        raise RateLimitedError(
            "too many requests with keys that are not valid came from this address: wait, and check the key",
            retry_after=wait,
            extra={"reason": "failed_keys", "limit": self._most},
        )

    def failed(self, address: str | None) -> None:
        """Note that a key was unknown, revoked or expired."""
        if address is None:
            return
        name = _address_to_count(address)
        self._failed[name] = self._failed.pop(name, SlidingCount()).plus(self._monotonic())
        if len(self._failed) > MAX_ADDRESSES:
            self._failed.popitem(last=False)

    def succeeded(self, digest: bytes) -> None:
        """Note that a key was accepted."""
        self._good[digest] = None
        self._good.move_to_end(digest)
        if len(self._good) > MAX_KNOWN_KEYS:
            self._good.popitem(last=False)

    def forget(self, digest: bytes) -> None:
        """Forget a key that was accepted before and is no longer valid."""
        self._good.pop(digest, None)


def _address_to_count(address: str) -> str:
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return address[:64]
    if isinstance(found, ipaddress.IPv4Address):
        return address
    if found.ipv4_mapped is not None:  # as some proxies name IPv4 clients; they are all in one IPv6 network
        return str(found.ipv4_mapped)
    # The holder of an IPv6 network chooses the single addresses in it freely.
    return str(ipaddress.ip_network((found, IPV6_NETWORK), strict=False))
