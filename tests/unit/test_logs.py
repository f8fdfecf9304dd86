"""Log lines hold ids and numbers: no message text, not even when something breaks."""

from __future__ import annotations

import logging
from typing import Literal

import pytest
import structlog

from app.adapters.database import make_engine
from app.logs import RedactingFormatter, configure_logs
from app.settings import Settings

SECRET = "the cellar holds eleven boxes"


@pytest.mark.parametrize("log_format", ["console", "json"])
def test_an_exception_is_logged_without_the_values_of_variables(
    log_format: Literal["console", "json"], capsys: pytest.CaptureFixture[str]
) -> None:
    before = structlog.get_config()
    try:
        configure_logs(Settings(_env_file=None, log_format=log_format))
        log_a_failure(content=SECRET)
    finally:
        structlog.configure(**before)
    written = capsys.readouterr().err
    assert "turn.crashed" in written
    assert "ZeroDivisionError" in written
    assert "log_a_failure" in written, "where it happened"
    assert SECRET not in written


def log_a_failure(content: str) -> None:
    try:
        print(len(content) / 0)
    except ZeroDivisionError:
        structlog.get_logger("test").exception("turn.crashed")


def test_an_error_of_the_database_does_not_quote_what_was_to_be_stored() -> None:
    assert make_engine("postgresql://app@localhost/none").sync_engine.hide_parameters


CANARY = "sk_live_9fA3kLmQ2xZ7pR4tV8wB"  # gitleaks:allow - the shape of a key, not one


@pytest.mark.parametrize("log_format", ["console", "json"])
def test_a_secret_that_slips_into_a_line_is_redacted(
    log_format: Literal["console", "json"], capsys: pytest.CaptureFixture[str]
) -> None:
    before = structlog.get_config()
    try:
        configure_logs(Settings(_env_file=None, log_format=log_format))
        log = structlog.get_logger("test")
        log.warning("provider.refused", reason=f"bad key {CANARY}", nested={"header": [CANARY]}, password="hunter2!")
        fail_with(CANARY)
    finally:
        structlog.configure(**before)
    written = capsys.readouterr().err
    assert CANARY not in written
    assert "hunter2!" not in written
    assert written.count("[REDACTED:stripe_key]") == 3
    assert "provider.refused" in written
    assert "ValueError" in written


def fail_with(words: str) -> None:
    try:
        int(words)
    except ValueError:
        structlog.get_logger("test").exception("turn.crashed")


def test_a_secret_in_a_line_of_a_library_is_redacted() -> None:
    record = logging.LogRecord("httpx", logging.WARNING, __file__, 1, "GET /?access_token=%s", (CANARY,), None)
    line = RedactingFormatter("%(levelname)s %(name)s %(message)s").format(record)
    assert line.startswith("WARNING httpx GET /?access_token=[REDACTED:")
    assert CANARY not in line
