"""A running compaction: its state between chunks, and how it asks the summarizer about the next chunk."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import partial

from app.core.model.model_io import (
    ModelProfile,
    Proposal,
)
from app.core.model.records import Compaction
from app.core.state.apply import apply_candidate, certain_refusal
from app.off_loop import off_loop
from app.usecases.compaction.attempts import CONTEXT_TOO_LONG, Apply, AttemptInputs, AttemptsResult, Calls, run_attempts
from app.usecases.compaction.chunk import Chunk, NoChunk, fallback_of, read_chunk, summarizer_of
from app.usecases.compaction.continuity import retried_below_floor
from app.usecases.ports import Summarizer, SummarizerRequest
from app.usecases.shared.lease import Lease
from app.usecases.shared.retries import through_outage
from app.usecases.shared.shell import Shell
from app.usecases.shared.work_records import WorkRecord

IN_TURN_CALLS = 3  # ask, retry, fallback
SHORT_OUTAGE = 3.5
"""For how many seconds a caller waits for a database that is away once a model has answered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobLimits:
    """How much of a compaction one caller may do."""

    attempts: int | None = None
    """The most model calls per chunk, where the policy allows more; ``None`` = as many as the policy allows."""
    chunks: int | None = None
    """How many chunks are folded here before the rest is left to a worker; ``None`` = all."""
    withholds_blocked: bool = True
    """Whether a chunk that is too long for the model is halved, and messages that a provider blocks are found and left
    out. Both take many calls, so it is false while a user waits in a chat.
    """
    deadline: float | None = None
    """When the caller's time is over, on the monotonic clock; ``None`` = ``job_seconds`` after the job begins."""

    def until(self, deadline: float) -> JobLimits:
        """These limits with another deadline."""
        return replace(self, deadline=deadline)


UNLIMITED = JobLimits()
"""For a worker, or a caller that does not wait."""
IN_TURN = JobLimits(attempts=IN_TURN_CALLS, withholds_blocked=False)
"""For a turn, whose user waits."""
LAST_TRY = JobLimits(attempts=1, chunks=1, withholds_blocked=False)


@dataclass(slots=True, kw_only=True)
class Job:
    """One run of a compaction, which is one row of ``compactions``."""

    shell: Shell
    lease: Lease
    limits: JobLimits
    deadline: float
    most_tokens: int | None = None
    """The most tokens of a chunk. It only shrinks: when the model's window turns out smaller than assumed."""
    record: WorkRecord | None = None
    """The record that this process works on a chunk. It is suspended while a provider answers."""
    calls: Calls | None = None
    """The model calls about the present chunk; ``None`` between two chunks."""

    @classmethod
    def of(cls, shell: Shell, lease: Lease, limits: JobLimits) -> Job:
        """A job that begins now."""
        deadline = shell.clock.monotonic() + shell.timings.job_seconds if limits.deadline is None else limits.deadline
        return cls(shell=shell, lease=lease, limits=limits, deadline=deadline)

    @property
    def unsaved_result(self) -> AttemptsResult | None:
        """The calls about the present chunk that are not saved yet; used when the job is cancelled."""
        return self.calls.failed_result() if self.calls and self.calls.attempts else None

    @property
    def save_deadline(self) -> float:
        """Until when, on the monotonic clock, to try to save what was paid for, while the database is away."""
        if self.limits.deadline is None:
            return self.deadline
        return min(self.deadline, self.shell.clock.monotonic() + SHORT_OUTAGE)

    async def save(self, write: Callable[[], Awaitable[Compaction]]) -> Compaction:
        """Save what was paid for, by ``write``, and return the row. While the database is away, it is tried again.

        ``save_deadline`` says for how long.
        """
        return await through_outage(write, self.shell.clock, until=self.save_deadline)

    async def next_chunk(self) -> Chunk | NoChunk:
        """The next chunk, or ``NoChunk`` if everything is folded."""
        read = await read_chunk(self.shell, self.lease, most_tokens=self.most_tokens)
        if isinstance(read, Chunk):
            self.most_tokens = read.most_tokens
        return read

    async def run_attempts(self, chunk: Chunk) -> tuple[Chunk | NoChunk, AttemptsResult]:
        """Ask the summarizer about a chunk, unless it is certain that no answer can be applied.

        If it is too long for the model, ask about half of it, while calls are left.

        Returns:
            The chunk that was asked about last, and the result of its attempts. Instead of a chunk, ``NoChunk`` if
            everything was folded meanwhile.
        """
        calls = self.begin_calls(chunk)
        while True:
            context = chunk.apply_context()
            if (refusal := await off_loop(certain_refusal, context)) is not None:
                return chunk, replace(calls.failed_result(str(refusal)), is_final=True)
            inputs = await self.inputs_for(chunk, partial(apply_candidate, context=context))
            attempted = await retried_below_floor(chunk, inputs, calls, await run_attempts(inputs, calls))
            half = chunk.half if self.limits.withholds_blocked and attempted.reason == CONTEXT_TOO_LONG else None
            if attempted.applied is not None or half is None or not calls.left:
                return chunk, attempted
            self.most_tokens = half
            following = await self.next_chunk()
            if isinstance(following, NoChunk):
                return following, attempted
            chunk = following

    def begin_calls(self, chunk: Chunk) -> Calls:
        """The calls that may be made about a chunk, in the time that is left."""
        allowed = chunk.resolved.policy.calls_per_chunk
        most = min(self.limits.attempts or allowed, allowed)
        self.calls = Calls(clock=self.shell.clock, most=most, deadline=self.deadline)
        return self.calls

    def _summarizer_off_record(self, summarizer: Summarizer) -> Summarizer:
        record = self.record
        # If this process dies while it waits for a provider, the chunk is not to blame, so no crash is counted.
        if record is None or not summarizer.profile.metered:
            return summarizer
        return _SummarizerOffRecord(summarizer, record, self)

    async def inputs_for(self, chunk: Chunk, apply: Apply) -> AttemptInputs:
        """What the attempts at a chunk need; ``apply`` makes a state from a checked answer."""
        fallback = await fallback_of(self.shell, chunk.resolved)
        return AttemptInputs(
            summarizer=self._summarizer_off_record(summarizer_of(self.shell, chunk.resolved)),
            fallback=self._summarizer_off_record(fallback) if fallback else None,
            request=chunk.request,
            apply=apply,
            seqs=tuple(message.seq for message in chunk.span),
            withholds_blocked=self.limits.withholds_blocked,
        )


@dataclass(frozen=True, slots=True)
class _SummarizerOffRecord:
    """A summarizer that suspends the record of this process's work on a chunk during its calls."""

    summarizer: Summarizer
    record: WorkRecord
    job: Job

    @property
    def profile(self) -> ModelProfile:
        return self.summarizer.profile

    async def ask(self, request: SummarizerRequest) -> Proposal:
        async with self.record.waiting(until=self.job.save_deadline):
            return await self.summarizer.ask(request)
