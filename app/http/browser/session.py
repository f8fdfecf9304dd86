"""``/ui/session``: exchanges a key for a cookie that scripts cannot read."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Body, Request
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field

from app.core.model.errors import ForbiddenError
from app.http.auth import address_of
from app.http.browser.own_page import COOKIE, is_same_origin
from app.http.dependencies import Services
from app.http.routing import StrictRoute

router = APIRouter(prefix="/ui/session", route_class=StrictRoute, include_in_schema=False)


class Login(BaseModel):
    """The body of a login: an API key."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    key: Annotated[str, Field(min_length=1, max_length=200)]


@router.post("", status_code=204)
async def log_in(request: Request, body: Annotated[Login, Body()], services: Services) -> Response:
    """Begin a session.

    Raises:
        ForbiddenError: The request comes from another site.
        UnauthenticatedError: The key is unknown, expired or revoked.
        RateLimitedError: Too many keys from the address failed.
    """
    _refuse_others(request)
    session = await services.sessions.begin(body.key, address_of(request))
    response = Response(status_code=204, headers={"Cache-Control": "no-store"})
    response.set_cookie(
        COOKIE,
        session.token,
        max_age=int(session.life.total_seconds()),
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
    )
    return response


@router.delete("", status_code=204)
async def log_out(request: Request) -> Response:
    """End the session in this browser. Raises ``ForbiddenError`` if the request comes from another site."""
    _refuse_others(request)
    response = Response(status_code=204, headers={"Cache-Control": "no-store"})
    response.delete_cookie(COOKIE, httponly=True, samesite="strict", secure=request.url.scheme == "https")
    return response


def _refuse_others(request: Request) -> None:
    if not is_same_origin(request):
        raise ForbiddenError("Log in on the service's own page.")
