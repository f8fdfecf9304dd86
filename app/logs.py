"""The form of log lines: structlog events with ids and numbers, never message text.

Secrets that slip in are redacted.
"""

from __future__ import annotations

import json
import logging
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from functools import lru_cache
from itertools import islice
from typing import Any, Final, TextIO

import structlog
from structlog.typing import EventDict, ExcInfo, Processor, WrappedLogger

from app.core.model.redaction import redact, redact_value
from app.core.text.patterns import compiled
from app.settings import Settings

_LINE: Final = "%(levelname)s %(name)s %(message)s"
"""The form in which log lines of libraries are shown to people."""
_MOST_CAUSES: Final = 10
"""How many errors of a chain are told, the last ones: one that leads back to itself has no end."""
_CONTROL: Final = compiled("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
"""Characters that a terminal obeys; tabs and line breaks are harmless."""
_ID: Final = compiled(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def configure_logs(settings: Settings) -> None:
    """Set up structlog for this process: ``console`` for people, ``json`` for machines; one line per event."""
    for_machines = settings.log_format == "json"
    renderer: Processor = (
        structlog.processors.JSONRenderer()
        if for_machines
        else structlog.dev.ConsoleRenderer(
            colors=sys.stderr.isatty(), pad_event_to=28, exception_formatter=_write_traceback
        )
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            *([structlog.processors.ExceptionRenderer(_traceback_of)] if for_machines else []),
            _redacted_event,
            *([] if for_machines else [_visible_event]),
            # Added later, since a time contains no secret, and each new text would have to be searched.
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso" if for_machines else "%H:%M:%S", utc=for_machines),
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(settings.log_level),
        logger_factory=_to_standard_error,
        cache_logger_on_first_use=False,
    )
    logging.basicConfig(level=logging.WARNING)
    logging.getLogger("asyncio").addFilter(_keep_first_line)
    for handler in logging.getLogger().handlers:
        handler.setFormatter(JsonFormatter() if for_machines else RedactingFormatter(_LINE))


class _LineLogger(structlog.PrintLogger):
    """Writes lines, and leaves out those that cannot be written: nothing fails for lack of a log.

    The disk of the log may be full, or the process that reads it may have ended.
    """

    def msg(self, message: str) -> None:
        """Write a line."""
        with suppress(OSError):
            super().msg(message)

    log = debug = info = warn = warning = msg
    fatal = failure = err = error = critical = exception = msg


def _to_standard_error(*_: object) -> structlog.PrintLogger:
    # In a test of a command, standard error ends with the command.
    return _LineLogger(sys.stderr)


def _keep_first_line(record: logging.LogRecord) -> bool:
    # Further lines show the objects that it is about: of a task that failed, its error with the text.
    record.msg = str(record.msg).partition("\n")[0]
    return True


class _WithoutTexts(logging.Formatter):
    """Formats tracebacks of libraries without the texts of errors."""

    def formatException(self, ei: object) -> str:  # noqa: N802 - the library's name
        """The traceback."""
        return _traceback_of(ei)


class RedactingFormatter(_WithoutTexts):
    """Formats log lines of libraries: lines without known secrets, and tracebacks without the texts of errors."""

    def format(self, record: logging.LogRecord) -> str:
        """The line, redacted as a whole, without characters that a terminal obeys."""
        return _with_visible_controls(redact(super().format(record)))


class RepeatedLineFilter(logging.Filter):
    """Thins out lines that a library logs again and again: the first is written, then one per ``seconds`` with a count.

    Lines are the same if their text is, before values are put into it. Only the first shows its traceback.
    """

    def __init__(self, seconds: float, monotonic: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._seconds = seconds
        self._monotonic = monotonic
        self._shown: dict[str, tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether this line is written."""
        wording, now = str(record.msg), self._monotonic()
        shown_at, left_out = self._shown.get(wording, (None, 0))
        if shown_at is not None and now - shown_at < self._seconds:
            self._shown[wording] = shown_at, left_out + 1
            return False
        self._shown[wording] = now, 0
        if left_out:
            record.msg = f"{record.getMessage().rstrip()} (left out since it was last told: {left_out})"
            record.args, record.exc_info = (), None
        return True


class JsonFormatter(_WithoutTexts):
    """Formats log lines of libraries, also Celery's, like the service's own for machines: one JSON object per line."""

    def format(self, record: logging.LogRecord) -> str:
        """The line, with its traceback if there is one, redacted as a whole."""
        event = {"event": redact(super().format(record)), "logger": record.name, "level": record.levelname.lower()}
        moment = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="microseconds")
        return json.dumps(event | {"timestamp": moment.replace("+00:00", "Z")})


def _redacted_event(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    # ``exc_info`` is left for the renderer.
    return {key: value if key == "exc_info" else _redacted_value(key, value) for key, value in event.items()}


def _visible_event(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    # In JSON they are escaped anyway.
    return {key: _with_visible_controls(value) if isinstance(value, str) else value for key, value in event.items()}


def _with_visible_controls(text: str) -> str:
    return _CONTROL.sub(lambda found: f"\\x{ord(found.group()):02x}", text)


def _redacted_value(key: str, value: object) -> object:
    if not isinstance(value, str):
        return redact_value({key: value})[key]
    return value if key.endswith("_id") and _ID.fullmatch(value) else _redacted_text(key, value)


@lru_cache(maxsize=256)
def _redacted_text(key: str, value: str) -> object:
    return redact_value({key: value})[key]


def _write_traceback(stream: TextIO, exc_info: ExcInfo) -> None:
    # The default renderer shows the local variables of every frame, and with them people's messages.
    stream.write(_traceback_of(exc_info))


def _traceback_of(exc_info: Any) -> str:
    """The kinds and places of an error and its causes, but not their texts, which may quote people's messages.

    What the operating system says of an address or a file is told: it quotes nobody.
    """
    return "\n".join(_told(exc_info[1]))


def _told(error: BaseException) -> Iterator[str]:
    for one in reversed(list(islice(_with_causes(error), _MOST_CAUSES))):
        yield "Traceback (most recent call last):"
        yield from "".join(traceback.format_tb(one.__traceback__)).splitlines()
        said = one.strerror if isinstance(one, OSError) else None
        yield f"{type(one).__qualname__}: {said}" if said else type(one).__qualname__
        for part in one.exceptions if isinstance(one, BaseExceptionGroup) else ():
            yield from _told(part)


def _with_causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
