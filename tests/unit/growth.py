"""Whether work grows faster than the text it is done on, measured in child processes that are ended when they hang.

A child measures many pieces of work, each on many texts. Before each text a timer of the kernel is set to ``LIMIT``
seconds of CPU time: it ends the child without the help of the interpreter, which a running pattern holds. The
parent then knows from a file which text it was, and starts a child for the rest.

Times of one run are compared: on texts of ``n``, ``2n``, ``4n`` and ``8n`` the least CPU time of five repetitions
each. The slope of the line through their logarithms is 1 if the work is linear and 2 if it is quadratic. It counts only
if the largest text takes more than ``NOTICED``, and if the line is as steep between the two largest texts: some work
begins only with the second text, and is linear from there, so that the line is steep only before.
"""

from __future__ import annotations

import gc
import json
import math
import os
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Final, Protocol

ROOT: Final = Path(__file__).parents[2]
LIMIT: Final = 10.0
"""The seconds of CPU time after which a child that works on one text is ended."""
NOTICED: Final = 0.002
"""The least seconds that count; shorter times cannot be measured well, and do not matter."""
STEEPEST: Final = 1.3
STEPS: Final = (1, 2, 4, 8)
REPETITIONS: Final = 5
_SHORT: Final = 0.02
"""Work that takes more seconds on the smallest text is not tried on the largest one first."""
_LONG: Final = 0.5
"""Times of more seconds are believed at once. All others are measured again on a larger text: if a little text needs no
work of some kind and a little more does, the line is steep only there.
"""
_SUSPICIOUS: Final = 1.15
"""The slope between two times, one of them measured only once, from which on all times are measured well."""
_MAX_HANGING_CHILDREN: Final = 12
"""The most children that are ended before the rest is given up: these are enough findings."""
_PLACE: Final = struct.Struct("qq")


