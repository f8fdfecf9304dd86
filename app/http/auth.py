"""Who asks, and whether they may."""

from __future__ import annotations

from fastapi import Request

from app.bootstrap import Container
from app.core.model.errors import UnauthenticatedError
from app.core.model.records import Scope


async def authorize(request: Request, scope: Scope) -> None:
    """Find the principal of the request's key and keep it in ``request.state``.

    Raises:
        UnauthenticatedError: There is no valid key.
        ForbiddenError: The key lacks the scope.
    """
    container: Container = request.app.state.container
    principal = await container.keys.authenticate(bearer(request.headers.get("authorization")))
    principal.require(scope)
    request.state.principal = principal


def bearer(header: str | None) -> str | None:
    """The key in an ``Authorization`` header; ``None`` when there is no header at all.

    Raises:
        UnauthenticatedError: There is a header, but no bearer key in it.
    """
    if header is None:
        return None
    scheme, _, key = header.partition(" ")
    if scheme.lower() != "bearer" or not key.strip():
        raise UnauthenticatedError("Send the key as: Authorization: Bearer <key>.")
    return key.strip()
