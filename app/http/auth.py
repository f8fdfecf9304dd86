"""Authentication and authorization: finds the principal of a request's key, and what it may do."""

from __future__ import annotations

from fastapi import Request
from starlette.requests import HTTPConnection

from app.bootstrap import Container
from app.core.model.errors import UnauthenticatedError
from app.core.model.records import Scope
from app.http.browser.own_page import session_of
from app.off_loop import act_for
from app.usecases.admin.keys import PREFIX
from app.usecases.shared.caller import Principal, RequestScope


async def authorize(request: Request, scope: Scope, *, placeholders: bool = False) -> None:
    """Find the principal of the request's key and keep it in ``request.state``.

    A request of the page carries a session instead of a key. With ``placeholders``, if the service needs no key, a text
    that cannot be a key of the service counts as no key: some clients do not work without one.

    Raises:
        UnauthenticatedError: There is no valid key.
        ForbiddenError: The key lacks the scope.
        RateLimitedError: The key or its tenant sent too many requests, or too many keys from the address failed.
    """
    container: Container = request.app.state.container
    header = request.headers.get("authorization")
    token = session_of(request) if header is None else None
    if token is not None and not container.keys.anonymous_allowed:
        principal = await container.sessions.principal(token, address_of(request))
    else:
        key = given_key(container, header, placeholders=placeholders)
        principal = await container.keys.authenticate(key, address_of(request))
    await begin(request, container, principal)
    principal.require(scope)


async def begin(connection: HTTPConnection, container: Container, principal: Principal) -> None:
    """Begin the scope of a request with its principal, and count the request. Raises ``RateLimitedError``."""
    connection.state.principal = principal
    connection.state.request_scope = RequestScope(principal)
    connection.state.request_scope.begin()
    act_for(container.shares, principal.tenant_id)
    connection.state.standing = await container.limits.admit(principal)


def address_of(connection: HTTPConnection) -> str | None:
    """The address that a request came from.

    Behind a proxy that the server trusts, it is the one that the proxy names.
    """
    return connection.client.host if connection.client else None


def given_key(container: Container, header: str | None, *, placeholders: bool) -> str | None:
    """The key in the header; for ``placeholders`` see ``authorize``.

    Raises ``UnauthenticatedError`` as ``bearer`` does.
    """
    key = bearer(header)
    is_none = placeholders and container.keys.anonymous_allowed and key is not None and not key.startswith(PREFIX)
    return None if is_none else key


def bearer(header: str | None) -> str | None:
    """The key in an ``Authorization`` header; ``None`` if there is no header, or no key behind ``Bearer``.

    The latter is what a program sends whose variable for the key is empty.

    Raises:
        UnauthenticatedError: There is a header of another form.
    """
    if header is None:
        return None
    scheme, _, key = header.partition(" ")
    if scheme.lower() != "bearer":
        raise UnauthenticatedError("Send the key as: Authorization: Bearer <key>.")
    return key.strip() or None
