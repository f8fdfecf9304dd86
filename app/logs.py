"""How log lines look: structlog events with ids and numbers, never message text."""

from __future__ import annotations

import logging
import sys

import structlog

from app.settings import Settings


def configure_logs(settings: Settings) -> None:
    """Set up structlog for this process: ``console`` for people, ``json`` for machines; one line per event."""
    for_machines = settings.log_format == "json"
    renderer: structlog.typing.Processor = (
        structlog.processors.JSONRenderer()
        if for_machines
        else structlog.dev.ConsoleRenderer(
            colors=sys.stderr.isatty(),
            pad_event_to=28,
            # The default one shows the local variables of every frame, and with them people's messages.
            exception_formatter=structlog.dev.plain_traceback,
        )
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso" if for_machines else "%H:%M:%S", utc=for_machines),
            *([structlog.processors.format_exc_info] if for_machines else []),
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(settings.log_level),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=False,
    )
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s %(message)s")
