"""Reads the settings when an API process or a worker starts, and sets up its logs."""

from __future__ import annotations

import os
import sys
from typing import Final

import structlog

from app.devserver.configured import read_settings, suspicious_variables
from app.devserver.errors import CannotStartError
from app.logs import configure_logs
from app.settings import Settings

_EXIT_CANNOT_START: Final = 2
_STARTED_BY_RUN: Final = "THROUGHLINE_EMBEDDED"
"""A variable set by ``throughline run``, which has already reported misspelled settings."""

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


def settings_of_process() -> Settings:
    """Read the settings and set up the logs. A wrong setting ends the process with one line that names it."""
    try:
        settings = read_settings()
    except CannotStartError as error:
        sys.stderr.write(f"{error}\n")
        raise SystemExit(_EXIT_CANNOT_START) from None
    configure_logs(settings)
    if _STARTED_BY_RUN not in os.environ:
        for line in suspicious_variables():
            _log.warning("start.setting_not_read", detail=line)
    return settings
