"""``throughline``: the command line, and what starts and watches the processes of the service."""

from app.cli.commands import app

__all__ = ["app"]
