"""Measures what an event loop's thread computes without a pause: the CPU time of each callback, and where it went.

CPU time of the thread is not lengthened by other processes or by other threads of the process. Garbage collections are
counted separately: they stop every thread, whichever thread they happen in.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Final

ROOT: Final = str(Path(__file__).resolve().parents[1])
LIMIT_SECONDS: Final = 0.020
"""How long the event loop's thread may compute without a pause."""
_EVERY: Final = 0.002
_FRAMES: Final = 4


@dataclass(frozen=True, slots=True)
class Stretch:
    """One callback of the loop, from its beginning to its end."""

    seconds: float
    where: str
    """The frames that were seen most often, innermost first; empty for a short stretch."""


class LoopProbe:
    """Measures the loop that runs in the thread that made it.

    Args:
        limit: Seconds above which it is noted where the time went.
    """

    def __init__(self, limit: float = LIMIT_SECONDS) -> None:
        self._limit = limit
        self._thread = threading.get_ident()
        self._clock = time.pthread_getcpuclockid(self._thread)
        self._began: float | None = None
        self._seen: Counter[str] = Counter()
        self._longest = Stretch(0.0, "")
        self._over = 0
        self._looked: float = 0.0
        self._look_began: float = 0.0
        self.longest_look: float = 0.0
        """Seconds of CPU of the longest garbage collection."""

    def taken(self) -> tuple[Stretch, int]:
        """The longest stretch since the last call, and how many were over the limit."""
        longest, over = self._longest, self._over
        self._longest, self._over = Stretch(0.0, ""), 0
        return longest, over

    @contextlib.contextmanager
    def watching(self) -> Iterator[LoopProbe]:
        """Measure within the block."""
        run = asyncio.Handle._run  # noqa: SLF001 - every callback of every loop goes through it
        ended = threading.Event()
        sampler = threading.Thread(target=self._sample, args=(ended,), name="sampler", daemon=True)

        def measured(handle: asyncio.Handle) -> None:
            if threading.get_ident() != self._thread:
                run(handle)
                return
            self._looked = 0.0
            began = self._began = time.thread_time()
            run(handle)
            self._began = None
            self._note(time.thread_time() - began - self._looked, handle)

        asyncio.Handle._run = measured  # type: ignore[method-assign,assignment]  # noqa: SLF001 - put back below
        sampler.start()
        gc.callbacks.append(self._look)
        try:
            yield self
        finally:
            asyncio.Handle._run = run  # type: ignore[method-assign]  # noqa: SLF001 - as it was
            gc.callbacks.remove(self._look)
            ended.set()
            sampler.join()

    def _look(self, phase: str, _: object) -> None:
        """Called at the beginning and at the end of a garbage collection; no other one begins meanwhile."""
        if phase == "start":
            self._look_began = time.thread_time()
            return
        took = time.thread_time() - self._look_began
        self.longest_look = max(self.longest_look, took)
        if threading.get_ident() == self._thread:
            self._looked += took

    def _note(self, seconds: float, handle: asyncio.Handle) -> None:
        self._over += seconds > self._limit
        if seconds > self._longest.seconds:
            seen = max(self._seen, key=lambda name: self._seen[name]) if self._seen else _named(handle)
            self._longest = Stretch(seconds, seen if seconds > self._limit / 2 else "")
        if self._seen:
            self._seen = Counter()

    def _sample(self, ended: threading.Event) -> None:
        while not ended.wait(_EVERY):
            began = self._began
            if began is None or time.clock_gettime(self._clock) - began < self._limit / 4:
                continue
            frame = sys._current_frames().get(self._thread)  # noqa: SLF001 - the only way to see another thread
            if frame is not None and self._began == began:
                self._seen[_place(frame)] += 1


def _place(frame: FrameType) -> str:
    """The innermost frames of the project's code, and the innermost frame of all."""
    names: list[str] = []
    step: FrameType | None = frame
    while step is not None and len(names) < _FRAMES:
        path = step.f_code.co_filename
        if path.startswith(ROOT) and ".venv" not in path and not path.endswith("loop_probe.py"):
            names.append(f"{path.removeprefix(ROOT)[1:]}:{step.f_code.co_name}")
        elif not names and step is frame:
            names.append(f"{Path(path).parent.name}/{Path(path).name}:{step.f_code.co_name}")
        step = step.f_back
    return " < ".join(names)


def _named(handle: asyncio.Handle) -> str:
    """The name of a callback's task, or of the callback."""
    task = getattr(handle._callback, "__self__", None)  # type: ignore[attr-defined]  # noqa: SLF001 - as debuggers do
    if isinstance(task, asyncio.Task):
        return getattr(task.get_coro(), "__qualname__", "a task")
    return "a callback"
