"""Puts the application together: routers, error handlers, middleware, description."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Final

from fastapi import FastAPI
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.routing import BaseRoute

from app.bootstrap import anonymous_allowed, is_open
from app.http import (
    anchors,
    chat,
    compactions,
    context,
    conversations,
    description,
    errors,
    events,
    examination,
    export,
    files,
    health,
    limits,
    messages,
    pins,
    presets,
    release,
    search,
    segments,
    stats,
    tokens,
    turns,
    users,
    verifications,
)
from app.http.browser import pages, session
from app.http.errors import SHOULD_RETRY
from app.http.hosts import KnownHosts
from app.http.lifespan import PlainRefusal
from app.http.limit_headers import HEADERS as RATE_HEADERS
from app.http.middleware import BodyLimit, Deadline, LastResort, RequestContext
from app.http.openai import chat as openai_chat
from app.http.openai import conversations as openai_conversations
from app.http.openai import models as openai_models
from app.http.openai import responses as openai_responses
from app.http.openai import socket as openai_socket
from app.http.openai.inputs import CONVERSATION_HEADERS, QUESTION_HEADER, TASK_HEADER, USER_HEADERS
from app.http.openai.sending import HEADER
from app.http.shutdown import Stopping
from app.http.ui import routes as ui
from app.settings import Settings
from app.version import VERSION

ROUTERS: Final = (
    conversations.router,
    release.router,
    examination.router,
    export.router,
    messages.router,
    search.router,
    pins.router,
    files.router,
    anchors.router,
    segments.router,
    chat.router,
    turns.router,
    ui.router,
    compactions.operations,
    compactions.router,
    verifications.router,
    context.router,
    events.router,
    presets.router,
    stats.router,
    tokens.router,
    limits.router,
    limits.operations,
    users.router,
    health.router,
    session.router,
    pages.router,
    openai_models.router,
    openai_chat.router,
    openai_responses.router,
    openai_conversations.router,
    openai_socket.router,
)
BUSIEST_ROUTERS: Final = (messages.router, context.router, chat.router)
"""The routers that are looked at first; all others come after them, in their order in ``ROUTERS``."""
EXPOSED_HEADERS: Final = ("X-Request-Id", "ETag", "Location", "Retry-After", *RATE_HEADERS, HEADER, SHOULD_RETRY)
SDK_HEADERS: Final = (
    "arch",
    "helper-method",
    "lang",
    "os",
    "package-version",
    "retry-count",
    "runtime",
    "runtime-version",
    "timeout",
)
"""Headers in which OpenAI's SDKs describe themselves, which they also send from a browser."""
ACCEPTED_HEADERS: Final = (
    "Authorization",
    "Content-Type",
    "Idempotency-Key",
    "If-Match",
    "Last-Event-ID",
    "X-Request-Id",
    "Cache-Control",
    *CONVERSATION_HEADERS,
    *USER_HEADERS,
    TASK_HEADER,
    QUESTION_HEADER,
    *(f"x-stainless-{word}" for word in SDK_HEADERS),
    "OpenAI-Beta",
)
METHODS: Final = ("GET", "POST", "PATCH", "PUT", "DELETE")

Lifespan = Callable[[FastAPI], AbstractAsyncContextManager[None]]


def build_app(settings: Settings, lifespan: Lifespan | None = None) -> FastAPI:
    """The application, complete except for its container."""
    shows_docs = is_open(settings, opened=settings.docs_open)
    app = FastAPI(
        title=description.TITLE,
        version=VERSION,
        description=description.TEXT,
        redoc_url=None,
        docs_url=None,
        openapi_url="/openapi.json" if shows_docs else None,
        redirect_slashes=False,
        lifespan=lifespan,
        middleware=middleware(settings),
    )
    app.state.stopping = Stopping()
    # The routers' own routes: `include_router` would build each anew, for every application, within its first request.
    app.router.routes.extend(route for router in ROUTERS for route in router.routes)
    errors.install(app, list(app.routes))
    description.install(app)
    app.router.routes.sort(key=_route_order)
    return app


def _route_order(route: BaseRoute) -> int:
    orders = (order for order, router in enumerate(BUSIEST_ROUTERS) if route in router.routes)
    return next(orders, len(BUSIEST_ROUTERS))


def middleware(settings: Settings) -> list[Middleware]:
    """The middleware, outermost first; see ``middleware.py``."""
    known_hosts = [Middleware(KnownHosts, allowed=settings.allowed_hosts)] if anonymous_allowed(settings) else []
    return [
        Middleware(PlainRefusal),
        Middleware(RequestContext),
        Middleware(
            CORSMiddleware,
            allow_origins=settings.cors_origins,
            allow_methods=METHODS,
            allow_headers=ACCEPTED_HEADERS,
            expose_headers=EXPOSED_HEADERS,
        ),
        Middleware(LastResort),
        *known_hosts,
        Middleware(BodyLimit, limit=settings.max_body_bytes, file_limit=settings.max_file_bytes),
        Middleware(Deadline, seconds=settings.request_timeout_seconds),
    ]
