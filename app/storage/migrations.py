"""Migrations from Python, from any working directory, with or without a running event loop."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from alembic import command
from alembic.config import Config

from app.storage.database_errors import translated

SCRIPTS = Path(__file__).resolve().parent / "alembic"
"""What a wheel has too; ``alembic.ini``, which a checkout has, is for the command line."""
URL_ATTRIBUTE = "database_url"


def alembic_config(url: str) -> Config:
    """Alembic's settings for that database."""
    config = Config()
    config.set_main_option("script_location", str(SCRIPTS).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes[URL_ATTRIBUTE] = url
    return config


def run_migrations(url: str, revision: str = "head") -> None:
    """Bring the database up to a revision; blocks. Raises ``DependencyUnavailableError``.

    In a thread of its own, since Alembic's environment runs an event loop and the caller may have one.
    """
    with ThreadPoolExecutor(1) as thread, translated():
        thread.submit(command.upgrade, alembic_config(url), revision).result()
