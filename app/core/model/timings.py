"""How often a process looks and says that it lives, and how long what it holds stays its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

BEATS_PER_LEASE: Final = 3
"""Two heartbeats in a row may be lost, and the lease still holds."""
VERIFIER_CALLS: Final = 4
"""Of one verification, at most."""
VERDICTS_WAIT_SECONDS: Final = 60.0
"""That verdicts wait for a compaction which began meanwhile."""
_SHARE_OF_CALL: Final = 1 / 3
"""Of a call's limit: an answer that comes at all is mostly there by then."""
_MOMENT_SECONDS: Final = 2.0
"""What is left for the model's own limit to be told, and for writing down."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timings:
    """Leases, heartbeats, sweeps and polls, in seconds. Every process of an installation has the same.

    Raises:
        ValueError: A heartbeat is too rare for the lease that it keeps, or a value is not positive.
    """

    lease_seconds: float = 9.0
    """After so long without a heartbeat others may take over a compaction, and end a turn."""
    heartbeat_seconds: float = 3.0
    """Between two heartbeats of a running compaction."""
    turn_heartbeat_seconds: float = 1.0
    """Between two of a running turn, which looks for a request to stop at the same time."""
    sweep_seconds: float = 5.0
    """Between two passes of a sweeper, a fifth more or less."""
    resend_seconds: float = 5.0
    """After so long a compaction that still waits is sent to the workers again."""
    stand_in_seconds: float = 10.0
    """After so long without a broker the sweepers run compactions themselves."""
    poll_seconds: float = 0.25
    """Between two looks at a compaction that another process runs."""
    event_poll_seconds: float = 2.0
    """Between two looks for new events; a hint over Redis makes it sooner."""
    event_heartbeat_seconds: float = 15.0
    """Between two signs of life in a silent stream of events: proxies close one after half a minute or more."""
    unfollowed_seconds: float = 10.0
    """After so long without anybody who follows it a turn that was left is interrupted, where the policy says so."""
    stream_heartbeat_seconds: float = 20.0
    """Between two signs of life in any stream to a client, whatever keeps it silent."""
    job_seconds: float = 300.0
    """For a whole compaction outside of a turn, with all its calls; what is folded until then is kept."""
    call_seconds: float = 60.0
    """For each call of the summarizer's model: the setting ``compaction_timeout_seconds``."""
    measure_seconds: float = 15.0
    """Between two looks at what ended, for the metrics."""
    broker_pause_seconds: float = 5.0
    """After a failure Redis is left alone for so long."""
    rebuild_seconds: float = 5.0
    """Between two tries of a worker to begin sweeping."""
    release_seconds: float = 0.5
    """Between two looks of a worker that stops for jobs to give back."""
    shutdown_seconds: float = 3.0
    """What running turns get to finish, after the server waited for its connections."""

    watchdog_seconds: float = 30.0
    """A process whose event loop is silent for so long is ended, and started again by whoever keeps it; 0 = never."""

    def __post_init__(self) -> None:
        """Check each value, then those that belong together."""
        if self.watchdog_seconds and self.watchdog_seconds < 1:
            raise ValueError("watchdog_seconds must be 0 (off) or at least 1")
        for name in self.__slots__:
            if getattr(self, name) <= 0 and name != "watchdog_seconds":
                raise ValueError(f"{name} must be more than 0")
        most = self.lease_seconds / BEATS_PER_LEASE
        for name in ("heartbeat_seconds", "turn_heartbeat_seconds"):
            if getattr(self, name) > most:
                raise ValueError(
                    f"{name} is {getattr(self, name):g}: it may be at most a third of lease_seconds, {most:g}"
                )

    @property
    def call_deadline_seconds(self) -> float:
        """For a call behind a compaction: a moment more than the model's own limit, which is then met first."""
        return self.call_seconds + _MOMENT_SECONDS

    @property
    def detail_claim_seconds(self) -> float:
        """How long a segment is claimed for its one call: nobody begins again while the answer may still come."""
        return self.call_deadline_seconds + _MOMENT_SECONDS

    @property
    def verification_claim_seconds(self) -> float:
        """How long a verification is claimed: for all its calls and the wait with its verdicts."""
        return VERIFIER_CALLS * self.call_deadline_seconds + VERDICTS_WAIT_SECONDS + _MOMENT_SECONDS

    @property
    def verification_patience_seconds(self) -> float:
        """How long a verification keeps others from beginning: one that takes longer hangs, or its process died."""
        return self.call_deadline_seconds * _SHARE_OF_CALL

    @property
    def task_seconds(self) -> float:
        """The limit of a worker's task, a compaction and its verification; the task's own loop cancels it then."""
        return self.job_seconds + self.verification_claim_seconds


DEFAULT_TIMINGS: Final = Timings()
