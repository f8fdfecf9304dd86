"""Log lines hold ids and numbers: no message text, not even when something breaks."""

from __future__ import annotations

from typing import Literal

import pytest
import structlog

from app.adapters.database import make_engine
from app.logs import configure_logs
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
