"""Decides, by the headers that browsers send, whether a request comes from the service's own page."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from starlette.requests import HTTPConnection

COOKIE: Final = "throughline_session"
SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})
OWN_SITES: Final = frozenset({"same-origin", "none"})
"""Sites that count as the service's own; ``none`` means that the address was typed or a download was clicked."""


def is_same_origin(request: HTTPConnection) -> bool:
    """Whether no other site caused the request. A request that changes something has to name its origin.

    ``SameSite`` alone would also accept pages of other ports and of sibling hosts.
    """
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    if site is not None and site not in OWN_SITES:
        return False
    if origin is None:
        return request.scope.get("method") in SAFE_METHODS
    return bool(origin) and _host_and_port(origin) == request.headers.get("host", "").lower()


def session_of(request: HTTPConnection) -> str | None:
    """The token of a session. A cookie that comes with a request from another site is ignored."""
    token = _cookie(request)
    return token if token and is_same_origin(request) else None


def _cookie(request: HTTPConnection) -> str:
    # The framework reads cookies with the standard library, which takes quadratic time for a quoted value.
    pairs = (pair.partition("=") for header in request.headers.getlist("cookie") for pair in header.split(";"))
    return next((value.strip().strip('"') for name, _, value in pairs if name.strip() == COOKIE), "")


def _host_and_port(origin: str) -> str | None:
    try:
        return urlsplit(origin).netloc.lower() or None
    except ValueError:
        return None
