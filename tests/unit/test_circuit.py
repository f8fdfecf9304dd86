"""The circuit breaker alone, and with a model behind it: closed, open, and half-open with one trial."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from app.circuit import Circuit
from app.core.model.errors import ModelFailedError, ModelUnavailableError
from app.core.model.model_io import ChatRequest, Proposal, StepEvent, SummaryRequest
from app.core.model.schemas.session import SESSION
from app.providers.guarded import GuardedChat, GuardedSummarizer
from app.usecases.chat.reply import ModelCallbacks, run_step
from tests.fakes import FakeClock, Reply, ScriptedChatModel, ScriptedSummarizer

PAUSE, TRIAL = 30.0, 65.0
REQUEST = SummaryRequest(schema=SESSION, messages=())
GOOD = Proposal(text="{}", finish="stop", model="fake")
AWAY = ModelUnavailableError("server_error", status=503)


def circuit(clock: FakeClock, failures: int = 3) -> Circuit:
    return Circuit(PAUSE, clock.monotonic, failures=failures, trial=TRIAL)


class TestTheStates:
    def test_failures_in_a_row_open_it_and_a_success_between_does_not(self) -> None:
        one = circuit(FakeClock())
        for _ in range(2):
            one.failed()
        one.succeeded()
        for _ in range(2):
            one.failed()
        assert one.is_closed
        one.failed()
        assert not one.allows()

    async def test_half_open_lets_exactly_one_through(self) -> None:
        clock = FakeClock()
        one = circuit(clock, failures=1)
        one.failed()
        await clock.advance(PAUSE - 1)
        assert not one.allows()
        await clock.advance(1)
        assert [one.allows() for _ in range(5)] == [True, False, False, False, False]
        await clock.advance(PAUSE + 1)
        assert not one.allows(), "the trial is still out, though the pause is over once more"

    async def test_it_says_for_how_long_nobody_may_call(self) -> None:
        clock = FakeClock()
        one = circuit(clock, failures=1)
        assert one.seconds_left == 0
        one.failed()
        await clock.advance(10)
        assert one.seconds_left == PAUSE - 10
        await clock.advance(PAUSE)
        assert (one.seconds_left, one.allows()) == (0, True)
        assert one.seconds_left == PAUSE, "the trial may last longer, but it may also end soon"

    async def test_a_trial_decides(self) -> None:
        clock = FakeClock()
        one = circuit(clock, failures=3)
        for _ in range(3):
            one.failed()
        await clock.advance(PAUSE)
        assert one.allows()
        one.failed()
        assert not one.allows(), "one failed trial is enough"
        await clock.advance(PAUSE)
        assert one.allows()
        one.succeeded()
        assert [one.allows() for _ in range(3)] == [True] * 3

    async def test_a_trial_given_up_leaves_its_place_and_a_lost_one_after_its_time(self) -> None:
        clock = FakeClock()
        one = circuit(clock, failures=1)
        one.failed()
        await clock.advance(PAUSE)
        assert one.allows()
        one.abandoned()
        assert [one.allows(), one.allows()] == [True, False]
        await clock.advance(TRIAL)
        assert one.allows()


class TestASummarizer:
    async def test_is_not_asked_while_open_and_asked_once_to_try(self) -> None:
        clock = FakeClock()
        model = ScriptedSummarizer(AWAY, AWAY, AWAY, AWAY, GOOD)
        guarded = GuardedSummarizer(model, circuit(clock))

        assert await reasons(guarded, 5) == ["server_error"] * 3 + ["circuit_open"] * 2
        assert len(model.requests) == 3
        await clock.advance(PAUSE)
        assert await reasons(guarded, 2) == ["server_error", "circuit_open"]
        await clock.advance(PAUSE)
        assert await reasons(guarded, 3) == [None] * 3
        assert len(model.requests) == 7

    async def test_an_open_circuit_is_not_retryable(self) -> None:
        guarded = GuardedSummarizer(ScriptedSummarizer(AWAY), circuit(FakeClock(), failures=1))
        await reasons(guarded, 1)
        with pytest.raises(ModelUnavailableError) as caught:
            await guarded.ask(REQUEST)
        assert not caught.value.retryable

    @pytest.mark.parametrize("reason", ["unauthorized", "bad_request", "context_too_long", "rate_limited"])
    async def test_an_answer_is_no_outage(self, reason: str) -> None:
        answers = ModelUnavailableError(reason, retryable=False)
        guarded = GuardedSummarizer(ScriptedSummarizer(answers), circuit(FakeClock()))
        assert await reasons(guarded, 9) == [reason] * 9

    async def test_calls_from_before_the_opening_decide_nothing(self) -> None:
        clock, barrier = FakeClock(), asyncio.Event()

        async def late(_: SummaryRequest) -> Proposal:
            await barrier.wait()
            raise AWAY

        one = circuit(clock, failures=1)
        straggler = asyncio.create_task(GuardedSummarizer(ScriptedSummarizer(late), one).ask(REQUEST))
        await asyncio.sleep(0)
        one.failed()
        await clock.advance(PAUSE)
        assert one.allows(), "the trial"
        barrier.set()
        with pytest.raises(ModelUnavailableError):
            await straggler
        await clock.advance(PAUSE + 1)
        assert not one.allows(), "a late failure must not let a second trial through"

    async def test_a_cancelled_trial_is_followed_by_another(self) -> None:
        clock = FakeClock()

        async def hangs(_: SummaryRequest) -> Proposal:
            await asyncio.Event().wait()
            return GOOD

        guarded = GuardedSummarizer(ScriptedSummarizer(AWAY, hangs, GOOD), circuit(clock, failures=1))
        await reasons(guarded, 1)
        await clock.advance(PAUSE)
        trial = asyncio.create_task(guarded.ask(REQUEST))
        await asyncio.sleep(0)
        assert await reasons(guarded, 1) == ["circuit_open"]
        trial.cancel()
        await asyncio.gather(trial, return_exceptions=True)
        assert await reasons(guarded, 1) == [None]


class TestAChat:
    async def test_is_refused_while_open(self) -> None:
        clock = FakeClock()
        model = ScriptedChatModel(AWAY, AWAY, AWAY, "Good day.")
        guarded = GuardedChat(model, circuit(clock))
        asked = ChatRequest(messages=())
        for word in ["server_error"] * 3 + ["circuit_open"]:
            with pytest.raises(ModelUnavailableError, match=word):
                await drained(guarded.step(asked))
        await clock.advance(PAUSE)
        assert len(await drained(guarded.step(asked))) == 3
        assert len(model.requests) == 4

    async def test_a_turn_is_told_when_to_try_again(self) -> None:
        clock = FakeClock()
        guarded = GuardedChat(ScriptedChatModel(AWAY), circuit(clock, failures=1))
        deaf = ModelCallbacks(on_text=lambda _: None, on_reasoning=lambda _: None)
        waits: list[float | None] = []
        for _ in range(2):
            with pytest.raises(ModelFailedError) as caught:
                await run_step(guarded, ChatRequest(messages=()), stop=asyncio.Event(), callbacks=deaf)
            waits.append(caught.value.retry_after)
            await clock.advance(10)
        assert waits == [None, PAUSE - 10]

    async def test_a_stream_that_breaks_counts(self) -> None:
        model = ScriptedChatModel(Reply(pieces=("Good ",), error=ModelUnavailableError("connection")))
        guarded = GuardedChat(model, circuit(FakeClock(), failures=1))
        with pytest.raises(ModelUnavailableError, match="connection"):
            await drained(guarded.step(ChatRequest(messages=())))
        with pytest.raises(ModelUnavailableError, match="circuit_open"):
            await drained(guarded.step(ChatRequest(messages=())))


async def reasons(summarizer: GuardedSummarizer, calls: int) -> list[str | None]:
    """The reason of each call's failure; ``None`` for an answer."""
    heard: list[str | None] = []
    for _ in range(calls):
        try:
            await summarizer.ask(REQUEST)
            heard.append(None)
        except ModelUnavailableError as error:
            heard.append(error.reason)
    return heard


async def drained(steps: AsyncIterator[StepEvent]) -> list[StepEvent]:
    return [event async for event in steps]
