"""A worker's child whose job holds the interpreter in C: its stack is shown, and the pool starts another child."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.test_worker import Desk, a_worker, desk, until

__all__ = ["desk"]  # a fixture


@pytest.mark.long
async def test_a_child_that_hangs_in_c_is_ended_and_replaced(
    desk: Desk, tmp_path: Path, database_url: str, redis_url: str
) -> None:
    settings = {"HANG": "1", "THROUGHLINE_WATCHDOG_SECONDS": "2"}
    with a_worker(tmp_path, database_url, redis_url, job_seconds=0.2, **settings) as worker:
        hanging = await desk.send()
        await desk.reaches(hanging, "running", 40)
        log = tmp_path / "worker.log"
        await until(lambda: "Timeout (0:00:02)" in log.read_text(), 40)
        assert "in execute" in log.read_text(), "the stack says where"
        await desk.end_lease(hanging)
        row = await desk.reaches(hanging, "applied", 60)

        first, second = (child for _, child, _ in worker.notes("started"))
        assert first != second
        assert row.claims == 2
        assert worker.process.poll() is None, "the worker itself goes on"
