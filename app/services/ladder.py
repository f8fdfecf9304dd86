"""The attempts at one chunk: propose, judge, and once more with what was wrong. Every attempt is recorded."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from app.domain.apply import Applied
from app.domain.candidate import Candidate
from app.domain.conversation import Usage
from app.domain.errors import ModelUnavailableError
from app.domain.gate import GateReport, judge
from app.domain.model_io import Proposal, SummaryRequest
from app.domain.records import Attempt
from app.ports import Clock, Summarizer

PAUSE = 0.5  # seconds before asking a provider again that just failed
ROOM_FACTOR = 2  # more output room for the retry of a cut-off or empty answer
NEEDS_ROOM = frozenset({"cut_off", "empty_summary"})

Apply = Callable[[Candidate], Applied | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Climb:
    """How the attempts ended: with something to apply, or with the last one's reason."""

    attempts: tuple[Attempt, ...]
    applied: Applied | None = None
    reason: str | None = None

    @property
    def failed_by_model(self) -> bool:
        """The last attempt got no answer at all, rather than one that was refused."""
        return bool(self.attempts) and self.attempts[-1].outcome == "error"

    @property
    def usage(self) -> Usage:
        """What all attempts used."""
        total = Usage()
        for attempt in self.attempts:
            total = total.plus(attempt.usage)
        return total


async def climb(summarizer: Summarizer, request: SummaryRequest, *, apply: Apply, attempts: int, clock: Clock) -> Climb:
    """Ask at most ``attempts`` times, each time naming what was wrong with the answer before.

    A provider that refuses the request itself (a wrong key, an unknown model) is asked once.
    """
    done: list[Attempt] = []
    for number in range(attempts):
        attempt, applied, final = await _attempt(summarizer, request, apply=apply, clock=clock)
        done.append(attempt)
        if applied is not None:
            return Climb(attempts=tuple(done), applied=applied)
        if final:
            break
        if attempt.outcome == "error" and number + 1 < attempts:
            await clock.sleep(PAUSE)
        request = _with_feedback(request, attempt, summarizer.profile.output_limit)
    return Climb(attempts=tuple(done), reason=done[-1].reason)


async def _attempt(
    summarizer: Summarizer, request: SummaryRequest, *, apply: Apply, clock: Clock
) -> tuple[Attempt, Applied | None, bool]:
    """What came of it, and whether another try would end the same way."""
    started = clock.monotonic()
    try:
        proposal = await summarizer.propose(request)
    except ModelUnavailableError as error:
        return _recorded(summarizer, "error", error.reason, clock.monotonic() - started), None, not error.retryable
    report, applied = await asyncio.to_thread(_judged, proposal, request, apply)
    reason = report.reason or (None if applied else "not_smaller")
    outcome: Literal["accepted", "refused"] = "refused" if reason else "accepted"
    return _recorded(summarizer, outcome, reason, clock.monotonic() - started, proposal), applied, False


def _judged(proposal: Proposal, request: SummaryRequest, apply: Apply) -> tuple[GateReport, Applied | None]:
    """The gate, then the merge: pure work over a whole chunk, off the event loop."""
    report = judge(proposal, request)
    return report, apply(report.candidate) if report.candidate is not None else None


def _with_feedback(request: SummaryRequest, attempt: Attempt, output_limit: int) -> SummaryRequest:
    if attempt.outcome == "error":
        return request
    room = request.max_output_tokens * (ROOM_FACTOR if attempt.reason in NEEDS_ROOM else 1)
    return replace(request, feedback=attempt.reason, max_output_tokens=min(room, output_limit))


def _recorded(
    summarizer: Summarizer,
    outcome: Literal["accepted", "refused", "error"],
    reason: str | None,
    seconds: float,
    proposal: Proposal | None = None,
) -> Attempt:
    return Attempt(
        model=proposal.model if proposal else summarizer.profile.name,
        outcome=outcome,
        reason=reason,
        duration_ms=round(seconds * 1000),
        usage=proposal.usage if proposal else Usage(),
    )
