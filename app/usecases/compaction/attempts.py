"""The attempts at one chunk: ask, ask again and name what was wrong, then ask the fallback model.

Outside a turn, a request that a provider blocks is repeated with fewer and fewer messages withheld, to find the ones
that it blocks.

Every attempt is recorded. All attempts at a chunk share one budget of calls and one deadline.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from app.core.continuity.comparing import Exam
from app.core.model.conversation import Usage
from app.core.model.errors import ModelUnavailableError
from app.core.model.model_io import ModelProfile, Proposal, SummaryRequest
from app.core.model.records import Attempt
from app.core.model.statistics import ASKED_AGAIN
from app.core.planning.withholding import WithholdingSearch
from app.core.state.apply import AppliedCandidate, FinalReason
from app.core.summarizer.prompts import SUMMARY_VERSION
from app.core.validation.asking import MAX_ADDED_ITEMS, doubts_of
from app.core.validation.gate import GateReport, judge, judge_again
from app.off_loop import off_loop
from app.usecases.ports import Clock, Summarizer

PAUSE: Final = 0.5  # seconds before a provider that failed without naming a time is asked again
WAIT_SHARE: Final = 0.5  # the most of the time left that may be spent waiting for a provider
OUTPUT_FACTOR: Final = 2  # the retry of a cut-off or empty answer may be this many times longer
NEEDS_MORE_OUTPUT: Final = frozenset({"cut_off", "empty_summary"})

BLOCKED: Final = "blocked"
CONTEXT_TOO_LONG: Final = "context_too_long"
WITHHELD: Final = "withheld"
"""The reason on an accepted attempt that did not see every message, and on its compaction."""
NOT_ASKED: Final = "circuit_open"
TURNED_AWAY: Final = frozenset(
    {NOT_ASKED, "connection", "model_not_found", "quota_exceeded", "rate_limited", "server_error", "unauthorized"}
)
"""Reasons why no model answered, nor was at work for long. Nobody pays for such a call, and it does not count:
otherwise an hour in which a provider is away or turns calls away would use up the limit for the time after it.
"""

Outcome = Literal["accepted", "refused", "error"]
Apply = Callable[[GateReport], AppliedCandidate | str]
RequestFor = Callable[[ModelProfile, Collection[int]], SummaryRequest]
"""Makes the request for a model, with the messages of these ``seq``s withheld."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptsResult:
    """All attempts at a chunk, with the state to apply or the reason of the last one."""

    attempts: tuple[Attempt, ...]
    applied: AppliedCandidate | None = None
    reason: str | None = None
    withheld: tuple[int, ...] = ()
    """The ``seq`` of each message that the summarizer was not shown."""
    retry_after: float = 0.0
    """The seconds that a provider asked to be left alone, if nobody waited for them."""
    is_final: bool = False
    """Whether the chunk was refused for a reason that no model can change."""
    exam: Exam | None = field(default=None, compare=False)
    """The probes of the chunk, if they were already made."""

    @property
    def accepted(self) -> Attempt:
        """The last accepted attempt; if there is none, the last attempt."""
        accepted = (one for one in reversed(self.attempts) if one.outcome == "accepted")
        return next(accepted, self.attempts[-1])

    @property
    def got_no_answer(self) -> bool:
        """Whether the last attempt got no answer at all (rather than an answer that was refused)."""
        return bool(self.attempts) and self.attempts[-1].outcome == "error"

    @property
    def usage(self) -> Usage:
        """What all attempts used."""
        total = Usage()
        for attempt in self.attempts:
            total = total.plus(attempt.usage)
        return total


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptInputs:
    """What the attempts at a chunk need: the models, the request, and what turns an answer into a state."""

    summarizer: Summarizer
    fallback: Summarizer | None = None
    request: RequestFor
    apply: Apply
    seqs: tuple[int, ...]
    """The chunk's messages."""
    withholds_blocked: bool = False
    """Outside a turn: before the fallback, find the messages that a provider blocks, and halve what is too long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    attempt: Attempt
    applied: AppliedCandidate | None = None
    retryable: bool = True
    retry_after: float | None = None
    is_silent: bool = False
    """Whether the model returned no text at all."""
    is_final: bool = False
    """Whether the answer was refused for a reason that no model can change."""
    report: GateReport | None = None
    """The gate's report on the answer; ``None`` if no answer came."""
    lost: tuple[tuple[int, str], ...] = ()
    """Sentences that the new state would lose, with the ``seq`` of their messages."""

    @property
    def reason(self) -> str | None:
        return self.attempt.reason


