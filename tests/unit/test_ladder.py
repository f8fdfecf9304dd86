"""The ladder alone: whom it asks, how often, when it waits, and what it records. The time is virtual."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Collection
from dataclasses import replace

import pytest

from app.core.model.conversation import Layout, Usage
from app.core.model.errors import ModelUnavailableError
from app.core.model.model_io import ModelProfile, Proposal, SummaryRequest
from app.core.model.records import EntryCounts
from app.core.model.schemas.session import SESSION
from app.core.planning.withholding import WITHHELD, with_placeholders
from app.core.state.apply import AppliedCandidate, FinalReason
from app.core.summarizer.prompts import SUMMARY_VERSION
from app.core.validation.gate import GateReport
from app.providers.offline import OfflineSummarizer
from app.usecases.compaction.attempts import Apply, AttemptInputs, AttemptsResult, Calls, run_attempts
from tests.builders import message
from tests.fakes import FAKE_PROFILE, FakeClock, ScriptedSummarizer, SummaryEntry

MESSAGES = tuple(
    message(seq, f"The shipment of {seq} crates reaches harbour number {seq} on a grey morning.")
    for seq in range(1, 33)
)
APPLIED = AppliedCandidate(
    state={}, entries=(), next_entry=1, layout=Layout(text="", tokens=0), counts=EntryCounts(), tokens_after=0
)
EMPTY = Proposal(text="", finish="stop", model="fake", usage=Usage(input_tokens=10))
SILENT_BLOCK = Proposal(text="", finish="blocked", model="fake")
RATE_LIMITED = "rate_limited"
INVENTED = "A toll of 7,741 euros is due at the harbour"


async def honest(request: SummaryRequest) -> Proposal:
    seen = [one.seq for one in request.messages if one.content != WITHHELD]
    first, last = seen[0], seen[-1]
    item = {"text": f"The shipments of {first} to {last} crates reached their harbours", "from": [first, last]}
    told = "Shipments of crates reached their harbours on a grey morning."
    candidate = {"logos": [{**item, "replaces": []}], "pathos": [], "abstract": [], "conversation_summary": told}
    text = json.dumps({**candidate, "dropped": []})
    return Proposal(text=text, finish="stop", model="fake", usage=Usage(input_tokens=100))


async def inventing(request: SummaryRequest) -> Proposal:
    answer = json.loads((await honest(request)).text)
    answer["logos"] = [{"text": INVENTED, "from": [7], "replaces": []}]
    return Proposal(text=json.dumps(answer), finish="stop", model="fake")


async def wordy_block(request: SummaryRequest) -> Proposal:
    return replace(await honest(request), finish="blocked")


def blocking(*guilty: int) -> SummaryEntry:
    """A provider that blocks every prompt in which one of these messages is shown."""

    async def propose(request: SummaryRequest) -> Proposal:
        shown = {one.seq for one in request.messages if one.content != WITHHELD}
        return SILENT_BLOCK if shown & set(guilty) else await honest(request)

    return propose


def away(reason: str = "server_error", *, retryable: bool = True, retry_after: float | None = None) -> Exception:
    return ModelUnavailableError(reason, retryable=retryable, retry_after=retry_after)


class QuickClock(FakeClock):
    """A clock whose time passes only by sleeping."""

    def __init__(self) -> None:
        super().__init__()
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self._elapsed += seconds
        await asyncio.sleep(0)


class Stand:
    """One call of ``run_attempts``, with everything that tests look at."""

    def __init__(self, *script: SummaryEntry, fallback: tuple[SummaryEntry, ...] = ()) -> None:
        self.clock = QuickClock()
        self.model = ScriptedSummarizer(*script)
        self.second = ScriptedSummarizer(*fallback, profile=replace(FAKE_PROFILE, name="second", output_limit=3_000))
        self.has_fallback = bool(fallback)

    async def run_attempts(
        self, *, most: int = 6, deadline: float = 300.0, withholds_blocked: bool = True, apply: Apply | None = None
    ) -> AttemptsResult:
        self.calls = Calls(clock=self.clock, most=most, deadline=deadline)
        asking = AttemptInputs(
            summarizer=self.model,
            fallback=self.second if self.has_fallback else None,
            request=_request,
            apply=apply or _accept,
            seqs=tuple(one.seq for one in MESSAGES),
            withholds_blocked=withholds_blocked,
        )
        return await run_attempts(asking, self.calls)


def _accept(_: GateReport) -> AppliedCandidate | str:
    return APPLIED


def _request(profile: ModelProfile, withheld: Collection[int]) -> SummaryRequest:
    room = min(4_000, profile.output_limit)
    return SummaryRequest(schema=SESSION, messages=with_placeholders(MESSAGES, withheld), max_output_tokens=room)


def outcomes(attempted: AttemptsResult) -> list[tuple[str, str, str | None]]:
    return [(attempt.model, attempt.outcome, attempt.reason) for attempt in attempted.attempts]


class TestThreeRungs:
    async def test_an_honest_answer_needs_one_call(self) -> None:
        stand = Stand(honest, fallback=(honest,))
        attempted = await stand.run_attempts()
        assert outcomes(attempted) == [("fake", "accepted", None)]
        assert attempted.applied is APPLIED
        assert stand.second.requests == []

    async def test_a_refusal_is_named_to_the_same_model_then_to_the_fallback(self) -> None:
        stand = Stand(EMPTY, fallback=(honest,))
        attempted = await stand.run_attempts()
        assert outcomes(attempted) == [
            ("fake", "refused", "empty_summary"),
            ("fake", "refused", "empty_summary"),
            ("fake", "accepted", None),
        ]
        first, retry = stand.model.requests
        (last,) = stand.second.requests
        assert (first.feedback, retry.feedback, last.feedback) == (None, "empty_summary", "empty_summary")
        assert (first.max_output_tokens, retry.max_output_tokens) == (4_000, 8_000), "more room where it was empty"
        assert last.max_output_tokens == 3_000, "the fallback's own profile"
        assert attempted.usage.input_tokens == 120

    async def test_without_a_fallback_two_refusals_are_the_end(self) -> None:
        attempted = await Stand(EMPTY).run_attempts()
        assert (len(attempted.attempts), attempted.applied, attempted.reason) == (2, None, "empty_summary")
        assert not attempted.got_no_answer

    async def test_a_fallback_that_fails_too_is_the_end(self) -> None:
        attempted = await Stand(EMPTY, fallback=(away(),)).run_attempts()
        assert [reason for _, _, reason in outcomes(attempted)] == ["empty_summary", "empty_summary", "server_error"]
        assert attempted.got_no_answer

    @pytest.mark.parametrize("most", [1, 2, 3])
    async def test_a_budget_of_calls_is_kept(self, most: int) -> None:
        assert len((await Stand(EMPTY, fallback=(EMPTY,)).run_attempts(most=most)).attempts) == most

    async def test_what_no_model_can_mend_is_asked_once(self) -> None:
        stand = Stand(honest, fallback=(honest,))
        attempted = await stand.run_attempts(apply=lambda _: FinalReason("anchors_over_budget"))
        assert outcomes(attempted) == [("fake", "refused", "anchors_over_budget")]

    async def test_what_would_be_lost_is_asked_for_also_where_every_item_fails(self) -> None:
        stand = Stand(inventing, inventing)
        lost = ((7, MESSAGES[6].content),)
        attempted = await stand.run_attempts(
            most=2, apply=lambda told: replace(APPLIED, lost=lost) if told.candidate else "none"
        )
        assert [one.reason for one in attempted.attempts] == ["skeleton", "skeleton"], "no item is left"
        _, again = stand.model.requests
        assert [one.statement for one in again.doubts] == [INVENTED]
        assert again.lost == lost

    async def test_control_of_an_answer_that_cannot_be_read_nothing_is_known_to_be_lost(self) -> None:
        stand = Stand(EMPTY, inventing)
        await stand.run_attempts(most=2, apply=lambda _: replace(APPLIED, lost=((7, MESSAGES[6].content),)))
        assert [one.lost for one in stand.model.requests] == [(), ()]

    async def test_a_model_that_costs_nothing_is_not_metered(self) -> None:
        stand = Stand(EMPTY, fallback=(honest,))
        stand.second._profile = replace(stand.second._profile, metered=False)
        attempted = await stand.run_attempts()
        assert [attempt.metered for attempt in attempted.attempts] == [True, True, False]

    async def test_each_call_says_which_prompt_it_was_given(self) -> None:
        stand = Stand(EMPTY, away(), fallback=(honest,))
        attempted = await stand.run_attempts()
        assert [attempt.prompt_version for attempt in attempted.attempts] == [SUMMARY_VERSION] * 3

    async def test_a_model_that_reads_no_prompt_was_given_none(self) -> None:
        stand = Stand(EMPTY, fallback=(honest,))
        stand.second._profile = replace(stand.second._profile, reads_prompts=False)
        attempted = await stand.run_attempts()
        assert [attempt.prompt_version for attempt in attempted.attempts] == [SUMMARY_VERSION, SUMMARY_VERSION, None]
        assert not OfflineSummarizer().profile.reads_prompts


class TestProviders:
    async def test_an_outage_is_asked_again_after_a_pause_with_the_same_request(self) -> None:
        stand = Stand(away(), honest)
        attempted = await stand.run_attempts()
        assert outcomes(attempted) == [("fake", "error", "server_error"), ("fake", "accepted", None)]
        assert stand.model.requests[0] == stand.model.requests[1]
        assert stand.clock.slept == [0.5]

    async def test_a_lasting_outage_leads_to_the_fallback(self) -> None:
        stand = Stand(away(), fallback=(honest,))
        attempted = await stand.run_attempts()
        assert [outcome for _, outcome, _ in outcomes(attempted)] == ["error", "error", "accepted"]
        assert stand.second.requests[0].feedback is None, "an outage is nobody's answer"

    @pytest.mark.parametrize("reason", ["unauthorized", "bad_request", "model_not_found", "circuit_open"])
    async def test_a_refused_request_is_never_repeated_but_the_fallback_is_asked(self, reason: str) -> None:
        stand = Stand(away(reason, retryable=False), fallback=(honest,))
        attempted = await stand.run_attempts()
        assert outcomes(attempted) == [("fake", "error", reason), ("fake", "accepted", None)]
        assert (len(stand.model.requests), len(stand.second.requests)) == (1, 1)

    async def test_what_the_provider_asked_to_wait_is_waited(self) -> None:
        stand = Stand(away(RATE_LIMITED, retry_after=14), honest)
        attempted = await stand.run_attempts(deadline=60)
        assert attempted.applied is APPLIED
        assert stand.clock.slept == [14]

    async def test_where_there_is_no_time_to_wait_nobody_waits(self) -> None:
        stand = Stand(away(RATE_LIMITED, retry_after=14), fallback=(honest,))
        attempted = await stand.run_attempts(deadline=20)
        assert outcomes(attempted) == [("fake", "error", RATE_LIMITED), ("fake", "accepted", None)]
        assert len(stand.model.requests) == 1
        assert stand.clock.slept == []

    async def test_a_wait_there_was_no_time_for_is_told_to_the_caller(self) -> None:
        attempted = await Stand(away(RATE_LIMITED, retry_after=900)).run_attempts(deadline=300)
        assert (attempted.retry_after, len(attempted.attempts)) == (900, 1)
        attempted = await Stand(away(RATE_LIMITED, retry_after=2), honest).run_attempts(deadline=300)
        assert attempted.retry_after == 0

    async def test_a_defect_of_the_gate_is_recorded_and_raised(self) -> None:
        def raises(_: GateReport) -> AppliedCandidate | str:
            raise ZeroDivisionError

        stand = Stand(honest)
        with pytest.raises(ZeroDivisionError):
            await stand.run_attempts(apply=raises)
        assert outcomes(stand.calls.failed_result()) == [("fake", "error", "internal_error")]

    @pytest.mark.parametrize("reason", ["circuit_open", "connection", "quota_exceeded", "server_error", "unauthorized"])
    async def test_a_call_that_no_model_answered_costs_nothing(self, reason: str) -> None:
        attempted = await Stand(away(reason, retryable=False)).run_attempts()
        assert [attempt.metered for attempt in attempted.attempts] == [False]

    async def test_a_call_that_took_its_whole_time_may_cost(self) -> None:
        attempted = await Stand(away("timeout", retryable=False)).run_attempts()
        assert [attempt.metered for attempt in attempted.attempts] == [True]

    async def test_a_cancelled_call_is_recorded(self) -> None:
        begun = asyncio.Event()

        async def hangs(_: SummaryRequest) -> Proposal:
            begun.set()
            await asyncio.Event().wait()
            return EMPTY

        calls = Calls(clock=FakeClock(), most=6, deadline=300)
        asking = AttemptInputs(summarizer=ScriptedSummarizer(hangs), request=_request, apply=_accept, seqs=(1,))
        climbing = asyncio.create_task(run_attempts(asking, calls))
        await begun.wait()
        climbing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await climbing
        assert outcomes(calls.failed_result()) == [("fake", "error", "deadline")]


class TestWhatIsTooLong:
    async def test_is_left_to_the_caller_outside_a_turn(self) -> None:
        stand = Stand(away("context_too_long", retryable=False), fallback=(honest,))
        attempted = await stand.run_attempts()
        assert outcomes(attempted) == [("fake", "error", "context_too_long")]

    async def test_goes_to_the_fallback_inside_a_turn(self) -> None:
        stand = Stand(away("context_too_long", retryable=False), fallback=(honest,))
        assert (await stand.run_attempts(withholds_blocked=False)).applied is APPLIED


class TestWhatIsBlocked:
    @pytest.mark.case("12")
    @pytest.mark.parametrize("guilty", [1, 7, 16, 17, 32])
    async def test_is_found_within_six_calls(self, guilty: int) -> None:
        stand = Stand(blocking(guilty))
        attempted = await stand.run_attempts()
        assert attempted.applied is APPLIED
        assert guilty in attempted.withheld
        assert len(attempted.withheld) <= 2
        assert len(attempted.attempts) <= 6
        assert {"blocked", "withheld"} == {attempt.reason for attempt in attempted.attempts}

    async def test_the_rest_is_shown(self) -> None:
        stand = Stand(blocking(7))
        attempted = await stand.run_attempts()
        accepted = [
            request
            for request, attempt in zip(stand.model.requests, attempted.attempts, strict=True)
            if attempt.outcome == "accepted"
        ]
        hidden = [one.seq for one in accepted[-1].messages if one.content == WITHHELD]
        assert tuple(hidden) == attempted.withheld
        assert len(accepted[-1].messages) == len(MESSAGES)

    @pytest.mark.case("12")
    async def test_is_left_alone_inside_a_turn(self) -> None:
        """The control: without the search the call fails."""
        attempted = await Stand(blocking(7)).run_attempts(withholds_blocked=False)
        assert (attempted.applied, attempted.reason, len(attempted.attempts)) == (None, "blocked", 2)

    async def test_a_fallback_that_sees_everything_is_better_than_withholding(self) -> None:
        attempted = await Stand(blocking(7), fallback=(honest,)).run_attempts()
        assert outcomes(attempted) == [("fake", "refused", "blocked"), ("fake", "accepted", None)]
        assert attempted.withheld == ()

    async def test_a_blocked_answer_is_first_asked_for_in_other_words(self) -> None:
        stand = Stand(wordy_block, honest)
        attempted = await stand.run_attempts()
        assert outcomes(attempted) == [("fake", "refused", "blocked"), ("fake", "accepted", None)]
        assert stand.model.requests[1].feedback == "blocked"

    async def test_a_provider_that_blocks_everything_is_given_up_after_six(self) -> None:
        attempted = await Stand(SILENT_BLOCK).run_attempts()
        assert (attempted.applied, attempted.reason, len(attempted.attempts)) == (None, "blocked", 6)

    async def test_an_outage_in_the_middle_keeps_the_best_so_far(self) -> None:
        stand = Stand(SILENT_BLOCK, honest, away())
        attempted = await stand.run_attempts()
        assert attempted.applied is APPLIED
        assert attempted.withheld == tuple(range(1, 17))
