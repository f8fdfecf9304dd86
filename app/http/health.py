"""Whether the process is alive, and whether it can work."""

from __future__ import annotations

import asyncio

from fastapi import APIRouter, Request
from fastapi.responses import PlainTextResponse

from app.bootstrap import Container, is_open
from app.core.model.errors import DependencyUnavailableError, NotFoundError
from app.http import schemas
from app.http.dependencies import Services
from app.http.routing import StrictRoute
from app.infrastructure.metrics import CONTENT_TYPE

LOOK_SECONDS = 5.0
"""How long a look at readiness may take. Whoever asks meanwhile waits for it too."""

router = APIRouter(route_class=StrictRoute, tags=["health"])


@router.head("/healthz", include_in_schema=False)  # some monitors ask this way
@router.get("/healthz")
async def healthz() -> schemas.Health:
    """The process answers."""
    return schemas.Health()


@router.get(
    "/metrics",
    response_class=PlainTextResponse,
    responses={
        200: {"description": "Prometheus' text format.", "content": {"text/plain": {"schema": {"type": "string"}}}}
    },
)
async def metrics(services: Services) -> PlainTextResponse:
    """What all processes did since this one started: sums over all tenants, without ids or text.

    Other machines can read it only if the operator allows that (`THROUGHLINE_METRICS_OPEN`).
    """
    if not is_open(services.settings, opened=services.settings.metrics_open):
        raise NotFoundError("The metrics are not open here: an operator opens them with THROUGHLINE_METRICS_OPEN.")
    return PlainTextResponse(await services.measuring.text(), media_type=CONTENT_TYPE)


@router.head("/readyz", include_in_schema=False)
@router.get("/readyz")
async def readyz(request: Request, services: Services) -> schemas.Readiness:
    """Postgres is needed, read-only to show messages; without Redis or a sweeper everything works, but later."""
    # Whoever asks meanwhile gets the same answer: this needs no key, and must not take all connections to Postgres.
    looking: asyncio.Task[schemas.Readiness] | None = getattr(request.app.state, "looking", None)
    if looking is None or looking.done():
        looking = request.app.state.looking = asyncio.create_task(_look(services))
    return await asyncio.shield(looking)


async def _look(services: Container) -> schemas.Readiness:
    try:
        async with asyncio.timeout(LOOK_SECONDS):
            return await _readiness(services)
    except TimeoutError as error:
        raise _away() from error


def _away() -> DependencyUnavailableError:
    return DependencyUnavailableError("Postgres is away.", retry_after=2, extra={"postgres": "away"})


async def _readiness(services: Container) -> schemas.Readiness:
    database = await services.parts.database_state()
    if database == "away":
        raise _away()
    redis_ok, protected = await services.parts.bus.ping(), await services.parts.row_security()
    is_well = database == "ok" and redis_ok and services.background.is_well
    return schemas.Readiness(
        status="ok" if is_well else "degraded",
        postgres=database,
        redis="ok" if redis_ok else "away",
        row_security="on" if protected else "off",
        background="ok" if services.background.is_well else "restarting",
    )
