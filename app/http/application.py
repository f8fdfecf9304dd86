"""Puts the application together: routers, error handlers, middleware, description."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Final

from fastapi import FastAPI
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware

from app.bootstrap import anonymous_allowed
from app.http import (
    anchors,
    chat,
    compactions,
    context,
    conversations,
    description,
    erasure,
    errors,
    events,
    examination,
    export,
    health,
    messages,
    pins,
    presets,
    release,
    search,
    segments,
    stats,
    tokens,
    turns,
)
from app.http.hosts import KnownHosts
from app.http.lifespan import PlainRefusal
from app.http.middleware import BodyLimit, Deadline, LastResort, RequestContext
from app.http.shutdown import Stopping
from app.settings import Settings

ROUTERS: Final = (
    conversations.router,
    release.router,
    examination.router,
    export.router,
    messages.router,
    search.router,
    erasure.router,
    pins.router,
    anchors.router,
    segments.router,
    chat.router,
    turns.router,
    compactions.operations,
    compactions.router,
    context.router,
    events.router,
    presets.router,
    stats.router,
    tokens.router,
    health.router,
)
EXPOSED: Final = ("X-Request-Id", "ETag", "Location", "Retry-After")
ACCEPTED: Final = (
    "Authorization",
    "Content-Type",
    "Idempotency-Key",
    "If-Match",
    "Last-Event-ID",
    "X-Request-Id",
    "Cache-Control",
)
METHODS: Final = ("GET", "POST", "PATCH", "PUT", "DELETE")

Lifespan = Callable[[FastAPI], AbstractAsyncContextManager[None]]


def build_app(settings: Settings, lifespan: Lifespan | None = None) -> FastAPI:
    """The application, with everything but a container."""
    app = FastAPI(
        title=description.TITLE,
        version=description.VERSION,
        description=description.TEXT,
        redoc_url=None,
        redirect_slashes=False,
        lifespan=lifespan,
        middleware=middleware(settings),
        generate_unique_id_function=lambda route: route.name,
    )
    app.state.stopping = Stopping()
    for router in ROUTERS:
        app.include_router(router)
    errors.install(app, [*app.routes, *(route for router in ROUTERS for route in router.routes)])
    description.install(app)
    return app


def middleware(settings: Settings) -> list[Middleware]:
    """Outermost first; see ``middleware.py``."""
    known_hosts = [Middleware(KnownHosts, allowed=settings.allowed_hosts)] if anonymous_allowed(settings) else []
    return [
        Middleware(PlainRefusal),
        Middleware(RequestContext),
        Middleware(
            CORSMiddleware,
            allow_origins=settings.cors_origins,
            allow_methods=METHODS,
            allow_headers=ACCEPTED,
            expose_headers=EXPOSED,
        ),
        Middleware(LastResort),
        *known_hosts,
        Middleware(BodyLimit, limit=settings.max_body_bytes),
        Middleware(Deadline, seconds=settings.request_timeout_seconds),
    ]
