"""``throughline move-media`` and ``index-words``: bring what earlier versions stored into today's form."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import typer

from app.cli.complaints import ComplaintError, errors_as_one_line
from app.cli.databases import settings_with_database
from app.core.model.errors import DomainError
from app.storage.database import make_engine
from app.storage.repositories.contents import MessagePlace
from app.storage.unit_of_work import UnitOfWorkFactory, unit_of_work_factory
from app.usecases.history.indexing import index_step
from app.usecases.history.moving import move_step

Step = Callable[[UnitOfWorkFactory, MessagePlace | None], Awaitable[tuple[int, MessagePlace | None]]]
"""Continues from a place. Returns how many messages it changed, and the place that was reached; ``None`` at the end."""


def move_media() -> None:
    """Move images and files that versions before kept within their messages; the service may run, and you may stop."""
    with errors_as_one_line():
        moved = _count_changed_messages(move_step, "What is moved stays moved: begin again.")
        typer.echo(f"Data of {moved:,} message{'s' * (moved != 1)} moved; nothing is left to move.")


def index_words() -> None:
    """Make the word index of messages that versions before stored; the service may run, and you may stop."""
    with errors_as_one_line():
        indexed = _count_changed_messages(index_step, "What is indexed stays indexed: begin again.")
        typer.echo(f"{indexed:,} message{'s' * (indexed != 1)} indexed anew; nothing is left to index.")


def _count_changed_messages(step: Step, broken: str) -> int:
    try:
        with settings_with_database(wants=True) as settings:
            return asyncio.run(_repeat_until_done(step, str(settings.database_url)))
    except DomainError as error:
        raise ComplaintError(f"{error.detail} {broken}") from None


async def _repeat_until_done(step: Step, url: str) -> int:
    engine, changed = make_engine(url, pool_size=1, max_overflow=1), 0
    try:
        begin = unit_of_work_factory(engine)
        place: MessagePlace | None = None
        while True:
            count, place = await step(begin, place)
            changed += count
            if place is None:
                return changed
    finally:
        await engine.dispose()
