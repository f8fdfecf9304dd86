"""A process whose interpreter is held in C: its stack is on standard error, and it ends.

Each case is a process of its own, since it is the process that ends.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
GUARD: Final = 60.0  # seconds: only against hanging for ever
BEGINNING: Final = """
import asyncio, ctypes, os, re, sys, time
from app.infrastructure.watchdog import watching

def hold_in_c():
    ctypes.PyDLL(None).sleep(4)  # unlike CDLL, it keeps the interpreter's lock

def hold_in_a_pattern():
    deadline = time.monotonic() + 4
    size = 20
    while time.monotonic() < deadline:
        re.fullmatch("(?:a|a)*b", "a" * size)
        size += 1

async def main(seconds):
    async with watching(seconds):
        await work()
    print("survived")
"""


def run(seconds: float, work: str) -> subprocess.CompletedProcess[str]:
    program = f"{BEGINNING}\n{work}\nasyncio.run(main({seconds}))\n"
    return subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=GUARD, check=False
    )


@pytest.mark.daily(1)
@pytest.mark.parametrize("held", ["hold_in_c", "hold_in_a_pattern"])
@pytest.mark.parametrize("where", ["loop", "thread"])
def test_a_loop_that_is_silent_ends_the_process_and_shows_where_it_hangs(held: str, where: str) -> None:
    call = f"{held}()" if where == "loop" else f"await asyncio.to_thread({held})"
    done = run(1, f"async def work():\n    {call}")

    assert done.returncode == 1
    assert "survived" not in done.stdout
    assert "Timeout (0:00:01)" in done.stderr
    assert f"in {held}" in done.stderr


@pytest.mark.parametrize(
    ("seconds", "work"),
    [
        pytest.param(0, "async def work():\n    hold_in_c()", id="switched off", marks=pytest.mark.long),
        pytest.param(8, "async def work():\n    hold_in_c()", id="more patient", marks=pytest.mark.long),
        pytest.param(
            3,
            "async def work():\n    await asyncio.to_thread(time.sleep, 5)",
            id="a thread that waits",
            marks=pytest.mark.long,
        ),
        pytest.param(
            3,
            "def busy():\n    end = time.monotonic() + 4\n    while time.monotonic() < end:\n        sum(range(1000))\n"
            "async def work():\n    await asyncio.to_thread(busy)",
            id="a thread that works",
        ),
    ],
)
def test_control_whoever_is_not_silent_for_so_long_lives(seconds: float, work: str) -> None:
    done = run(seconds, work)

    assert (done.returncode, done.stdout.strip()) == (0, "survived"), done.stderr


@pytest.mark.long
def test_after_the_block_nobody_is_ended() -> None:
    done = run(1, "async def work():\n    await asyncio.sleep(0.1)\nold = main\n"
        "async def main(seconds):\n    await old(seconds)\n    time.sleep(2)")  # fmt: skip

    assert (done.returncode, done.stdout.strip()) == (0, "survived"), done.stderr


@pytest.mark.long
def test_a_fork_beside_it_is_watched_by_itself() -> None:
    """In the worker the parent is watched while it replaces a child; the child does not get the parent's timer."""
    done = run(
        2,
        """
async def work():
    await asyncio.sleep(0.1)
    child = os.fork()
    if child == 0:
        async def in_child():
            async with watching(1):
                hold_in_c()
        import threading
        thread = threading.Thread(target=lambda: asyncio.run(in_child()))
        thread.start()
        thread.join()
        os._exit(0)
    _, status = await asyncio.to_thread(os.waitpid, child, 0)
    print("child", os.waitstatus_to_exitcode(status))
""",
    )

    assert done.stdout.split() == ["child", "1", "survived"], done.stderr
    assert "in hold_in_c" in done.stderr
