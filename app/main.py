"""The HTTP process: ``python -m app.main``.

``uvicorn app.main:create_app --factory`` serves the same, but does not end connections that a client leaves open.
"""

from __future__ import annotations

import argparse
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from app.infrastructure.garbage import importing

with importing():
    import uvicorn
    from fastapi import FastAPI
    from uvicorn.config import LOGGING_CONFIG

    from app.bootstrap import Container, build_container
    from app.http.application import build_app
    from app.http.connections import (
        MAX_HEAD_BYTES,
        ConnectionLimits,
        affordable_connections,
        connection_class,
        socket_class,
    )
    from app.http.lifespan import serving
    from app.logs import configure_logs
    from app.process_settings import settings_of_process
    from app.settings import Settings


def create_app(settings: Settings | None = None, container: Container | None = None) -> FastAPI:
    """The application.

    Args:
        settings: The settings; if absent, they are read from the environment.
        container: The container; if absent, one is built at start and closed at the end. The caller closes a given one.
    """
    chosen = settings or (container.settings if container else Settings())
    configure_logs(chosen)
    app = build_app(chosen, lifespan=_lifespan(chosen, container))
    if container is not None:
        app.state.container = container
    return app


def _lifespan(settings: Settings, given: Container | None) -> Callable[[FastAPI], AbstractAsyncContextManager[None]]:
    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        container = given or await build_container(settings, processes=True)
        app.state.container = container
        try:
            async with serving(container, app.state.stopping):
                yield
        finally:
            if given is None:
                await container.close()

    return lifespan


def main(arguments: Sequence[str] | None = None, factory: Callable[[], FastAPI] = create_app) -> None:
    """Serve the application that the factory makes until a signal asks for the end."""
    settings = settings_of_process()
    parser = argparse.ArgumentParser(prog="python -m app.main", description="The API.")
    parser.add_argument("--host", default=settings.host)
    parser.add_argument("--port", type=int, default=settings.port)
    parser.add_argument("--grace", type=int, default=20, help="seconds that streams have at the end (20)")
    asked, limits = parser.parse_args(arguments), limits_of(settings)
    uvicorn.run(
        factory,
        factory=True,
        host=asked.host,
        port=asked.port,
        http=connection_class(limits),
        ws=socket_class(limits),
        # As with bodies, a small compressed frame must not become a large one on the loop. A frame that is too large,
        # within this limit, gets an error.
        ws_per_message_deflate=False,
        ws_max_size=2 * settings.max_body_bytes,
        h11_max_incomplete_event_size=MAX_HEAD_BYTES,
        # In JSON logs its lines have the form of all others.
        log_config=None if settings.log_format == "json" else LOGGING_CONFIG,
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=asked.grace,
    )


def limits_of(settings: Settings) -> ConnectionLimits:
    """The limits of connections that the settings give."""
    return ConnectionLimits(
        head_seconds=settings.head_seconds,
        unread_seconds=settings.unread_seconds,
        most=affordable_connections(settings.max_connections),
    )


if __name__ == "__main__":
    main()
