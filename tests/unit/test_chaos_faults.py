"""Faults that are withdrawn are withdrawn completely."""

from __future__ import annotations

import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from bench.chaos.faults import Conductor
from bench.chaos.plan import Fault
from tests.acceptance.service import until


def stands_still(process: subprocess.Popen[bytes]) -> bool:
    return Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


def test_every_process_of_a_frozen_server_goes_on_also_one_that_is_listed_no_more() -> None:
    ended, first, second = (subprocess.Popen(["sleep", seconds]) for seconds in ("0", "60", "60"))
    ended.wait()
    listed = {ended.pid, first.pid, second.pid}
    cluster: Any = SimpleNamespace(servers=SimpleNamespace(pids=lambda _: listed))
    fault = Fault(at=0, kind="freeze of a server", target="PostgreSQL", seconds=1)
    conductor = Conductor(cluster, lambda: 0.0)
    try:
        conductor._freeze(fault)
        until(lambda: stands_still(first) and stands_still(second), what="the freeze")
        listed = {ended.pid}
        conductor._thaw(fault)
        until(lambda: not stands_still(first) and not stands_still(second), what="the thaw")
    finally:
        for process in (first, second):
            process.kill()
            process.wait()
