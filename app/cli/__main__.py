"""``python -m app.cli``."""

from app.cli.commands import app

app()