@dataclass(frozen=True, slots=True)
class Pump:
    """Texts that grow: a beginning, as many repetitions as fit, an end."""

    before: str
    unit: str
    after: str = ""

    def text(self, length: int) -> str:
        """A text of about this length; it is longer only if its parts are."""
        room = max(length - len(self.before) - len(self.after), 0)
        return self.before + self.unit * (room // len(self.unit)) + self.after


@dataclass(frozen=True, slots=True)
class Finding:
    """Work that grows too fast, or never ends."""

    name: str
    text: str
    """The parts of which the text is made."""
    slope: float | None
    """``None`` means that the child was ended."""
    seconds: float
    """The time on the largest text, or the limit."""


class Work(Protocol):
    """A piece of work with the texts that it is tried on."""

    @property
    def name(self) -> str:
        """The name of the findings."""
        ...

    @property
    def largest(self) -> int:
        """The characters of the largest text."""
        ...

    @property
    def most(self) -> int:
        """The characters of the largest text on which a finding is confirmed: what is steep here may be level there."""
        ...

    def pumps(self) -> Sequence[Pump]:
        """The parts of its texts, always the same in the same order."""
        ...

    def run(self, text: str) -> object:
        """Do the work once."""
        ...


def measured(make: str, argument: object, *, limit: float = LIMIT) -> list[Finding]:
    """What grows too fast among the works that ``make(argument)`` gives, each tried in a child process.

    Args:
        make: ``module:function`` of a function that takes the argument and gives a sequence of ``Work``.
        argument: What JSON can carry.
        limit: Seconds of CPU time for one text.

    Raises:
        RuntimeError: A child failed of itself.
    """
    findings: list[Finding] = []
    start = 0
    with tempfile.TemporaryDirectory() as folder:
        place, given = Path(folder) / "place", Path(folder) / "given.json"
        given.write_text(json.dumps({"make": make, "argument": argument, "limit": limit}))
        for _ in range(_MAX_HANGING_CHILDREN):
            place.write_bytes(_PLACE.pack(start, 0))
            done = subprocess.run(
                [sys.executable, "-m", "tests.unit.growth", str(given), str(place), str(start)],
                cwd=ROOT, capture_output=True, text=True, check=False,
            )  # fmt: skip
            told = [json.loads(line) for line in done.stdout.splitlines()]
            findings += [Finding(**one["finding"]) for one in told if "finding" in one]
            if done.returncode == 0:
                break
            if done.returncode != -signal.SIGPROF:
                raise RuntimeError(done.stderr[-4_000:] or f"the child ended with {done.returncode}")
            number, pump = _PLACE.unpack(place.read_bytes())
            work = _made(make, argument)[number]
            findings.append(Finding(work.name, repr(work.pumps()[pump]), None, limit))
            start = number + 1
    return findings


def _made(make: str, argument: object) -> Sequence[Work]:
    module, _, function = make.partition(":")
    made: Callable[[object], Sequence[Work]] = getattr(__import__(module, fromlist=[function]), function)
    return made(argument)


def findings_of(works: Sequence[Work], begun: Callable[[int, int, int], None], start: int = 0) -> Iterator[Finding]:
    """The works of these that grow too fast, from a number on.

    ``begun`` is called before each text, with how many times larger than the largest the text may be.
    """
    for number, work in enumerate(works):
        if number < start:
            continue
        for place, pump in enumerate(work.pumps()):
            begun(number, place, 1)
            finding = _finding(work, pump, partial(begun, number, place, STEPS[-1]))
            if finding is not None:
                yield finding
                break


def _finding(work: Work, pump: Pump, confirming: Callable[[], None]) -> Finding | None:
    if not _suspicious(work, pump, work.largest):
        return None
    found = _steep(work, pump, work.largest)
    if found is None or found.seconds > _LONG:
        return found
    confirming()
    return _steep(work, pump, work.most) if _suspicious(work, pump, work.most) else None


def _suspicious(work: Work, pump: Pump, largest: int) -> bool:
    """A first look, at the ends of the line alone: most work is done before anything can be measured."""
    small, large = (pump.text(largest * step // STEPS[-1]) for step in (STEPS[0], STEPS[-1]))
    least = _seconds(work, small)
    if least > _SHORT:
        return True
    most = _seconds(work, large)
    if most <= NOTICED:
        return False
    least = min(least, *(_seconds(work, small) for _ in range(REPETITIONS - 1)))
    return math.log(most / max(least, 1e-9)) > _SUSPICIOUS * math.log(STEPS[-1])


def _steep(work: Work, pump: Pump, largest: int) -> Finding | None:
    lengths = [largest * step // STEPS[-1] for step in STEPS]
    times = [
        min(_seconds(work, text) for _ in range(REPETITIONS)) for text in (pump.text(length) for length in lengths)
    ]
    slope = _slope(lengths, times)
    last = _slope(lengths[-2:], times[-2:])
    if times[-1] <= NOTICED or min(slope, last) <= STEEPEST:
        return None
    return Finding(work.name, repr(pump), round(slope, 2), round(times[-1], 4))


def _seconds(work: Work, text: str) -> float:
    began = time.thread_time()
    work.run(text)
    return time.thread_time() - began


def _slope(lengths: Iterable[int], times: Iterable[float]) -> float:
    """The slope of the line through the logarithms, by least squares."""
    points = [(math.log(length), math.log(max(seconds, 1e-9))) for length, seconds in zip(lengths, times, strict=True)]
    across = sum(x for x, _ in points) / len(points)
    up = sum(y for _, y in points) / len(points)
    return sum((x - across) * (y - up) for x, y in points) / sum((x - across) ** 2 for x, _ in points)


def _child(given: Path, place: Path, start: int) -> None:
    told = json.loads(given.read_text())
    works = _made(told["make"], told["argument"])
    gc.disable()
    written = os.open(place, os.O_WRONLY)

    def begun(number: int, pump: int, larger: int) -> None:
        os.pwrite(written, _PLACE.pack(number, pump), 0)
        signal.setitimer(signal.ITIMER_PROF, told["limit"] * larger)

    for finding in findings_of(works, begun, start):
        print(json.dumps({"finding": asdict(finding)}), flush=True)


if __name__ == "__main__":
    _child(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
