"""Restricts the hosts to which requests without a key may be sent.

A web page can let its own name resolve to the loopback address, and could then use any service there. Its requests have
that name as their ``Host``. So if no key is needed, only requests to known hosts are answered.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from starlette.datastructures import Headers
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Receive, Scope, Send

from app.bootstrap import is_loopback
from app.core.text.patterns import compiled
from app.http.errors import error_response
from app.http.refusals import HostNotAllowedError

HOST_HEADER: Final = compiled(
    r"(?:\[(?P<address>[0-9A-Fa-f:.]{2,45})\]|(?P<name>[A-Za-z0-9.-]{1,253}))(?::[0-9]{1,5})?"
)
NO_ENTRY: Final = 1008
"""The code that closes a socket before it is open; the client gets a 403."""
SHOWN: Final = 100
"""How many characters of a header an error repeats."""


class KnownHosts:
    """Answers only requests that are sent to a loopback host or to one of ``allowed``; all others get a 421."""

    def __init__(self, app: ASGIApp, allowed: Collection[str]) -> None:
        self._app = app
        self._allowed = frozenset(allowed)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        is_socket = scope["type"] == "websocket"
        is_asked = is_socket or scope["type"] == "http"
        hosts = Headers(scope=scope).getlist("host") if is_asked else []
        if not is_asked or (len(hosts) == 1 and is_known(hosts[0], self._allowed)):
            await self._app(scope, receive, send)
            return
        refusal = HostNotAllowedError(
            f"Without a key this server answers on localhost and loopback addresses only, not for the host"
            f" {hosts[0][:SHOWN] if hosts else ''!r}: use http://localhost, add the host to THROUGHLINE_ALLOWED_HOSTS,"
            " or ask for keys with THROUGHLINE_AUTH_REQUIRED=true."
        )
        if is_socket:
            await receive()  # the message that opens the connection
            await send({"type": "websocket.close", "code": NO_ENTRY})
            return
        await error_response(HTTPConnection(scope), refusal)(scope, receive, send)


def is_known(header: str, allowed: Collection[str]) -> bool:
    """Whether a ``Host`` header names this machine's loopback or an allowed host. The port does not matter."""
    found = HOST_HEADER.fullmatch(header)
    if found is None:
        return False
    host = (found["address"] or found["name"]).lower().removesuffix(".")
    return host in allowed or is_loopback(host) or host.endswith(".localhost")
