"""Log lines of libraries: for machines they look like ours, and they have no known secrets."""

from __future__ import annotations

import asyncio
import errno
import gc
import io
import json
import logging
import sys
import unicodedata
from collections.abc import Awaitable, Callable
from typing import Any, cast
from uuid import UUID, uuid4

import pytest
import structlog

from app.core.model.timings import DEFAULT_TIMINGS
from app.infrastructure.clock import SystemClock
from app.infrastructure.counters import RedisCounters
from app.infrastructure.turn_streams import RedisTurnStreams
from app.infrastructure.wake_ups import WakeUpHub
from app.logs import JsonFormatter, RedactingFormatter, configure_logs
from app.settings import Settings
from app.usecases.ports import Place
from app.usecases.shared.work_records import WorkRecords

NO_REDIS = "redis://127.0.0.1:1"
SECRET = "AIzaSyA1234567890abcdefghijklmnopqrstuvw"


def failing() -> None:
    raise ValueError(f"key {SECRET}")


def record(*, with_error: bool = False) -> logging.LogRecord:
    found = None
    if with_error:
        try:
            failing()
        except ValueError:
            found = sys.exc_info()
    return logging.LogRecord("celery.app.trace", logging.WARNING, __file__, 1, "Task %s\nfailed", ("x",), found)


@pytest.mark.parametrize("with_error", [False, True])
def test_a_librarys_line_is_one_object_for_machines(*, with_error: bool) -> None:
    line = JsonFormatter().format(record(with_error=with_error))
    assert "\n" not in line
    told = json.loads(line)
    assert (told["logger"], told["level"]) == ("celery.app.trace", "warning")
    assert told["event"].startswith("Task x\nfailed")
    assert told["timestamp"].endswith("Z")
    assert ("Traceback" in told["event"]) is with_error
    assert SECRET not in line
    assert SECRET in logging.Formatter().format(record(with_error=True)), "the control: it stands in the error"


SAID = "Please tell nobody about Kestrel"


def crash() -> None:
    try:
        int(SAID)
    except ValueError as error:
        raise ExceptionGroup(f"of {SAID}", [KeyError(SAID)]) from error


@pytest.mark.usefixtures("plain_logs")
@pytest.mark.parametrize("log_format", ["console", "json"])
def test_a_traceback_has_places_and_kinds_but_no_text_of_an_error(
    log_format: str, capsys: pytest.CaptureFixture[str]
) -> None:
    configure_logs(Settings(log_format=log_format))
    formatter = JsonFormatter() if log_format == "json" else RedactingFormatter("%(message)s")
    try:
        crash()
    except ExceptionGroup:
        structlog.get_logger().exception("turn.crashed")
        line = formatter.format(logging.LogRecord("asyncio", logging.ERROR, "", 1, "lost", (), sys.exc_info()))
    for written in (capsys.readouterr().err, line):
        assert "in crash" in written
        assert all(kind in written for kind in ("ValueError", "ExceptionGroup", "KeyError"))
        assert SAID not in written


def test_a_traceback_says_which_address_refuses_a_connection() -> None:
    try:
        raise ConnectionRefusedError(errno.ECONNREFUSED, "Connect call failed ('127.0.0.1', 5432)")
    except OSError:
        line = RedactingFormatter("%(message)s").format(
            logging.LogRecord("asyncio", logging.ERROR, "", 1, "lost", (), sys.exc_info())
        )
    assert line.endswith("ConnectionRefusedError: Connect call failed ('127.0.0.1', 5432)")


@pytest.mark.usefixtures("plain_logs")
async def test_of_a_lost_task_no_text_of_its_error_is_told(caplog: pytest.LogCaptureFixture) -> None:
    async def fail() -> None:
        raise ValueError(SAID)

    configure_logs(Settings())
    task = asyncio.create_task(fail())
    await asyncio.sleep(0.01)
    del task
    gc.collect()
    (record,) = caplog.records
    assert SAID in str(record.exc_info), "the control"
    assert RedactingFormatter("%(message)s").format(record).startswith("Task exception was never retrieved\nTraceback")
    assert SAID not in RedactingFormatter("%(message)s").format(record)


def test_for_people_it_stays_a_line_of_words() -> None:
    assert RedactingFormatter("%(levelname)s %(message)s").format(record()).startswith("WARNING Task x")


@pytest.mark.usefixtures("plain_logs")
def test_no_terminal_obeys_what_a_provider_named_something(capsys: pytest.CaptureFixture[str]) -> None:
    name = "resp_\x1b]0;title\x07\x9b2J"
    configure_logs(Settings())
    structlog.get_logger().warning("provider_copy.given_up", name=name)
    written = capsys.readouterr().err + RedactingFormatter("%(message)s").format(
        logging.LogRecord("uvicorn", logging.WARNING, __file__, 1, "lost %s\nit", (name,), None)
    )
    assert written.count(r"resp_\x1b]0;title\x07\x9b2J") == 2
    assert not [sign for sign in written if unicodedata.category(sign) == "Cc" and sign != "\n"]


class FullDisk(io.StringIO):
    """A file that takes nothing for now."""

    is_full = True

    def write(self, text: str) -> int:
        if self.is_full:
            raise OSError(28, "No space left on device")
        return super().write(text)


@pytest.mark.usefixtures("plain_logs")
def test_nothing_fails_because_its_line_cannot_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    disk = FullDisk()
    monkeypatch.setattr("sys.stderr", disk)
    configure_logs(Settings())
    log = structlog.get_logger()
    log.info("compaction.applied")
    log.error("database.ill")
    disk.is_full = False
    log.warning("start.waits")
    assert [line.split()[-1] for line in disk.getvalue().splitlines()] == ["start.waits"]


async def subscribe() -> None:
    async with WakeUpHub(cast("Any", None), lambda _: ()).subscribe(uuid4()):
        pass


async def follow() -> None:
    async with RedisTurnStreams(NO_REDIS).follow(uuid4()):
        pass


async def give_back() -> None:
    RedisCounters(NO_REDIS).release(Place(id=uuid4(), names=()))


async def keep() -> None:
    RedisCounters(NO_REDIS)._start_renewing()


async def take_off_the_record() -> None:
    def no_database(_: UUID | None) -> Any:
        raise AssertionError

    WorkRecords(no_database, SystemClock(), uuid4, uuid4(), DEFAULT_TIMINGS).remove(
        cast("Any", Place(id=uuid4(), names=()))
    )


@pytest.mark.parametrize(
    ("owner", "method", "begin"),
    [
        (WakeUpHub, "_run", subscribe),
        (RedisTurnStreams, "_run", follow),
        (RedisCounters, "_release_until_done", give_back),
        (RedisCounters, "_renew", keep),
        (WorkRecords, "_remove", take_off_the_record),
    ],
)
async def test_what_works_for_all_requests_does_not_log_the_id_of_the_one_that_began_it(
    owner: type, method: str, begin: Callable[[], Awaitable[None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[dict[str, Any]] = []

    async def look(_: object) -> None:
        seen.append(structlog.contextvars.get_contextvars())

    monkeypatch.setattr(owner, method, look)
    with structlog.contextvars.bound_contextvars(request_id="of one request"):
        await begin()
        await asyncio.sleep(0)
    assert seen == [{}]
