"""``throughline move-media``: data that versions before kept within messages goes to where it is kept today."""

from __future__ import annotations

import asyncio

import typer

from app.cli.complaints import ComplaintError, one_clear_line
from app.core.model.errors import DomainError
from app.devserver import EmbeddedServers
from app.devserver.configured import read_settings
from app.devserver.preflight import check_database
from app.storage.database import make_engine
from app.storage.repositories.contents import Place
from app.storage.unit_of_work import unit_of_work_factory
from app.usecases.history.moving import move_step


def move_media() -> None:
    """Move images and files that versions before kept within their messages; the service may run, and you may stop."""
    with one_clear_line():
        settings = read_settings()
        try:
            if settings.database_url:
                check_database(settings.database_url)
                moved = asyncio.run(_move(settings.database_url))
            else:
                with EmbeddedServers(settings.data_dir, valkey=False) as endpoints:
                    moved = asyncio.run(_move(endpoints.database_url))
        except DomainError as error:
            raise ComplaintError(f"{error.detail} What is moved stays moved: begin again.") from None
        typer.echo(f"Data of {moved:,} message{'s' * (moved != 1)} moved; nothing is left to move.")


async def _move(url: str) -> int:
    engine, moved = make_engine(url, pool_size=1, max_overflow=1), 0
    try:
        begin = unit_of_work_factory(engine)
        place: Place | None = None
        while True:
            count, place = await move_step(begin, place)
            moved += count
            if place is None:
                return moved
    finally:
        await engine.dispose()
