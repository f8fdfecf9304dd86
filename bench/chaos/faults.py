"""Causes faults and ends them, in the thread that started the servers, since the servers end with it."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import time
from collections.abc import Callable, Mapping
from typing import Final

import redis
from sqlalchemy.exc import DBAPIError

from app.devserver import EmbeddedError
from bench.chaos.cluster import Cluster
from bench.chaos.log import Span
from bench.chaos.plan import BROKER, DATABASE, NODES, Fault
from tests.acceptance.chaos import ServerName, pool_children
from tests.gemini_server import Kind

FULL: Final = 65_536
"""Files may grow to so many bytes on a "full disk": the database's log and most tables are larger."""
MISBEHAVIOUR: Final = ("model hangs", "model lies", "model breaks off", "model refuses")
_TICK: Final = 0.1
_LOOK: Final = 1.0
"""Seconds between two looks at processes that are starting."""

Act = Callable[[Fault], None]


class Conductor:
    """Plays a plan on a cluster, and restarts processes that died by themselves, as ``throughline run`` does."""

    def __init__(self, cluster: Cluster, now: Callable[[], float]) -> None:
        self._cluster = cluster
        self._now = now
        self._down: set[str] = set()
        """The processes that must not be restarted for now."""
        self._healing: list[tuple[float, Fault, float]] = []
        """The faults that last: each with the time when it is ended, and the time when it began."""
        self._acts: Mapping[str, tuple[Act, Act]] = {
            "kill -9": (self._kill, self._revive),
            "kill -9 of a server": (self._kill, self._revive),
            "kill -9 of the pool": (self._kill_pool, _nothing),
            "restart": (self._restart, _nothing),
            "freeze": (self._freeze, self._thaw),
            "freeze of a server": (self._freeze, self._thaw),
            "flush": (self._flush, _nothing),
            "full memory": (self._fill_memory, self._free_memory),
            "full disk": (self._fill_disk, self._free_disk),
            "cut": (self._cut, _nothing),
            "delay": (self._delay, self._hurry),
            "refuse": (self._refuse, self._pass),
            "silence": (self._silence, self._pass),
            "clock step": (self._set_clock, self._right_clock),
            **dict.fromkeys(MISBEHAVIOUR, (self._mislead, self._be_honest)),
        }
        """The actions that cause and end a fault of each kind."""
        self.spans: list[Span] = []
        self.ending: set[str] = set()
        """The processes that were asked to end and have not ended yet."""
        self._held: dict[str, set[int]] = {}
        """The frozen processes of each server, kept since a list of children may miss one while another ends."""
        self._starting: dict[str, float] = {}
        """The restarted processes that do not answer yet, each with the time when it went away."""
        self._looked_at = 0.0
        self.revived: list[str] = []
        """The processes that died by themselves and were restarted."""

    def play(self, plan: tuple[Fault, ...], seconds: float, say: Callable[[str], None]) -> None:
        """Cause every fault at its time; return once all faults and the time are over."""
        waiting = list(plan)
        while waiting or self._healing or self._now() < seconds:
            while waiting and waiting[0].at <= self._now():
                fault = waiting.pop(0)
                say(str(fault))
                self._begin(fault)
            self._heal(self._now())
            self._supervise()
            time.sleep(_TICK)

    def end(self) -> None:
        """End all faults that still last, at once."""
        self._heal(float("inf"))
        self._supervise()

    @property
    def started(self) -> bool:
        """Whether every restarted process answers."""
        return not self._starting and not self.ending

    def keep(self, seconds: float, done: Callable[[], bool]) -> None:
        """Watch over the processes until ``done`` is true, for ``seconds`` at most."""
        deadline = self._now() + seconds
        while not _is_so(done) and self._now() < deadline:
            self._supervise()
            time.sleep(_TICK)

    def _begin(self, fault: Fault) -> None:
        began = self._now()
        with contextlib.suppress(ProcessLookupError, redis.RedisError, AssertionError):
            self._acts[fault.kind][0](fault)
        if fault.seconds:
            self._healing.append((began + fault.seconds, fault, began))
        else:
            self.spans.append(Span(fault=str(fault).strip(), began_at=began, ended_at=self._now()))

    def _heal(self, now: float) -> None:
        for entry in sorted(self._healing, key=lambda one: one[0]):
            due, fault, began = entry
            if due > now:
                continue
            with contextlib.suppress(ProcessLookupError, redis.RedisError):
                self._acts[fault.kind][1](fault)
            self._healing.remove(entry)
            self.spans.append(Span(fault=str(fault).strip(), began_at=began, ended_at=self._now()))

    def _supervise(self) -> None:
        for name, process in self._cluster.processes.items():
            if name not in self._down and not process.alive:
                process.kill()  # end what is left of its process group
                process.start(wait=False)
                self._starting[name] = self._now()
                if name not in self.ending:
                    self.revived.append(name)
                self.ending.discard(name)
        if not self._down & {DATABASE, BROKER}:
            self._revive_servers()
        if self._starting and self._now() > self._looked_at + _LOOK:
            self._note_started()

    def _note_started(self) -> None:
        """Note which processes answer again: until then they are away, which may last longer than the fault."""
        for name, began in tuple(self._starting.items()):
            if name not in self._down and self._cluster.processes[name].ready:
                del self._starting[name]
                self.spans.append(Span(fault=f"{name} starts", began_at=began, ended_at=self._now()))
        self._looked_at = self._now()

    # Processes and servers.

    def _kill(self, fault: Fault) -> None:
        self._down.add(fault.target)
        if (server := _server(fault.target)) is not None:
            self._cluster.servers.kill(server)
        else:
            self.ending.add(fault.target)
            process = self._cluster.processes[fault.target]
            process.signal(signal.SIGKILL)
            process.kill()

    def _revive(self, fault: Fault) -> None:
        """Start the process again, as a supervisor does."""
        self._down.discard(fault.target)

    def _revive_servers(self) -> None:
        """Start the servers that are dead, if any; one that cannot start yet is tried again later."""
        with contextlib.suppress(AssertionError, EmbeddedError):
            self._cluster.servers.revive()

    def _kill_pool(self, fault: Fault) -> None:
        for child in pool_children(self._cluster.processes[fault.target]):
            os.kill(child, signal.SIGKILL)

    def _restart(self, fault: Fault) -> None:
        """Ask the process to end; it is started again once it has ended."""
        self.ending.add(fault.target)
        self._cluster.processes[fault.target].signal(signal.SIGTERM)

    def _freeze(self, fault: Fault) -> None:
        self._signal(fault.target, signal.SIGSTOP)

    def _thaw(self, fault: Fault) -> None:
        self._signal(fault.target, signal.SIGCONT)

    def _signal(self, target: str, number: signal.Signals) -> None:
        server = _server(target)
        if server is None:
            os.killpg(self._cluster.processes[target].pid, number)
            return
        held = self._held.setdefault(target, set())
        held |= self._cluster.servers.pids(server)
        for pid in held:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
        if number == signal.SIGCONT:
            held.clear()

    # Stores.

    def _flush(self, _: Fault) -> None:
        self._cluster.servers.redis.flushall()

    def _fill_memory(self, _: Fault) -> None:
        self._cluster.servers.redis.config_set("maxmemory", 1)

    def _free_memory(self, _: Fault) -> None:
        self._cluster.servers.redis.config_set("maxmemory", 0)

    def _fill_disk(self, _: Fault) -> None:
        """Let no file of the database grow: writes fail as on a full disk, but with another error number."""
        self._down.add(DATABASE)
        self._limit_files(FULL)

    def _free_disk(self, _: Fault) -> None:
        self._down.discard(DATABASE)
        self._limit_files(resource.RLIM_INFINITY)

    def _limit_files(self, most: int) -> None:
        for _ in range(2):  # again, for processes started before the server itself had the limit
            for pid in self._cluster.servers.pids(DATABASE):
                with contextlib.suppress(ProcessLookupError):
                    resource.prlimit(pid, resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))

    # Connections.

    def _cut(self, fault: Fault) -> None:
        self._cluster.links.cut(fault.target)

    def _delay(self, fault: Fault) -> None:
        self._cluster.links.delay(fault.target, float(fault.variant))

    def _hurry(self, fault: Fault) -> None:
        self._cluster.links.delay(fault.target, 0.0)

    def _refuse(self, fault: Fault) -> None:
        self._cluster.links.set(fault.target, "refuse")

    def _silence(self, fault: Fault) -> None:
        self._cluster.links.set(fault.target, "silent")

    def _pass(self, fault: Fault) -> None:
        self._cluster.links.set(fault.target, "pass")

    # Clocks and the model.

    def _set_clock(self, fault: Fault) -> None:
        self._cluster.nodes[NODES.index(fault.target)].clock.write_text(fault.variant)

    def _right_clock(self, fault: Fault) -> None:
        self._cluster.nodes[NODES.index(fault.target)].clock.write_text("0")

    def _mislead(self, fault: Fault) -> None:
        kind, behaviour = fault.variant.split(":")
        asked: Kind = "chat" if kind == "chat" else "compaction"
        self._cluster.gemini.script(asked, default=behaviour)

    def _be_honest(self, _: Fault) -> None:
        self._cluster.gemini.reset()


def _is_so(done: Callable[[], bool]) -> bool:
    """The result of ``done``; false also while the database that it asks is starting."""
    try:
        return done()
    except (DBAPIError, OSError):
        return False


def _nothing(_: Fault) -> None:
    """Do nothing: the fault was over at once."""


def _server(target: str) -> ServerName | None:
    """The server of that name; ``None`` for a process of the service."""
    if target == "PostgreSQL":
        return "PostgreSQL"
    return "Valkey" if target == "Valkey" else None
