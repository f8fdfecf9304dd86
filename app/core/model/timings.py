"""Intervals and deadlines of every process: leases, heartbeats, sweeps, polls, calls of models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

BEATS_PER_LEASE: Final = 3
"""How many heartbeats fit into a lease: two in a row may be lost, and the lease still holds."""
VERIFIER_CALLS: Final = 4
"""The most calls of one verification."""
VERDICTS_WAIT_SECONDS: Final = 60.0
"""How long verdicts wait for a compaction that began while they were made."""
_SHARE_OF_CALL: Final = 1 / 3
"""The share of a call's time limit within which most successful answers have come."""
_MOMENT_SECONDS: Final = 2.0
"""Added to a model's own time limit, so that its timeout is reported and stored before ours ends the work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timings:
    """Leases, heartbeats, sweeps and polls, in seconds. All processes of an installation use the same values.

    Raises:
        ValueError: A heartbeat is too rare for the lease that it keeps, or a value is not positive.
    """

    lease_seconds: float = 9.0
    """A compaction may be taken over, and a turn ended, after this time without a heartbeat."""
    heartbeat_seconds: float = 3.0
    """The time between two heartbeats of a running compaction."""
    turn_heartbeat_seconds: float = 1.0
    """The time between two heartbeats of a running turn. At each it also checks whether it is asked to stop."""
    sweep_seconds: float = 5.0
    """The time between two passes of a sweeper, varied by up to a fifth."""
    resend_seconds: float = 5.0
    """A compaction that nobody has begun is sent to the workers again after this time."""
    stand_in_seconds: float = 10.0
    """The sweepers run compactions themselves after this time without a broker."""
    poll_seconds: float = 0.25
    """The time between two looks at a compaction that another process runs."""
    event_poll_seconds: float = 2.0
    """The time between two looks for new events; a hint over Redis makes a process look at once."""
    event_heartbeat_seconds: float = 15.0
    """The time between two signs of life in a silent stream of events. Proxies close it after half a minute or more."""
    unfollowed_seconds: float = 10.0
    """A turn whose client left is interrupted after this time without a follower, if the policy says so."""
    stream_heartbeat_seconds: float = 20.0
    """The time between two signs of life in any stream to a client, for whatever reason it is silent."""
    job_seconds: float = 300.0
    """The time limit of a whole compaction outside of a turn. Chunks that are done by then are kept."""
    call_seconds: float = 60.0
    """The time limit of each call of the summarizer's model: the setting ``compaction_timeout_seconds``."""
    measure_seconds: float = 15.0
    """The time between two counts of ended work for the metrics."""
    broker_pause_seconds: float = 5.0
    """Redis is not asked again for this time after a failure."""
    rebuild_seconds: float = 5.0
    """The time between two tries of a worker to begin sweeping."""
    release_seconds: float = 0.5
    """The time between two looks of a stopping worker for jobs that it has to give back."""
    shutdown_seconds: float = 3.0
    """How long running turns may take to finish once the server's connections are closed."""

    watchdog_seconds: float = 30.0
    """A process whose event loop does nothing for this time is ended, and its supervisor starts it again; 0 = never."""

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
        """The deadline of a background call: a moment after the model's own limit, which is thus reached first."""
        return self.call_seconds + _MOMENT_SECONDS

    @property
    def detail_claim_seconds(self) -> float:
        """How long a segment is claimed for its one call: as long as an answer may take."""
        return self.call_deadline_seconds + _MOMENT_SECONDS

    @property
    def verification_claim_seconds(self) -> float:
        """The longest time of a verification: all its calls, and the wait for a running compaction."""
        return VERIFIER_CALLS * self.call_deadline_seconds + VERDICTS_WAIT_SECONDS + _MOMENT_SECONDS

    @property
    def verification_patience_seconds(self) -> float:
        """How long a verification counts among those that run at once. After that it hangs, or its process died."""
        return self.call_deadline_seconds * _SHARE_OF_CALL

    @property
    def task_seconds(self) -> float:
        """The limit of a worker's task, which is a compaction and its verification."""
        return self.job_seconds + self.verification_claim_seconds


DEFAULT_TIMINGS: Final = Timings()
