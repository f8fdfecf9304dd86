"""Leases, heartbeats, sweeps and polls: settings of each process, checked together before anything starts."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from app.bootstrap import Container, Parts
from app.core.model.timings import DEFAULT_TIMINGS, VERIFIER_CALLS, Timings
from app.devserver.configured import read_settings
from app.devserver.errors import CannotStartError
from app.infrastructure.clock import SystemClock
from app.settings import Settings
from tests.fakes import (
    FakeClock,
    FakeEventBus,
    FakeJobQueue,
    FakeModels,
    LocalTurnStreams,
    ScriptedChatModel,
    ScriptedSummarizer,
    well,
)
from worker.celery_app import build_app


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_without_settings_they_are_what_they_always_were() -> None:
    assert Settings().timings == DEFAULT_TIMINGS
    assert (DEFAULT_TIMINGS.lease_seconds, DEFAULT_TIMINGS.heartbeat_seconds) == (9, 3)


@pytest.mark.parametrize("name", sorted({field.name for field in fields(Timings)} - {"call_seconds"}))
def test_each_is_a_setting(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THROUGHLINE_LEASE_SECONDS", "300")
    monkeypatch.setenv(f"THROUGHLINE_{name.upper()}", "7.25" if name != "lease_seconds" else "725")
    assert getattr(Settings().timings, name) == (7.25 if name != "lease_seconds" else 725)


@pytest.mark.parametrize(
    ("given", "seconds"),
    [
        ({}, 300),
        ({"compaction_timeout_seconds": 20}, 300),
        ({"compaction_timeout_seconds": 600}, 3_000),
        ({"compaction_timeout_seconds": 600, "job_seconds": 40}, 40),
    ],
)
def test_a_job_has_time_for_five_calls_unless_a_setting_says_otherwise(given: dict[str, Any], seconds: float) -> None:
    """A compaction by a slow model may need several calls."""
    settings = Settings(**given)
    assert settings.timings.job_seconds == seconds
    limits = build_app(settings).conf
    assert seconds < settings.timings.task_seconds < limits.task_soft_time_limit < limits.task_time_limit
    assert limits.task_time_limit < limits.broker_transport_options["visibility_timeout"]


@pytest.mark.parametrize("seconds", [0.5, 60, 600])
def test_calls_behind_a_compaction_have_the_time_that_a_summarizers_call_has(seconds: float) -> None:
    timings = Settings(compaction_timeout_seconds=seconds, job_seconds=40).timings
    assert seconds < timings.call_deadline_seconds < seconds + 5
    assert timings.call_deadline_seconds < timings.detail_claim_seconds
    assert VERIFIER_CALLS * timings.call_deadline_seconds < timings.verification_claim_seconds
    assert timings.job_seconds + timings.verification_claim_seconds <= timings.task_seconds


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"LEASE_SECONDS": "6"}, "heartbeat_seconds is 3: it may be at most a third of lease_seconds, 2"),
        ({"HEARTBEAT_SECONDS": "3.5"}, "heartbeat_seconds is 3.5: it may be at most a third of lease_seconds, 3"),
        ({"TURN_HEARTBEAT_SECONDS": "4"}, "turn_heartbeat_seconds is 4: it may be at most a third of lease_seconds, 3"),
        ({"SWEEP_SECONDS": "0"}, "SWEEP_SECONDS: Input should be greater than 0"),
        ({"POLL_SECONDS": "3601"}, "POLL_SECONDS: Input should be less than or equal to 3600"),
        ({"POLL_SECONDS": "nan"}, "POLL_SECONDS: Input should be a finite number"),
        ({"WATCHDOG_SECONDS": "0.5"}, "watchdog_seconds must be 0 (off) or at least 1"),
    ],
)
def test_values_that_do_not_go_together_stop_the_start_in_one_line(
    variables: dict[str, str], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(f"THROUGHLINE_{name}", value)
    with pytest.raises(CannotStartError) as raised:
        read_settings()
    assert said.lower() in str(raised.value).lower()
    assert "\n" not in str(raised.value)
    assert ": :" not in str(raised.value)


def test_a_value_that_is_no_time_is_refused_also_where_no_settings_are_read() -> None:
    with pytest.raises(ValueError, match="poll_seconds must be more than 0"):
        Timings(poll_seconds=-1)


async def test_every_service_gets_those_of_the_settings() -> None:
    async def yes() -> bool:
        return True

    parts = Parts(
        uow=lambda _: pytest.fail("nothing is read here"),
        bus=FakeEventBus(FakeClock()),
        queue=FakeJobQueue(),
        streams=LocalTurnStreams(),
        models=FakeModels(ScriptedChatModel(), ScriptedSummarizer()),
        clock=SystemClock(),
        database_state=well,
        row_security=yes,
    )
    settings = Settings(lease_seconds=1.5, heartbeat_seconds=0.4, turn_heartbeat_seconds=0.2, sweep_seconds=0.3)
    container = Container(settings, parts, "process:one")
    assert container.chat._shell.timings == settings.timings != DEFAULT_TIMINGS
    assert container.sweeper._timings == settings.timings