@dataclass(slots=True, kw_only=True)
class Calls:
    """The model calls of one chunk: how many are allowed, until when, and what became of each."""

    clock: Clock
    most: int
    deadline: float
    """The time at which the calls have to end, by the monotonic clock."""
    attempts: list[Attempt] = field(default_factory=list)
    retry_after: float = 0.0
    """The longest wait that a provider asked for and for which there was not enough time."""

    @property
    def left(self) -> int:
        """How many more calls may be made."""
        return self.most - len(self.attempts)

    def failed_result(self, reason: str | None = None) -> AttemptsResult:
        """A failed result that contains the attempts so far."""
        last = self.attempts[-1].reason if self.attempts else None
        return AttemptsResult(attempts=tuple(self.attempts), reason=reason or last, retry_after=self.retry_after)

    async def ask(
        self, summarizer: Summarizer, request: SummaryRequest, apply: Apply, *, asks_again: bool = True
    ) -> _Answer:
        """Make one call. It is recorded however it ends, even if it is cancelled or the gate has a defect.

        If statements of the answer fail the exact checks, the model is asked about them once more, while calls and time
        are left.

        ``apply`` turns a checked answer into a state, or gives the reason why there is none. Without ``asks_again`` the
        model is not asked about them, so that the remaining calls can be used otherwise.
        """
        started = self.clock.monotonic()
        answer = await self._recorded(
            summarizer, lambda: _answer_of(summarizer, request, lambda proposal: judge(proposal, request), apply)
        )
        second_request = _second_request(answer, request) if asks_again else None
        if second_request is None or not self.left or self._would_second_call_be_late(started) or answer.report is None:
            return answer
        first, report = answer, answer.report
        self.attempts[-1] = replace(first.attempt, reason=first.reason or ASKED_AGAIN)
        second = await self._recorded(
            summarizer,
            lambda: _answer_of(
                summarizer, second_request, lambda proposal: judge_again(report, proposal, second_request), apply
            ),
        )
        return second if second.applied is not None else replace(first, retryable=second.retryable)

    async def _recorded(self, summarizer: Summarizer, call: Callable[[], Awaitable[_Answer]]) -> _Answer:
        started = self.clock.monotonic()
        try:
            answer = await call()
        except asyncio.CancelledError:
            self._record(_Answer(attempt=_attempt(summarizer, "error", "deadline")), started)
            raise
        except Exception:
            self._record(_Answer(attempt=_attempt(summarizer, "error", "internal_error")), started)
            raise
        return self._record(answer, started)

    def _would_second_call_be_late(self, started: float) -> bool:
        now = self.clock.monotonic()
        return now + (now - started) > self.deadline

    async def wait(self, retry_after: float | None) -> bool:
        """Pause before the same provider is asked again. Returns false if it asked for more time than is left."""
        pause = PAUSE if retry_after is None else max(retry_after, PAUSE)
        if pause > (self.deadline - self.clock.monotonic()) * WAIT_SHARE:
            self.retry_after = max(self.retry_after, pause)
            return False
        await self.clock.sleep(pause)
        return True

    def _record(self, answer: _Answer, started: float) -> _Answer:
        duration = round((self.clock.monotonic() - started) * 1000)
        recorded = replace(answer, attempt=replace(answer.attempt, duration_ms=duration))
        self.attempts.append(recorded.attempt)
        return recorded


async def run_attempts(inputs: AttemptInputs, calls: Calls) -> AttemptsResult:
    """Ask the model, ask it once more and name what was wrong, then ask the fallback model.

    A provider that refuses the request itself (a wrong key, an unknown model) is asked once. A chunk that is too long
    is left to the caller, who can halve it.
    """
    request = inputs.request(inputs.summarizer.profile, ())
    answer = await calls.ask(inputs.summarizer, request, inputs.apply)
    if answer.applied is None and calls.left and await _is_worth_retrying(inputs, answer, calls):
        request = _with_feedback(request, answer.attempt, inputs.summarizer.profile.output_limit)
        answer = await calls.ask(inputs.summarizer, request, inputs.apply)
    was_blocked = answer.reason == BLOCKED
    if answer.applied is None and calls.left and inputs.fallback and _is_worth_another_model(inputs, answer):
        fallback = inputs.fallback
        request = replace(inputs.request(fallback.profile, ()), feedback=_feedback(request, answer.attempt))
        answer = await calls.ask(fallback, request, inputs.apply)
    if answer.applied is not None:
        return AttemptsResult(attempts=tuple(calls.attempts), applied=answer.applied)
    if inputs.withholds_blocked and was_blocked:
        return await _attempts_without_blocked(inputs, calls)
    return replace(calls.failed_result(), is_final=answer.is_final)


def turned_away(models: Mapping[str, float]) -> AttemptsResult | None:
    """The calls that open circuits refuse, if they refuse all of these models, by name: the seconds for which they do.

    ``None`` if one of them may be called.
    """
    if not all(models.values()):
        return None
    attempts = [
        Attempt(
            model=name,
            outcome="error",
            reason=NOT_ASKED,
            duration_ms=0,
            usage=Usage(),
            metered=False,
            retry_after=seconds,
        )
        for name, seconds in models.items()
    ]
    return AttemptsResult(attempts=tuple(attempts), reason=NOT_ASKED)


