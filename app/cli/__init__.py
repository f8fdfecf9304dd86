"""``throughline``: the command line, and the code that starts and watches the processes of the service."""

from app.cli.interrupts import ends_at_once

# The imports below take seconds when nothing is cached, and nothing is begun before they are done.
with ends_at_once():
    from app.cli.commands import app

__all__ = ["app"]
