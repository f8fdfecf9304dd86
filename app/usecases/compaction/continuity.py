"""The continuity score of a compaction, and a second try if the score is below the policy's floor."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from app.core.continuity.comparing import Comparison, Exam
from app.core.model.continuity import Continuity
from app.core.model.records import Compaction, RanIn
from app.core.state.apply import AppliedCandidate
from app.off_loop import off_loop
from app.usecases.compaction.attempts import AttemptInputs, AttemptsResult, Calls
from app.usecases.compaction.chunk import Chunk

BELOW_FLOOR: Final = "below_floor"
"""The reason on an accepted attempt whose state scored too low; the next attempt made the state once more."""
_UNATTENDED: Final[frozenset[RanIn]] = frozenset({"worker", "sweeper"})
"""The places to run in which nobody waits for a compaction."""


async def exam_of(chunk: Chunk) -> Exam:
    """The probes of a chunk, and which of them can be answered before the chunk is folded."""
    layout = chunk.resolved.conversation.layout
    return await off_loop(lambda: Exam(chunk.span, block=layout, later=chunk.later, anchors=chunk.anchors))


async def score(exam: Exam, applied: AppliedCandidate) -> Comparison:
    """How well the new state answers the probes, compared with what was served before."""
    return await off_loop(exam.compare, applied.state, applied.layout)


def added_score(row: Compaction, found: Continuity) -> Continuity | None:
    """The compaction's score including one more chunk; ``None`` while no chunk had a probe."""
    if not found.total.before:
        return row.continuity
    is_first = row.state_version_after is None or row.continuity is None
    return found if is_first or row.continuity is None else row.continuity.plus(found)


async def retried_below_floor(
    chunk: Chunk, inputs: AttemptInputs, calls: Calls, attempted: AttemptsResult
) -> AttemptsResult:
    """The result; if its score is below the policy's floor, the better one of this result and a second try.

    The second request names what the first answer leaves out. It is made only if no client waits, the model reads
    prompts, and calls and time are left.
    """
    floor, applied = chunk.resolved.policy.continuity_floor, attempted.applied
    reads_prompts = inputs.summarizer.profile.reads_prompts
    if floor is None or applied is None or attempted.withheld or not reads_prompts or not _is_unattended(chunk.row):
        return attempted
    exam = attempted.exam or await exam_of(chunk)
    attempted = replace(attempted, exam=exam)
    first = await score(exam, applied)
    before = first.continuity.score
    if before is None or before >= floor or not first.lost or not calls.left or _would_next_call_be_late(calls):
        return attempted
    at = calls.attempts.index(attempted.accepted)
    calls.attempts[at] = replace(calls.attempts[at], reason=calls.attempts[at].reason or BELOW_FLOOR)
    request = replace(inputs.request(inputs.summarizer.profile, ()), missing=first.lost)
    answer = await calls.ask(inputs.summarizer, request, inputs.apply, asks_again=False)
    better = applied
    if answer.applied is not None:
        after = (await score(exam, answer.applied)).continuity.score
        better = answer.applied if after is not None and after > before else applied
    return replace(attempted, attempts=tuple(calls.attempts), applied=better)


def _is_unattended(row: Compaction) -> bool:
    return row.ran_in in _UNATTENDED


def _would_next_call_be_late(calls: Calls) -> bool:
    return calls.clock.monotonic() + calls.attempts[-1].duration_ms / 1_000 > calls.deadline