async def _is_worth_retrying(inputs: AttemptInputs, answer: _Answer, calls: Calls) -> bool:
    if answer.is_final:
        return False
    if inputs.withholds_blocked and answer.reason == BLOCKED and answer.is_silent and len(inputs.seqs) > 1:
        return False  # the prompt was blocked, and the next prompt would be the same
    if answer.attempt.outcome == "error":
        return answer.retryable and await calls.wait(answer.retry_after)
    return True


def _is_worth_another_model(inputs: AttemptInputs, answer: _Answer) -> bool:
    return not answer.is_final and not (inputs.withholds_blocked and answer.reason == CONTEXT_TOO_LONG)


async def _attempts_without_blocked(inputs: AttemptInputs, calls: Calls) -> AttemptsResult:
    """Ask with some messages withheld, fewer each time, and use the answer to the request that withheld the fewest."""
    search, best = WithholdingSearch(start=0, stop=len(inputs.seqs)), calls.failed_result()
    while (hidden := search.next(calls.left)) is not None:
        withheld = inputs.seqs[hidden.start : hidden.stop]
        request = replace(inputs.request(inputs.summarizer.profile, withheld), feedback=BLOCKED)
        answer = await calls.ask(inputs.summarizer, request, inputs.apply, asks_again=False)
        if answer.attempt.outcome == "error":
            break
        if answer.applied is not None:
            calls.attempts[-1] = replace(answer.attempt, reason=WITHHELD)
            best = AttemptsResult(attempts=(), applied=answer.applied, withheld=withheld)
        search = search.after(hidden, blocked=answer.reason == BLOCKED)
    if best.applied is None:
        return calls.failed_result(BLOCKED)
    return replace(best, attempts=tuple(calls.attempts))


async def _answer_of(
    summarizer: Summarizer, request: SummaryRequest, judging: Callable[[Proposal], GateReport], apply: Apply
) -> _Answer:
    try:
        proposal = await summarizer.ask(request)
    except ModelUnavailableError as error:
        helps = error.retryable or error.reason == NOT_ASKED
        attempt = _attempt(summarizer, "error", error.reason)
        attempt = replace(attempt, retry_after=error.retry_after if helps else None)
        return _Answer(attempt=attempt, retryable=error.retryable, retry_after=error.retry_after)
    # Run the gate, then the merge, off the event loop: both compute over a whole chunk.
    report, applied, lost = await off_loop(_judged_and_applied, judging, proposal, apply)
    if isinstance(applied, str):
        attempt = _attempt(summarizer, "refused", str(applied), proposal)
        is_silent, is_final = not proposal.text.strip(), isinstance(applied, FinalReason)
        return _Answer(attempt=attempt, is_silent=is_silent, is_final=is_final, report=report, lost=lost)
    return _Answer(attempt=_attempt(summarizer, "accepted", None, proposal), applied=applied, report=report, lost=lost)


def _judged_and_applied(
    judging: Callable[[Proposal], GateReport], proposal: Proposal, apply: Apply
) -> tuple[GateReport, AppliedCandidate | str, tuple[tuple[int, str], ...]]:
    report = judging(proposal)
    applied = report.reason or apply(report)
    reapplied = applied
    if report.reason and report.examined is not None:  # what would be lost if all were mended
        reapplied = apply(replace(report, candidate=report.examined.candidate, reason=None))
    return report, applied, reapplied.lost[:MAX_ADDED_ITEMS] if isinstance(reapplied, AppliedCandidate) else ()


def _second_request(answer: _Answer, request: SummaryRequest) -> SummaryRequest | None:
    # Lost values alone are no reason to send the whole chunk again: code adds their sentences.
    report = answer.report
    if report is None or report.examined is None or not report.by_model:
        return None
    doubts = doubts_of(report.examined.failures)
    return replace(request, doubts=doubts, lost=answer.lost, feedback=None) if doubts else None


def _feedback(request: SummaryRequest, attempt: Attempt) -> str | None:
    # After an outage the earlier reason still holds, since no further answer was refused.
    return request.feedback if attempt.outcome == "error" else attempt.reason


def _with_feedback(request: SummaryRequest, attempt: Attempt, output_limit: int) -> SummaryRequest:
    wanted_tokens = request.max_output_tokens * (OUTPUT_FACTOR if attempt.reason in NEEDS_MORE_OUTPUT else 1)
    return replace(request, feedback=_feedback(request, attempt), max_output_tokens=min(wanted_tokens, output_limit))


def _attempt(
    summarizer: Summarizer,
    outcome: Outcome,
    reason: str | None,
    proposal: Proposal | None = None,
    *,
    version: str = SUMMARY_VERSION,
) -> Attempt:
    return Attempt(
        model=proposal.model if proposal else summarizer.profile.name,
        outcome=outcome,
        reason=reason,
        duration_ms=0,
        usage=proposal.usage if proposal else Usage(),
        metered=summarizer.profile.metered and reason not in TURNED_AWAY,
        prompt_version=version if summarizer.profile.reads_prompts else None,
    )
