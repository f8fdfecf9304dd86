"""The HTTP process: ``uvicorn app.main:create_app --factory``."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from fastapi import FastAPI

from app.bootstrap import Container, build_container
from app.http.application import build_app
from app.http.lifespan import living
from app.logs import configure_logs
from app.settings import Settings


def create_app(settings: Settings | None = None, container: Container | None = None) -> FastAPI:
    """The application.

    Args:
        settings: Read from the environment when absent.
        container: Built at start, and closed at the end, when absent; a given one is its maker's to close.
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
            async with living(container, app.state.stopping):
                yield
        finally:
            if given is None:
                await container.close()

    return lifespan
